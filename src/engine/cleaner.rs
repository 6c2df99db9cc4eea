//! The page cleaner: keeps dirty pages young and room in the log (format-redo.md section 12). Free
//! frames are the maker's business (maker.rs), how many pages a second pace.rs's.

use std::time::{Duration, Instant};

use super::pace::{Limits, Pace, Seen};
use super::storage::Storage;
use crate::mtr::PageCtx;
use crate::recovery::Pending;
use crate::redo::{CheckpointNeeded, Made};
use crate::settings::{Settings, ids};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::words::{Error, Lsn, Result};

/// Length of a round when nobody wants anything.
const ROUND: Duration = Duration::from_millis(100);
/// innodb_io_capacity_max when it is left alone.
const CAPACITY_MAX_UNSET: u64 = u32::MAX as u64;
/// Parts of the log that are made free one after the other for those who wait for room.
const ROOM_STEPS: u64 = 32;

/// The cleaner and what wakes it.
pub(super) struct Cleaner {
    ctx: Arc<PageCtx>,
    pending: Arc<Pending>,
    settings: Arc<Settings>,
    stop: AtomicBool,
    /// Somebody waits for log room.
    urgent: AtomicBool,
}

/// The hook in the log: it outlives the cleaner's engine by nothing.
pub(super) struct WakeCleaner(pub(super) std::sync::Weak<Cleaner>);

impl CheckpointNeeded for WakeCleaner {
    fn checkpoint_needed(&self, _target: Lsn, urgent: bool) {
        if let Some(cleaner) = self.0.upgrade() {
            if urgent {
                cleaner.urgent.store(true, Ordering::Release);
            }
            cleaner.ctx.pool.wake_cleaner();
        }
    }
}

impl Cleaner {
    pub(super) fn new(storage: &Storage, settings: &Arc<Settings>) -> Arc<Cleaner> {
        Arc::new(Cleaner {
            ctx: storage.ctx.clone(),
            pending: storage.pending.clone(),
            settings: settings.clone(),
            stop: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
        })
    }

    /// Ends `run` soon.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.ctx.pool.wake_cleaner();
    }

    /// The thread's body.
    pub(super) fn run(&self) {
        let mut pace = Pace::new(Instant::now(), self.ctx.log.lsn());
        while !self.stop.load(Ordering::Acquire) {
            self.ctx.pool.wait_for_cleaner_work(ROUND);
            if self.stop.load(Ordering::Acquire) {
                break;
            }
            match self.round(&mut pace) {
                Ok(()) => {}
                // The second: that of the doublewrite blocks, without which no page may be written.
                Err(Error::Stopped(_) | Error::FileFailed(_)) => break,
                // It was said when it began.
                Err(_) if self.ctx.pool.writes_stalled() => std::thread::sleep(ROUND),
                Err(error) => {
                    log::error!("page cleaner: {error}");
                    std::thread::sleep(ROUND);
                }
            }
        }
    }

    fn round(&self, pace: &mut Pace) -> Result<()> {
        if self.urgent.swap(false, Ordering::AcqRel) {
            self.make_room()?;
        }
        let pool = &self.ctx.pool;
        if pool.writes_stalled() {
            pool.retry_stalled()?;
        }
        let (limits, seen) = (self.limits(), self.look());
        if pace.second_is_over(seen.now) {
            let reach = Lsn(seen.lsn.0.saturating_sub(seen.age) + pace.redo_in_3_seconds(&seen));
            let waiting = pool.dirty_below(reach, limits.most_pages() * 3);
            pace.average(&seen, waiting, &limits);
        }
        let quota = pace.pages_due(&seen, &limits);
        if quota > 0 {
            let report = pool.flush_oldest(Lsn(u64::MAX), quota)?;
            pace.wrote(report.written + report.dropped);
        }
        self.checkpoint_if_useful()
    }

    /// Statements wait: write what holds the checkpoint back, and make one after each part, so that
    /// the first go on early.
    fn make_room(&self) -> Result<()> {
        let capacity = self.ctx.log.capacity();
        let lsn = self.ctx.log.lsn().0;
        // A good step beyond what is needed, so that the next wait is not at the next append.
        let target = Lsn(lsn.saturating_sub(capacity.max_modified_age_async / 4 * 3));
        // Where the log is kept from: statements may have less room than usual behind it.
        let target = target.max(self.ctx.log.held_lsn().unwrap_or_default());
        loop {
            // Pages that wait for recovery hold the checkpoint back, too, but no write helps there.
            let oldest = self.ctx.pool.oldest_modification();
            let part = oldest.map_or(target, |oldest| {
                Lsn(oldest.0 + capacity.log_capacity / ROOM_STEPS)
            });
            self.ctx.pool.flush_to(part.min(target))?;
            self.checkpoint()?;
            if part >= target || self.stop.load(Ordering::Acquire) {
                return Ok(());
            }
        }
    }

    fn limits(&self) -> Limits {
        let settings = &self.settings;
        let capacity = self.ctx.log.capacity();
        let io_capacity = settings.uint(ids::IO_CAPACITY);
        let set = settings.uint(ids::IO_CAPACITY_MAX);
        Limits {
            io_capacity: io_capacity as f64,
            io_capacity_max: (set != CAPACITY_MAX_UNSET).then_some(set.max(io_capacity) as f64),
            adaptive: settings.is_on(ids::ADAPTIVE_FLUSHING),
            rounds: settings.uint(ids::FLUSHING_AVG_LOOPS) as f64,
            low_age: capacity.log_capacity as f64 * settings.double(ids::ADAPTIVE_FLUSHING_LWM)
                / 100.0,
            high_age: capacity.max_modified_age_async as f64,
            dirty_pct_low: settings.double(ids::MAX_DIRTY_PAGES_PCT_LWM),
            dirty_pct_max: settings.double(ids::MAX_DIRTY_PAGES_PCT),
            batch: self.ctx.pool.batch_pages(),
        }
    }

    fn look(&self) -> Seen {
        let counts = self.ctx.pool.counts();
        Seen {
            now: Instant::now(),
            lsn: self.ctx.log.lsn(),
            age: match self.pending.present_count() {
                // Those that wait for a missing file are not helped by writing others.
                0 => self.age_of(self.ctx.pool.oldest_modification()),
                // No checkpoint passes pages that wait: the device is better used to bring them up.
                _ => self.age_of(Some(self.pending.end_of_log())),
            },
            dirty: counts.dirty,
            frames: counts.frames,
        }
    }

    /// Bytes of log since the oldest change that no file has.
    fn oldest_age(&self) -> u64 {
        self.age_of(Storage::oldest(&self.ctx, &self.pending))
    }

    fn age_of(&self, oldest: Option<Lsn>) -> u64 {
        match oldest {
            Some(oldest) => self.ctx.log.lsn().0.saturating_sub(oldest.0),
            None => 0,
        }
    }

    /// A checkpoint costs two syncs: made when it frees an eighth of the log, or everything is
    /// written.
    fn checkpoint_if_useful(&self) -> Result<()> {
        let log = &self.ctx.log;
        let gain = log.age().saturating_sub(self.oldest_age());
        let all_written = self.ctx.pool.dirty_count() == 0 && self.pending.present_count() == 0;
        if gain > log.capacity().max_modified_age_async / 8 || (all_written && gain > 1024) {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Makes a checkpoint as far as the files allow.
    pub(super) fn checkpoint(&self) -> Result<Made> {
        let oldest = || Storage::oldest(&self.ctx, &self.pending);
        self.ctx.log.checkpoint(&self.ctx.spaces, oldest)
    }
}

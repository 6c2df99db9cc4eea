//! The page cleaner: keeps free frames at hand, dirty pages young, and room in the log
//! (format-redo.md section 12).
//!
//! The rule is simpler than the reference's formula: each round writes at least as much of the oldest
//! changes as keeps the checkpoint age on its way to `max_modified_age_async`, proportional to how
//! far the age is into the adaptive range, so that writing rises smoothly instead of in bursts.

use std::time::Duration;

use super::storage::Storage;
use crate::mtr::PageCtx;
use crate::recovery::Pending;
use crate::redo::{CheckpointNeeded, Made};
use crate::settings::{Settings, ids};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::words::{Error, Lsn, Result};

/// Length of a round when nobody wants anything.
const ROUND: Duration = Duration::from_millis(200);
/// Rounds in a second.
const ROUNDS: u64 = 5;

/// The cleaner and what wakes it.
pub(super) struct Cleaner {
    ctx: Arc<PageCtx>,
    pending: Arc<Pending>,
    settings: Arc<Settings>,
    stop: AtomicBool,
    /// Somebody waits for log room.
    urgent: AtomicBool,
    /// The log's end at the round before.
    last_lsn: AtomicU64,
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
            last_lsn: AtomicU64::new(0),
        })
    }

    /// Ends `run` soon.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.ctx.pool.wake_cleaner();
    }

    /// The thread's body.
    pub(super) fn run(&self) {
        self.ctx.pool.set_cleaner_runs(true);
        while !self.stop.load(Ordering::Acquire) {
            let wanted = self.ctx.pool.wait_for_cleaner_work(ROUND);
            if self.stop.load(Ordering::Acquire) {
                break;
            }
            match self.round(wanted) {
                Ok(()) => {}
                Err(Error::Stopped(_)) => break,
                Err(error) => {
                    log::error!("page cleaner: {error}");
                    std::thread::sleep(ROUND);
                }
            }
        }
        self.ctx.pool.set_cleaner_runs(false);
    }

    fn round(&self, wanted: bool) -> Result<()> {
        let capacity_max = self.settings.uint(ids::IO_CAPACITY_MAX).min(20_000) as usize;
        self.ctx.pool.refill_free_frames(capacity_max)?;
        if self.urgent.swap(false, Ordering::AcqRel) {
            return self.make_room();
        }
        let quota = self.quota(wanted);
        if quota > 0 {
            self.ctx.pool.flush_oldest(Lsn(u64::MAX), quota)?;
        }
        self.checkpoint_if_useful()
    }

    /// Statements wait: write what holds the checkpoint back, then make one.
    fn make_room(&self) -> Result<()> {
        let capacity = self.ctx.log.capacity();
        let lsn = self.ctx.log.lsn().0;
        // A good step beyond what is needed, so that the next wait is not at the next append.
        let target = Lsn(lsn.saturating_sub(capacity.max_modified_age_async / 4 * 3));
        self.ctx.pool.flush_to(target)?;
        self.checkpoint()?;
        Ok(())
    }

    /// Pages to write in this round.
    fn quota(&self, wanted: bool) -> usize {
        let dirty = self.ctx.pool.dirty_count();
        if dirty == 0 {
            return 0;
        }
        let per_round = |rate: u64| (rate / ROUNDS).max(1) as usize;
        let low = per_round(self.settings.uint(ids::IO_CAPACITY));
        let high = per_round(self.settings.uint(ids::IO_CAPACITY_MAX).min(100_000));
        let counts = self.ctx.pool.counts();
        let dirty_pct = dirty as f64 * 100.0 / counts.frames.max(1) as f64;
        let pct_max = self.settings.double(ids::MAX_DIRTY_PAGES_PCT).max(1.0);
        let pct_low = self.settings.double(ids::MAX_DIRTY_PAGES_PCT_LWM);
        let capacity = self.ctx.log.capacity();
        let age = self.oldest_age() as f64;
        let low_age =
            capacity.log_capacity as f64 * self.settings.double(ids::ADAPTIVE_FLUSHING_LWM) / 100.0;
        let by_age = (age - low_age) / (capacity.max_modified_age_async as f64 - low_age).max(1.0);
        let by_dirty = match pct_low > 0.0 {
            true => (dirty_pct - pct_low) / (pct_max - pct_low).max(1.0),
            false => (dirty_pct - pct_max) / pct_max + f64::from(u8::from(dirty_pct > pct_max)),
        };
        let pressure = by_age.max(by_dirty).clamp(0.0, 1.0);
        let lsn = self.ctx.log.lsn().0;
        // Relaxed: this thread's own note.
        let idle = self.last_lsn.swap(lsn, Ordering::Relaxed) == lsn;
        if pressure <= 0.0 {
            // Nothing presses. While nobody writes, pages trickle out, so that a restart finds little
            // to do; else their syncs would only delay commits.
            return if idle && !wanted { low } else { 0 };
        }
        low + ((high.saturating_sub(low)) as f64 * pressure * pressure) as usize
    }

    /// Bytes of log since the oldest change that no file has.
    fn oldest_age(&self) -> u64 {
        match Storage::oldest(&self.ctx, &self.pending) {
            Some(oldest) => self.ctx.log.lsn().0.saturating_sub(oldest.0),
            None => 0,
        }
    }

    /// A checkpoint costs two syncs: made when it frees an eighth of the log, or everything is
    /// written.
    fn checkpoint_if_useful(&self) -> Result<()> {
        let log = &self.ctx.log;
        let gain = log.age().saturating_sub(self.oldest_age());
        let all_written = self.ctx.pool.dirty_count() == 0 && self.pending.count() == 0;
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

//! Free frames: promising, taking, evicting.
//!
//! A mini-transaction is promised its frames before its first latch; the free list never sinks below
//! what is promised, so that taking a promised one waits for nothing. Everybody else takes what is
//! above that, evicts clean pages itself when there is nothing, and as a last resort waits for the
//! maker (maker.rs), or writes pages itself where no maker runs. Who leaves few frames wakes the maker.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::frame::{Frame, Load, WriteState};
use super::pool::Pool;
use crate::sync::atomic::Ordering;
use crate::words::{Error, Result};

/// Frames evicted in one go.
const EVICT_BATCH: usize = 8;
/// Pages written in one go for a frame where no maker runs.
const WRITE_BATCH: usize = 32;
/// Attempts to get a frame under latches.
const ATTEMPTS_MAX: u32 = 100;
/// How long a wait for a frame may take before the pool counts as full.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Length of one sleep: what does not raise the signal, such as an unpinned page, is seen after it.
const SLEEP: Duration = Duration::from_millis(20);

/// Frames promised to a mini-transaction; what is left returns when it is dropped.
pub struct FrameCredit<'p> {
    pool: &'p Pool,
    left: Cell<u32>,
}

impl<'p> FrameCredit<'p> {
    /// Frames still promised.
    pub fn left(&self) -> u32 {
        self.left.get()
    }

    /// Moves up to `count` of them into a credit of its own.
    pub fn split(&self, count: u32) -> FrameCredit<'p> {
        let moved = count.min(self.left.get());
        self.left.set(self.left.get() - moved);
        FrameCredit {
            pool: self.pool,
            left: Cell::new(moved),
        }
    }
}

impl Drop for FrameCredit<'_> {
    fn drop(&mut self) {
        if self.left.get() > 0 {
            self.pool.lru.lock().promised -= self.left.get() as usize;
            self.pool.frame_available.raise();
        }
    }
}

impl Pool {
    /// Promises `count` frames. Waits for them; call it with no latch held.
    ///
    /// Errors: `BufferPoolFull` after half a minute, or at once for more than half of the
    /// pool; `Stopped`.
    pub fn admit_frames(&self, count: u32) -> Result<FrameCredit<'_>> {
        let credit = self.no_frames();
        if count == 0 {
            return Ok(credit);
        }
        if count as usize > self.frame_count() / 2 {
            return Err(Error::BufferPoolFull);
        }
        let mut need = Need::new(count as usize);
        loop {
            need.look(self);
            if self.promise(count as usize) {
                credit.left.set(count);
                return Ok(credit);
            }
            self.make_room(&mut need)?;
        }
    }

    /// A promise of nothing.
    pub fn no_frames(&self) -> FrameCredit<'_> {
        FrameCredit {
            pool: self,
            left: Cell::new(0),
        }
    }

    /// An owned, empty frame; waits for one. Call it with no latch held.
    ///
    /// Errors: `BufferPoolFull`, `Stopped`.
    pub(super) fn take_frame(&self) -> Result<u32> {
        let mut need = Need::new(1);
        loop {
            need.look(self);
            if let Some(at) = self.take_free(false) {
                return Ok(at);
            }
            self.make_room(&mut need)?;
        }
    }

    /// An owned, empty frame for a caller that holds page latches: a promised one, else what can be
    /// had without waiting for anybody; as a last resort dirty pages are written.
    ///
    /// Errors: `BufferPoolFull`, `Stopped`, and what a failed log gives.
    pub(super) fn take_frame_now(&self, credit: &FrameCredit<'_>) -> Result<u32> {
        self.check_running()?;
        if credit.left() > 0 {
            if let Some(at) = self.take_free(true) {
                credit.left.set(credit.left() - 1);
                return Ok(at);
            }
        }
        for attempt in 0..ATTEMPTS_MAX {
            if let Some(at) = self.take_free(false) {
                return Ok(at);
            }
            if self.evict(EVICT_BATCH, usize::MAX) > 0 {
                continue;
            }
            self.counters
                .waits_for_frame
                .fetch_add(u64::from(attempt == 0), Ordering::Relaxed);
            self.wake_maker();
            let report = self.flush_coldest_under_latches(WRITE_BATCH)?;
            if report.written == 0 && attempt > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Err(Error::BufferPoolFull)
    }

    /// A free frame; a promised one for a caller that redeems a promise.
    pub(super) fn take_free(&self, redeems: bool) -> Option<u32> {
        let mut lists = self.lru.lock();
        let at = lists.take_free(&self.frames, redeems);
        let left = lists.free_unpromised();
        drop(lists);
        self.frames_are_left(left);
        at
    }

    /// A frame beyond those that the maker keeps at hand: whoever needs one evicts nothing for its sake.
    pub(super) fn take_spare(&self) -> Option<u32> {
        let mut lists = self.lru.lock();
        match lists.free_unpromised() > self.free_frames_target() {
            true => lists.take_free(&self.frames, false),
            false => None,
        }
    }

    fn promise(&self, count: usize) -> bool {
        let mut lists = self.lru.lock();
        let enough = lists.free_unpromised() >= count;
        if enough {
            lists.promised += count;
        }
        let left = lists.free_unpromised();
        drop(lists);
        self.frames_are_left(left);
        enough
    }

    fn frames_are_left(&self, left: usize) {
        if left < self.free_frames_low() {
            self.wake_maker();
        }
    }

    pub(super) fn make_room(&self, need: &mut Need) -> Result<()> {
        self.check_running()?;
        let wanted = need.frames.max(EVICT_BATCH);
        if self.evict(wanted, self.cold_depth()) > 0 {
            return Ok(());
        }
        let since = match need.since {
            Some(since) => since,
            None => {
                self.counters
                    .waits_for_frame
                    .fetch_add(1, Ordering::Relaxed);
                *need.since.insert(Instant::now())
            }
        };
        if since.elapsed() > WAIT_MAX {
            return Err(Error::BufferPoolFull);
        }
        if self.maker_runs.load(Ordering::Acquire) {
            self.wake_maker();
            self.frame_available.wait(need.seen, SLEEP);
        } else if self.flush_coldest(WRITE_BATCH)?.written == 0
            && self.evict(wanted, usize::MAX) == 0
        {
            // All pages are pinned or being read right now.
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Evicts up to `count` clean, unpinned pages of the `depth` coldest ones; returns how many.
    pub fn evict(&self, count: usize, depth: usize) -> usize {
        let mut cold = Vec::with_capacity(count);
        self.lru
            .lock()
            .coldest(&self.frames, depth, count, may_go, &mut cold);
        self.evict_frames(cold)
    }

    /// Evicts those pages of `cold` frames that are still clean and unpinned; returns how many.
    pub(super) fn evict_frames(&self, mut cold: Vec<u32>) -> usize {
        let _section = self.critical("panic while a page was evicted");
        cold.retain(|&at| self.take_out(at));
        self.counters
            .evicted
            .fetch_add(cold.len() as u64, Ordering::Relaxed);
        self.give_frames_back(&cold);
        cold.len()
    }

    /// Takes the page of frame `at` out of the table if it is clean and unpinned (P5).
    fn take_out(&self, at: u32) -> bool {
        let frame = self.frame(at);
        if !frame.try_own() {
            return false;
        }
        // Nobody can pin it now, so nobody can make it dirty; it may have become so before.
        if frame.load() != Load::Ready || frame.write_state() != WriteState::Clean {
            frame.disown(0);
            return false;
        }
        if frame.heat.load(Ordering::Relaxed) == 0 {
            self.counters
                .read_ahead_evicted
                .fetch_add(1, Ordering::Relaxed);
        }
        self.leave(at);
        self.reached("pool.evict");
        true
    }
}

/// Somebody who needs frames.
pub(super) struct Need {
    frames: usize,
    /// `frame_available` before he looked.
    seen: u32,
    /// When he began to wait.
    since: Option<Instant>,
}

impl Need {
    pub(super) fn new(frames: usize) -> Need {
        Need {
            frames,
            seen: 0,
            since: None,
        }
    }

    /// He looks for frames now.
    pub(super) fn look(&mut self, pool: &Pool) {
        self.seen = pool.frame_available.seen();
    }
}

pub(super) fn may_go(frame: &Frame) -> bool {
    frame.pins() == Some(0)
        && frame.load() == Load::Ready
        && frame.write_state() == WriteState::Clean
}

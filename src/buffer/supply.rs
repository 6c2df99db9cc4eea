//! Free frames: promising, taking, evicting.
//!
//! A mini-transaction is promised its frames before its first latch; the free list never sinks below
//! what is promised, so that taking a promised one waits for nothing. Everybody else takes what is
//! above that, evicts clean pages itself when there is nothing, and as a last resort waits for the
//! cleaner, or writes pages itself where no cleaner runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::frame::{Frame, Load, WriteState};
use super::pool::Pool;
use crate::sync::atomic::Ordering;
use crate::words::{Error, Result};

/// Frames evicted in one go, and how far the cold end is searched for them.
const EVICT_BATCH: usize = 8;
const EVICT_DEPTH: usize = 256;
/// Pages written in one go for a frame where no cleaner runs.
const WRITE_BATCH: usize = 32;
/// Attempts to get a frame under latches.
const ATTEMPTS_MAX: u32 = 100;
/// How long a wait for a frame may take before the pool counts as full.
const WAIT_MAX: Duration = Duration::from_secs(30);

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
            self.pool.frame_available.set();
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
        if count as usize > self.frames.len() / 2 {
            return Err(Error::BufferPoolFull);
        }
        let since = Instant::now();
        loop {
            let mut lists = self.lru.lock();
            if lists.free_unpromised() >= count as usize {
                lists.promised += count as usize;
                credit.left.set(count);
                return Ok(credit);
            }
            drop(lists);
            self.make_room(since, count as usize)?;
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
        let since = Instant::now();
        loop {
            if let Some(at) = self.lru.lock().take_free(&self.frames, false) {
                return Ok(at);
            }
            self.make_room(since, EVICT_BATCH)?;
        }
    }

    /// An owned, empty frame for a caller that holds page latches: a promised one, else what can be
    /// had without waiting for anybody; as a last resort dirty pages are written.
    ///
    /// Errors: `BufferPoolFull`, `Stopped`, and what a failed log gives.
    pub(super) fn take_frame_now(&self, credit: &FrameCredit<'_>) -> Result<u32> {
        self.check_running()?;
        if credit.left() > 0 {
            if let Some(at) = self.lru.lock().take_free(&self.frames, true) {
                credit.left.set(credit.left() - 1);
                return Ok(at);
            }
        }
        for attempt in 0..ATTEMPTS_MAX {
            if let Some(at) = self.lru.lock().take_free(&self.frames, false) {
                return Ok(at);
            }
            if self.evict(EVICT_BATCH, self.frames.len()) > 0 {
                continue;
            }
            self.wake_cleaner();
            let report = self.flush_coldest_under_latches(WRITE_BATCH)?;
            if report.written == 0 && attempt > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Err(Error::BufferPoolFull)
    }

    fn make_room(&self, since: Instant, wanted: usize) -> Result<()> {
        self.check_running()?;
        if self.evict(wanted.max(EVICT_BATCH), EVICT_DEPTH) > 0 {
            return Ok(());
        }
        if since.elapsed() > WAIT_MAX {
            return Err(Error::BufferPoolFull);
        }
        self.counters
            .waits_for_frame
            .fetch_add(1, Ordering::Relaxed);
        if self.cleaner_runs.load(Ordering::Acquire) {
            self.cleaner_wanted.set();
            self.frame_available.wait(Duration::from_millis(10));
        } else if self.flush_coldest(WRITE_BATCH)?.written == 0
            && self.evict(wanted.max(EVICT_BATCH), self.frames.len()) == 0
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
        let mut evicted = 0;
        for at in cold {
            evicted += usize::from(self.evict_frame(at));
        }
        evicted
    }

    /// Evicts the page of frame `at` if it is still clean and unpinned (P5).
    pub(super) fn evict_frame(&self, at: u32) -> bool {
        let frame = self.frame(at);
        if !frame.try_own() {
            return false;
        }
        // Nobody can pin it now, so nobody can make it dirty; it may have become so before.
        if frame.load() != Load::Ready || frame.write_state() != WriteState::Clean {
            frame.disown(0);
            return false;
        }
        let _section = self.critical("panic while a page was evicted");
        self.leave(at);
        self.reached("pool.evict");
        self.give_frame_back(at);
        self.counters.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Frames the cleaner should have at hand.
    pub fn free_frames_target(&self) -> usize {
        self.config
            .free_frames_target
            .min(self.frames.len() / 16)
            .max(8)
    }

    /// How many frames are missing to the cleaner's target.
    pub fn free_frames_short(&self) -> usize {
        self.free_frames_target()
            .saturating_sub(self.lru.lock().free_unpromised())
    }
}

fn may_go(frame: &Frame) -> bool {
    frame.pins() == Some(0)
        && frame.load() == Load::Ready
        && frame.write_state() == WriteState::Clean
}

//! Free frames ahead of need: the pool's side of the threads that make them.
//!
//! One evicts and waits for nothing, so that frames are had from clean pages while a batch is on its way
//! to the files; it wakes the other one, which writes.
//!
//! Two reserves. Frames of the free list: who takes one below the low-water mark wakes the maker,
//! which evicts clean pages from the cold end up to the high-water mark. And the cold end itself:
//! once a batch of dirty pages has gathered there they are written together, so that the next pages
//! to go are clean and going costs no write. A batch is as large as a doublewrite block: one log
//! sync, one of the block, one for each file, however many pages.
//!
//! A page that cannot be written (full disk, failed file) is set aside, so that it does not stand in
//! the way of those that can go; it stays dirty or unsynced and is never evicted (F2, F5).

use std::time::Duration;

use super::flush::{FlushReport, Wait};
use super::frame::{Frame, WriteState};
use super::pool::Pool;
use super::supply::may_go;
use crate::sync::atomic::Ordering;
use crate::words::Result;

/// The free list is this part of the pool at most.
const FREE_PART: usize = 16;
/// The cold end that is kept clean is this part of the pool.
const COLD_PART: usize = 6;
/// But at least so many frames.
const COLD_MIN: usize = 32;

/// What stands at the cold end, coldest first.
#[derive(Default)]
struct ColdEnd {
    clean: Vec<u32>,
    dirty: Vec<u32>,
}

impl Pool {
    /// Says that a maker runs, or stops: who needs a frame waits for it, or else writes pages
    /// itself.
    pub fn set_maker_runs(&self, runs: bool) {
        self.maker_runs.store(runs, Ordering::Release);
        self.frame_available.raise();
    }

    /// Sleeps until free frames run low, at most `timeout`; true if they do.
    pub fn wait_for_maker_work(&self, timeout: Duration) -> bool {
        let wanted = self.maker_wanted.wait(timeout);
        self.advance_tick();
        wanted
    }

    /// Wakes the maker.
    pub fn wake_maker(&self) {
        self.maker_wanted.set();
    }

    /// Sleeps until pages at the cold end should be written, at most `timeout`.
    pub fn wait_for_cold_work(&self, timeout: Duration) {
        self.cold_writer_wanted.wait(timeout);
    }

    /// Wakes the thread that writes at the cold end.
    pub fn wake_cold_writer(&self) {
        self.cold_writer_wanted.set();
    }

    /// High-water mark: frames that the maker has at hand when it rests.
    pub fn free_frames_target(&self) -> usize {
        self.scan_depth
            .load(Ordering::Relaxed)
            .min(self.frame_count() / FREE_PART)
            .max(8)
    }

    /// Low-water mark: with fewer than these the maker works.
    pub fn free_frames_low(&self) -> usize {
        self.free_frames_target() / 2
    }

    fn free_frames_short(&self) -> usize {
        self.free_frames_target()
            .saturating_sub(self.lru.lock().free_unpromised())
    }

    /// Frames at the cold end that should be clean.
    pub(super) fn cold_depth(&self) -> usize {
        let part = (self.frame_count() / COLD_PART).max(COLD_MIN);
        part.min(self.scan_depth.load(Ordering::Relaxed).max(COLD_MIN))
    }

    /// Dirty pages at the cold end that are worth a batch though no frame is short.
    fn worth_writing(&self) -> usize {
        self.batch_pages().min(self.cold_depth() / 2)
    }

    /// Brings the free list up to the high-water mark by evicting clean pages; waits for nothing. True
    /// if pages at the cold end should be written: they fill a batch, or frames are short without it.
    pub fn evict_ahead(&self) -> bool {
        let mut depth = self.cold_depth();
        loop {
            let short = self.free_frames_short();
            let found = self.look_at_cold_end(short, depth);
            let dirty = found.dirty.len();
            if self.evict_frames(found.clean) >= short {
                return dirty >= self.worth_writing();
            }
            // A clean page that is somewhat warmer goes rather than that somebody waits for a write.
            if depth >= self.frame_count() / 2 {
                return true;
            }
            depth *= 4;
        }
    }

    /// Brings the free list up to the high-water mark, and writes what is dirty at the cold end if it
    /// fills a batch, or if frames are short without it. Writes at most about `write_max` pages.
    ///
    /// Errors: as `flush_oldest`.
    pub fn make_free_frames(&self, write_max: usize) -> Result<FlushReport> {
        let mut report = FlushReport::default();
        let ahead = self.worth_writing();
        let mut depth = self.cold_depth();
        loop {
            let short = self.free_frames_short();
            let found = self.look_at_cold_end(short, depth);
            let short = short - self.evict_frames(found.clean);
            let deeper = depth < self.frame_count();
            match found.dirty.len() {
                dirty if short == 0 && dirty < ahead => return Ok(report),
                // A larger batch for the same syncs.
                dirty if dirty < ahead && deeper => {
                    depth *= 4;
                    continue;
                }
                0 => return Ok(report),
                _ => {}
            }
            if report.written + report.failed >= write_max {
                return Ok(report);
            }
            let step = self.write_cold(&found.dirty)?;
            report.add(step);
            if short == 0 {
                return Ok(report);
            }
            let evicted = self.evict_some(found.dirty, short);
            if step.written + step.dropped + evicted == 0 {
                if !deeper {
                    return Ok(report);
                }
                depth *= 4;
            }
        }
    }

    /// Looks at `depth` frames: up to `short` that may go at once, and up to a batch that a write
    /// would let go.
    fn look_at_cold_end(&self, short: usize, depth: usize) -> ColdEnd {
        let limit = self.batch_pages();
        let mut found = ColdEnd::default();
        let see = |at, frame: &Frame| {
            if found.clean.len() < short && may_go(frame) {
                found.clean.push(at);
            } else if found.dirty.len() < limit && waits_for_write(frame) {
                found.dirty.push(at);
            }
            found.clean.len() < short || found.dirty.len() < limit
        };
        self.lru.lock().walk_cold(&self.frames, depth, see);
        found
    }

    /// Writes and syncs the pages of these frames, but for those that somebody has meanwhile.
    fn write_cold(&self, dirty: &[u32]) -> Result<FlushReport> {
        let pinned = dirty.iter().copied().filter(|&at| {
            let frame = self.frame(at);
            waits_for_write(frame) && frame.try_pin()
        });
        let report = self.write_pinned(pinned.collect(), Wait::No)?;
        self.counters
            .written_cold
            .fetch_add(report.written as u64, Ordering::Relaxed);
        if report.failed > 0 {
            let mut lists = self.lru.lock();
            for &at in dirty {
                if self.frame(at).write_state() != WriteState::Clean {
                    lists.set_aside(&self.frames, at);
                }
            }
        }
        Ok(report)
    }

    /// Evicts up to `count` of the pages that were just written.
    fn evict_some(&self, mut written: Vec<u32>, count: usize) -> usize {
        written.retain(|&at| may_go(self.frame(at)));
        written.truncate(count);
        self.evict_frames(written)
    }
}

fn waits_for_write(frame: &Frame) -> bool {
    frame.pins() == Some(0) && frame.write_state() == WriteState::Dirty
}

//! The pool's side of the page cleaner: `engine` runs the thread and decides how much, the pool knows
//! what.

use std::time::Duration;

use super::flush::FlushReport;
use super::pool::Pool;
use crate::sync::atomic::Ordering;
use crate::words::Result;

/// Pages looked at or written in one step.
const STEP: usize = 64;

impl Pool {
    /// Says that a cleaner thread runs, or stops: who needs a frame waits for it, or else writes
    /// pages itself.
    pub fn set_cleaner_runs(&self, runs: bool) {
        self.cleaner_runs.store(runs, Ordering::Release);
    }

    /// Sleeps until somebody needs the cleaner, at most `timeout`; true if somebody does.
    pub fn wait_for_cleaner_work(&self, timeout: Duration) -> bool {
        let wanted = self.cleaner_wanted.wait(timeout);
        self.advance_tick();
        wanted
    }

    /// Wakes the cleaner.
    pub fn wake_cleaner(&self) {
        self.cleaner_wanted.set();
    }

    /// Brings the free list up to `free_frames_target`: evicts clean pages at the cold end, writes
    /// dirty ones there, at most `write_max`.
    ///
    /// Errors: as `flush_oldest`.
    pub fn refill_free_frames(&self, write_max: usize) -> Result<FlushReport> {
        let mut report = FlushReport::default();
        // Enough rounds to free every frame once; each makes progress or is the last.
        for _ in 0..self.frames.len().div_ceil(STEP) + 1 {
            let short = self.free_frames_short().min(STEP);
            if short == 0 || self.evict(short, STEP * 4) > 0 {
                if short == 0 {
                    break;
                }
                continue;
            }
            if report.written + report.failed >= write_max {
                break;
            }
            let step = self.flush_coldest(STEP.min(write_max))?;
            report.add(step);
            if step.written + step.dropped == 0 {
                break;
            }
        }
        Ok(report)
    }
}

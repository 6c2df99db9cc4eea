//! The threads that keep free frames at hand (buffer/maker.rs says how).

use std::time::Duration;

use crate::mtr::PageCtx;
use crate::settings::{Settings, ids};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::words::Error;

/// Length of a sleep when nobody takes frames.
const REST: Duration = Duration::from_secs(1);
/// Length of a sleep when pages cannot be written.
const RETRY: Duration = Duration::from_millis(100);
/// Pages written in one go, at most.
const WRITE_MAX: u64 = 20_000;

/// The maker, the writer at the cold end, and what ends them.
pub(super) struct Maker {
    ctx: Arc<PageCtx>,
    settings: Arc<Settings>,
    stop: AtomicBool,
}

impl Maker {
    pub(super) fn new(ctx: &Arc<PageCtx>, settings: &Arc<Settings>) -> Maker {
        Maker {
            ctx: ctx.clone(),
            settings: settings.clone(),
            stop: AtomicBool::new(false),
        }
    }

    /// Ends `run` and `write` soon.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.ctx.pool.wake_maker();
        self.ctx.pool.wake_cold_writer();
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// The body of the thread that evicts.
    pub(super) fn run(&self) {
        let pool = &self.ctx.pool;
        pool.set_maker_runs(true);
        while !self.stops() && pool.check_running().is_ok() {
            pool.wait_for_maker_work(REST);
            if !self.stops() && pool.evict_ahead() {
                pool.wake_cold_writer();
            }
        }
        pool.set_maker_runs(false);
    }

    /// The body of the thread that writes. Without it nobody may wait for the other one.
    pub(super) fn write(&self) {
        let pool = &self.ctx.pool;
        while !self.stops() {
            pool.wait_for_cold_work(REST);
            if self.stops() {
                break;
            }
            let write_max = self.settings.uint(ids::IO_CAPACITY_MAX).min(WRITE_MAX);
            match pool.make_free_frames(write_max as usize) {
                Ok(report) if report.failed > 0 => std::thread::sleep(RETRY),
                Ok(_) => {}
                // The second: that of the doublewrite blocks, without which no page may be written.
                Err(Error::Stopped(_) | Error::FileFailed(_)) => break,
                Err(error) => {
                    log::error!("making free frames: {error}");
                    std::thread::sleep(RETRY);
                }
            }
        }
        self.stop();
    }
}

//! Background threads: the page cleaner, the maker of free frames, the log flusher, those
//! that read ahead.

use std::time::Duration;

use super::cleaner::Cleaner;
use super::maker::Maker;
use crate::mtr::PageCtx;
use crate::os::thread::{OnPanic, Threads};
use crate::settings::{Counter, Counters, Settings, ids};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Event};
use crate::words::Result;

/// Tells background threads to end.
#[derive(Default)]
pub(super) struct Stop {
    stopping: AtomicBool,
    event: Event,
}

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn set(&self) {
        self.stopping.store(true, Ordering::Release);
        self.event.set();
    }

    /// Sleeps; true if it is time to end. For one thread.
    pub(super) fn pause(&self, time: Duration) -> bool {
        if !self.is_set() {
            self.event.wait(time);
        }
        self.is_set()
    }
}

/// What the threads work with.
pub(super) struct Background {
    pub(super) ctx: Arc<PageCtx>,
    pub(super) settings: Arc<Settings>,
    pub(super) counters: Arc<Counters>,
    pub(super) cleaner: Arc<Cleaner>,
    pub(super) maker: Maker,
    pub(super) log_stop: Stop,
}

/// The report of a thread that panicked: what it left half-done is unknown, so the engine stops.
pub(super) fn on_panic(ctx: &Arc<PageCtx>) -> OnPanic {
    let ctx = ctx.clone();
    Arc::new(move |name, text| {
        log::error!("thread {name} panicked: {text}");
        ctx.freeze(&format!("thread {name} panicked: {text}"));
    })
}

impl Background {
    /// Starts the threads.
    ///
    /// Errors: `Io` if the system has no thread to give.
    pub(super) fn start(self: &Arc<Background>, threads: &Threads) -> Result<()> {
        let this = self.clone();
        threads.start("xt_cleaner", move || this.cleaner.run())?;
        let this = self.clone();
        threads.start("xt_maker", move || this.maker.run())?;
        let this = self.clone();
        threads.start("xt_cold_writer", move || this.maker.write())?;
        let this = self.clone();
        threads.start("xt_log", move || this.flush_log_now_and_then())?;
        self.set_read_ahead();
        for _ in 0..self.settings.uint(ids::READ_IO_THREADS) {
            let this = self.clone();
            threads.start("xt_read", move || this.ctx.pool.run_read_ahead())?;
        }
        Ok(())
    }

    /// Tells the threads to end.
    pub(super) fn stop(&self) {
        self.log_stop.set();
        self.cleaner.stop();
        self.maker.stop();
        self.ctx.pool.stop_reading_ahead();
    }

    /// As the settings say now.
    pub(super) fn set_read_ahead(&self) {
        let threshold = self.settings.uint(ids::READ_AHEAD_THRESHOLD) as u32;
        let random = self.settings.is_on(ids::RANDOM_READ_AHEAD);
        self.ctx.pool.set_read_ahead(threshold, random);
    }

    /// For commits that did not sync the log (innodb_flush_log_at_trx_commit 0 and 2).
    fn flush_log_now_and_then(&self) {
        loop {
            let seconds = self.settings.uint(ids::FLUSH_LOG_AT_TIMEOUT).max(1);
            if self.log_stop.pause(Duration::from_secs(seconds)) {
                return;
            }
            let log = &self.ctx.log;
            if log.flushed_lsn() < log.lsn() {
                if log.flush_all().is_err() {
                    // The log is frozen and has said why.
                    return;
                }
                self.counters.add(Counter::BackgroundLogSync, 1);
            }
        }
    }
}

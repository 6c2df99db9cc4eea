//! The end of the contiguous prefix of ranges that many threads mark as done, without a latch.
//!
//! A ring of words indexed by a range's start holds the range's end; whoever marks a range tries to
//! carry the watermark over all ranges that follow without a gap (MySQL's link buffer, except that a
//! word is never cleared: a word left from an earlier lap holds an end that is not above the
//! watermark, so it cannot be taken for a link).

use super::raw::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::prefetch::prefetch_value;

/// Starts of two ranges are at least so far apart: no mini-transaction is shorter.
pub const STRIDE: u64 = 8;

/// A window that stays in the processor's cache, and that writers do not fill: some hundreds of
/// mini-transactions under way.
pub const WINDOW: u64 = 128 << 10;

/// The watermark.
#[derive(Debug)]
pub struct Watermark {
    reached: super::Padded<AtomicU64>,
    links: Box<[AtomicU64]>,
}

impl Watermark {
    /// Everything below `start` is done. `window` is the largest distance in bytes between the
    /// watermark and the start of a range that is marked without waiting; a power of two.
    pub fn new(start: u64, window: u64) -> Watermark {
        assert!(
            window.is_power_of_two() && window > STRIDE,
            "window is a power of two"
        );
        let links = (0..window / STRIDE).map(|_| AtomicU64::new(0)).collect();
        Watermark {
            reached: super::Padded(AtomicU64::new(start)),
            links,
        }
    }

    /// Everything below is done.
    #[inline]
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// A range that ends at `end` will be marked soon: `mark` then looks whether another follows it.
    #[inline]
    pub fn expect(&self, end: u64) {
        prefetch_value(self.link(end));
    }

    /// Marks `start..end` as done. Each byte is marked once; ranges are at least `STRIDE` long.
    /// Waits, briefly, when more than the window is under way: those before never wait for us.
    /// `stopped` ends that wait: then the mark is dropped, and so are all later ones.
    pub fn mark(&self, start: u64, end: u64, stopped: &dyn Fn() -> bool) {
        debug_assert!(end >= start + STRIDE, "a range of {} bytes", end - start);
        let window = self.links.len() as u64 * STRIDE;
        let mut pause = Pause::new();
        while start >= self.reached() + window {
            if stopped() {
                return;
            }
            pause.pause();
        }
        // SeqCst here and in `advance`: of two neighbours that mark at once, at least one sees the
        // other's link after storing its own.
        self.link(start).store(end, Ordering::SeqCst);
        self.advance();
    }

    /// Waits until everything below `position` is done, or `stopped`. Returns false if stopped.
    /// For waits bounded by memory copies of other threads, not for I/O.
    pub fn wait_for(&self, position: u64, stopped: &dyn Fn() -> bool) -> bool {
        let mut pause = Pause::new();
        while self.reached() < position {
            if stopped() {
                return false;
            }
            pause.pause();
        }
        true
    }

    fn link(&self, start: u64) -> &AtomicU64 {
        &self.links[(start / STRIDE) as usize & (self.links.len() - 1)]
    }

    fn advance(&self) {
        let mut reached = self.reached.load(Ordering::SeqCst);
        loop {
            let end = self.link(reached).load(Ordering::SeqCst);
            if end <= reached {
                return;
            }
            // A late reader may see a link of a later lap; then `reached` has moved and this fails.
            match self
                .reached
                .compare_exchange(reached, end, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => reached = end,
                Err(now) => reached = now,
            }
        }
    }
}

/// Spins, then yields, then sleeps for tens of microseconds.
#[derive(Debug)]
pub struct Pause(u32);

impl Pause {
    /// At the beginning of a wait.
    pub fn new() -> Pause {
        Pause(0)
    }

    /// Lets time pass.
    pub fn pause(&mut self) {
        self.0 = self.0.saturating_add(1);
        match self.0 {
            0..=100 => super::raw::spin_loop(),
            101..=200 => {
                // SAFETY: sched_yield has no arguments and no memory effects.
                unsafe {
                    libc::sched_yield();
                }
            }
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

impl Default for Pause {
    fn default() -> Pause {
        Pause::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_watermark_stops_at_the_first_gap() {
        let mark = Watermark::new(1000, 1024);
        mark.mark(1008, 1020, &|| false);
        mark.mark(1030, 1040, &|| false);
        assert_eq!(mark.reached(), 1000);
        mark.mark(1000, 1008, &|| false);
        assert_eq!(mark.reached(), 1020);
        mark.mark(1020, 1030, &|| false);
        assert_eq!(mark.reached(), 1040);
    }

    #[test]
    fn many_threads_mark_many_laps_and_nothing_is_passed_early() {
        let mark = Watermark::new(0, 4096);
        let next = AtomicU64::new(0);
        let done: Vec<AtomicBool> = (0..400_000 / 8).map(|_| AtomicBool::new(false)).collect();
        std::thread::scope(|scope| {
            for seed in 0..4u64 {
                let (mark, next, done) = (&mark, &next, &done);
                scope.spawn(move || {
                    let mut x = seed * 77 + 1;
                    loop {
                        x = x
                            .wrapping_mul(6364136223846793005)
                            .wrapping_add(1442695040888963407);
                        let len = 8 * (1 + (x >> 60));
                        let start = next.fetch_add(len, Ordering::Relaxed);
                        for at in (start..(start + len).min(400_000)).step_by(8) {
                            done[at as usize / 8].store(true, Ordering::Relaxed);
                        }
                        if start + len > 400_000 {
                            mark.mark(start, start + len, &|| true);
                            return;
                        }
                        mark.mark(start, start + len, &|| false);
                        let reached = mark.reached().min(400_000);
                        for at in
                            (reached.saturating_sub(256)..reached.saturating_sub(7)).step_by(8)
                        {
                            assert!(done[at as usize / 8].load(Ordering::Relaxed), "{at} passed");
                        }
                    }
                });
            }
        });
        assert!(mark.reached() > 400_000 - 128);
    }
}

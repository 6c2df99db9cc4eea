//! Waits for something that another thread reports.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::futex;

/// A flag that wakes: `set` lets one `wait` through, now or later.
#[derive(Debug, Default)]
pub struct Event {
    word: AtomicU32,
}

impl Event {
    /// Not set.
    pub const fn new() -> Event {
        Event {
            word: AtomicU32::new(0),
        }
    }

    /// Sets the flag and wakes the waiters, of whom one gets it.
    pub fn set(&self) {
        if self.word.swap(1, Ordering::SeqCst) == 0 {
            futex::wake_all(&self.word);
        }
    }

    /// Waits until the flag is set and resets it: true. False if `timeout` passed first.
    pub fn wait(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            if self.word.swap(0, Ordering::SeqCst) == 1 {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            futex::wait(&self.word, 0, Some(left));
        }
    }
}

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

/// Says that something may have changed, to everybody who waits for that. Who notes `seen` before he
/// looks sleeps through no change.
#[derive(Debug, Default)]
pub struct Signal {
    changes: AtomicU32,
    waiting: AtomicU32,
}

impl Signal {
    /// Never raised.
    pub const fn new() -> Signal {
        Signal {
            changes: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
        }
    }

    /// What to give to `wait`.
    pub fn seen(&self) -> u32 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Wakes everybody.
    pub fn raise(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&self.changes);
        }
    }

    /// Waits until the signal was raised after `seen` was noted: true. False if `timeout` passed first.
    pub fn wait(&self, seen: u32, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let raised = loop {
            if self.seen() != seen {
                break true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break false;
            }
            futex::wait(&self.changes, seen, Some(left));
        };
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        raised
    }
}

//! Waits for something that another thread reports: an event, or a log position.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Padded;
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

const SLOTS: usize = 64;
/// Positions that share a slot, as a power of two.
const SLOT_SHIFT: u32 = 9;

#[derive(Debug, Default)]
struct Slot {
    waiting: AtomicU32,
    mutex: std::sync::Mutex<()>,
    changed: std::sync::Condvar,
}

/// Sleepers on a watermark that only grows, woken in slots so that a small step wakes few.
#[derive(Debug)]
pub struct LsnWaiters {
    slots: Box<[Padded<Slot>]>,
    /// Up to where waiters were woken.
    notified: AtomicU64,
    stopped: AtomicBool,
}

impl LsnWaiters {
    /// Nobody waits; the watermark stands at `reached`.
    pub fn new(reached: u64) -> LsnWaiters {
        LsnWaiters {
            slots: (0..SLOTS).map(|_| Padded(Slot::default())).collect(),
            notified: AtomicU64::new(reached),
            stopped: AtomicBool::new(false),
        }
    }

    /// Sleeps until `watermark()` is `position` or more: true. False after `timeout` or `stop`.
    pub fn wait(&self, position: u64, watermark: &dyn Fn() -> u64, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let slot = &self.slots[slot_of(position)];
        slot.waiting.fetch_add(1, Ordering::SeqCst);
        let mut guard = slot.mutex.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = loop {
            if watermark() >= position {
                break true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stopped.load(Ordering::SeqCst) {
                break false;
            }
            guard = slot
                .changed
                .wait_timeout(guard, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        };
        drop(guard);
        slot.waiting.fetch_sub(1, Ordering::SeqCst);
        reached
    }

    /// The watermark, already visible to others, is now `reached`: wakes whom that covers.
    pub fn notify(&self, reached: u64) {
        let before = self.notified.fetch_max(reached, Ordering::SeqCst);
        if reached <= before {
            return;
        }
        let (first, last) = (before >> SLOT_SHIFT, reached >> SLOT_SHIFT);
        for slot in (first..=last).take(SLOTS) {
            self.wake(&self.slots[slot as usize % SLOTS]);
        }
    }

    /// Ends every wait, now and later.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for slot in &self.slots {
            self.wake(slot);
        }
    }

    fn wake(&self, slot: &Slot) {
        if slot.waiting.load(Ordering::SeqCst) > 0 {
            drop(slot.mutex.lock().unwrap_or_else(PoisonError::into_inner));
            slot.changed.notify_all();
        }
    }
}

fn slot_of(position: u64) -> usize {
    (position >> SLOT_SHIFT) as usize % SLOTS
}

//! A number that is told once to one who waits for it: telling and waking are two steps, so that the one
//! may be done under a latch and the other after it.

use super::raw::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::futex;

/// Set beside 0 by one who sleeps, and left beside what is told then.
const ASLEEP: u32 = 1 << 31;

/// The notice.
#[derive(Debug, Default)]
pub struct Notice {
    word: AtomicU32,
}

impl Notice {
    /// Nothing is told.
    pub const fn new() -> Notice {
        Notice {
            word: AtomicU32::new(0),
        }
    }

    /// What was told; 0 = nothing yet.
    #[inline]
    pub fn told(&self) -> u32 {
        self.word.load(Ordering::Acquire) & !ASLEEP
    }

    /// Tells `what` (not 0, below 2^31), unless something was told before; true if this call did. `wake`
    /// must follow.
    pub fn tell(&self, what: u32) -> bool {
        debug_assert!(what != 0 && what & ASLEEP == 0);
        let mut now = self.word.load(Ordering::SeqCst);
        while now & !ASLEEP == 0 {
            match self
                .word
                .compare_exchange(now, now | what, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return true,
                Err(changed) => now = changed,
            }
        }
        false
    }

    /// Wakes the one who sleeps, if he does; after `tell`.
    #[inline]
    pub fn wake(&self) {
        if self.word.load(Ordering::SeqCst) & ASLEEP != 0 {
            futex::wake_all(&self.word);
        }
    }

    /// Looks up to `looks` times whether something was told.
    pub fn watch(&self, looks: u32) -> u32 {
        for _ in 0..looks {
            if self.told() != 0 {
                break;
            }
            super::raw::spin_loop();
        }
        self.told()
    }

    /// Sleeps until something is told, at most `timeout`; 0 if the time passed.
    pub fn wait(&self, timeout: Duration) -> u32 {
        let until = Instant::now() + timeout;
        loop {
            match self
                .word
                .compare_exchange(0, ASLEEP, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) | Err(ASLEEP) => {}
                Err(told) => return told & !ASLEEP,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.told();
            }
            futex::wait(&self.word, ASLEEP, Some(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_who_tells_is_heard_and_the_sleeper_wakes() {
        for round in 1..200 {
            let notice = Notice::new();
            std::thread::scope(|scope| {
                let sleeper = scope.spawn(|| notice.wait(Duration::from_secs(60)));
                if round % 3 == 0 {
                    std::thread::yield_now();
                }
                assert!(notice.tell(round));
                assert!(!notice.tell(round + 1), "it was told already");
                notice.wake();
                assert_eq!(sleeper.join().expect("no panic"), round);
            });
            assert_eq!(notice.told(), round);
        }
    }

    #[test]
    fn time_passes_and_nothing_was_told() {
        let notice = Notice::new();
        assert_eq!(notice.wait(Duration::ZERO), 0);
        assert_eq!(notice.wait(Duration::from_millis(2)), 0);
        assert_eq!(notice.watch(3), 0);
        assert!(notice.tell(7));
        assert_eq!((notice.watch(3), notice.wait(Duration::ZERO)), (7, 7));
    }
}

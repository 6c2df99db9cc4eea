//! Group commit: of many callers that want a position reached, one does the work for all.
//!
//! The first caller becomes the leader; the others sleep until a leader's result covers them. When a
//! leader is done, everybody covered wakes, and one who is not becomes the next leader.

use super::raw::atomic::{AtomicU32, AtomicU64, Ordering};

use super::futex;
use super::order::{self, Rank};

/// What a caller of `GroupLock::acquire` has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Nothing: the position is reached.
    Reached,
    /// The work; then `release` or `fail`.
    Leader,
    /// Give up: the work failed for good.
    Failed,
}

const WAITING: u32 = 0;
const REACHED: u32 = 1;
const LEADER: u32 = 2;
const FAILED: u32 = 3;

#[derive(Debug)]
struct Waiter {
    position: u64,
    /// Lives on the waiter's stack until its value is no longer `WAITING`.
    word: *const AtomicU32,
}

// SAFETY: the pointer is only used to store into and wake an atomic word that its owner keeps alive
// until it sees the stored value.
unsafe impl Send for Waiter {}

#[derive(Debug, Default)]
struct State {
    led: bool,
    /// Somebody spins.
    spinning: bool,
    failed: bool,
    waiters: Vec<Waiter>,
}

/// The lock.
#[derive(Debug)]
pub struct GroupLock {
    rank: Rank,
    /// Looks at `reached` before a caller sleeps behind a leader.
    spins: u32,
    reached: AtomicU64,
    state: super::raw::Mutex<State>,
}

impl GroupLock {
    /// Nobody leads; `reached` is reached.
    pub const fn new(rank: Rank, reached: u64) -> GroupLock {
        GroupLock {
            rank,
            spins: 0,
            reached: AtomicU64::new(reached),
            state: super::raw::Mutex::new(State {
                led: false,
                spinning: false,
                failed: false,
                waiters: Vec::new(),
            }),
        }
    }

    /// The same for work that takes microseconds: one caller at a time looks for the leader's end that
    /// often before it sleeps.
    pub fn spinning(mut self, spins: u32) -> GroupLock {
        self.spins = spins;
        self
    }

    /// The position that was reached.
    #[inline]
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::Acquire)
    }

    /// Returns when `position` is reached, or it is the caller's turn to reach it.
    #[track_caller]
    pub fn acquire(&self, position: u64) -> Turn {
        if self.reached() >= position {
            return Turn::Reached;
        }
        order::about_to_wait(self.rank);
        let word = AtomicU32::new(WAITING);
        let mut spun = false;
        loop {
            let mut state = self.lock();
            state.spinning &= !spun;
            if self.reached() >= position {
                return Turn::Reached;
            }
            if state.failed {
                return Turn::Failed;
            }
            if !state.led {
                state.led = true;
                order::acquired(self.rank);
                return Turn::Leader;
            }
            if self.spins > 0 && !spun && !state.spinning && state.waiters.is_empty() {
                state.spinning = true;
                drop(state);
                self.spin();
                spun = true;
                continue;
            }
            state.waiters.push(Waiter {
                position,
                word: &word,
            });
            break;
        }
        loop {
            match word.load(Ordering::Acquire) {
                WAITING => {
                    futex::wait(&word, WAITING, None);
                }
                REACHED => return Turn::Reached,
                LEADER => {
                    order::acquired(self.rank);
                    return Turn::Leader;
                }
                _ => return Turn::Failed,
            }
        }
    }

    /// Lets time pass until a leader is done, or for a moment.
    fn spin(&self) {
        let before = self.reached();
        for _ in 0..self.spins {
            if self.reached() != before {
                return;
            }
            super::raw::spin_loop();
        }
    }

    /// The leader has reached `reached`: wakes whom that covers, and the next leader.
    pub fn release(&self, reached: u64) {
        let mut state = self.lock();
        debug_assert!(state.led, "released by one who does not lead");
        self.reached.fetch_max(reached, Ordering::Release);
        let reached = self.reached();
        if state.waiters.is_empty() {
            state.led = false;
            drop(state);
            order::released(self.rank);
            return;
        }
        let mut covered = Vec::new();
        state.waiters.retain(|waiter| {
            if waiter.position <= reached {
                covered.push(waiter.word);
            }
            waiter.position > reached
        });
        let next = if state.waiters.is_empty() {
            None
        } else {
            Some(state.waiters.remove(0))
        };
        state.led = next.is_some();
        drop(state);
        if let Some(next) = next {
            tell(next.word, LEADER);
        }
        for word in covered {
            tell(word, REACHED);
        }
        order::released(self.rank);
    }

    /// The leader gives up, for everybody and for good.
    pub fn release_failed(&self) {
        self.fail();
        order::released(self.rank);
    }

    /// Wakes every waiter with `Turn::Failed`; so do all later calls, except for positions that
    /// were reached. May be called by anybody.
    pub fn fail(&self) {
        let mut state = self.lock();
        state.failed = true;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        for waiter in waiters {
            tell(waiter.word, FAILED);
        }
    }

    fn lock(&self) -> super::raw::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn tell(word: *const AtomicU32, value: u32) {
    // SAFETY: the waiter that owns the word does not return before it reads a value other than
    // WAITING, and this store is the only one: it was taken off the list under the mutex.
    unsafe { (*word).store(value, Ordering::Release) };
    futex::wake_at(word, 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn one_leader_works_for_many_and_nobody_returns_uncovered() {
        let group = GroupLock::new(Rank::LogFlush, 0);
        let (position, work, leaders) = (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let mine = position.fetch_add(10, Ordering::SeqCst) + 10;
                        match group.acquire(mine) {
                            Turn::Leader => {
                                leaders.fetch_add(1, Ordering::Relaxed);
                                let upto = position.load(Ordering::SeqCst);
                                std::thread::yield_now();
                                work.fetch_max(upto, Ordering::SeqCst);
                                group.release(upto);
                            }
                            Turn::Reached => assert!(work.load(Ordering::SeqCst) >= mine),
                            Turn::Failed => panic!("nobody failed"),
                        }
                    }
                });
            }
        });
        assert_eq!(group.reached(), 8 * 500 * 10);
        println!("{} leaders for 4000 calls", leaders.load(Ordering::Relaxed));
    }

    #[test]
    fn a_failure_wakes_everybody() {
        let group = GroupLock::new(Rank::LogFlush, 0);
        assert_eq!(group.acquire(5), Turn::Leader);
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..4).map(|_| scope.spawn(|| group.acquire(9))).collect();
            std::thread::sleep(std::time::Duration::from_millis(20));
            group.release_failed();
            for waiter in waiters {
                assert_eq!(waiter.join().expect("no panic"), Turn::Failed);
            }
        });
        assert_eq!(group.acquire(5), Turn::Failed);
    }
}

//! The page latch: modes S, U and X in one word, with a version that X bumps (protocol P2).
//!
//! | held \ wanted | S   | U   | X   |
//! |---------------|-----|-----|-----|
//! | S             | yes | yes | no  |
//! | U             | yes | no  | no  |
//! | X             | no  | no  | no  |
//!
//! Phase-fair: a waiting X keeps new S out while S is held; an unlocked X lets the waiting S in
//! first. Whoever finds the latch free may take it (barging), so a woken waiter that comes late
//! sleeps again and a later unlock wakes it (sync invariant 3).
//!
//! The latch has no owner field: a guard may be kept in a mini-transaction and released in any order.

use super::raw::atomic::{AtomicU32, AtomicU64, Ordering};

use super::futex;
use super::order::{self, Rank};

/// Mode of a latch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mode {
    /// Shared: reads.
    Shared,
    /// Update: excludes `Update` and `Exclusive`, admits `Shared`, leaves the version alone.
    Update,
    /// Exclusive: changes.
    Exclusive,
}

const READERS: u32 = (1 << 24) - 1;
const U: u32 = 1 << 24;
const X: u32 = 1 << 25;
/// An X waits: no further S enters while S is held.
const X_WAITS: u32 = 1 << 26;

/// Waiting for U or X, in the upper half of `waiters`; waiting for S in the lower.
const UX_WAITER: u32 = 1 << 16;
const S_WAITERS: u32 = UX_WAITER - 1;

const SPINS: u32 = 60;

/// A latch without data: the caller knows what it protects.
#[derive(Debug, Default)]
pub struct Latch {
    state: AtomicU32,
    waiters: AtomicU32,
    /// Bumped to wake sleepers for S.
    s_wake: AtomicU32,
    /// Bumped to wake sleepers for U or X.
    ux_wake: AtomicU32,
    /// Odd while X is held.
    version: AtomicU64,
}

impl Latch {
    /// A free latch.
    pub const fn new() -> Latch {
        Latch {
            state: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            s_wake: AtomicU32::new(0),
            ux_wake: AtomicU32::new(0),
            version: AtomicU64::new(0),
        }
    }

    /// Takes the latch in `mode`; waits. `rank` is what the latch protects right now.
    #[inline]
    #[track_caller]
    pub fn lock(&self, mode: Mode, rank: Rank) {
        order::about_to_wait(rank);
        if !self.try_mode(mode) {
            self.lock_slow(mode);
        }
        order::acquired(rank);
    }

    /// Takes the latch in `mode` if that needs no wait. Free of the latch order.
    #[inline]
    pub fn try_lock(&self, mode: Mode, rank: Rank) -> bool {
        let taken = self.try_mode(mode);
        if taken {
            order::acquired(rank);
        }
        taken
    }

    /// Releases what `lock` or `try_lock` took, with the same mode and rank.
    #[inline]
    #[track_caller]
    pub fn unlock(&self, mode: Mode, rank: Rank) {
        match mode {
            Mode::Shared => self.release_s(),
            Mode::Update => self.release_u(),
            Mode::Exclusive => self.release_x(),
        }
        order::released(rank);
    }

    /// Update → Exclusive: waits until the holders of Shared have left. The caller holds Update.
    #[track_caller]
    pub fn upgrade(&self, rank: Rank) {
        order::about_to_wait(rank);
        for _ in 0..SPINS {
            if self.try_upgrade() {
                return;
            }
            super::raw::spin_loop();
        }
        self.waiters.fetch_add(UX_WAITER, Ordering::SeqCst);
        loop {
            let seen = self.ux_wake.load(Ordering::SeqCst);
            self.state.fetch_or(X_WAITS, Ordering::SeqCst);
            if self.try_upgrade() {
                break;
            }
            futex::wait(&self.ux_wake, seen, None);
        }
        self.waiters.fetch_sub(UX_WAITER, Ordering::SeqCst);
    }

    fn try_upgrade(&self) -> bool {
        let mut state = self.state.load(Ordering::SeqCst);
        debug_assert!(state & U != 0, "upgrade without Update");
        while state & READERS == 0 {
            match self
                .state
                .compare_exchange_weak(state, X, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => {
                    self.version.fetch_add(1, Ordering::AcqRel);
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    /// `lock(Mode::Shared, rank)`.
    #[inline]
    #[track_caller]
    pub fn lock_s(&self, rank: Rank) {
        self.lock(Mode::Shared, rank);
    }

    /// `lock(Mode::Update, rank)`.
    #[inline]
    #[track_caller]
    pub fn lock_u(&self, rank: Rank) {
        self.lock(Mode::Update, rank);
    }

    /// `lock(Mode::Exclusive, rank)`.
    #[inline]
    #[track_caller]
    pub fn lock_x(&self, rank: Rank) {
        self.lock(Mode::Exclusive, rank);
    }

    /// The latch's version: even when nobody holds X, another number after each X.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// True if somebody holds X. An assertion aid: the answer may be old.
    pub fn is_locked_x(&self) -> bool {
        self.state.load(Ordering::Relaxed) & X != 0
    }

    /// True if somebody holds U or X. An assertion aid.
    pub fn is_locked_ux(&self) -> bool {
        self.state.load(Ordering::Relaxed) & (U | X) != 0
    }

    /// True if somebody holds the latch in any mode. An assertion aid.
    pub fn is_locked(&self) -> bool {
        self.state.load(Ordering::Relaxed) & (READERS | U | X) != 0
    }

    #[inline]
    fn try_mode(&self, mode: Mode) -> bool {
        match mode {
            Mode::Shared => self.try_s(),
            Mode::Update => self.try_u(),
            Mode::Exclusive => self.try_x(),
        }
    }

    #[inline]
    fn try_s(&self) -> bool {
        let mut state = self.state.load(Ordering::SeqCst);
        loop {
            let readers = state & READERS;
            if state & X != 0 || (state & X_WAITS != 0 && readers > 0) {
                return false;
            }
            assert!(readers < READERS, "too many readers of one latch");
            match self.state.compare_exchange_weak(
                state,
                state + 1,
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
    }

    #[inline]
    fn try_u(&self) -> bool {
        let mut state = self.state.load(Ordering::SeqCst);
        while state & (U | X) == 0 {
            match self.state.compare_exchange_weak(
                state,
                state | U,
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    #[inline]
    fn try_x(&self) -> bool {
        let mut state = self.state.load(Ordering::SeqCst);
        while state & (READERS | U | X) == 0 {
            match self
                .state
                .compare_exchange_weak(state, X, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => {
                    self.version.fetch_add(1, Ordering::AcqRel);
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    #[cold]
    fn lock_slow(&self, mode: Mode) {
        for spin in 0..SPINS {
            for _ in 0..1 + spin / 4 {
                super::raw::spin_loop();
            }
            if self.try_mode(mode) {
                return;
            }
        }
        match mode {
            Mode::Shared => self.sleep_for_s(),
            Mode::Update | Mode::Exclusive => self.sleep_for_ux(mode),
        }
    }

    // The waiter announces itself, notes the wake word, tries, sleeps; the releaser changes the
    // state, then looks for waiters, then bumps the wake word. All SeqCst: if the try saw the old
    // state, the releaser sees the waiter.
    fn sleep_for_s(&self) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        loop {
            let seen = self.s_wake.load(Ordering::SeqCst);
            if self.try_s() {
                break;
            }
            futex::wait(&self.s_wake, seen, None);
        }
        let before = self.waiters.fetch_sub(1, Ordering::SeqCst);
        if before >= UX_WAITER {
            // This S came in ahead of a waiting X: the next S must not.
            self.state.fetch_or(X_WAITS, Ordering::SeqCst);
        }
    }

    fn sleep_for_ux(&self, mode: Mode) {
        self.waiters.fetch_add(UX_WAITER, Ordering::SeqCst);
        loop {
            let seen = self.ux_wake.load(Ordering::SeqCst);
            if mode == Mode::Exclusive {
                self.state.fetch_or(X_WAITS, Ordering::SeqCst);
            }
            if self.try_mode(mode) {
                break;
            }
            futex::wait(&self.ux_wake, seen, None);
        }
        self.waiters.fetch_sub(UX_WAITER, Ordering::SeqCst);
    }

    #[inline]
    fn release_s(&self) {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            debug_assert!(
                state & READERS > 0 && state & X == 0,
                "S released but not held"
            );
            let mut next = state - 1;
            if next & READERS == 0 {
                next &= !X_WAITS;
            }
            match self
                .state
                .compare_exchange_weak(state, next, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => {
                    if next & READERS == 0 && self.waiters.load(Ordering::SeqCst) != 0 {
                        self.wake_after_s();
                    }
                    return;
                }
                Err(now) => state = now,
            }
        }
    }

    #[cold]
    fn wake_after_s(&self) {
        let waiters = self.waiters.load(Ordering::SeqCst);
        if waiters >= UX_WAITER {
            self.ux_wake.fetch_add(1, Ordering::SeqCst);
            // Under U the one to go on is whoever upgrades, and it sleeps among the others.
            match self.state.load(Ordering::SeqCst) & U {
                0 => futex::wake_one(&self.ux_wake),
                _ => futex::wake_all(&self.ux_wake),
            }
        }
        // With an U held, S may still enter; without, they were kept out by a waiting X that may
        // have got what it wanted. Waking them too is never wrong.
        if waiters & S_WAITERS != 0 {
            self.s_wake.fetch_add(1, Ordering::SeqCst);
            futex::wake_all(&self.s_wake);
        }
    }

    fn release_u(&self) {
        let before = self.state.fetch_and(!U, Ordering::SeqCst);
        debug_assert!(before & U != 0, "U released but not held");
        if self.waiters.load(Ordering::SeqCst) >= UX_WAITER {
            self.ux_wake.fetch_add(1, Ordering::SeqCst);
            futex::wake_all(&self.ux_wake);
        }
    }

    #[inline]
    fn release_x(&self) {
        self.version.fetch_add(1, Ordering::Release);
        let before = self.state.swap(0, Ordering::SeqCst);
        debug_assert!(before & X != 0, "X released but not held");
        if self.waiters.load(Ordering::SeqCst) != 0 {
            self.wake_after_x();
        }
    }

    #[cold]
    fn wake_after_x(&self) {
        let waiters = self.waiters.load(Ordering::SeqCst);
        if waiters & S_WAITERS != 0 {
            self.s_wake.fetch_add(1, Ordering::SeqCst);
            futex::wake_all(&self.s_wake);
        } else if waiters != 0 {
            self.ux_wake.fetch_add(1, Ordering::SeqCst);
            futex::wake_one(&self.ux_wake);
        }
    }
}

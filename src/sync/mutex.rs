//! A ranked mutex and its condition variable, over std's futex-based ones.
//!
//! Poison is ignored: a panic in a critical section freezes the engine by other means (protocol
//! C4), and a mutex elsewhere protects memory whose invariants hold at each unlock.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use super::order::{self, Rank};

/// A mutex with a place in the latch order.
#[derive(Debug)]
pub struct Mutex<T: ?Sized> {
    rank: Rank,
    inner: super::raw::Mutex<T>,
}

/// Holds a `Mutex`.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    rank: Rank,
    /// `None` only inside `Condvar::wait`.
    inner: Option<super::raw::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Wraps `value`.
    pub const fn new(rank: Rank, value: T) -> Mutex<T> {
        Mutex {
            rank,
            inner: super::raw::Mutex::new(value),
        }
    }

    /// The value, when nobody else has the mutex any more.
    pub fn into_inner(self) -> T {
        self.inner
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the mutex.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        order::about_to_wait(self.rank);
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        order::acquired(self.rank);
        MutexGuard {
            rank: self.rank,
            inner: Some(inner),
        }
    }

    /// Takes the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(super::raw::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(super::raw::TryLockError::WouldBlock) => return None,
        };
        order::acquired(self.rank);
        Some(MutexGuard {
            rank: self.rank,
            inner: Some(inner),
        })
    }

    /// The value, by unique access.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.inner.as_ref().expect("present outside of a wait")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("present outside of a wait")
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.inner.take().is_some() {
            order::released(self.rank);
        }
    }
}

/// A condition variable for `Mutex`.
#[derive(Debug, Default)]
pub struct Condvar(super::raw::Condvar);

impl Condvar {
    /// A condition nobody waits for.
    pub const fn new() -> Condvar {
        Condvar(super::raw::Condvar::new())
    }

    /// Releases the mutex, sleeps until notified (or spuriously), takes the mutex again.
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let rank = guard.rank;
        let inner = guard.inner.take().expect("present outside of a wait");
        order::released(rank);
        let inner = self.0.wait(inner).unwrap_or_else(PoisonError::into_inner);
        order::acquired(rank);
        MutexGuard {
            rank,
            inner: Some(inner),
        }
    }

    /// As `wait`, at most `timeout`; the second value is true if the time passed.
    pub fn wait_for<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let rank = guard.rank;
        let inner = guard.inner.take().expect("present outside of a wait");
        order::released(rank);
        let (inner, result) = self
            .0
            .wait_timeout(inner, timeout)
            .unwrap_or_else(PoisonError::into_inner);
        order::acquired(rank);
        (
            MutexGuard {
                rank,
                inner: Some(inner),
            },
            result.timed_out(),
        )
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

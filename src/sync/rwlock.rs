//! A ranked reader-writer lock over std's futex-based one. Poison is ignored, as in `mutex`.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use super::order::{self, Rank};

/// A reader-writer lock with a place in the latch order.
#[derive(Debug)]
pub struct RwLock<T: ?Sized> {
    rank: Rank,
    inner: std::sync::RwLock<T>,
}

/// Holds a `RwLock` for reading.
#[derive(Debug)]
pub struct ReadGuard<'a, T: ?Sized> {
    rank: Rank,
    inner: std::sync::RwLockReadGuard<'a, T>,
}

/// Holds a `RwLock` for writing.
#[derive(Debug)]
pub struct WriteGuard<'a, T: ?Sized> {
    rank: Rank,
    inner: std::sync::RwLockWriteGuard<'a, T>,
}

impl<T> RwLock<T> {
    /// Wraps `value`.
    pub const fn new(rank: Rank, value: T) -> RwLock<T> {
        RwLock {
            rank,
            inner: std::sync::RwLock::new(value),
        }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for shared access.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> ReadGuard<'_, T> {
        order::about_to_wait(self.rank);
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        order::acquired(self.rank);
        ReadGuard {
            rank: self.rank,
            inner,
        }
    }

    /// Waits for exclusive access.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> WriteGuard<'_, T> {
        order::about_to_wait(self.rank);
        let inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        order::acquired(self.rank);
        WriteGuard {
            rank: self.rank,
            inner,
        }
    }

    /// Exclusive access if nobody has any.
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        let inner = match self.inner.try_write() {
            Ok(inner) => inner,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        order::acquired(self.rank);
        Some(WriteGuard {
            rank: self.rank,
            inner,
        })
    }

    /// The value, by unique access.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Deref for ReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> Drop for ReadGuard<'_, T> {
    fn drop(&mut self) {
        order::released(self.rank);
    }
}

impl<T: ?Sized> Deref for WriteGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized> Drop for WriteGuard<'_, T> {
    fn drop(&mut self) {
        order::released(self.rank);
    }
}

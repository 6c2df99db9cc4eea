//! The only door to latches, atomics and waits, and the order in which latches may be taken.
//!
//! Knows memory and futexes; knows nothing of pages, logs or transactions.
//!
//! Invariants
//!  1. A thread waits only for a latch whose rank is above every rank it holds, or equal where
//!     `Rank::may_repeat` says so (docs/latch-order.md); checked in debug builds by `order`.
//!  2. Nothing here has a thread-local destructor or parks a `std::thread::Thread`: every wait is a
//!     futex, so that a host thread may run it and the library may be unloaded afterwards.
//!  3. A latch word that becomes free wakes at least one waiter that can take it.
//!  4. `Watermark::reached` is the end of the contiguous prefix of marked ranges.
//!
//! Latches: this is where they are made.
//! Crash:   nothing here is on disk.
//! Read:    order.rs, latch.rs, mutex.rs, gate.rs, watermark.rs, ring.rs, group.rs, notice.rs, prefetch.rs.

pub mod event;
pub mod futex;
pub mod gate;
pub mod group;
pub mod latch;
pub mod mutex;
pub mod notice;
pub mod once;
pub mod order;
pub mod prefetch;
pub mod raw;
pub mod ring;
pub mod rwlock;
pub mod slots;
#[cfg(test)]
mod tests;
pub mod watermark;

pub use event::{Event, Signal};
pub use gate::{Gate, GateGuard};
pub use group::{GroupLock, Turn};
pub use latch::{Latch, Mode};
pub use mutex::{Condvar, Mutex, MutexGuard};
pub use notice::Notice;
pub use once::Once;
pub use order::Rank;
pub use prefetch::prefetch;
pub use raw::atomic;
pub use ring::{Ring, RingReader};
pub use rwlock::{ReadGuard, RwLock, WriteGuard};
pub use slots::Slots;
pub use std::sync::Arc;
pub use watermark::Watermark;

/// Keeps a value on cache lines of its own, so that neighbours do not share its traffic.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

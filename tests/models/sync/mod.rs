//! As src/sync/mod.rs.

pub mod futex;
pub mod raw;

#[path = "../../../src/sync/gate.rs"]
pub mod gate;
#[path = "../../../src/sync/group.rs"]
pub mod group;
#[path = "../../../src/sync/latch.rs"]
pub mod latch;
#[path = "../../../src/sync/mutex.rs"]
pub mod mutex;
#[path = "../../../src/sync/notice.rs"]
pub mod notice;
#[path = "../../../src/sync/once.rs"]
pub mod once;
#[path = "../../../src/sync/order.rs"]
pub mod order;
#[path = "../../../src/sync/prefetch.rs"]
pub mod prefetch;
#[path = "../../../src/sync/ring.rs"]
pub mod ring;
#[path = "../../../src/sync/watermark.rs"]
pub mod watermark;

pub use gate::{Gate, GateGuard};
pub use group::{GroupLock, Turn};
pub use latch::{Latch, Mode};
pub use mutex::{Condvar, Mutex, MutexGuard};
pub use notice::Notice;
pub use once::Once;
pub use order::Rank;
pub use raw::atomic;
pub use ring::{Ring, RingReader};
pub use std::sync::Arc;
pub use watermark::Watermark;

/// A value; a model has no cache lines.
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

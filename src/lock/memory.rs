//! The memory that locks take, and its limit.
//!
//! Each owner counts what its locks take and tells the sum now and then, so that a lock costs no
//! shared write. At the limit a request for a new lock ends as `WaitEnd::Full`, whose error rolls the
//! whole transaction back. Locks that must not fail (inherited, moved, made explicit, granted after a
//! wait) are counted and never refused; they are few beyond what requests were granted.

use super::queue::{Granted, PageQueue};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::words::PageId;

/// How far an owner's count may be from what it told.
const STEP: u64 = 4096;

/// Bytes of the locks of one owner and mode on a page: with a part of the page's queue, its place in
/// the map, and what the allocator adds.
pub(super) const GRANTED_BYTES: u64 =
    (size_of::<Granted>() + 2 * size_of::<(PageId, PageQueue)>() + 32) as u64;
/// Bytes of a place in an owner's list, which grows by doubling.
pub(super) const PLACE_BYTES: u64 = 2 * size_of::<super::owner::Place>() as u64;

/// Totals of a lock table.
#[derive(Debug)]
pub(super) struct Memory {
    in_use: AtomicU64,
    limit: AtomicU64,
}

impl Memory {
    /// Without a limit.
    pub(super) fn new() -> Memory {
        Memory {
            in_use: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
        }
    }

    // Relaxed throughout: counts that order nothing; one that is a moment old lets a lock more or less
    // pass.
    pub(super) fn in_use(&self) -> u64 {
        self.in_use.load(Ordering::Relaxed)
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.in_use() >= self.limit()
    }
}

/// What one owner takes.
#[derive(Debug, Default)]
pub(super) struct Share {
    bytes: AtomicU64,
    told: AtomicU64,
}

impl Share {
    pub(super) fn add(&self, memory: &Memory, bytes: u64) {
        let now = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let told = self.told.load(Ordering::Relaxed);
        if now >= told + STEP && self.tell(told, now) {
            memory.in_use.fetch_add(now - told, Ordering::Relaxed);
        }
    }

    pub(super) fn subtract(&self, memory: &Memory, bytes: u64) {
        let now = self.bytes.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        let told = self.told.load(Ordering::Relaxed);
        if now + STEP <= told && self.tell(told, now) {
            memory.in_use.fetch_sub(told - now, Ordering::Relaxed);
        }
    }

    /// Several threads may grant locks to one owner: one of them tells.
    fn tell(&self, told: u64, now: u64) -> bool {
        self.told
            .compare_exchange(told, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Bytes that its locks take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The owner is gone.
    pub(super) fn end(&self, memory: &Memory) {
        let told = self.told.load(Ordering::Relaxed);
        memory.in_use.fetch_sub(told, Ordering::Relaxed);
    }
}

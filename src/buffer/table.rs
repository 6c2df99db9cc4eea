//! The page table: page id → frame, looked up without a latch (P3).
//!
//! Buckets are chains of frame numbers. A walk may be led astray by a frame that moves to another
//! chain under it: it then finds nothing, and a miss counts only once it is confirmed under the
//! mutex of the bucket's shard, which every change of the chain holds.

use crate::sync::atomic::{AtomicU32, Ordering};

use super::frame::{Frame, NO_FRAME};
use super::region::Region;
use crate::sync::{Mutex, MutexGuard, Rank};
use crate::words::PageId;

const SHARD_COUNT: usize = 64;
/// Steps of a latch-free walk before the confirmed path is taken.
const STEPS_MAX: usize = 64;

pub(super) struct Table {
    buckets: Box<[AtomicU32]>,
    shards: Box<[Mutex<()>]>,
}

/// Result of a latch-free look-up.
pub(super) enum Found {
    /// The frame holds the page and is pinned.
    Pinned(u32),
    /// The frame changed hands between look and pin; the caller takes the pin back.
    Stale(u32),
    /// Not on the chain, as far as the walk saw it.
    Nothing,
}

/// The right to change the chains of a shard.
pub(super) struct Shard<'t> {
    _held: MutexGuard<'t, ()>,
}

impl Table {
    pub(super) fn new(frame_count: usize) -> Table {
        let bucket_count = (frame_count * 2).next_power_of_two().max(SHARD_COUNT);
        Table {
            buckets: Region::descriptors(bucket_count, |_| AtomicU32::new(NO_FRAME)),
            shards: (0..SHARD_COUNT)
                .map(|_| Mutex::new(Rank::PageTableShard, ()))
                .collect(),
        }
    }

    fn bucket(&self, word: u64) -> usize {
        // Fibonacci hashing; neighbours in a file spread over buckets and shards.
        let hash = (word ^ (word >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 32) as usize & (self.buckets.len() - 1)
    }

    /// The frame that holds `id`, pinned; a miss is only a hint.
    pub(super) fn find(&self, frames: &[Frame], id: PageId) -> Found {
        let word = id.to_u64();
        let mut at = self.buckets[self.bucket(word)].load(Ordering::Acquire);
        for _ in 0..STEPS_MAX {
            let Some(frame) = frames.get(at as usize) else {
                break;
            };
            if frame.id_word() == word && frame.try_pin() {
                return match frame.id_word() == word {
                    true => Found::Pinned(at),
                    false => Found::Stale(at),
                };
            }
            at = frame.chain.load(Ordering::Acquire);
        }
        Found::Nothing
    }

    /// Enters the shard of `id`.
    pub(super) fn shard(&self, id: PageId) -> Shard<'_> {
        let shard = self.bucket(id.to_u64()) & (SHARD_COUNT - 1);
        Shard {
            _held: self.shards[shard].lock(),
        }
    }

    /// The frame on the chain of `id`, not pinned.
    pub(super) fn find_in(&self, _shard: &Shard<'_>, frames: &[Frame], id: PageId) -> Option<u32> {
        let word = id.to_u64();
        let mut at = self.buckets[self.bucket(word)].load(Ordering::Acquire);
        while let Some(frame) = frames.get(at as usize) {
            if frame.id_word() == word {
                return Some(at);
            }
            at = frame.chain.load(Ordering::Acquire);
        }
        None
    }

    /// Puts an owned frame, which carries `id` already, on its chain.
    pub(super) fn link(&self, _shard: &Shard<'_>, frames: &[Frame], id: PageId, index: u32) {
        let head = &self.buckets[self.bucket(id.to_u64())];
        frames[index as usize]
            .chain
            .store(head.load(Ordering::Relaxed), Ordering::Release);
        head.store(index, Ordering::Release);
    }

    /// Takes a frame off the chain of `id`. Its own link stays, so that walkers on it go on.
    pub(super) fn unlink(&self, _shard: &Shard<'_>, frames: &[Frame], id: PageId, index: u32) {
        let head = &self.buckets[self.bucket(id.to_u64())];
        let after = frames[index as usize].chain.load(Ordering::Relaxed);
        let mut at = head.load(Ordering::Relaxed);
        if at == index {
            head.store(after, Ordering::Release);
            return;
        }
        while let Some(frame) = frames.get(at as usize) {
            let next = frame.chain.load(Ordering::Relaxed);
            if next == index {
                frame.chain.store(after, Ordering::Release);
                return;
            }
            at = next;
        }
        panic!("frame {index} is not on the chain of page {id}");
    }
}

//! The page table: page id → frame, looked up without a latch (P3).
//!
//! Buckets are chains of frame numbers. A walk may be led astray by a frame that moves to another
//! chain under it: it then finds nothing, and a miss counts only once it is confirmed under the
//! mutex of the bucket's shard, which every change of the chain holds.
//!
//! A pool that grows gets more buckets: shard after shard is spread over them, and the latch-free
//! walk looks where it would find a page before or after; for a moment it finds nothing.

use crate::sync::atomic::{AtomicU32, Ordering};

use super::frame::{Frame, NO_FRAME};
use super::region::Array;
use crate::sync::{Mutex, MutexGuard, Rank};
use crate::words::{PageId, Result};

const SHARD_COUNT: usize = 64;
/// Steps of a latch-free walk before the confirmed path is taken.
const STEPS_MAX: usize = 64;

pub(super) struct Table {
    /// Heads of chains, all bits turned over: 0 is an empty chain.
    buckets: Array<AtomicU32>,
    /// Buckets in use, less one: where a latch-free walk looks.
    mask: AtomicU32,
    /// The same for each shard, as the chains stand.
    shards: Box<[Mutex<u32>]>,
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
    mask: MutexGuard<'t, u32>,
}

/// The mask of a table for so many frames.
fn mask_for(frame_count: usize) -> u32 {
    let buckets = (frame_count * 2).next_power_of_two().max(SHARD_COUNT);
    (buckets - 1) as u32
}

fn hash(word: u64) -> u32 {
    // Fibonacci hashing; neighbours in a file spread over buckets and shards.
    let hash = (word ^ (word >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> 32) as u32
}

impl Table {
    /// A table for `frame_count` frames, which may become `frame_count_max`.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn new(frame_count: usize, frame_count_max: usize) -> Result<Table> {
        let mask = mask_for(frame_count);
        let buckets = Array::reserve(mask_for(frame_count_max) as usize + 1)?;
        buckets.commit(mask as usize + 1)?;
        Ok(Table {
            buckets,
            mask: AtomicU32::new(mask),
            shards: (0..SHARD_COUNT)
                .map(|_| Mutex::new(Rank::PageTableShard, mask))
                .collect(),
        })
    }

    /// Spreads the chains over the buckets of a table for `frame_count` frames, unless there are as
    /// many. For one thread at a time.
    ///
    /// Errors: `OutOfMemory`; nothing has changed then.
    pub(super) fn grow(&self, frames: &[Frame], frame_count: usize) -> Result<()> {
        let (old, new) = (self.mask.load(Ordering::Relaxed), mask_for(frame_count));
        if new <= old {
            return Ok(());
        }
        self.buckets.commit(new as usize + 1)?;
        for (number, shard) in self.shards.iter().enumerate() {
            let mut mask = shard.lock();
            for bucket in (number..=old as usize).step_by(SHARD_COUNT) {
                self.spread(frames, bucket, new);
            }
            *mask = new;
        }
        self.mask.store(new, Ordering::Release);
        Ok(())
    }

    /// Puts each frame of a chain where it belongs by `mask`.
    fn spread(&self, frames: &[Frame], bucket: usize, mask: u32) {
        let mut at = !self.buckets[bucket].load(Ordering::Relaxed);
        self.buckets[bucket].store(!NO_FRAME, Ordering::Release);
        while let Some(frame) = frames.get(at as usize) {
            let next = frame.chain.load(Ordering::Relaxed);
            let head = &self.buckets[(hash(frame.id_word()) & mask) as usize];
            frame
                .chain
                .store(!head.load(Ordering::Relaxed), Ordering::Release);
            head.store(!at, Ordering::Release);
            at = next;
        }
    }

    #[inline]
    fn head(&self, word: u64, mask: u32) -> &AtomicU32 {
        &self.buckets[(hash(word) & mask) as usize]
    }

    /// The frame that holds `id`, pinned; a miss is only a hint.
    pub(super) fn find(&self, frames: &[Frame], id: PageId) -> Found {
        let word = id.to_u64();
        let mask = self.mask.load(Ordering::Acquire);
        let mut at = !self.head(word, mask).load(Ordering::Acquire);
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

    /// The frame that seems to hold `id`, not pinned; a hint, as a miss is.
    pub(super) fn look(&self, frames: &[Frame], id: PageId) -> Option<u32> {
        let word = id.to_u64();
        let mask = self.mask.load(Ordering::Acquire);
        let mut at = !self.head(word, mask).load(Ordering::Acquire);
        for _ in 0..STEPS_MAX {
            let frame = frames.get(at as usize)?;
            if frame.id_word() == word {
                return Some(at);
            }
            at = frame.chain.load(Ordering::Acquire);
        }
        None
    }

    /// Enters the shard of `id`.
    pub(super) fn shard(&self, id: PageId) -> Shard<'_> {
        let shard = hash(id.to_u64()) as usize & (SHARD_COUNT - 1);
        Shard {
            mask: self.shards[shard].lock(),
        }
    }

    /// The frame on the chain of `id`, not pinned.
    pub(super) fn find_in(&self, shard: &Shard<'_>, frames: &[Frame], id: PageId) -> Option<u32> {
        let word = id.to_u64();
        let mut at = !self.head(word, *shard.mask).load(Ordering::Acquire);
        while let Some(frame) = frames.get(at as usize) {
            if frame.id_word() == word {
                return Some(at);
            }
            at = frame.chain.load(Ordering::Acquire);
        }
        None
    }

    /// Puts an owned frame, which carries `id` already, on its chain.
    pub(super) fn link(&self, shard: &Shard<'_>, frames: &[Frame], id: PageId, index: u32) {
        let head = self.head(id.to_u64(), *shard.mask);
        frames[index as usize]
            .chain
            .store(!head.load(Ordering::Relaxed), Ordering::Release);
        head.store(!index, Ordering::Release);
    }

    /// Takes a frame off the chain of `id`. Its own link stays, so that walkers on it go on.
    pub(super) fn unlink(&self, shard: &Shard<'_>, frames: &[Frame], id: PageId, index: u32) {
        let head = self.head(id.to_u64(), *shard.mask);
        let after = frames[index as usize].chain.load(Ordering::Relaxed);
        let mut at = !head.load(Ordering::Relaxed);
        if at == index {
            head.store(!after, Ordering::Release);
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

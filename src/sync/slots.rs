//! Type-stable nodes: allocated in chunks, recycled, never moved or freed before the whole.
//!
//! A reader may keep the number of a node, look at it without a latch and find that it was recycled
//! meanwhile: the node is still a `T`, so that is a question of the value (compare an id in it), never
//! of memory safety.

use super::mutex::Mutex;
use super::order::Rank;

const CHUNKS: usize = 26;
const FIRST_SHIFT: u32 = 6;

/// Nodes of type `T`, numbered from 0.
#[derive(Debug)]
pub struct Slots<T> {
    /// Chunk k holds `64 << k` nodes.
    chunks: [std::sync::OnceLock<Box<[T]>>; CHUNKS],
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    recycled: Vec<u32>,
    used: u32,
}

impl<T: Default> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots::new()
    }
}

impl<T: Default> Slots<T> {
    /// No nodes yet.
    pub fn new() -> Slots<T> {
        Slots {
            chunks: [const { std::sync::OnceLock::new() }; CHUNKS],
            free: Mutex::new(
                Rank::Leaf,
                Free {
                    recycled: Vec::new(),
                    used: 0,
                },
            ),
        }
    }

    /// A node nobody uses: a recycled one as its last user left it, or a new default one.
    pub fn take(&self) -> u32 {
        let mut free = self.free.lock();
        if let Some(slot) = free.recycled.pop() {
            return slot;
        }
        let slot = free.used;
        let (chunk, _) = place(slot);
        let nodes = 1usize << (chunk as u32 + FIRST_SHIFT);
        self.chunks[chunk].get_or_init(|| (0..nodes).map(|_| T::default()).collect());
        free.used += 1;
        slot
    }

    /// Gives a node back.
    pub fn give_back(&self, slot: u32) {
        self.free.lock().recycled.push(slot);
    }

    /// The node; `None` if that number was never taken.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&T> {
        let (chunk, at) = place(slot);
        self.chunks.get(chunk)?.get()?.get(at)
    }
}

/// Chunk and position of a node: chunk k begins at node `64 * (2^k - 1)`.
#[inline]
fn place(slot: u32) -> (usize, usize) {
    let shifted = slot as u64 + (1 << FIRST_SHIFT);
    let chunk = 63 - shifted.leading_zeros() - FIRST_SHIFT;
    (
        chunk as usize,
        (shifted - (1u64 << (chunk + FIRST_SHIFT))) as usize,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn nodes_keep_their_place_and_are_recycled() {
        let slots: Slots<AtomicU32> = Slots::new();
        let taken: Vec<u32> = (0..1000).map(|_| slots.take()).collect();
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
        let first: *const AtomicU32 = slots.get(63).expect("taken");
        slots.give_back(63);
        assert_eq!(slots.take(), 63);
        assert!(std::ptr::eq(first, slots.get(63).expect("taken")));
        assert!(slots.get(1_000_000).is_none());
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(63), (0, 63));
        assert_eq!(place(64), (1, 0));
        assert_eq!(place(191), (1, 127));
        assert_eq!(place(192), (2, 0));
    }
}

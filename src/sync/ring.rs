//! A ring of bytes that many threads fill at once, each its own reserved range, and one reads.
//!
//! Positions are 64-bit byte counters that only grow; byte `p` lies at `p % size`.
//!
//! Why the raw memory is sound: a range is writable from its reservation until it is marked filled,
//! by its one owner (`Reserved` is neither Clone nor made elsewhere); it is readable from then on
//! until it is consumed, by the one `RingReader`; and it is reserved again only after that
//! (`reserve` waits for `consumed`).

use super::raw::atomic::{AtomicBool, AtomicU64, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

use super::Padded;
use super::watermark::{WINDOW, Watermark};

const ALIGNMENT: usize = 4096;

/// The ring.
#[derive(Debug)]
pub struct Ring {
    memory: *mut u8,
    size: u64,
    /// Next position to hand out.
    reserved: Padded<AtomicU64>,
    /// Bytes below are filled.
    filled: Watermark,
    /// Bytes below may be overwritten one lap later.
    consumed: Padded<AtomicU64>,
    reader_taken: AtomicBool,
}

/// A range of the ring that its owner must fill.
#[derive(Debug)]
#[must_use = "a reserved range that is never filled stops the ring"]
pub struct Reserved {
    start: u64,
    end: u64,
}

impl Reserved {
    /// First position.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Position behind the last.
    pub fn end(&self) -> u64 {
        self.end
    }
}

// SAFETY: `memory` is owned by the ring and freed on drop; access to its bytes is divided among
// threads by the reservation protocol in the module header.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring of `size` bytes, a multiple of 4096, whose first position is `start`; the bytes
    /// from `start` down to the 4096-byte border below it are `head`, readable at once.
    pub fn new(size: usize, start: u64, head: &[u8]) -> Ring {
        assert!(
            size > 0 && size % ALIGNMENT == 0,
            "the ring is whole blocks"
        );
        let floor = start - start % ALIGNMENT as u64;
        assert!(
            head.len() as u64 == start - floor,
            "head reaches down to the block border"
        );
        let layout = Layout::from_size_align(size, ALIGNMENT).expect("a size that fits in memory");
        // SAFETY: the layout has a non-zero size.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        let ring = Ring {
            memory,
            size: size as u64,
            reserved: Padded(AtomicU64::new(start)),
            // No more than the ring can be under way; far less is.
            filled: Watermark::new(start, (size as u64).next_power_of_two().min(WINDOW)),
            consumed: Padded(AtomicU64::new(floor)),
            reader_taken: AtomicBool::new(false),
        };
        ring.copy_in(floor, head);
        ring
    }

    /// Bytes of the ring.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next position that will be reserved.
    #[inline]
    pub fn position(&self) -> u64 {
        self.reserved.load(Ordering::SeqCst)
    }

    /// Everything below is filled.
    #[inline]
    pub fn filled(&self) -> u64 {
        self.filled.reached()
    }

    /// Everything below may be overwritten.
    #[inline]
    pub fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Acquire)
    }

    /// Hands out the next `len` positions: one atomic add. There may be no room for them yet:
    /// see `has_room`.
    #[inline]
    pub fn reserve(&self, len: u64) -> Reserved {
        debug_assert!(
            len <= self.size / 2,
            "a range of {len} bytes in a ring of {}",
            self.size
        );
        let start = self.reserved.fetch_add(len, Ordering::SeqCst);
        Reserved {
            start,
            end: start + len,
        }
    }

    /// True if the range's bytes of the lap before were consumed, so that it can be filled.
    #[inline]
    pub fn has_room(&self, range: &Reserved) -> bool {
        range.end <= self.consumed() + self.size
    }

    /// Copies `bytes`, as long as the range, into it and marks it filled. There must be room.
    /// `stopped` ends a wait for far earlier ranges that will never be filled.
    pub fn fill(&self, range: Reserved, bytes: &[u8], stopped: &dyn Fn() -> bool) {
        assert!(
            bytes.len() as u64 == range.end - range.start,
            "bytes as long as the range"
        );
        assert!(
            self.has_room(&range),
            "no room in the ring: the caller waits for it"
        );
        self.filled.expect(range.end);
        self.copy_in(range.start, bytes);
        self.filled.mark(range.start, range.end, stopped);
    }

    /// Waits until everything below `position` is filled; false if stopped.
    pub fn wait_filled(&self, position: u64, stopped: &dyn Fn() -> bool) -> bool {
        self.filled.wait_for(position, stopped)
    }

    /// The one reader, once.
    pub fn reader(self: &std::sync::Arc<Ring>) -> RingReader {
        assert!(
            !self.reader_taken.swap(true, Ordering::AcqRel),
            "a ring has one reader"
        );
        RingReader { ring: self.clone() }
    }

    fn copy_in(&self, start: u64, bytes: &[u8]) {
        let at = (start % self.size) as usize;
        let first = bytes.len().min(self.size as usize - at);
        // SAFETY: both pieces lie inside the ring (`at < size`, `first <= size - at`, and the rest
        // is at most `size - first` since a range is no longer than the ring). Nobody else touches
        // these bytes: they belong to a reserved range that is not filled yet, or to a ring that is
        // not shared yet. `bytes` is not part of the ring, whose memory is never lent mutably.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.add(at), first);
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr().add(first),
                self.memory,
                bytes.len() - first,
            );
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.size as usize, ALIGNMENT)
            .expect("the layout that was allocated");
        // SAFETY: `memory` came from `alloc_zeroed` with this very layout.
        unsafe { dealloc(self.memory, layout) };
    }
}

/// Reads what was filled, and lets it be overwritten.
#[derive(Debug)]
pub struct RingReader {
    ring: std::sync::Arc<Ring>,
}

impl RingReader {
    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The bytes `from..to` in at most two pieces. They must be filled and not yet consumed.
    pub fn pieces(&mut self, from: u64, to: u64) -> (&[u8], &[u8]) {
        assert!(
            from >= self.ring.consumed() && from <= to,
            "bytes that were consumed"
        );
        assert!(to <= self.ring.filled(), "bytes that are not filled");
        let (at, len) = ((from % self.ring.size) as usize, (to - from) as usize);
        let first = len.min(self.ring.size as usize - at);
        // SAFETY: the range is filled (the acquire load in `filled` orders the copies before these
        // reads) and not consumed, so no writer may touch it; `consume` needs `&mut self`, so it
        // cannot be called while these slices live. Both lie inside the ring, as in `copy_in`.
        unsafe {
            (
                std::slice::from_raw_parts(self.ring.memory.add(at), first),
                std::slice::from_raw_parts(self.ring.memory, len - first),
            )
        }
    }

    /// Gives up everything below `to`.
    pub fn consume(&mut self, to: u64) {
        assert!(to <= self.ring.filled(), "bytes that are not filled");
        self.ring.consumed.fetch_max(to, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn four_writers_and_a_reader_agree_over_many_laps() {
        const END: u64 = 3 << 20;
        let ring = Arc::new(Ring::new(16 * 4096, 100, &[0; 100]));
        let mut reader = ring.reader();
        std::thread::scope(|scope| {
            for seed in 1..=4u64 {
                let ring = &ring;
                scope.spawn(move || {
                    let mut x = seed;
                    loop {
                        x = x
                            .wrapping_mul(6364136223846793005)
                            .wrapping_add(1442695040888963407);
                        let range = ring.reserve(8 + (x >> 54));
                        let (start, end) = (range.start(), range.end());
                        while !ring.has_room(&range) {
                            std::thread::yield_now();
                        }
                        let bytes: Vec<u8> = (start..end).map(|p| ((p * 7) >> 3) as u8).collect();
                        ring.fill(range, &bytes, &|| false);
                        if end > END {
                            return;
                        }
                    }
                });
            }
            let mut at = 100;
            while at < END {
                let to = ring.filled();
                let (first, second) = reader.pieces(at, to);
                for (byte, p) in first.iter().chain(second).zip(at..) {
                    assert_eq!(*byte, ((p * 7) >> 3) as u8, "position {p}");
                }
                reader.consume(to);
                at = to;
            }
        });
    }
}

//! Memory that is filled once from its begin and then kept: a mapping of its own, on huge pages where the
//! system gives them. Touching gigabytes in pages of 4 KiB costs more than what is done with them.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use super::huge::{HUGE_PAGE_BYTES, prefer_huge_pages};
use crate::words::{Error, Result};

/// Below this a mapping is not worth it.
const MAPPED_FROM: usize = 1 << 20;
/// Unit of mappings.
const PAGE: usize = 4096;

/// Bytes that can be added to, up to a capacity.
#[derive(Debug)]
pub struct Slab {
    memory: Memory,
}

#[derive(Debug)]
enum Memory {
    Heap(Vec<u8>),
    Mapped(Mapping),
}

#[derive(Debug)]
struct Mapping {
    /// The mapping, and where in it the bytes begin: at a huge page.
    start: NonNull<u8>,
    mapped: usize,
    base: NonNull<u8>,
    len: usize,
    capacity: usize,
}

// SAFETY: the mapping is plain memory that this value owns alone, like a `Vec<u8>`.
unsafe impl Send for Mapping {}
// SAFETY: shared access only reads, as the borrow rules of `deref` and `deref_mut` say.
unsafe impl Sync for Mapping {}

impl Default for Slab {
    fn default() -> Slab {
        Slab {
            memory: Memory::Heap(Vec::new()),
        }
    }
}

impl Slab {
    /// Room for `capacity` bytes, of which about `expected` will be used. What is not used costs nothing.
    ///
    /// Errors: `OutOfMemory`.
    pub fn reserve(capacity: usize, expected: usize) -> Result<Slab> {
        if expected < MAPPED_FROM {
            let mut bytes = Vec::new();
            bytes
                .try_reserve(expected)
                .map_err(|_| Error::OutOfMemory)?;
            return Ok(Slab {
                memory: Memory::Heap(bytes),
            });
        }
        Mapping::new(capacity.max(expected)).map(|mapping| Slab {
            memory: Memory::Mapped(mapping),
        })
    }

    /// Adds bytes. Panics beyond the capacity.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8]) {
        match &mut self.memory {
            Memory::Heap(heap) => heap.extend_from_slice(bytes),
            Memory::Mapped(mapping) => mapping.extend(bytes),
        }
    }

    /// Nothing will be added any more: gives back what was not used.
    pub fn finish(&mut self) {
        match &mut self.memory {
            Memory::Heap(heap) => heap.shrink_to_fit(),
            Memory::Mapped(mapping) => mapping.finish(),
        }
    }
}

impl Mapping {
    fn new(capacity: usize) -> Result<Mapping> {
        let capacity = capacity.next_multiple_of(PAGE);
        let mapped = capacity + HUGE_PAGE_BYTES;
        // SAFETY: a fresh anonymous private mapping; no existing memory is affected.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::OutOfMemory);
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(Error::OutOfMemory)?;
        let skipped = start.as_ptr().align_offset(HUGE_PAGE_BYTES);
        // SAFETY: less than a huge page is skipped, so that `capacity` bytes of the mapping follow.
        let base = unsafe { start.add(skipped) };
        prefer_huge_pages(base.as_ptr(), capacity);
        Ok(Mapping {
            start,
            mapped,
            base,
            len: 0,
            capacity,
        })
    }

    #[inline]
    fn extend(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.capacity - self.len, "the slab is full");
        // SAFETY: the range behind `len` lies inside the mapping, as was just asserted, and belongs to
        // this value alone; `bytes` cannot lie there, since nobody can borrow it.
        unsafe {
            let to = self.base.as_ptr().add(self.len);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        self.len += bytes.len();
    }

    fn finish(&mut self) {
        let begin = self.base.as_ptr() as usize - self.start.as_ptr() as usize;
        let kept = begin + self.len.next_multiple_of(PAGE);
        if kept == 0 || kept >= self.mapped {
            return;
        }
        // SAFETY: whole pages at the mapping's end, behind all bytes that are in use.
        unsafe { libc::munmap(self.start.as_ptr().add(kept).cast(), self.mapped - kept) };
        self.mapped = kept;
        self.capacity = self.len;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what is left of the mapping that `new` made; nobody borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

impl Deref for Slab {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Heap(heap) => heap,
            // SAFETY: `len` bytes from `base` on are mapped and were written.
            Memory::Mapped(m) => unsafe { std::slice::from_raw_parts(m.base.as_ptr(), m.len) },
        }
    }
}

impl DerefMut for Slab {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Heap(heap) => heap,
            // SAFETY: as in `deref`, and `&mut self` makes the access unique.
            Memory::Mapped(m) => unsafe { std::slice::from_raw_parts_mut(m.base.as_ptr(), m.len) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_keeps_what_was_added_and_gives_the_rest_back() {
        for expected in [10, 3 << 20] {
            let mut slab = Slab::reserve(expected * 8, expected).expect("memory");
            for n in 0..expected as u32 / 4 {
                slab.extend(&n.to_le_bytes());
            }
            slab.finish();
            slab[0] = 7;
            assert_eq!(slab.len(), expected / 4 * 4);
            let wrong = slab.chunks(4).enumerate().skip(1).find(|(n, word)| {
                u32::from_le_bytes((*word).try_into().expect("four bytes")) != *n as u32
            });
            assert_eq!((wrong, slab[0]), (None, 7));
        }
        let mut empty = Slab::reserve(8 << 20, 2 << 20).expect("memory");
        empty.finish();
        assert!(empty.is_empty());
    }

    #[test]
    #[should_panic(expected = "full")]
    fn a_slab_does_not_grow_beyond_its_capacity() {
        let mut slab = Slab::reserve(2 << 20, 2 << 20).expect("memory");
        (0..3).for_each(|_| slab.extend(&vec![1; 1 << 20]));
    }
}

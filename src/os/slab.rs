//! Memory that is filled from its begin: a mapping of its own, on huge pages where the system gives them.
//! Touching gigabytes in pages of 4 KiB costs more than what is done with them.

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

impl Slab {
    /// Room for `capacity` bytes. What is not used costs nothing.
    ///
    /// Errors: `OutOfMemory`.
    pub fn reserve(capacity: usize) -> Result<Slab> {
        if capacity < MAPPED_FROM {
            let mut bytes = Vec::new();
            bytes
                .try_reserve_exact(capacity)
                .map_err(|_| Error::OutOfMemory)?;
            return Ok(Slab {
                memory: Memory::Heap(bytes),
            });
        }
        Mapping::new(capacity).map(|mapping| Slab {
            memory: Memory::Mapped(mapping),
        })
    }

    /// Adds zero bytes, if there is room.
    #[inline]
    pub fn extend_zeros(&mut self, count: usize) -> bool {
        match &mut self.memory {
            Memory::Heap(heap) if heap.capacity() - heap.len() >= count => {
                heap.resize(heap.len() + count, 0);
                true
            }
            Memory::Heap(_) => false,
            Memory::Mapped(mapping) => mapping.extend_zeros(count),
        }
    }

    /// Takes all bytes out; the room stays.
    pub fn clear(&mut self) {
        match &mut self.memory {
            Memory::Heap(heap) => heap.clear(),
            Memory::Mapped(mapping) => mapping.len = 0,
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
    fn extend_zeros(&mut self, count: usize) -> bool {
        if count > self.capacity - self.len {
            return false;
        }
        // SAFETY: the range behind `len` lies inside the mapping, as was just checked, and belongs to this
        // value alone; nobody can borrow what is behind `len`.
        unsafe { std::ptr::write_bytes(self.base.as_ptr().add(self.len), 0, count) };
        self.len += count;
        true
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
    fn a_slab_takes_what_it_has_room_for_and_is_filled_again() {
        for capacity in [1000, 3 << 20] {
            let mut slab = Slab::reserve(capacity).expect("memory");
            for round in 1..4 {
                let mut count = 0;
                while slab.extend_zeros(100) {
                    assert!(slab[count * 100..].iter().all(|&byte| byte == 0));
                    slab[count * 100] = round;
                    count += 1;
                }
                assert!(slab.len() == count * 100 && count >= capacity / 100);
                assert!(slab.iter().step_by(100).all(|&byte| byte == round));
                slab.clear();
                assert!(slab.is_empty());
            }
        }
    }
}

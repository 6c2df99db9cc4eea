//! One reserved address range that holds the bytes of all frames.
//!
//! The range is reserved for the largest pool at open and never moves, so a frame's address is
//! valid as long as the pool lives; resizing would commit and decommit parts of it.

use std::ptr::NonNull;

use crate::os::huge::{HUGE_PAGE_BYTES, prefer_huge_pages};
use crate::words::{Error, Result};

/// A pool from this size on asks for huge pages.
const LARGE: usize = 32 << 20;

/// Page images of all frames, `frame_bytes` each, aligned for O_DIRECT.
pub(super) struct Region {
    base: NonNull<u8>,
    /// The mapping, which may begin before `base`: that is aligned for huge pages.
    mapping: (NonNull<u8>, usize),
    frame_bytes: usize,
    frame_count: usize,
}

// SAFETY: the range is plain memory; who may touch which bytes is decided by the frames' latches,
// and every access goes through a pointer that `frame` returns.
unsafe impl Send for Region {}
// SAFETY: as above: `Region` itself hands out pointers only.
unsafe impl Sync for Region {}

impl Region {
    /// Reserves room for `frame_count` frames. Memory is committed by first use.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn reserve(frame_bytes: usize, frame_count: usize) -> Result<Region> {
        let len = frame_bytes
            .checked_mul(frame_count)
            .ok_or(Error::OutOfMemory)?;
        // A small pool gains nothing, and must not take more memory than it is allowed.
        let spare = if len >= LARGE { HUGE_PAGE_BYTES } else { 0 };
        let mapped = len.max(1) + spare;
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
        let mut base = start;
        if spare > 0 {
            let skipped = start.as_ptr().align_offset(HUGE_PAGE_BYTES);
            // SAFETY: less than `spare`, so that `len` bytes of the mapping follow.
            base = unsafe { start.add(skipped) };
            prefer_huge_pages(base.as_ptr(), len);
        }
        Ok(Region {
            base,
            mapping: (start, mapped),
            frame_bytes,
            frame_count,
        })
    }

    /// What goes with the frames, one value each, on huge pages as they are.
    pub(super) fn descriptors<T>(count: usize, make: impl FnMut(usize) -> T) -> Box<[T]> {
        let mut all: Vec<T> = Vec::with_capacity(count);
        prefer_huge_pages(all.as_ptr().cast(), count * size_of::<T>());
        all.extend((0..count).map(make));
        all.into_boxed_slice()
    }

    /// The first byte of frame `index`. Panics if there is no such frame.
    pub(super) fn frame(&self, index: usize) -> NonNull<u8> {
        assert!(
            index < self.frame_count,
            "frame {index} of {}",
            self.frame_count
        );
        // SAFETY: `index` is below the count, so the offset lies inside the mapping.
        unsafe { self.base.add(index * self.frame_bytes) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let (start, len) = self.mapping;
        // SAFETY: the mapping made by `reserve`; guards borrow the pool that owns the region, so none
        // is left.
        unsafe { libc::munmap(start.as_ptr().cast(), len) };
    }
}

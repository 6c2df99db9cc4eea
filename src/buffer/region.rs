//! One reserved address range that holds the bytes of all frames.
//!
//! The range is reserved for the largest pool at open and never moves, so a frame's address is
//! valid as long as the pool lives; resizing would commit and decommit parts of it.

use std::ptr::NonNull;

use crate::words::{Error, Result};

/// Page images of all frames, `frame_bytes` each, aligned for O_DIRECT.
pub(super) struct Region {
    base: NonNull<u8>,
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
        // SAFETY: a fresh anonymous private mapping; no existing memory is affected.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len.max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Error::OutOfMemory);
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(Error::OutOfMemory)?;
        Ok(Region {
            base,
            frame_bytes,
            frame_count,
        })
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
        let len = (self.frame_bytes * self.frame_count).max(1);
        // SAFETY: `base..base+len` is the mapping made by `reserve`; guards borrow the pool that
        // owns the region, so none is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), len) };
    }
}

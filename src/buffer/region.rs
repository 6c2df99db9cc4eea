//! Reserved address ranges: the bytes of all frames, their descriptors, the page table.
//!
//! A range is reserved for the largest pool at open, which costs addresses only, and never moves, so
//! that a frame's address is valid as long as the pool lives. The front of it is memory, *committed*
//! before it is used, more of it when the pool grows. Memory that was not used yet is zero and takes
//! no room; what a shrinking pool has no use for is given back and is zero again.

use std::ptr::NonNull;

use crate::os::huge::{HUGE_PAGE_BYTES, prefer_huge_pages};
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::words::{Error, Result};

use super::frame::Frame;

/// A range from this size on asks for huge pages.
const LARGE: usize = 32 << 20;
/// What is committed at once, at least: so that a pool that grows in small steps asks rarely.
const COMMIT_BYTES: usize = 64 << 10;

/// A range of addresses whose front is memory.
struct Range {
    base: NonNull<u8>,
    /// The mapping, which may begin before `base`: that is aligned for huge pages.
    mapping: (NonNull<u8>, usize),
    /// Bytes from `base` on.
    len: usize,
    /// Of them, memory. Changed by one thread at a time: `commit`'s caller sees to it.
    committed: AtomicUsize,
}

impl Range {
    /// Reserves `len` bytes, none of them memory.
    ///
    /// Errors: `OutOfMemory` if there are no such addresses to be had.
    fn reserve(len: usize) -> Result<Range> {
        let spare = if len >= LARGE { HUGE_PAGE_BYTES } else { 0 };
        let mapped = len
            .max(1)
            .checked_add(spare)
            .filter(|&mapped| mapped <= isize::MAX as usize)
            .ok_or(Error::OutOfMemory)?;
        // SAFETY: a fresh anonymous private mapping; no existing memory is affected.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
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
        }
        Ok(Range {
            base,
            mapping: (start, mapped),
            len,
            committed: AtomicUsize::new(0),
        })
    }

    /// Makes the first `wanted` bytes memory. For one thread at a time.
    ///
    /// Errors: `OutOfMemory` if the range or the system has less.
    fn commit(&self, wanted: usize) -> Result<()> {
        let committed = self.committed.load(Ordering::Relaxed);
        if wanted <= committed {
            return Ok(());
        }
        if wanted > self.len {
            return Err(Error::OutOfMemory);
        }
        let end = wanted.next_multiple_of(COMMIT_BYTES).min(self.len);
        let flags = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the mapping made by `reserve`, from its page-aligned `base` to within `len`. Memory
        // that is in use keeps its content and its protection.
        let failed = unsafe { libc::mprotect(self.base.as_ptr().cast(), end, flags) } != 0;
        if failed {
            return Err(Error::OutOfMemory);
        }
        if end >= LARGE {
            // A small pool gains nothing, and must not take more memory than it is allowed.
            prefer_huge_pages(self.base.as_ptr(), end);
        }
        // Release: whoever sees the new length may use the memory.
        self.committed.store(end, Ordering::Release);
        Ok(())
    }

    /// Gives the memory behind `from..to` back; it reads as zeros and may be used again. Only what is
    /// committed, whole pages of the system.
    fn give_back(&self, from: usize, to: usize) {
        let to = to.min(self.committed.load(Ordering::Relaxed));
        let from = from.next_multiple_of(system_page_bytes());
        if from >= to {
            return;
        }
        // SAFETY: the range lies inside the committed part of the mapping; the caller's frames hold
        // nothing that anybody needs. A failure leaves the memory as it is.
        unsafe {
            libc::madvise(
                self.base.add(from).as_ptr().cast(),
                to - from,
                libc::MADV_DONTNEED,
            )
        };
    }
}

fn system_page_bytes() -> usize {
    // SAFETY: asks a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

// SAFETY: the range is plain memory; who may touch which bytes is decided by who uses it (below).
unsafe impl Send for Range {}
// SAFETY: as above: `Range` itself hands out nothing.
unsafe impl Sync for Range {}

impl Drop for Range {
    fn drop(&mut self) {
        let (start, len) = self.mapping;
        // SAFETY: the mapping made by `reserve`; guards and slices borrow the pool that owns the
        // range, so none is left.
        unsafe { libc::munmap(start.as_ptr().cast(), len) };
    }
}

/// Page images of all frames, `frame_bytes` each, aligned for O_DIRECT.
pub(super) struct Region {
    range: Range,
    frame_bytes: usize,
    frame_count_max: usize,
}

impl Region {
    /// Reserves room for `frame_count_max` frames.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn reserve(frame_bytes: usize, frame_count_max: usize) -> Result<Region> {
        let len = frame_bytes
            .checked_mul(frame_count_max)
            .ok_or(Error::OutOfMemory)?;
        Ok(Region {
            range: Range::reserve(len)?,
            frame_bytes,
            frame_count_max,
        })
    }

    /// The first `frame_count` frames have memory from here on. For one thread at a time.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn commit(&self, frame_count: usize) -> Result<()> {
        self.range.commit(frame_count * self.frame_bytes)
    }

    /// Gives the memory of the frames `from..to` back.
    pub(super) fn give_back(&self, from: usize, to: usize) {
        self.range
            .give_back(from * self.frame_bytes, to * self.frame_bytes);
    }

    /// The first byte of frame `index`. Panics if there is no such frame.
    pub(super) fn frame(&self, index: usize) -> NonNull<u8> {
        assert!(
            index < self.frame_count_max,
            "frame {index} of {}",
            self.frame_count_max
        );
        // SAFETY: `index` is below the count, so the offset lies inside the mapping.
        unsafe { self.range.base.add(index * self.frame_bytes) }
    }
}

/// A type whose default is all zero bytes, and whose every value may be shared.
///
/// # Safety
/// Zero bytes are `T::default()`; `T` has no destructor.
pub(super) unsafe trait ZeroIsDefault: Default + Send + Sync {}

// SAFETY: a number in memory, zero by default.
unsafe impl ZeroIsDefault for AtomicU32 {}
// SAFETY: as above.
unsafe impl ZeroIsDefault for AtomicU64 {}
// SAFETY: made of atomics only, each zero by default (`Frame::default`).
unsafe impl ZeroIsDefault for Frame {}

/// An array that grows in place: elements that nobody used yet are zero and take no memory.
pub(super) struct Array<T> {
    range: Range,
    _elements: std::marker::PhantomData<T>,
}

impl<T: ZeroIsDefault> Array<T> {
    /// Reserves room for `count_max` elements; there are none yet.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn reserve(count_max: usize) -> Result<Array<T>> {
        let len = size_of::<T>()
            .checked_mul(count_max)
            .ok_or(Error::OutOfMemory)?;
        Ok(Array {
            range: Range::reserve(len)?,
            _elements: std::marker::PhantomData,
        })
    }

    /// There are at least `count` elements from here on. For one thread at a time.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn commit(&self, count: usize) -> Result<()> {
        self.range.commit(count * size_of::<T>())
    }
}

impl<T: ZeroIsDefault> std::ops::Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // Acquire: with the length comes the memory.
        let count = self.range.committed.load(Ordering::Acquire) / size_of::<T>();
        // SAFETY: the range is aligned to pages of the system and committed as far as `count` goes;
        // zero bytes are a value (`ZeroIsDefault`), and elements change through `&self` alone.
        unsafe { std::slice::from_raw_parts(self.range.base.cast::<T>().as_ptr(), count) }
    }
}

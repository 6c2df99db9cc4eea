//! Memory at addresses that direct I/O accepts.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};

/// Alignment of every `AlignedBuf`: a multiple of any device's block that matters.
pub const ALIGNMENT: usize = 4096;

/// A fixed number of bytes, zero at first, aligned to 4096.
pub struct AlignedBuf {
    memory: *mut u8,
    len: usize,
}

// SAFETY: the buffer owns its memory alone, like a `Box<[u8]>`.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access reads only, as the borrow rules of `deref` and `deref_mut` say.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// `len` zero bytes; `len` is not 0.
    pub fn new(len: usize) -> AlignedBuf {
        assert!(len > 0, "an empty buffer needs no alignment");
        let layout = Layout::from_size_align(len, ALIGNMENT).expect("a size that fits in memory");
        // SAFETY: the layout has a non-zero size.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        AlignedBuf { memory, len }
    }

    /// True if the slice begins at an address that is a multiple of `alignment`.
    pub fn is_aligned(bytes: &[u8], alignment: usize) -> bool {
        bytes.as_ptr() as usize % alignment == 0
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.len, ALIGNMENT).expect("as in `new`");
        // SAFETY: `memory` came from `alloc_zeroed` with this very layout.
        unsafe { dealloc(self.memory, layout) };
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `memory` points to `len` initialised bytes that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory, self.len) }
    }
}

impl DerefMut for AlignedBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.len) }
    }
}

impl std::fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBuf({} bytes)", self.len)
    }
}

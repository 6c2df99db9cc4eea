//! What memory the machine has, and huge pages, where the system gives them: a pool of gigabytes in pages of 4 KiB misses the address
//! cache at nearly every record that a search looks at.

/// Size of a huge page where they are worth having.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for huge pages behind a range of memory, which need not be touched yet. Only whole ones inside
/// it; a system without them says no, and nothing else changes.
pub fn prefer_huge_pages(start: *const u8, len: usize) {
    let first = (start as usize).next_multiple_of(HUGE_PAGE_BYTES);
    let end = (start as usize + len) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if end <= first {
        return;
    }
    // SAFETY: advice on how to back a range; its content and who owns it stay as they are.
    unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
}

/// Bytes of memory of the machine.
pub fn memory_bytes() -> u64 {
    // SAFETY: asks two numbers.
    let (pages, bytes) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    (pages.max(0) as u64).saturating_mul(bytes.max(0) as u64)
}

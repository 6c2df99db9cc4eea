//! System calls that the standard library does not offer.

use crate::engine::Result;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Tells the kernel to forget the file's cached pages; the file must be synced for that.
pub fn forget_cached(file: &File) -> Result<()> {
    // SAFETY: the descriptor is open as long as `file` is borrowed; no memory is passed.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code).into()),
    }
}

/// Returns when the kernel has written what any process left dirty in the page cache.
pub fn write_page_cache() {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::sync() };
}

/// Seconds of processor time that this process has used, all threads, user and kernel.
pub fn cpu_seconds() -> f64 {
    // SAFETY: `usage` is plain data that the call fills; zero bytes are a valid value of it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Buffers for direct reads and writes begin at a multiple of this.
#[repr(align(4096))]
pub struct Page([u8; 4096]);

/// Overwrites one page of a file that has it already, and syncs the data.
pub fn write_and_sync(file: &File, page: u64) -> Result<()> {
    static PAGE: Page = Page([0x5a; 4096]);
    file.write_all_at(&PAGE.0, page * 4096)?;
    file.sync_data()?;
    Ok(())
}

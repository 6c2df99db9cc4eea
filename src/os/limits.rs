//! What the system allows the process.

/// Files that the process may have open at once.
pub fn open_files_max() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a local that lives for the call.
    let rc = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    match rc {
        0 => usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX),
        // POSIX promises no fewer.
        _ => 20,
    }
}

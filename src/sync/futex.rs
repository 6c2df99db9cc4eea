//! Sleeping on a 32-bit word: the one system call below every wait of this engine.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `*word == expected`, at most `timeout`. Wakes spuriously; callers re-check.
/// Returns false if the timeout passed.
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> bool {
    let spec = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: t.subsec_nanos() as libc::c_long,
    });
    let spec_ptr = spec
        .as_ref()
        .map_or(std::ptr::null(), |s| s as *const libc::timespec);
    // SAFETY: `word` is a live, aligned 32-bit word for the length of the call and `spec_ptr` is
    // null or points to `spec`, which outlives the call; the kernel only reads both.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            spec_ptr,
        )
    };
    !(rc == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT))
}

/// Wakes at most `count` sleepers of the word at `word`.
///
/// Takes a pointer because a waker may race with the word's owner, who saw the new value and left:
/// the kernel uses the address as a key only.
pub fn wake_at(word: *const AtomicU32, count: u32) {
    let count = count.min(i32::MAX as u32) as i32;
    // SAFETY: FUTEX_WAKE on a private futex does not read or write through the address; an address
    // whose word is gone wakes nobody, or a sleeper that re-checks its own condition.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word as *const u32,
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count,
        );
    }
}

/// Wakes one sleeper.
pub fn wake_one(word: &AtomicU32) {
    wake_at(word, 1);
}

/// Wakes all sleepers.
pub fn wake_all(word: &AtomicU32) {
    wake_at(word, u32::MAX);
}

//! Local time as text.

use std::time::Duration;

/// A time since the epoch as the host's clock gives it, "YYMMDD hh:mm:ss" in local time, as InnoDB's status
/// texts have it.
pub fn local_time(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs() as libc::time_t;
    // SAFETY: `tm` is plain numbers and a pointer, for which zero is a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both point to values that live for the call; the reentrant form keeps none of them.
    unsafe { libc::localtime_r(&seconds, &mut parts) };
    format!(
        "{:02}{:02}{:02} {:2}:{:02}:{:02}",
        parts.tm_year % 100,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min,
        parts.tm_sec
    )
}

//! One io_uring, used by one thread at a time.

use io_uring::{IoUring, opcode, types};
use std::time::Duration;

use super::aio::WriteAt;
use crate::words::{Error, Result};

/// Writes under way at once.
const DEPTH: usize = 64;
/// Before the kernel is asked again.
const PAUSE: Duration = Duration::from_micros(100);

pub(super) struct Ring {
    ring: IoUring,
    /// A submission failed for good: the ring is to be thrown away.
    broken: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("broken", &self.broken)
            .finish()
    }
}

impl Ring {
    pub(super) fn new() -> Result<Ring> {
        match IoUring::new(DEPTH as u32) {
            Ok(ring) => Ok(Ring {
                ring,
                broken: false,
            }),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(0);
                Err(Error::io("io_uring_setup", "the system", errno))
            }
        }
    }

    pub(super) fn is_usable(&self) -> bool {
        !self.broken
    }

    /// What each write transferred, or its errno below 0; `None` for one that was not carried out.
    pub(super) fn write_all(&mut self, batch: &[WriteAt<'_>]) -> Vec<Option<i32>> {
        let mut done = vec![None; batch.len()];
        for first in (0..batch.len()).step_by(DEPTH) {
            if self.broken {
                break;
            }
            let last = batch.len().min(first + DEPTH);
            self.write_some(&batch[first..last], &mut done[first..last]);
        }
        done
    }

    /// At most `DEPTH` writes. Returns when the kernel is done with all it was given.
    fn write_some(&mut self, batch: &[WriteAt<'_>], done: &mut [Option<i32>]) {
        let mut queued = 0;
        for (at, write) in batch.iter().enumerate() {
            // One that must go another way is left to the caller.
            let Some(fd) = write.file.descriptor(write.bytes, write.offset) else {
                continue;
            };
            let (start, len) = (write.bytes.as_ptr(), write.bytes.len() as u32);
            let entry = opcode::Write::new(types::Fd(fd), start, len)
                .offset(write.offset)
                .build()
                .user_data(at as u64);
            // SAFETY: the bytes are borrowed by the caller and the file is kept open by `write.file`
            // until this function returns, which is after the last completion.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                queued += 1;
            }
        }
        let mut submitted = 0;
        let mut ended = 0;
        while ended < queued {
            if !self.broken {
                match self.ring.submit_and_wait(queued - ended) {
                    Ok(count) => submitted += count,
                    // A signal, or the kernel is short of memory: time helps.
                    Err(error) if is_passing(&error) => std::thread::sleep(PAUSE),
                    Err(error) => {
                        log::error!("io_uring fails and is left: {error}");
                        self.broken = true;
                    }
                }
            }
            for completion in self.ring.completion() {
                done[completion.user_data() as usize] = Some(completion.result());
                ended += 1;
            }
            if self.broken {
                // What the kernel has taken it will finish; the rest it will never see.
                if ended >= submitted {
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Worth another try: a signal, or the kernel is short of memory for a moment.
fn is_passing(error: &std::io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}

//! Batches of writes to many places at once: one submission to io_uring, or, where the system has none
//! (old kernels, containers that forbid it), a few threads.

use super::aio_ring::Ring;
use super::aio_threads::Writers;
use super::file::File;
use super::thread::Threads;
use crate::sync::{Arc, Mutex, Rank};
use crate::words::{Error, Result};

/// One write of a batch.
#[derive(Clone, Debug)]
pub struct WriteAt<'b> {
    /// Where to.
    pub file: Arc<dyn File>,
    /// What, all of it.
    pub bytes: &'b [u8],
    /// Offset in the file.
    pub offset: u64,
}

impl WriteAt<'_> {
    fn alone(&self) -> Result<()> {
        self.file.write_at(self.bytes, self.offset)
    }
}

/// Carries batches out. Several threads may use it at once.
#[derive(Debug)]
pub struct Aio {
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// Rings that nobody uses now; as many come to be as threads write at once.
    Native(Mutex<Vec<Ring>>),
    Threads(Arc<Writers>),
    Caller,
}

impl Aio {
    /// Through io_uring.
    ///
    /// Errors: `Io` if the system has none, or forbids it.
    pub fn native() -> Result<Aio> {
        let first = Ring::new()?;
        Ok(Aio {
            way: Way::Native(Mutex::new(Rank::Leaf, vec![first])),
        })
    }

    /// By whoever has a batch, one write after the other.
    pub fn by_callers() -> Aio {
        Aio { way: Way::Caller }
    }

    /// By `count` threads, which end with `stop`.
    ///
    /// Errors: `Io` if there is no thread to be had.
    pub fn by_threads(threads: &Threads, count: u64) -> Result<Aio> {
        let writers = Arc::new(Writers::new());
        for _ in 0..count {
            let own = writers.clone();
            let started = threads.start("xt_write", move || own.work());
            // Those that did start must not be waited for in vain.
            started.inspect_err(|_| writers.stop())?;
        }
        Ok(Aio {
            way: Way::Threads(writers),
        })
    }

    /// Ends its threads once they have nothing to do; later batches are written by their callers.
    pub fn stop(&self) {
        if let Way::Threads(writers) = &self.way {
            writers.stop();
        }
    }

    /// Writes a batch; what became of each write, in their order. They happen in any order. Waits
    /// until all have ended.
    pub fn write_all(&self, batch: &[WriteAt<'_>]) -> Vec<Result<()>> {
        if batch.len() < 2 {
            return batch.iter().map(WriteAt::alone).collect();
        }
        match &self.way {
            Way::Threads(writers) => writers.write_all(batch),
            Way::Caller => batch.iter().map(WriteAt::alone).collect(),
            Way::Native(idle) => {
                let ring = idle.lock().pop();
                let ring = match ring {
                    Some(ring) => Ok(ring),
                    None => Ring::new(),
                };
                // One more ring is not to be had: memory is short.
                let Ok(mut ring) = ring else {
                    return batch.iter().map(WriteAt::alone).collect();
                };
                let transferred = ring.write_all(batch);
                if ring.is_usable() {
                    idle.lock().push(ring);
                }
                let both = batch.iter().zip(transferred);
                both.map(|(write, done)| settle(write, done)).collect()
            }
        }
    }
}

/// `done` = bytes, or an errno below 0, or `None` if the ring did not get to it. What is no failure of
/// the device is written again in the plain way, which knows about short transfers.
fn settle(write: &WriteAt<'_>, done: Option<i32>) -> Result<()> {
    match done {
        Some(bytes) if bytes as usize == write.bytes.len() && bytes >= 0 => Ok(()),
        Some(failure) if failure < 0 => match -failure {
            libc::EINTR | libc::EAGAIN | libc::EINVAL | libc::EOPNOTSUPP | libc::ECANCELED => {
                write.alone()
            }
            errno => Err(Error::io("write", write.file.path(), errno)),
        },
        _ => write.alone(),
    }
}

//! A few threads that write for others: what stands in for io_uring.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::aio::WriteAt;
use super::file::File;
use super::thread::panic_text;
use crate::sync::{Arc, Condvar, Mutex, Rank};
use crate::words::{Error, Result};

pub(super) struct Writers {
    queue: Mutex<Queue>,
    wanted: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    stopped: bool,
}

/// One write of somebody who waits for it.
struct Job {
    file: Arc<dyn File>,
    bytes: *const [u8],
    offset: u64,
    number: usize,
    group: Arc<Group>,
}

// SAFETY: `bytes` is shared memory that nobody writes: the one who gave it borrows it until `group` is
// complete, which no panic keeps from happening, and whoever has the job only reads.
unsafe impl Send for Job {}

/// The writes of one batch.
struct Group {
    state: Mutex<(Vec<Result<()>>, usize)>,
    ended: Condvar,
}

impl std::fmt::Debug for Writers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.queue.lock().jobs.len();
        f.debug_struct("Writers")
            .field("waiting", &waiting)
            .finish()
    }
}

impl Job {
    fn run(self) {
        // SAFETY: see `Send`: the batch's owner waits for the group, which this job belongs to.
        let bytes = unsafe { &*self.bytes };
        // A panic here would leave a batch that never ends, or, in a caller's thread, one whose bytes go
        // while others still write them.
        let write = AssertUnwindSafe(|| self.file.write_at(bytes, self.offset));
        let result = catch_unwind(write).unwrap_or_else(|panic| {
            let text = panic_text(&*panic);
            let path = self.file.path();
            Err(Error::internal(format!(
                "a write to {path} panicked: {text}"
            )))
        });
        let mut state = self.group.state.lock();
        state.0[self.number] = result;
        state.1 -= 1;
        if state.1 == 0 {
            self.group.ended.notify_all();
        }
    }
}

impl Writers {
    pub(super) fn new() -> Writers {
        Writers {
            queue: Mutex::new(Rank::Leaf, Queue::default()),
            wanted: Condvar::new(),
        }
    }

    /// A thread's life: until `stop`.
    pub(super) fn work(&self) {
        loop {
            let job = {
                let mut queue = self.queue.lock();
                loop {
                    if let Some(job) = queue.jobs.pop_front() {
                        break job;
                    }
                    if queue.stopped {
                        return;
                    }
                    queue = self.wanted.wait(queue);
                }
            };
            job.run();
        }
    }

    pub(super) fn stop(&self) {
        self.queue.lock().stopped = true;
        self.wanted.notify_all();
    }

    pub(super) fn write_all(&self, batch: &[WriteAt<'_>]) -> Vec<Result<()>> {
        let unknown = || Err(Error::internal("a write that nobody made"));
        let results = batch.iter().map(|_| unknown()).collect();
        let group = Arc::new(Group {
            state: Mutex::new(Rank::Leaf, (results, batch.len())),
            ended: Condvar::new(),
        });
        let jobs = batch.iter().enumerate().map(|(number, write)| Job {
            file: write.file.clone(),
            bytes: write.bytes,
            offset: write.offset,
            number,
            group: group.clone(),
        });
        self.queue.lock().jobs.extend(jobs);
        self.wanted.notify_all();
        // The caller writes, too: nothing is left undone when the threads have ended.
        loop {
            let job = self.queue.lock().jobs.pop_front();
            match job {
                Some(job) => job.run(),
                None => break,
            }
        }
        let mut state = group.state.lock();
        while state.1 > 0 {
            state = group.ended.wait(state);
        }
        std::mem::take(&mut state.0)
    }
}

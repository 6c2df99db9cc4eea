//! Room in the log, asked for before the first latch (protocols M2, L4).
//!
//! What was admitted and is not yet appended counts as used, in the file and in the buffer. So an
//! `append` finds its room, and nothing overwrites log that recovery needs.

use std::time::Duration;

use super::file::BLOCK;
use super::held::{DROP_ROLLBACK_BYTES, FILE_OP_BYTES};
use super::log::Log;
use crate::format::redo_file::OFF_RECORDS;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, Rank, order};
use crate::words::limits::MTR_BYTES_MAX;
use crate::words::{Error, Lsn, Result};

/// Who asks: the limit of the checkpoint age depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Statements: up to InnoDB's synchronous limit.
    Statement,
    /// Changes of the dictionary: as statements; but while the log is kept for a missing file, nearly all
    /// of it, since dropping that table is the way out. Only drops begin where statements may not.
    Dictionary,
    /// Rollback, purge, recovery: up to the log's capacity; while it is kept, somewhat beyond what changes
    /// of the dictionary may use, so that these can be undone.
    System,
    /// The checkpoint itself and file operations: all but the last blocks.
    Checkpoint,
}

/// Room for bytes that may be appended; given back on drop.
#[derive(Debug)]
#[must_use = "room is given back at once if the credit is dropped"]
pub struct Credit<'a> {
    log: &'a Log,
    bytes: u64,
}

impl Credit<'_> {
    /// Bytes that were admitted.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Credit<'_> {
    fn drop(&mut self) {
        self.log
            .room
            .admitted
            .fetch_sub(self.bytes, Ordering::SeqCst);
        self.log.room.wake();
    }
}

/// Added to each request: a FILE_MODIFY may stand before the mini-transaction.
const OVERHEAD: u64 = 1024;
/// Room in the ring that is not admitted: for checkpoints and file operations.
const RING_RESERVE: u64 = 128 << 10;
/// Room in the file behind the end: its last block is written whole, and a block of zeros after it.
const FILE_RESERVE: u64 = 4 * BLOCK as u64;
/// A waiter looks by itself so often, should nobody wake it.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What was admitted, and who waits.
#[derive(Debug)]
pub(super) struct Room {
    admitted: AtomicU64,
    waiting: AtomicU32,
    waits: AtomicU64,
    mutex: Mutex<()>,
    changed: Condvar,
}

impl Room {
    pub(super) fn new() -> Room {
        Room {
            admitted: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            waits: AtomicU64::new(0),
            mutex: Mutex::new(Rank::Leaf, ()),
            changed: Condvar::new(),
        }
    }

    /// Bytes that may still be appended.
    pub(super) fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::SeqCst)
    }

    /// Something changed in the waiters' favour.
    #[inline]
    pub(super) fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.mutex.lock());
            self.changed.notify_all();
        }
    }
}

/// What a request lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lacks {
    Nothing,
    /// The buffer must be written.
    Buffer,
    /// A checkpoint must be made.
    File,
}

impl Log {
    /// Waits until `bytes` may be appended by `class`: in the buffer and in the file. No page or
    /// tree latch is held.
    ///
    /// Errors: `Error::Stopped` when the log is frozen, `Error::LogRoom` if no checkpoint could ever
    /// make so much room, `Error::LogHeld` if none can before a missing file is back or dropped.
    pub fn admit(&self, bytes: u64, class: Class) -> Result<Credit<'_>> {
        self.admit_while(bytes, class, &|| Ok(()))
    }

    /// As `admit`. `go_on` is asked now and then while it waits; what it gives ends the wait: pages that
    /// cannot be written make no room.
    ///
    /// Errors: as `admit`, and those of `go_on`.
    pub fn admit_while(
        &self,
        bytes: u64,
        class: Class,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Credit<'_>> {
        debug_assert!(
            !order::holds_at_or_above(Rank::Tree),
            "log room is asked for before latches"
        );
        let bytes = bytes + OVERHEAD;
        self.check_held(bytes, class)?;
        if bytes > self.limit(class) || bytes > self.ring.size() - RING_RESERVE {
            return Err(Error::LogRoom);
        }
        self.ask_for_checkpoint();
        if let Ok(credit) = self.try_admit(bytes, class) {
            return Ok(credit);
        }
        self.room.waits.fetch_add(1, Ordering::Relaxed);
        self.room.waiting.fetch_add(1, Ordering::SeqCst);
        let result = self.admit_waiting(bytes, class, go_on);
        self.room.waiting.fetch_sub(1, Ordering::SeqCst);
        result
    }

    fn admit_waiting(
        &self,
        bytes: u64,
        class: Class,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<Credit<'_>> {
        loop {
            self.check_frozen()?;
            go_on()?;
            self.check_held(bytes, class)?;
            match self.try_admit(bytes, class) {
                Ok(credit) => return Ok(credit),
                Err(Lacks::Buffer) if self.written_lsn().0 < self.to_lsn(self.ring.filled()).0 => {
                    self.write_up_to(self.to_lsn(self.ring.filled()), false)?;
                    continue;
                }
                Err(Lacks::File) => self.call_hook(true),
                Err(_) => {}
            }
            let guard = self.room.mutex.lock();
            // Under the mutex: whoever makes room after this look wakes us.
            if self.lacks(bytes, class, 0) != Lacks::Nothing && !self.is_frozen() {
                drop(self.room.changed.wait_for(guard, LOOK_AGAIN));
            }
        }
    }

    fn try_admit(&self, bytes: u64, class: Class) -> Result<Credit<'_>, Lacks> {
        // Add first, then look: of two that look at once, both see both.
        self.room.admitted.fetch_add(bytes, Ordering::SeqCst);
        match self.lacks(0, class, 0) {
            Lacks::Nothing => Ok(Credit { log: self, bytes }),
            lacks => {
                self.room.admitted.fetch_sub(bytes, Ordering::SeqCst);
                Err(lacks)
            }
        }
    }

    fn lacks(&self, more: u64, class: Class, slack: u64) -> Lacks {
        // What only grows and is taken away comes first: a checkpoint or a write by others meanwhile
        // must not pass the end. Older values ask for more room than is needed, and the caller looks
        // again.
        let (checkpoint, consumed) = (self.checkpoint_lsn(), self.ring.consumed());
        // `admitted` before the LSN: an append moves bytes from the one to the other, the LSN
        // first, so they may be counted twice, but never not at all.
        let admitted = self.room.admitted.load(Ordering::SeqCst);
        let end = self.ring.position() + admitted + more + slack;
        if self.to_lsn(end).0 - checkpoint.0 > self.limit(class) {
            return Lacks::File;
        }
        if end - consumed > self.ring.size() - RING_RESERVE {
            return Lacks::Buffer;
        }
        Lacks::Nothing
    }

    pub(super) fn limit(&self, class: Class) -> u64 {
        match class {
            Class::Dictionary if self.held_lsn().is_some() => self
                .hard_limit()
                .saturating_sub(FILE_OP_BYTES + DROP_ROLLBACK_BYTES),
            Class::Statement | Class::Dictionary => self.held.statement_limit(),
            Class::System if self.held_lsn().is_some() => {
                self.hard_limit().saturating_sub(FILE_OP_BYTES)
            }
            Class::System => self.system_limit(),
            Class::Checkpoint => self.hard_limit(),
        }
    }

    /// The age up to which rollback, purge and recovery go in a log that is not kept.
    pub(super) fn system_limit(&self) -> u64 {
        self.capacity().log_capacity - MTR_BYTES_MAX as u64 / 4
    }

    /// The age that nothing passes.
    pub(super) fn hard_limit(&self) -> u64 {
        self.file_size() - OFF_RECORDS - FILE_RESERVE
    }

    /// Asks for a checkpoint if the age says so; wakes somebody at most.
    #[inline]
    fn ask_for_checkpoint(&self) {
        // Where it is kept anyway, no checkpoint helps.
        let is_kept = |from: Lsn| self.checkpoint_lsn() >= from;
        if self.age() > self.capacity().max_modified_age_async
            && !self.held_lsn().is_some_and(is_kept)
        {
            self.call_hook(false);
        }
    }

    #[cold]
    fn call_hook(&self, urgent: bool) {
        if let Some(hook) = self.hook.get() {
            let target = self
                .lsn()
                .0
                .saturating_sub(self.capacity().max_modified_age_async);
            hook.checkpoint_needed(Lsn(target), urgent);
        }
    }

    /// How often `admit` had to wait (status Innodb_log_waits).
    pub fn log_waits(&self) -> u64 {
        self.room.waits.load(Ordering::Relaxed)
    }
}

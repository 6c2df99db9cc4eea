//! What keeps the checkpoint back for longer than writing pages can help: records that wait for a file.
//!
//! The log is finite. When the room behind the kept part ends, whoever asks for more gets an error that
//! says why, since waiting would be for ever. Statements stop early, so that what they began can be
//! undone, and a table dropped, in what is left.

use super::admission::Class;
use super::log::Log;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, Rank};
use crate::words::limits::MTR_BYTES_MAX;
use crate::words::{Error, Lsn, Result};

/// "Nothing is kept."
const NOT_HELD: u64 = u64::MAX;
/// Statements leave half of the room that there is, and no less than this, to rollback: undoing writes
/// no more log than doing.
const ROLLBACK_BYTES_MIN: u64 = MTR_BYTES_MAX as u64;
/// Left to the checkpoint and to file operations by all others.
pub(super) const FILE_OP_BYTES: u64 = 128 << 10;
/// Left to the rollback of a DROP that finds no room, by statements that drop tables.
pub(super) const DROP_ROLLBACK_BYTES: u64 = MTR_BYTES_MAX as u64 / 4;

/// Why and from where on the log is kept.
#[derive(Debug)]
pub(super) struct Held {
    lsn: AtomicU64,
    /// The age at which statements stop.
    statement_limit: AtomicU64,
    why: Mutex<Box<str>>,
}

impl Held {
    pub(super) fn none(statement_limit: u64) -> Held {
        Held {
            lsn: AtomicU64::new(NOT_HELD),
            statement_limit: AtomicU64::new(statement_limit),
            why: Mutex::new(Rank::Leaf, "".into()),
        }
    }

    pub(super) fn statement_limit(&self) -> u64 {
        self.statement_limit.load(Ordering::Acquire)
    }
}

impl Log {
    /// From now on no checkpoint passes the LSN, whatever is flushed, for the reason given; `None`: nothing
    /// is in its way any more. The caller's checkpoints see to it; here, those who wait in vain get an
    /// error.
    pub fn hold_back(&self, from: Option<(Lsn, &str)>) {
        let mut limit = self.capacity().statement_age();
        if let Some((lsn, why)) = from {
            *self.held.why.lock() = why.into();
            let most = self.system_limit();
            let free = most.saturating_sub(self.lsn().0.saturating_sub(lsn.0));
            limit = limit.min(most.saturating_sub(ROLLBACK_BYTES_MIN.max(free / 2)));
        }
        self.held.statement_limit.store(limit, Ordering::Release);
        let lsn = from.map_or(NOT_HELD, |(lsn, _)| lsn.0);
        self.held.lsn.store(lsn, Ordering::Release);
        self.room.wake();
    }

    /// Where the log is kept from, if it is kept.
    #[inline]
    pub fn held_lsn(&self) -> Option<Lsn> {
        match self.held.lsn.load(Ordering::Acquire) {
            NOT_HELD => None,
            lsn => Some(Lsn(lsn)),
        }
    }

    /// Errors: `LogHeld` if not even a checkpoint as far as it may go would make room for `bytes`.
    #[inline]
    pub(super) fn check_held(&self, bytes: u64, class: Class) -> Result<()> {
        match self.held_lsn() {
            Some(from) if self.lsn().0 + bytes - from.0 > self.limit(class) => {
                Err(Error::LogHeld(self.held.why.lock().clone()))
            }
            _ => Ok(()),
        }
    }

    /// Asked before what begins without any other admission as a statement: purge, changes of the
    /// dictionary that make no room.
    ///
    /// Errors: `LogHeld` if what is left of a log that is kept is for rollback, and for dropping tables.
    pub fn check_statement_room(&self) -> Result<()> {
        self.check_held(0, Class::Statement)
    }
}

//! The one error type. `abi/status.rs` maps it to codes; no other table does.

use std::fmt;

use super::ids::{PageId, SpaceId};

/// Shorthand for results of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong and is not a bug.
///
/// Variants that occur on hot paths own no heap memory; those that describe damage or bad input
/// box what they name.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No row has the key.
    KeyNotFound,
    /// The scan is over.
    EndOfFile,
    /// A unique index has the key already. `index` = position in the table's list of indexes.
    DuplicateKey {
        /// Position of the index in `schema::Table::indexes`.
        index: u16,
    },
    /// The row changed after the read view was made (innodb_snapshot_isolation).
    RecordChanged,
    /// The lock was not granted in time, or at once under NOWAIT.
    LockWaitTimeout,
    /// This transaction was chosen to break a deadlock; it must be rolled back.
    Deadlock,
    /// The lock memory limit is reached; the transaction must be rolled back.
    LockTableFull,
    /// The session was interrupted by the host.
    Interrupted,
    /// The transaction was rolled back by the engine; only a rollback is accepted.
    TransactionAborted,
    /// The read view is older than the table's definition.
    TableDefinitionChanged,
    /// No savepoint has that name.
    NoSavepoint,
    /// The counter of an AUTO_INCREMENT column would pass the column's range.
    AutoincOutOfRange,
    /// An update that changes nothing; the caller treats it as success.
    RecordIsTheSame,
    /// A row does not fit in half a page even with its long columns stored apart.
    RowTooLarge {
        /// Size of the record in bytes.
        size: u32,
        /// Largest size that fits.
        size_max: u32,
    },
    /// A key part is longer than the row format allows.
    KeyTooLong {
        /// Largest number of bytes.
        size_max: u32,
    },
    /// An undo record does not fit in a page.
    UndoRecordTooLarge,
    /// All undo slots of the rollback segments are taken.
    TooManyTransactions,
    /// A tablespace cannot grow.
    NoSpace(SpaceId),
    /// Pages cannot be written for want of room on the device: says which file.
    DeviceFull(Box<str>),
    /// A mini-transaction asked for more log than there is room for; callers re-admit.
    LogRoom,
    /// The redo log is kept for a missing file, and what is left of it is not for this: says which file.
    LogHeld(Box<str>),
    /// All frames of the buffer pool are pinned.
    BufferPoolFull,
    /// The page is not in the pool and the caller may not read now.
    WouldBlock,
    /// The engine stopped to protect the files; reason and remedy as text.
    Stopped(Box<str>),
    /// A data file could not be written or synced: until the next start nothing is read from it or written
    /// to it (F5). Its path.
    FileFailed(Box<str>),
    /// The instance or the table may not be written.
    ReadOnly,
    /// No such table in the dictionary.
    NoSuchTable(Box<str>),
    /// The table is there already.
    TableExists(Box<str>),
    /// The tablespace file of a table is missing or discarded.
    TablespaceMissing(Box<str>),
    /// A tablespace file is in the way.
    TablespaceExists(Box<str>),
    /// Something holds the object; says who.
    Busy(Box<str>),
    /// Known to the format or to SQL, not to this version.
    Unsupported(Box<str>),
    /// The host cannot compare by a collation that an index is ordered by; says which and where.
    CollationUnknown(Box<str>),
    /// The caller's argument is not acceptable; says which and why.
    Invalid(Box<str>),
    /// Bytes from disk contradict the format.
    Corrupt(Box<Corruption>),
    /// The operating system refused.
    Io(Box<IoFailure>),
    /// No memory.
    OutOfMemory,
    /// A bug: an internal promise did not hold.
    Internal(Box<str>),
}

/// Where damage was found, and what is wrong. Layers add what they know on the way up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corruption {
    /// The page, if one is known.
    pub page: Option<PageId>,
    /// Path of the file, empty until `space` adds it.
    pub file: Box<str>,
    /// Name of the table, empty until `dict` or `row` adds it.
    pub table: Box<str>,
    /// Name of the index, empty until `tree` or `row` adds it.
    pub index: Box<str>,
    /// What contradicts what, in one sentence.
    pub why: Box<str>,
}

/// A failed call to the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoFailure {
    /// What was attempted: "read", "write", "fsync", …
    pub operation: &'static str,
    /// On which file.
    pub path: Box<str>,
    /// errno, or 0 for a short transfer.
    pub errno: i32,
}

impl Error {
    /// Damage on `page`.
    #[cold]
    pub fn corrupt(page: PageId, why: impl Into<Box<str>>) -> Error {
        Error::Corrupt(Box::new(Corruption {
            page: Some(page),
            why: why.into(),
            ..Corruption::default()
        }))
    }

    /// Damage that is not (yet) tied to a page.
    #[cold]
    pub fn corrupt_bytes(why: impl Into<Box<str>>) -> Error {
        Error::Corrupt(Box::new(Corruption {
            why: why.into(),
            ..Corruption::default()
        }))
    }

    /// A bug in the engine.
    #[cold]
    pub fn internal(why: impl Into<Box<str>>) -> Error {
        Error::Internal(why.into())
    }

    /// An unacceptable argument.
    #[cold]
    pub fn invalid(why: impl Into<Box<str>>) -> Error {
        Error::Invalid(why.into())
    }

    /// A feature that this version lacks.
    #[cold]
    pub fn unsupported(what: impl Into<Box<str>>) -> Error {
        Error::Unsupported(what.into())
    }

    /// A failed system call.
    #[cold]
    pub fn io(operation: &'static str, path: &str, errno: i32) -> Error {
        Error::Io(Box::new(IoFailure {
            operation,
            path: path.into(),
            errno,
        }))
    }

    /// Names the page of a corruption that has none yet.
    pub fn at_page(self, page: PageId) -> Error {
        self.adding(|c| {
            c.page.get_or_insert(page);
        })
    }

    /// Names the file of a corruption that has none yet.
    pub fn in_file(self, file: &str) -> Error {
        self.adding(|c| fill(&mut c.file, file))
    }

    /// Names table and index of a corruption that has none yet.
    pub fn in_index(self, table: &str, index: &str) -> Error {
        self.adding(|c| {
            fill(&mut c.table, table);
            fill(&mut c.index, index);
        })
    }

    fn adding(mut self, add: impl FnOnce(&mut Corruption)) -> Error {
        if let Error::Corrupt(c) = &mut self {
            add(c);
        }
        self
    }
}

fn fill(slot: &mut Box<str>, text: &str) {
    if slot.is_empty() {
        *slot = text.into();
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::KeyNotFound => f.write_str("no row has this key"),
            Error::EndOfFile => f.write_str("end of the index"),
            Error::DuplicateKey { index } => write!(f, "duplicate key in index no. {index}"),
            Error::RecordChanged => f.write_str("the row changed since the snapshot was taken"),
            Error::LockWaitTimeout => {
                f.write_str("lock wait timeout exceeded; try restarting the statement")
            }
            Error::Deadlock => f.write_str("deadlock found; try restarting the transaction"),
            Error::LockTableFull => {
                f.write_str("the lock memory limit is reached; raise innodb_buffer_pool_size")
            }
            Error::Interrupted => f.write_str("the statement was interrupted"),
            Error::TransactionAborted => {
                f.write_str("the transaction was rolled back; issue ROLLBACK first")
            }
            Error::TableDefinitionChanged => {
                f.write_str("the table's definition changed; restart the transaction")
            }
            Error::NoSavepoint => f.write_str("no savepoint of that name"),
            Error::AutoincOutOfRange => f.write_str("the AUTO_INCREMENT column is exhausted"),
            Error::RecordIsTheSame => f.write_str("the update changes nothing"),
            Error::RowTooLarge { size, size_max } => write!(
                f,
                "row of {size} bytes is too large, at most {size_max} fit in a page; \
                 use TEXT or BLOB columns, or a larger innodb_page_size"
            ),
            Error::KeyTooLong { size_max } => {
                write!(f, "index column too long, at most {size_max} bytes")
            }
            Error::UndoRecordTooLarge => f.write_str("the undo record does not fit in a page"),
            Error::TooManyTransactions => f.write_str("too many concurrent transactions"),
            Error::NoSpace(space) => {
                write!(
                    f,
                    "tablespace {space} cannot grow: the device or the file is full"
                )
            }
            Error::DeviceFull(path) => write!(
                f,
                "{path} cannot be written: the device is full; make room, then try again"
            ),
            Error::LogRoom => f.write_str("the redo log has no room; a checkpoint is needed"),
            Error::LogHeld(what) => write!(f, "the redo log is full, since it is kept for {what}"),
            Error::BufferPoolFull => f.write_str(
                "every page of the buffer pool is in use; raise innodb_buffer_pool_size",
            ),
            Error::WouldBlock => f.write_str("the operation would have to wait"),
            Error::Stopped(why) => write!(f, "the engine is stopped: {why}"),
            Error::FileFailed(path) => {
                write!(f, "{path} failed to be written; restart to recover it")
            }
            Error::ReadOnly => f.write_str("the engine or the table is read-only"),
            Error::NoSuchTable(name) => write!(f, "table {name} does not exist in the engine"),
            Error::TableExists(name) => write!(f, "table {name} exists already"),
            Error::TablespaceMissing(name) => {
                write!(f, "the tablespace of table {name} is missing or discarded")
            }
            Error::TablespaceExists(name) => write!(f, "tablespace {name} exists already"),
            Error::Busy(why) => write!(f, "busy: {why}"),
            Error::Unsupported(what) => write!(f, "not supported: {what}"),
            Error::CollationUnknown(what) => write!(f, "unknown to the host: {what}"),
            Error::Invalid(why) => f.write_str(why),
            Error::Corrupt(c) => c.fmt(f),
            Error::Io(e) => e.fmt(f),
            Error::OutOfMemory => f.write_str("out of memory"),
            Error::Internal(why) => write!(f, "internal error (a bug, please report): {why}"),
        }
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corruption")?;
        if !self.file.is_empty() {
            write!(f, " in file {}", self.file)?;
        }
        if let Some(page) = self.page {
            write!(f, " page {} of space {}", page.page, page.space)?;
        }
        if !self.table.is_empty() {
            write!(f, ", table {}", self.table)?;
        }
        if !self.index.is_empty() {
            write!(f, ", index {}", self.index)?;
        }
        write!(f, ": {}", self.why)
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} failed: ", self.operation, self.path)?;
        match self.errno {
            0 => f.write_str("fewer bytes than asked for"),
            errno => write!(f, "{}", std::io::Error::from_raw_os_error(errno)),
        }
    }
}

impl std::error::Error for Error {}

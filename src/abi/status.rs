//! The one table from errors to codes.

use super::c;
use crate::words::Error;

/// The code of an error; the boundary's own codes come from `Fault::new`.
pub(super) fn code_of(error: &Error) -> c::xt_status {
    let code = match error {
        Error::KeyNotFound => c::XT_KEY_NOT_FOUND,
        Error::EndOfFile => c::XT_END_OF_FILE,
        Error::DuplicateKey { .. } => c::XT_DUPLICATE_KEY,
        Error::RecordChanged => c::XT_RECORD_CHANGED,
        Error::LockWaitTimeout => c::XT_LOCK_WAIT_TIMEOUT,
        Error::Deadlock => c::XT_DEADLOCK,
        Error::LockTableFull => c::XT_LOCK_TABLE_FULL,
        Error::Interrupted => c::XT_INTERRUPTED,
        Error::TransactionAborted => c::XT_TRX_ABORTED,
        Error::TableDefinitionChanged => c::XT_TABLE_DEF_CHANGED,
        Error::NoSavepoint => c::XT_NO_SAVEPOINT,
        Error::AutoincOutOfRange => c::XT_AUTOINC_RANGE,
        Error::RecordIsTheSame => c::XT_RECORD_IS_THE_SAME,
        Error::RowTooLarge { .. } => c::XT_ROW_TOO_BIG,
        Error::KeyTooLong { .. } => c::XT_KEY_TOO_LONG,
        Error::UndoRecordTooLarge => c::XT_UNDO_RECORD_TOO_BIG,
        Error::TooManyTransactions => c::XT_TOO_MANY_TRANSACTIONS,
        Error::NoSpace(_) | Error::DeviceFull(_) | Error::LogHeld(_) => c::XT_FILE_FULL,
        Error::LogRoom | Error::BufferPoolFull => c::XT_GENERIC,
        Error::Stopped(_) | Error::FileFailed(_) => c::XT_STOPPED,
        Error::ReadOnly => c::XT_READ_ONLY,
        Error::NoSuchTable(_) => c::XT_NO_SUCH_TABLE,
        Error::TableExists(_) => c::XT_TABLE_EXISTS,
        Error::TablespaceMissing(_) => c::XT_TABLESPACE_MISSING,
        Error::TablespaceExists(_) => c::XT_TABLESPACE_EXISTS,
        Error::Busy(_) => c::XT_BUSY,
        Error::Unsupported(_) => c::XT_UNSUPPORTED,
        Error::CollationUnknown(_) => c::XT_COLLATION_UNKNOWN,
        Error::Invalid(_) => c::XT_INVALID,
        Error::Corrupt(_) => c::XT_CRASHED,
        Error::Io(_) => c::XT_IO,
        Error::OutOfMemory => c::XT_OUT_OF_MEMORY,
        // `WouldBlock` stays inside: a layer that lets it out has a bug.
        Error::WouldBlock | Error::Internal(_) => c::XT_INTERNAL,
    };
    code as c::xt_status
}

//! Rollback segments and undo logs: what a transaction needs to go back, and readers to look back.
//!
//! Knows undo pages, rollback segment headers and history lists; knows nothing of transactions'
//! states or of rows. Whoever calls says which transaction, which commit number, what stands in a
//! record.
//!
//! Invariants
//!  1. A transaction has at most one undo log, and an undo segment at most one log that is not
//!     committed: the newest on its first page.
//!  2. A page of a log that is not the first holds at least one record: a page and its first record
//!     are one mini-transaction, since the reference takes an empty last page for an empty log.
//!  3. A history list is in order of commit numbers: the number is drawn and the log linked under
//!     one hold of the rollback segment's latch and header page.
//!  4. `Rseg`'s cached facts change under its latch together with the header page that holds them.
//!  5. Everything that may fail – latching, parsing, allocating – comes before the first changed byte.
//!
//! Latches: Rseg, then UndoPage: the header page, first pages, later pages; then FspPage.
//! Crash:   a log found ACTIVE is rolled back, PREPARED kept; a half freed log has NEEDS_PURGE = 0.
//! Read:    rseg.rs, segment.rs, append.rs, read.rs, truncate.rs, history.rs, apply.rs.
#![forbid(unsafe_code)]

/// UNDO_INIT and UNDO_APPEND as pure functions, for recovery too.
pub mod apply;

/// Appending records.
pub mod append;

/// History lists: committing into them, and taking out of them what purge is done with.
pub mod history;

mod latch;

#[cfg(test)]
mod late_tests;

/// PREPARED and back.
pub mod prepare;

/// Reading records: by roll pointer, from the end, from the beginning.
pub mod read;

/// What a start finds.
pub mod resurrect;

/// Rollback segments.
pub mod rseg;

/// Undo segments: taking and reusing them.
pub mod segment;

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

/// Cutting the end of a log.
pub mod truncate;

pub use append::Needs;
pub use read::Position;
pub use rseg::{Oldest, Rseg, Rsegs};
pub use segment::UndoLog;

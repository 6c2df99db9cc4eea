//! Removing what nobody can see: undo logs in history order, and by them delete-marked records and old
//! BLOBs.
//!
//! Knows history lists, views and the commit clock; what a record means for rows is a
//! `RecordPurger`'s business.
//!
//! Invariants
//!  1. Undo logs are dealt with in the order of commit numbers, and only those below the oldest view
//!     (C5).
//!  2. A log leaves its history list only when each of its records was handed over; after a crash
//!     they are handed over again, which must find nothing to do.
//!  3. Pages are freed step by step: no mini-transaction grows with the log.
//!
//! Latches: none held between two records.
//! Crash:   see 2.
//! Read:    coordinator.rs, rows.rs.
#![forbid(unsafe_code)]

mod coordinator;
#[cfg(test)]
mod row_tests;
mod rows;
mod runs;
#[cfg(test)]
mod tests;

pub use coordinator::{Batch, Control, Coordinator, PurgeRecord, RecordPurger};
pub use rows::RowPurger;

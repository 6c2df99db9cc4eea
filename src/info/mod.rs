//! What can be looked at: INFORMATION_SCHEMA tables, status variables, the monitor.
//!
//! Knows the engine and reads it; changes nothing but the counters that a *_RESET table sets back.
//! Knows nothing of C.
//!
//! Invariants
//!  1. A row has exactly the values that its table's columns announce, in their order and kind.
//!  2. INNODB_TRX, INNODB_LOCKS and INNODB_LOCK_WAITS come from one snapshot of the engine.
//!  3. A sink is called with no latch held.
//!
//! Latches: those of the snapshot, released before the first row is emitted.
//! Crash:   nothing here is on disk.
//! Read:    tables.rs, fill.rs, status.rs, monitor.rs.

#![forbid(unsafe_code)]

mod fill;
mod monitor;
mod status;
mod tables;
#[cfg(test)]
mod tests;

pub use fill::fill;
pub use monitor::monitor_text;
pub use status::status;
pub use tables::{Column, ColumnType, TABLES, Table, find};

use crate::words::Result;

/// One value of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A number with a fraction.
    Double(f64),
    /// Text.
    Text(&'a str),
    /// Position in the column's list of names.
    Enum(u32),
    /// Seconds since the epoch.
    DateTime(u64),
}

/// Takes rows; an error stops the emission and comes back to the caller.
pub type Sink<'s> = dyn FnMut(&[Value<'_>]) -> Result<()> + 's;

//! Record locks and table locks: who holds, who waits, who must be rolled back.
//!
//! Knows pages, heap numbers, tables and owners; knows nothing of records, trees or visibility.
//! Implicit locks (a row's DB_TRX_ID) are made explicit by `row/lock_row`.
//!
//! Invariants
//!  1. A granted lock never conflicts with an earlier granted lock of another owner.
//!  2. A waiting lock stands behind at least one lock, granted or waiting, it conflicts with.
//!  3. An owner waits for at most one lock.
//!  4. Every page or table on which an owner has a lock stands in the owner's list (it may also
//!     name places where nothing is left).
//!
//! Latches: the page latch comes before the shard latch, the shard before the owner's list
//!          (docs/latch-order.md, ranks 70 and 72). Two shards only in `inherit`, in shard order.
//! Crash:   nothing here is on disk; recovery makes the locks of prepared transactions again.
//! Read:    modes.rs, owner.rs, record.rs, queue.rs, table.rs, wait.rs, deadlock.rs, inherit.rs, memory.rs, predicate.rs.

#![forbid(unsafe_code)]

mod bitmap;
mod deadlock;
mod inherit;
mod memory;
mod modes;
mod owner;
mod predicate;
mod queue;
mod record;
mod table;
#[cfg(test)]
mod tests;
mod wait;

pub use crate::page::list::Moved;
pub use modes::{RecordKind, RecordMode, Strength, TableMode};
pub use owner::{Owner, OwnerId, Place};
pub use predicate::{Predicate, PredicateLock, Rectangle, Relation};
pub use record::{IdHash, LockTable, RecordLockInfo};
pub use table::TableLockInfo;
pub use wait::{Outcome, Target, Wait, WaitEnd};

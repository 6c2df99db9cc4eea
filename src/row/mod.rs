//! Rows: the only place where locks, undo and trees meet.
//!
//! Knows the host's row images, tables' trees and transactions; knows nothing of sessions, handles
//! or the dictionary's own storage. A caller gives an `Op` (transaction, patience) and the trees.
//!
//! Invariants
//!  1. A row's change is: clustered leaf latched, locks held, undo appended in a nested
//!     mini-transaction (M3), the leaf changed. Secondary entries follow, each in its own.
//!  2. A wait for a lock happens with no latch held and nothing changed; afterwards everything is
//!     looked up and checked again.
//!  3. A secondary entry is delete-marked or not as the newest version of its row says, or is about
//!     to be made so by the transaction that wrote that version.
//!  4. Rollback and purge take "the row is absent, or its DB_ROLL_PTR is another" as done already.
//!
//! Latches: one leaf of a secondary tree, then pages of the clustered tree, then undo pages.
//! Crash:   between the mini-transactions of one row: rollback finds the undo record and undoes
//!          what of the row's change is there.
//! Read:    codec.rs, entry.rs, op.rs, insert.rs, update.rs, delete.rs, lock_row.rs, version.rs,
//!          read.rs, scan.rs, point.rs, examine.rs, agree.rs, rollback.rs, purge.rs, buffered.rs,
//!          bulk.rs, maker.rs, sort.rs, sort_run.rs, observer.rs.

#![forbid(unsafe_code)]

mod agree;
mod autoinc;
mod buffered;
mod bulk;
#[cfg(test)]
mod bulk_tests;
#[cfg(test)]
mod class_tests;
mod codec;
mod convert;
mod delete;
mod entry;
mod examine;
mod fixed;
mod insert;
mod key;
mod lock_row;
mod maker;
mod observer;
#[cfg(test)]
mod observer_tests;
mod offpage;
mod op;
mod place;
mod point;
mod purge;
mod read;
mod remove;
mod rollback;
mod scan;
mod secondary;
mod sort;
mod sort_run;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod undo_row;
mod update;
mod version;

pub use agree::{Agreement, Disagreement};
pub use autoinc::{counter, push_counter, set_counter};
pub use buffered::{Merged, merge_change_buffer};
pub use bulk::{BulkLoad, LoadError, UniqueCheck};
pub use codec::Template;
pub use delete::delete;
pub use insert::{InsertMode, insert, insert_tuple};
pub use lock_row::lock_table;
pub use maker::{EntryMaker, Leaf};
pub use observer::{IndexObserver, Observed};
pub use op::{Op, Patience, Workspace};
pub use point::read_key;
pub use purge::{Purging, purge_record};
pub use read::{Find, Locking, Reader, Rows};
pub use remove::{DictTables, HasTrees, Tables};
pub use rollback::{rollback, rollback_to, rollback_unless};
pub use scan::{Cursor, Start};
pub use sort::{Item, Sorted, Sorter};
pub use sort_run::SortPlace;
pub use update::{update, update_fields};

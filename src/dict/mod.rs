//! The dictionary: SYS_TABLES and its companions, and the open tables made from them.
//!
//! Knows the dictionary's rows, trees and tablespaces; knows nothing of users' rows. `ddl` changes
//! the dictionary through `write`; everybody else asks `Dict` for an open table.
//!
//! Invariants
//!  1. An `OpenTable` never changes its definition: DDL retires it and a new one is loaded.
//!  2. A table is in the cache by name and by id, or by neither.
//!  3. Loading and changing descriptions exclude each other by the `DictOperation` latch, so a load
//!     sees whole definitions only; delete-marked rows do not exist for it.
//!  4. Damage in one table's rows or file is an error of that table alone.
//!  5. The counters of the dictionary header never go back; an id is used only after the header
//!     that says so is in the log.
//!
//! Latches: DictOperation, then the shards of the cache (one at a time), then trees and pages.
//! Crash:   SYS_* rows change under undo like any row; `drop_tree` may be repeated.
//! Read:    system_tables.rs, boot.rs, load.rs, instant.rs, open_table.rs, cache.rs, drop_tree.rs,
//!          write.rs, rows.rs, create.rs, describe.rs.

#![forbid(unsafe_code)]

/// The dictionary header and the tables that no row describes.
pub mod boot;

/// Open tables by name and id.
pub mod cache;

/// The system tablespace of a new instance.
pub mod create;

/// A table as the host would lay it out, for tables without an SQL definition.
pub mod describe;

/// Freeing an index's tree, or a table's file.
pub mod drop_tree;

mod instant;
mod limit;
mod load;

/// A table that can be read and written.
pub mod open_table;

/// From a definition to rows of SYS_*.
pub mod rows;

/// The rows of SYS_*.
pub mod system_tables;

/// Changing rows of SYS_*.
pub mod write;

#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use boot::Counters;
pub use cache::{Dict, DictGuard};
pub use open_table::{InUse, OpenTable, Statistics};

//! An index page: its directory and records, and the changes that the redo log names.
//!
//! Pure functions over the bytes of one page; knows indexes and values, knows nothing of trees,
//! latches or files. The functions that change a page are those that recovery applies.
//!
//! Invariants
//!  1. No byte of a page is trusted: every offset, length and count is checked, every walk is
//!     bounded, and a contradiction is `Error::Corrupt`.
//!  2. Check first, then change: a function that fails has changed nothing.
//!  3. What a change does to the page is exactly what its log record does to the page in
//!     recovery: both go through `apply`.
//!  4. An insert takes the head of the free list or the top of the heap, nothing else.
//!
//! Latches: the caller holds the page's latch for as long as it uses the bytes.
//! Crash:   a change is complete in the log or not at all (mini-transaction).
//! Read:    layout.rs, offsets.rs, record.rs, search.rs, apply.rs, insert.rs, delete.rs, update.rs,
//!          list.rs, split_point.rs, build.rs, instant.rs, validate.rs; logged.rs is how a tree calls them.

#![forbid(unsafe_code)]

pub mod apply;
pub mod build;
pub mod delete;
pub mod image;
pub mod insert;
pub mod instant;
pub mod layout;
pub mod list;
pub mod logged;
pub mod offsets;
pub mod record;
pub mod search;
pub mod space;
pub mod split_point;
pub mod update;
pub mod validate;
pub mod write;

pub use build::PageBuilder;
pub use image::RecordImage;
pub use insert::Scratch;
pub use layout::RecOffset;
pub use list::Moved;
pub use offsets::Offsets;
pub use record::RecordView;
pub use search::{Found, SearchMode, search};
pub use split_point::{Side, SplitPoint, split_point};
pub use validate::validate;
pub use write::PageWrite;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_golden;
#[cfg(test)]
mod tests_log;

//! The byte layouts of InnoDB's files: parse, build, checksum.
//!
//! Knows bytes and the reference documents; does no I/O, holds no latch, keeps no state. Operations
//! *inside* a page (search, insert, list walks over several pages) stand in layers above.
//!
//! Invariants
//!  1. No function panics on bytes that came from disk or from the log: a contradiction is
//!     `Error::Corrupt`. Functions that panic say so; they take fixed offsets of a whole page.
//!  2. Parsing and building are inverse: bytes cut from files of a stock server come back
//!     unchanged (`format/tests.rs`).
//!  3. Unused bytes are written as the reference writes them, mostly zero, never left over.
//!
//! Latches: none.
//! Crash:   layouts only; who may trust which field after a crash is said at the field.
//! Read:    fil.rs and checksum.rs (every page), fsp.rs, list.rs, xdes.rs, inode.rs (space),
//!          trx_sys.rs, rseg.rs, undo_page.rs, undo_record.rs, undo_build.rs (undo), redo_file.rs,
//!          redo_frame.rs, redo_record.rs, redo_encode.rs (log).
#![forbid(unsafe_code)]

/// Envelope of every page: header, trailer, page types.
pub mod fil;

/// Page checksums of every flavour: verify and stamp.
pub mod checksum;

/// Lists whose nodes live in pages: addresses, base nodes, nodes.
pub mod list;

/// Tablespace flags, geometry, space header.
pub mod fsp;

/// Extent descriptors.
pub mod xdes;

/// Segment inodes and segment headers.
pub mod inode;

/// The log file: header, checkpoints, positions, capacity.
pub mod redo_file;

/// Mini-transactions in the log: framing, sequence bit, CRC.
pub mod redo_frame;

/// The records of a mini-transaction: parsing.
pub mod redo_record;

/// The records of a mini-transaction: building.
pub mod redo_encode;

/// Column types as the dictionary stores them.
pub mod column;

/// Header, system records and directory of an index page.
pub mod index_page;

/// The change buffer: bitmap pages, header, entries.
pub mod ibuf;
/// Fixed part of record headers.
pub mod record;

/// The TRX_SYS page: rollback segments, doublewrite header.
pub mod trx_sys;

/// The dictionary header page.
pub mod dict_header;

/// Rollback segment header pages.
pub mod rseg;

/// Undo pages and undo log headers.
pub mod undo_page;

/// References and page parts of off-page columns.
pub mod blob;

/// Undo records: parsing.
pub mod undo_record;

/// Undo records: building.
pub mod undo_build;

/// Export metadata (.cfg) files.
pub mod cfg;

#[cfg(test)]
pub(crate) mod tests;

#[cfg(test)]
mod pages_tests;

#[cfg(test)]
mod undo_tests;

//! xtradb: a transactional storage engine on InnoDB's own files.
//!
//! This file is the map. Modules stand in layer order; **a file may use only modules declared
//! above its own** (`tests/layers.rs` checks it). docs/ARCHITECTURE.md tells how a page and a
//! transaction walk through them.

/// The vocabulary: ids, errors, byte codecs, limits.
pub mod words;

/// The only door to latches, atomics and waits; the latch order.
pub mod sync;

/// Byte layouts of the files, pure: parse, build, checksum.
pub mod format;

/// Record and table locks as a data structure.
pub mod lock;

/// A transaction's states and what it may see.
pub mod trx;

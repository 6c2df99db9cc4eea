//! xtradb: a transactional storage engine on InnoDB's own files.
//!
//! This file is the map. Modules stand in layer order; **a file may use only modules declared
//! above its own** (`tests/layers.rs` checks it). docs/ARCHITECTURE.md tells how a page and a
//! transaction walk through them.

/// The vocabulary: ids, errors, byte codecs, limits.
pub mod words;

/// The only door to latches, atomics and waits; the latch order.
pub mod sync;

/// What the engine asks of the host, as traits; the host's row and key images.
pub mod host;

/// Typed, validated settings and counters.
pub mod settings;

/// Files, time, threads; real and simulated.
pub mod os;

/// Byte layouts of the files, pure: parse, build, checksum.
pub mod format;

/// Tablespace files: find, open, grow, delete, page I/O.
pub mod space;

/// The redo log: append, order, write, flush, checkpoint record.
pub mod redo;

/// The pool: find, latch, read, evict, flush.
pub mod buffer;

/// The mini-transaction: change pages and log together.
pub mod mtr;

/// Page allocation: extents, segments, the space header.
pub mod extent;

/// Tables, indexes, columns, values and their order, in memory only.
pub mod schema;

/// An index page: directory, records, and redo of its changes.
pub mod page;

/// Record and table locks as a data structure.
pub mod lock;

/// The B-tree: search, cursors, inserts and deletes, BLOB chains.
pub mod tree;

/// What a stock server left in the change buffer.
pub mod change_buffer;

/// Rollback segments and undo records on pages.
pub mod undo;

/// A transaction's states and what it may see.
pub mod trx;

/// The dictionary: boot, load, cache.
pub mod dict;

/// Rows: the only place where locks, undo and trees meet.
pub mod row;

/// Removing what nobody can see.
pub mod purge;

/// Create, drop, rename, truncate.
pub mod ddl;

/// From files after a crash to a running engine.
pub mod recovery;

/// Assembly: open, close, sessions, table handles, background work.
pub mod engine;

/// Read-only views: INFORMATION_SCHEMA rows, status variables, the monitor.
pub mod info;

/// The C ABI: function table, handles, callbacks, codes, panic boundary.
pub mod abi;

//! Tablespaces as files: find, open, grow, rename, delete, read and write pages.
//!
//! Knows page numbers, file names and the envelope of page 0; knows nothing of extents, of the pool
//! or of the log.
//!
//! Invariants
//!  1. A page is read or written at `page_no * physical size` of its tablespace, in the one file of
//!     the chain that holds it.
//!  2. A failed write or fsync makes the tablespace *failed* until restart (protocol F5): no later
//!     sync of it succeeds, so no checkpoint passes it.
//!  3. `delete` starts after the last I/O has ended, and no I/O starts after it.
//!  4. A table's file is closed only while no I/O on it is under way and all that was written is synced.
//!  5. Nothing here is logged: FILE_* records are durable before the call (protocol L6), by `ddl`.
//!
//! Latches: `Rank::FileState` for the list of files and for syncs; a registry shard likewise.
//! Crash:   growth is by allocation, made durable by the next sync of the file.
//! Read:    tablespace.rs, registry.rs, open.rs, io.rs, transform.rs, grow.rs, file_op.rs,
//!          absent.rs, handles.rs.
#![forbid(unsafe_code)]

/// Tablespaces without a file.
pub mod absent;

/// Create, rename, delete: the system calls.
pub mod file_op;

/// Growth: how far, and the allocation.
pub mod grow;

mod handles;

/// Page reads, page writes, sync.
pub mod io;

/// Checks at open, repair of page 0.
pub mod open;

/// innodb_data_file_path.
pub mod data_file_path;

/// All tablespaces by id.
pub mod registry;

/// One tablespace.
pub mod tablespace;

/// Between the pool's bytes and the file's.
pub mod transform;

#[cfg(test)]
mod tests;

pub use absent::Absent;
pub use data_file_path::DataFilePath;
pub use io::{Announced, IoGuard};
pub use open::{FirstPage, Repair};
pub use registry::{Places, Registry};
pub use tablespace::{Kind, Reserved, Space, State};
pub use transform::PageTransform;

//! The redo log: append, order, write, flush, checkpoint.
//!
//! Knows mini-transactions as coded bytes and tablespaces by name; knows nothing of pages or of the
//! pool: who is dirty is told by a closure, and who makes room by a hook.
//!
//! Invariants
//!  1. LSNs only grow, also across files: a byte of the log has one LSN for ever.
//!  2. *written* <= *filled* <= LSN, and *flushed* <= *written*. *registered* <= LSN; they are equal
//!     while the gate is held exclusively.
//!  3. Nothing overwrites log at or after the last checkpoint: `admit` keeps LSN plus what was
//!     admitted within the capacity (protocol L4).
//!  4. A byte 0 stands after the last record in the file, so that a reader stops there.
//!  5. After a failed write or sync of the log nothing is acknowledged any more: the log is frozen
//!     (protocol F5), reads go on.
//!  6. A checkpoint block is written when the log is durable up to the end of its FILE_CHECKPOINT.
//!
//! Latches: the gate, then `Rank::LogFlush`, then `Rank::LogWrite`; `Rank::Checkpoint` before all.
//!          `admit` waits with no page or tree latch held.
//! Crash:   what `write_up_to(.., durable)` returned for is found by recovery; what was appended
//!          only may be lost, a suffix as a whole.
//! Read:    file.rs, log.rs, append.rs, admission.rs, held.rs, writer.rs, checkpoint.rs, create.rs,
//!          resize.rs.
#![forbid(unsafe_code)]

/// Room in the log, asked for before the first latch.
pub mod admission;

/// The way of a mini-transaction into the log.
pub mod append;

/// Checkpoints and the clean state.
pub mod checkpoint;

/// A new log file, and the old one opened to go on.
pub mod create;

/// The file: header, checkpoint blocks, records by LSN.
pub mod file;

/// What keeps the checkpoint back for longer than writing pages can help.
pub mod held;

/// The log as a whole: its parts and its state.
pub mod log;

/// A log file of another size, while the engine runs.
pub mod resize;

/// Group commit: write and sync.
pub mod writer;

#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod resize_tests;
#[cfg(test)]
mod tests;

pub use admission::{Class, Credit};
pub use append::LogRange;
pub use checkpoint::{CheckpointHold, Made};
pub use file::LogFile;
pub use log::{CheckpointNeeded, Log, LogOptions};
pub use resize::Resized;

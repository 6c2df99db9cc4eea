//! The mini-transaction: latch pages, change them and log the changes in one call, commit both
//! atomically.
//!
//! Knows pages as bytes and redo records; knows nothing of what a page means.
//!
//! Invariants (docs/ARCHITECTURE.md section 3 numbers them M1..M6)
//!  1. A page changes only through `Mtr`, and every change is in the mtr's records before the call
//!     returns, but for tablespaces that are never logged.
//!  2. Log room and frames are admitted before the first latch; nothing inside waits for them.
//!  3. A page is read from its file only while the mtr holds no latch, but for `get_reading`.
//!  4. Only unmodified pages are released before commit.
//!  5. Between the first changed byte and the append stands a critical section: a panic in it, or
//!     an mtr dropped modified, freezes the engine and poisons the changed frames (C4). What may
//!     fail after its first change runs as an `attempt`, which takes its changes back.
//!
//! Latches: page latches, in the order of docs/latch-order.md; commit takes the log gate under them.
//! Crash:   all records of an mtr are recovered, or none.
//! Read:    mtr.rs, memo.rs, write.rs, attempt.rs, commit.rs, critical.rs, retry.rs.
#![forbid(unsafe_code)]

mod attempt;
#[cfg(test)]
mod attempt_tests;
mod commit;
#[cfg(test)]
mod crash_tests;
mod critical;
mod ctx;
#[cfg(test)]
mod maker_tests;
mod memo;
#[expect(
    clippy::module_inception,
    reason = "the folder is named after its one type"
)]
mod mtr;
#[cfg(test)]
mod neighbors_tests;
#[cfg(test)]
mod pool_tests;
#[cfg(test)]
mod read_ahead_tests;
#[cfg(test)]
mod resize_tests;
mod retry;
#[cfg(test)]
mod stall_tests;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod write;

pub use crate::buffer::Mode;
pub use critical::CriticalSection;
pub use ctx::PageCtx;
pub use memo::{PageRef, Savepoint};
pub use mtr::{Budget, Class, Mtr};
pub use retry::retry;

//! The buffer pool: find, latch, read, evict and write pages.
//!
//! Knows pages as bytes with the FIL envelope; knows nothing of their content, and of recovery only
//! the hook `PageLoaded`.
//!
//! Invariants (P1..P5 and F1..F5 of docs/ARCHITECTURE.md)
//!  1. A page is in at most one frame; a frame on a chain of the table carries that chain's page.
//!  2. Bytes of a frame are reached only through a `PageGuard`, a loader that holds the frame
//!     alone, or the cleaner's copy under U.
//!  3. A page is READY only after its checksum, number and space were compared with what was asked
//!     for, and after the hook brought it up to date.
//!  4. A frame that is not clean and synced is never evicted; its oldest change counts for the
//!     checkpoint until the fsync that covers it.
//!  5. A page is written only after the log is durable up to its page LSN, and never once the pool
//!     is frozen.
//!
//! Latches: page latches by the caller's rank; FlushShard, Lru, PageTableShard inside, one at a time.
//! Crash:   doublewrite.rs (torn pages), flush.rs (order of writes and syncs).
//! Read:    pool.rs, read.rs, guard.rs, frame.rs, table.rs, guide.rs, sight.rs, spots.rs, lru.rs, supply.rs,
//!          maker.rs, flush_list.rs, flush.rs, neighbors.rs, doublewrite.rs, read_ahead.rs, read_list.rs,
//!          read_run.rs, resize.rs, stall.rs.

mod cleaner;
mod discard;
mod doublewrite;
mod flush;
mod flush_list;
mod frame;
mod guard;
mod guide;
mod hook;
mod list;
mod lru;
mod maker;
mod neighbors;
mod pool;
mod read;
mod read_ahead;
mod read_list;
mod read_run;
mod region;
mod resize;
mod sight;
mod spots;
mod stall;
mod supply;
mod table;

pub use doublewrite::{Doublewrite, DoublewriteCopies};
pub use flush::FlushReport;
pub use guard::{Mode, PageGuard, Pin, Stamp, UPDATE_RANGE};
pub use guide::{Draft, SHARED_MAX, Sight, Told, WINDOW, Want, big_endian};
pub use hook::PageLoaded;
pub use pool::{Pool, PoolConfig, PoolCounts};
pub use read_list::Listed;
pub use spots::KeyHash;
pub use supply::FrameCredit;

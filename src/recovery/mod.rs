//! From files after a crash to a running engine.
//!
//! Knows the log, the pages it names and the files that hold them. One pass over the log (`scan`)
//! builds an index of its records by page (`parse`, `index`); the pages are brought up to date
//! later, when they are first used.
//!
//! Invariants
//!  1. The scan changes nothing: a second crash, or a refusal, leaves the files as they were.
//!  2. The records of a page in the index are those that a read of the page still needs, oldest
//!     first: INIT_PAGE, FREE_PAGE, TRIM_PAGES and FILE_DELETE drop what stands before them.
//!  3. All records of one mini-transaction for one page form one entry: applied wholly or, if the
//!     page LSN says that it has them, not at all.
//!  4. A page's oldest entry holds back the checkpoint until the page is dirty in the pool. So the log
//!     keeps what the entries of a page that waits point to.
//!
//! Latches: Leaf only, never over I/O; the index does not change once the scan is over.
//! Crash:   this is what follows one.
//! Read:    scan.rs, pipeline.rs, cut.rs, parse.rs, merge.rs, index.rs, chain.rs, spill.rs, files.rs,
//!          torn.rs, readback.rs, apply.rs, pending.rs, sweep.rs, progress.rs.
#![forbid(unsafe_code)]

/// One mini-transaction's records on a page.
pub mod apply;

/// A page's entries in the index.
pub mod chain;

mod cut;

/// What the log says of files, done on disk.
pub mod files;

/// The records of a crashed log by page.
pub mod index;

mod merge;

mod parse;

/// The pages that wait for their records.
pub mod pending;

mod pipeline;

/// How far recovery is.
pub mod progress;

/// Records that stayed in the log.
pub mod readback;

/// One pass over the log.
pub mod scan;

/// Entries that memory does not hold.
pub mod spill;

/// Bringing everything up.
pub mod sweep;

/// Torn pages and their doublewrite copies.
pub mod torn;

#[cfg(test)]
mod pipeline_tests;
#[cfg(test)]
mod tests;

pub use index::{FileEvents, RedoIndex};
pub use pending::Pending;
pub use pipeline::ScanOptions;
pub use progress::{Phase, Report};
pub use scan::{LogBytes, LogScan, scan, scan_into};
pub use spill::SpillPlace;
pub use torn::Torn;

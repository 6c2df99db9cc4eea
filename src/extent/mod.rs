//! Page allocation: extents, segments, the space header; growth of files.
//!
//! Knows FSP_HDR, XDES, INODE and IBUF_BITMAP pages and nothing of what else a page may hold. The
//! rules are those of format-tablespace.md section 4.5; the choice of pages follows InnoDB, though a
//! reader accepts any.
//!
//! Invariants
//!  1. Every change begins with page 0 of the tablespace latched X, so all others of one
//!     tablespace wait there; XDES and INODE pages need no order of their own.
//!  2. An operation is planned first and then applied (`plan`): it fails without a changed byte.
//!  3. A page is handed out only below SIZE, and SIZE grows only after the blocks are allocated.
//!  4. An operation that takes several pages reserves them first (`reserve`): it then cannot run out
//!     half-way.
//!  5. Nothing here trusts a list: neighbours must point back, states must be legal for the move.
//!
//! Latches: FspPage (page 0 first), held to commit; Space while a file grows.
//! Crash:   bits, lists and FREE_PAGE records of one operation are one mini-transaction.
//! Read:    segment.rs, header.rs, plan.rs, list.rs, reserve.rs, create.rs, change_bitmap.rs.
#![forbid(unsafe_code)]

/// Free-space classes of secondary leaves, kept low for the reference engine's sake.
pub mod change_bitmap;

mod create;
mod header;
mod list;
mod plan;
mod reserve;
mod segment;

#[cfg(test)]
mod tests;

pub use create::{DOUBLEWRITE_LOG_BYTES, create_doublewrite, create_space};
pub use header::{allocate_single_page, free_single_page, is_page_free};
pub use reserve::{Reservation, reserve};
pub use segment::{
    Direction, SegmentUse, allocate_and_create, allocate_page, create_segment, free_page,
    free_segment_step, segment_use,
};

//! The vocabulary that every layer shares: ids, errors, byte codecs, limits.
//!
//! Knows nothing but numbers and bytes.
//!
//! Invariants
//!  1. An id is a newtype; no signature above this module carries a bare `u32` page number.
//!  2. `Error` is closed and cheap: a variant that occurs on a hot path owns no heap memory.
//!
//! Latches: none.
//! Crash:   nothing here is on disk.
//! Read:    ids.rs, error.rs, be.rs, difference.rs, limits.rs.

#![forbid(unsafe_code)]

pub mod be;
pub mod difference;
pub mod error;
pub mod ids;
pub mod limits;

pub use error::{Corruption, Error, IoFailure, Result};
pub use ids::{
    HeapNo, IndexId, Lsn, PageId, PageNo, RollPtr, RsegId, SegmentId, SessionId, SpaceId, TableId,
    TrxId, TrxNo, UndoNo,
};

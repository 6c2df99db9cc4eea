//! What the engine asks of the host, as traits, and how the host's rows and keys look.
//!
//! Knows only words and bytes. A host implements the traits (through the C ABI); tests bring their own.
//!
//! Invariants
//!  1. *Leaf* callbacks (collation, log, clock) are pure, never block, never re-enter the engine, and
//!     may be called from any thread under page latches. *Free* ones run under no latch.
//!  2. A `TableImage` is checked when it is made: offsets lie in the row, column numbers exist.
//!
//! Latches: none taken here.
//! Crash:   nothing here is on disk.
//! Read:    collation.rs, callbacks.rs, image.rs.

#![forbid(unsafe_code)]

pub mod callbacks;
pub mod collation;
pub mod image;

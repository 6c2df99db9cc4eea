//! What the engine asks of the host, as traits: collations first.
//!
//! Knows only words and bytes. A host implements the traits (through the C ABI); tests bring their own.
//!
//! Invariants
//!  1. *Leaf* callbacks (collation) are pure, never block, never re-enter the engine, and may be
//!     called from any thread under page latches.
//!
//! Latches: none taken here.
//! Crash:   nothing here is on disk.
//! Read:    collation.rs.

#![forbid(unsafe_code)]

pub mod collation;

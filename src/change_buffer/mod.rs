//! What a stock server left in the change buffer: changes of secondary leaves that it put off.
//!
//! Knows the change buffer's tree in the system tablespace and its entries; knows nothing of the
//! tables they belong to. `row` applies the entries when the engine opens, before anything else uses
//! a secondary index (format-tablespace.md 19).
//!
//! Invariants
//!  1. Nothing is ever added: the tree only loses entries.
//!  2. An entry is delete-marked after its change is logged, and a page's "buffered" bit is cleared
//!     after all its entries are: a crash between repeats changes that leave what they found.
//!  3. The tree is emptied in one mini-transaction, when no entry is left to be applied. Its pages
//!     are returned afterwards: a crash between leaves them unused, and the tree valid.
//!
//! Latches: `IndexPage`, one page at a time; then those of page allocation.
//! Crash:   see 2 and 3.
//! Read:    read.rs, finish.rs.

#![forbid(unsafe_code)]

mod finish;
mod read;

pub use finish::{clear_bits, empty, mark_done};
pub use read::{Buffered, Leaf, first_leaf, is_empty, leaf};

//! A transaction's states, and what it may see.
//!
//! Knows undo logs, locks' owners and commit numbers; knows nothing of rows. Undoing rows is
//! `row/rollback`.
//!
//! Invariants
//!  1. Every id on a page is active in the registry, or committed; `None` from the registry
//!     means committed and visible to every view that is or will be open.
//!  2. `visible_limit` is at most the smallest commit number drawn and not yet published.
//!  3. A view's limit is at least the value of `Views::oldest` at any time while it is open.
//!
//! Latches: `TrxRegistry` (the commit clock), then `TrxRegistryShard`.
//! Crash:   ids and numbers go on from the largest on disk (rseg headers, undo logs).
//! Read:    registry.rs, view.rs.

#![forbid(unsafe_code)]

mod registry;
#[cfg(test)]
mod tests;
mod view;

pub use registry::{Registry, TrxState};
pub use view::{ReadView, ViewSlot, Views};

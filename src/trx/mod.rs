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
//!  4. A transaction has an id exactly while it has an undo log.
//!
//! Latches: `TrxRegistry` (the commit clock), then `TrxRegistryShard`.
//! Crash:   ids and numbers go on from the largest on disk (rseg headers, undo logs).
//! Read:    trx.rs, commit.rs, savepoint.rs, system.rs, facts.rs, registry.rs, view.rs,
//!          observer.rs.

#![forbid(unsafe_code)]

mod commit;
mod facts;
mod observer;
mod registry;
mod savepoint;
mod system;
#[cfg(test)]
mod tests;
#[expect(
    clippy::module_inception,
    reason = "the folder is named after its main type"
)]
mod trx;
mod view;

pub use commit::Committed;
pub use facts::{Operation, TrxFacts, TrxInfo};
pub use observer::TrxObserver;
pub use registry::{Registry, TrxState};
pub use system::{Detached, TrxSystem};
pub use trx::{Isolation, State, Trx};
pub use view::{ReadView, ViewSlot, Views};

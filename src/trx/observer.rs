//! Who else wants to know how a transaction goes on: full text, which indexes rows at commit.

use std::fmt::Debug;

use super::trx::Trx;
use crate::sync::Arc;
use crate::words::{TrxId, TrxNo, UndoNo};

/// Told what becomes of a transaction's changes. Called with no latch held, by the thread that drives
/// the transaction; it must neither fail nor wait.
pub trait TrxObserver: Debug + Send + Sync {
    /// All changes are committed and visible.
    fn committed(&self, trx: TrxId, no: TrxNo);

    /// The changes from undo number `keep_below` on are undone; 0: all of them. May be told twice.
    fn undone(&self, trx: TrxId, keep_below: UndoNo);
}

impl Trx {
    /// `observer` is told of this transaction until it ends. Adding it again does nothing.
    pub fn observe(&mut self, observer: &Arc<dyn TrxObserver>) {
        let known = |other: &Arc<dyn TrxObserver>| Arc::ptr_eq(other, observer);
        if !self.observers.iter().any(known) {
            self.observers.push(observer.clone());
        }
    }

    pub(super) fn tell_committed(&self, no: TrxNo) {
        for observer in &self.observers {
            observer.committed(self.id, no);
        }
    }

    pub(super) fn tell_undone(&self, keep_below: UndoNo) {
        for observer in &self.observers {
            observer.undone(self.id, keep_below);
        }
    }
}

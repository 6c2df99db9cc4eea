//! The hook for indexes that are no trees of ours: full text.

use super::op::Op;
use crate::schema::{Table, Tuple};
use crate::sync::Arc;
use crate::trx::TrxObserver;
use crate::words::{TrxId, UndoNo};

/// One change of one row, as an observer sees it.
#[derive(Debug)]
pub struct Observed<'r> {
    /// Who changes it.
    pub trx: TrxId,
    /// The change goes away when the transaction undoes this number.
    pub undo_no: UndoNo,
    /// The table.
    pub table: &'r Table,
    /// The row as a clustered entry: DB_TRX_ID and DB_ROLL_PTR are without meaning, long values may
    /// end in a reference.
    pub row: &'r Tuple,
}

/// Told of the rows of tables with FULLTEXT indexes, after clustered and secondary entries are
/// written, with no latch held. An update is a deletion and an insertion. What becomes of the changes
/// it hears as `TrxObserver`. It must neither fail nor wait.
pub trait IndexObserver: TrxObserver {
    /// A row is there now.
    fn inserted(&self, change: &Observed<'_>);

    /// A row is gone now, or has other values, which `inserted` tells.
    fn deleted(&self, change: &Observed<'_>);
}

/// What happened to a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Inserted,
    Deleted,
}

impl Op<'_> {
    /// Tells the statement's observer of a change of `row`; nothing to do for most tables.
    pub(super) fn tell(&mut self, table: &Table, row: &Tuple, event: Event) {
        let Some(observer) = self.observer.filter(|_| table.has_full_text()) else {
            return;
        };
        let follows: Arc<dyn TrxObserver> = observer.clone();
        self.trx.observe(&follows);
        let change = Observed {
            trx: self.trx.id().expect("it has written"),
            undo_no: UndoNo(self.trx.next_undo_no().0.saturating_sub(1)),
            table,
            row,
        };
        match event {
            Event::Inserted => observer.inserted(&change),
            Event::Deleted => observer.deleted(&change),
        }
    }
}

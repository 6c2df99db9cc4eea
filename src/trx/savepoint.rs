//! Savepoints: places in the undo log to which a transaction can go back.

use crate::words::{Error, Result, UndoNo};

use super::trx::{Isolation, Trx};

/// A named place.
#[derive(Debug)]
pub(super) struct Savepoint {
    name: Box<[u8]>,
    undo_no: UndoNo,
}

impl Trx {
    /// Sets a savepoint; an older one of the same name goes.
    pub fn set_savepoint(&mut self, name: &[u8]) {
        self.savepoints.retain(|other| *other.name != *name);
        let undo_no = self.next_undo_no();
        self.savepoints.push(Savepoint {
            name: name.into(),
            undo_no,
        });
    }

    /// Where a rollback to the savepoint stops: the records from that number on are to be undone, then
    /// cut with `cut_undo`. Savepoints set after it go; it stays itself.
    ///
    /// Errors: `NoSavepoint`.
    pub fn rollback_to_savepoint(&mut self, name: &[u8]) -> Result<UndoNo> {
        let at = self.find_savepoint(name)?;
        self.savepoints.truncate(at + 1);
        Ok(self.savepoints[at].undo_no)
    }

    /// Forgets a savepoint.
    ///
    /// Errors: `NoSavepoint`.
    pub fn release_savepoint(&mut self, name: &[u8]) -> Result<()> {
        let at = self.find_savepoint(name)?;
        self.savepoints.remove(at);
        Ok(())
    }

    fn find_savepoint(&self, name: &[u8]) -> Result<usize> {
        self.savepoints
            .iter()
            .position(|other| *other.name == *name)
            .ok_or(Error::NoSavepoint)
    }

    /// A statement begins: its rollback comes back to here. Below REPEATABLE READ it gets a view of
    /// its own.
    pub fn begin_statement(&mut self) {
        self.statement = self.next_undo_no();
        self.close_statement_view();
    }

    /// A statement ends; its changes can only be undone with the transaction.
    pub fn end_statement(&mut self) {
        self.begin_statement();
    }

    /// Where a rollback of the statement stops, as `rollback_to_savepoint`.
    pub fn statement_start(&self) -> UndoNo {
        self.statement
    }

    fn close_statement_view(&mut self) {
        if self.isolation() <= Isolation::ReadCommitted {
            self.close_view();
        }
    }
}

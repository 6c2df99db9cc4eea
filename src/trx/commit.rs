//! The ends of a transaction: prepared, committed, rolled back.
//!
//! Commit (C3): under the rollback segment's latch the number is drawn and the undo log enters the
//! history, in one mini-transaction; it is committed to the log; the number is published; the locks
//! go. Nothing here waits for the disk: what is returned is the LSN to wait for.

use crate::format::undo_page::Xid;
use crate::mtr::{Budget, CriticalSection, Mtr, PageCtx, retry};
use crate::undo::{history, prepare};
use crate::words::{Error, Lsn, Result, TrxNo, UndoNo};

use super::facts::Operation;
use super::trx::{State, Trx};

/// Log bytes of the mini-transaction that prepares.
const PREPARE_LOG_BYTES: usize = 512;

/// What a commit did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Committed {
    /// Durable when the log is durable up to here; 0 if there is nothing to wait for.
    pub lsn: Lsn,
    /// The commit number; `None` if nothing was written.
    pub no: Option<TrxNo>,
}

impl Trx {
    /// First phase of a distributed commit: the undo log is marked PREPARED. The LSN is to be durable
    /// before anybody is told.
    ///
    /// Errors: `Invalid` if no transaction is active; what reading gives. Still active then.
    pub fn prepare(&mut self, ctx: &PageCtx, xid: &Xid) -> Result<Lsn> {
        if self.state != State::Active {
            return Err(Error::invalid("no active transaction to prepare"));
        }
        let lsn = match &mut self.undo {
            Some(log) => {
                log.begin_now(ctx)?;
                self.facts.set_operation(Operation::Preparing);
                let budget = Budget::system(PREPARE_LOG_BYTES);
                let done = retry(ctx, Some(budget), |mtr| prepare::set(mtr, log, xid));
                self.facts.set_operation(Operation::None);
                done?.1
            }
            None => Lsn(0),
        };
        self.state = State::Prepared;
        self.xid = Some(*xid);
        self.facts.set_state(State::Prepared);
        Ok(lsn)
    }

    /// Commits. `binlog` = file and position of the transaction in the host's binary log. Afterwards no
    /// transaction is open, others see the changes, and the locks are gone.
    ///
    /// Errors: damage in the undo pages; what reading gives. The transaction is open still then, and
    /// can be rolled back.
    pub fn commit(&mut self, ctx: &PageCtx, binlog: Option<(&str, u64)>) -> Result<Committed> {
        let committed = match &self.undo {
            None => Committed::default(),
            Some(log) if log.next_no() == UndoNo(0) => {
                history::finish_rolled_back(ctx, log)?;
                self.sys.registry.forget(self.id, None);
                Committed::default()
            }
            Some(_) => {
                self.facts.set_operation(Operation::Committing);
                let written = self.commit_written(ctx, binlog);
                if written.is_err() {
                    self.facts.set_operation(Operation::None);
                }
                written?
            }
        };
        self.release_locks();
        self.reset();
        Ok(committed)
    }

    fn commit_written(&self, ctx: &PageCtx, binlog: Option<(&str, u64)>) -> Result<Committed> {
        let log = self.undo.as_ref().expect("the caller saw it");
        let registry = &self.sys.registry;
        let budget = match log.is_dict() {
            true => Budget::dictionary(history::COMMIT_LOG_BYTES),
            false => Budget::system(history::COMMIT_LOG_BYTES),
        };
        let mut mtr = Mtr::start(ctx, budget)?;
        // A number that is drawn and never published hides all later commits.
        let _section = CriticalSection::enter(ctx, "panic in a commit");
        ctx.reached("trx.before_history");
        let no = history::commit(&mut mtr, log, binlog, || registry.draw_number())?;
        let lsn = mtr.commit();
        ctx.reached("trx.before_publish");
        registry.publish(self.id, no);
        ctx.reached("trx.published");
        self.tell_committed(no);
        self.sys.note_end(true);
        self.sys.note_history();
        Ok(Committed { lsn, no: Some(no) })
    }

    /// A rollback begins: a prepared transaction is marked active again, so that a crash in the middle
    /// does not find it prepared.
    ///
    /// Errors: what reading gives. Nothing is changed then.
    pub fn begin_rollback(&mut self, ctx: &PageCtx) -> Result<()> {
        self.facts.set_operation(Operation::RollingBack);
        if self.state != State::Prepared {
            return Ok(());
        }
        if let Some(log) = &self.undo {
            let budget = Budget::system(PREPARE_LOG_BYTES);
            retry(ctx, Some(budget), |mtr| prepare::clear(mtr, log))?;
        }
        self.state = State::Active;
        self.xid = None;
        self.facts.set_state(State::Active);
        Ok(())
    }

    /// Ends a transaction whose every change is undone: cuts what is left of its undo log, lets it
    /// be forgotten, and releases the locks.
    ///
    /// Errors: damage in the undo pages; what reading gives. The transaction is open still then.
    pub fn finish_rollback(&mut self, ctx: &PageCtx) -> Result<()> {
        self.cut_undo(ctx, UndoNo(0))?;
        if let Some(log) = &self.undo {
            history::finish_rolled_back(ctx, log)?;
            self.sys.registry.forget(self.id, None);
            self.sys.note_end(false);
        }
        self.release_locks();
        self.reset();
        Ok(())
    }

    fn release_locks(&self) {
        if let Some(owner) = &self.owner {
            self.sys.locks.release_all(owner);
        }
    }
}

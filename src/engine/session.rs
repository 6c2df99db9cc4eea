//! A session: one connection of the host, its transaction and its statement.

use std::time::Duration;

use super::open::Engine;
use super::types::{
    Isolation, LockMode, SessionConfig, SessionState, StatementFlags, TrxFlags, Wait, Xid,
};
use crate::row::{self, DictTables, Locking, Op, Patience};
use crate::settings::{SessionSettings, ids};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::trx::{self, Trx};
use crate::words::{Error, Lsn, Result, SessionId, UndoNo};

/// One session. Driven by one thread at a time.
pub struct Session {
    engine: Arc<Engine>,
    interrupter: Arc<Interrupter>,
    config: SessionConfig,
    settings: SessionSettings,
    trx: Trx,
    statement: StatementFlags,
    /// The transaction was rolled back by the engine; the host does not know yet.
    aborted: bool,
    /// Loads of empty tables that are neither ended nor undone, each by the undo record with which it began.
    loads: Vec<(LoadId, UndoNo)>,
    loads_begun: u64,
}

/// A load, in the session that began it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LoadId(u64);

/// The part of a session that any thread may touch.
#[derive(Default)]
pub struct Interrupter {
    wanted: AtomicBool,
}

impl Interrupter {
    /// Ends the session's statement as soon as possible: sets a flag, which a lock wait looks at
    /// every tenth of a second.
    pub fn interrupt(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }
}

impl Session {
    /// A session without a transaction.
    pub fn open(engine: &Arc<Engine>, config: SessionConfig) -> Result<Session> {
        let settings = engine.settings().for_session();
        let trx = engine
            .trx()
            .add(SessionId(config.connection_id), config.ctx);
        Ok(Session {
            engine: engine.clone(),
            interrupter: Arc::default(),
            config,
            settings,
            trx,
            statement: StatementFlags::default(),
            aborted: false,
            loads: Vec::new(),
            loads_begun: 0,
        })
    }

    /// Rolls an open transaction back; a prepared one is left to `Engine::prepared_decide`.
    pub fn close(mut self) {
        if self.trx.state() == trx::State::Prepared {
            match self.trx.detach() {
                Ok(detached) => self.engine.trx().park(detached),
                Err(error) => log::error!("a prepared transaction stays open: {error}"),
            }
        } else if let Err(error) = self.rollback() {
            log::error!("rollback at the end of a session: {error}");
        }
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// How it was opened; `isolation` follows `set_isolation`.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// For other threads.
    pub fn interrupter(&self) -> &Arc<Interrupter> {
        &self.interrupter
    }

    /// The session's values of settings that have one per session.
    pub fn settings(&mut self) -> &mut SessionSettings {
        &mut self.settings
    }

    /// Level of the next transaction, or of this one if it has not read yet.
    pub fn set_isolation(&mut self, isolation: Isolation) -> Result<()> {
        self.config.isolation = isolation;
        if self.trx.is_open() && self.trx.open_view().is_none() {
            self.trx.set_isolation(isolation);
        }
        Ok(())
    }

    /// What it is in the middle of.
    pub fn state(&self) -> SessionState {
        let has_locks = |owner: &Arc<crate::lock::Owner>| owner.counts() != (0, 0);
        SessionState {
            in_trx: self.trx.is_open() || self.aborted,
            changed: self.trx.undo().is_some_and(|log| log.next_no().0 > 0),
            prepared: self.trx.state() == trx::State::Prepared,
            aborted: self.aborted,
            has_locks: self.trx.owner_if_any().is_some_and(has_locks),
            has_view: self.trx.open_view().is_some(),
            trx_id: self.trx.id(),
        }
    }

    // Statements ---------------------------------------------------------------------------------

    /// Notes where `statement_rollback` goes back to; clears an old interrupt.
    pub fn statement_begin(&mut self, flags: StatementFlags) -> Result<()> {
        self.check_not_aborted()?;
        self.interrupter.wanted.store(false, Ordering::Release);
        self.statement = flags;
        self.trx.begin_statement();
        let facts = self.trx.facts();
        facts.set_checks(!flags.relaxed_unique, !flags.no_foreign_keys);
        Ok(())
    }

    /// The statement succeeded.
    pub fn statement_end(&mut self) -> Result<()> {
        self.trx.end_statement();
        self.trx.facts().use_no_table();
        Ok(())
    }

    /// Undoes the statement's changes; keeps locks.
    pub fn statement_rollback(&mut self) -> Result<()> {
        if !self.aborted {
            self.undo_to(self.trx.statement_start())?;
        }
        self.statement_end()
    }

    /// The running statement uses one more table. `plainly`: without locks.
    pub(super) fn use_table(&mut self, plainly: bool) {
        let plainly = plainly && self.statement.autocommit;
        self.trx.facts().use_table(plainly);
    }

    /// What the running statement is.
    pub(super) fn statement(&self) -> StatementFlags {
        self.statement
    }

    // Transactions -------------------------------------------------------------------------------

    /// Starts a transaction; none is open.
    pub fn begin(&mut self, flags: TrxFlags) -> Result<()> {
        self.check_not_aborted()?;
        self.start(flags.read_only);
        if flags.consistent_snapshot {
            self.trx.open_snapshot();
        }
        Ok(())
    }

    /// Starts a transaction unless one is open.
    pub(super) fn start(&mut self, read_only: bool) {
        if !self.trx.is_open() {
            let now = self.engine.host().callbacks.wall_clock().as_secs();
            self.trx.start(self.config.isolation, read_only, now);
        }
    }

    /// Commits; nothing to do without a transaction.
    ///
    /// Errors: `Invalid` while rows of a load are collected: they were accepted and stand nowhere.
    pub fn commit(&mut self) -> Result<()> {
        self.check_not_aborted()?;
        if !self.loads.is_empty() {
            let why = "a bulk load has not been ended: bulk_end, or a rollback";
            return Err(Error::invalid(why));
        }
        let committed = self.trx.commit(self.engine.ctx(), None)?;
        self.engine.make_durable(committed.lsn)
    }

    /// Makes a prepared transaction visible without waiting for the log; `commit` follows.
    pub fn commit_ordered(&mut self, binlog: Option<(&str, u64)>) -> Result<()> {
        let _ = binlog;
        Err(Error::unsupported("two-phase commit"))
    }

    /// Rolls back; nothing to do without a transaction.
    pub fn rollback(&mut self) -> Result<()> {
        self.aborted = false;
        self.roll_back_all()
    }

    /// A load began with undo record `number`.
    pub(super) fn load_begun(&mut self, number: UndoNo) -> LoadId {
        self.loads_begun += 1;
        let id = LoadId(self.loads_begun);
        self.loads.push((id, number));
        id
    }

    /// False if the record with which it began was undone: nothing is left of it.
    pub(super) fn has_load(&self, id: LoadId) -> bool {
        self.loads.iter().any(|(load, _)| *load == id)
    }

    /// Its rows are where they belong, or undone.
    pub(super) fn load_ended(&mut self, id: LoadId) {
        self.loads.retain(|(load, _)| *load != id);
    }

    fn roll_back_all(&mut self) -> Result<()> {
        self.loads.clear();
        if !self.trx.is_open() {
            return Ok(());
        }
        let engine = self.engine.clone();
        let done = row::rollback(engine.ctx(), &mut self.trx, &engine.tables());
        if let Err(error) = &done {
            // The session must go on with other tables; the next start tries again.
            let detached = self.trx.give_up();
            log::error!(
                "transaction {} could not be rolled back and waits for the next start: {error}",
                detached.id()
            );
            engine.trx().park(detached);
        }
        done
    }

    /// Undoes the records from number `keep_below` on.
    pub(super) fn undo_to(&mut self, keep_below: UndoNo) -> Result<()> {
        if self.trx.next_undo_no() <= keep_below {
            return Ok(());
        }
        self.loads.retain(|(_, begun)| *begun < keep_below);
        let engine = self.engine.clone();
        let done = row::rollback_to(engine.ctx(), &mut self.trx, &engine.tables(), keep_below);
        if done.is_err() {
            // Half a statement must not be committed.
            self.aborted = true;
        }
        done
    }

    /// Prepares under `xid`.
    pub fn prepare(&mut self, xid: &Xid) -> Result<()> {
        let _ = xid;
        Err(Error::unsupported("XA"))
    }

    /// Sets (or moves) a savepoint.
    pub fn savepoint_set(&mut self, name: &[u8]) -> Result<()> {
        self.check_not_aborted()?;
        self.start(false);
        self.trx.set_savepoint(name);
        Ok(())
    }

    /// Undoes everything since; younger savepoints are forgotten.
    pub fn savepoint_rollback(&mut self, name: &[u8]) -> Result<()> {
        self.check_not_aborted()?;
        let keep_below = self.trx.rollback_to_savepoint(name)?;
        self.undo_to(keep_below)
    }

    /// Forgets it and younger ones.
    pub fn savepoint_release(&mut self, name: &[u8]) -> Result<()> {
        self.check_not_aborted()?;
        self.trx.release_savepoint(name)
    }

    // For handles --------------------------------------------------------------------------------

    /// Errors: `TransactionAborted`.
    pub(super) fn check_not_aborted(&self) -> Result<()> {
        match self.aborted {
            true => Err(Error::TransactionAborted),
            false => Ok(()),
        }
    }

    /// The transaction.
    pub(super) fn trx(&mut self) -> &mut Trx {
        &mut self.trx
    }

    /// How long to wait for locks.
    pub(super) fn patience(&self, wait: Wait) -> Patience {
        let seconds = |count: u64| Patience::AtMost(Duration::from_secs(count));
        match wait {
            Wait::Default => seconds(self.settings.uint(ids::LOCK_WAIT_TIMEOUT)),
            Wait::NoWait | Wait::Seconds(0) => Patience::NoWait,
            Wait::SkipLocked => Patience::SkipLocked,
            Wait::Seconds(count) => seconds(count.into()),
        }
    }

    /// What reads lock: SERIALIZABLE turns plain reads into shared ones, but for a statement that is a
    /// transaction of its own.
    pub(super) fn locking(&self, lock: LockMode) -> Locking {
        match lock {
            LockMode::Shared => Locking::Shared,
            LockMode::Exclusive => Locking::Exclusive,
            LockMode::None => {
                let serializable = self.trx.isolation() == Isolation::Serializable;
                match serializable && !self.statement.autocommit {
                    true => Locking::Shared,
                    false => Locking::None,
                }
            }
        }
    }

    /// True once somebody interrupted the statement.
    pub(super) fn is_killed(&self) -> bool {
        self.interrupter.is_set() || self.engine.host().callbacks.kill_check(self.config.ctx)
    }

    /// The same question, for others than the session's own thread to ask.
    pub(super) fn kill_probe(&self) -> impl Fn() -> bool + use<> {
        let (interrupter, engine) = (self.interrupter.clone(), self.engine.clone());
        let session = self.config.ctx;
        move || interrupter.is_set() || engine.host().callbacks.kill_check(session)
    }

    /// Runs a row operation. An error that costs the transaction rolls it back.
    pub(super) fn run<T>(
        &mut self,
        patience: Patience,
        body: impl FnOnce(&mut Op<'_>) -> Result<T>,
    ) -> Result<T> {
        self.check_not_aborted()?;
        let (interrupter, callbacks) = (&*self.interrupter, &*self.engine.host().callbacks);
        let session = self.config.ctx;
        let killed = || interrupter.is_set() || callbacks.kill_check(session);
        let mut op = Op {
            ctx: self.engine.ctx(),
            sys: self.engine.trx(),
            trx: &mut self.trx,
            patience,
            killed: &killed,
            observer: None,
        };
        let done = body(&mut op);
        match done {
            Err(error) => Err(self.failed(error)),
            ok => ok,
        }
    }

    fn failed(&mut self, error: Error) -> Error {
        let whole_on_timeout = self.engine.settings().is_on(ids::ROLLBACK_ON_TIMEOUT);
        let costs_all = match error {
            Error::Deadlock | Error::LockTableFull | Error::RecordChanged => true,
            Error::LockWaitTimeout => whole_on_timeout,
            _ => false,
        };
        if costs_all {
            if let Err(failure) = self.roll_back_all() {
                log::error!("rollback after \"{error}\": {failure}");
            }
            self.aborted = true;
        }
        error
    }
}

impl Engine {
    /// Tables by id, for rollbacks.
    fn tables(&self) -> DictTables<'_> {
        DictTables {
            ctx: self.ctx(),
            dict: self.dict(),
        }
    }

    /// Waits until a commit is as durable as `innodb_flush_log_at_trx_commit` wants it.
    pub(super) fn make_durable(&self, lsn: Lsn) -> Result<()> {
        if lsn == Lsn(0) {
            return Ok(());
        }
        match self.settings().uint(ids::FLUSH_LOG_AT_TRX_COMMIT) {
            0 => Ok(()),
            2 => self.ctx().log.write_up_to(lsn, false),
            _ => self.ctx().log.write_up_to(lsn, true),
        }
    }
}

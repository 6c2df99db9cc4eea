//! Transactions without a session: those that a start found, and what purge does for all.

use crate::dict::Dict;
use crate::dict::system_tables::IndexRow;
use crate::lock::TableMode;
use crate::mtr::PageCtx;
use crate::os::thread::Threads;
use crate::purge::{Control, Coordinator, RowPurger};
use crate::row::{self, DictTables, HasTrees, Tables};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::trx::{Detached, Trx, TrxSystem};
use crate::undo::resurrect::{self, FoundUndoLog};
use crate::words::{Error, Result, SessionId, TableId};

/// What works on transactions in the background.
pub(super) struct Transactions {
    ctx: Arc<PageCtx>,
    sys: Arc<TrxSystem>,
    dict: Arc<Dict>,
    purge: Arc<Control>,
    stopping: AtomicBool,
    /// The rollback thread has not ended.
    rolling_back: AtomicBool,
}

impl Transactions {
    pub(super) fn new(
        ctx: &Arc<PageCtx>,
        sys: &Arc<TrxSystem>,
        dict: &Arc<Dict>,
    ) -> Arc<Transactions> {
        Arc::new(Transactions {
            ctx: ctx.clone(),
            sys: sys.clone(),
            dict: dict.clone(),
            purge: Arc::new(Control::new()),
            stopping: AtomicBool::new(false),
            rolling_back: AtomicBool::new(false),
        })
    }

    /// Enters the transactions that the undo logs tell of, with locks on the tables they changed.
    ///
    /// Errors: damage in undo pages; what reading gives.
    pub(super) fn resurrect(&self, found: Vec<FoundUndoLog>, started_s: u64) -> Result<()> {
        for log in found {
            let tables = resurrect::tables(&self.ctx, &log.log)?;
            let trx = self.sys.resurrect(log, started_s);
            for (table, loaded) in tables {
                let mode = match loaded {
                    true => TableMode::Exclusive,
                    false => TableMode::IntentionExclusive,
                };
                // Nobody else has a lock yet, and intentions do not exclude each other.
                let _granted = self.sys.locks.lock_table(trx.owner(), table, mode);
            }
            self.sys.park(trx);
        }
        Ok(())
    }

    /// Undoes unfinished changes of the dictionary, before anybody looks into it.
    ///
    /// Errors: what undoing gives: a dictionary that is half-changed cannot be worked with.
    pub(super) fn roll_back_dictionary(&self) -> Result<()> {
        let is_dict = |trx: &Detached| trx.undo().is_some_and(|log| log.is_dict());
        let (dictionary, others): (Vec<_>, Vec<_>) =
            self.take_active().into_iter().partition(is_dict);
        for trx in others {
            self.sys.park(trx);
        }
        dictionary
            .into_iter()
            .try_for_each(|trx| self.roll_back(trx, &|| false))
    }

    fn take_active(&self) -> Vec<Detached> {
        std::iter::from_fn(|| self.sys.unpark_active()).collect()
    }

    fn roll_back(&self, detached: Detached, told_to_end: &dyn Fn() -> bool) -> Result<()> {
        let id = detached.id();
        let mut trx = self.temporary();
        trx.attach(detached).map_err(|(error, _)| error)?;
        let undone = row::rollback_unless(&self.ctx, &mut trx, &self.tables(), told_to_end);
        if let Err(error) = undone {
            self.sys.park(trx.give_up());
            return Err(error);
        }
        log::info!("transaction {id}, unfinished at the last stop, is rolled back");
        Ok(())
    }

    fn temporary(&self) -> Trx {
        self.sys.add(SessionId(0), Default::default())
    }

    fn tables(&self) -> DictTables<'_> {
        DictTables {
            ctx: &self.ctx,
            dict: &self.dict,
        }
    }

    fn purger<'t>(&'t self, tables: &'t PurgeTables<'t>) -> RowPurger<'t> {
        RowPurger::new(&self.ctx, &self.sys, tables)
    }

    /// Rolls the other unfinished transactions back while sessions are served.
    ///
    /// Errors: `Io` if there is no thread to be had.
    pub(super) fn start_rollback(self: &Arc<Transactions>, workers: &Threads) -> Result<()> {
        let active = self.take_active();
        if active.is_empty() {
            return Ok(());
        }
        self.rolling_back.store(true, Ordering::Release);
        let this = self.clone();
        let started = workers.start("xt_rollback", move || {
            let told_to_end = || this.stopping.load(Ordering::Acquire);
            for trx in active {
                // Told to end: a slow shutdown goes on with it, or the next start does.
                match told_to_end() {
                    true => this.sys.park(trx),
                    false => this.roll_back_or_say(trx, &told_to_end),
                }
            }
            this.rolling_back.store(false, Ordering::Release);
        });
        self.rolling_back
            .fetch_and(started.is_ok(), Ordering::Release);
        started
    }

    /// True while transactions that the start found are being rolled back: they lock their tables.
    pub(super) fn is_rolling_back(&self) -> bool {
        self.rolling_back.load(Ordering::Acquire)
    }

    fn roll_back_or_say(&self, trx: Detached, told_to_end: &dyn Fn() -> bool) {
        let id = trx.id();
        match self.roll_back(trx, told_to_end) {
            Ok(()) => {}
            Err(Error::Interrupted) => {
                log::info!("the rollback of transaction {id} is broken off; it will go on");
            }
            Err(error) => log::error!("transaction {id} is not rolled back: {error}"),
        }
    }

    /// Rolls back what the rollback thread has left when it was told to end. Only when it has ended.
    pub(super) fn roll_back_rest(&self) {
        for trx in self.take_active() {
            self.roll_back_or_say(trx, &|| false);
        }
    }

    /// Starts purge; it waits for `allow_purge`.
    ///
    /// Errors: `Io` if there is no thread to be had.
    pub(super) fn start_purge(self: &Arc<Transactions>, workers: &Threads) -> Result<()> {
        self.purge.pause(&self.sys, true);
        let this = self.clone();
        workers.start("xt_purge", move || {
            let mut coordinator = Coordinator::new(this.sys.clone(), this.purge.clone());
            let tables = PurgeTables(this.tables());
            coordinator.run(&this.ctx, &this.purger(&tables), &|error| match error {
                Error::Stopped(_) => {}
                error => log::error!("purge: {error}"),
            });
        })
    }

    /// The host has decided its prepared transactions.
    pub(super) fn allow_purge(&self) {
        self.purge.pause(&self.sys, false);
    }

    /// Purges all that no view needs. Only when the purge thread has ended.
    ///
    /// Errors: as `Coordinator::drain`.
    pub(super) fn purge_all(&self) -> Result<()> {
        let tables = PurgeTables(self.tables());
        Coordinator::new(self.sys.clone(), Arc::new(Control::new()))
            .drain(&self.ctx, &self.purger(&tables))
    }

    /// Tells the threads to end.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.purge.stop(&self.sys);
    }
}

/// The dictionary's tables for purge: a file is removed only while no DDL runs, which might be about
/// to give its name to another.
struct PurgeTables<'d>(DictTables<'d>);

impl Tables for PurgeTables<'_> {
    fn open(&self, id: TableId) -> Result<Option<Arc<dyn HasTrees>>> {
        self.0.open(id)
    }

    fn drop_tree(&self, row: &IndexRow) -> Result<()> {
        let _no_ddl = self.0.dict.exclusive();
        self.0.drop_tree(row)
    }

    fn undo_rename(&self, id: TableId, old_name: &str) -> Result<()> {
        self.0.undo_rename(id, old_name)
    }
}

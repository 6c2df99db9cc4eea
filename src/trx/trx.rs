//! `Trx`: a session's transaction, from its start to its last write. Its ends stand in commit.rs.
//!
//! ```text
//!   NotStarted ──start──▶ Active ──prepare──▶ Prepared
//!       ▲                   │ commit, finish_rollback │
//!       └───────────────────┴─────────────────────────┘
//! ```

use crate::lock::Owner;
use crate::mtr::{CriticalSection, Mtr, PageCtx};
use crate::sync::Arc;
use crate::undo::{Needs, UndoLog, append, segment, truncate};
use crate::words::{Error, Result, RollPtr, TrxId, UndoNo};

use super::facts::TrxFacts;
use super::observer::TrxObserver;
use super::savepoint::Savepoint;
use super::system::{Detached, TrxSystem};
use super::view::{ReadView, ViewSlot};
use crate::format::undo_page::Xid;

/// SQL's isolation levels, in MySQL's numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Isolation {
    /// Reads see what is not committed.
    ReadUncommitted = 0,
    /// Each statement sees what was committed when it began.
    ReadCommitted = 1,
    /// The transaction sees what was committed when it first read.
    RepeatableRead = 2,
    /// Every read locks.
    Serializable = 3,
}

impl Isolation {
    pub(super) fn from_u8(number: u8) -> Isolation {
        match number {
            0 => Isolation::ReadUncommitted,
            1 => Isolation::ReadCommitted,
            3 => Isolation::Serializable,
            _ => Isolation::RepeatableRead,
        }
    }

    /// True where locking reads lock gaps, and keep what they locked.
    pub fn locks_gaps(self) -> bool {
        self >= Isolation::RepeatableRead
    }
}

/// Where a transaction stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// There is none.
    NotStarted = 0,
    /// It runs.
    Active = 1,
    /// It waits for the other participants of a distributed commit.
    Prepared = 2,
}

impl State {
    pub(super) fn from_u8(number: u8) -> State {
        match number {
            0 => State::NotStarted,
            1 => State::Active,
            _ => State::Prepared,
        }
    }
}

/// A session's transaction. Driven by one thread at a time; dropped while a transaction is open it
/// lets go of nothing: end or detach it first.
#[derive(Debug)]
pub struct Trx {
    pub(super) sys: Arc<TrxSystem>,
    pub(super) facts: Arc<TrxFacts>,
    slot: Arc<ViewSlot>,
    /// The rollback segment that it tries first.
    turn: usize,
    /// For its undo logs.
    memory: Vec<u8>,
    pub(super) owner: Option<Arc<Owner>>,
    pub(super) id: TrxId,
    pub(super) state: State,
    isolation: Isolation,
    read_only: bool,
    view: Option<ReadView>,
    pub(super) undo: Option<UndoLog>,
    pub(super) savepoints: Vec<Savepoint>,
    pub(super) statement: UndoNo,
    pub(super) xid: Option<Xid>,
    started_s: u64,
    pub(super) observers: Vec<Arc<dyn TrxObserver>>,
}

impl Trx {
    pub(super) fn new(sys: Arc<TrxSystem>, facts: Arc<TrxFacts>, slot: Arc<ViewSlot>) -> Trx {
        Trx {
            turn: sys.rsegs.next_turn(),
            memory: Vec::new(),
            sys,
            facts,
            slot,
            owner: None,
            id: TrxId(0),
            state: State::NotStarted,
            isolation: Isolation::RepeatableRead,
            read_only: false,
            view: None,
            undo: None,
            savepoints: Vec::new(),
            statement: UndoNo(0),
            xid: None,
            started_s: 0,
            observers: Vec::new(),
        }
    }

    /// Starts a transaction, unless one is open. It costs no id and no lock owner before it needs
    /// them. `started_s` = seconds since the epoch.
    pub fn start(&mut self, isolation: Isolation, read_only: bool, started_s: u64) {
        if self.state != State::NotStarted {
            return;
        }
        self.state = State::Active;
        self.isolation = isolation;
        self.read_only = read_only;
        self.started_s = started_s;
        self.facts.set_isolation(isolation);
        self.facts.set_started(started_s, read_only);
        self.facts.set_state(State::Active);
    }

    /// The engine's transactions.
    pub fn system(&self) -> &Arc<TrxSystem> {
        &self.sys
    }

    /// What INNODB_TRX shows of it.
    pub fn facts(&self) -> &TrxFacts {
        &self.facts
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// True while a transaction is open.
    pub fn is_open(&self) -> bool {
        self.state != State::NotStarted
    }

    /// Its id; `None` while it has written nothing.
    pub fn id(&self) -> Option<TrxId> {
        (self.id.0 != 0).then_some(self.id)
    }

    /// Its level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Another level for what follows; MariaDB sets it with each statement. An open view stays.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.isolation = isolation;
        self.facts.set_isolation(isolation);
        if let Some(owner) = &self.owner {
            owner.set_keeps_gaps(isolation.locks_gaps());
        }
    }

    /// START TRANSACTION READ ONLY.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Its XID, if it is prepared.
    pub fn xid(&self) -> Option<&Xid> {
        self.xid.as_ref()
    }

    /// The holder of its locks.
    pub fn owner(&mut self) -> &Arc<Owner> {
        if self.owner.is_none() {
            let owner = self.sys.locks.owner();
            owner.set_keeps_gaps(self.isolation.locks_gaps());
            self.facts.set_owner(Some(owner.clone()));
            self.owner = Some(owner);
        }
        self.owner.as_ref().expect("made above")
    }

    /// The holder of its locks, if it ever locked or wrote.
    pub fn owner_if_any(&self) -> Option<&Arc<Owner>> {
        self.owner.as_ref()
    }

    // Writing ------------------------------------------------------------------------------------

    /// Draws the id and begins the undo log at the first write; later calls cost nothing. `is_dict` =
    /// the dictionary changes. Call it with no latch held.
    ///
    /// Errors: `ReadOnly`; what `undo::segment::begin` gives. The transaction is as it was then.
    pub fn begin_write(&mut self, ctx: &PageCtx, is_dict: bool) -> Result<TrxId> {
        if let Some(log) = &mut self.undo {
            if is_dict {
                segment::mark_dict(ctx, log)?;
            }
            return Ok(self.id);
        }
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.state != State::Active {
            return Err(Error::internal("a write outside an active transaction"));
        }
        let owner = self.owner().clone();
        let _section = CriticalSection::enter(ctx, "panic while an undo log began");
        let id = self.sys.registry.begin(&owner);
        match segment::begin_late(ctx, &self.sys.rsegs, self.turn, id, is_dict) {
            Ok(mut log) => {
                log.build_in(std::mem::take(&mut self.memory));
                self.undo = Some(log);
            }
            Err(error) => {
                self.sys.registry.forget(id, None);
                owner.set_trx_id(TrxId(0));
                return Err(error);
            }
        }
        self.id = id;
        self.facts.set_id(id);
        if let Some(view) = &mut self.view {
            view.set_own(id);
        }
        Ok(id)
    }

    /// Its undo log, if it has written.
    pub fn undo(&self) -> Option<&UndoLog> {
        self.undo.as_ref()
    }

    /// Makes sure that an undo record of about `len_max` bytes can be appended, and tells what the
    /// budget of the row's mini-transaction must have for it (`undo::append::reserve`). After
    /// `begin_write`, with no latch held.
    ///
    /// Errors: as there.
    pub fn reserve_undo(&mut self, ctx: &PageCtx, len_max: usize) -> Result<Needs> {
        append::reserve(ctx, self.written()?, len_max)
    }

    /// Appends an undo record inside the row's mini-transaction (`undo::append::append`).
    ///
    /// Errors: as there.
    pub fn append_undo(
        &mut self,
        outer: &mut Mtr<'_>,
        build: impl FnOnce(&mut Vec<u8>, UndoNo),
    ) -> Result<RollPtr> {
        let _section = CriticalSection::enter(outer.ctx(), "panic while undo was written");
        let roll_ptr = append::append(outer, self.written()?, build)?;
        self.note_changes();
        Ok(roll_ptr)
    }

    /// Forgets the undo records from number `keep_below` on, whose changes are undone.
    ///
    /// Errors: what `undo::truncate::cut` gives.
    pub fn cut_undo(&mut self, ctx: &PageCtx, keep_below: UndoNo) -> Result<()> {
        let Some(log) = &mut self.undo else {
            return Ok(());
        };
        truncate::cut(ctx, log, keep_below)?;
        self.note_changes();
        self.tell_undone(keep_below);
        Ok(())
    }

    /// Number of the next undo record: what savepoints note.
    pub fn next_undo_no(&self) -> UndoNo {
        self.undo.as_ref().map_or(UndoNo(0), UndoLog::next_no)
    }

    fn written(&mut self) -> Result<&mut UndoLog> {
        self.undo
            .as_mut()
            .ok_or_else(|| Error::internal("an undo record before begin_write"))
    }

    fn note_changes(&self) {
        let count = self.next_undo_no().0;
        self.facts.set_rows_modified(count);
        if let Some(owner) = &self.owner {
            owner.set_changes(count);
        }
    }

    // Reading ------------------------------------------------------------------------------------

    /// What a consistent read may see; opened at the first one of the statement (READ COMMITTED) or
    /// of the transaction. `None` at READ UNCOMMITTED: everything.
    pub fn view(&mut self) -> Option<ReadView> {
        if self.isolation == Isolation::ReadUncommitted {
            return None;
        }
        if self.view.is_none() {
            self.view = Some(self.slot.open(&self.sys.registry, self.id));
        }
        self.view
    }

    /// START TRANSACTION WITH CONSISTENT SNAPSHOT: opens the view now. Levels below REPEATABLE READ
    /// have no snapshot to keep.
    pub fn open_snapshot(&mut self) {
        if self.isolation.locks_gaps() {
            self.view();
        }
    }

    /// The view if one is open: what a locking read compares with under innodb_snapshot_isolation.
    pub fn open_view(&self) -> Option<ReadView> {
        self.view
    }

    /// Closes the view: purge need not wait for it any more.
    pub fn close_view(&mut self) {
        if self.view.take().is_some() {
            self.slot.close();
        }
    }

    // Sessions -----------------------------------------------------------------------------------

    /// Takes a prepared transaction away from its session, which is left without one.
    ///
    /// Errors: `Invalid` if it is not prepared.
    pub fn detach(&mut self) -> Result<Detached> {
        if self.state != State::Prepared {
            return Err(Error::invalid(
                "only a prepared transaction can be detached",
            ));
        }
        let detached = Detached {
            id: self.id,
            owner: self.owner().clone(),
            undo: self.undo.take(),
            xid: self.xid.take(),
            prepared: true,
            isolation: self.isolation,
            started_s: self.started_s,
        };
        self.reset();
        Ok(detached)
    }

    /// Takes an active transaction that could not be undone away from its session, which is left without
    /// one. Its locks go – what it changed stays locked and invisible by its id, which stays active –
    /// and its undo log stays for the next start.
    pub fn give_up(&mut self) -> Detached {
        let owner = self.owner().clone();
        self.sys.locks.release_all(&owner);
        let detached = Detached {
            id: self.id,
            owner,
            undo: self.undo.take(),
            xid: None,
            prepared: false,
            isolation: self.isolation,
            started_s: self.started_s,
        };
        self.reset();
        detached
    }

    /// Continues a transaction without a session: to commit it or to roll it back. No transaction may
    /// be open here.
    ///
    /// Errors: `Invalid` with the transaction given back, if one is.
    pub fn attach(&mut self, detached: Detached) -> Result<(), (Error, Box<Detached>)> {
        if self.is_open() {
            let error = Error::invalid("a transaction is open");
            return Err((error, Box::new(detached)));
        }
        self.start(detached.isolation, false, detached.started_s);
        if detached.prepared {
            self.state = State::Prepared;
            self.facts.set_state(State::Prepared);
        }
        self.id = detached.id;
        self.facts.set_id(detached.id);
        self.facts.set_owner(Some(detached.owner.clone()));
        self.owner = Some(detached.owner);
        self.undo = detached.undo;
        self.xid = detached.xid;
        self.note_changes();
        Ok(())
    }

    /// Back to NotStarted; locks and registry are dealt with.
    pub(super) fn reset(&mut self) {
        self.close_view();
        self.id = TrxId(0);
        self.state = State::NotStarted;
        self.read_only = false;
        if let Some(log) = self.undo.take() {
            self.memory = log.into_memory();
        }
        if self.owner.take().is_some() {
            self.facts.set_owner(None);
        }
        self.savepoints.clear();
        self.observers.clear();
        self.statement = UndoNo(0);
        self.xid = None;
        self.facts.set_state(State::NotStarted);
        self.facts.set_operation(super::facts::Operation::None);
        self.facts.set_id(TrxId(0));
        self.facts.set_rows_modified(0);
    }
}

impl Drop for Trx {
    fn drop(&mut self) {
        self.sys.views.remove_slot(&self.slot);
        self.sys.remove(&self.facts);
    }
}

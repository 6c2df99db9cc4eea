//! All transactions of an engine, and those that have no session: found at start, or prepared by a
//! session that left.

use crate::format::undo_page::Xid;
use crate::host::callbacks::SessionCtx;
use crate::lock::{LockTable, Owner};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Event, Mutex, Rank};
use crate::undo::resurrect::FoundUndoLog;
use crate::undo::{Rsegs, UndoLog};
use crate::words::{SessionId, TrxId};
use std::time::Duration;

use super::facts::{TrxFacts, TrxInfo};
use super::registry::Registry;
use super::trx::{Isolation, State, Trx};
use super::view::Views;

/// The transactions of one engine.
#[derive(Debug)]
pub struct TrxSystem {
    /// The commit clock.
    pub registry: Registry,
    /// The open read views.
    pub views: Views,
    /// The rollback segments.
    pub rsegs: Arc<Rsegs>,
    /// The locks.
    pub locks: Arc<LockTable>,
    /// Ends the sleep of purge: set when it is to look up, or stop.
    pub purge_wanted: Event,
    /// Purge has found nothing to do and sleeps until a commit leaves something.
    purge_rests: AtomicBool,
    facts: Mutex<Vec<Arc<TrxFacts>>>,
    parked: Mutex<Vec<Detached>>,
    commits: AtomicU64,
    rollbacks: AtomicU64,
}

/// A transaction without a session. Attach it to an idle `Trx` to end it.
#[derive(Debug)]
pub struct Detached {
    pub(super) id: TrxId,
    pub(super) owner: Arc<Owner>,
    pub(super) undo: Option<UndoLog>,
    pub(super) xid: Option<Xid>,
    pub(super) prepared: bool,
    pub(super) isolation: Isolation,
    pub(super) started_s: u64,
}

impl Detached {
    /// Its id; 0 if it has written nothing.
    pub fn id(&self) -> TrxId {
        self.id
    }

    /// The holder of its locks.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Its undo log.
    pub fn undo(&self) -> Option<&UndoLog> {
        self.undo.as_ref()
    }

    /// Its XID, if it is prepared.
    pub fn xid(&self) -> Option<&Xid> {
        self.xid.as_ref()
    }
}

impl TrxSystem {
    /// A system whose next id is `next` (`undo::rseg::Opened::next_trx_id`).
    pub fn new(next: TrxId, rsegs: Arc<Rsegs>, locks: Arc<LockTable>) -> TrxSystem {
        TrxSystem {
            registry: Registry::new(next),
            views: Views::new(),
            rsegs,
            locks,
            purge_wanted: Event::new(),
            purge_rests: AtomicBool::new(false),
            facts: Mutex::new(Rank::Leaf, Vec::new()),
            parked: Mutex::new(Rank::Leaf, Vec::new()),
            commits: AtomicU64::new(0),
            rollbacks: AtomicU64::new(0),
        }
    }

    /// A commit left history. Wakes purge if it rests: while there is work it looks by itself every
    /// few milliseconds.
    pub(super) fn note_history(&self) {
        if self.purge_rests.load(Ordering::SeqCst) {
            self.purge_wanted.set();
        }
    }

    /// Waits until a commit leaves history; at most `timeout`.
    pub fn rest_from_purge(&self, timeout: Duration) {
        self.purge_rests.store(true, Ordering::SeqCst);
        if self.rsegs.history_len() == 0 {
            self.purge_wanted.wait(timeout);
        }
        self.purge_rests.store(false, Ordering::SeqCst);
    }

    /// A session's transaction, not started. One for the life of the session.
    pub fn add(self: &Arc<TrxSystem>, session: SessionId, ctx: SessionCtx) -> Trx {
        let facts = Arc::new(TrxFacts::new(session, ctx));
        self.facts.lock().push(facts.clone());
        Trx::new(self.clone(), facts, self.views.add_slot())
    }

    pub(super) fn remove(&self, facts: &Arc<TrxFacts>) {
        self.facts.lock().retain(|other| !Arc::ptr_eq(other, facts));
    }

    /// Enters a transaction that a start found (`undo::rseg::Opened::found`): active in the registry,
    /// so that its rows are locked and invisible. Table locks are the caller's
    /// (`undo::resurrect::tables`). Only before the engine serves sessions.
    pub fn resurrect(&self, found: FoundUndoLog, started_s: u64) -> Detached {
        let owner = self.locks.owner();
        let id = found.log.trx_id();
        self.registry.resurrect(id, &owner);
        owner.set_changes(found.log.next_no().0);
        Detached {
            id,
            owner,
            undo: Some(found.log),
            xid: found.xid,
            prepared: found.prepared,
            isolation: Isolation::RepeatableRead,
            started_s,
        }
    }

    /// Keeps a transaction until somebody asks for it.
    pub fn park(&self, trx: Detached) {
        self.parked.lock().push(trx);
    }

    /// Takes the parked prepared transaction with that XID.
    pub fn unpark(&self, xid: &Xid) -> Option<Detached> {
        let mut parked = self.parked.lock();
        let at = parked
            .iter()
            .position(|trx| trx.prepared && trx.xid.as_ref() == Some(xid))?;
        Some(parked.swap_remove(at))
    }

    /// Takes a parked transaction that must be rolled back; `None` if there is none.
    pub fn unpark_active(&self) -> Option<Detached> {
        let mut parked = self.parked.lock();
        let at = parked.iter().position(|trx| !trx.prepared)?;
        Some(parked.swap_remove(at))
    }

    /// XIDs of the parked prepared transactions, for the host's recovery.
    pub fn prepared_xids(&self) -> Vec<Xid> {
        let parked = self.parked.lock();
        parked
            .iter()
            .filter(|trx| trx.prepared)
            .filter_map(|trx| trx.xid)
            .collect()
    }

    /// The transactions that are open now, parked ones included.
    pub fn list(&self) -> Vec<TrxInfo> {
        let facts: Vec<_> = self.facts.lock().clone();
        let mut list: Vec<_> = facts.iter().filter_map(|facts| facts.info()).collect();
        let parked: Vec<_> = self.parked.lock().iter().map(Parked::of).collect();
        list.extend(parked.into_iter().filter_map(Parked::info));
        list
    }

    /// Commits and rollbacks of transactions that had written, since the start.
    pub fn counts(&self) -> (u64, u64) {
        (
            self.commits.load(Ordering::Relaxed),
            self.rollbacks.load(Ordering::Relaxed),
        )
    }

    pub(super) fn note_end(&self, committed: bool) {
        let counter = if committed {
            &self.commits
        } else {
            &self.rollbacks
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// What is shown of a parked transaction.
struct Parked {
    id: TrxId,
    owner: Arc<Owner>,
    state: State,
    isolation: Isolation,
    started_s: u64,
    rows_modified: u64,
}

impl Parked {
    fn of(trx: &Detached) -> Parked {
        Parked {
            id: trx.id,
            owner: trx.owner.clone(),
            state: match trx.prepared {
                true => State::Prepared,
                false => State::Active,
            },
            isolation: trx.isolation,
            started_s: trx.started_s,
            rows_modified: trx.undo.as_ref().map_or(0, |log| log.next_no().0),
        }
    }

    fn info(self) -> Option<TrxInfo> {
        let facts = TrxFacts::new(SessionId(0), SessionCtx::default());
        facts.set_id(self.id);
        facts.set_state(self.state);
        facts.set_isolation(self.isolation);
        facts.set_started(self.started_s, false);
        facts.set_rows_modified(self.rows_modified);
        facts.set_owner(Some(self.owner));
        facts.info()
    }
}

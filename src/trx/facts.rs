//! What others may see of a session's transaction: the source of INNODB_TRX and of SHOW ENGINE STATUS.

use crate::host::callbacks::SessionCtx;
use crate::lock::Owner;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, Rank};
use crate::words::{SessionId, TrxId};

use super::trx::{Isolation, State};

/// What a transaction is busy with, for trx_operation_state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Operation {
    /// Nothing worth a word.
    None = 0,
    /// Rolling back.
    RollingBack = 1,
    /// Committing.
    Committing = 2,
    /// Preparing.
    Preparing = 3,
}

/// Facts of a transaction, written by its thread and read by anyone; each is right by itself, together
/// they are no snapshot.
#[derive(Debug)]
pub struct TrxFacts {
    session: SessionId,
    ctx: SessionCtx,
    id: AtomicU64,
    state: AtomicU8,
    operation: AtomicU8,
    isolation: AtomicU8,
    started_s: AtomicU64,
    rows_modified: AtomicU64,
    tables_in_use: AtomicU32,
    read_only: AtomicBool,
    autocommit_non_locking: AtomicBool,
    unique_checks: AtomicBool,
    foreign_key_checks: AtomicBool,
    owner: Mutex<Option<Arc<Owner>>>,
}

/// A row of INNODB_TRX, as far as this layer knows it.
#[derive(Clone, Debug)]
pub struct TrxInfo {
    /// The session; 0 for one that recovery found.
    pub session: SessionId,
    /// The session's context, to ask the host for the statement's text.
    pub ctx: SessionCtx,
    /// Its id; `None` while it has written nothing.
    pub id: Option<TrxId>,
    /// Where it stands.
    pub state: State,
    /// What it is busy with.
    pub operation: Operation,
    /// Its level.
    pub isolation: Isolation,
    /// Start, seconds since the epoch.
    pub started_s: u64,
    /// Undo records written.
    pub rows_modified: u64,
    /// Tables of the running statement.
    pub tables_in_use: u32,
    /// START TRANSACTION READ ONLY.
    pub read_only: bool,
    /// A plain SELECT in autocommit.
    pub autocommit_non_locking: bool,
    /// unique_checks
    pub unique_checks: bool,
    /// foreign_key_checks
    pub foreign_key_checks: bool,
    /// Its locks; `None` if it has none yet.
    pub owner: Option<Arc<Owner>>,
    /// Record locks held.
    pub rows_locked: u64,
    /// Pages and tables with locks of it.
    pub lock_places: usize,
}

impl TrxInfo {
    /// InnoDB's weight: changed rows and locked ones.
    pub fn weight(&self) -> u64 {
        self.rows_modified + self.lock_places as u64
    }

    /// trx_state: RUNNING, LOCK WAIT, ROLLING BACK, COMMITTING.
    pub fn state_name(&self) -> &'static str {
        let waits = self
            .owner
            .as_ref()
            .is_some_and(|owner| owner.waiting().is_some());
        match self.operation {
            Operation::RollingBack => "ROLLING BACK",
            Operation::Committing => "COMMITTING",
            _ if waits => "LOCK WAIT",
            _ => "RUNNING",
        }
    }
}

impl TrxFacts {
    pub(super) fn new(session: SessionId, ctx: SessionCtx) -> TrxFacts {
        TrxFacts {
            session,
            ctx,
            id: AtomicU64::new(0),
            state: AtomicU8::new(State::NotStarted as u8),
            operation: AtomicU8::new(Operation::None as u8),
            isolation: AtomicU8::new(Isolation::RepeatableRead as u8),
            started_s: AtomicU64::new(0),
            rows_modified: AtomicU64::new(0),
            tables_in_use: AtomicU32::new(0),
            read_only: AtomicBool::new(false),
            autocommit_non_locking: AtomicBool::new(false),
            unique_checks: AtomicBool::new(true),
            foreign_key_checks: AtomicBool::new(true),
            owner: Mutex::new(Rank::Leaf, None),
        }
    }

    // Relaxed everywhere: for people's eyes.

    pub(super) fn set_id(&self, id: TrxId) {
        self.id.store(id.0, Ordering::Relaxed);
    }

    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Relaxed);
    }

    pub(super) fn set_isolation(&self, isolation: Isolation) {
        self.isolation.store(isolation as u8, Ordering::Relaxed);
    }

    pub(super) fn set_started(&self, started_s: u64, read_only: bool) {
        self.started_s.store(started_s, Ordering::Relaxed);
        self.read_only.store(read_only, Ordering::Relaxed);
        self.autocommit_non_locking.store(false, Ordering::Relaxed);
    }

    pub(super) fn set_rows_modified(&self, count: u64) {
        self.rows_modified.store(count, Ordering::Relaxed);
    }

    pub(super) fn set_owner(&self, owner: Option<Arc<Owner>>) {
        *self.owner.lock() = owner;
    }

    /// Tells what the transaction is busy with.
    pub fn set_operation(&self, operation: Operation) {
        self.operation.store(operation as u8, Ordering::Relaxed);
    }

    /// The running statement uses one more table. `plainly`: in autocommit, and without locks.
    pub fn use_table(&self, plainly: bool) {
        let first = self.tables_in_use.fetch_add(1, Ordering::Relaxed) == 0;
        let so_far = first || self.autocommit_non_locking.load(Ordering::Relaxed);
        self.autocommit_non_locking
            .store(so_far && plainly, Ordering::Relaxed);
    }

    /// No statement runs.
    pub fn use_no_table(&self) {
        self.tables_in_use.store(0, Ordering::Relaxed);
    }

    /// Tells the session's checks.
    pub fn set_checks(&self, unique: bool, foreign_key: bool) {
        self.unique_checks.store(unique, Ordering::Relaxed);
        self.foreign_key_checks
            .store(foreign_key, Ordering::Relaxed);
    }

    /// `None` if no transaction is open.
    pub(super) fn info(&self) -> Option<TrxInfo> {
        let state = State::from_u8(self.state.load(Ordering::Relaxed));
        if state == State::NotStarted {
            return None;
        }
        let owner = self.owner.lock().clone();
        let (rows_locked, lock_places) = owner.as_ref().map_or((0, 0), |owner| owner.counts());
        let id = self.id.load(Ordering::Relaxed);
        Some(TrxInfo {
            session: self.session,
            ctx: self.ctx,
            id: (id != 0).then_some(TrxId(id)),
            state,
            operation: match self.operation.load(Ordering::Relaxed) {
                1 => Operation::RollingBack,
                2 => Operation::Committing,
                3 => Operation::Preparing,
                _ => Operation::None,
            },
            isolation: Isolation::from_u8(self.isolation.load(Ordering::Relaxed)),
            started_s: self.started_s.load(Ordering::Relaxed),
            rows_modified: self.rows_modified.load(Ordering::Relaxed),
            tables_in_use: self.tables_in_use.load(Ordering::Relaxed),
            read_only: self.read_only.load(Ordering::Relaxed),
            autocommit_non_locking: self.autocommit_non_locking.load(Ordering::Relaxed),
            unique_checks: self.unique_checks.load(Ordering::Relaxed),
            foreign_key_checks: self.foreign_key_checks.load(Ordering::Relaxed),
            owner,
            rows_locked,
            lock_places,
        })
    }
}

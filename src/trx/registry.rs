//! The commit clock: which transactions run, which have committed, and with which number.
//!
//! InnoDB copies the list of running transactions into every read view. Here a view is one
//! number (C2), and the registry keeps each transaction's commit number until no view can be
//! older than it; what is not in the registry is committed and visible to all.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::lock::{IdHash, Owner};
use crate::os::planted;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, Rank};
use crate::words::{TrxId, TrxNo};

const SHARDS: usize = 64;

type Shard = HashMap<TrxId, TrxState, IdHash>;

/// What the registry knows of a transaction id.
#[derive(Clone, Debug)]
pub enum TrxState {
    /// Running or prepared: its changes are visible to itself alone. `owner` = whose implicit
    /// locks the rows carry.
    Active(Arc<Owner>),
    /// Committed with this number.
    Committed(TrxNo),
}

/// The registry. One for the engine.
#[derive(Debug)]
pub struct Registry {
    clock: Mutex<Clock>,
    shards: Box<[Mutex<Shard>]>,
    /// The smallest number drawn and not yet published, else a number above every published one.
    visible_limit: AtomicU64,
    /// Ids below are committed, and visible to every view that is open now or later.
    low_water: AtomicU64,
}

#[derive(Debug)]
struct Clock {
    /// The next transaction id or commit number.
    next: u64,
    /// Ids that the shards know.
    known: BTreeSet<TrxId>,
    /// Commit numbers drawn and not yet published.
    undecided: BTreeSet<TrxNo>,
    /// Committed transactions that some view may not see, by commit number.
    retained: VecDeque<(TrxNo, TrxId)>,
}

impl Registry {
    /// A registry whose next id is `next` (format-tablespace.md 18: 1 + the largest on disk).
    pub fn new(next: TrxId) -> Registry {
        Registry {
            clock: Mutex::new(
                Rank::TrxRegistry,
                Clock {
                    next: next.0,
                    known: BTreeSet::new(),
                    undecided: BTreeSet::new(),
                    retained: VecDeque::new(),
                },
            ),
            shards: (0..SHARDS)
                .map(|_| Mutex::new(Rank::TrxRegistryShard, Shard::default()))
                .collect(),
            visible_limit: AtomicU64::new(next.0),
            low_water: AtomicU64::new(next.0),
        }
    }

    fn shard(&self, id: TrxId) -> &Mutex<Shard> {
        &self.shards[id.0 as usize % SHARDS]
    }

    /// Starts a read-write transaction: draws its id and enters it as active.
    pub fn begin(&self, owner: &Arc<Owner>) -> TrxId {
        let mut clock = self.clock.lock();
        let id = TrxId(clock.next);
        clock.next += 1;
        self.enter(&mut clock, id, owner);
        id
    }

    /// Enters a transaction that recovery found on disk. Only before the engine serves sessions.
    pub fn resurrect(&self, id: TrxId, owner: &Arc<Owner>) {
        let mut clock = self.clock.lock();
        debug_assert!(id.0 < clock.next);
        self.enter(&mut clock, id, owner);
        let first = clock.known.first().map_or(clock.next, |id| id.0);
        self.low_water.store(first, Ordering::Release);
    }

    fn enter(&self, clock: &mut Clock, id: TrxId, owner: &Arc<Owner>) {
        owner.set_trx_id(id);
        // Into the shard before the clock is released: whoever meets the id in a row finds it.
        self.shard(id)
            .lock()
            .insert(id, TrxState::Active(owner.clone()));
        clock.known.insert(id);
    }

    /// Draws the commit number of a transaction. From now until `publish` no view passes it.
    /// Called under the rseg's latch, so that history lists are in number order.
    pub fn draw_number(&self) -> TrxNo {
        let mut clock = self.clock.lock();
        let no = TrxNo(clock.next);
        clock.next += 1;
        clock.undecided.insert(no);
        no
    }

    /// Makes a commit visible: views opened from now on see it, once every smaller number is
    /// published too (C3).
    pub fn publish(&self, id: TrxId, no: TrxNo) {
        let mut clock = self.clock.lock();
        self.shard(id).lock().insert(id, TrxState::Committed(no));
        clock.undecided.remove(&no);
        // Numbers are published nearly in order: the place is found from the back.
        let at = clock
            .retained
            .iter()
            .rposition(|(n, _)| *n < no)
            .map_or(0, |i| i + 1);
        clock.retained.insert(at, (no, id));
        self.advance_limit(&clock);
    }

    /// Ends a transaction that leaves nothing behind: rolled back wholly, or nothing written.
    pub fn forget(&self, id: TrxId, drawn: Option<TrxNo>) {
        let mut clock = self.clock.lock();
        self.shard(id).lock().remove(&id);
        clock.known.remove(&id);
        if let Some(no) = drawn {
            clock.undecided.remove(&no);
        }
        self.advance_limit(&clock);
    }

    fn advance_limit(&self, clock: &Clock) {
        let undecided = clock.undecided.first();
        let limit = match planted("view.sees_undecided") {
            true => clock.next,
            false => undecided.map_or(clock.next, |no| no.0),
        };
        // Release: whoever reads the limit sees the states of every number below it.
        self.visible_limit.store(limit, Ordering::SeqCst);
    }

    /// What is known of `id`; `None` = committed, and visible to every view.
    pub fn state(&self, id: TrxId) -> Option<TrxState> {
        if id.0 < self.low_water.load(Ordering::Acquire) {
            return None;
        }
        self.shard(id).lock().get(&id).cloned()
    }

    /// The lock owner of `id` if its transaction runs or is prepared: who holds the implicit
    /// lock of a row that carries `id`.
    pub fn active_owner(&self, id: TrxId) -> Option<Arc<Owner>> {
        match self.state(id) {
            Some(TrxState::Active(owner)) => Some(owner),
            Some(TrxState::Committed(_)) | None => None,
        }
    }

    /// The limit that a view opened now would get.
    pub fn visible_limit(&self) -> TrxNo {
        TrxNo(self.visible_limit.load(Ordering::SeqCst))
    }

    /// Ids below are visible to everybody.
    pub fn low_water(&self) -> TrxId {
        TrxId(self.low_water.load(Ordering::Acquire))
    }

    /// The next id, for headers on disk and for status output.
    pub fn next_id(&self) -> TrxId {
        TrxId(self.clock.lock().next)
    }

    /// Number of running and prepared transactions that have written, and of retained commits.
    pub fn counts(&self) -> (usize, usize) {
        let clock = self.clock.lock();
        (
            clock.known.len() - clock.retained.len(),
            clock.retained.len(),
        )
    }

    /// Drops the entries of commits that every view sees: those below `oldest`, the smallest
    /// limit of all open views (and of `visible_limit`, if no view is open).
    pub fn prune(&self, oldest: TrxNo) {
        let mut clock = self.clock.lock();
        while let Some((no, id)) = clock.retained.front().copied() {
            if no >= oldest {
                break;
            }
            clock.retained.pop_front();
            clock.known.remove(&id);
            self.shard(id).lock().remove(&id);
        }
        let first = clock
            .known
            .first()
            .map_or(clock.next, |id| id.0)
            .min(oldest.0);
        self.low_water.store(first, Ordering::Release);
    }
}

//! An owner of locks: one for each transaction that locks anything.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::memory::{Memory, PLACE_BYTES, Share};
use super::wait::Wait;
use crate::sync::{Mutex, Rank};
use crate::words::{PageId, TableId, TrxId};

/// An owner's number, never reused while the engine runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OwnerId(pub u64);

/// Where an owner has (or had) locks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// On records of a page.
    Page(PageId),
    /// On a table.
    Table(TableId),
}

/// What a transaction holds and what it waits for.
#[derive(Debug)]
pub struct Owner {
    id: OwnerId,
    trx_id: AtomicU64,
    /// Rows changed, for the choice of a deadlock's victim; the transaction keeps it up.
    changes: AtomicU64,
    keeps_gaps: AtomicBool,
    /// The last search for a deadlock that met it.
    met: AtomicU64,
    held: Mutex<Held>,
    memory: Arc<Memory>,
    share: Share,
}

#[derive(Debug, Default)]
struct Held {
    places: Vec<Place>,
    record_locks: u64,
    waiting: Option<Arc<Wait>>,
    /// Arrival of a wait that ended because its record went away; until another lock is granted.
    turn: Option<u64>,
}

impl Owner {
    pub(super) fn new(id: OwnerId, memory: &Arc<Memory>) -> Arc<Owner> {
        Arc::new(Owner {
            id,
            trx_id: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            keeps_gaps: AtomicBool::new(true),
            met: AtomicU64::new(0),
            held: Mutex::new(Rank::TrxLocks, Held::default()),
            memory: memory.clone(),
            share: Share::default(),
        })
    }

    /// The owner's number.
    pub fn id(&self) -> OwnerId {
        self.id
    }

    /// The transaction's id, 0 while it has none.
    pub fn trx_id(&self) -> TrxId {
        // Relaxed: shown to people only.
        TrxId(self.trx_id.load(Ordering::Relaxed))
    }

    /// Tells under which id the transaction writes.
    pub fn set_trx_id(&self, id: TrxId) {
        self.trx_id.store(id.0, Ordering::Relaxed);
    }

    /// Tells how many rows the transaction has changed.
    pub fn set_changes(&self, count: u64) {
        // Relaxed: a stale value only makes another transaction the deadlock's victim.
        self.changes.store(count, Ordering::Relaxed);
    }

    /// Tells whether the transaction runs above READ COMMITTED, where a lock on a record that is
    /// removed lives on as a gap lock.
    pub fn set_keeps_gaps(&self, keeps: bool) {
        self.keeps_gaps.store(keeps, Ordering::Relaxed);
    }

    pub(super) fn keeps_gaps(&self) -> bool {
        // Relaxed: set by the owner's thread before it takes its first lock; the shard latch
        // under which others read it orders the two.
        self.keeps_gaps.load(Ordering::Relaxed)
    }

    /// True once for each search for a deadlock.
    pub(super) fn meet(&self, search: u64) -> bool {
        // Relaxed: searches follow one another under the detector's mutex.
        self.met.load(Ordering::Relaxed) != search && {
            self.met.store(search, Ordering::Relaxed);
            true
        }
    }

    /// Number of record locks held and places locked, as SHOW ENGINE INNODB STATUS prints them.
    pub fn counts(&self) -> (u64, usize) {
        let held = self.held.lock();
        (held.record_locks, held.places.len())
    }

    /// Bytes that its locks take, about.
    pub fn lock_bytes(&self) -> u64 {
        self.share.bytes()
    }

    pub(super) fn takes(&self, bytes: u64) {
        self.share.add(&self.memory, bytes);
    }

    pub(super) fn gives_back(&self, bytes: u64) {
        self.share.subtract(&self.memory, bytes);
    }

    /// What it waits for, if anything.
    pub fn waiting(&self) -> Option<Arc<Wait>> {
        self.held.lock().waiting.clone()
    }

    /// InnoDB's weight: changed rows and locks. The lightest transaction of a cycle is rolled back.
    pub(super) fn weight(&self) -> u64 {
        self.changes.load(Ordering::Relaxed) + self.held.lock().record_locks
    }

    pub(super) fn set_waiting(&self, wait: Option<Arc<Wait>>) {
        self.held.lock().waiting = wait;
    }

    /// Notes `place`, and `locks` more record locks on it.
    pub(super) fn note(&self, place: Place, locks: u64) {
        let mut held = self.held.lock();
        // The newest place is by far the likeliest to repeat (a scan locks a page's rows in turn).
        if held.places.last() != Some(&place)
            && !held.places.iter().rev().take(8).any(|p| *p == place)
        {
            held.places.push(place);
            self.takes(PLACE_BYTES);
        }
        if locks > 0 {
            held.record_locks += locks;
            held.turn = None;
        }
    }

    /// One more lock, on a place that is noted.
    pub(super) fn note_granted(&self) {
        let mut held = self.held.lock();
        held.record_locks += 1;
        held.turn = None;
    }

    /// The record that it waited for went away: when it asks again, it comes as early as before,
    /// whichever of several such waiters wakes first.
    pub(super) fn keep_turn(&self, arrival: u64) {
        self.held.lock().turn = Some(arrival);
    }

    /// Its turn, if it kept one.
    pub(super) fn take_turn(&self) -> Option<u64> {
        self.held.lock().turn.take()
    }

    pub(super) fn forget_locks(&self, locks: u64) {
        let mut held = self.held.lock();
        held.record_locks = held.record_locks.saturating_sub(locks);
    }

    pub(super) fn pop_place(&self) -> Option<Place> {
        let place = self.held.lock().places.pop();
        if place.is_some() {
            self.gives_back(PLACE_BYTES);
        }
        place
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.share.end(&self.memory);
    }
}

//! Record locks: request, test, release.

use crate::os::planted;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::{Duration, Instant};

use super::memory::Memory;
use super::modes::RecordMode;
use super::owner::{Owner, OwnerId, Place};
use super::queue::{New, PageQueue, Waiting};
use super::table::TableQueue;
use super::wait::{Ended, Outcome, Target, Wait, WaitEnd};
use crate::sync::{Mutex, MutexGuard, Rank};
use crate::words::{Error, HeapNo, PageId, Result, TableId};

const SHARDS: usize = 128;

/// How long a waiter sleeps before it asks again whether its session was killed.
const KILL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// All locks of the instance.
#[derive(Debug)]
pub struct LockTable {
    pages: Box<[Mutex<PageShard>]>,
    pub(super) tables: Box<[Mutex<TableShard>]>,
    next_owner: AtomicU64,
    /// Number of the last search for a deadlock.
    pub(super) detector: Mutex<u64>,
    /// Somebody watches his wait instead of sleeping.
    watched: AtomicBool,
    /// Looks at a wait before sleeping in it.
    looks: u32,
    detect: AtomicBool,
    arrivals: AtomicU64,
    waits: AtomicU64,
    deadlocks: AtomicU64,
    memory: Arc<Memory>,
}

/// A record lock, for INNODB_LOCKS.
#[derive(Clone, Copy, Debug)]
pub struct RecordLockInfo<'a> {
    /// Holder or waiter.
    pub owner: &'a Arc<Owner>,
    /// The page.
    pub page: PageId,
    /// The record in the page.
    pub heap: HeapNo,
    /// The mode.
    pub mode: RecordMode,
    /// True if it waits.
    pub waiting: bool,
}

pub(super) type PageShard = HashMap<PageId, PageQueue, IdHash>;
pub(super) type TableShard = HashMap<TableId, TableQueue, IdHash>;
/// Hashing for maps keyed by ids.
pub type IdHash = BuildHasherDefault<IdHasher>;

/// Multiplicative hashing of ids: they come from counters, an attacker cannot choose them.
#[derive(Default, Debug)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Default for LockTable {
    fn default() -> Self {
        LockTable::new()
    }
}

/// Notes with the owner what a grant added.
pub(super) fn note_new(owner: &Owner, page: PageId, new: New) {
    match new {
        New::Nothing => {}
        New::Record => owner.note_granted(),
        New::Place => owner.note(Place::Page(page), 1),
    }
}

impl LockTable {
    /// An empty table.
    pub fn new() -> LockTable {
        fn shards<T: Default>() -> Box<[Mutex<T>]> {
            (0..SHARDS)
                .map(|_| Mutex::new(Rank::LockShard, T::default()))
                .collect()
        }
        LockTable {
            pages: shards(),
            tables: shards(),
            next_owner: AtomicU64::new(1),
            detector: Mutex::new(Rank::Detector, 0),
            watched: AtomicBool::new(false),
            looks: 0,
            detect: AtomicBool::new(true),
            arrivals: AtomicU64::new(1),
            waits: AtomicU64::new(0),
            deadlocks: AtomicU64::new(0),
            memory: Arc::new(Memory::new()),
        }
    }

    /// The same, whose waiters look so often for their lock before they sleep.
    pub fn watching(mut self, looks: u32) -> LockTable {
        self.looks = looks;
        self
    }

    /// A new owner, for a transaction that is about to lock something.
    pub fn owner(&self) -> Arc<Owner> {
        let id = OwnerId(self.next_owner.fetch_add(1, Ordering::Relaxed));
        Owner::new(id, &self.memory)
    }

    /// Bytes that record locks take, about, and how many they may take.
    pub fn memory(&self) -> (u64, u64) {
        (self.memory.in_use(), self.memory.limit())
    }

    /// Requests for new record locks end as `LockTableFull` while the locks take so many bytes.
    pub fn set_memory_limit(&self, bytes: u64) {
        self.memory.set_limit(bytes);
    }

    /// Switches deadlock detection (innodb_deadlock_detect).
    pub fn set_deadlock_detect(&self, on: bool) {
        self.detect.store(on, Ordering::Relaxed);
    }

    /// Lock waits and deadlocks so far.
    pub fn counts(&self) -> (u64, u64) {
        (
            self.waits.load(Ordering::Relaxed),
            self.deadlocks.load(Ordering::Relaxed),
        )
    }

    pub(super) fn shard_no(page: PageId) -> usize {
        let mut h = IdHasher::default();
        h.write_u64(page.to_u64());
        (h.finish() >> 40) as usize % SHARDS
    }

    pub(super) fn page_shard(&self, page: PageId) -> MutexGuard<'_, PageShard> {
        self.pages[Self::shard_no(page)].lock()
    }

    /// Two pages' shards, latched in shard order; the second is `None` if both share one.
    pub(super) fn two_shards(
        &self,
        a: PageId,
        b: PageId,
    ) -> (MutexGuard<'_, PageShard>, Option<MutexGuard<'_, PageShard>>) {
        let (na, nb) = (Self::shard_no(a), Self::shard_no(b));
        match na.cmp(&nb) {
            std::cmp::Ordering::Equal => (self.pages[na].lock(), None),
            std::cmp::Ordering::Less => {
                let first = self.pages[na].lock();
                let second = self.pages[nb].lock();
                (first, Some(second))
            }
            std::cmp::Ordering::Greater => {
                let second = self.pages[nb].lock();
                let first = self.pages[na].lock();
                (first, Some(second))
            }
        }
    }

    /// Asks for a lock on a record; the page is latched by the caller. `Wait` puts the request
    /// into the queue: the caller unlatches everything and calls `wait`, or `cancel`.
    pub fn lock_record(
        &self,
        owner: &Arc<Owner>,
        page: PageId,
        heap: HeapNo,
        mode: RecordMode,
    ) -> Outcome {
        let mut shard = self.page_shard(page);
        let queue = shard.entry(page).or_default();
        if queue.holds(owner.id(), heap, mode) || planted("lock.not_taken") {
            return Outcome::Granted;
        }
        if queue.blocker(owner.id(), heap, mode, usize::MAX).is_none() {
            if self.memory.is_full() {
                if queue.is_empty() {
                    shard.remove(&page);
                }
                return self.refused(owner, page, heap, mode);
            }
            note_new(owner, page, queue.grant(owner, heap, mode));
            return Outcome::Granted;
        }
        let wait = self.new_wait(owner, Target::Record(page, heap, mode));
        queue.waiting.push(Waiting {
            heap,
            mode,
            wait: wait.clone(),
        });
        owner.note(Place::Page(page), 0);
        owner.set_waiting(Some(wait.clone()));
        Outcome::Wait(wait)
    }

    /// There is no room for more locks: a wait that has ended before it stood in any queue.
    fn refused(&self, owner: &Arc<Owner>, page: PageId, heap: HeapNo, mode: RecordMode) -> Outcome {
        let wait = self.new_wait(owner, Target::Record(page, heap, mode));
        wait.end(WaitEnd::Full);
        Outcome::Wait(wait)
    }

    pub(super) fn new_wait(&self, owner: &Arc<Owner>, target: Target) -> Arc<Wait> {
        // Relaxed: the number only chooses a deadlock's victim.
        let next = || self.arrivals.fetch_add(1, Ordering::Relaxed);
        Wait::new(
            owner.clone(),
            target,
            owner.take_turn().unwrap_or_else(next),
        )
    }

    /// Asks whether an insert before `heap` may go on, without leaving a lock if it may: an insert
    /// intention is only recorded when it has to wait (as InnoDB does).
    pub fn lock_insert(&self, owner: &Arc<Owner>, page: PageId, next: HeapNo) -> Outcome {
        let mut shard = self.page_shard(page);
        let Some(queue) = shard.get_mut(&page) else {
            return Outcome::Granted;
        };
        if queue
            .blocker(owner.id(), next, RecordMode::INSERT, usize::MAX)
            .is_none()
        {
            return Outcome::Granted;
        }
        let wait = self.new_wait(owner, Target::Record(page, next, RecordMode::INSERT));
        queue.waiting.push(Waiting {
            heap: next,
            mode: RecordMode::INSERT,
            wait: wait.clone(),
        });
        owner.note(Place::Page(page), 0);
        owner.set_waiting(Some(wait.clone()));
        Outcome::Wait(wait)
    }

    /// Makes an implicit lock explicit: `owner` holds X on the record already by having changed
    /// it, so this never waits. The page is latched by the caller, who has checked that the
    /// owner's transaction is still active.
    pub fn make_explicit(&self, owner: &Arc<Owner>, page: PageId, heap: HeapNo) {
        let mut shard = self.page_shard(page);
        let queue = shard.entry(page).or_default();
        if !queue.holds(owner.id(), heap, RecordMode::X_RECORD) {
            let new = queue.grant(owner, heap, RecordMode::X_RECORD);
            note_new(owner, page, new);
        }
    }

    /// True if `owner` holds a lock on the record that covers `mode`.
    pub fn holds(&self, owner: &Owner, page: PageId, heap: HeapNo, mode: RecordMode) -> bool {
        self.page_shard(page)
            .get(&page)
            .is_some_and(|q| q.holds(owner.id(), heap, mode))
    }

    /// Gives one record lock back early: READ COMMITTED and semi-consistent reads, for a row that
    /// does not match.
    pub fn unlock_record(&self, owner: &Owner, page: PageId, heap: HeapNo, mode: RecordMode) {
        let mut ended = Ended::default();
        let mut shard = self.page_shard(page);
        let Some(queue) = shard.get_mut(&page) else {
            return;
        };
        let mut removed = false;
        queue.granted.retain_mut(|g| {
            if g.owner.id() == owner.id() && g.mode == mode {
                removed |= g.heaps.remove(heap);
            }
            !g.heaps.is_empty()
        });
        if removed {
            owner.forget_locks(1);
            queue.grant_waiting(&mut ended);
        }
        if queue.is_empty() {
            shard.remove(&page);
        }
    }

    /// Waits for a request that `lock_record` or `lock_table` queued. Call with no latch held.
    /// `killed` is asked from time to time. On an error the request is gone from the queue.
    pub fn wait(
        &self,
        wait: &Arc<Wait>,
        timeout: Duration,
        killed: &dyn Fn() -> bool,
    ) -> Result<()> {
        wait.check_refused()?;
        self.waits.fetch_add(1, Ordering::Relaxed);
        if self.detect.load(Ordering::Relaxed) && self.break_deadlock(wait) {
            self.deadlocks.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(end) = self.watch(wait) {
            return self.finish(wait, end.into_result());
        }
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Some(end) = wait.sleep(left.min(KILL_CHECK_INTERVAL)) {
                return self.finish(wait, end.into_result());
            }
            if killed() {
                return self.finish(wait, Err(Error::Interrupted));
            }
            if left.is_zero() {
                return self.finish(wait, Err(Error::LockWaitTimeout));
            }
        }
    }

    /// Looks for the end of a wait for as long as a short transaction lasts: to be woken takes longer.
    /// One caller at a time, so that no more than one processor is kept from other work.
    fn watch(&self, wait: &Wait) -> Option<WaitEnd> {
        if self.looks == 0 || self.watched.swap(true, Ordering::Acquire) {
            return wait.ended();
        }
        let end = wait.watch(self.looks);
        self.watched.store(false, Ordering::Release);
        end
    }

    /// Takes a queued request back without waiting (NOWAIT, SKIP LOCKED).
    pub fn cancel(&self, wait: &Arc<Wait>) {
        let _ = self.finish(wait, Err(Error::LockWaitTimeout));
    }

    fn finish(&self, wait: &Arc<Wait>, result: Result<()>) -> Result<()> {
        wait.owner.set_waiting(None);
        if result.is_err() {
            // If it was granted in this very moment the lock is held, which harms nobody: the
            // statement or transaction is rolled back, and the lock goes with the transaction.
            wait.end(WaitEnd::Interrupted);
            self.withdraw(wait);
        }
        result
    }

    fn withdraw(&self, wait: &Arc<Wait>) {
        let mut ended = Ended::default();
        loop {
            match wait.target() {
                Target::Table(table, _) => return self.withdraw_table(table, wait),
                Target::Record(page, ..) => {
                    let mut shard = self.page_shard(page);
                    // It may have moved between reading the target and latching the shard.
                    if !matches!(wait.target(), Target::Record(now, ..) if now == page) {
                        continue;
                    }
                    if let Some(queue) = shard.get_mut(&page) {
                        queue.waiting.retain(|w| !Arc::ptr_eq(&w.wait, wait));
                        queue.grant_waiting(&mut ended);
                        if queue.is_empty() {
                            shard.remove(&page);
                        }
                    }
                    return;
                }
            }
        }
    }

    /// Releases everything `owner` holds, and grants what waited for it. Called after the
    /// transaction's end is published (C3), or at the end of a full rollback.
    pub fn release_all(&self, owner: &Owner) {
        // A move may add a place meanwhile (it notes the new place under the old shard's latch),
        // so the list is taken one by one until it is empty.
        while let Some(place) = owner.pop_place() {
            match place {
                Place::Table(table) => self.release_table(owner, table),
                Place::Page(page) => {
                    let mut ended = Ended::default();
                    let mut shard = self.page_shard(page);
                    if let Some(queue) = shard.get_mut(&page) {
                        let locks = queue.remove_owner(owner.id());
                        owner.forget_locks(locks);
                        queue.grant_waiting(&mut ended);
                        if queue.is_empty() {
                            shard.remove(&page);
                        }
                    }
                }
            }
        }
    }

    /// Calls `see` for each record lock. For INNODB_LOCKS; the shards are visited one after
    /// another, so this is no snapshot.
    pub fn each_record_lock(&self, see: &mut dyn FnMut(RecordLockInfo<'_>)) {
        for shard in &self.pages {
            let shard = shard.lock();
            for (&page, queue) in shard.iter() {
                for g in &queue.granted {
                    for heap in g.heaps.iter() {
                        let (owner, mode) = (&g.owner, g.mode);
                        see(RecordLockInfo {
                            owner,
                            page,
                            heap,
                            mode,
                            waiting: false,
                        });
                    }
                }
                for w in &queue.waiting {
                    let (owner, heap, mode) = (&w.wait.owner, w.heap, w.mode);
                    see(RecordLockInfo {
                        owner,
                        page,
                        heap,
                        mode,
                        waiting: true,
                    });
                }
            }
        }
    }

    /// The owners that a waiting request waits for.
    pub fn blockers_of(&self, wait: &Wait) -> Vec<Arc<Owner>> {
        self.blockers_where(wait, |_| true)
    }

    /// Those of them that `wanted` chooses.
    pub(super) fn blockers_where(
        &self,
        wait: &Wait,
        wanted: impl Fn(&Owner) -> bool,
    ) -> Vec<Arc<Owner>> {
        match wait.target() {
            Target::Table(table, mode) => self.table_blockers(table, wait, mode, wanted),
            Target::Record(page, heap, mode) => {
                let shard = self.page_shard(page);
                let Some(queue) = shard.get(&page) else {
                    return Vec::new();
                };
                let at = queue
                    .waiting
                    .iter()
                    .position(|w| std::ptr::eq(&*w.wait, wait));
                let Some(at) = at else { return Vec::new() };
                queue
                    .blockers(wait.owner.id(), heap, mode, at)
                    .filter(|owner| wanted(owner))
                    .cloned()
                    .collect()
            }
        }
    }

    /// Ends the wait of an owner, if it waits: interrupt from another thread, or shutdown.
    pub fn end_wait(&self, owner: &Owner, how: WaitEnd) -> bool {
        owner.waiting().is_some_and(|w| w.end(how))
    }
}

//! Table locks: request, test, release.

use crate::sync::Arc;

use super::modes::TableMode;
use super::owner::{Owner, OwnerId, Place};
use super::record::{IdHasher, LockTable, TableShard};
use super::wait::{Ended, Outcome, Target, Wait, WaitEnd};
use crate::sync::MutexGuard;
use crate::words::TableId;
use std::hash::Hasher;

/// The locks on one table.
#[derive(Debug, Default)]
pub(super) struct TableQueue {
    granted: Vec<Held>,
    /// How many of them are no intentions.
    strong: usize,
    waiting: Vec<(Arc<Wait>, TableMode)>,
}

/// A granted lock. The owner's number stands beside it: the owners of a busy table are many.
#[derive(Debug)]
struct Held {
    id: OwnerId,
    mode: TableMode,
    owner: Arc<Owner>,
}

/// A table lock, for INNODB_LOCKS.
#[derive(Debug, Clone)]
pub struct TableLockInfo {
    /// Holder or waiter.
    pub owner: Arc<Owner>,
    /// The table.
    pub table: TableId,
    /// The mode.
    pub mode: TableMode,
    /// True if it waits.
    pub waiting: bool,
}

impl TableQueue {
    fn blockers(
        &self,
        owner: OwnerId,
        mode: TableMode,
        waiting_before: usize,
    ) -> impl Iterator<Item = &Arc<Owner>> {
        let granted = self.granted.iter().map(|held| (&held.owner, held.mode));
        let waiting = self
            .waiting
            .iter()
            .take(waiting_before)
            .map(|(w, m)| (&w.owner, *m));
        granted
            .chain(waiting)
            .filter(move |(o, m)| o.id() != owner && !mode.compatible(*m))
            .map(|(o, _)| o)
    }

    fn holds(&self, owner: OwnerId, mode: TableMode) -> bool {
        self.granted
            .iter()
            .any(|held| held.id == owner && held.mode.covers(mode))
    }

    /// True if a new request need not look at who is there: intentions among intentions.
    fn admits_all(&self, mode: TableMode) -> bool {
        mode.is_intention() && self.strong == 0 && self.waiting.is_empty()
    }

    fn grant(&mut self, owner: &Arc<Owner>, mode: TableMode) {
        self.strong += usize::from(!mode.is_intention());
        self.granted.push(Held {
            id: owner.id(),
            mode,
            owner: owner.clone(),
        });
    }

    fn remove(&mut self, owner: OwnerId) {
        let strong = &mut self.strong;
        self.granted.retain(|held| {
            let mine = held.id == owner;
            *strong -= usize::from(mine && !held.mode.is_intention());
            !mine
        });
        self.waiting.retain(|(w, _)| w.owner.id() != owner);
    }

    fn grant_waiting(&mut self, ended: &mut Ended) {
        let mut at = 0;
        while at < self.waiting.len() {
            let (wait, mode) = &self.waiting[at];
            if self.blockers(wait.owner.id(), *mode, at).next().is_some() {
                at += 1;
                continue;
            }
            let (wait, mode) = self.waiting.remove(at);
            if wait.ended().is_none() {
                self.grant(&wait.owner, mode);
                ended.end(wait, WaitEnd::Granted);
            }
        }
    }
}

/// Idle queues that a shard keeps, since most tables are soon locked again.
const IDLE_MAX: usize = 16;

fn drop_if_idle(shard: &mut TableShard, table: TableId) {
    if shard.len() > IDLE_MAX {
        if let Some(queue) = shard.get(&table) {
            if queue.granted.is_empty() && queue.waiting.is_empty() {
                shard.remove(&table);
            }
        }
    }
}

impl LockTable {
    fn table_shard(&self, table: TableId) -> MutexGuard<'_, TableShard> {
        let mut h = IdHasher::default();
        h.write_u64(table.0);
        self.tables[(h.finish() >> 40) as usize % self.tables.len()].lock()
    }

    /// Asks for a table lock; like `lock_record`.
    pub fn lock_table(&self, owner: &Arc<Owner>, table: TableId, mode: TableMode) -> Outcome {
        let mut shard = self.table_shard(table);
        let queue = shard.entry(table).or_default();
        if queue.holds(owner.id(), mode) {
            return Outcome::Granted;
        }
        owner.note(Place::Table(table), 0);
        let blocked = |queue: &TableQueue| {
            let mut blockers = queue.blockers(owner.id(), mode, usize::MAX);
            blockers.next().is_some()
        };
        if queue.admits_all(mode) || !blocked(queue) {
            queue.grant(owner, mode);
            return Outcome::Granted;
        }
        let wait = self.new_wait(owner, Target::Table(table, mode));
        queue.waiting.push((wait.clone(), mode));
        owner.set_waiting(Some(wait.clone()));
        Outcome::Wait(wait)
    }

    pub(super) fn release_table(&self, owner: &Owner, table: TableId) {
        let mut ended = Ended::default();
        let mut shard = self.table_shard(table);
        let Some(queue) = shard.get_mut(&table) else {
            return;
        };
        queue.remove(owner.id());
        queue.grant_waiting(&mut ended);
        drop_if_idle(&mut shard, table);
    }

    pub(super) fn withdraw_table(&self, table: TableId, wait: &Arc<Wait>) {
        let mut ended = Ended::default();
        let mut shard = self.table_shard(table);
        let Some(queue) = shard.get_mut(&table) else {
            return;
        };
        queue.waiting.retain(|(w, _)| !Arc::ptr_eq(w, wait));
        queue.grant_waiting(&mut ended);
        drop_if_idle(&mut shard, table);
    }

    pub(super) fn table_blockers(
        &self,
        table: TableId,
        wait: &Wait,
        mode: TableMode,
        wanted: impl Fn(&Owner) -> bool,
    ) -> Vec<Arc<Owner>> {
        let shard = self.table_shard(table);
        let Some(queue) = shard.get(&table) else {
            return Vec::new();
        };
        let at = queue
            .waiting
            .iter()
            .position(|(w, _)| std::ptr::eq(&**w, wait));
        let Some(at) = at else { return Vec::new() };
        queue
            .blockers(wait.owner.id(), mode, at)
            .filter(|owner| wanted(owner))
            .cloned()
            .collect()
    }

    /// True if anybody but `owner` holds or wants a lock on the table.
    pub fn table_is_locked_by_others(&self, owner: Option<&Owner>, table: TableId) -> bool {
        let shard = self.table_shard(table);
        shard.get(&table).is_some_and(|q| {
            let others = |o: &Owner| owner.is_none_or(|me| me.id() != o.id());
            q.granted.iter().any(|held| others(&held.owner))
                || q.waiting.iter().any(|(w, _)| others(&w.owner))
        })
    }

    /// Every table lock, granted and waiting; no snapshot.
    pub fn table_locks(&self) -> Vec<TableLockInfo> {
        let mut all = Vec::new();
        for shard in &self.tables {
            for (table, queue) in shard.lock().iter() {
                let granted = queue
                    .granted
                    .iter()
                    .map(|held| (held.owner.clone(), held.mode, false));
                let waiting = queue
                    .waiting
                    .iter()
                    .map(|(w, m)| (w.owner.clone(), *m, true));
                all.extend(
                    granted
                        .chain(waiting)
                        .map(|(owner, mode, waiting)| TableLockInfo {
                            owner,
                            table: *table,
                            mode,
                            waiting,
                        }),
                );
            }
        }
        all
    }
}

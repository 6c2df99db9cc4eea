//! Deadlock detection: depth-first search of the wait-for graph when a wait begins.
//!
//! InnoDB searches under its global lock mutex. Here the graph is read shard by shard, and only
//! the search itself is serialised. That is safe: a transaction keeps its locks until its end,
//! and one that waits cannot end; so an edge seen earlier in a search still stands when the
//! cycle closes. And whoever closes a cycle last has queued its request before it searches, so
//! some search sees all of it.

use crate::sync::Arc;

use super::owner::Owner;
use super::record::LockTable;
use super::wait::{Wait, WaitEnd};

impl LockTable {
    /// Looks for a cycle through `wait`'s owner and ends the wait of its lightest member; on a
    /// tie, of the one that came last: `wait` itself, unless it only asks again for what it asked
    /// before the others. True if there was a cycle.
    pub(super) fn break_deadlock(&self, wait: &Arc<Wait>) -> bool {
        let mut search = self.detector.lock();
        let mut found = false;
        // A request may close several cycles: with one who waits before it in a queue, and with the
        // holder. Ending the lightest wait of one leaves the others.
        while wait.ended().is_none() {
            *search += 1;
            let mut path: Vec<Arc<Owner>> = vec![wait.owner.clone()];
            if !self.find_cycle(wait, &mut path, *search) {
                break;
            }
            found = true;
            let arrival = |o: &Arc<Owner>| o.waiting().map_or(0, |wait| wait.arrival);
            let mut victim = &path[0];
            for owner in &path[1..] {
                let (weight, lightest) = (owner.weight(), victim.weight());
                let later = weight == lightest && arrival(owner) > arrival(victim);
                if weight < lightest || later {
                    victim = owner;
                }
            }
            // If its wait has ended meanwhile, the cycle is none any more.
            self.end_wait(victim, WaitEnd::Deadlock);
        }
        found
    }

    /// Extends `path` until it comes back to its first owner. Iterative: a chain of waits may be
    /// as long as there are sessions. An owner that search number `search` has met is not met again.
    fn find_cycle(&self, wait: &Arc<Wait>, path: &mut Vec<Arc<Owner>>, search: u64) -> bool {
        let start = wait.owner.id();
        let is_new = |owner: &Owner| owner.id() == start || owner.meet(search);
        let mut pending: Vec<Vec<Arc<Owner>>> = vec![self.blockers_where(wait, is_new)];
        while let Some(candidates) = pending.last_mut() {
            let Some(next) = candidates.pop() else {
                pending.pop();
                path.pop();
                continue;
            };
            if next.id() == start {
                return true;
            }
            let Some(its_wait) = next.waiting().filter(|w| w.ended().is_none()) else {
                continue;
            };
            pending.push(self.blockers_where(&its_wait, is_new));
            path.push(next);
        }
        false
    }
}

//! What happens to locks when records move: told by the tree, under its page latches.
//!
//! Nothing here can fail, and nothing here waits: it runs inside a structure change.

use super::modes::RecordKind;
use super::owner::Place;
use super::queue::{PageQueue, as_gap};
use super::record::{LockTable, PageShard, note_new};
use super::wait::{Ended, WaitEnd};
use crate::os::planted;
use crate::page::list::Moved;
use crate::words::{HeapNo, PageId};

impl LockTable {
    /// True if the page has no locks at all, so that the caller need not list its records.
    pub fn page_is_free(&self, page: PageId) -> bool {
        !self.page_shard(page).contains_key(&page)
    }

    /// The page was reorganised: every record has a new heap number. Infimum and supremum keep
    /// theirs.
    pub fn reorganised(&self, page: PageId, moves: &[Moved]) {
        let mut shard = self.page_shard(page);
        let Some(queue) = shard.get_mut(&page) else {
            return;
        };
        let taken: Vec<_> = moves
            .iter()
            .map(|m| (m.to, queue.take_heap(m.from)))
            .collect();
        for (to, (granted, waiting)) in taken {
            queue.put_heap(page, to, granted, waiting);
        }
    }

    /// Records moved from one page to another (split, merge, root raise and lift).
    pub fn moved(&self, from: PageId, to: PageId, moves: &[Moved]) {
        if planted("lock.not_moved") {
            return;
        }
        let (mut a, mut b) = self.two_shards(from, to);
        let Some(source) = a.get_mut(&from) else {
            return;
        };
        let mut taken = Vec::new();
        for m in moves {
            let (granted, waiting) = source.take_heap(m.from);
            if !granted.is_empty() || !waiting.is_empty() {
                taken.push((m.to, granted, waiting));
            }
        }
        if source.is_empty() {
            a.remove(&from);
        }
        if taken.is_empty() {
            return;
        }
        let target = b.as_deref_mut().unwrap_or(&mut a).entry(to).or_default();
        for (heap, granted, waiting) in taken {
            for (owner, _) in &granted {
                owner.note(Place::Page(to), 0);
            }
            for w in &waiting {
                w.wait.owner.note(Place::Page(to), 0);
            }
            target.put_heap(to, heap, granted, waiting);
        }
    }

    /// The gap before `to` now includes the one before `from` (split: the left page's supremum
    /// gets what stands on the right page's first record; merge: the reverse). `from` keeps its
    /// locks.
    pub fn inherit_gap(&self, from: (PageId, HeapNo), to: (PageId, HeapNo)) {
        let (mut a, mut b) = self.two_shards(from.0, to.0);
        let Some(source) = a.get(&from.0) else { return };
        let gaps = gaps_on(source, from.1, |_| true);
        grant_gaps(b.as_deref_mut().unwrap_or(&mut a), to, gaps);
    }

    /// The record `from` goes away; `to` is its successor (on the same page or another). Locks on
    /// it, waited for or held, become gap locks on the successor; waiting requests end as granted:
    /// whoever waited looks again and finds the record gone.
    pub fn removed(&self, from: (PageId, HeapNo), to: (PageId, HeapNo)) {
        let mut ended = Ended::default();
        let (mut a, mut b) = self.two_shards(from.0, to.0);
        let Some(source) = a.get_mut(&from.0) else {
            return;
        };
        let mut gaps = gaps_on(source, from.1, |_| true);
        let (granted, waiting) = source.take_heap(from.1);
        // Who waits for the record gets the gap where it was: two inserts that waited for one and
        // the same key must not both go on (InnoDB's rule).
        for w in waiting.iter().filter(|w| w.wait.ended().is_none()) {
            let owner = &w.wait.owner;
            gaps.extend(as_gap(owner, w.mode).map(|mode| (owner.clone(), mode)));
        }
        for (owner, _) in granted {
            owner.forget_locks(1);
        }
        if source.is_empty() {
            a.remove(&from.0);
        }
        if !planted("lock.gap_not_inherited") {
            grant_gaps(b.as_deref_mut().unwrap_or(&mut a), to, gaps);
        }
        for w in waiting {
            w.wait.owner.keep_turn(w.wait.arrival);
            ended.end(w.wait, WaitEnd::Granted);
        }
    }

    /// A record was inserted before `next`: locks on the gap before `next` cover the gap before
    /// the new record too.
    pub fn inserted(&self, page: PageId, new: HeapNo, next: HeapNo) {
        let mut shard = self.page_shard(page);
        let Some(queue) = shard.get(&page) else {
            return;
        };
        let gaps = gaps_on(queue, next, |kind| {
            kind != RecordKind::Record || next == HeapNo::SUPREMUM
        });
        grant_gaps(&mut shard, (page, new), gaps);
    }
}

type Gaps = Vec<(
    std::sync::Arc<super::owner::Owner>,
    super::modes::RecordMode,
)>;

/// What locks on `heap` leave behind on a neighbour; `counts` chooses by kind.
fn gaps_on(queue: &PageQueue, heap: HeapNo, counts: impl Fn(RecordKind) -> bool) -> Gaps {
    queue
        .granted
        .iter()
        .filter(|g| g.heaps.contains(heap) && counts(g.mode.kind))
        .filter_map(|g| as_gap(&g.owner, g.mode).map(|mode| (g.owner.clone(), mode)))
        .collect()
}

fn grant_gaps(shard: &mut PageShard, to: (PageId, HeapNo), gaps: Gaps) {
    if gaps.is_empty() {
        return;
    }
    let queue = shard.entry(to.0).or_default();
    for (owner, mode) in gaps {
        if !queue.holds(owner.id(), to.1, mode) {
            note_new(&owner, to.0, queue.grant(&owner, to.1, mode));
        }
    }
}

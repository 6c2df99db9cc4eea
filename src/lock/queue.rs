//! The locks on one page: what is granted, and who waits in which order.

use crate::sync::Arc;

use super::bitmap::HeapSet;
use super::memory::GRANTED_BYTES;
use super::modes::{RecordKind, RecordMode, Strength};
use super::owner::{Owner, OwnerId};
use super::wait::{Ended, Target, Wait, WaitEnd};
use crate::words::{HeapNo, PageId};

/// Granted locks of one owner and mode.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) owner: Arc<Owner>,
    pub(super) mode: RecordMode,
    pub(super) heaps: HeapSet,
}

impl Granted {
    fn new(owner: &Arc<Owner>, mode: RecordMode, heap: HeapNo) -> Granted {
        owner.takes(GRANTED_BYTES);
        let mut heaps = HeapSet::default();
        heaps.insert(heap);
        Granted {
            owner: owner.clone(),
            mode,
            heaps,
        }
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.owner.gives_back(GRANTED_BYTES);
    }
}

/// What `PageQueue::grant` did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum New {
    /// The owner had the lock.
    Nothing,
    /// A record more for an owner and mode that has locks on the page.
    Record,
    /// The first of its owner and mode on the page: the owner must note the place.
    Place,
}

/// One waiting request.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) heap: HeapNo,
    pub(super) mode: RecordMode,
    pub(super) wait: Arc<Wait>,
}

/// All locks on one page.
#[derive(Debug, Default)]
pub(super) struct PageQueue {
    pub(super) granted: Vec<Granted>,
    /// In order of arrival.
    pub(super) waiting: Vec<Waiting>,
}

impl PageQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.granted.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn holds(&self, owner: OwnerId, heap: HeapNo, wanted: RecordMode) -> bool {
        let supremum = heap == HeapNo::SUPREMUM;
        self.granted.iter().any(|g| {
            g.owner.id() == owner && g.mode.covers(wanted, supremum) && g.heaps.contains(heap)
        })
    }

    /// The first owner that a request must wait for. `waiting_before`: only waiting requests
    /// in front of this position count.
    pub(super) fn blocker(
        &self,
        owner: OwnerId,
        heap: HeapNo,
        mode: RecordMode,
        waiting_before: usize,
    ) -> Option<&Arc<Owner>> {
        self.blockers(owner, heap, mode, waiting_before).next()
    }

    pub(super) fn blockers(
        &self,
        owner: OwnerId,
        heap: HeapNo,
        mode: RecordMode,
        waiting_before: usize,
    ) -> impl Iterator<Item = &Arc<Owner>> {
        let supremum = heap == HeapNo::SUPREMUM;
        let granted = self
            .granted
            .iter()
            .filter(move |g| g.heaps.contains(heap) && mode.waits_for(g.mode, supremum))
            .map(|g| &g.owner);
        let waiting = self
            .waiting
            .iter()
            .take(waiting_before)
            .filter(move |w| w.heap == heap && mode.waits_for(w.mode, supremum))
            .map(|w| &w.wait.owner);
        granted.chain(waiting).filter(move |o| o.id() != owner)
    }

    /// Adds a granted lock.
    pub(super) fn grant(&mut self, owner: &Arc<Owner>, heap: HeapNo, mode: RecordMode) -> New {
        match self
            .granted
            .iter_mut()
            .find(|g| g.owner.id() == owner.id() && g.mode == mode)
        {
            Some(g) => {
                let new = !g.heaps.contains(heap);
                g.heaps.insert(heap);
                if new { New::Record } else { New::Nothing }
            }
            None => {
                // One owner on a page is the usual case, and there may be many pages.
                self.granted
                    .reserve_exact(usize::from(self.granted.is_empty()));
                self.granted.push(Granted::new(owner, mode, heap));
                New::Place
            }
        }
    }

    /// Grants every waiting request that nothing stands before any more (invariant 2).
    pub(super) fn grant_waiting(&mut self, ended: &mut Ended) {
        let mut at = 0;
        while at < self.waiting.len() {
            let w = &self.waiting[at];
            let owner = w.wait.owner.clone();
            if self.blocker(owner.id(), w.heap, w.mode, at).is_some() {
                at += 1;
                continue;
            }
            let w = self.waiting.remove(at);
            // An ended wait (timeout, victim) is on its way out and takes no lock.
            if w.wait.ended().is_none() {
                // The place was noted when the wait began.
                if self.grant(&owner, w.heap, w.mode) != New::Nothing {
                    owner.note_granted();
                }
                ended.end(w.wait, WaitEnd::Granted);
            }
        }
    }

    /// Removes all that `owner` has here; returns how many granted locks that were.
    pub(super) fn remove_owner(&mut self, owner: OwnerId) -> u64 {
        let mut locks = 0;
        self.granted.retain(|g| {
            let mine = g.owner.id() == owner;
            if mine {
                locks += g.heaps.len() as u64;
            }
            !mine
        });
        self.waiting.retain(|w| w.wait.owner.id() != owner);
        locks
    }

    /// Takes every lock on `heap` out. Waiting requests are returned, not ended.
    pub(super) fn take_heap(
        &mut self,
        heap: HeapNo,
    ) -> (Vec<(Arc<Owner>, RecordMode)>, Vec<Waiting>) {
        let mut granted = Vec::new();
        self.granted.retain_mut(|g| {
            if g.heaps.remove(heap) {
                granted.push((g.owner.clone(), g.mode));
            }
            !g.heaps.is_empty()
        });
        let mut waiting = Vec::new();
        let mut at = 0;
        while at < self.waiting.len() {
            if self.waiting[at].heap == heap {
                waiting.push(self.waiting.remove(at));
            } else {
                at += 1;
            }
        }
        (granted, waiting)
    }

    /// Puts back under a new place what `take_heap` took.
    pub(super) fn put_heap(
        &mut self,
        page: PageId,
        heap: HeapNo,
        granted: Vec<(Arc<Owner>, RecordMode)>,
        waiting: Vec<Waiting>,
    ) {
        for (owner, mode) in granted {
            self.grant(&owner, heap, mode);
        }
        for w in waiting {
            w.wait.retarget(Target::Record(page, heap, w.mode));
            self.waiting.push(Waiting { heap, ..w });
        }
    }
}

/// What is left of a lock when the record it stands on goes away: a gap lock on the next record.
/// Insert intentions leave nothing; nor do, at READ COMMITTED, the exclusive locks of changes.
pub(super) fn as_gap(owner: &Owner, mode: RecordMode) -> Option<RecordMode> {
    let leaves = mode.kind != RecordKind::InsertIntention
        && (owner.keeps_gaps() || mode.strength == Strength::Shared);
    leaves.then_some(RecordMode {
        kind: RecordKind::Gap,
        ..mode
    })
}

//! The history lists of all rollback segments as one queue in commit order, and what of each was
//! passed and is still in its list.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::mtr::PageCtx;
use crate::sync::Arc;
use crate::undo::history::{self, Run};
use crate::undo::{Oldest, Rseg, Rsegs};
use crate::words::{Result, TrxNo};

/// The queue of one batch.
#[derive(Debug, Default)]
pub(super) struct Runs {
    segments: Vec<Segment>,
    /// Segments by the number of their next entry.
    queue: BinaryHeap<Reverse<(TrxNo, usize)>>,
}

/// One rollback segment's part.
#[derive(Debug)]
struct Segment {
    rseg: Arc<Rseg>,
    /// The entry to deal with next; meaningless once the segment has left the queue.
    next: Oldest,
    /// Entries that were dealt with, from the list's end on.
    passed: Option<Run>,
}

impl Runs {
    /// Begins a batch of all entries below `limit`. A commit below it has entered its list long
    /// ago: what comes later has a larger number.
    pub(super) fn begin(&mut self, rsegs: &Rsegs, limit: TrxNo) {
        self.segments.clear();
        self.queue.clear();
        for rseg in rsegs.all() {
            if rseg.oldest_no().is_none_or(|no| no >= limit) {
                continue;
            }
            let Some(next) = rseg.oldest() else { continue };
            self.queue.push(Reverse((next.no, self.segments.len())));
            self.segments.push(Segment {
                rseg: rseg.clone(),
                next,
                passed: None,
            });
        }
    }

    fn first(&self) -> Option<usize> {
        self.queue.peek().map(|Reverse((_, at))| *at)
    }

    /// The oldest entry of all that was not passed.
    pub(super) fn oldest(&self) -> Option<(&Arc<Rseg>, Oldest)> {
        let segment = &self.segments[self.first()?];
        Some((&segment.rseg, segment.next))
    }

    /// The oldest entry, `entry`, is dealt with, and may stay in its list for a while; `newer` follows.
    pub(super) fn passed(&mut self, entry: Oldest, newer: Option<Oldest>) {
        let Some(at) = self.first() else { return };
        let passed = &mut self.segments[at].passed;
        *passed = Some(match *passed {
            None => Run::one(entry),
            Some(run) => Run {
                last: entry,
                count: run.count + 1,
                ..run
            },
        });
        self.removed(newer);
    }

    /// The oldest entry is out of its list, or counted as passed; `newer` follows it.
    pub(super) fn removed(&mut self, newer: Option<Oldest>) {
        let Some(Reverse((_, at))) = self.queue.pop() else {
            return;
        };
        if let Some(newer) = newer {
            self.segments[at].next = newer;
            self.queue.push(Reverse((newer.no, at)));
        }
    }

    /// Takes the passed entries of the oldest entry's segment out of their list.
    pub(super) fn remove_oldest(&mut self, ctx: &PageCtx) -> Result<()> {
        match self.first() {
            Some(at) => self.segments[at].remove_passed(ctx),
            None => Ok(()),
        }
    }

    /// Takes all passed entries out of their lists.
    pub(super) fn remove_all(&mut self, ctx: &PageCtx) -> Result<()> {
        let segments = self.segments.iter_mut();
        let mut done = Ok(());
        for segment in segments {
            done = done.and(segment.remove_passed(ctx));
        }
        done
    }
}

impl Segment {
    fn remove_passed(&mut self, ctx: &PageCtx) -> Result<()> {
        match self.passed.take() {
            Some(run) => history::remove_run(ctx, &self.rseg, &run),
            None => Ok(()),
        }
    }
}

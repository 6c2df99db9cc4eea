//! Structure changes that meet damage half-way: pages and locks stay as they were.
//!
//! The pages are the mini-transaction's business (`Mtr::attempt`). What the lock table is told waits
//! until nothing can fail any more; nobody looks before, since the pages are latched.

use std::ops::Range;

use super::{Scratch, Tree};
use crate::lock::Moved;
use crate::mtr::Mtr;
use crate::words::{HeapNo, PageId, Result};

/// What the lock table is told of a change (invariant 5).
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// A record was inserted before another one.
    Inserted(PageId, HeapNo, HeapNo),
    /// A record goes; the other place is what follows.
    Removed((PageId, HeapNo), (PageId, HeapNo)),
    /// The first place's gap locks cover the second one, too.
    InheritGap((PageId, HeapNo), (PageId, HeapNo)),
    /// Records went from a page to another; or, on one page, to other heap numbers.
    Moved(PageId, PageId, Range<usize>),
}

/// What waits to be told.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Attempts under way.
    depth: usize,
    told: Vec<Told>,
    /// The moves that `Told::Moved` means.
    moves: Vec<Moved>,
}

impl Tree {
    /// Runs `change`. If it fails, pages and locks are as before: the mtr may go on, or end unmodified.
    pub(super) fn attempt<'a, T>(
        &self,
        mtr: &mut Mtr<'a>,
        scratch: &mut Scratch,
        change: impl FnOnce(&mut Mtr<'a>, &mut Scratch) -> Result<T>,
    ) -> Result<T> {
        let (told, moves) = (scratch.waiting.told.len(), scratch.waiting.moves.len());
        scratch.waiting.depth += 1;
        let result = mtr.attempt(|mtr| change(mtr, scratch));
        let waiting = &mut scratch.waiting;
        waiting.depth -= 1;
        if result.is_err() {
            waiting.told.truncate(told);
            waiting.moves.truncate(moves);
        } else if waiting.depth == 0 {
            for told in &waiting.told {
                self.tell_now(mtr, told, &waiting.moves);
            }
            waiting.told.clear();
            waiting.moves.clear();
        }
        result
    }

    /// Tells the lock table, or notes what it is to be told at the attempt's end.
    pub(super) fn tell(&self, mtr: &Mtr<'_>, scratch: &mut Scratch, told: Told) {
        match scratch.waiting.depth {
            0 => self.tell_now(mtr, &told, &[]),
            _ => scratch.waiting.told.push(told),
        }
    }

    /// As `tell`, of records that went from `from` to `to` – one page that was reorganised, if they are
    /// equal – by `scratch.moved`.
    pub(super) fn tell_moved(
        &self,
        mtr: &Mtr<'_>,
        scratch: &mut Scratch,
        from: PageId,
        to: PageId,
    ) {
        let Scratch { moved, waiting, .. } = scratch;
        if waiting.depth == 0 {
            let all = 0..moved.len();
            return self.tell_now(mtr, &Told::Moved(from, to, all), moved);
        }
        let start = waiting.moves.len();
        waiting.moves.extend_from_slice(moved);
        let range = start..waiting.moves.len();
        waiting.told.push(Told::Moved(from, to, range));
    }

    fn tell_now(&self, mtr: &Mtr<'_>, told: &Told, moves: &[Moved]) {
        let locks = self.locks();
        match told.clone() {
            Told::Inserted(page, heap, next) => locks.inserted(page, heap, next),
            Told::Removed(from, to) => locks.removed(from, to),
            Told::InheritGap(from, to) => locks.inherit_gap(from, to),
            Told::Moved(from, to, range) if from == to => locks.reorganised(from, &moves[range]),
            Told::Moved(from, to, range) => {
                locks.moved(from, to, &moves[range]);
                mtr.ctx().reached("tree.locks_moved");
            }
        }
    }
}

//! Inserting an entry, on one leaf or with a structure change.

use super::attempt::Told;
use super::path::{Change, Path};
use super::search::{Position, Seek};
use super::{Scratch, Tree};
use crate::mtr::{Mtr, PageRef};
use crate::page::insert::{has_place, insert, insert_image};
use crate::page::layout::{self, RecOffset};
use crate::page::logged::on;
use crate::page::search::{SearchMode, search};
use crate::page::split_point::continues_run;
use crate::page::{list, record, space};
use crate::schema::Tuple;
use crate::words::{HeapNo, Result};

impl Tree {
    /// True if `tuple` can be inserted on `at`'s page without a structure change. Ascending and
    /// descending inserts into a clustered leaf stop early, so that 1/16 of the page stays for growing
    /// updates.
    pub fn fits(
        &self,
        mtr: &Mtr<'_>,
        at: &Position,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        scratch.page.image.build(self.index(), tuple)?;
        self.has_room(mtr.view(at.page), at.rec, scratch)
            .map_err(|e| self.named(e))
    }

    /// Is there room for the record in `scratch.page.image`?
    fn has_room(&self, view: &[u8], prev: RecOffset, scratch: &mut Scratch) -> Result<bool> {
        let size = scratch.page.image.size();
        let room = space::max_insert_size_after_reorganise(view, 1);
        if room < size {
            return Ok(false);
        }
        if room < space::reorganise_min(view.len())
            && layout::n_recs(view) > 1
            && !has_place(view, self.index(), &mut scratch.page)?
        {
            return Ok(false);
        }
        let keeps_reserve = self.index().is_clustered()
            && layout::is_leaf(view)
            && layout::n_recs(view) > 1
            && continues_run(view, prev)?;
        Ok(!keeps_reserve || room - size >= space::update_reserve(view.len()))
    }

    /// Inserts `tuple` after `at.rec`, on whose page it `fits`; `at` then names the new record.
    /// The caller has checked keys and locks, and written undo.
    pub fn insert(
        &self,
        mtr: &mut Mtr<'_>,
        at: &mut Position,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let rec = self.insert_on(mtr, at.page, at.rec, tuple, scratch);
        at.rec = rec.map_err(|e| self.named(e))?;
        Ok(())
    }

    /// Takes the tree latch, latches the path for a change that does not fit on the leaf, and finds
    /// the place again: the last record not above the tree-unique key of `tuple`. The leaf may have
    /// changed meanwhile: check everything again. The mtr holds no page.
    pub fn seek_to_restructure(
        &self,
        mtr: &mut Mtr<'_>,
        tuple: &Tuple,
        change: Change,
    ) -> Result<(Position, Path<'_>)> {
        let mut key = Tuple::new();
        key.copy_prefix_of(tuple, self.index().n_tree_unique());
        let seek = Seek::Key(&key, SearchMode::LessOrEqual);
        let path = self.latch_path(mtr, seek, change)?;
        let view = mtr.view(path.leaf());
        let found = search(
            view,
            self.index(),
            &key,
            SearchMode::LessOrEqual,
            self.collations(),
        )
        .map_err(|e| self.named(e))?;
        let at = Position {
            page: path.leaf(),
            rec: found.low,
            low_match: found.low_match,
            up_match: found.up_match,
        };
        Ok((at, path))
    }

    /// Inserts on the latched path, splitting as needed. The extents were reserved before the mtr
    /// began (`reserve_for_change`).
    pub fn insert_restructuring(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<Position> {
        self.claim_no_space(mtr, path.leaf())?;
        let rec = self
            .attempt(mtr, scratch, |mtr, scratch| {
                self.insert_at_level(mtr, path, 0, tuple, scratch)
            })
            .map_err(|e| self.named(e))?;
        Ok(Position {
            page: path.leaf(),
            rec,
            low_match: 0,
            up_match: 0,
        })
    }

    /// Inserts an entry into the path's page of `level`; that page may become another one.
    pub(super) fn insert_at_level(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        level: usize,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<RecOffset> {
        loop {
            let page = path.levels[level].page;
            let view = mtr.view(page);
            let mode = SearchMode::LessOrEqual;
            let prev = search(view, self.index(), tuple, mode, self.collations())?.low;
            scratch.page.image.build(self.index(), tuple)?;
            if self.has_room(view, prev, scratch)? {
                return self.insert_on(mtr, page, prev, tuple, scratch);
            }
            self.split(mtr, path, level, prev, tuple, scratch)?;
        }
    }

    /// Inserts on a page that has room, after a reorganisation if the room is in pieces.
    fn insert_on(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageRef,
        prev: RecOffset,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<RecOffset> {
        self.claim_no_space(mtr, page)?;
        let index = self.index();
        let first = insert(&mut on(mtr, page), index, prev, tuple, &mut scratch.page)?;
        let rec = match first {
            Some(rec) => rec,
            None => self.attempt(mtr, scratch, |mtr, scratch| {
                // The place is found again by its rank: offsets change.
                let rank = rank_of(mtr.view(page), prev)?;
                self.reorganise(mtr, page, scratch)?;
                let prev = record_at_rank(mtr.view(page), rank)?;
                scratch.page.image.build(index, tuple)?;
                let placed = insert_image(&mut on(mtr, page), index, prev, &mut scratch.page)?;
                placed.ok_or_else(|| {
                    let why = "no room after a reorganisation that promised it";
                    layout::corrupt(mtr.view(page), why)
                })
            })?,
        };
        let view = mtr.view(page);
        if layout::is_leaf(view) {
            let heap = record::heap_no(view, rec);
            let told = Told::Inserted(mtr.page_id(page), heap, heap_after(view, rec)?);
            self.tell(mtr, scratch, told);
        }
        Ok(rec)
    }

    /// Rebuilds a page without gaps, telling the lock table.
    pub(super) fn reorganise(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageRef,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Scratch {
            page: work, moved, ..
        } = scratch;
        list::reorganise(&mut on(mtr, page), self.index(), work, moved)?;
        mtr.ctx().reached("tree.reorganise");
        if layout::is_leaf(mtr.view(page)) {
            let page = mtr.page_id(page);
            self.tell_moved(mtr, scratch, page, page);
        }
        Ok(())
    }
}

/// The heap number of the record that follows `rec`.
pub(super) fn heap_after(view: &[u8], rec: RecOffset) -> Result<HeapNo> {
    Ok(record::heap_no(view, layout::next(view, rec)?))
}

/// Number of records before `rec`, the infimum counted.
fn rank_of(view: &[u8], rec: RecOffset) -> Result<usize> {
    let mut at = layout::infimum(view);
    for rank in 0..=layout::n_recs(view) + 1 {
        if at == rec {
            return Ok(rank);
        }
        at = layout::next(view, at)?;
    }
    Err(layout::corrupt(view, "a record that is not in the list"))
}

fn record_at_rank(view: &[u8], rank: usize) -> Result<RecOffset> {
    let mut at = layout::infimum(view);
    for _ in 0..rank {
        at = layout::next(view, at)?;
    }
    Ok(at)
}

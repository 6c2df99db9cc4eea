//! Removing a record from the tree, on one leaf or with a structure change.

use super::attempt::Told;
use super::insert::heap_after;
use super::path::{Level, Path};
use super::search::Position;
use super::split::{first_heap, set_next, set_prev};
use super::{Scratch, Tree};
use crate::mtr::{Mtr, PageRef};
use crate::page::layout::{self, RecOffset};
use crate::page::logged::on;
use crate::page::update::set_min_rec;
use crate::page::{delete, record, space};
use crate::schema::Tuple;
use crate::words::{HeapNo, PageId, PageNo, Result};

impl Tree {
    /// True if the record at `at` can go without a structure change: the page does not become
    /// empty, nor so empty that it should be merged.
    pub fn deletes_in_place(
        &self,
        mtr: &Mtr<'_>,
        at: &Position,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let view = mtr.view(at.page);
        if mtr.page_id(at.page) == self.root() {
            return Ok(true);
        }
        let alone = layout::prev_page(view).is_none() && layout::next_page(view).is_none();
        if layout::n_recs(view) < 2 || alone {
            return Ok(false);
        }
        scratch
            .offsets
            .compute(view, at.rec, self.index())
            .map_err(|e| self.named(e))?;
        let left = space::data_size(view).saturating_sub(scratch.offsets.size());
        Ok(left >= self.merge_limit(view.len()))
    }

    /// Removes the record at `at`; `at` then names the record before it.
    pub fn delete(
        &self,
        mtr: &mut Mtr<'_>,
        at: &mut Position,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let rec = self.delete_on(mtr, at.page, at.rec, scratch);
        at.rec = rec.map_err(|e| self.named(e))?;
        Ok(())
    }

    fn delete_on(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageRef,
        rec: RecOffset,
        scratch: &mut Scratch,
    ) -> Result<RecOffset> {
        let view = mtr.view(page);
        let (id, heap, next) = (
            mtr.page_id(page),
            record::heap_no(view, rec),
            heap_after(view, rec)?,
        );
        let is_leaf = layout::is_leaf(view);
        let offsets = &mut scratch.offsets;
        let prev = delete::delete(&mut on(mtr, page), self.index(), rec, offsets)?;
        if is_leaf {
            self.tell(mtr, scratch, Told::Removed((id, heap), (id, next)));
        }
        Ok(prev)
    }

    /// Removes the record at `rec` of the path's leaf, then merges, lowers or frees pages. The path
    /// was latched for `Change::Delete` or `Change::Both`.
    pub fn delete_restructuring(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        rec: RecOffset,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.attempt(mtr, scratch, |mtr, scratch| {
            self.delete_and_merge(mtr, path, rec, scratch)
        })
        .map_err(|e| self.named(e))
    }

    fn delete_and_merge(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        rec: RecOffset,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Level {
            left, page, right, ..
        } = path.levels[0];
        for leaf in [left, Some(page), right].into_iter().flatten() {
            self.claim_no_space(mtr, leaf)?;
        }
        let is_root = mtr.page_id(page) == self.root();
        if is_root || layout::n_recs(mtr.view(page)) > 1 {
            self.delete_on(mtr, page, rec, scratch)?;
            return self.merge_up(mtr, path, 0, scratch);
        }
        let heap = record::heap_no(mtr.view(page), rec);
        self.locks_of_lost_page(mtr, path, heap, scratch)?;
        let gone = mtr.page_id(page);
        self.unlink(mtr, path, 0);
        let kept = self.remove_pointer(mtr, path, 1, gone.page, scratch)?;
        path.segments.free_page(mtr, 0, gone)?;
        self.merge_up(mtr, path, kept, scratch)
    }

    /// Locks on the last record and the supremum of a page that goes away become gap locks on what
    /// follows: the first record of the right page, else the supremum of the left one.
    fn locks_of_lost_page(
        &self,
        mtr: &Mtr<'_>,
        path: &Path<'_>,
        heap: HeapNo,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let level = path.levels[0];
        let from = mtr.page_id(level.page);
        let to: (PageId, HeapNo) = match (level.right, level.left) {
            (Some(right), _) => (mtr.page_id(right), first_heap(mtr.view(right))?),
            (None, Some(left)) => (mtr.page_id(left), HeapNo::SUPREMUM),
            // The tree becomes empty: the root is the only page left.
            (None, None) => (self.root(), HeapNo::SUPREMUM),
        };
        self.tell(mtr, scratch, Told::Removed((from, heap), to));
        self.tell(mtr, scratch, Told::Removed((from, HeapNo::SUPREMUM), to));
        Ok(())
    }

    /// Takes a level's page out of the chain of its level.
    pub(super) fn unlink(&self, mtr: &mut Mtr<'_>, path: &Path<'_>, level: usize) {
        let at = path.levels[level];
        let view = mtr.view(at.page);
        let (prev, next) = (layout::prev_page(view), layout::next_page(view));
        if let Some(left) = at.left {
            set_next(mtr, left, next);
        }
        if let Some(right) = at.right {
            set_prev(mtr, right, prev);
        }
    }

    /// Removes the node pointer to `child` from the path's page of `level`. A page that loses its
    /// only pointer goes too, and so on upwards; the root becomes an empty leaf. Returns the level
    /// whose page of the path is still there.
    pub(super) fn remove_pointer(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        level: usize,
        child: PageNo,
        scratch: &mut Scratch,
    ) -> Result<usize> {
        let page = path.levels[level].page;
        let rec = self.pointer_to(mtr.view(page), child)?;
        if layout::n_recs(mtr.view(page)) > 1 {
            self.remove_one_pointer(mtr, path, level, rec, scratch)?;
            return Ok(level);
        }
        let gone = mtr.page_id(page);
        if gone == self.root() {
            self.reset_root(mtr, page, 0, scratch)?;
            return Ok(level);
        }
        self.unlink(mtr, path, level);
        let kept = self.remove_pointer(mtr, path, level + 1, gone.page, scratch)?;
        path.segments.free_page(mtr, level, gone)?;
        Ok(kept)
    }

    fn remove_one_pointer(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        level: usize,
        rec: RecOffset,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let page = path.levels[level].page;
        let was_first = layout::first(mtr.view(page))? == rec;
        self.delete_on(mtr, page, rec, scratch)?;
        if !was_first {
            return Ok(());
        }
        if layout::prev_page(mtr.view(page)).is_some() {
            return self.rekey(mtr, path, level, scratch);
        }
        let first = layout::first(mtr.view(page))?;
        set_min_rec(&mut on(mtr, page), first, true);
        Ok(())
    }

    /// The first key of the path's inner page changed: its own node pointer gets the new key
    /// (invariant 2), and so on upwards where that pointer is the first of its page.
    fn rekey(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        level: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let page = path.levels[level].page;
        let above = path.levels[level + 1].page;
        let rec = self.pointer_to(mtr.view(above), mtr.page_id(page).page)?;
        let was_first = layout::first(mtr.view(above))? == rec;
        self.delete_on(mtr, above, rec, scratch)?;
        let mut pointer = Tuple::new();
        self.node_pointer_to(mtr, page, &mut pointer)?;
        self.insert_at_level(mtr, path, level + 1, &pointer, scratch)?;
        if was_first && layout::prev_page(mtr.view(path.levels[level + 1].page)).is_some() {
            return self.rekey(mtr, path, level + 1, scratch);
        }
        Ok(())
    }

    /// The record of an inner page that points to `child`.
    pub(super) fn pointer_to(&self, view: &[u8], child: PageNo) -> Result<RecOffset> {
        for rec in layout::records(view) {
            let rec = rec?;
            if self.child(view, rec)? == child {
                return Ok(rec);
            }
        }
        Err(layout::corrupt(
            view,
            format!("no node pointer to page {child}"),
        ))
    }
}

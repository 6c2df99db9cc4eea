//! Changing a record: flags and bytes in place, or another size.

use super::path::Path;
use super::search::Position;
use super::split::first_heap;
use super::{Scratch, Tree};
use crate::lock::Moved;
use crate::mtr::{Mtr, PageRef};
use crate::page::insert::insert_image;
use crate::page::layout;
use crate::page::logged::on;
use crate::page::{delete, list, record, space, update};
use crate::schema::{FieldRef, Tuple};
use crate::words::{HeapNo, Result, RollPtr, TrxId};

impl Tree {
    /// Sets or clears the delete mark of the record at `at`, in the same mtr with its stamp.
    pub fn set_delete_mark(&self, mtr: &mut Mtr<'_>, at: &Position, deleted: bool) {
        update::set_delete_mark(&mut on(mtr, at.page), at.rec, deleted);
    }

    /// Stamps DB_TRX_ID and DB_ROLL_PTR of a clustered leaf record.
    pub fn stamp(
        &self,
        mtr: &mut Mtr<'_>,
        at: &Position,
        trx_id: TrxId,
        roll_ptr: RollPtr,
        scratch: &mut Scratch,
    ) -> Result<()> {
        scratch
            .offsets
            .compute(mtr.view(at.page), at.rec, self.index())?;
        let mut page = on(mtr, at.page);
        update::set_trx_id(
            &mut page,
            self.index(),
            at.rec,
            &scratch.offsets,
            trx_id,
            roll_ptr,
        )
        .map_err(|e| self.named(e))
    }

    /// Raises PAGE_MAX_TRX_ID of a secondary leaf: with every change of it.
    pub fn raise_max_trx_id(&self, mtr: &mut Mtr<'_>, page: PageRef, trx_id: TrxId) {
        debug_assert!(!self.index().is_clustered());
        update::raise_max_trx_id(&mut on(mtr, page), trx_id);
    }

    /// Writes fields of equal size where they stand; false, with nothing changed, if one does not
    /// fit. Fields of the tree's order must stay equal under it.
    pub fn update_in_place<'v>(
        &self,
        mtr: &mut Mtr<'_>,
        at: &Position,
        changes: impl Iterator<Item = (usize, FieldRef<'v>)> + Clone,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let view = mtr.view(at.page);
        scratch
            .offsets
            .compute(view, at.rec, self.index())
            .map_err(|e| self.named(e))?;
        let mut page = on(mtr, at.page);
        Ok(update::update_in_place(
            &mut page,
            self.index(),
            at.rec,
            &scratch.offsets,
            changes,
        ))
    }

    /// True if the record at `at` can be replaced by `tuple` on its page.
    pub fn replacement_fits(
        &self,
        mtr: &Mtr<'_>,
        at: &Position,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let view = mtr.view(at.page);
        scratch
            .offsets
            .compute(view, at.rec, self.index())
            .map_err(|e| self.named(e))?;
        scratch.page.image.build(self.index(), tuple)?;
        // One slot's worth of records is not gained by taking the old record away.
        let (old, new) = (scratch.offsets.size(), scratch.page.image.size());
        let room = space::max_insert_size_after_reorganise(view, 0) + old;
        let fits_as_it_is = new <= old || new <= space::max_insert_size(view, 0);
        let pays = room >= space::reorganise_min(view.len()) || layout::n_recs(view) <= 1;
        Ok(fits_as_it_is || pays && new <= room)
    }

    /// Replaces the record at `at` by `tuple`, of equal key, on its page, where it
    /// `replacement_fits`. Its locks go with it.
    pub fn replace(
        &self,
        mtr: &mut Mtr<'_>,
        at: &mut Position,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.claim_no_space(mtr, at.page)?;
        let placed = self.attempt(mtr, scratch, |mtr, scratch| {
            self.replace_on(mtr, at, tuple, scratch)
        });
        placed.map_err(|e| self.named(e))
    }

    fn replace_on(
        &self,
        mtr: &mut Mtr<'_>,
        at: &mut Position,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let page = at.page;
        self.park_locks(mtr, page, at, scratch)?;
        let offsets = &mut scratch.offsets;
        let mut prev = delete::delete(&mut on(mtr, page), self.index(), at.rec, offsets)?;
        scratch.page.image.build(self.index(), tuple)?;
        let mut target = on(mtr, page);
        let rec = match insert_image(&mut target, self.index(), prev, &mut scratch.page)? {
            Some(rec) => rec,
            None => {
                prev = self.reorganise_around(mtr, page, prev, scratch)?;
                scratch.page.image.build(self.index(), tuple)?;
                let mut target = on(mtr, page);
                insert_image(&mut target, self.index(), prev, &mut scratch.page)?.ok_or_else(
                    || layout::corrupt(mtr.view(page), "no room for a record that fits"),
                )?
            }
        };
        at.rec = rec;
        self.unpark_locks(mtr, page, at, scratch);
        Ok(())
    }

    /// Replaces the record at `at` – on the path's leaf, latched for `Change::Both` – by `tuple`,
    /// of equal key, splitting as needed. Returns where it stands now.
    pub fn replace_restructuring(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        at: &Position,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<Position> {
        let page = at.page;
        self.claim_no_space(mtr, page)?;
        let placed = self.attempt(mtr, scratch, |mtr, scratch| {
            self.park_locks(mtr, page, at, scratch)?;
            let offsets = &mut scratch.offsets;
            delete::delete(&mut on(mtr, page), self.index(), at.rec, offsets)?;
            let rec = self.insert_at_level(mtr, path, 0, tuple, scratch)?;
            let at = Position {
                page: path.leaf(),
                rec,
                low_match: 0,
                up_match: 0,
            };
            self.unpark_locks(mtr, page, &at, scratch);
            Ok(at)
        });
        placed.map_err(|e| self.named(e))
    }

    /// Keeps the locks of a record on the page's infimum, which nobody locks, while the record is
    /// away.
    fn park_locks(
        &self,
        mtr: &Mtr<'_>,
        page: PageRef,
        at: &Position,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let from = record::heap_no(mtr.view(page), at.rec);
        // An infimum that is damaged must not pass for one.
        first_heap(mtr.view(page))?;
        let to = HeapNo::INFIMUM;
        scratch.moved.clear();
        scratch.moved.push(Moved { from, to });
        let page = mtr.page_id(page);
        self.tell_moved(mtr, scratch, page, page);
        Ok(())
    }

    fn unpark_locks(&self, mtr: &Mtr<'_>, parked: PageRef, at: &Position, scratch: &mut Scratch) {
        let to = record::heap_no(mtr.view(at.page), at.rec);
        let from = HeapNo::INFIMUM;
        scratch.moved.clear();
        scratch.moved.push(Moved { from, to });
        let (parked, now) = (mtr.page_id(parked), mtr.page_id(at.page));
        self.tell_moved(mtr, scratch, parked, now);
    }

    /// Reorganises and returns where `prev` stands afterwards.
    fn reorganise_around(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageRef,
        prev: layout::RecOffset,
        scratch: &mut Scratch,
    ) -> Result<layout::RecOffset> {
        let heap = record::heap_no(mtr.view(page), prev);
        let Scratch {
            page: work, moved, ..
        } = scratch;
        list::reorganise(&mut on(mtr, page), self.index(), work, moved)?;
        mtr.ctx().reached("tree.reorganise");
        let id = mtr.page_id(page);
        self.tell_moved(mtr, scratch, id, id);
        let view = mtr.view(page);
        if heap == HeapNo::INFIMUM {
            return Ok(layout::infimum(view));
        }
        // Records are listed in key order: the n-th entry is the n-th record.
        let rank = scratch
            .moved
            .iter()
            .position(|m| m.from == heap)
            .map_or(0, |i| i + 1);
        let mut at = layout::infimum(view);
        for _ in 0..rank {
            at = layout::next(view, at)?;
        }
        Ok(at)
    }
}

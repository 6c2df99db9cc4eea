//! Splitting a page, and raising the root.
//!
//! InnoDB puts the new page left or right of the old one, as inserts go. Here it always comes
//! right: one order of links, pointers and locks. Descending inserts then copy the records above
//! the split point once per page, which costs less than a second code path is worth.

use super::path::{Level, Path};
use super::{Scratch, Tree};
use crate::format::fil;
use crate::format::record::MIN_REC;
use crate::lock::Moved;
use crate::mtr::{Mtr, PageRef};
use crate::page::insert::insert;
use crate::page::layout::{self, RecOffset};
use crate::page::list;
use crate::page::logged::on;
use crate::page::offsets::Offsets;
use crate::page::record::{self, RecordView};
use crate::page::split_point::split_point;
use crate::page::update::raise_max_trx_id;
use crate::schema::Tuple;
use crate::schema::value::TupleKind;
use crate::words::{HeapNo, PageNo, Result};

/// Locks on the supremum move with those on records.
pub(super) const SUPREMUM_MOVED: Moved = Moved {
    from: HeapNo::SUPREMUM,
    to: HeapNo::SUPREMUM,
};

impl Tree {
    /// Splits the path's page of `level` for `tuple`, which belongs after `prev`. Afterwards the
    /// path leads to the half where it belongs. A root is raised instead: the caller tries again.
    pub(super) fn split(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        level: usize,
        prev: RecOffset,
        tuple: &Tuple,
        scratch: &mut Scratch,
    ) -> Result<()> {
        if mtr.page_id(path.levels[level].page) == self.root() {
            return self.raise_root(mtr, path, scratch);
        }
        let old = path.levels[level];
        let view = mtr.view(old.page);
        let size = scratch.page.image.size();
        let point = split_point(view, self.index(), prev, size, &mut scratch.offsets)?;
        let new_is_first = point.new_is_upper && layout::next(view, prev)? == point.first_upper;

        let hint = PageNo(mtr.page_id(old.page).page.0 + 1);
        let new = self.allocate_page(mtr, level as u16, hint)?;
        self.link_right(mtr, old, new);
        self.move_tail(mtr, old.page, point.first_upper, new, scratch)?;

        let mut pointer = Tuple::new();
        let new_no = mtr.page_id(new).page;
        if new_is_first {
            pointer.copy_prefix_of(tuple, self.index().n_node_key_fields());
            pointer.kind = TupleKind::NodePointer(new_no);
        } else {
            self.node_pointer_to(mtr, new, &mut pointer)?;
        }
        self.insert_at_level(mtr, path, level + 1, &pointer, scratch)?;

        path.levels[level] = match point.new_is_upper {
            true => Level {
                left: Some(old.page),
                page: new,
                ..old
            },
            false => Level {
                right: Some(new),
                beyond: old.right,
                ..old
            },
        };
        Ok(())
    }

    /// Moves the records from `first` (the supremum: none) to the end to the empty page `to`, with
    /// their locks; the gap that `from` now ends with is locked as the one that `to` begins with.
    fn move_tail(
        &self,
        mtr: &mut Mtr<'_>,
        from: PageRef,
        first: RecOffset,
        to: PageRef,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let moves_any = first != layout::supremum(mtr.view(from));
        scratch.moved.clear();
        if moves_any {
            self.append(mtr, from, first, to, scratch)?;
            let until = layout::supremum(mtr.view(from));
            let mut page = on(mtr, from);
            list::delete_range(&mut page, first, until, self.index(), &mut scratch.page)?;
        }
        if layout::is_leaf(mtr.view(to)) {
            let first_moved = scratch.moved.first().map_or(HeapNo::SUPREMUM, |m| m.to);
            scratch.moved.push(SUPREMUM_MOVED);
            let (from, to) = (mtr.page_id(from), mtr.page_id(to));
            self.locks().moved(from, to, &scratch.moved);
            self.locks()
                .inherit_gap((to, first_moved), (from, HeapNo::SUPREMUM));
        }
        Ok(())
    }

    /// Copies the records from `first` to the end behind the last record of `to`, which has room;
    /// `scratch.moved` tells their heap numbers.
    pub(super) fn append(
        &self,
        mtr: &mut Mtr<'_>,
        from: PageRef,
        first: RecOffset,
        to: PageRef,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (source, target) = (mtr.view(from), mtr.view(to));
        let until = layout::supremum(source);
        let after = layout::last(target)?;
        let Scratch {
            page: work, moved, ..
        } = scratch;
        list::prepare_copy(
            target,
            after,
            source,
            first,
            until,
            self.index(),
            work,
            moved,
        )?
        .ok_or_else(|| layout::corrupt(target, "no room for the records of its neighbour"))?;
        list::finish_copy(&mut on(mtr, to), work);
        Ok(())
    }

    /// Links `new` between the level's page and its right neighbour; a leaf of a secondary index
    /// takes PAGE_MAX_TRX_ID over.
    fn link_right(&self, mtr: &mut Mtr<'_>, old: Level, new: PageRef) {
        let (here, there) = (mtr.page_id(old.page).page, mtr.page_id(new).page);
        let next = layout::next_page(mtr.view(old.page));
        set_prev(mtr, new, Some(here));
        set_next(mtr, new, next);
        set_next(mtr, old.page, Some(there));
        if let Some(right) = old.right {
            set_prev(mtr, right, Some(there));
        }
        self.copy_max_trx_id(mtr, old.page, new);
    }

    /// PAGE_MAX_TRX_ID of a secondary leaf follows its records.
    pub(super) fn copy_max_trx_id(&self, mtr: &mut Mtr<'_>, from: PageRef, to: PageRef) {
        if !self.index().is_clustered() && layout::is_leaf(mtr.view(to)) {
            let id = layout::max_trx_id(mtr.view(from));
            raise_max_trx_id(&mut on(mtr, to), id);
        }
    }

    /// The node pointer to `page`, from its first record.
    pub(super) fn node_pointer_to(
        &self,
        mtr: &Mtr<'_>,
        page: PageRef,
        pointer: &mut Tuple,
    ) -> Result<()> {
        let view = mtr.view(page);
        let first = layout::first(view)?;
        if layout::is_system(view, first) {
            return Err(layout::corrupt(view, "an empty page that is not the root"));
        }
        let mut offsets = Offsets::new();
        let record = RecordView::new(view, first, self.index(), &mut offsets)?;
        record.copy_node_pointer_to(pointer, mtr.page_id(page).page);
        Ok(())
    }

    /// Moves the root's records to a new page below it; the root keeps one node pointer (T5).
    fn raise_root(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let level = path.levels.len() - 1;
        let root = path.levels[level].page;
        let hint = PageNo(mtr.page_id(root).page.0 + 1);
        let new = self.allocate_page(mtr, level as u16, hint)?;
        let first = layout::first(mtr.view(root))?;
        self.append(mtr, root, first, new, scratch)?;
        self.copy_max_trx_id(mtr, root, new);
        if level == 0 {
            scratch.moved.push(SUPREMUM_MOVED);
            self.locks()
                .moved(mtr.page_id(root), mtr.page_id(new), &scratch.moved);
        }
        let mut pointer = Tuple::new();
        self.node_pointer_to(mtr, new, &mut pointer)?;
        pointer.info_bits = MIN_REC;
        self.reset_root(mtr, root, level as u16 + 1, scratch)?;
        let infimum = layout::infimum(mtr.view(root));
        let mut page = on(mtr, root);
        insert(
            &mut page,
            self.index(),
            infimum,
            &pointer,
            &mut scratch.page,
        )?
        .ok_or_else(|| layout::corrupt(mtr.view(root), "a node pointer larger than a page"))?;
        path.levels[level] = Level::alone(new);
        path.levels.push(Level::alone(root));
        Ok(())
    }
}

/// Heap number of the first record, or of the supremum.
pub(super) fn first_heap(view: &[u8]) -> Result<HeapNo> {
    Ok(record::heap_no(view, layout::first(view)?))
}

/// Sets the link to the left neighbour.
pub(super) fn set_prev(mtr: &mut Mtr<'_>, page: PageRef, to: Option<PageNo>) {
    mtr.write_u32(page, fil::OFF_PREV, to.unwrap_or(PageNo::NONE).0);
}

/// Sets the link to the right neighbour.
pub(super) fn set_next(mtr: &mut Mtr<'_>, page: PageRef, to: Option<PageNo>) {
    mtr.write_u32(page, fil::OFF_NEXT, to.unwrap_or(PageNo::NONE).0);
}

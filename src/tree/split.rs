//! Splitting a page, and raising the root.
//!
//! As in InnoDB the new page comes left of the old one where inserts descend, else right; so a run
//! of inserts at either end moves no record. The old page's node pointer stays where it is: a new
//! left page takes it over, and the old page gets the new pointer.

use std::ops::Range;

use super::attempt::Told;
use super::path::{Level, Path};
use super::{Scratch, Tree};
use crate::format::fil;
use crate::format::record::MIN_REC;
use crate::lock::Moved;
use crate::mtr::{Mtr, PageRef};
use crate::os::planted;
use crate::page::insert::insert;
use crate::page::layout::{self, RecOffset};
use crate::page::list;
use crate::page::logged::on;
use crate::page::offsets::Offsets;
use crate::page::record::{self, RecordView};
use crate::page::split_point::{Side, split_point};
use crate::page::update::{raise_max_trx_id, set_child};
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
        let new = self.allocate_page(mtr, path.segments, level, old.page, point.side)?;
        self.copy_max_trx_id(mtr, old.page, new);
        let mut pointer = Tuple::new();
        let upper = match point.side {
            Side::Right => {
                let new_is_first = point.new_is_upper
                    && layout::next(mtr.view(old.page), prev)? == point.first_upper;
                link_right(mtr, old, new);
                mtr.ctx().reached("tree.split");
                self.move_tail(mtr, old.page, point.first_upper, new, scratch)?;
                if new_is_first {
                    pointer.copy_prefix_of(tuple, self.index().n_node_key_fields());
                    pointer.kind = TupleKind::NodePointer(mtr.page_id(new).page);
                } else {
                    self.node_pointer_to(mtr, new, &mut pointer)?;
                }
                Level {
                    left: Some(old.page),
                    page: new,
                    ..old
                }
            }
            Side::Left => {
                link_left(mtr, old, new);
                mtr.ctx().reached("tree.split_left");
                self.move_head(mtr, old.page, point.first_upper, new, scratch)?;
                self.point_to_new(mtr, path, level + 1, old.page, new)?;
                self.node_pointer_to(mtr, old.page, &mut pointer)?;
                Level {
                    left: Some(new),
                    ..old
                }
            }
        };
        self.insert_at_level(mtr, path, level + 1, &pointer, scratch)?;
        path.levels[level] = match point.new_is_upper {
            true => upper,
            false => Level {
                left: old.left,
                page: upper.left.expect("it was set just now"),
                right: Some(upper.page),
                beyond: old.right,
            },
        };
        Ok(())
    }

    /// Lets the node pointer to `old`, in the path's page of `level`, lead to `new`.
    fn point_to_new(
        &self,
        mtr: &mut Mtr<'_>,
        path: &Path<'_>,
        level: usize,
        old: PageRef,
        new: PageRef,
    ) -> Result<()> {
        let above = path.levels[level].page;
        let rec = self.pointer_to(mtr.view(above), mtr.page_id(old).page)?;
        let mut offsets = Offsets::new();
        let view = RecordView::new(mtr.view(above), rec, self.index(), &mut offsets)?;
        let at = view.child_offset();
        let new = mtr.page_id(new).page;
        set_child(&mut on(mtr, above), at, new);
        Ok(())
    }

    /// Moves the records before `until`, which is not the supremum, to the empty page `to` on the
    /// left, with their locks; the gap that `to` ends with is locked as the one that `from` begins
    /// with.
    fn move_head(
        &self,
        mtr: &mut Mtr<'_>,
        from: PageRef,
        until: RecOffset,
        to: PageRef,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let first = layout::first(mtr.view(from))?;
        scratch.moved.clear();
        if first != until {
            self.append(mtr, from, first..until, to, scratch)?;
            let mut page = on(mtr, from);
            list::delete_range(&mut page, first, until, self.index(), &mut scratch.page)?;
        }
        if layout::is_leaf(mtr.view(to)) {
            let first = first_heap(mtr.view(from))?;
            let (from, to) = (mtr.page_id(from), mtr.page_id(to));
            self.tell_moved(mtr, scratch, from, to);
            let gap = Told::InheritGap((from, first), (to, HeapNo::SUPREMUM));
            self.tell(mtr, scratch, gap);
        }
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
            let until = layout::supremum(mtr.view(from));
            self.append(mtr, from, first..until, to, scratch)?;
            let mut page = on(mtr, from);
            list::delete_range(&mut page, first, until, self.index(), &mut scratch.page)?;
        }
        if layout::is_leaf(mtr.view(to)) {
            let first_moved = scratch.moved.first().map_or(HeapNo::SUPREMUM, |m| m.to);
            scratch.moved.push(SUPREMUM_MOVED);
            let (from, to) = (mtr.page_id(from), mtr.page_id(to));
            self.tell_moved(mtr, scratch, from, to);
            let gap = Told::InheritGap((to, first_moved), (from, HeapNo::SUPREMUM));
            self.tell(mtr, scratch, gap);
        }
        Ok(())
    }

    /// Copies records of `from` behind the last record of `to`, which has room; `scratch.moved` tells
    /// their heap numbers.
    pub(super) fn append(
        &self,
        mtr: &mut Mtr<'_>,
        from: PageRef,
        records: Range<RecOffset>,
        to: PageRef,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.claim_no_space(mtr, to)?;
        let (source, target) = (mtr.view(from), mtr.view(to));
        let after = layout::last(target)?;
        let Scratch {
            page: work, moved, ..
        } = scratch;
        list::prepare_copy(
            target,
            after,
            source,
            records.start,
            records.end,
            self.index(),
            work,
            moved,
        )?
        .ok_or_else(|| layout::corrupt(target, "no room for the records of its neighbour"))?;
        list::finish_copy(&mut on(mtr, to), work);
        Ok(())
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
        let new = self.allocate_page(mtr, path.segments, level, root, Side::Right)?;
        let records = all_records(mtr.view(root))?;
        self.append(mtr, root, records, new, scratch)?;
        mtr.ctx().reached("tree.raise_root");
        self.copy_max_trx_id(mtr, root, new);
        if level == 0 {
            scratch.moved.push(SUPREMUM_MOVED);
            let (from, to) = (mtr.page_id(root), mtr.page_id(new));
            self.tell_moved(mtr, scratch, from, to);
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

/// All records of a page.
pub(super) fn all_records(view: &[u8]) -> Result<Range<RecOffset>> {
    Ok(layout::first(view)?..layout::supremum(view))
}

/// Links `new` between the level's page and its right neighbour.
fn link_right(mtr: &mut Mtr<'_>, old: Level, new: PageRef) {
    let (here, there) = (mtr.page_id(old.page).page, mtr.page_id(new).page);
    let next = layout::next_page(mtr.view(old.page));
    set_prev(mtr, new, Some(here));
    set_next(mtr, new, next);
    set_next(mtr, old.page, Some(there));
    if let Some(right) = old.right.filter(|_| !planted("tree.link_forgotten")) {
        set_prev(mtr, right, Some(there));
    }
}

/// Links `new` between the level's page and its left neighbour.
fn link_left(mtr: &mut Mtr<'_>, old: Level, new: PageRef) {
    let (here, there) = (mtr.page_id(old.page).page, mtr.page_id(new).page);
    let prev = layout::prev_page(mtr.view(old.page));
    set_prev(mtr, new, prev);
    set_next(mtr, new, Some(here));
    set_prev(mtr, old.page, Some(there));
    if let Some(left) = old.left {
        set_next(mtr, left, Some(there));
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

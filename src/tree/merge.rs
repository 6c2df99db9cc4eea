//! Merging under-filled pages, and lowering the tree.
//!
//! The right page's records always go to the end of the left one, whichever of the two was
//! under-filled; and a merge happens only under one parent, so that the pointer that goes is
//! never the first of its page.

use super::attempt::Told;
use super::path::{Level, Path};
use super::split::{SUPREMUM_MOVED, all_records, set_next, set_prev};
use super::{Scratch, Tree};
use crate::mtr::{Mtr, PageRef};
use crate::page::{layout, space};
use crate::words::{HeapNo, Result};

/// The pages of a merge, thought out before it is done.
struct MergePlan {
    left: PageRef,
    right: PageRef,
    /// What follows `right`.
    beyond: Option<PageRef>,
    /// The level as it is afterwards.
    kept: Level,
}

impl Tree {
    /// From level `from` upwards: merges the path's pages that are under-filled with a neighbour,
    /// as far as the path is latched; then lowers the root while it has one child.
    pub(super) fn merge_up(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        from: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut level = from;
        while level + 1 < path.levels.len() {
            // A merge is a favour: where damage is in its way, pages stay as they are.
            let before = path.levels.clone();
            let merged = self.attempt(mtr, scratch, |mtr, scratch| {
                let Some(plan) = self.plan_merge(mtr, path, level)? else {
                    return Ok(false);
                };
                self.merge(mtr, path, level, plan, scratch)?;
                Ok(true)
            });
            match merged {
                Ok(true) => level += 1,
                Ok(false) => break,
                Err(_) => {
                    path.levels = before;
                    return Ok(());
                }
            }
        }
        // So is this.
        while let Ok(true) = self.attempt(mtr, scratch, |mtr, scratch| {
            self.lower_root(mtr, path, scratch)
        }) {}
        Ok(())
    }

    /// Whether and how one page of the path is merged.
    fn plan_merge(
        &self,
        mtr: &Mtr<'_>,
        path: &Path<'_>,
        level: usize,
    ) -> Result<Option<MergePlan>> {
        let at = path.levels[level];
        let view = mtr.view(at.page);
        if space::data_size(view) >= self.merge_limit(view.len()) {
            return Ok(None);
        }
        let parent = mtr.view(path.levels[level + 1].page);
        let pointer = self.pointer_to(parent, mtr.page_id(at.page).page)?;
        let is_first = layout::first(parent)? == pointer;
        let is_last = layout::next(parent, pointer)? == layout::supremum(parent);
        let left = at
            .left
            .filter(|&left| !is_first && both_fit(mtr, left, at.page));
        let right = at
            .right
            .filter(|&right| !is_last && both_fit(mtr, at.page, right));
        let (left, right, beyond, kept) = match (left, right) {
            (Some(left), _) => {
                let kept = Level {
                    left: None,
                    page: left,
                    right: at.right,
                    beyond: None,
                };
                (left, at.page, at.right, kept)
            }
            (None, Some(right)) => {
                let kept = Level {
                    right: at.beyond,
                    beyond: None,
                    ..at
                };
                (at.page, right, at.beyond, kept)
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(MergePlan {
            left,
            right,
            beyond,
            kept,
        }))
    }

    /// Merges one page of the path with its neighbour.
    fn merge(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        level: usize,
        plan: MergePlan,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let MergePlan {
            left,
            right,
            beyond,
            kept,
        } = plan;
        self.move_left(mtr, level, left, right, scratch)?;
        mtr.ctx().reached("tree.merge");
        let next = layout::next_page(mtr.view(right));
        set_next(mtr, left, next);
        if let Some(beyond) = beyond {
            let left = mtr.page_id(left).page;
            set_prev(mtr, beyond, Some(left));
        }
        path.levels[level] = kept;
        let gone = mtr.page_id(right);
        self.remove_pointer(mtr, path, level + 1, gone.page, scratch)?;
        path.segments.free_page(mtr, level, gone)
    }

    /// Moves all records of `right` to the end of `left`, with their locks.
    fn move_left(
        &self,
        mtr: &mut Mtr<'_>,
        level: usize,
        left: PageRef,
        right: PageRef,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let records = mtr.view(right);
        let (n, size) = (layout::n_recs(records), space::data_size(records));
        let all = all_records(records)?;
        if space::max_insert_size(mtr.view(left), n) < size {
            self.reorganise(mtr, left, scratch)?;
        }
        self.append(mtr, right, all, left, scratch)?;
        self.copy_max_trx_id(mtr, right, left);
        if level == 0 {
            let (from, to) = (mtr.page_id(right), mtr.page_id(left));
            if let Some(first_moved) = scratch.moved.first() {
                let gap = Told::Removed((to, HeapNo::SUPREMUM), (to, first_moved.to));
                self.tell(mtr, scratch, gap);
            }
            scratch.moved.push(SUPREMUM_MOVED);
            self.tell_moved(mtr, scratch, from, to);
        }
        Ok(())
    }

    /// If the root has a single child, the child's records move up into it; true if they did.
    fn lower_root(
        &self,
        mtr: &mut Mtr<'_>,
        path: &mut Path<'_>,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let [.., child, root] = path.levels[..] else {
            return Ok(false);
        };
        let view = mtr.view(root.page);
        let single = mtr.page_id(root.page) == self.root()
            && layout::level(view) > 0
            && layout::n_recs(view) == 1;
        let gone = mtr.page_id(child.page);
        if !single || self.child(view, layout::first(view)?)? != gone.page {
            return Ok(false);
        }
        let level = path.levels.len() - 2;
        self.reset_root(mtr, root.page, level as u16, scratch)?;
        mtr.ctx().reached("tree.lower_root");
        let all = all_records(mtr.view(child.page))?;
        self.append(mtr, child.page, all, root.page, scratch)?;
        self.copy_max_trx_id(mtr, child.page, root.page);
        if level == 0 {
            scratch.moved.push(SUPREMUM_MOVED);
            self.tell_moved(mtr, scratch, gone, self.root());
        }
        path.segments.free_page(mtr, level, gone)?;
        path.levels.pop();
        path.levels[level] = Level::alone(root.page);
        Ok(true)
    }
}

/// True if the records of both pages fit on one.
fn both_fit(mtr: &Mtr<'_>, left: PageRef, right: PageRef) -> bool {
    let right = mtr.view(right);
    let room = space::max_insert_size_after_reorganise(mtr.view(left), layout::n_recs(right));
    room >= space::data_size(right)
}

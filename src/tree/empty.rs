//! Making a tree empty: the rollback of a bulk load.
//!
//! Leaf after leaf goes from the right end, by structure changes that readers know; then what no record
//! leads to: pages of a build that was cut short, and off-page values.

use super::attempt::Told;
use super::create::Segments;
use super::path::Change;
use super::search::Seek;
use super::{Scratch, Tree};
use crate::extent;
use crate::format::index_page::SEGMENT_LEAF;
use crate::mtr::{Budget, Class, Mode, Mtr, PageCtx, PageRef, retry};
use crate::page::layout;
use crate::sync::Rank;
use crate::words::{Error, HeapNo, Result};

/// Redo of one step of freeing: an extent of pages, lists.
const FREE_LOG_BYTES: usize = 16 << 10;

impl Tree {
    /// Removes every record and frees every page but the root. Writers of the table are locked out. May
    /// be repeated, after a crash too, and after it was broken off since `told_to_end` said so.
    ///
    /// Errors: damage; what reading gives; `Interrupted`.
    pub fn make_empty(&self, ctx: &PageCtx, told_to_end: &dyn Fn() -> bool) -> Result<()> {
        let check = || match told_to_end() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        };
        let mut scratch = Scratch::default();
        while !self.remove_last_leaf(ctx, &mut scratch)? {
            check()?;
        }
        while !self.free_unreached(ctx)? {
            check()?;
        }
        Ok(())
    }

    /// Takes the last leaf away; true when the root is an empty leaf.
    fn remove_last_leaf(&self, ctx: &PageCtx, scratch: &mut Scratch) -> Result<bool> {
        let budget = self.change_budget(ctx, Class::System);
        let (done, _) = retry(ctx, Some(budget), |mtr| {
            let mut path = self.latch_path(mtr, Seek::Last, Change::Delete)?;
            let page = path.leaf();
            let gone = mtr.page_id(page);
            if gone == self.root() {
                self.attempt(mtr, scratch, |mtr, scratch| {
                    self.forget_locks(mtr, page, page, scratch)?;
                    self.reset_root(mtr, page, 0, scratch)
                })?;
                return Ok(true);
            }
            self.attempt(mtr, scratch, |mtr, scratch| {
                let left = path.levels[0].left.unwrap_or(page);
                self.forget_locks(mtr, page, left, scratch)?;
                self.unlink(mtr, &path, 0);
                self.remove_pointer(mtr, &mut path, 1, gone.page, scratch)?;
                path.segments.free_page(mtr, 0, gone)
            })?;
            Ok(false)
        })?;
        ctx.reached("bulk.emptied");
        Ok(done)
    }

    /// Locks on the page's records become locks on the end of `to`.
    fn forget_locks(
        &self,
        mtr: &Mtr<'_>,
        page: PageRef,
        to: PageRef,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (view, from) = (mtr.view(page), mtr.page_id(page));
        let to = (mtr.page_id(to), HeapNo::SUPREMUM);
        for rec in layout::records(view) {
            let heap = crate::page::record::heap_no(view, rec?);
            self.tell(mtr, scratch, Told::Removed((from, heap), to));
        }
        if from != to.0 {
            let all = (from, HeapNo::SUPREMUM);
            self.tell(mtr, scratch, Told::Removed(all, to));
        }
        Ok(())
    }

    /// Frees a piece of what the segments have beside the root; true when nothing is left. The leaf
    /// segment goes with its last piece, and another one takes its place.
    fn free_unreached(&self, ctx: &PageCtx) -> Result<bool> {
        let budget = Budget::system(FREE_LOG_BYTES).with_frames(8);
        let (done, _) = retry(ctx, Some(budget), |mtr| {
            let root = mtr.get_reading(self.root(), Mode::X, Rank::IndexPage)?;
            self.check_root(mtr, root)?;
            let segments = Segments::of_root(mtr, root)?;
            let (leaf, top) = (segments.of_level(0), segments.of_level(1));
            // The space's pages are latched for reading here and for changing below.
            let since = mtr.savepoint();
            let leaf_pages = extent::segment_use(mtr, leaf)?.reserved;
            let top_pages = extent::segment_use(mtr, top)?.used;
            mtr.release_from(since);
            if leaf_pages > 0 {
                mtr.attempt(|mtr| {
                    if extent::free_segment_step(mtr, leaf, None)? {
                        let new = extent::create_segment(mtr, self.space())?;
                        mtr.write(root, SEGMENT_LEAF, &new.to_bytes());
                    }
                    Ok(())
                })?;
                return Ok(false);
            }
            if top_pages > 1 {
                let root = self.root().page;
                mtr.attempt(|mtr| extent::free_segment_step(mtr, top, Some(root)))?;
                return Ok(false);
            }
            Ok(true)
        })?;
        Ok(done)
    }
}

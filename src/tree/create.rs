//! Pages of a tree: taking and returning them, making and freeing whole trees.

use super::{Scratch, Tree};
use crate::extent::{self, Direction, Reservation};
use crate::format::index_page::{MAX_TRX_ID, SEGMENT_LEAF, SEGMENT_TOP};
use crate::format::inode::SegmentHeader;
use crate::mtr::{Budget, Class, Mode, Mtr, PageCtx, PageRef, retry};
use crate::page::layout;
use crate::page::list;
use crate::page::logged::on;
use crate::page::split_point::Side;
use crate::sync::Rank;
use crate::words::limits::MTR_BYTES_MAX;
use crate::words::{Error, IndexId, PageId, PageNo, Result, SpaceId};

/// The two segments of a tree, as its root names them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segments {
    leaf: SegmentHeader,
    top: SegmentHeader,
}

impl Segments {
    pub(super) fn of_root(mtr: &Mtr<'_>, root: PageRef) -> Result<Segments> {
        let leaf = Segments::parse(mtr, root, SEGMENT_LEAF)?;
        Ok(Segments {
            leaf,
            top: Segments::parse(mtr, root, SEGMENT_TOP)?,
        })
    }

    fn parse(mtr: &Mtr<'_>, root: PageRef, at: usize) -> Result<SegmentHeader> {
        let id = mtr.page_id(root);
        let geometry = mtr.ctx().spaces.find(id.space)?.geometry();
        let header =
            SegmentHeader::parse(mtr.view(root), at, geometry).map_err(|e| e.at_page(id))?;
        if header.page().space != id.space {
            return Err(Error::corrupt(
                id,
                "a segment header that names another tablespace",
            ));
        }
        Ok(header)
    }

    pub(super) fn of_level(&self, level: u16) -> SegmentHeader {
        if level == 0 { self.leaf } else { self.top }
    }

    /// Returns a page of `level`.
    pub(super) fn free_page(&self, mtr: &mut Mtr<'_>, level: usize, page: PageId) -> Result<()> {
        extent::free_page(mtr, self.of_level(level as u16), page.page)
    }
}

impl Tree {
    /// The tree's segments. Latches the root S for a moment, unless it is held: call it before any page
    /// below is latched, since a structure change that waits for the root holds up those who want it
    /// S. A structure change has them in its path.
    pub(super) fn segments(&self, mtr: &mut Mtr<'_>) -> Result<Segments> {
        if let Some(root) = mtr.held(self.root()) {
            return Segments::of_root(mtr, root);
        }
        let root = mtr.get_reading(self.root(), Mode::S, Rank::IndexPage)?;
        self.check_root(mtr, root)?;
        let segments = Segments::of_root(mtr, root);
        mtr.release(root);
        segments
    }

    /// Reserves the pages that one structure change may take: a split on every level, a raise.
    /// Call it with no latch held.
    pub fn reserve_for_change(&self, ctx: &PageCtx, class: Class) -> Result<Reservation> {
        self.reserve_pages(ctx, CHANGE_PAGES, class)
    }

    /// Reserves `pages` pages of this tree's segments.
    pub(super) fn reserve_pages(
        &self,
        ctx: &PageCtx,
        pages: u32,
        class: Class,
    ) -> Result<Reservation> {
        extent::reserve(ctx, self.space(), 2, pages, class)
    }

    /// What the mtr of a structure change may log, nested undo included, and how many frames it
    /// takes: a few pages on every level are rewritten, as far as one mini-transaction may (M6).
    pub fn change_budget(&self, ctx: &PageCtx, class: Class) -> Budget {
        let rewritten = CHANGE_PAGES as usize * 3 * ctx.page_size();
        let log_bytes = rewritten.min(MTR_BYTES_MAX);
        Budget {
            log_bytes,
            frames: CHANGE_PAGES + 8,
            class,
        }
    }

    /// Takes a page for `level`, if possible beside `near`, and makes it an empty page of this tree.
    pub(super) fn allocate_page(
        &self,
        mtr: &mut Mtr<'_>,
        segments: Segments,
        level: usize,
        near: PageRef,
        side: Side,
    ) -> Result<PageRef> {
        let level = level as u16;
        let segment = segments.of_level(level);
        let near = mtr.page_id(near).page;
        let (hint, direction) = match side {
            Side::Left => (PageNo(near.0.saturating_sub(1)), Direction::Down),
            Side::Right => (PageNo(near.0 + 1), Direction::Up),
        };
        let id = extent::allocate_page(mtr, segment, hint, direction)?;
        let page = mtr.create(id, Rank::IndexPage)?;
        let index = self.index();
        list::create(&mut on(mtr, page), index.id, level, index.compact)?;
        Ok(page)
    }

    /// Empties the root and makes it a page of `level`. What belongs to the tree rather than to
    /// the records stays: segments, AUTO_INCREMENT, the instant state.
    pub(super) fn reset_root(
        &self,
        mtr: &mut Mtr<'_>,
        root: PageRef,
        level: u16,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut page = on(mtr, root);
        list::empty(&mut page, &mut scratch.page)?;
        list::set_level(&mut page, level);
        if !self.index().is_clustered() {
            // A secondary root's PAGE_MAX_TRX_ID means something only while it is a leaf.
            mtr.write_u64(root, MAX_TRX_ID, 0);
        }
        Ok(())
    }
}

/// Pages that one structure change takes at most: one a level, and one for a new root's child.
const CHANGE_PAGES: u32 = 8;

/// Makes an empty tree: two segments – the inner one first, as InnoDB numbers them – and a root,
/// which belongs to the inner one. Needs a reservation of one page for each. An error has changed nothing.
pub fn create(mtr: &mut Mtr<'_>, space: SpaceId, id: IndexId, compact: bool) -> Result<PageNo> {
    mtr.attempt(|mtr| {
        let top = extent::create_segment(mtr, space)?;
        let root = extent::allocate_page(mtr, top, PageNo(0), Direction::None)?;
        let root = mtr.create(root, Rank::IndexPage)?;
        let leaf = extent::create_segment(mtr, space)?;
        list::create(&mut on(mtr, root), id, 0, compact)?;
        mtr.write(root, SEGMENT_LEAF, &leaf.to_bytes());
        mtr.write(root, SEGMENT_TOP, &top.to_bytes());
        Ok(mtr.page_id(root).page)
    })
}

/// Frees a tree that nobody uses any more, a piece an mtr, the root last. A tree that is gone
/// already – the page is free, or belongs to another index – is left alone, so that recovery may
/// repeat it.
pub fn free(ctx: &PageCtx, root: PageId, id: IndexId) -> Result<()> {
    let budget = Budget::system(FREE_LOG_BYTES).with_frames(8);
    loop {
        let (done, _) = retry(ctx, Some(budget), |mtr| free_piece(mtr, root, id))?;
        if done {
            return Ok(());
        }
    }
}

/// Redo of one step of freeing: an extent of pages, lists.
const FREE_LOG_BYTES: usize = 16 << 10;

/// Frees a piece; true when the tree is gone. The step that takes the leaf segment's inode also
/// erases the root's header of it: the slot may serve another segment before a repetition.
fn free_piece(mtr: &mut Mtr<'_>, root: PageId, id: IndexId) -> Result<bool> {
    let page = mtr.get_reading(root, Mode::X, Rank::IndexPage)?;
    let view = mtr.view(page);
    let is_tree = layout::check_frame(view).is_ok() && layout::index_id(view) == id;
    if !is_tree {
        return Ok(true);
    }
    // The space's pages are latched for reading here and for changing below.
    let since = mtr.savepoint();
    let is_gone = extent::is_page_free(mtr, root)?;
    mtr.release_from(since);
    if is_gone {
        return Ok(true);
    }
    if mtr.view(page)[SEGMENT_LEAF..SEGMENT_TOP]
        .iter()
        .any(|&b| b != 0)
    {
        let leaf = Segments::of_root(mtr, page)?.leaf;
        if extent::free_segment_step(mtr, leaf, None)? {
            mtr.memset(page, SEGMENT_LEAF, SEGMENT_TOP - SEGMENT_LEAF, 0);
        }
        return Ok(false);
    }
    let top = Segments::parse(mtr, page, SEGMENT_TOP)?;
    mtr.attempt(|mtr| {
        let only_root = extent::free_segment_step(mtr, top, Some(root.page))?;
        if only_root {
            extent::free_segment_step(mtr, top, None)?;
        }
        Ok(only_root)
    })
}

//! Taking applied changes out.

use super::read::{self, Leaf, id, leftmost, named, page_copy};
use crate::extent::{self, change_bitmap};
use crate::format::ibuf;
use crate::format::inode::SegmentHeader;
use crate::format::list::ListBase;
use crate::format::record;
use crate::mtr::{Budget, Mode, PageCtx, retry};
use crate::page::{Scratch, layout, list, logged};
use crate::sync::Rank;
use crate::words::{Error, PageId, PageNo, Result, SpaceId};

/// Log bytes that a written byte takes at most.
const WRITE_LOG_BYTES: usize = 16;
/// Log bytes of returning a page: descriptors, lists, bitmap.
const FREE_LOG_BYTES: usize = 4 << 10;
/// Pages that returning a page may read: header, descriptor, inode, list neighbours, bitmap.
const FREE_FRAMES: u32 = 16;

/// Delete-marks the entries of `leaf` for which `is_done` says so: neither this engine nor InnoDB
/// applies them again.
///
/// # Errors
/// What reading gives; `Stopped`.
pub fn mark_done(ctx: &PageCtx, leaf: &Leaf, is_done: impl Fn(usize) -> bool) -> Result<()> {
    let marked = || (0..leaf.changes.len()).filter(|&i| !leaf.changes[i].done && is_done(i));
    let budget = Budget::system(marked().count() * WRITE_LOG_BYTES + WRITE_LOG_BYTES);
    retry(ctx, Some(budget), |mtr| {
        let page = mtr.get(id(leaf.page), Mode::X, Rank::IndexPage)?;
        for i in marked() {
            let at = leaf.changes[i].rec.at();
            let info = record::info_bits(mtr.view(page), at, false);
            let owned = record::n_owned(mtr.view(page), at, false);
            let byte = info | record::DELETED | owned;
            mtr.write_u8(page, record::info_offset(at, false), byte);
        }
        Ok(())
    })?;
    Ok(())
}

/// Says in the bitmap that nothing is put off for `page` any more. All its entries are done.
///
/// # Errors
/// What reading gives; `Stopped`.
pub fn clear_bits(ctx: &PageCtx, page: PageId) -> Result<()> {
    let mut budget = Budget::system(WRITE_LOG_BYTES);
    budget.frames = 1;
    retry(ctx, Some(budget), |mtr| change_bitmap::clear(mtr, page))?;
    Ok(())
}

/// Empties the tree, whose entries are all done, and returns its pages.
///
/// # Errors
/// Damage of the tree or of the allocation; what reading gives; `Stopped`.
pub fn empty(ctx: &PageCtx) -> Result<()> {
    let segment = segment(ctx)?;
    let mut pages = pages_of_tree(ctx)?;
    pages.extend(free_list(ctx)?);
    let budget = Budget::system(3 * ctx.page_size());
    retry(ctx, Some(budget), |mtr| {
        let root = mtr.get(id(ibuf::ROOT_PAGE), Mode::X, Rank::IndexPage)?;
        let mut page = logged::on(mtr, root);
        list::empty(&mut page, &mut Scratch::default())?;
        list::set_level(&mut page, 0);
        mtr.write(root, ibuf::OFF_FREE_LIST, &ListBase::EMPTY.to_bytes());
        Ok(())
    })?;
    for page in pages {
        let budget = Budget {
            frames: FREE_FRAMES,
            ..Budget::system(FREE_LOG_BYTES)
        };
        retry(ctx, Some(budget), |mtr| {
            extent::free_page(mtr, segment, page)?;
            change_bitmap::leave_tree(mtr, id(page))
        })?;
    }
    Ok(())
}

fn segment(ctx: &PageCtx) -> Result<SegmentHeader> {
    let header = id(ibuf::HEADER_PAGE);
    let geometry = ctx.spaces.find(SpaceId::SYSTEM)?.geometry();
    let (segment, _) = retry(ctx, None, |mtr| {
        let page = mtr.get(header, Mode::S, Rank::IndexPage)?;
        SegmentHeader::parse(mtr.view(page), ibuf::OFF_SEGMENT, geometry)
            .map_err(|e| e.at_page(header))
    })?;
    match segment.page().space {
        SpaceId::SYSTEM => Ok(segment),
        _ => Err(Error::corrupt(
            header,
            "a segment header that names another tablespace",
        )),
    }
}

/// Every page of the tree but the root.
fn pages_of_tree(ctx: &PageCtx) -> Result<Vec<PageNo>> {
    let mut pages = Vec::new();
    let root = page_copy(ctx, ibuf::ROOT_PAGE)?;
    for level in 0..layout::level(&root) {
        let mut next = Some(leftmost(ctx, level)?);
        while let Some(page) = next {
            check_walk(ctx, &pages, page)?;
            pages.push(page);
            next = layout::next_page(&page_copy(ctx, page)?);
        }
    }
    Ok(pages)
}

/// The pages that InnoDB kept ready for the tree.
fn free_list(ctx: &PageCtx) -> Result<Vec<PageNo>> {
    let base = ListBase::parse(&page_copy(ctx, ibuf::ROOT_PAGE)?, ibuf::OFF_FREE_LIST)
        .map_err(|e| named(e.at_page(id(ibuf::ROOT_PAGE))))?;
    let mut pages = Vec::new();
    let mut next = base.first.some();
    while let Some(at) = next {
        check_walk(ctx, &pages, at.page())?;
        let page = id(at.page());
        let (node, _) = retry(ctx, None, |mtr| {
            let held = mtr.get(page, Mode::S, Rank::IndexPage)?;
            crate::format::list::ListNode::parse(mtr.view(held), ibuf::OFF_FREE_NODE)
                .map_err(|e| named(e.at_page(page)))
        })?;
        pages.push(at.page());
        next = node.next.some();
    }
    Ok(pages)
}

/// Ends a walk that damaged links would make endless.
fn check_walk(ctx: &PageCtx, seen: &[PageNo], page: PageNo) -> Result<()> {
    let size = ctx.spaces.find(SpaceId::SYSTEM)?.size_pages();
    if seen.len() as u32 > size || page == ibuf::ROOT_PAGE {
        let why = "the change buffer's pages are linked in a circle";
        return Err(named(Error::corrupt(read::id(page), why)));
    }
    Ok(())
}

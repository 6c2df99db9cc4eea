//! Segments: creating, taking and returning pages, freeing step by step
//! (format-tablespace.md 4.4, 4.5 rules 3 and 4).

use super::header::Extent;
use super::list::Base;
use super::plan::Plan;
use crate::format::fil::PageType;
use crate::format::fsp;
use crate::format::inode::{self, SegmentHeader};
use crate::format::list::FilAddr;
use crate::format::xdes::{self, State};
use crate::mtr::{Mtr, PageRef};
use crate::sync::Rank;
use crate::words::{Error, PageId, PageNo, Result, SegmentId, SpaceId};

/// Where a tree grows, for the choice between filling extents and opening new ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// No order is seen.
    None,
    /// Descending inserts.
    Down,
    /// Ascending inserts.
    Up,
}

/// Pages of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentUse {
    /// Pages in use.
    pub used: u32,
    /// Pages that belong to the segment, used or not.
    pub reserved: u32,
}

/// One page in so many may be unused before new extents are opened freely.
const FILL_FACTOR: u32 = 8;
/// A segment of fewer extents keeps no free ones ahead.
const FREE_AHEAD_FROM: u32 = 40;
/// Free extents that a segment keeps ahead.
const FREE_AHEAD: u32 = 4;

const INODES_FULL: Base = Base {
    page: PageNo(0),
    at: fsp::OFF_INODES_FULL,
};
const INODES_FREE: Base = Base {
    page: PageNo(0),
    at: fsp::OFF_INODES_FREE,
};

/// A segment in a plan.
#[derive(Clone, Copy)]
struct Segment {
    id: SegmentId,
    page: PageNo,
    slot: usize,
}

impl Segment {
    fn list(self, which: usize) -> Base {
        Base {
            page: self.page,
            at: self.slot + which,
        }
    }
}

/// Makes a segment without pages. The caller stores the header, in the same mtr.
///
/// Errors: `NoSpace`, `Corrupt`; nothing is changed then.
pub fn create_segment(mtr: &mut Mtr<'_>, space: SpaceId) -> Result<SegmentHeader> {
    let mut plan = Plan::open(mtr, space)?;
    let header = plan.create_segment()?;
    plan.apply()?;
    Ok(header)
}

/// Takes a page for a segment: `hint` if possible, or near it. Only the allocation is changed: the
/// caller makes the page with `Mtr::create` in the same mtr.
///
/// Errors: `NoSpace` if the file has no room left (reserve before!), `Corrupt`; nothing is changed
/// then.
pub fn allocate_page(
    mtr: &mut Mtr<'_>,
    segment: SegmentHeader,
    hint: PageNo,
    direction: Direction,
) -> Result<PageId> {
    let mut plan = Plan::open(mtr, segment.page().space)?;
    let page = plan.allocate(segment, hint, direction)?;
    let id = plan.id(page);
    plan.apply()?;
    Ok(id)
}

/// `allocate_page` and `Mtr::create` in one.
///
/// Errors: as `allocate_page`, and `BufferPoolFull`; nothing is changed then.
pub fn allocate_and_create(
    mtr: &mut Mtr<'_>,
    segment: SegmentHeader,
    hint: PageNo,
    direction: Direction,
    rank: Rank,
) -> Result<PageRef> {
    mtr.attempt(|mtr| {
        let id = allocate_page(mtr, segment, hint, direction)?;
        mtr.create(id, rank)
    })
}

/// Returns a page of a segment, which must be unchanged in this mtr.
///
/// Errors: `Corrupt` if the page is free, or not the segment's; nothing is changed then.
pub fn free_page(mtr: &mut Mtr<'_>, segment: SegmentHeader, page: PageNo) -> Result<()> {
    let mut plan = Plan::open(mtr, segment.page().space)?;
    plan.free_segment_page(segment, page)?;
    plan.apply()
}

/// Frees a part of a segment: an extent or a single page, and at last the inode; true when nothing is
/// left. With `keep`, that page stays – it holds the segment's own header – and so does the inode:
/// true when nothing else is left. Each step is for an mtr of its own.
///
/// Errors: `Corrupt`; nothing is changed then.
pub fn free_segment_step(
    mtr: &mut Mtr<'_>,
    segment: SegmentHeader,
    keep: Option<PageNo>,
) -> Result<bool> {
    let mut plan = Plan::open(mtr, segment.page().space)?;
    let done = plan.free_segment_step(segment, keep)?;
    plan.apply()?;
    Ok(done)
}

/// Pages of a segment.
///
/// Errors: what reading the inode page gives; `Corrupt`.
pub fn segment_use(mtr: &mut Mtr<'_>, segment: SegmentHeader) -> Result<SegmentUse> {
    let id = segment.page();
    let geometry = mtr.ctx().spaces.find(id.space)?.geometry();
    let held = mtr.get_reading(id, crate::mtr::Mode::S, Rank::FspPage)?;
    let slot = mtr
        .view(held)
        .get(segment.offset()..segment.offset() + geometry.inode_bytes());
    let slot = slot.ok_or_else(|| Error::corrupt(id, "an inode leaves its page"))?;
    inode::validate(slot).map_err(|error| error.at_page(id))?;
    usage(slot, geometry.extent_pages()).map_err(|error| error.at_page(id))
}

fn usage(slot: &[u8], extent_pages: u32) -> Result<SegmentUse> {
    let count = |which| inode::list(slot, which).map(|list| list.count());
    let (free, not_full, full) = (
        count(inode::OFF_FREE)?,
        count(inode::OFF_NOT_FULL)?,
        count(inode::OFF_FULL)?,
    );
    let fragments = inode::fragments(slot).count() as u32;
    let pages = |extents: u32| extents.checked_mul(extent_pages);
    let used = pages(full)
        .and_then(|pages| pages.checked_add(fragments))
        .and_then(|pages| pages.checked_add(inode::not_full_n_used(slot)));
    let reserved = free
        .checked_add(not_full)
        .and_then(|extents| extents.checked_add(full))
        .and_then(pages)
        .and_then(|pages| pages.checked_add(fragments));
    match (used, reserved) {
        (Some(used), Some(reserved)) if used <= reserved => Ok(SegmentUse { used, reserved }),
        _ => Err(Error::corrupt_bytes(
            "a segment uses more pages than it has",
        )),
    }
}

impl Plan<'_, '_> {
    // The inode ---------------------------------------------------------------------------------

    fn segment(&mut self, header: SegmentHeader) -> Result<Segment> {
        let page = header.page().page;
        let slot = self.inode(page, header.offset())?;
        let id = self.at(page, inode::validate(&slot))?;
        Ok(Segment {
            id,
            page,
            slot: header.offset(),
        })
    }

    fn inode(&mut self, page: PageNo, at: usize) -> Result<Vec<u8>> {
        if !inode::is_slot_offset(self.geometry, at) {
            return Err(self.corrupt(page, format!("no segment inode starts at {at}")));
        }
        self.read(page, at, self.geometry.inode_bytes())
    }

    fn segment_use(&mut self, segment: Segment) -> Result<SegmentUse> {
        let slot = self.inode(segment.page, segment.slot)?;
        self.at(segment.page, usage(&slot, self.extent_pages()))
    }

    fn create_segment(&mut self) -> Result<SegmentHeader> {
        let page = match self.list(INODES_FREE)?.first.some() {
            Some(node) => node.page(),
            None => self.create_inode_page()?,
        };
        let Some(at) = self.free_slot_after(page, 0)? else {
            return Err(self.corrupt(page, "an INODE page on the free list has no free slot"));
        };
        if self.free_slot_after(page, at + 1)?.is_none() {
            let node = inode_page_node(page);
            self.remove(INODES_FREE, node)?;
            self.add_last(INODES_FULL, node)?;
        }
        let id = self.u64(PageNo(0), fsp::OFF_NEXT_SEGMENT)?;
        self.write_u64(PageNo(0), fsp::OFF_NEXT_SEGMENT, id + 1);
        let mut slot = vec![0; self.geometry.inode_bytes()];
        inode::init(&mut slot, SegmentId(id));
        self.write(page, at, &slot);
        Ok(SegmentHeader::new(self.id(page), at as u16))
    }

    fn create_inode_page(&mut self) -> Result<PageNo> {
        let page = self.take_single(PageNo(0))?;
        self.create(page, PageType::INODE);
        self.add_last(INODES_FREE, inode_page_node(page))?;
        Ok(page)
    }

    /// First unused slot at or behind offset `from` of an INODE page.
    fn free_slot_after(&mut self, page: PageNo, from: usize) -> Result<Option<usize>> {
        self.find_slot(page, from, |id| id == 0)
    }

    fn find_slot(
        &mut self,
        page: PageNo,
        from: usize,
        wanted: impl Fn(u64) -> bool,
    ) -> Result<Option<usize>> {
        for index in 0..self.geometry.inodes_per_page() {
            let at = inode::slot_offset(self.geometry, index);
            if at >= from && wanted(self.u64(page, at)?) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn free_inode(&mut self, segment: Segment) -> Result<()> {
        let node = inode_page_node(segment.page);
        if self.free_slot_after(segment.page, 0)?.is_none() {
            self.remove(INODES_FULL, node)?;
            self.add_last(INODES_FREE, node)?;
        }
        let zeros = vec![0; self.geometry.inode_bytes()];
        self.write(segment.page, segment.slot, &zeros);
        if self.find_slot(segment.page, 0, |id| id != 0)?.is_none() {
            self.remove(INODES_FREE, node)?;
            self.return_single(segment.page)?;
        }
        Ok(())
    }

    // Taking ------------------------------------------------------------------------------------

    fn allocate(
        &mut self,
        header: SegmentHeader,
        hint: PageNo,
        direction: Direction,
    ) -> Result<PageNo> {
        let segment = self.segment(header)?;
        let SegmentUse { used, reserved } = self.segment_use(segment)?;
        let unused = reserved - used;
        let past_fragments = used >= self.geometry.fragment_slots();
        let may_open = past_fragments
            && unused < reserved / FILL_FACTOR
            && unused < FREE_AHEAD * self.extent_pages();
        let hinted = self.extent_of(hint)?;
        let owned =
            |extent: &Extent| extent.state == State::Segment && extent.segment() == segment.id;
        if let Some(extent) = &hinted {
            // a) the hinted page itself.
            if owned(extent) && extent.is_free(hint) {
                return self.take_from(segment, hint, hint);
            }
            // b) the hinted extent.
            if extent.state == State::Free && may_open {
                let first = self.take_extent(hint)?.first;
                self.own_extent(segment, first)?;
                self.keep_extents_ahead(segment, PageNo(first.0 + self.extent_pages()))?;
                return self.take_from(segment, hint, hint);
            }
        }
        // b) a new extent in the direction of growth.
        if direction != Direction::None && may_open {
            if let Some(first) = self.extent_for(segment, hint)? {
                let last = PageNo(first.0 + self.extent_pages() - 1);
                let page = if direction == Direction::Down {
                    last
                } else {
                    first
                };
                return self.take_from(segment, first, page);
            }
        }
        // a) another page of the hinted extent.
        if let Some(extent) = hinted.filter(|extent| owned(extent) && !extent.is_full()) {
            return self.take_near(segment, extent.first, hint);
        }
        // c) any unused page.
        if unused > 0 {
            for which in [inode::OFF_NOT_FULL, inode::OFF_FREE] {
                if let Some(extent) = self.first_extent(segment.list(which), State::Segment)? {
                    return self.take_near(segment, extent.first, PageNo(0));
                }
            }
            return Err(self.corrupt(segment.page, "a segment's unused pages are on no list"));
        }
        // d) a single page; e) a new extent.
        if !past_fragments {
            return self.take_fragment(segment, hint);
        }
        match self.extent_for(segment, hint)? {
            Some(first) => self.take_from(segment, first, first),
            None => Err(Error::NoSpace(self.space.id())),
        }
    }

    fn take_fragment(&mut self, segment: Segment, hint: PageNo) -> Result<PageNo> {
        let page = self.take_single(hint)?;
        let slot = self.inode(segment.page, segment.slot)?;
        let Some(index) = inode::free_fragment(&slot) else {
            return Err(self.corrupt(segment.page, "a small segment has no free fragment slot"));
        };
        self.write_u32(
            segment.page,
            segment.slot + inode::fragment_offset(index),
            page.0,
        );
        Ok(page)
    }

    /// An extent of the segment without used pages, opened if there is none.
    fn extent_for(&mut self, segment: Segment, hint: PageNo) -> Result<Option<PageNo>> {
        let ahead = self.first_extent(segment.list(inode::OFF_FREE), State::Segment)?;
        if let Some(extent) = ahead {
            return Ok(Some(extent.first));
        }
        let first = match self.take_extent(hint) {
            Ok(extent) => extent.first,
            Err(Error::NoSpace(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        self.own_extent(segment, first)?;
        self.keep_extents_ahead(segment, PageNo(first.0 + self.extent_pages()))?;
        Ok(Some(first))
    }

    /// An extent that was taken off FREE goes to the segment's FREE list.
    fn own_extent(&mut self, segment: Segment, first: PageNo) -> Result<()> {
        let mut extent = self.known_extent(first)?;
        self.set_segment(&mut extent, segment.id);
        self.add_last(segment.list(inode::OFF_FREE), self.extent_node(first))
    }

    /// Rule 4: a large segment takes the next extents, too, if they are free.
    fn keep_extents_ahead(&mut self, segment: Segment, from: PageNo) -> Result<()> {
        if self.segment_use(segment)?.reserved < FREE_AHEAD_FROM * self.extent_pages() {
            return Ok(());
        }
        let mut first = from;
        for _ in 0..FREE_AHEAD {
            match self.extent_of(first)? {
                Some(extent) if extent.state == State::Free => {}
                _ => return Ok(()),
            }
            self.take_extent(first)?;
            self.own_extent(segment, first)?;
            first = PageNo(first.0 + self.extent_pages());
        }
        Ok(())
    }

    fn known_extent(&mut self, page: PageNo) -> Result<Extent> {
        match self.extent_of(page)? {
            Some(extent) => Ok(extent),
            None => Err(self.corrupt(page, "an extent above the free limit is in use")),
        }
    }

    fn owned_extent(&mut self, segment: Segment, page: PageNo) -> Result<Extent> {
        let extent = self.known_extent(page)?;
        if extent.state != State::Segment || extent.segment() != segment.id {
            return Err(self.corrupt(
                page,
                format!(
                    "the page is not segment {}'s: {:?}",
                    segment.id, extent.state
                ),
            ));
        }
        Ok(extent)
    }

    /// The first free page at or after `hint`, modulo the extent, of an extent of the segment.
    fn take_near(&mut self, segment: Segment, first: PageNo, hint: PageNo) -> Result<PageNo> {
        let extent = self.owned_extent(segment, first)?;
        let Some(index) = xdes::find_free(&extent.bytes, hint.0 % self.extent_pages()) else {
            return Err(self.corrupt(first, "an extent with free pages has none"));
        };
        self.take_from(segment, first, PageNo(first.0 + index))
    }

    /// Marks a free page of an extent of the segment used, and moves the extent between lists.
    fn take_from(&mut self, segment: Segment, in_extent: PageNo, page: PageNo) -> Result<PageNo> {
        let mut extent = self.owned_extent(segment, in_extent)?;
        let node = self.extent_node(extent.first);
        let at = segment.slot + inode::OFF_NOT_FULL_N_USED;
        let mut used = self.u32(segment.page, at)?;
        if extent.used() == 0 {
            self.remove(segment.list(inode::OFF_FREE), node)?;
            self.add_last(segment.list(inode::OFF_NOT_FULL), node)?;
        }
        self.set_free(&mut extent, page, false);
        used += 1;
        if extent.is_full() {
            self.remove(segment.list(inode::OFF_NOT_FULL), node)?;
            self.add_last(segment.list(inode::OFF_FULL), node)?;
            let Some(left) = used.checked_sub(self.extent_pages()) else {
                return Err(self.corrupt(segment.page, "NOT_FULL_N_USED is too small"));
            };
            used = left;
        }
        self.write_u32(segment.page, at, used);
        Ok(page)
    }

    // Returning ---------------------------------------------------------------------------------

    fn free_segment_page(&mut self, header: SegmentHeader, page: PageNo) -> Result<()> {
        let segment = self.segment(header)?;
        let mut extent = self.extent_in_use(page)?;
        if extent.state != State::Segment {
            let slot = self.inode(segment.page, segment.slot)?;
            let index = (0..self.geometry.fragment_slots())
                .find(|&index| inode::fragment(&slot, index) == Some(page));
            let Some(index) = index else {
                return Err(self.corrupt(page, format!("no page of segment {}", segment.id)));
            };
            return self.free_fragment(segment, index, page);
        }
        if extent.segment() != segment.id {
            let owner = extent.segment();
            return Err(self.corrupt(page, format!("of segment {owner}, not {}", segment.id)));
        }
        let node = self.extent_node(extent.first);
        let at = segment.slot + inode::OFF_NOT_FULL_N_USED;
        let used = self.u32(segment.page, at)?;
        let left = if extent.is_full() {
            self.remove(segment.list(inode::OFF_FULL), node)?;
            self.add_last(segment.list(inode::OFF_NOT_FULL), node)?;
            used.checked_add(self.extent_pages() - 1)
        } else {
            used.checked_sub(1)
        };
        let Some(left) = left else {
            return Err(self.corrupt(segment.page, "NOT_FULL_N_USED is too small"));
        };
        self.write_u32(segment.page, at, left);
        self.set_free(&mut extent, page, true);
        self.free(page);
        if extent.used() == 0 {
            self.remove(segment.list(inode::OFF_NOT_FULL), node)?;
            self.return_extent(extent.first)?;
        }
        Ok(())
    }

    fn free_fragment(&mut self, segment: Segment, index: u32, page: PageNo) -> Result<()> {
        self.return_single(page)?;
        let at = segment.slot + inode::fragment_offset(index);
        self.write_u32(segment.page, at, PageNo::NONE.0);
        Ok(())
    }

    fn free_segment_step(&mut self, header: SegmentHeader, keep: Option<PageNo>) -> Result<bool> {
        let segment = self.segment(header)?;
        for which in [inode::OFF_FULL, inode::OFF_NOT_FULL, inode::OFF_FREE] {
            let base = segment.list(which);
            if let Some(extent) = self.first_extent(base, State::Segment)? {
                self.free_extent_of(segment, base, extent.first, which)?;
                return Ok(false);
            }
        }
        let slot = self.inode(segment.page, segment.slot)?;
        let mut fragments = (0..self.geometry.fragment_slots())
            .rev()
            .filter_map(|index| Some((index, inode::fragment(&slot, index)?)))
            .filter(|&(_, page)| Some(page) != keep);
        let last = fragments.next();
        let is_last = fragments.next().is_none();
        drop(fragments);
        if let Some((index, page)) = last {
            self.free_fragment(segment, index, page)?;
        }
        if is_last && keep.is_none() {
            self.free_inode(segment)?;
        }
        Ok(is_last)
    }

    fn free_extent_of(
        &mut self,
        segment: Segment,
        base: Base,
        first: PageNo,
        which: usize,
    ) -> Result<()> {
        let extent = self.owned_extent(segment, first)?;
        self.remove(base, self.extent_node(first))?;
        if which == inode::OFF_NOT_FULL {
            let at = segment.slot + inode::OFF_NOT_FULL_N_USED;
            let Some(left) = self.u32(segment.page, at)?.checked_sub(extent.used()) else {
                return Err(self.corrupt(segment.page, "NOT_FULL_N_USED is too small"));
            };
            self.write_u32(segment.page, at, left);
        }
        for page in first.0..first.0 + self.extent_pages() {
            if !extent.is_free(PageNo(page)) {
                self.free(PageNo(page));
            }
        }
        self.return_extent(first)
    }
}

fn inode_page_node(page: PageNo) -> FilAddr {
    FilAddr::new(page, inode::OFF_PAGE_NODE as u16)
}

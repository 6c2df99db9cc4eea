//! The space's own extents: initialising, taking and returning whole ones and single pages
//! (format-tablespace.md 4.5 rules 1 and 2).

use super::list::Base;
use super::plan::Plan;
use crate::format::fil::PageType;
use crate::format::fsp;
use crate::format::list::FilAddr;
use crate::format::xdes::{self, State};
use crate::mtr::{Mode, Mtr};
use crate::sync::Rank;
use crate::words::{Error, PageId, PageNo, Result, SegmentId, SpaceId};

/// Extents added to FREE in one go.
const FREE_ADD: u32 = 4;

pub(super) const FREE: Base = Base {
    page: PageNo(0),
    at: fsp::OFF_FREE,
};
pub(super) const FREE_FRAG: Base = Base {
    page: PageNo(0),
    at: fsp::OFF_FREE_FRAG,
};
pub(super) const FULL_FRAG: Base = Base {
    page: PageNo(0),
    at: fsp::OFF_FULL_FRAG,
};

/// An extent descriptor as read: where it stands, and its bytes.
pub(super) struct Extent {
    /// First page of the extent.
    pub(super) first: PageNo,
    pub(super) state: State,
    pub(super) bytes: Vec<u8>,
}

impl Extent {
    pub(super) fn segment(&self) -> SegmentId {
        xdes::segment(&self.bytes)
    }

    pub(super) fn used(&self) -> u32 {
        xdes::used_pages(&self.bytes)
    }

    pub(super) fn is_full(&self) -> bool {
        self.used() == self.page_count()
    }

    fn page_count(&self) -> u32 {
        (self.bytes.len() - xdes::OFF_BITMAP) as u32 * 4
    }

    pub(super) fn is_free(&self, page: PageNo) -> bool {
        xdes::is_free(&self.bytes, page.0 - self.first.0)
    }
}

impl Plan<'_, '_> {
    pub(super) fn extent_pages(&self) -> u32 {
        self.geometry.extent_pages()
    }

    pub(super) fn size_pages(&mut self) -> Result<u32> {
        self.u32(PageNo(0), fsp::OFF_SIZE)
    }

    pub(super) fn free_limit(&mut self) -> Result<u32> {
        self.u32(PageNo(0), fsp::OFF_FREE_LIMIT)
    }

    fn descriptor(&self, page: PageNo) -> (PageNo, usize) {
        (
            self.geometry.descriptor_page(page),
            self.geometry.xdes_offset(page),
        )
    }

    /// The list node of the extent of `page`.
    pub(super) fn extent_node(&self, page: PageNo) -> FilAddr {
        let (at_page, at) = self.descriptor(page);
        FilAddr::new(at_page, (at + xdes::OFF_NODE) as u16)
    }

    /// The extent of `page`, or `None` above FREE_LIMIT.
    pub(super) fn extent_of(&mut self, page: PageNo) -> Result<Option<Extent>> {
        if page.0 >= self.free_limit()? || page.0 >= self.size_pages()? {
            return Ok(None);
        }
        let (at_page, at) = self.descriptor(page);
        let bytes = self.read(at_page, at, self.geometry.xdes_bytes())?;
        let state = self.at(at_page, xdes::validate(&bytes))?;
        let first = self.geometry.extent_start(page);
        if state == State::NotInitialised {
            return Err(self.corrupt(at_page, format!("extent {first} has no state")));
        }
        Ok(Some(Extent {
            first,
            state,
            bytes,
        }))
    }

    /// The extent of a page that is in use.
    pub(super) fn extent_in_use(&mut self, page: PageNo) -> Result<Extent> {
        match self.extent_of(page)? {
            Some(extent) if !extent.is_free(page) => Ok(extent),
            Some(_) => Err(self.corrupt(page, "a free page is freed")),
            None => Err(self.corrupt(page, "a page above the free limit is freed")),
        }
    }

    /// The extent whose list node is `node`, as found in a list.
    pub(super) fn extent_at(&mut self, node: FilAddr) -> Result<Extent> {
        let at = node.offset().checked_sub(xdes::OFF_NODE);
        let first = at.and_then(|at| self.geometry.extent_at(node.page(), at));
        let extent = match first {
            Some(first) => self.extent_of(first)?,
            None => None,
        };
        match extent {
            Some(extent) => Ok(extent),
            None => Err(self.corrupt(node.page(), format!("{node:?} is no extent's list node"))),
        }
    }

    /// First extent of a list, which must be in `state`.
    pub(super) fn first_extent(&mut self, base: Base, state: State) -> Result<Option<Extent>> {
        let Some(node) = self.list(base)?.first.some() else {
            return Ok(None);
        };
        let extent = self.extent_at(node)?;
        if extent.state != state {
            let found = extent.state;
            return Err(self.corrupt(
                node.page(),
                format!(
                    "extent {} on a list of {state:?} is {found:?}",
                    extent.first
                ),
            ));
        }
        Ok(Some(extent))
    }

    pub(super) fn set_state(&mut self, extent: &mut Extent, state: State) {
        let (page, at) = self.descriptor(extent.first);
        extent.state = state;
        self.write_u32(page, at + xdes::OFF_STATE, state as u32);
    }

    pub(super) fn set_segment(&mut self, extent: &mut Extent, segment: SegmentId) {
        let (page, at) = self.descriptor(extent.first);
        extent.bytes[..8].copy_from_slice(&segment.0.to_be_bytes());
        self.write_u64(page, at + xdes::OFF_SEGMENT, segment.0);
        self.set_state(extent, State::Segment);
    }

    /// Marks `page` of the extent.
    pub(super) fn set_free(&mut self, extent: &mut Extent, page: PageNo, free: bool) {
        let (byte_at, byte) = xdes::bitmap_byte(&extent.bytes, page.0 - extent.first.0, free);
        extent.bytes[byte_at] = byte;
        let (at_page, at) = self.descriptor(extent.first);
        self.write(at_page, at + byte_at, &[byte]);
    }

    /// Rule 1: initialises extents from FREE_LIMIT upwards. `initial`: the first extent of a new
    /// file, which may be shorter than an extent.
    pub(super) fn fill_free_list(&mut self, initial: bool) -> Result<()> {
        let size = self.size_pages()?;
        let extent_pages = self.extent_pages();
        let mut first = self.free_limit()?;
        if first % extent_pages != 0 {
            return Err(self.corrupt(PageNo(0), format!("free limit {first}")));
        }
        let mut added = 0;
        // Checked: a damaged limit may lie at the end of all page numbers.
        let fits = |first: u32| {
            first
                .checked_add(extent_pages)
                .is_some_and(|end| end <= size)
        };
        while (initial && first == 0) || (fits(first) && added < FREE_ADD) {
            let page = PageNo(first);
            first += extent_pages;
            self.write_u32(PageNo(0), fsp::OFF_FREE_LIMIT, first);
            added += u32::from(self.init_extent(page)?);
        }
        Ok(())
    }

    /// True if the extent went to FREE.
    fn init_extent(&mut self, first: PageNo) -> Result<bool> {
        let with_descriptors = self.geometry.is_descriptor_page(first);
        if with_descriptors && first.0 > 0 {
            self.create(first, PageType::XDES);
        }
        if with_descriptors && self.space.id() != SpaceId::TEMPORARY {
            self.create(PageNo(first.0 + 1), PageType::IBUF_BITMAP);
        }
        let (page, at) = self.descriptor(first);
        let mut bytes = vec![0; self.geometry.xdes_bytes()];
        xdes::init(&mut bytes);
        self.write(page, at + xdes::OFF_STATE, &bytes[xdes::OFF_STATE..]);
        let mut extent = Extent {
            first,
            state: State::Free,
            bytes,
        };
        if !with_descriptors {
            self.add_last(FREE, self.extent_node(first))?;
            return Ok(true);
        }
        self.set_free(&mut extent, first, false);
        self.set_free(&mut extent, PageNo(first.0 + 1), false);
        self.set_state(&mut extent, State::FreeFrag);
        self.add_last(FREE_FRAG, self.extent_node(first))?;
        let used = self.u32(PageNo(0), fsp::OFF_FRAG_N_USED)?;
        self.write_u32(PageNo(0), fsp::OFF_FRAG_N_USED, used + 2);
        Ok(false)
    }

    /// Takes an extent off FREE: the one of `hint` if it is free, else the first.
    pub(super) fn take_extent(&mut self, hint: PageNo) -> Result<Extent> {
        let hinted = self
            .extent_of(hint)?
            .filter(|extent| extent.state == State::Free);
        let extent = match hinted {
            Some(extent) => extent,
            None => {
                let mut first = self.first_extent(FREE, State::Free)?;
                if first.is_none() {
                    self.fill_free_list(false)?;
                    first = self.first_extent(FREE, State::Free)?;
                }
                first.ok_or(Error::NoSpace(self.space.id()))?
            }
        };
        if extent.used() != 0 {
            return Err(self.corrupt(extent.first, "a free extent has used pages"));
        }
        self.remove(FREE, self.extent_node(extent.first))?;
        Ok(extent)
    }

    /// Returns an extent that is on no list any more.
    pub(super) fn return_extent(&mut self, first: PageNo) -> Result<()> {
        let (page, at) = self.descriptor(first);
        let mut bytes = vec![0; self.geometry.xdes_bytes()];
        xdes::init(&mut bytes);
        self.write(page, at + xdes::OFF_STATE, &bytes[xdes::OFF_STATE..]);
        self.add_last(FREE, self.extent_node(first))
    }

    /// Rule 2: a single page, near `hint`.
    pub(super) fn take_single(&mut self, hint: PageNo) -> Result<PageNo> {
        let hinted = self
            .extent_of(hint)?
            .filter(|extent| extent.state == State::FreeFrag);
        let found = match hinted {
            Some(extent) => Some(extent),
            None => self.first_extent(FREE_FRAG, State::FreeFrag)?,
        };
        let mut extent = match found {
            Some(extent) => extent,
            None => {
                let mut extent = self.take_extent(hint)?;
                self.set_state(&mut extent, State::FreeFrag);
                self.add_last(FREE_FRAG, self.extent_node(extent.first))?;
                extent
            }
        };
        let Some(index) = xdes::find_free(&extent.bytes, hint.0 % self.extent_pages()) else {
            return Err(self.corrupt(extent.first, "a FREE_FRAG extent has no free page"));
        };
        let mut page = PageNo(extent.first.0 + index);
        if page.0 >= self.size_pages()? {
            // The first extent of a small file reaches behind its end.
            let lowest = xdes::find_free(&extent.bytes, 0).unwrap_or(index);
            page = PageNo(extent.first.0 + lowest);
            if page.0 >= self.size_pages()? {
                return Err(Error::NoSpace(self.space.id()));
            }
        }
        self.set_free(&mut extent, page, false);
        let used = self.u32(PageNo(0), fsp::OFF_FRAG_N_USED)? + 1;
        if extent.is_full() {
            let node = self.extent_node(extent.first);
            self.remove(FREE_FRAG, node)?;
            self.set_state(&mut extent, State::FullFrag);
            self.add_last(FULL_FRAG, node)?;
            self.set_frag_used(used.checked_sub(self.extent_pages()))?;
        } else {
            self.set_frag_used(Some(used))?;
        }
        Ok(page)
    }

    fn set_frag_used(&mut self, used: Option<u32>) -> Result<()> {
        let Some(used) = used else {
            return Err(self.corrupt(PageNo(0), "FRAG_N_USED is too small"));
        };
        self.write_u32(PageNo(0), fsp::OFF_FRAG_N_USED, used);
        Ok(())
    }

    /// Rule 2 reversed.
    pub(super) fn return_single(&mut self, page: PageNo) -> Result<()> {
        let mut extent = self.extent_in_use(page)?;
        let node = self.extent_node(extent.first);
        let used = self.u32(PageNo(0), fsp::OFF_FRAG_N_USED)?;
        match extent.state {
            State::FullFrag => {
                self.remove(FULL_FRAG, node)?;
                self.set_state(&mut extent, State::FreeFrag);
                self.add_last(FREE_FRAG, node)?;
                self.set_frag_used(used.checked_add(self.extent_pages() - 1))?;
            }
            State::FreeFrag => self.set_frag_used(used.checked_sub(1))?,
            other => {
                return Err(self.corrupt(page, format!("a single page of a {other:?} extent")));
            }
        }
        self.set_free(&mut extent, page, true);
        self.free(page);
        if extent.used() == 0 {
            self.remove(FREE_FRAG, node)?;
            self.return_extent(extent.first)?;
        }
        Ok(())
    }
}

/// Takes a page that belongs to no segment. The caller creates it in the same mtr.
///
/// Errors: `NoSpace`, `Corrupt`; nothing is changed then.
pub fn allocate_single_page(mtr: &mut Mtr<'_>, space: SpaceId, hint: PageNo) -> Result<PageId> {
    let mut plan = Plan::open(mtr, space)?;
    let page = plan.take_single(hint)?;
    let id = plan.id(page);
    plan.apply()?;
    Ok(id)
}

/// Returns such a page.
///
/// Errors: `Corrupt`; nothing is changed then.
pub fn free_single_page(mtr: &mut Mtr<'_>, id: PageId) -> Result<()> {
    let mut plan = Plan::open(mtr, id.space)?;
    plan.return_single(id.page)?;
    plan.apply()
}

/// True if the allocation bits say that the page is free; pages above FREE_LIMIT are.
///
/// Errors: what reading page 0 and the descriptor page gives.
pub fn is_page_free(mtr: &mut Mtr<'_>, id: PageId) -> Result<bool> {
    let geometry = mtr.ctx().spaces.find(id.space)?.geometry();
    let at = |page| PageId::new(id.space, page);
    // X, as whoever frees the page next in this mtr wants it.
    let header = mtr.get_reading(at(PageNo(0)), Mode::X, Rank::FspPage)?;
    let limit = crate::words::be::u32_at(mtr.view(header), fsp::OFF_FREE_LIMIT);
    if id.page.0 >= limit {
        return Ok(true);
    }
    let page = at(geometry.descriptor_page(id.page));
    let held = mtr.get_reading(page, Mode::X, Rank::FspPage)?;
    let from = geometry.xdes_offset(id.page);
    let bytes = mtr.view(held).get(from..from + geometry.xdes_bytes());
    let bytes = bytes.ok_or_else(|| Error::corrupt(page, "the descriptors leave the page"))?;
    Ok(xdes::is_free(bytes, id.page.0 % geometry.extent_pages()))
}

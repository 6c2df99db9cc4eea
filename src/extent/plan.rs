//! A change of allocation pages that is thought out before it is made (extent invariant 2).
//!
//! Reads see the planned writes on top of the pages' bytes. Nothing is changed before `apply`; an
//! error on the way leaves latches, and no change.

use crate::format::fil::{self, PageType};
use crate::format::fsp::{self, Geometry};
use crate::mtr::{Mode, Mtr, PageRef};
use crate::space::Space;
use crate::sync::{Arc, Rank};
use crate::words::{Error, PageId, PageNo, Result, SpaceId, be};

pub(super) struct Plan<'m, 'a> {
    mtr: &'m mut Mtr<'a>,
    pub(super) space: Arc<Space>,
    pub(super) geometry: Geometry,
    writes: Vec<Write>,
    /// Bytes of all writes.
    bytes: Vec<u8>,
    created: Vec<(PageNo, PageType)>,
    freed: Vec<PageNo>,
}

struct Write {
    page: PageNo,
    at: usize,
    /// Range in `Plan::bytes`.
    from: usize,
    len: usize,
}

impl<'m, 'a> Plan<'m, 'a> {
    /// Starts: latches page 0 of the tablespace X.
    ///
    /// Errors: what reading page 0 gives; `Corrupt` if it is no space header.
    pub(super) fn begin(mtr: &'m mut Mtr<'a>, space: SpaceId) -> Result<Plan<'m, 'a>> {
        let space = mtr.ctx().spaces.find(space)?;
        let plan = Plan {
            geometry: space.geometry(),
            space,
            mtr,
            writes: Vec::new(),
            bytes: Vec::new(),
            created: Vec::new(),
            freed: Vec::new(),
        };
        Ok(plan)
    }

    /// Like `begin`, for a tablespace with a page 0.
    pub(super) fn open(mtr: &'m mut Mtr<'a>, space: SpaceId) -> Result<Plan<'m, 'a>> {
        let mut plan = Plan::begin(mtr, space)?;
        let page = plan.page(PageNo(0))?;
        let found = fil::page_type(plan.mtr.view(page));
        if found != PageType::FSP_HDR {
            return Err(plan.corrupt(PageNo(0), format!("page 0 has type {found:?}")));
        }
        Ok(plan)
    }

    pub(super) fn id(&self, page: PageNo) -> PageId {
        PageId::new(self.space.id(), page)
    }

    /// Damage on `page` of this tablespace.
    #[cold]
    pub(super) fn corrupt(&self, page: PageNo, why: impl Into<Box<str>>) -> Error {
        Error::corrupt(self.id(page), why).in_file(&self.space.path())
    }

    /// Names the page of a parse error.
    pub(super) fn at<T>(&self, page: PageNo, parsed: Result<T>) -> Result<T> {
        parsed.map_err(|error| error.at_page(self.id(page)).in_file(&self.space.path()))
    }

    fn page(&mut self, page: PageNo) -> Result<PageRef> {
        let id = self.id(page);
        match self.mtr.held(id) {
            Some(held) if self.mtr.mode(held) == Mode::X => Ok(held),
            _ => self.mtr.get_reading(id, Mode::X, Rank::FspPage),
        }
    }

    /// `len` bytes at `at` of `page`, planned writes included.
    pub(super) fn read(&mut self, page: PageNo, at: usize, len: usize) -> Result<Vec<u8>> {
        let mut found = vec![0; len];
        if !self.created.iter().any(|&(created, _)| created == page) {
            if page.0 >= self.size()? {
                return Err(self.corrupt(page, "an allocation list leads outside the tablespace"));
            }
            let held = self.page(page)?;
            let Some(bytes) = self.mtr.view(held).get(at..at + len) else {
                return Err(self.corrupt(page, format!("{len} bytes at {at} leave the page")));
            };
            found.copy_from_slice(bytes);
        }
        for write in self.writes.iter().filter(|write| write.page == page) {
            let from = at.max(write.at);
            let to = (at + len).min(write.at + write.len);
            if from < to {
                let source = write.from + (from - write.at);
                found[from - at..to - at].copy_from_slice(&self.bytes[source..source + to - from]);
            }
        }
        Ok(found)
    }

    fn size(&mut self) -> Result<u32> {
        // Page 0 itself is always there.
        let held = self.page(PageNo(0))?;
        let mut size = be::u32_at(self.mtr.view(held), fsp::OFF_SIZE);
        if let Some(write) = self
            .writes
            .iter()
            .rfind(|w| w.page == PageNo(0) && w.at == fsp::OFF_SIZE)
        {
            size = be::u32_at(&self.bytes, write.from);
        }
        Ok(size.max(1))
    }

    pub(super) fn u32(&mut self, page: PageNo, at: usize) -> Result<u32> {
        Ok(be::u32_at(&self.read(page, at, 4)?, 0))
    }

    pub(super) fn u64(&mut self, page: PageNo, at: usize) -> Result<u64> {
        Ok(be::u64_at(&self.read(page, at, 8)?, 0))
    }

    /// Plans a write.
    pub(super) fn write(&mut self, page: PageNo, at: usize, bytes: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.writes.push(Write {
            page,
            at,
            from,
            len: bytes.len(),
        });
    }

    pub(super) fn write_u32(&mut self, page: PageNo, at: usize, value: u32) {
        self.write(page, at, &value.to_be_bytes());
    }

    pub(super) fn write_u64(&mut self, page: PageNo, at: usize, value: u64) {
        self.write(page, at, &value.to_be_bytes());
    }

    /// Plans a new page of allocation data.
    pub(super) fn create(&mut self, page: PageNo, page_type: PageType) {
        self.created.push((page, page_type));
    }

    /// Plans a FREE_PAGE record.
    pub(super) fn free(&mut self, page: PageNo) {
        self.freed.push(page);
    }

    /// Makes the changes.
    ///
    /// Errors: `BufferPoolFull` if a new page found no frame; nothing is changed then, unless the
    /// plan creates more than one page and the budget promised fewer frames.
    pub(super) fn apply(mut self) -> Result<()> {
        for &(page, page_type) in &self.created {
            let id = PageId::new(self.space.id(), page);
            let held = self.mtr.create(id, Rank::FspPage)?;
            self.mtr.write_u16(held, fil::OFF_TYPE, page_type.0);
        }
        for at in 0..self.writes.len() {
            let Write {
                page,
                at,
                from,
                len,
            } = self.writes[at];
            // Latched when it was read or created: this neither waits nor fails.
            let held = self.page(page)?;
            let bytes = &self.bytes[from..from + len];
            if page == PageNo(0) && (at == fsp::OFF_SIZE || at == fsp::OFF_FLAGS) {
                self.mtr.write_whole(held, at, bytes);
            } else {
                self.mtr.write(held, at, bytes);
            }
        }
        for &page in &self.freed {
            self.mtr.free_page(PageId::new(self.space.id(), page));
        }
        Ok(())
    }
}

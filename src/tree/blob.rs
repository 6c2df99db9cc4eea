//! Off-page columns: reading chains, writing them page by page, freeing them.
//!
//! A chain is written after the record's own mtr, one mtr a page: each takes the page, fills it,
//! and links it from the record's reference or from the part before. A crash in between leaves a
//! record of an unfinished transaction, whose rollback frees what is there.

use super::Tree;
use crate::extent::{self, Direction};
use crate::format::blob::{BlobPart, BlobRef, PART_HEADER, part_bytes_max};
use crate::format::fil;
use crate::mtr::{Budget, Class, Mode, Mtr, PageCtx, PageRef};
use crate::os::planted;
use crate::sync::Rank;
use crate::words::{Error, PageId, PageNo, Result};

/// Redo of one part: the page, the link, allocation.
const LOG_BYTES: usize = 4096;
/// More parts than 4 GiB have on the smallest pages: the chain is circular.
const PARTS_MAX: u32 = 1 << 21;
/// Within a reference: the page, and the low half of the length.
const REF_PAGE: usize = 4;
const REF_LEN_LOW: usize = 16;

/// Latches the record's page and tells where in it the reference stands.
type Link<'l, 'a> = dyn FnMut(&mut Mtr<'a>) -> Result<(PageRef, usize)> + 'l;

impl Tree {
    /// Appends the off-page part that `reference` names to `out`. The mtr may hold the record's
    /// page: BLOB pages are read under it (docs/latch-order.md).
    ///
    /// Errors: `Corrupt` with page, table and index for anything but a whole chain.
    pub fn read_blob(
        &self,
        mtr: &mut Mtr<'_>,
        reference: BlobRef,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        self.read_chain(mtr, reference, out)
            .map_err(|e| self.named(e))
    }

    fn read_chain(&self, mtr: &mut Mtr<'_>, reference: BlobRef, out: &mut Vec<u8>) -> Result<()> {
        let mut left = reference.len_bytes() as usize;
        if reference.is_unwritten() || left == 0 {
            return Ok(());
        }
        self.check_reference(reference)?;
        out.reserve(left.min(1 << 20));
        let mut next = Some(reference.page().page);
        while left > 0 {
            let Some(page) = next else {
                let why = format!("BLOB chain ends {left} bytes before its length");
                return Err(Error::corrupt(reference.page(), why));
            };
            let id = self.page(page);
            let since = mtr.savepoint();
            let page = mtr.get_reading(id, Mode::S, Rank::IndexPage)?;
            let part = BlobPart::parse(mtr.view(page)).map_err(|e| e.at_page(id))?;
            // Every part is longer than 0, so the loop is bounded by the length.
            if part.data.is_empty() || part.data.len() > left {
                let why = format!(
                    "BLOB part of {} bytes where {left} are left",
                    part.data.len()
                );
                return Err(Error::corrupt(id, why));
            }
            out.extend_from_slice(part.data);
            left -= part.data.len();
            next = part.next;
            mtr.release_from(since);
        }
        Ok(())
    }

    fn check_reference(&self, reference: BlobRef) -> Result<()> {
        let id = reference.page();
        if id.space != self.space() || reference.offset() as usize != PART_HEADER {
            let why = format!(
                "BLOB reference to {id} offset {} in space {}",
                reference.offset(),
                self.space()
            );
            return Err(Error::corrupt(id, why));
        }
        Ok(())
    }

    /// Writes `data` as the chain of one column. `link` runs in each part's mtr: it finds the
    /// record again, X-latches it and returns its page and the offset of the reference; the tree
    /// then writes the reference with the length so far.
    ///
    /// Errors: `NoSpace` and what latching may give; the parts written so far are linked.
    pub fn write_blob<'a>(
        &self,
        ctx: &'a PageCtx,
        data: &[u8],
        link: &mut Link<'_, 'a>,
    ) -> Result<()> {
        self.write_chain(ctx, data, Some(link)).map(|_| ())
    }

    /// Writes `data`, which is not empty, as a chain to which nothing leads yet: for a record that a bulk
    /// load has still to write. Returns the reference for it.
    ///
    /// Errors: as `write_blob`; the parts written so far are freed with the tree.
    pub fn write_blob_ahead(&self, ctx: &PageCtx, data: &[u8]) -> Result<BlobRef> {
        self.write_chain(ctx, data, None)
    }

    fn write_chain<'a>(
        &self,
        ctx: &'a PageCtx,
        data: &[u8],
        mut link: Option<&mut Link<'_, 'a>>,
    ) -> Result<BlobRef> {
        let part_max = part_bytes_max(ctx.page_size());
        let mut first: Option<PageNo> = None;
        let mut last: Option<PageNo> = None;
        let mut done = 0;
        for part in data.chunks(part_max) {
            let _reserved = self.reserve_pages(ctx, 1, Class::Statement)?;
            let budget = Budget::statement(LOG_BYTES + ctx.page_size()).with_frames(4);
            let (page, _) = crate::mtr::retry(ctx, Some(budget), |mtr| {
                // Before the record's page: a structure change that waits for the root holds readers
                // up who already wait for that page.
                let segment = self.segments(mtr)?.of_level(0);
                let place = link.as_mut().map(|link| link(mtr)).transpose()?;
                let before = last
                    .map(|p| mtr.get_reading(self.page(p), Mode::X, Rank::IndexPage))
                    .transpose()?;
                let hint = last.map_or(PageNo(0), |p| PageNo(p.0 + 1));
                let id = mtr.attempt(|mtr| {
                    let id = extent::allocate_page(mtr, segment, hint, Direction::Up)?;
                    mtr.ctx().reached("blob.write");
                    self.fill_part(mtr, id, part)?;
                    Ok(id)
                })?;
                let id_no = id.page;
                if let Some(before) = before {
                    mtr.write_u32(before, PART_HEADER + 4, id_no.0);
                }
                let head = self.page(first.unwrap_or(id_no));
                let reference = BlobRef::new(head, (done + part.len()) as u32);
                if let Some((record, at)) = place {
                    mtr.write(record, at, &reference.to_bytes());
                }
                Ok(id_no)
            })?;
            first.get_or_insert(page);
            last = Some(page);
            done += part.len();
        }
        let head = first.ok_or_else(|| Error::internal("an off-page value without bytes"))?;
        Ok(BlobRef::new(self.page(head), done as u32))
    }

    fn fill_part(&self, mtr: &mut Mtr<'_>, id: PageId, data: &[u8]) -> Result<()> {
        let page = mtr.create(id, Rank::IndexPage)?;
        mtr.write_u16(page, fil::OFF_TYPE, fil::PageType::BLOB.0);
        let part = BlobPart { data, next: None };
        let mut bytes = Vec::with_capacity(8 + data.len());
        bytes.extend_from_slice(&part.header_bytes());
        bytes.extend_from_slice(data);
        mtr.write(page, PART_HEADER, &bytes);
        Ok(())
    }

    /// Frees the chain of `reference`, first page first, one mtr a page: each takes the first page
    /// off, makes the reference name the second, and sets its length to 0, so that a crash in
    /// between leaves a shorter chain to go on with. `link` finds the place of the reference – in
    /// the record, or in the undo record that alone still knows it – and X-latches its page.
    pub fn free_blob<'a>(
        &self,
        ctx: &'a PageCtx,
        reference: BlobRef,
        link: &mut Link<'_, 'a>,
    ) -> Result<()> {
        self.free_chain(ctx, reference, link)
            .map_err(|e| self.named(e))
    }

    /// As `free_blob`, for a chain that only an undo record names any more. `link` finds the
    /// reference in the undo page: after the BLOB page, as the latch order wants.
    pub fn free_blob_of_undo<'a>(
        &self,
        ctx: &'a PageCtx,
        reference: BlobRef,
        link: &mut Link<'_, 'a>,
    ) -> Result<()> {
        if reference.is_unwritten() || reference.page().page == PageNo::NONE {
            return Ok(());
        }
        self.check_reference(reference).map_err(|e| self.named(e))?;
        let mut next = Some(reference.page().page);
        for _ in 0..PARTS_MAX {
            let Some(page) = next else { return Ok(()) };
            let id = self.page(page);
            let budget = Budget::system(LOG_BYTES).with_frames(4);
            let (after, _) = crate::mtr::retry(ctx, Some(budget), |mtr| {
                // The root first: see write_blob.
                let segment = self.segments(mtr)?.of_level(0);
                let blob = mtr.get(id, Mode::X, Rank::IndexPage)?;
                let part = BlobPart::parse(mtr.view(blob)).map_err(|e| e.at_page(id))?;
                let after = part.next;
                let (record, at) = link(mtr)?;
                // First what may fail.
                if !planted("blob.page_not_freed") {
                    extent::free_page(mtr, segment, page)?;
                }
                mtr.ctx().reached("blob.free");
                mtr.write_u32(record, at + REF_PAGE, after.unwrap_or(PageNo::NONE).0);
                mtr.write_u32(record, at + REF_LEN_LOW, 0);
                Ok(after)
            })?;
            next = after;
        }
        let why = "a BLOB chain without an end";
        Err(self.named(Error::corrupt(reference.page(), why)))
    }

    fn free_chain<'a>(
        &self,
        ctx: &'a PageCtx,
        reference: BlobRef,
        link: &mut Link<'_, 'a>,
    ) -> Result<()> {
        if reference.is_unwritten() || reference.page().page == PageNo::NONE {
            return Ok(());
        }
        self.check_reference(reference)?;
        let mut next = Some(reference.page().page);
        for _ in 0..PARTS_MAX {
            let Some(page) = next else { return Ok(()) };
            let id = self.page(page);
            let budget = Budget::system(LOG_BYTES).with_frames(4);
            let (after, _) = crate::mtr::retry(ctx, Some(budget), |mtr| {
                let segment = self.segments(mtr)?.of_level(0);
                let (record, at) = link(mtr)?;
                let blob = mtr.get_reading(id, Mode::X, Rank::IndexPage)?;
                let part = BlobPart::parse(mtr.view(blob)).map_err(|e| e.at_page(id))?;
                let after = part.next;
                // First what may fail.
                if !planted("blob.page_not_freed") {
                    extent::free_page(mtr, segment, page)?;
                }
                mtr.ctx().reached("blob.free");
                mtr.write_u32(record, at + REF_PAGE, after.unwrap_or(PageNo::NONE).0);
                mtr.write_u32(record, at + REF_LEN_LOW, 0);
                Ok(after)
            })?;
            next = after;
        }
        Err(Error::corrupt(
            reference.page(),
            "a BLOB chain without an end",
        ))
    }
}

//! The doublewrite blocks in ibdata1 (F4; format-tablespace.md section 20).
//!
//! Two extents, each a batch of its own: while one batch is on its way to its places, the other can
//! be filled. Slots are self-describing by the page number and space id in the page header.

use std::collections::HashMap;

use crate::format::fsp::Geometry;
use crate::format::{checksum, fil, trx_sys};
use crate::words::{Error, Lsn, PageId, PageNo, Result};

/// Where the two blocks start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doublewrite {
    /// First page of each block.
    pub blocks: [PageNo; 2],
    /// Pages in a block.
    pub block_pages: u32,
}

impl Doublewrite {
    /// Reads the header in a TRX_SYS page; `None` if there is no doublewrite segment.
    ///
    /// Errors: `Corrupt` if the blocks overlap or lie where they cannot.
    pub fn parse(trx_sys: &[u8], geometry: Geometry) -> Result<Option<Doublewrite>> {
        let Some(header) = trx_sys::Doublewrite::parse(trx_sys, geometry)? else {
            return Ok(None);
        };
        let place = Doublewrite::new(header.blocks, geometry);
        let [first, second] = place.blocks.map(|block| block.0);
        if first == second || first.max(second) > u32::MAX - place.block_pages {
            return Err(Error::corrupt_bytes(format!(
                "doublewrite blocks at the pages {first} and {second}"
            )));
        }
        Ok(Some(place))
    }

    /// Blocks that start at these pages, an extent each.
    pub fn new(blocks: [PageNo; 2], geometry: Geometry) -> Doublewrite {
        Doublewrite {
            blocks,
            block_pages: geometry.extent_pages(),
        }
    }
}

/// The page images found in the doublewrite blocks at start; what they are good for is decided per
/// page when its place in the file turns out to be damaged.
#[derive(Debug, Default)]
pub struct DoublewriteCopies {
    copies: HashMap<PageId, Vec<Box<[u8]>>>,
}

impl DoublewriteCopies {
    /// Reads all slots through `read(page number in space 0, buffer of one page)`, and keeps the copies
    /// whose LSN lies in `lsns`.
    ///
    /// A slot that cannot be read is skipped: it protects nothing then.
    pub fn load(
        place: Doublewrite,
        page_size: usize,
        lsns: &std::ops::RangeInclusive<Lsn>,
        mut read: impl FnMut(PageNo, &mut [u8]) -> Result<()>,
    ) -> DoublewriteCopies {
        let mut found = DoublewriteCopies::default();
        let mut page = crate::os::AlignedBuf::new(page_size);
        for block in place.blocks {
            for slot in 0..place.block_pages {
                let there = read(PageNo(block.0 + slot), &mut page).is_ok();
                if there && lsns.contains(&fil::lsn(&page)) && !fil::is_all_zero(&page) {
                    let copies = found.copies.entry(fil::page_id(&page)).or_default();
                    copies.push(page[..].into());
                }
            }
        }
        found
    }

    /// The newest sound copy of `id` whose LSN lies in `from..=to`, cut to `page_bytes`.
    pub fn find(
        &self,
        id: PageId,
        page_bytes: usize,
        flavour: checksum::Flavour,
        from: Lsn,
        to: Lsn,
    ) -> Option<&[u8]> {
        let copies = self.copies.get(&id)?;
        let cut = copies.iter().filter_map(|copy| copy.get(..page_bytes));
        cut.filter(|copy| (from..=to).contains(&fil::lsn(copy)))
            .filter(|copy| {
                matches!(
                    checksum::verify(copy, flavour, id),
                    Ok(checksum::Content::Written)
                )
            })
            .max_by_key(|copy| fil::lsn(copy))
    }

    /// The pages that have a copy.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.copies.keys().copied()
    }

    /// True if no slot holds anything.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }
}

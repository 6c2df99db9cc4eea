//! The TRX_SYS page, page 5 of the system tablespace (format-tablespace.md 6.1 and 20).
//!
//! | off    | size  | field                                                        |
//! |--------|-------|--------------------------------------------------------------|
//! |     38 |     8 | max trx id of servers before 10.3.5; still counts at start   |
//! |     46 |    10 | segment header of this page                                  |
//! |     56 | 256*8 | rollback segment slots: space id, page; only 128 are used    |
//! | P-3462 |   140 | WSREP XID of old versions (4K pages: at 1634); mostly zero   |
//! |  P-962 |       | binlog position of old versions; mostly zero                 |
//! |  P-200 |    38 | doublewrite header                                           |

use crate::words::limits::RSEGS_MAX;
use crate::words::{Error, PageId, PageNo, Result, RsegId, SpaceId, TrxId, be};

use super::fsp::Geometry;
use super::inode::{HEADER_BYTES, SegmentHeader};

/// The page's number in the system tablespace.
pub const PAGE: PageNo = PageNo(5);
/// Offset of the old max trx id.
pub const OFF_TRX_ID: usize = 38;
/// Offset of the segment header of the page.
pub const OFF_SEGMENT: usize = 46;
/// Offset of the rollback segment slots.
pub const OFF_SLOTS: usize = 56;
/// Slots that stand on disk; those from 128 on are unused (all FF).
pub const SLOTS_ON_DISK: usize = 256;
/// Distance of the doublewrite header from the end of the page.
pub const DOUBLEWRITE_FROM_END: usize = 200;

/// Magic number of a doublewrite header that was set up.
pub const DOUBLEWRITE_MAGIC: u32 = 536_853_855;
/// Marks images that carry their space ids; always.
pub const SPACE_IDS_STORED: u32 = 1_783_657_386;

/// The old max trx id; 0 in files of current versions.
pub fn old_max_trx_id(page: &[u8]) -> TrxId {
    TrxId(be::u64_at(page, OFF_TRX_ID))
}

/// Offset of the slot of rollback segment `rseg`: 4 bytes space id, 4 bytes page.
pub fn slot_offset(rseg: RsegId) -> usize {
    OFF_SLOTS + 8 * rseg.0 as usize
}

/// Header page of rollback segment `rseg`, or `None` if there is no such segment.
pub fn slot(page: &[u8], rseg: RsegId) -> Result<Option<PageId>> {
    let at = slot_offset(rseg);
    let (space, number) = (
        SpaceId(be::u32_at(page, at)),
        PageNo(be::u32_at(page, at + 4)),
    );
    match (number.some(), space.0 == u32::MAX) {
        (None, _) => Ok(None),
        (Some(number), false) => Ok(Some(PageId::new(space, number))),
        (Some(_), true) => Err(Error::corrupt_bytes(format!(
            "rollback segment slot {rseg} names no tablespace"
        ))),
    }
}

/// All rollback segments with their header pages.
pub fn slots(page: &[u8]) -> impl Iterator<Item = Result<(RsegId, PageId)>> + '_ {
    (0..RSEGS_MAX as u8)
        .map(RsegId)
        .filter_map(|rseg| match slot(page, rseg) {
            Ok(None) => None,
            Ok(Some(header)) => Some(Ok((rseg, header))),
            Err(e) => Some(Err(e)),
        })
}

/// The bytes of a slot.
pub fn slot_bytes(header: Option<PageId>) -> [u8; 8] {
    header.map_or(u64::MAX, PageId::to_u64).to_be_bytes()
}

/// Fills the body of a new TRX_SYS page: no segments but what the caller sets afterwards.
pub fn init(page: &mut [u8], segment: SegmentHeader) {
    be::put_u64(page, OFF_TRX_ID, 0);
    page[OFF_SEGMENT..OFF_SEGMENT + HEADER_BYTES].copy_from_slice(&segment.to_bytes());
    page[OFF_SLOTS..OFF_SLOTS + 8 * SLOTS_ON_DISK].fill(0xFF);
}

/// Where the doublewrite blocks stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doublewrite {
    /// Segment that holds the blocks.
    pub segment: SegmentHeader,
    /// First page of each block; a block is an extent.
    pub blocks: [PageNo; 2],
}

/// Bytes of the doublewrite header.
pub const DOUBLEWRITE_BYTES: usize = 38;

impl Doublewrite {
    /// Reads the header; `None` if it was never set up. The copy of the block numbers is used when
    /// the first is damaged, as the stock server writes it for that.
    pub fn parse(page: &[u8], geometry: Geometry) -> Result<Option<Doublewrite>> {
        let at = page.len() - DOUBLEWRITE_FROM_END;
        let header = &page[at..at + DOUBLEWRITE_BYTES];
        let good = [10, 22]
            .into_iter()
            .find(|&at| be::u32_at(header, at) == DOUBLEWRITE_MAGIC);
        let Some(magic) = good else { return Ok(None) };
        if be::u32_at(header, 34) != SPACE_IDS_STORED {
            return Err(Error::unsupported(
                "a doublewrite buffer of a server before 4.1",
            ));
        }
        let blocks = [magic + 4, magic + 8].map(|at| PageNo(be::u32_at(header, at)));
        if blocks
            .iter()
            .any(|b| geometry.extent_start(*b) != *b || b.0 == 0)
        {
            return Err(Error::corrupt_bytes(
                "the doublewrite blocks are not extents",
            ));
        }
        let segment = SegmentHeader::parse(header, 0, geometry)?;
        Ok(Some(Doublewrite { segment, blocks }))
    }

    /// The header as bytes, for P-200.
    pub fn to_bytes(self) -> [u8; DOUBLEWRITE_BYTES] {
        let mut out = [0; DOUBLEWRITE_BYTES];
        out[..HEADER_BYTES].copy_from_slice(&self.segment.to_bytes());
        for at in [10, 22] {
            be::put_u32(&mut out, at, DOUBLEWRITE_MAGIC);
            be::put_u32(&mut out, at + 4, self.blocks[0].0);
            be::put_u32(&mut out, at + 8, self.blocks[1].0);
        }
        be::put_u32(&mut out, 34, SPACE_IDS_STORED);
        out
    }
}

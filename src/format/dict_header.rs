//! The dictionary header, page 7 of the system tablespace (format-tablespace.md 6.2).

use std::mem::{offset_of, size_of};

use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::words::{Error, IndexId, PageNo, Result, SpaceId, TableId};

use super::inode::SegmentHeader;

/// The page's number in the system tablespace.
pub const PAGE: PageNo = PageNo(7);
/// Offset of the header in the page.
pub const HEADER: usize = 38;
/// Page offset of the row id counter.
pub const OFF_ROW_ID: usize = 38;
/// Page offset of the last table id.
pub const OFF_TABLE_ID: usize = 46;
/// Page offset of the last index id.
pub const OFF_INDEX_ID: usize = 54;
/// Page offset of the largest space id.
pub const OFF_MAX_SPACE_ID: usize = 62;
/// The row id counter is written only at multiples of this.
pub const ROW_ID_MARGIN: u64 = 256;
/// Value of the constant field and of the id counters of a new instance.
pub const FIRST_ID: u64 = 10;

/// Dictionary header. Counters hold the last id used; after a crash they are right, since they
/// are logged with the change that uses the id, but for `row_id` (see [`DictHeader::next_row_id`]).
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq, Debug,
)]
#[repr(C)]
pub struct DictHeader {
    /// DB_ROW_ID counter as of its last multiple of 256.
    pub row_id: U64,
    /// Last table id used.
    pub table_id: U64,
    /// Last index id used.
    pub index_id: U64,
    /// Largest space id ever assigned.
    pub max_space_id: U32,
    /// Constant 10, the mix id of old versions.
    pub mix_id_low: U32,
    /// Roots of SYS_TABLES, its ID_IND, SYS_COLUMNS, SYS_INDEXES, SYS_FIELDS.
    pub roots: [U32; 5],
    /// Zero.
    pub unused: U32,
    /// Segment of this page.
    pub segment: SegmentHeader,
}

const _: () = {
    assert!(size_of::<DictHeader>() == 66);
    assert!(HEADER + offset_of!(DictHeader, max_space_id) == OFF_MAX_SPACE_ID);
    assert!(HEADER + offset_of!(DictHeader, roots) == 70);
    assert!(HEADER + offset_of!(DictHeader, segment) == 94);
};

/// DB_ROW_ID has 6 bytes; tables and indexes are never that many.
const IDS_END: u64 = (1 << 48) - 2 * ROW_ID_MARGIN;
/// The ids from here on are those of undo logs and temporary tables.
const SPACE_IDS_END: u32 = 0xFFFF_FFF0;

impl DictHeader {
    /// The header of a new instance.
    pub fn new(roots: [PageNo; 5], segment: SegmentHeader) -> DictHeader {
        DictHeader {
            row_id: U64::new(FIRST_ID),
            table_id: U64::new(FIRST_ID),
            index_id: U64::new(FIRST_ID),
            max_space_id: U32::new(0),
            mix_id_low: U32::new(FIRST_ID as u32),
            roots: roots.map(|page| U32::new(page.0)),
            unused: U32::new(0),
            segment,
        }
    }

    /// Reads the header; refuses roots that are no pages, and counters that cannot go on.
    pub fn parse(page: &[u8]) -> Result<DictHeader> {
        let header: DictHeader = super::list::read(page, HEADER)?;
        if header
            .roots
            .iter()
            .any(|root| root.get() < 8 || root.get() == PageNo::NONE.0)
        {
            return Err(Error::corrupt_bytes(
                "the dictionary header names no root pages",
            ));
        }
        // A counter at its end would begin again with ids in use.
        let ids = [header.row_id, header.table_id, header.index_id];
        if ids.iter().any(|id| id.get() >= IDS_END) || header.max_space_id.get() >= SPACE_IDS_END {
            return Err(Error::corrupt_bytes(
                "a counter of the dictionary header is at its end",
            ));
        }
        Ok(header)
    }

    /// Writes the header into its page. Panics if the page is too short.
    pub fn write(&self, page: &mut [u8]) {
        page[HEADER..HEADER + size_of::<DictHeader>()].copy_from_slice(self.as_bytes());
    }

    /// Roots of SYS_TABLES, its ID_IND, SYS_COLUMNS, SYS_INDEXES, SYS_FIELDS.
    pub fn roots(&self) -> [PageNo; 5] {
        self.roots.map(|root| PageNo(root.get()))
    }

    /// First DB_ROW_ID to hand out after start: beyond whatever was used since the last write.
    pub fn next_row_id(&self) -> u64 {
        self.row_id.get().next_multiple_of(ROW_ID_MARGIN) + ROW_ID_MARGIN
    }

    /// Last table id used.
    pub fn table_id(&self) -> TableId {
        TableId(self.table_id.get())
    }

    /// Last index id used.
    pub fn index_id(&self) -> IndexId {
        IndexId(self.index_id.get())
    }

    /// Largest space id ever assigned.
    pub fn max_space_id(&self) -> SpaceId {
        SpaceId(self.max_space_id.get())
    }
}

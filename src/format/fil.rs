//! Envelope of every page (format-tablespace.md section 1).

use std::fmt;
use std::mem::{offset_of, size_of};

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::words::{Error, Lsn, PageId, PageNo, Result, SpaceId, be};

/// Bytes of the header; a page's own content starts here.
pub const HEADER_BYTES: usize = 38;
/// Bytes of the trailer. Pages inside ROW_FORMAT=COMPRESSED files have none.
pub const TRAILER_BYTES: usize = 8;

/// Offset of the checksum (crc32) or key version (full_crc32).
pub const OFF_CHECKSUM: usize = 0;
/// Offset of the page number.
pub const OFF_PAGE_NO: usize = 4;
/// Offset of the left sibling's page number.
pub const OFF_PREV: usize = 8;
/// Offset of the right sibling's page number.
pub const OFF_NEXT: usize = 12;
/// Offset of the page LSN.
pub const OFF_LSN: usize = 16;
/// Offset of the page type; also where a redo cursor stands after INIT_PAGE.
pub const OFF_TYPE: usize = 24;
/// Offset of the 8 bytes that mean flush LSN, key version or R-tree split sequence number.
pub const OFF_SPLIT_SEQ: usize = 26;
/// Offset of the tablespace id.
pub const OFF_SPACE_ID: usize = 34;

/// First 38 bytes of every page of every tablespace.
///
/// | offset | size | field       | meaning                                                     |
/// |--------|------|-------------|-------------------------------------------------------------|
/// |      0 |    4 | `checksum`  | crc32 flavours: checksum; full_crc32: key version           |
/// |      4 |    4 | `page_no`   | the page's number in its tablespace                         |
/// |      8 |    4 | `prev`      | previous page on the same B-tree level                      |
/// |     12 |    4 | `next`      | next page on the same level; in ZBLOB pages the next part   |
/// |     16 |    8 | `lsn`       | end of the newest mini-transaction that changed the page    |
/// |     24 |    2 | `page_type` | see [`PageType`]                                            |
/// |     26 |    8 | `split_seq` | R-tree split sequence number; zero elsewhere                |
/// |     34 |    4 | `space_id`  | the tablespace                                              |
///
/// All fields are covered by the checksum in the full_crc32 flavour; the crc32 flavour leaves out
/// bytes 26..38, the zip flavour the LSN and `split_seq`.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
#[expect(missing_docs, reason = "the table above describes the fields")]
pub struct FilHeader {
    pub checksum: U32,
    pub page_no: U32,
    pub prev: U32,
    pub next: U32,
    pub lsn: U64,
    pub page_type: U16,
    pub split_seq: U64,
    pub space_id: U32,
}

const _: () = {
    assert!(size_of::<FilHeader>() == HEADER_BYTES);
    assert!(offset_of!(FilHeader, lsn) == OFF_LSN);
    assert!(offset_of!(FilHeader, split_seq) == OFF_SPLIT_SEQ);
    assert!(offset_of!(FilHeader, space_id) == OFF_SPACE_ID);
};

impl FilHeader {
    /// The header of `page`, which may be any prefix of a page.
    pub fn parse(page: &[u8]) -> Result<&FilHeader> {
        FilHeader::ref_from_prefix(page)
            .map(|(header, _)| header)
            .map_err(|_| Error::corrupt_bytes("a page shorter than its header"))
    }

    /// Which page these bytes claim to be.
    pub fn id(&self) -> PageId {
        PageId::new(SpaceId(self.space_id.get()), PageNo(self.page_no.get()))
    }
}

/// Page number that the page claims. Panics if `page` is shorter than the header, like all
/// accessors below.
#[inline]
pub fn page_no(page: &[u8]) -> PageNo {
    PageNo(be::u32_at(page, OFF_PAGE_NO))
}

/// Tablespace that the page claims.
#[inline]
pub fn space_id(page: &[u8]) -> SpaceId {
    SpaceId(be::u32_at(page, OFF_SPACE_ID))
}

/// Tablespace and number that the page claims.
#[inline]
pub fn page_id(page: &[u8]) -> PageId {
    PageId::new(space_id(page), page_no(page))
}

/// Left sibling on the same level; `PageNo::NONE` at the edge.
#[inline]
pub fn prev(page: &[u8]) -> PageNo {
    PageNo(be::u32_at(page, OFF_PREV))
}

/// Right sibling on the same level; `PageNo::NONE` at the edge.
#[inline]
pub fn next(page: &[u8]) -> PageNo {
    PageNo(be::u32_at(page, OFF_NEXT))
}

/// End LSN of the newest mini-transaction that changed the page.
#[inline]
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(be::u64_at(page, OFF_LSN))
}

/// Sets the page LSN in the header alone; `checksum::stamp` repeats it in the trailer.
#[inline]
pub fn set_lsn(page: &mut [u8], lsn: Lsn) {
    be::put_u64(page, OFF_LSN, lsn.0);
}

/// The page's type.
#[inline]
pub fn page_type(page: &[u8]) -> PageType {
    PageType(be::u16_at(page, OFF_TYPE))
}

/// True if every byte is zero: a page that was never written, which is valid anywhere.
pub fn is_all_zero(page: &[u8]) -> bool {
    // By blocks, so that the compiler may use vectors: this runs over every hole of a file.
    page.chunks(64)
        .all(|block| block.iter().fold(0, |any, byte| any | byte) == 0)
}

/// Makes `page` what INIT_PAGE makes of it: zeros but for number, siblings (none) and space
/// (format-redo.md section 6). Its type is then ALLOCATED.
pub fn init(page: &mut [u8], id: PageId) {
    page.fill(0);
    be::put_u32(page, OFF_PAGE_NO, id.page.0);
    page[OFF_PREV..OFF_LSN].fill(0xFF);
    be::put_u32(page, OFF_SPACE_ID, id.space.0);
}

/// FIL_PAGE_TYPE: what the page holds. An open set: old files hold other values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageType(pub u16);

#[expect(
    missing_docs,
    reason = "InnoDB's own names; the table of section 1 explains them"
)]
impl PageType {
    pub const ALLOCATED: PageType = PageType(0);
    pub const UNDO_LOG: PageType = PageType(2);
    pub const INODE: PageType = PageType(3);
    pub const IBUF_FREE_LIST: PageType = PageType(4);
    pub const IBUF_BITMAP: PageType = PageType(5);
    pub const SYS: PageType = PageType(6);
    pub const TRX_SYS: PageType = PageType(7);
    pub const FSP_HDR: PageType = PageType(8);
    pub const XDES: PageType = PageType(9);
    pub const BLOB: PageType = PageType(10);
    pub const ZBLOB: PageType = PageType(11);
    pub const ZBLOB2: PageType = PageType(12);
    pub const UNKNOWN: PageType = PageType(13);
    pub const INSTANT: PageType = PageType(18);
    pub const RTREE: PageType = PageType(17854);
    pub const INDEX: PageType = PageType(17855);
    pub const PAGE_COMPRESSED: PageType = PageType(34354);
    pub const PAGE_COMPRESSED_ENCRYPTED: PageType = PageType(37401);
}

impl PageType {
    /// True for the pages of a tree: INDEX, RTREE, INSTANT.
    pub fn is_index(self) -> bool {
        matches!(self, PageType::INDEX | PageType::RTREE | PageType::INSTANT)
    }

    /// In a full_crc32 file, a PAGE_COMPRESSED page is stored in this many bytes.
    pub fn full_crc32_stored_bytes(self) -> Option<usize> {
        (self.0 & 0x8000 != 0).then_some((self.0 as usize & 0x7FFF) << 8)
    }

    /// InnoDB's name of the type, or `None` for a value it does not use.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            PageType::ALLOCATED => "ALLOCATED",
            PageType::UNDO_LOG => "UNDO_LOG",
            PageType::INODE => "INODE",
            PageType::IBUF_FREE_LIST => "IBUF_FREE_LIST",
            PageType::IBUF_BITMAP => "IBUF_BITMAP",
            PageType::SYS => "SYSTEM",
            PageType::TRX_SYS => "TRX_SYSTEM",
            PageType::FSP_HDR => "FILE_SPACE_HEADER",
            PageType::XDES => "EXTENT_DESCRIPTOR",
            PageType::BLOB => "BLOB",
            PageType::ZBLOB => "COMPRESSED_BLOB",
            PageType::ZBLOB2 => "COMPRESSED_BLOB2",
            PageType::UNKNOWN => "UNKNOWN",
            PageType::INSTANT => "INSTANT",
            PageType::RTREE => "RTREE_INDEX",
            PageType::INDEX => "INDEX",
            PageType::PAGE_COMPRESSED => "PAGE_COMPRESSED",
            PageType::PAGE_COMPRESSED_ENCRYPTED => "PAGE_COMPRESSED_ENCRYPTED",
            _ => return None,
        })
    }
}

impl fmt::Debug for PageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "PageType({})", self.0),
        }
    }
}

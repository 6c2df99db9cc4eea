//! Off-page columns: references and page parts (format-tablespace.md section 14).

use std::mem::size_of;

use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::words::{Error, PageId, PageNo, Result, SpaceId, be};

use super::fil;

/// Bytes of a reference, the last bytes of a field's local part.
pub const REF_BYTES: usize = 20;
/// Within a reference: the byte with the owner and inherited bits.
pub const REF_FLAGS: usize = 12;
/// Offset of a part's header in pages of type BLOB.
pub const PART_HEADER: usize = fil::HEADER_BYTES;
/// Offset of a part's data in pages of type BLOB.
pub const PART_DATA: usize = PART_HEADER + 8;
/// Offset that references to compressed columns name: the NEXT field of the envelope.
pub const ZIP_PART_HEADER: usize = fil::OFF_NEXT;

const NOT_OWNER: u64 = 1 << 63;
const INHERITED: u64 = 1 << 62;

/// Where the off-page part of a column stands.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq, Debug,
)]
#[repr(C)]
pub struct BlobRef {
    space: U32,
    page: U32,
    offset: U32,
    len: U64,
}

const _: () = assert!(size_of::<BlobRef>() == REF_BYTES);

impl BlobRef {
    /// "Not yet written": only seen by READ UNCOMMITTED and during recovery.
    pub const UNWRITTEN: BlobRef = BlobRef {
        space: U32::new(0),
        page: U32::new(0),
        offset: U32::new(0),
        len: U64::new(0),
    };

    /// A reference to a chain of BLOB pages that the record owns.
    pub fn new(first: PageId, len: u32) -> BlobRef {
        BlobRef {
            space: U32::new(first.space.0),
            page: U32::new(first.page.0),
            offset: U32::new(PART_HEADER as u32),
            len: U64::new(u64::from(len)),
        }
    }

    /// The reference at the end of a field's local part.
    pub fn of_local_part(local: &[u8]) -> Result<BlobRef> {
        BlobRef::read_from_suffix(local)
            .map(|(_, reference)| reference)
            .map_err(|_| Error::corrupt_bytes("an off-page column shorter than its reference"))
    }

    /// The reference as bytes.
    pub fn to_bytes(self) -> [u8; REF_BYTES] {
        zerocopy::transmute!(self)
    }

    /// True if the BLOB was not written yet.
    pub fn is_unwritten(&self) -> bool {
        *self == BlobRef::UNWRITTEN
    }

    /// First page of the chain.
    pub fn page(&self) -> PageId {
        PageId::new(SpaceId(self.space.get()), PageNo(self.page.get()))
    }

    /// Offset of the part header that the reference names: `PART_HEADER` or `ZIP_PART_HEADER`.
    pub fn offset(&self) -> u32 {
        self.offset.get()
    }

    /// Bytes stored off-page (uncompressed).
    pub fn len_bytes(&self) -> u32 {
        self.len.get() as u32
    }

    /// True if the record must free the BLOB when it goes.
    pub fn is_owner(&self) -> bool {
        self.len.get() & NOT_OWNER == 0
    }

    /// True if the BLOB came from an older version: rollback must not free it.
    pub fn is_inherited(&self) -> bool {
        self.len.get() & INHERITED != 0
    }

    /// The same with ownership set.
    pub fn with_owner(self, owner: bool) -> BlobRef {
        self.with_bit(NOT_OWNER, !owner)
    }

    /// The same with inheritance set.
    pub fn with_inherited(self, inherited: bool) -> BlobRef {
        self.with_bit(INHERITED, inherited)
    }

    fn with_bit(mut self, bit: u64, on: bool) -> BlobRef {
        let len = self.len.get();
        self.len.set(if on { len | bit } else { len & !bit });
        self
    }
}

/// Bytes of the column that fit in one page of type BLOB.
pub fn part_bytes_max(page_size: usize) -> usize {
    page_size - PART_DATA - fil::TRAILER_BYTES
}

/// One page's part of an off-page column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlobPart<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// Page of the next part.
    pub next: Option<PageNo>,
}

impl<'a> BlobPart<'a> {
    /// Reads the part of a page of type BLOB. A part without bytes, a link to a fixed page and a
    /// wrong page type are refused, so that a damaged chain cannot be walked for ever: each step
    /// yields at least a byte of a length that the caller knows.
    pub fn parse(page: &'a [u8]) -> Result<BlobPart<'a>> {
        if fil::page_type(page) != fil::PageType::BLOB {
            return Err(Error::corrupt_bytes(format!(
                "an off-page column leads to a page of type {:?}",
                fil::page_type(page)
            )));
        }
        let len = be::u32_at(page, PART_HEADER) as usize;
        let next = PageNo(be::u32_at(page, PART_HEADER + 4)).some();
        if len == 0 || len > part_bytes_max(page.len()) || next.is_some_and(|next| next.0 < 3) {
            return Err(Error::corrupt_bytes(format!("a BLOB part of {len} bytes")));
        }
        Ok(BlobPart {
            data: &page[PART_DATA..PART_DATA + len],
            next,
        })
    }

    /// The part's header: length and next page.
    pub fn header_bytes(&self) -> [u8; 8] {
        let mut out = [0; 8];
        be::put_u32(&mut out, 0, self.data.len() as u32);
        be::put_u32(&mut out, 4, self.next.unwrap_or(PageNo::NONE).0);
        out
    }
}

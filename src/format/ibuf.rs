//! The change buffer: bitmap pages, header, root, entries (format-tablespace.md 4.6 and 19).
//!
//! This engine never writes entries; it reads what a stock server left, to merge it.

use crate::words::{Error, IndexId, PageId, PageNo, Result, SpaceId, be};

use super::fsp::Geometry;

/// Page of the header in the system tablespace.
pub const HEADER_PAGE: PageNo = PageNo(3);
/// Offset of the segment header in the header page.
pub const OFF_SEGMENT: usize = 94;
/// Root page of the tree in the system tablespace.
pub const ROOT_PAGE: PageNo = PageNo(4);
/// Id of the tree.
pub const INDEX_ID: IndexId = IndexId(0xFFFF_FFFF_0000_0000);
/// Offset, in the root page, of the base node of the list of free pages.
pub const OFF_FREE_LIST: usize = 74;
/// Offset of the list node in a page of type IBUF_FREE_LIST.
pub const OFF_FREE_NODE: usize = 74;
/// Offset of the bits in a bitmap page: where the records of an index page begin.
pub const OFF_BITMAP: usize = 94;

/// What a bitmap page says of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageBits {
    /// Class of free space, 0..=3. 0 is always right while nothing is buffered.
    pub free: u8,
    /// Changes of the page are buffered.
    pub buffered: bool,
    /// The page belongs to the change buffer's tree.
    pub of_tree: bool,
}

impl PageBits {
    fn from_nibble(nibble: u8) -> PageBits {
        // The higher bit of the class stands first.
        let free = (nibble & 1) << 1 | nibble >> 1 & 1;
        PageBits {
            free,
            buffered: nibble & 4 != 0,
            of_tree: nibble & 8 != 0,
        }
    }

    fn to_nibble(self) -> u8 {
        self.free >> 1 & 1
            | (self.free & 1) << 1
            | (self.buffered as u8) << 2
            | (self.of_tree as u8) << 3
    }
}

/// Byte of `page`'s bits in its bitmap page.
pub fn bitmap_offset(geometry: Geometry, page: PageNo) -> usize {
    let index = page.0 as usize & (geometry.descriptor_interval() as usize - 1);
    OFF_BITMAP + index / 2
}

/// The bits of `page` in its bitmap page.
pub fn bits(bitmap: &[u8], geometry: Geometry, page: PageNo) -> PageBits {
    PageBits::from_nibble(bitmap[bitmap_offset(geometry, page)] >> (page.0 % 2 * 4))
}

/// Offset in the bitmap page of the byte that holds `page`'s bits, and the byte's new value. The
/// caller writes and logs it.
pub fn bits_byte(bitmap: &[u8], geometry: Geometry, page: PageNo, bits: PageBits) -> (usize, u8) {
    let at = bitmap_offset(geometry, page);
    let shift = page.0 % 2 * 4;
    (at, bitmap[at] & !(15 << shift) | bits.to_nibble() << shift)
}

/// Class of a page with room for `insert_bytes_max` after a reorganisation.
pub fn free_class(geometry: Geometry, insert_bytes_max: usize) -> u8 {
    match insert_bytes_max / (geometry.physical_bytes() / 32) {
        n @ 0..3 => n as u8,
        3 => 2,
        _ => 3,
    }
}

/// What is to be done with an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Insert it.
    Insert = 0,
    /// Delete-mark it.
    DeleteMark = 1,
    /// Remove it.
    Delete = 2,
}

/// Head of an entry of the change buffer. The fields from the fifth on are the index entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// The secondary index leaf page to change.
    pub page: PageId,
    /// Order of the operations on the page.
    pub counter: u16,
    /// What to do.
    pub operation: Operation,
    /// The page is not REDUNDANT.
    pub compact: bool,
    types: &'a [u8],
}

/// Type of a field of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldType {
    /// InnoDB's main type.
    pub mtype: u8,
    /// Precise type: its low byte is the SQL type, then flags.
    pub prtype: u32,
    /// Length, of the prefix if there is one.
    pub len: u16,
}

const FIELD_TYPE_BYTES: usize = 6;

impl<'a> Entry<'a> {
    /// Reads the first four fields of a record of the tree.
    pub fn parse(fields: [&'a [u8]; 4]) -> Result<Entry<'a>> {
        let [space, marker, page, head] = fields;
        let bad = || Error::corrupt_bytes("change buffer entry");
        if space.len() != 4 || marker != [0] || page.len() != 4 || head.len() < 4 {
            return Err(bad());
        }
        let operation = match head[2] {
            0 => Operation::Insert,
            1 => Operation::DeleteMark,
            2 => Operation::Delete,
            _ => return Err(bad()),
        };
        if head[3] & !1 != 0 || (head.len() - 4) % FIELD_TYPE_BYTES != 0 {
            return Err(bad());
        }
        Ok(Entry {
            page: PageId::new(SpaceId(be::u32_at(space, 0)), PageNo(be::u32_at(page, 0))),
            counter: be::u16_at(head, 0),
            operation,
            compact: head[3] & 1 != 0,
            types: &head[4..],
        })
    }

    /// Types of the index entry's fields.
    pub fn types(&self) -> impl ExactSizeIterator<Item = FieldType> + 'a {
        self.types.chunks_exact(FIELD_TYPE_BYTES).map(|raw| {
            let collation = u32::from(be::u16_at(raw, 4));
            // NOT NULL is bit 8 of prtype, BINARY_TYPE bit 10, the collation stands from bit 16.
            let not_null = collation >> 15 << 8;
            let binary = u32::from(raw[0] >> 7) << 10;
            FieldType {
                mtype: raw[0] & 0x3F,
                prtype: u32::from(raw[1]) | not_null | binary | (collation & 0x7FFF) << 16,
                len: be::u16_at(raw, 2),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_neighbouring_pages_do_not_mix_and_the_high_bit_stands_first() {
        let geometry = Geometry::of_page_size(16384);
        let mut bitmap = vec![0u8; 16384];
        let bits6 = PageBits {
            free: 2,
            buffered: true,
            of_tree: false,
        };
        let bits7 = PageBits {
            free: 1,
            buffered: false,
            of_tree: true,
        };
        for (page, value) in [(6, bits6), (7, bits7)] {
            let (at, byte) = bits_byte(&bitmap, geometry, PageNo(16384 + page), value);
            assert_eq!(at, 97);
            bitmap[at] = byte;
        }
        assert_eq!(bitmap[97], 0b1010_0101);
        assert_eq!(bits(&bitmap, geometry, PageNo(6)), bits6);
        assert_eq!(bits(&bitmap, geometry, PageNo(7)), bits7);
        assert_eq!(
            [0, 511, 512, 1536, 2047, 2048, 9999].map(|n| free_class(geometry, n)),
            [0, 0, 1, 2, 2, 3, 3]
        );
    }
}

//! The header, the two system records and the directory of an index page (format-tablespace.md
//! section 11). Types INDEX, RTREE and INSTANT.
//!
//! | offset | size | field                                                                  |
//! |--------|------|------------------------------------------------------------------------|
//! | 38     | 2    | N_DIR_SLOTS                                                            |
//! | 40     | 2    | HEAP_TOP: first unused byte of the record heap                         |
//! | 42     | 2    | N_HEAP: records ever allocated, system ones too; bit 15 = compact page |
//! | 44     | 2    | FREE: origin of the first freed record, 0 = none                       |
//! | 46     | 2    | GARBAGE: bytes lost in freed records                                   |
//! | 48     | 2    | LAST_INSERT: origin of the last inserted record, 0 after a delete      |
//! | 50     | 2    | bits 3-15 INSTANT (core fields), bits 0-2 DIRECTION                    |
//! | 52     | 2    | N_DIRECTION: consecutive inserts in that direction                     |
//! | 54     | 2    | N_RECS: user records in the list                                       |
//! | 56     | 8    | MAX_TRX_ID on secondary leaves; AUTO_INCREMENT on a clustered root     |
//! | 64     | 2    | LEVEL, 0 = leaf                                                        |
//! | 66     | 8    | INDEX_ID                                                               |
//! | 74     | 10   | segment header of the leaf segment, root only                          |
//! | 84     | 10   | segment header of the top segment, root only                           |
//! | 94     |      | infimum, supremum, record heap                                         |
//! | P-10-2i| 2    | directory slot i                                                       |

/// Page type INDEX.
pub const TYPE_INDEX: u16 = 17855;
/// Page type RTREE.
pub const TYPE_RTREE: u16 = 17854;
/// Page type INSTANT: the clustered root of a table after instant ALTER.
pub const TYPE_INSTANT: u16 = 18;

/// FIL_PAGE_PREV.
pub const PREV: usize = 8;
/// FIL_PAGE_NEXT.
pub const NEXT: usize = 12;
/// FIL_PAGE_TYPE.
pub const TYPE: usize = 24;
/// The space id in the page envelope.
pub const SPACE_ID: usize = 34;

/// First byte of the index page header.
pub const HEADER: usize = 38;
/// Number of directory slots.
pub const N_DIR_SLOTS: usize = 38;
/// First unused byte of the heap.
pub const HEAP_TOP: usize = 40;
/// Records in the heap, and the compact bit.
pub const N_HEAP: usize = 42;
/// Head of the free list.
pub const FREE: usize = 44;
/// Bytes in freed records.
pub const GARBAGE: usize = 46;
/// The record inserted last.
pub const LAST_INSERT: usize = 48;
/// Core fields of an instant table, and the direction of inserts.
pub const INSTANT: usize = 50;
/// Low byte of `INSTANT`: bits 0-2 are the direction.
pub const DIRECTION: usize = 51;
/// Number of consecutive inserts in one direction.
pub const N_DIRECTION: usize = 52;
/// Number of user records.
pub const N_RECS: usize = 54;
/// Highest transaction that changed a secondary leaf.
pub const MAX_TRX_ID: usize = 56;
/// The same eight bytes on a clustered root: the last AUTO_INCREMENT value handed out.
pub const ROOT_AUTO_INC: usize = 56;
/// Level in the tree.
pub const LEVEL: usize = 64;
/// The index.
pub const INDEX_ID: usize = 66;
/// Segment header of the leaves, on the root.
pub const SEGMENT_LEAF: usize = 74;
/// Segment header of the other pages, on the root.
pub const SEGMENT_TOP: usize = 84;
/// First byte after the header: the system records.
pub const DATA: usize = 94;

/// Bit of N_HEAP that marks compact record headers.
pub const COMPACT_BIT: u16 = 0x8000;

/// Inserts go to the left.
pub const DIRECTION_LEFT: u8 = 1;
/// Inserts go to the right.
pub const DIRECTION_RIGHT: u8 = 2;
/// No direction.
pub const DIRECTION_NONE: u8 = 5;

/// Bytes from the page end to the lower end of directory slot 0.
pub const DIRECTORY_END: usize = 10;
/// Bytes of a directory slot.
pub const SLOT_BYTES: usize = 2;
/// Bytes of the page trailer.
pub const TRAILER_BYTES: usize = 8;
/// A directory slot owns at most this many records.
pub const OWNED_MAX: u8 = 8;
/// An inner directory slot owns at least this many records.
pub const OWNED_MIN: u8 = 4;

/// Where the fixed parts of a page stand, by row format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Origin of the infimum.
    pub infimum: u16,
    /// Origin of the supremum.
    pub supremum: u16,
    /// First byte of the record heap.
    pub heap: u16,
    /// The system records of an empty page, from `DATA` on.
    pub system_records: &'static [u8],
    /// Distance from a record's origin down to the byte of info bits and n_owned.
    pub info_back: u16,
}

/// COMPACT, DYNAMIC.
pub const COMPACT: Frame = Frame {
    infimum: 99,
    supremum: 112,
    heap: 120,
    system_records: b"\x01\x00\x02\x00\x0dinfimum\0\x01\x00\x0b\x00\x00supremum",
    info_back: 5,
};

/// REDUNDANT.
pub const REDUNDANT: Frame = Frame {
    infimum: 101,
    supremum: 116,
    heap: 125,
    system_records: b"\x08\x01\x00\x00\x03\x00\x74infimum\0\x09\x01\x00\x08\x03\x00\x00supremum\0",
    info_back: 6,
};

/// The frame of a row format.
pub const fn frame(compact: bool) -> &'static Frame {
    if compact { &COMPACT } else { &REDUNDANT }
}

const _: () = {
    assert!(COMPACT.system_records.len() + DATA == COMPACT.heap as usize);
    assert!(REDUNDANT.system_records.len() + DATA == REDUNDANT.heap as usize);
};

/// Offset of directory slot `slot` in a page of `page_len` bytes.
#[inline]
pub const fn slot_offset(page_len: usize, slot: usize) -> usize {
    page_len - DIRECTORY_END - SLOT_BYTES * slot
}

/// Bytes that the directory may come to need for `records` user records.
pub const fn directory_reserve(records: usize) -> usize {
    (SLOT_BYTES * records).div_ceil(OWNED_MIN as usize)
}

/// Bytes for records and directory on an empty page.
pub const fn empty_free_space(page_len: usize, compact: bool) -> usize {
    page_len - frame(compact).heap as usize - TRAILER_BYTES - 2 * SLOT_BYTES
}

/// A record of this size or larger is too big: its long columns move off the page (section 12.3).
pub const fn record_size_limit(page_len: usize, compact: bool) -> usize {
    let half = empty_free_space(page_len, compact) / 2;
    if compact {
        if half < 16384 { half } else { 16384 }
    } else if half < 16383 {
        half
    } else {
        16383
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_reference() {
        assert_eq!(record_size_limit(16384, true), 8126);
        assert_eq!(record_size_limit(16384, false), 8123);
        assert_eq!(record_size_limit(65536, false), 16383);
        assert_eq!(slot_offset(16384, 1), 16384 - 12);
        assert_eq!(directory_reserve(1), 1);
        assert_eq!(directory_reserve(4), 2);
    }
}

//! Segment inodes and segment headers (format-tablespace.md 4.4).
//!
//! An INODE page holds a list node at 38 and slots from 50:
//!
//! | +            | size  | field                                      |
//! |--------------|-------|--------------------------------------------|
//! |            0 |     8 | segment id; 0 = slot unused                |
//! |            8 |     4 | pages used in NOT_FULL extents             |
//! | 12 / 28 / 44 |    16 | FREE / NOT_FULL / FULL extents             |
//! |           60 |     4 | magic                                      |
//! |           64 | ext*2 | fragment pages, 4 bytes each               |
//!
//! Functions take one slot, `Geometry::inode_bytes` long, and panic on a shorter one.

use std::mem::size_of;

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::words::{Error, PageId, PageNo, Result, SegmentId, SpaceId, be};

use super::fsp::Geometry;
use super::list::{ListBase, ListNode};

/// Page offset of the list node of an INODE page.
pub const OFF_PAGE_NODE: usize = 38;
/// Page offset of the first slot.
pub const OFF_SLOTS: usize = 50;

/// Slot offset of the segment id.
pub const OFF_SEGMENT: usize = 0;
/// Slot offset of the number of pages used in NOT_FULL extents.
pub const OFF_NOT_FULL_N_USED: usize = 8;
/// Slot offset of the list of extents without a used page.
pub const OFF_FREE: usize = 12;
/// Slot offset of the list of extents with used and free pages.
pub const OFF_NOT_FULL: usize = 28;
/// Slot offset of the list of extents without a free page.
pub const OFF_FULL: usize = 44;
/// Slot offset of the magic number.
pub const OFF_MAGIC: usize = 60;
/// Slot offset of the fragment pages.
pub const OFF_FRAGMENTS: usize = 64;

/// The magic number of a slot in use.
pub const MAGIC: u32 = 97_937_874;

/// Page offset of slot `index`.
pub fn slot_offset(geometry: Geometry, index: usize) -> usize {
    OFF_SLOTS + index * geometry.inode_bytes()
}

/// True if `offset` is where a slot starts.
pub fn is_slot_offset(geometry: Geometry, offset: usize) -> bool {
    offset.checked_sub(OFF_SLOTS).is_some_and(|at| {
        at % geometry.inode_bytes() == 0 && at / geometry.inode_bytes() < geometry.inodes_per_page()
    })
}

/// The segment of a slot; `SegmentId(0)` if it is unused.
pub fn segment(slot: &[u8]) -> SegmentId {
    SegmentId(be::u64_at(slot, OFF_SEGMENT))
}

/// Pages used in NOT_FULL extents.
pub fn not_full_n_used(slot: &[u8]) -> u32 {
    be::u32_at(slot, OFF_NOT_FULL_N_USED)
}

/// A list of the slot: `OFF_FREE`, `OFF_NOT_FULL` or `OFF_FULL`.
pub fn list(slot: &[u8], which: usize) -> Result<ListBase> {
    ListBase::parse(slot, which)
}

/// Fragment page `index`, or `None` if that fragment slot is unused. Panics if there is no such.
pub fn fragment(slot: &[u8], index: u32) -> Option<PageNo> {
    PageNo(be::u32_at(slot, fragment_offset(index))).some()
}

/// Slot offset of fragment page `index`.
pub fn fragment_offset(index: u32) -> usize {
    OFF_FRAGMENTS + 4 * index as usize
}

/// Fragment pages in use.
pub fn fragments(slot: &[u8]) -> impl Iterator<Item = PageNo> + '_ {
    slot[OFF_FRAGMENTS..]
        .chunks_exact(4)
        .filter_map(|raw| PageNo(be::u32_at(raw, 0)).some())
}

/// First unused fragment slot.
pub fn free_fragment(slot: &[u8]) -> Option<u32> {
    (0..(slot.len() - OFF_FRAGMENTS) as u32 / 4).find(|&index| fragment(slot, index).is_none())
}

/// Checks that a slot is in use and looks like one.
pub fn validate(slot: &[u8]) -> Result<SegmentId> {
    let id = segment(slot);
    if id.0 == 0 {
        return Err(Error::corrupt_bytes(
            "a segment header names an unused inode",
        ));
    }
    if be::u32_at(slot, OFF_MAGIC) != MAGIC {
        return Err(Error::corrupt_bytes(format!(
            "inode of segment {id} has a wrong magic number"
        )));
    }
    Ok(id)
}

/// Makes `slot` the inode of a segment without pages.
pub fn init(slot: &mut [u8], id: SegmentId) {
    be::put_u64(slot, OFF_SEGMENT, id.0);
    be::put_u32(slot, OFF_NOT_FULL_N_USED, 0);
    for which in [OFF_FREE, OFF_NOT_FULL, OFF_FULL] {
        slot[which..which + 16].copy_from_slice(&ListBase::EMPTY.to_bytes());
    }
    be::put_u32(slot, OFF_MAGIC, MAGIC);
    slot[OFF_FRAGMENTS..].fill(0xFF);
}

/// The list node of an INODE page.
pub fn page_node(page: &[u8]) -> Result<ListNode> {
    ListNode::parse(page, OFF_PAGE_NODE)
}

/// Bytes of a segment header.
pub const HEADER_BYTES: usize = 10;

/// Segment header: where the inode of a segment stands. Stored by the segment's owner.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq, Debug,
)]
#[repr(C)]
pub struct SegmentHeader {
    space: U32,
    page: U32,
    offset: U16,
}

const _: () = assert!(size_of::<SegmentHeader>() == HEADER_BYTES);

impl SegmentHeader {
    /// Names the inode at `offset` of `page`.
    pub fn new(page: PageId, offset: u16) -> SegmentHeader {
        SegmentHeader {
            space: U32::new(page.space.0),
            page: U32::new(page.page.0),
            offset: U16::new(offset),
        }
    }

    /// Reads a segment header and checks that it names a slot of an INODE page.
    pub fn parse(bytes: &[u8], at: usize, geometry: Geometry) -> Result<SegmentHeader> {
        let header: SegmentHeader = super::list::read(bytes, at)?;
        if !is_slot_offset(geometry, header.offset()) || header.page().page == PageNo::NONE {
            return Err(Error::corrupt_bytes(format!(
                "segment header {header:?} at {at}"
            )));
        }
        Ok(header)
    }

    /// The INODE page.
    pub fn page(&self) -> PageId {
        PageId::new(SpaceId(self.space.get()), PageNo(self.page.get()))
    }

    /// Byte offset of the slot in it.
    pub fn offset(&self) -> usize {
        self.offset.get() as usize
    }

    /// The header as bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        zerocopy::transmute!(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_inode_has_no_pages_and_finds_its_fragments_again() {
        let geometry = Geometry::of_page_size(16384);
        let mut slot = vec![0u8; geometry.inode_bytes()];
        assert!(validate(&slot).is_err());
        init(&mut slot, SegmentId(7));
        assert_eq!(validate(&slot), Ok(SegmentId(7)));
        assert_eq!(free_fragment(&slot), Some(0));
        be::put_u32(&mut slot, fragment_offset(0), 3);
        be::put_u32(&mut slot, fragment_offset(31), 9);
        assert_eq!(fragments(&slot).collect::<Vec<_>>(), [PageNo(3), PageNo(9)]);
        assert_eq!(free_fragment(&slot), Some(1));
        assert_eq!(list(&slot, OFF_NOT_FULL).unwrap(), ListBase::EMPTY);
        assert!(is_slot_offset(geometry, slot_offset(geometry, 84)));
        assert!(!is_slot_offset(geometry, slot_offset(geometry, 85)));
        assert!(!is_slot_offset(geometry, 51));
    }
}

//! Extent descriptors (format-tablespace.md 4.3).
//!
//! | +  | size  | field                                                              |
//! |----|-------|--------------------------------------------------------------------|
//! |  0 |     8 | segment id, when the state is FSEG                                 |
//! |  8 |    12 | list node; list addresses point here                               |
//! | 20 |     4 | state                                                              |
//! | 24 | ext/4 | 2 bits a page from the lowest: bit 0 = 1 free, bit 1 = 1 always    |
//!
//! Functions here take one descriptor, `Geometry::xdes_bytes` long, or its bitmap bytes. They
//! panic on a shorter slice: descriptors are cut out of a page by fixed rule, not by bytes on disk.

use crate::words::{Error, Result, SegmentId, be};

use super::list::ListNode;

/// Offset of the segment id in a descriptor.
pub const OFF_SEGMENT: usize = 0;
/// Offset of the list node in a descriptor.
pub const OFF_NODE: usize = 8;
/// Offset of the state in a descriptor.
pub const OFF_STATE: usize = 20;
/// Offset of the page bits in a descriptor.
pub const OFF_BITMAP: usize = 24;

/// The byte of four free pages.
pub const ALL_FREE: u8 = 0xFF;
/// The byte of four used pages.
pub const ALL_USED: u8 = 0xAA;

/// What an extent is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Above the free limit: the descriptor was never initialised.
    NotInitialised = 0,
    /// In the space's FREE list.
    Free = 1,
    /// Pages are handed out singly, some are free.
    FreeFrag = 2,
    /// Pages were handed out singly, none is free.
    FullFrag = 3,
    /// Belongs to a segment.
    Segment = 4,
}

impl State {
    /// Reads the state of a descriptor.
    pub fn parse(xdes: &[u8]) -> Result<State> {
        Ok(match be::u32_at(xdes, OFF_STATE) {
            0 => State::NotInitialised,
            1 => State::Free,
            2 => State::FreeFrag,
            3 => State::FullFrag,
            4 => State::Segment,
            other => return Err(Error::corrupt_bytes(format!("extent state {other}"))),
        })
    }
}

/// The owner of an extent in state `Segment`.
pub fn segment(xdes: &[u8]) -> SegmentId {
    SegmentId(be::u64_at(xdes, OFF_SEGMENT))
}

/// The list node of a descriptor.
pub fn node(xdes: &[u8]) -> Result<ListNode> {
    ListNode::parse(xdes, OFF_NODE)
}

/// True if page `index` of the extent (0-based) is free. Panics if it lies outside.
#[inline]
pub fn is_free(xdes: &[u8], index: u32) -> bool {
    xdes[OFF_BITMAP + index as usize / 4] >> (index % 4 * 2) & 1 == 1
}

/// Offset in the descriptor of the byte that holds page `index`, and the byte's new value once the
/// page is `free` or not. The caller writes and logs it.
pub fn bitmap_byte(xdes: &[u8], index: u32, free: bool) -> (usize, u8) {
    let at = OFF_BITMAP + index as usize / 4;
    let bit = 1u8 << (index % 4 * 2);
    (
        at,
        if free {
            xdes[at] | bit
        } else {
            xdes[at] & !bit
        },
    )
}

/// Number of used pages of the extent.
pub fn used_pages(xdes: &[u8]) -> u32 {
    let bitmap = &xdes[OFF_BITMAP..];
    let free: u32 = bitmap.iter().map(|byte| (byte & 0x55).count_ones()).sum();
    bitmap.len() as u32 * 4 - free
}

/// First free page at or after `hint`, else from 0; `None` if all are used.
pub fn find_free(xdes: &[u8], hint: u32) -> Option<u32> {
    let pages = (xdes.len() - OFF_BITMAP) as u32 * 4;
    let hint = hint % pages;
    (hint..pages)
        .chain(0..hint)
        .find(|&index| is_free(xdes, index))
}

/// Highest free page; `None` if all are used.
pub fn find_free_last(xdes: &[u8]) -> Option<u32> {
    let pages = (xdes.len() - OFF_BITMAP) as u32 * 4;
    (0..pages).rev().find(|&index| is_free(xdes, index))
}

/// Makes `xdes` the descriptor of a free extent: no owner, all pages free, node without neighbours.
pub fn init(xdes: &mut [u8]) {
    xdes[..OFF_NODE].fill(0);
    xdes[OFF_NODE..OFF_STATE].copy_from_slice(&ListNode::ALONE.to_bytes());
    be::put_u32(xdes, OFF_STATE, State::Free as u32);
    xdes[OFF_BITMAP..].fill(ALL_FREE);
}

/// Checks the bits that are always 1 and that the state is known; used where a damaged descriptor
/// would lead to handing out a page twice.
pub fn validate(xdes: &[u8]) -> Result<State> {
    let state = State::parse(xdes)?;
    let bits_right = xdes[OFF_BITMAP..].iter().all(|byte| byte & 0xAA == 0xAA);
    if state != State::NotInitialised && !bits_right {
        return Err(Error::corrupt_bytes(
            "reserved bits of an extent descriptor are not set",
        ));
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_an_extent_are_marked_and_found() {
        let mut xdes = vec![0u8; 40];
        init(&mut xdes);
        assert_eq!(used_pages(&xdes), 0);
        for index in [0, 1, 2, 5] {
            let (at, byte) = bitmap_byte(&xdes, index, false);
            xdes[at] = byte;
        }
        assert_eq!(xdes[24..26], [0b1110_1010 & 0xEA, 0b1111_1011]);
        assert_eq!(used_pages(&xdes), 4);
        assert_eq!(find_free(&xdes, 0), Some(3));
        assert_eq!(find_free(&xdes, 5), Some(6));
        assert_eq!(find_free(&xdes, 64 + 5), Some(6));
        xdes[24..].fill(ALL_USED);
        assert_eq!(find_free(&xdes, 9), None);
        assert_eq!(used_pages(&xdes), 64);
        let (at, byte) = bitmap_byte(&xdes, 0, true);
        xdes[at] = byte;
        assert_eq!(find_free(&xdes, 9), Some(0));
        assert_eq!(find_free_last(&xdes), Some(0));
        assert_eq!(validate(&xdes), Ok(State::Free));
        xdes[30] = 0;
        assert!(validate(&xdes).is_err());
        xdes[23] = 9;
        assert!(State::parse(&xdes).is_err());
    }
}

//! The fixed part of record headers (format-tablespace.md section 12).
//!
//! COMPACT and DYNAMIC, backwards from the origin: next (2, relative), heap number and status (2),
//! info bits and n_owned (1). REDUNDANT: next (2, absolute), heap number, field count and the short
//! flag (3), info bits and n_owned (1).
//!
//! These functions take an `origin` that the caller has checked to lie within the heap or on a
//! system record, so that the few bytes before it are inside the page.

use crate::words::be;

/// Info bit: the record is delete-marked.
pub const DELETED: u8 = 0x20;
/// Info bit: lower than every key; leftmost node pointer of a level, or the metadata record.
pub const MIN_REC: u8 = 0x10;

/// Bytes of the fixed header of a COMPACT record.
pub const COMPACT_EXTRA: usize = 5;
/// Bytes of the fixed header of a REDUNDANT record.
pub const REDUNDANT_EXTRA: usize = 6;

/// COMPACT status: an ordinary record.
pub const STATUS_ORDINARY: u8 = 0;
/// COMPACT status: a node pointer.
pub const STATUS_NODE_PTR: u8 = 1;
/// COMPACT status: the infimum.
pub const STATUS_INFIMUM: u8 = 2;
/// COMPACT status: the supremum.
pub const STATUS_SUPREMUM: u8 = 3;
/// COMPACT status: a record with a count of instantly added fields.
pub const STATUS_INSTANT: u8 = 4;

/// Bit of a REDUNDANT one-byte field end: the field is NULL.
pub const SHORT_NULL: u8 = 0x80;
/// Bit of a REDUNDANT two-byte field end: the field is NULL.
pub const LONG_NULL: u16 = 0x8000;
/// Bit of a REDUNDANT two-byte field end: the field continues off the page.
pub const LONG_EXTERNAL: u16 = 0x4000;
/// Bits of a REDUNDANT two-byte field end that are the offset.
pub const LONG_OFFSET: u16 = 0x3FFF;

/// Largest heap number.
pub const HEAP_NO_MAX: u16 = 8190;

/// Bytes of a child page number at the end of a node pointer.
pub const CHILD_BYTES: usize = 4;

/// Byte of info bits and n_owned.
#[inline]
fn info_at(origin: usize, compact: bool) -> usize {
    origin
        - if compact {
            COMPACT_EXTRA
        } else {
            REDUNDANT_EXTRA
        }
}

/// Info bits, in place (`DELETED`, `MIN_REC`).
#[inline]
pub fn info_bits(page: &[u8], origin: usize, compact: bool) -> u8 {
    page[info_at(origin, compact)] & 0xF0
}

/// Offset of the byte that holds the info bits, for writes that must be logged.
#[inline]
pub fn info_offset(origin: usize, compact: bool) -> usize {
    info_at(origin, compact)
}

/// Number of records that this one owns in the directory; 0 if it is not the last of its group.
#[inline]
pub fn n_owned(page: &[u8], origin: usize, compact: bool) -> u8 {
    page[info_at(origin, compact)] & 0x0F
}

/// Replaces n_owned.
#[inline]
pub fn set_n_owned(page: &mut [u8], origin: usize, compact: bool, owned: u8) {
    let byte = &mut page[info_at(origin, compact)];
    *byte = (*byte & 0xF0) | (owned & 0x0F);
}

/// Heap number.
#[inline]
pub fn heap_no(page: &[u8], origin: usize, compact: bool) -> u16 {
    be::u16_at(page, origin - if compact { 4 } else { 5 }) >> 3
}

/// Origin of the next record; 0 at the end of the list. Not checked to lie inside the page.
#[inline]
pub fn next(page: &[u8], origin: usize, compact: bool) -> usize {
    let stored = be::u16_at(page, origin - 2);
    if !compact || stored == 0 {
        return stored as usize;
    }
    (origin as u16).wrapping_add(stored) as usize
}

/// Links `origin` to `next` (0 = none).
#[inline]
pub fn set_next(page: &mut [u8], origin: usize, compact: bool, next: usize) {
    let stored = if !compact || next == 0 {
        next as u16
    } else {
        (next as u16).wrapping_sub(origin as u16)
    };
    be::put_u16(page, origin - 2, stored);
}

/// Status of a COMPACT record.
#[inline]
pub fn status(page: &[u8], origin: usize) -> u8 {
    page[origin - 3] & 7
}

/// Number of fields of a REDUNDANT record.
#[inline]
pub fn redundant_n_fields(page: &[u8], origin: usize) -> usize {
    (be::u16_at(page, origin - 4) >> 1 & 0x3FF) as usize
}

/// True if a REDUNDANT record's field ends take one byte each.
#[inline]
pub fn redundant_is_short(page: &[u8], origin: usize) -> bool {
    page[origin - 3] & 1 == 1
}

/// The end of field `i` of a REDUNDANT record as stored, with its flags widened to the two-byte
/// form. The caller has checked that the header lies inside the page.
#[inline]
pub fn redundant_end(page: &[u8], origin: usize, short: bool, i: usize) -> u16 {
    if short {
        let end = page[origin - REDUNDANT_EXTRA - i - 1];
        u16::from(end & !SHORT_NULL) | if end & SHORT_NULL != 0 { LONG_NULL } else { 0 }
    } else {
        be::u16_at(page, origin - REDUNDANT_EXTRA - 2 * (i + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_examples_of_the_reference_parse() {
        // s_dynamic, page 6, origin 128: header from the low address up.
        let mut page = vec![0u8; 200];
        page[120..128].copy_from_slice(&[0x08, 0x05, 0x10, 0x00, 0x00, 0x10, 0x3a, 0x8b]);
        assert_eq!(next(&page, 128, true), 128 + 0x3a8b);
        assert_eq!(heap_no(&page, 128, true), 2);
        assert_eq!(status(&page, 128), STATUS_ORDINARY);
        assert_eq!(
            (info_bits(&page, 128, true), n_owned(&page, 128, true)),
            (0, 0)
        );
        // s_redundant, page 6, origin 141.
        page[135..141].copy_from_slice(&[0x00, 0x00, 0x10, 0x15, 0x3b, 0x3c]);
        page[125..135].copy_from_slice(&[0xd0, 0x50, 0x49, 0x44, 0x24, 0x1a, 0x15, 0x11, 0x0a, 4]);
        assert_eq!(next(&page, 141, false), 15164);
        assert_eq!(heap_no(&page, 141, false), 2);
        assert_eq!(redundant_n_fields(&page, 141), 10);
        assert!(redundant_is_short(&page, 141));
        assert_eq!(redundant_end(&page, 141, true, 0), 4);
        assert_eq!(redundant_end(&page, 141, true, 9), 80 | LONG_NULL);
    }

    #[test]
    fn links_wrap_as_the_compact_format_does() {
        let mut page = vec![0u8; 600];
        set_next(&mut page, 500, true, 120);
        assert_eq!(next(&page, 500, true), 120);
        set_next(&mut page, 500, true, 0);
        assert_eq!(next(&page, 500, true), 0);
        set_next(&mut page, 500, false, 125);
        assert_eq!(next(&page, 500, false), 125);
    }
}

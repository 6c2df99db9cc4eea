//! Rollback segment header pages (format-tablespace.md 17.1).
//!
//! | off          | size   | field                                                      |
//! |--------------|--------|------------------------------------------------------------|
//! |           38 |      4 | format: 0; 0xFFFFFFFE before 10.3                          |
//! |           42 |      4 | HISTORY_SIZE: pages of history segments without a slot     |
//! |           46 |     16 | HISTORY list; nodes = undo log headers, newest first       |
//! |           62 |     10 | segment header                                             |
//! |           72 | 4*P/16 | undo slots: first page of an undo segment                  |
//! |     72 + P/4 |      8 | MAX_TRX_ID                                                 |
//! |           +8 |      8 | binlog position                                            |
//! |          +16 |    512 | binlog file name, NUL-terminated                           |
//! |         +528 |    140 | WSREP XID                                                  |
//!
//! Functions take the whole page and panic on a shorter one.

use crate::words::{Error, PageNo, Result, TrxId, be};

use super::inode::SegmentHeader;
use super::list::ListBase;

/// Offset of the format field.
pub const OFF_FORMAT: usize = 38;
/// Offset of HISTORY_SIZE.
pub const OFF_HISTORY_SIZE: usize = 42;
/// Offset of the base node of the history list.
pub const OFF_HISTORY: usize = 46;
/// Offset of the segment header.
pub const OFF_SEGMENT: usize = 62;
/// Offset of the undo slots.
pub const OFF_SLOTS: usize = 72;
/// Bytes of the binlog file name field.
pub const BINLOG_NAME_BYTES: usize = 512;

/// Undo slots of a page of `page_size` bytes: 1024 at 16 KiB.
pub fn slot_count(page_size: usize) -> usize {
    page_size / 16
}

/// Offset of undo slot `index`.
pub fn slot_offset(index: usize) -> usize {
    OFF_SLOTS + 4 * index
}

/// Offset of MAX_TRX_ID.
pub fn off_max_trx_id(page_size: usize) -> usize {
    OFF_SLOTS + 4 * slot_count(page_size)
}

/// Offset of the binlog position; the file name follows it.
pub fn off_binlog_offset(page_size: usize) -> usize {
    off_max_trx_id(page_size) + 8
}

/// Checks the format field. Errors: `Unsupported` for the format before 10.3.
pub fn check_format(page: &[u8]) -> Result<()> {
    match be::u32_at(page, OFF_FORMAT) {
        0 => Ok(()),
        0xFFFF_FFFE => Err(Error::unsupported(
            "a rollback segment of a server before 10.3: shut down that server with \
             innodb_fast_shutdown=0 and upgrade it first",
        )),
        other => Err(Error::corrupt_bytes(format!(
            "rollback segment format {other:#x}"
        ))),
    }
}

/// Pages in undo segments of the history list that have no slot any more.
pub fn history_size(page: &[u8]) -> u32 {
    be::u32_at(page, OFF_HISTORY_SIZE)
}

/// The history list.
pub fn history(page: &[u8]) -> Result<ListBase> {
    ListBase::parse(page, OFF_HISTORY)
}

/// First page of the undo segment in slot `index`, or `None` if the slot is free. Panics if there
/// is no such slot.
pub fn slot(page: &[u8], index: usize) -> Option<PageNo> {
    assert!(index < slot_count(page.len()));
    PageNo(be::u32_at(page, slot_offset(index))).some()
}

/// The slots in use.
pub fn slots(page: &[u8]) -> impl Iterator<Item = (usize, PageNo)> + '_ {
    (0..slot_count(page.len())).filter_map(|index| slot(page, index).map(|first| (index, first)))
}

/// The first free slot.
pub fn free_slot(page: &[u8]) -> Option<usize> {
    (0..slot_count(page.len())).find(|&index| slot(page, index).is_none())
}

/// Every transaction id and number that this segment has seen and forgotten is below the counter
/// derived from this value (format-tablespace.md section 18).
pub fn max_trx_id(page: &[u8]) -> TrxId {
    TrxId(be::u64_at(page, off_max_trx_id(page.len())))
}

/// Binlog file and position of the last commit that noted them; `None` if none did.
pub fn binlog_position(page: &[u8]) -> Option<(&[u8], u64)> {
    let at = off_binlog_offset(page.len());
    let name = &page[at + 8..at + 8 + BINLOG_NAME_BYTES];
    let len = name
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(BINLOG_NAME_BYTES);
    (len > 0).then(|| (&name[..len], be::u64_at(page, at)))
}

/// Fills the body of a new header page: no history, no undo segments.
pub fn init(page: &mut [u8], segment: SegmentHeader) {
    let slots_end = off_max_trx_id(page.len());
    page[OFF_FORMAT..OFF_HISTORY].fill(0);
    page[OFF_HISTORY..OFF_SEGMENT].copy_from_slice(&ListBase::EMPTY.to_bytes());
    page[OFF_SEGMENT..OFF_SLOTS].copy_from_slice(&segment.to_bytes());
    page[OFF_SLOTS..slots_end].fill(0xFF);
    page[slots_end..slots_end + 16 + BINLOG_NAME_BYTES + 140].fill(0);
}

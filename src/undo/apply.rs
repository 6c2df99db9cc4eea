//! UNDO_INIT and UNDO_APPEND on the bytes of a page (format-redo.md section 7, subtypes 2 and 3).

use crate::format::undo_page::{self, OFF_FREE, RECORDS};
use crate::words::{Error, Result, be};

/// UNDO_INIT: the body becomes an empty undo page; bytes 56 to 86 stay.
pub fn init(page: &mut [u8]) {
    undo_page::init(page);
}

/// UNDO_APPEND: puts `record` – without its link fields – behind the last one; returns its offset.
///
/// Errors: `Corrupt` if it does not fit, or the page's first free byte is nonsense; the page is
/// unchanged then.
pub fn append(page: &mut [u8], record: &[u8]) -> Result<u16> {
    let at = be::u16_at(page, OFF_FREE) as usize;
    if at < RECORDS || !undo_page::fits(page.len(), at, record.len()) {
        return Err(Error::corrupt_bytes(format!(
            "an undo record of {} bytes does not fit at {at}",
            record.len()
        )));
    }
    let next = at + undo_page::record_bytes(record.len());
    be::put_u16(page, OFF_FREE, next as u16);
    be::put_u16(page, at, next as u16);
    page[at + 2..next - 2].copy_from_slice(record);
    be::put_u16(page, next - 2, at as u16);
    Ok(at as u16)
}

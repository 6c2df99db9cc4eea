//! One mini-transaction's records on the bytes of a page: pure, the same functions that made them.

use crate::format::fil;
use crate::format::redo_record::{PageOp, Parsed, Record, Records};
use crate::os::planted;
use crate::page;
use crate::undo;
use crate::words::{Error, Lsn, PageId, Result};

/// Start of the first mini-transaction that the page may need: it has those that start below its LSN.
pub(super) fn first_needed(page: &[u8]) -> Lsn {
    match planted("recovery.page_lsn_ignored") {
        true => Lsn(0),
        false => fil::lsn(page),
    }
}

/// Brings `page` up to date with the mini-transaction `start..end`; those of its records that are of
/// other pages are passed over. False if the page has it already.
///
/// Errors: `Corrupt` for records that do not fit the page; the page is then half-changed and must not
/// be used.
pub fn bring_up(
    id: PageId,
    page: &mut [u8],
    (start, end): (Lsn, Lsn),
    records: &[u8],
) -> Result<bool> {
    if start < first_needed(page) {
        return Ok(false);
    }
    for parsed in Records::new(records) {
        let Parsed { record, .. } = parsed?;
        let Record::Page(of, op) = record else {
            continue;
        };
        if of == id {
            apply(id, page, &op).map_err(|error| at(error, id, start))?;
        }
    }
    fil::set_lsn(page, end);
    Ok(true)
}

/// One record.
fn apply(id: PageId, page: &mut [u8], op: &PageOp<'_>) -> Result<()> {
    match *op {
        PageOp::Init => fil::init(page, id),
        PageOp::Write { offset, data } => {
            let to = range(page, offset, data.len())?;
            page[to].copy_from_slice(data);
        }
        PageOp::Memset { offset, len, fill } => {
            let to = range(page, offset, len as usize)?;
            let bytes = fill.iter().cycle();
            page[to].iter_mut().zip(bytes).for_each(|(to, b)| *to = *b);
        }
        PageOp::Memmove {
            offset,
            len,
            source,
        } => {
            let from = range(page, source, len as usize)?;
            let to = range(page, offset, len as usize)?;
            page.copy_within(from, to.start);
        }
        PageOp::UndoInit => undo::apply::init(page),
        PageOp::UndoAppend(record) => {
            undo::apply::append(page, record)?;
        }
        PageOp::Checksum(expected) => check(page, expected)?,
        // FREE_PAGE and TRIM_PAGES void what stands before them; the index has dropped it.
        PageOp::Free | PageOp::TrimPages | PageOp::Ignored(_) => {}
        PageOp::InitIndex { .. }
        | PageOp::InsertRedundant(_)
        | PageOp::InsertDynamic(_)
        | PageOp::DeleteRedundant { .. }
        | PageOp::DeleteDynamic { .. } => page::apply::apply(page, op)?,
    }
    Ok(())
}

fn range(page: &[u8], offset: u32, len: usize) -> Result<std::ops::Range<usize>> {
    let start = offset as usize;
    match start.checked_add(len) {
        Some(end) if start >= 8 && end <= page.len() => Ok(start..end),
        _ => Err(Error::corrupt_bytes(format!(
            "a record of {len} bytes at offset {start} of a page of {}",
            page.len()
        ))),
    }
}

/// OPT_PAGE_CHECKSUM (format-redo.md section 6).
fn check(page: &[u8], expected: u32) -> Result<()> {
    let crc = crc32c::crc32c(&page[4..16]);
    let crc = crc32c::crc32c_append(crc, &page[24..26]);
    let found = crc32c::crc32c_append(crc, &page[34..page.len() - 8]);
    if found == expected {
        return Ok(());
    }
    Err(Error::corrupt_bytes(format!(
        "the log says checksum {expected:08x}, the page has {found:08x}"
    )))
}

#[cold]
fn at(error: Error, id: PageId, start: Lsn) -> Error {
    match error {
        Error::Corrupt(mut corruption) => {
            corruption.page = Some(id);
            corruption.why = format!("{} (redo log record at LSN {start})", corruption.why).into();
            Error::Corrupt(corruption)
        }
        other => other,
    }
}

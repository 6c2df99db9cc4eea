//! Undo pages and undo log headers (format-tablespace.md 17.2 and 17.3).
//!
//! | off | size | field                                                                  |
//! |-----|------|------------------------------------------------------------------------|
//! |  38 |    2 | 0; 1 or 2 before 10.3                                                  |
//! |  40 |    2 | START: first record of the latest log on this page                     |
//! |  42 |    2 | FREE: first free byte                                                  |
//! |  44 |   12 | list node in the segment's page list                                   |
//! |  56 |    2 | first page only: STATE                                                 |
//! |  58 |    2 | first page only: LAST_LOG, offset of the latest undo log header        |
//! |  60 |   10 | first page only: segment header                                        |
//! |  70 |   16 | first page only: page list (nodes at 44)                               |
//! |  86 |      | first page: first log header; other pages: records from 56             |
//!
//! Accessors take the whole page and panic on a shorter one; offsets read from it are unchecked
//! unless said otherwise.

use std::mem::{offset_of, size_of};

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::words::{Error, Result, TrxId, TrxNo, be};

use super::fil;
use super::list::ListNode;

/// Offset of the old type field.
pub const OFF_TYPE: usize = 38;
/// Offset of START.
pub const OFF_START: usize = 40;
/// Offset of FREE.
pub const OFF_FREE: usize = 42;
/// Offset of the page's node in the segment's page list.
pub const OFF_NODE: usize = 44;
/// Where records start on pages that are not the first.
pub const RECORDS: usize = 56;
/// First page: offset of STATE.
pub const OFF_STATE: usize = 56;
/// First page: offset of LAST_LOG.
pub const OFF_LAST_LOG: usize = 58;
/// First page: offset of the segment header.
pub const OFF_SEGMENT: usize = 60;
/// First page: offset of the base node of the page list.
pub const OFF_PAGE_LIST: usize = 70;
/// First page: where the first log header stands.
pub const FIRST_LOG: usize = 86;

/// State of an undo segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The transaction runs, or did when the server stopped: to be rolled back.
    Active = 1,
    /// Committed or rolled back; the one page is kept for reuse.
    Cached = 2,
    /// Committed; freed when purge has passed.
    ToPurge = 4,
    /// Prepared: waits for XA COMMIT or XA ROLLBACK.
    Prepared = 5,
}

/// State of the undo segment with first page `page`.
pub fn state(page: &[u8]) -> Result<State> {
    Ok(match be::u16_at(page, OFF_STATE) {
        1 => State::Active,
        2 => State::Cached,
        // 3 (to free) was the state of insert undo segments before 10.3.
        4 => State::ToPurge,
        5 => State::Prepared,
        other => return Err(Error::corrupt_bytes(format!("undo segment state {other}"))),
    })
}

/// First free byte of the page, checked to lie between the records' start and the trailer.
pub fn free(page: &[u8]) -> Result<usize> {
    let free = be::u16_at(page, OFF_FREE) as usize;
    if !(RECORDS..=page.len() - fil::TRAILER_BYTES).contains(&free) {
        return Err(Error::corrupt_bytes(format!(
            "undo page: first free byte at {free}"
        )));
    }
    Ok(free)
}

/// First record of the latest log on this page.
pub fn start(page: &[u8]) -> usize {
    be::u16_at(page, OFF_START) as usize
}

/// Offset of the latest undo log header of a segment's first page, checked.
pub fn last_log(page: &[u8]) -> Result<usize> {
    let at = be::u16_at(page, OFF_LAST_LOG) as usize;
    check_log(page, at)?;
    Ok(at)
}

/// Makes the body of `page` what UNDO_INIT makes of it: an empty undo page. Bytes 56 to 86, the
/// segment header of a first page, stay.
pub fn init(page: &mut [u8]) {
    let end = page.len() - fil::TRAILER_BYTES;
    be::put_u16(page, fil::OFF_TYPE, fil::PageType::UNDO_LOG.0);
    be::put_u16(page, OFF_TYPE, 0);
    be::put_u16(page, OFF_START, RECORDS as u16);
    be::put_u16(page, OFF_FREE, RECORDS as u16);
    page[OFF_NODE..OFF_STATE].copy_from_slice(&ListNode::ALONE.to_bytes());
    page[FIRST_LOG..end].fill(0);
}

/// The bytes that a record of `len` bytes (without its link fields) takes on a page.
pub fn record_bytes(len: usize) -> usize {
    len + 4
}

/// True if a record of `len` bytes (without its link fields) fits on the page behind `free`.
pub fn fits(page_size: usize, free: usize, len: usize) -> bool {
    free + len + 6 < page_size - fil::TRAILER_BYTES
}

/// XID of a prepared transaction.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq, Debug,
)]
#[repr(C)]
pub struct Xid {
    format_id: U32,
    gtrid_len: U32,
    bqual_len: U32,
    data: [u8; 128],
}

impl Xid {
    /// No XID.
    pub const NONE: Xid = Xid {
        format_id: U32::new(0),
        gtrid_len: U32::new(0),
        bqual_len: U32::new(0),
        data: [0; 128],
    };

    /// Builds an XID. Errors: `Invalid` if a part is longer than 64 bytes.
    pub fn new(format_id: u32, gtrid: &[u8], bqual: &[u8]) -> Result<Xid> {
        if gtrid.len() > 64 || bqual.len() > 64 {
            return Err(Error::invalid("an XID part is longer than 64 bytes"));
        }
        let mut data = [0; 128];
        data[..gtrid.len()].copy_from_slice(gtrid);
        data[gtrid.len()..gtrid.len() + bqual.len()].copy_from_slice(bqual);
        Ok(Xid {
            format_id: U32::new(format_id),
            gtrid_len: U32::new(gtrid.len() as u32),
            bqual_len: U32::new(bqual.len() as u32),
            data,
        })
    }

    /// The XID's format; -1 as `u32::MAX` means "none" to the server.
    pub fn format_id(&self) -> u32 {
        self.format_id.get()
    }

    /// Global part.
    pub fn gtrid(&self) -> &[u8] {
        &self.data[..(self.gtrid_len.get() as usize).min(64)]
    }

    /// Branch qualifier.
    pub fn bqual(&self) -> &[u8] {
        let start = self.gtrid().len();
        &self.data[start..start + (self.bqual_len.get() as usize).min(64)]
    }

    fn is_valid(&self) -> bool {
        self.gtrid_len.get() <= 64 && self.bqual_len.get() <= 64
    }
}

/// Bytes of a log header with the room for an XID, always reserved.
pub const LOG_HEADER_BYTES: usize = 186;

/// Offset of TRX_ID in a log header.
pub const LOG_TRX_ID: usize = 0;
/// Offset of TRX_NO in a log header.
pub const LOG_TRX_NO: usize = 8;
/// Offset of NEEDS_PURGE in a log header.
pub const LOG_NEEDS_PURGE: usize = 16;
/// Offset of LOG_START in a log header.
pub const LOG_START: usize = 18;
/// Offset of XID_EXISTS in a log header.
pub const LOG_XID_EXISTS: usize = 20;
/// Offset of DICT_TRANS in a log header.
pub const LOG_DICT_TRANS: usize = 21;
/// Offset of NEXT_LOG in a log header.
pub const LOG_NEXT: usize = 30;
/// Offset of PREV_LOG in a log header.
pub const LOG_PREV: usize = 32;
/// Offset of the history node in a log header.
pub const LOG_HISTORY: usize = 34;
/// Offset of the XID in a log header.
pub const LOG_XID: usize = 46;

/// Undo log header, on the first page of an undo segment; several if the page was reused.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq, Debug,
)]
#[repr(C)]
pub struct LogHeader {
    /// The transaction.
    pub trx_id: U64,
    /// Its commit number, 0 while not committed.
    pub trx_no: U64,
    /// 1 if purge has something to do.
    pub needs_purge: U16,
    /// First record; later after purge of the beginning.
    pub log_start: U16,
    /// 1 if `xid` is set.
    pub xid_exists: u8,
    /// 1 for a transaction that changes the dictionary.
    pub dict_trans: u8,
    /// Zero; a table id of old versions.
    pub table_id: U64,
    /// Next log header on the page, 0 if none.
    pub next_log: U16,
    /// Previous log header on the page, 0 if none.
    pub prev_log: U16,
    /// Node in the rollback segment's history list.
    pub history: ListNode,
    /// XID, see `xid_exists`.
    pub xid: Xid,
}

const _: () = {
    assert!(size_of::<LogHeader>() == LOG_HEADER_BYTES);
    assert!(offset_of!(LogHeader, log_start) == LOG_START);
    assert!(offset_of!(LogHeader, xid_exists) == LOG_XID_EXISTS);
    assert!(offset_of!(LogHeader, next_log) == LOG_NEXT);
    assert!(offset_of!(LogHeader, history) == LOG_HISTORY);
    assert!(offset_of!(LogHeader, xid) == LOG_XID);
};

impl LogHeader {
    /// The header of a transaction that begins. Written at the page's FREE; records follow.
    pub fn new(trx_id: TrxId, at: usize, prev_log: u16) -> LogHeader {
        LogHeader {
            trx_id: U64::new(trx_id.0),
            trx_no: U64::new(0),
            needs_purge: U16::new(1),
            log_start: U16::new((at + LOG_HEADER_BYTES) as u16),
            xid_exists: 0,
            dict_trans: 0,
            table_id: U64::new(0),
            next_log: U16::new(0),
            prev_log: U16::new(prev_log),
            history: ListNode {
                prev: super::list::FilAddr::new(crate::words::PageNo(0), 0),
                next: super::list::FilAddr::new(crate::words::PageNo(0), 0),
            },
            xid: Xid::NONE,
        }
    }

    /// Reads the header at `at` of a segment's first page and checks that its offsets lie in the
    /// page, in order.
    pub fn parse(page: &[u8], at: usize) -> Result<LogHeader> {
        check_log(page, at)?;
        let header: LogHeader = super::list::read(page, at)?;
        let start = header.log_start.get() as usize;
        let end = header.end(page)?;
        let prev = header.prev_log.get() as usize;
        if start < at + LOG_HEADER_BYTES || start > end || prev >= at || !header.xid.is_valid() {
            return Err(Error::corrupt_bytes(format!("undo log header at {at}")));
        }
        if prev != 0 {
            check_log(page, prev)?;
        }
        Ok(header)
    }

    /// Where the log ends on its first page: the next log, or the page's free part.
    pub fn end(&self, page: &[u8]) -> Result<usize> {
        let free = free(page)?;
        match self.next_log.get() as usize {
            0 => Ok(free),
            next if next <= free => Ok(next),
            next => Err(Error::corrupt_bytes(format!("undo log ends at {next}"))),
        }
    }

    /// The XID, if there is one.
    pub fn xid(&self) -> Option<&Xid> {
        (self.xid_exists != 0).then_some(&self.xid)
    }

    /// The transaction.
    pub fn trx_id(&self) -> TrxId {
        TrxId(self.trx_id.get())
    }

    /// Its commit number; `None` while not committed.
    pub fn trx_no(&self) -> Option<TrxNo> {
        (self.trx_no.get() != 0).then(|| TrxNo(self.trx_no.get()))
    }
}

fn check_log(page: &[u8], at: usize) -> Result<()> {
    if at < FIRST_LOG || at + LOG_HEADER_BYTES > page.len() - fil::TRAILER_BYTES {
        return Err(Error::corrupt_bytes(format!("undo log header at {at}")));
    }
    Ok(())
}

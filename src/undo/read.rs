//! Reading undo records: one by its roll pointer, a log from its end (rollback) or from its beginning
//! (purge, resurrection).

use crate::format::blob::REF_BYTES;
use crate::format::list::{FilAddr, ListNode};
use crate::format::undo_page::{self, LogHeader, RECORDS, State};
use crate::format::undo_record::{UndoField, UndoRecord, UndoValue, body_at, previous};
use crate::mtr::{Mode, Mtr, PageRef};
use crate::sync::Arc;
use crate::words::{Error, PageNo, Result, RollPtr, RsegId, TrxId};

use super::latch;
use super::rseg::{Rseg, Rsegs};
use super::segment::UndoLog;

/// Where an undo record stands in its rollback segment's tablespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The page.
    pub page: PageNo,
    /// Offset of the record's link field.
    pub offset: u16,
}

impl Position {
    /// The roll pointer that a row carries whose undo record stands here; `body` is the record.
    ///
    /// Errors: `Corrupt` if `body` is no undo record.
    pub fn roll_ptr(self, rseg: RsegId, body: &[u8]) -> Result<RollPtr> {
        let is_insert = !UndoRecord::parse(body)?.kind.has_old_version();
        Ok(RollPtr::new(is_insert, rseg, self.page, self.offset))
    }
}

/// Copies the body of the undo record at `roll_ptr` into `body` (what was there goes); parse it with
/// `UndoRecord::parse`.
///
/// The record is there as long as the version that `roll_ptr` belongs to is the row's newest one and
/// its leaf is latched, or an open view needs it. May be called with that leaf latched: the undo page
/// is read under it if need be. Only unfinished damage control: whoever follows a stale pointer may
/// get another record; compare table id and key.
///
/// Errors: `Corrupt` if there is no such record; what reading gives.
pub fn record(
    mtr: &mut Mtr<'_>,
    rsegs: &Rsegs,
    roll_ptr: RollPtr,
    body: &mut Vec<u8>,
) -> Result<()> {
    let rseg = rsegs.get(roll_ptr.rseg()).ok_or_else(|| {
        Error::corrupt_bytes(format!(
            "a roll pointer names rollback segment {}, which does not exist",
            roll_ptr.rseg()
        ))
    })?;
    let page = latch::undo_page_reading(mtr, rseg.page(roll_ptr.page()), Mode::S)?;
    let view = mtr.view(page);
    let found = undo_page::free(view)
        .and_then(|free| body_at(view, roll_ptr.offset() as usize, free))
        .map(|(found, _)| {
            body.clear();
            body.extend_from_slice(found);
        });
    let found = latch::at(mtr, page, found);
    mtr.release(page);
    found
}

/// Latches the page of the undo record at `roll_ptr` X and finds the reference of the off-page value
/// of its change number `number`: page and offset. For purge, which frees what it names.
///
/// Errors: `Corrupt` if there is no such record or value; what reading gives.
pub fn field_reference(
    mtr: &mut Mtr<'_>,
    rsegs: &Rsegs,
    roll_ptr: RollPtr,
    n_uniq: usize,
    number: usize,
) -> Result<(PageRef, usize)> {
    let rseg = rsegs
        .get(roll_ptr.rseg())
        .ok_or_else(|| Error::corrupt_bytes(format!("no rollback segment {}", roll_ptr.rseg())))?;
    let page = latch::undo_page_reading(mtr, rseg.page(roll_ptr.page()), Mode::X)?;
    let view = mtr.view(page);
    let found = (|| {
        let free = undo_page::free(view)?;
        let (body, _) = body_at(view, roll_ptr.offset() as usize, free)?;
        let update = UndoRecord::parse(body)?.update(n_uniq)?;
        let mut changes = update.changes;
        match changes.nth(number).transpose()? {
            Some(UndoField::Stored {
                value: UndoValue::Extern(part),
                ..
            }) => {
                let local = part.local();
                let start = local.as_ptr().addr() - view.as_ptr().addr();
                Ok(start + local.len() - REF_BYTES)
            }
            _ => Err(Error::corrupt_bytes(
                "an undo record lost its off-page value",
            )),
        }
    })();
    Ok((page, latch::at(mtr, page, found)?))
}

/// Copies the last record of a log into `body`; `None` if the log is empty.
///
/// Errors: damage in the log; what reading gives.
pub fn last(mtr: &mut Mtr<'_>, log: &UndoLog, body: &mut Vec<u8>) -> Result<Option<Position>> {
    walk_back(mtr, log, log.last, log.free as usize, body)
}

/// Copies the record before the one at `position` into `body`; `None` if that was the first.
///
/// Errors: as `last`.
pub fn before(
    mtr: &mut Mtr<'_>,
    log: &UndoLog,
    position: Position,
    body: &mut Vec<u8>,
) -> Result<Option<Position>> {
    walk_back(mtr, log, position.page, position.offset as usize, body)
}

/// The record that ends at `end` of `page`, or the last one of the pages before.
fn walk_back(
    mtr: &mut Mtr<'_>,
    log: &UndoLog,
    mut page: PageNo,
    end: usize,
    body: &mut Vec<u8>,
) -> Result<Option<Position>> {
    let mut end = Some(end);
    for _ in 0..=log.pages {
        let held = latch::undo_page(mtr, log.rseg.page(page), Mode::S)?;
        let view = mtr.view(held);
        let found = (|| {
            let free = undo_page::free(view)?;
            let start = start_on(view, log, page)?;
            let end = end.unwrap_or(free);
            match previous(view, start, end)? {
                Some(at) => body_at(view, at, free).map(|(found, _)| {
                    body.clear();
                    body.extend_from_slice(found);
                    Some(at)
                }),
                None => Ok(None),
            }
        })();
        let found = latch::at(mtr, held, found)?;
        let before = latch::node(mtr, held)?.prev.page();
        mtr.release(held);
        match found {
            Some(at) => {
                return Ok(Some(Position {
                    page,
                    offset: at as u16,
                }));
            }
            None if page == log.first => return Ok(None),
            None => (page, end) = (before, None),
        }
    }
    Err(Error::corrupt(
        log.rseg.page(log.first),
        "the page list of an undo segment has no end",
    ))
}

/// Where the log's records start on one of its pages.
fn start_on(view: &[u8], log: &UndoLog, page: PageNo) -> Result<usize> {
    match page == log.first {
        true => Ok(LogHeader::parse(view, log.header as usize)?.log_start.get() as usize),
        false => Ok(RECORDS),
    }
}

/// Reads a log from its beginning, page by page, without holding a latch between two calls.
#[derive(Debug)]
pub struct LogReader {
    rseg: Arc<Rseg>,
    first: PageNo,
    header: u16,
    /// The records of the page that is being read, where they stand there; the rest is of no meaning.
    image: Vec<u8>,
    page: PageNo,
    at: usize,
    end: usize,
    /// The page after it.
    next: Option<PageNo>,
    pages_read: u32,
}

/// What a log's header says to purge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogHead {
    /// The transaction.
    pub trx_id: TrxId,
    /// Its records are to be dealt with; false when they are being freed already.
    pub needs_purge: bool,
    /// Another log follows on its page, or may do so yet: the page outlives this log.
    pub keeps_page: bool,
    /// The next entry of the history list, if there was one.
    pub newer: Option<FilAddr>,
}

impl LogReader {
    /// A reader of the log whose header stands at `header` of `first`.
    pub fn new(rseg: &Arc<Rseg>, first: PageNo, header: u16) -> LogReader {
        LogReader {
            rseg: rseg.clone(),
            first,
            header,
            image: Vec::new(),
            page: first,
            at: 0,
            end: 0,
            next: None,
            pages_read: 0,
        }
    }

    /// The same for another log, with this one's memory.
    pub fn begin_anew(self, rseg: &Arc<Rseg>, first: PageNo, header: u16) -> LogReader {
        LogReader {
            image: self.image,
            ..LogReader::new(rseg, first, header)
        }
    }

    /// The rollback segment.
    pub fn rseg(&self) -> &Arc<Rseg> {
        &self.rseg
    }

    /// First page and header offset of the log.
    pub fn log(&self) -> (PageNo, u16) {
        (self.first, self.header)
    }

    /// Reads the header, and the records beside it.
    ///
    /// Errors: damage in it; what reading gives.
    pub fn head(&mut self, mtr: &mut Mtr<'_>) -> Result<LogHead> {
        let page = latch::undo_page(mtr, self.rseg.page(self.first), Mode::S)?;
        let view = mtr.view(page);
        let parsed = LogHeader::parse(view, self.header as usize).and_then(|header| {
            let followed = header.next_log.get() != 0;
            Ok(LogHead {
                trx_id: header.trx_id(),
                needs_purge: header.needs_purge.get() != 0,
                // A segment that is TO_PURGE never changes again.
                keeps_page: followed || undo_page::state(view)? != State::ToPurge,
                newer: header.history.prev.some(),
            })
        });
        let head = latch::at(mtr, page, parsed)?;
        if head.needs_purge {
            self.take_page(mtr, page)?;
        }
        mtr.release(page);
        Ok(head)
    }

    /// The page that the last record came from.
    pub fn page(&self) -> PageNo {
        self.page
    }

    /// Pages read so far.
    pub fn pages_read(&self) -> u32 {
        self.pages_read
    }

    /// The next record and where it stands; `None` at the end.
    ///
    /// Errors: damage in the log; what reading gives.
    pub fn next(&mut self, mtr: &mut Mtr<'_>) -> Result<Option<(Position, &[u8])>> {
        while self.at >= self.end {
            let page = match self.pages_read {
                0 => Some(self.first),
                _ => self.next,
            };
            match page {
                Some(page) => self.load(mtr, page)?,
                None => return Ok(None),
            }
        }
        let id = self.rseg.page(self.page);
        let (body, next) =
            body_at(&self.image, self.at, self.end).map_err(|error| error.at_page(id))?;
        let position = Position {
            page: self.page,
            offset: self.at as u16,
        };
        self.at = next;
        Ok(Some((position, body)))
    }

    fn load(&mut self, mtr: &mut Mtr<'_>, page: PageNo) -> Result<()> {
        let space = mtr.ctx().spaces.find(self.rseg.space())?;
        if self.pages_read > space.size_pages() {
            return Err(Error::corrupt(
                self.rseg.page(self.first),
                "the page list of an undo segment has no end",
            ));
        }
        let held = latch::undo_page(mtr, self.rseg.page(page), Mode::S)?;
        self.take_page(mtr, held)?;
        mtr.release(held);
        Ok(())
    }

    /// Copies what belongs to the log on a page.
    fn take_page(&mut self, mtr: &Mtr<'_>, held: PageRef) -> Result<()> {
        let (view, page) = (mtr.view(held), mtr.page_id(held).page);
        let found = (|| {
            let (start, end, whole) = match page == self.first {
                true => {
                    let header = LogHeader::parse(view, self.header as usize)?;
                    // A log that another follows on its page has no other page.
                    let whole = header.next_log.get() == 0;
                    (header.log_start.get() as usize, header.end(view)?, whole)
                }
                false => (RECORDS, undo_page::free(view)?, true),
            };
            let next = match whole {
                true => ListNode::parse(view, undo_page::OFF_NODE)?.next.some(),
                false => None,
            };
            Ok((start, end, next))
        })();
        let (start, end, next) = latch::at(mtr, held, found)?;
        self.image.resize(view.len(), 0);
        if let Some(records) = view.get(start..end) {
            self.image[start..end].copy_from_slice(records);
        }
        (self.at, self.end) = (start, end);
        self.next = next.map(|next| next.page());
        self.page = page;
        self.pages_read += 1;
        Ok(())
    }
}

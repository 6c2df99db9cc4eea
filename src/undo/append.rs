//! Appending undo records: a mini-transaction inside the one that changes the row, before it in the
//! log (M3).
//!
//! The caller knows about how long the record will be before it latches a leaf; if that may not fit
//! on the last page, room in the tablespace and a frame are promised first. When the guess was too
//! low, `append` gives `WouldBlock` with nothing changed; the caller lets go, reserves again – now a
//! page is promised whatever the guess – and repeats.

use crate::extent::{self, Direction};
use crate::format::inode::SegmentHeader;
use crate::format::list::{FilAddr, ListBase, ListNode};
use crate::format::redo_record::PageOp;
use crate::format::undo_page::{self, OFF_FREE, OFF_NODE, OFF_PAGE_LIST, OFF_SEGMENT, RECORDS};
use crate::format::undo_record::UndoRecord;
use crate::mtr::{Mode, Mtr, PageCtx, PageRef};
use crate::sync::Rank;
use crate::words::{Error, Result, RollPtr, UndoNo, be};

use super::segment::{NODE_NEXT, UndoLog, class_of, init_page};
use super::{apply, latch};

/// What an append may need of the budget of the mini-transaction around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Bytes of redo.
    pub log_bytes: usize,
    /// Frames.
    pub frames: u32,
}

/// Log bytes beside the record's own.
const RECORD_LOG_BYTES: usize = 32;
/// Log bytes of a log's header.
const HEADER_LOG_BYTES: usize = 512;
/// Log bytes of taking a page: allocation, with a growing free limit, and the page list.
const PAGE_LOG_BYTES: usize = 4 << 10;
/// A page, an extent descriptor page, an INODE page, and an undo page that was evicted.
const PAGE_FRAMES: u32 = 4;

/// Makes sure that a record of up to `len_max` bytes can be appended, and tells what the budget of the
/// mini-transaction must have for it. Call it with no latch held, before that mini-transaction.
/// `len_max` may be a guess; at most a page's worth counts.
///
/// Errors: `NoSpace`; what reading gives.
pub fn reserve(ctx: &PageCtx, log: &mut UndoLog, len_max: usize) -> Result<Needs> {
    let page_size = ctx.page_size();
    let mut log_bytes = len_max.min(page_size) + RECORD_LOG_BYTES;
    if log.late {
        match log.short || !undo_page::fits(page_size, log.free as usize, len_max) {
            true => log.begin_now(ctx)?,
            false => log_bytes += HEADER_LOG_BYTES,
        }
    }
    if !log.short && undo_page::fits(page_size, log.free as usize, len_max) {
        // The last page of a running transaction is nearly always in the pool: a promised frame would
        // cost every row a global latch.
        return Ok(Needs {
            log_bytes,
            frames: 0,
        });
    }
    if log.room.is_none() {
        let class = class_of(log.is_dict);
        log.room = Some(extent::reserve(ctx, log.rseg.space(), 1, 1, class)?);
    }
    let log_bytes = if log.short { page_size } else { log_bytes };
    Ok(Needs {
        log_bytes: log_bytes + PAGE_LOG_BYTES,
        frames: PAGE_FRAMES,
    })
}

/// Appends the record that `build` writes into an empty buffer, given its number (with
/// `format::undo_build::UndoBuilder`). `outer` is the mini-transaction of the row's change; the undo
/// is committed when this returns. Returns where it stands, for DB_ROLL_PTR.
///
/// Errors: `UndoRecordTooLarge` if the record does not fit in a page; `WouldBlock` if it needs a page
/// that `reserve` did not promise, or more log than `outer` has: reserve again; what reading gives.
/// Nothing is changed then, and the number is not used.
pub fn append(
    outer: &mut Mtr<'_>,
    log: &mut UndoLog,
    build: impl FnOnce(&mut Vec<u8>, UndoNo),
) -> Result<RollPtr> {
    let mut body = std::mem::take(&mut log.scratch);
    body.clear();
    build(&mut body, log.next_no);
    let done = append_body(outer, log, &body);
    log.scratch = body;
    done
}

fn append_body(outer: &mut Mtr<'_>, log: &mut UndoLog, body: &[u8]) -> Result<RollPtr> {
    let page_size = outer.ctx().page_size();
    let is_insert = !UndoRecord::parse(body)?.kind.has_old_version();
    let mut needed = body.len() + RECORD_LOG_BYTES;
    let fits = undo_page::fits(page_size, log.free as usize, body.len());
    if !fits {
        if !undo_page::fits(page_size, RECORDS, body.len()) {
            return Err(Error::UndoRecordTooLarge);
        }
        needed += PAGE_LOG_BYTES;
    }
    if log.late {
        needed += HEADER_LOG_BYTES;
    }
    let has_place = fits || (log.room.is_some() && !log.late);
    if !has_place || outer.log_bytes_left() < needed {
        log.short = true;
        return Err(Error::WouldBlock);
    }
    // Exactly what `reserve` asked for: the rest of the outer budget is the row's.
    let frames = if fits && !log.short { 0 } else { PAGE_FRAMES };
    let mut mtr = outer.nested(needed, frames)?;
    let page = if fits {
        last_page(&mut mtr, log)?
    } else {
        add_page(&mut mtr, log)?
    };
    if log.late {
        begin_on(&mut mtr, log, page)?;
    }
    let free = be::u16_at(mtr.view(page), OFF_FREE);
    let expected = if fits { log.free } else { RECORDS as u16 };
    if free != expected {
        return Err(Error::corrupt(
            mtr.page_id(page),
            format!("an undo log ends at {free}, it was left at {expected}"),
        ));
    }
    let op = PageOp::UndoAppend(body);
    let at = mtr.extended(page, &op, |bytes| apply::append(bytes, body))?;
    mtr.ctx().reached("undo.append");
    let number = mtr.page_id(page).page;
    mtr.commit();
    if !fits {
        log.last = number;
        log.pages += 1;
        log.room = None;
    }
    log.short = false;
    log.free = at + undo_page::record_bytes(body.len()) as u16;
    log.next_no = UndoNo(log.next_no.0 + 1);
    Ok(RollPtr::new(is_insert, log.rseg.id(), number, at))
}

/// Writes the header of a late log. A page that is damaged is left out of use next time.
fn begin_on(mtr: &mut Mtr<'_>, log: &mut UndoLog, page: PageRef) -> Result<()> {
    if log.begin_on(mtr, page).is_err() {
        log.short = true;
        return Err(Error::WouldBlock);
    }
    mtr.ctx().reached("undo.reuse");
    Ok(())
}

/// The last page. If it was evicted and there is no frame to read it, one is promised next time.
fn last_page(mtr: &mut Mtr<'_>, log: &mut UndoLog) -> Result<PageRef> {
    let page = latch::undo_page_reading(mtr, log.rseg.page(log.last), Mode::X);
    match page {
        Err(Error::BufferPoolFull) if !log.short => {
            log.short = true;
            Err(Error::WouldBlock)
        }
        other => other,
    }
}

/// Adds an empty page at the end of the log's segment; its first record follows in the same
/// mini-transaction (invariant 2).
fn add_page(mtr: &mut Mtr<'_>, log: &UndoLog) -> Result<PageRef> {
    let first = latch::undo_page_reading(mtr, log.rseg.page(log.first), Mode::X)?;
    let list = latch::page_list(mtr, first)?;
    let last = latch::undo_page_reading(mtr, log.rseg.page(log.last), Mode::X)?;
    if list.last.page() != log.last || list.count() != log.pages {
        return Err(Error::corrupt(
            mtr.page_id(first),
            format!("the page list of an undo segment is {list:?}"),
        ));
    }
    let geometry = mtr.ctx().spaces.find(log.rseg.space())?.geometry();
    let parsed = SegmentHeader::parse(mtr.view(first), OFF_SEGMENT, geometry);
    let segment = latch::at(mtr, first, parsed)?;
    let page = extent::allocate_and_create(mtr, segment, log.last, Direction::Up, Rank::UndoPage)?;
    init_page(mtr, page)?;
    let node = FilAddr::new(mtr.page_id(page).page, OFF_NODE as u16);
    mtr.write(
        page,
        OFF_NODE,
        &ListNode {
            prev: list.last,
            next: FilAddr::NONE,
        }
        .to_bytes(),
    );
    mtr.ctx().reached("undo.page");
    mtr.write(last, NODE_NEXT, &node.to_bytes());
    let grown = ListBase::new(list.count() + 1, list.first, node);
    mtr.write(first, OFF_PAGE_LIST, &grown.to_bytes());
    Ok(page)
}

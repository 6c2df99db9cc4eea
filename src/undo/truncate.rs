//! Cutting the end of a log off: what was rolled back.

use crate::extent;
use crate::format::inode::SegmentHeader;
use crate::format::list::{FilAddr, ListBase};
use crate::format::undo_page::{
    self, LogHeader, OFF_FREE, OFF_NODE, OFF_PAGE_LIST, OFF_SEGMENT, RECORDS,
};
use crate::format::undo_record::{UndoRecord, body_at, previous};
use crate::mtr::{Budget, Mode, Mtr, PageCtx, PageRef, retry};
use crate::words::{Error, PageNo, Result, UndoNo};

use super::latch;
use super::segment::{NODE_NEXT, UndoLog};

/// Log bytes of a step: a page freed, or FREE set.
const STEP_LOG_BYTES: usize = 4 << 10;

/// What a step did to the last page.
enum Step {
    /// It ends at this offset now.
    Shortened(u16),
    /// It was freed; the page before it, with its end, is the last one now.
    Freed(PageNo, u16),
}

/// Removes the records with numbers from `keep_below` on, and frees the pages that get empty; the next
/// record gets the number `keep_below`. The rows must be undone before: what is cut is forgotten.
/// Page by page; after a crash between two steps the rest is found again, and undone for a second
/// time, which finds nothing to do.
///
/// Errors: damage in the log; what reading gives. The log is then cut in part, and may be cut again.
pub fn cut(ctx: &PageCtx, log: &mut UndoLog, keep_below: UndoNo) -> Result<()> {
    while log.next_no > keep_below {
        let budget = Budget::system(STEP_LOG_BYTES).with_frames(4);
        let (step, _) = retry(ctx, Some(budget), |mtr| step(mtr, log, keep_below))?;
        match step {
            Step::Shortened(free) => {
                log.free = free;
                log.next_no = keep_below;
            }
            Step::Freed(last, free) => {
                log.last = last;
                log.free = free;
                log.pages -= 1;
            }
        }
    }
    log.room = None;
    Ok(())
}

fn step(mtr: &mut Mtr<'_>, log: &UndoLog, keep_below: UndoNo) -> Result<Step> {
    let first = latch::undo_page(mtr, log.rseg.page(log.first), Mode::X)?;
    let last = match log.last == log.first {
        true => first,
        false => latch::undo_page(mtr, log.rseg.page(log.last), Mode::X)?,
    };
    let found = find_cut(mtr.view(last), log, keep_below);
    let (start, at) = latch::at(mtr, last, found)?;
    if last != first && at == start {
        return free_last(mtr, log, first, last);
    }
    mtr.write_u16(last, OFF_FREE, at as u16);
    Ok(Step::Shortened(at as u16))
}

/// Where the log's records on its last page start, and where those to keep end.
fn find_cut(view: &[u8], log: &UndoLog, keep_below: UndoNo) -> Result<(usize, usize)> {
    let start = match log.last == log.first {
        true => LogHeader::parse(view, log.header as usize)?.log_start.get() as usize,
        false => RECORDS,
    };
    let mut end = undo_page::free(view)?;
    while let Some(at) = previous(view, start, end)? {
        let (body, _) = body_at(view, at, end)?;
        if UndoRecord::parse(body)?.undo_no < keep_below {
            break;
        }
        end = at;
    }
    Ok((start, end))
}

fn free_last(mtr: &mut Mtr<'_>, log: &UndoLog, first: PageRef, last: PageRef) -> Result<Step> {
    let list = latch::page_list(mtr, first)?;
    let node = latch::node(mtr, last)?;
    let Some(previous) = node.prev.some() else {
        return Err(Error::corrupt(
            mtr.page_id(last),
            "the last page of an undo log has none before it",
        ));
    };
    if list.last.page() != log.last || list.count() < 2 || previous.offset() != OFF_NODE {
        return Err(Error::corrupt(
            mtr.page_id(first),
            format!("the page list of an undo segment is {list:?}"),
        ));
    }
    let before = match previous.page() == log.first {
        true => first,
        false => latch::undo_page(mtr, log.rseg.page(previous.page()), Mode::X)?,
    };
    if latch::node(mtr, before)?.next.page() != log.last {
        return Err(Error::corrupt(
            mtr.page_id(before),
            "an undo page and the one after it do not point at each other",
        ));
    }
    let free = latch::at(mtr, before, undo_page::free(mtr.view(before)))?;
    let geometry = mtr.ctx().spaces.find(log.rseg.space())?.geometry();
    let parsed = SegmentHeader::parse(mtr.view(first), OFF_SEGMENT, geometry);
    let segment = latch::at(mtr, first, parsed)?;
    extent::free_page(mtr, segment, log.last)?;
    mtr.write(before, NODE_NEXT, &FilAddr::NONE.to_bytes());
    let shrunk = ListBase::new(list.count() - 1, list.first, previous);
    mtr.write(first, OFF_PAGE_LIST, &shrunk.to_bytes());
    Ok(Step::Freed(previous.page(), free as u16))
}

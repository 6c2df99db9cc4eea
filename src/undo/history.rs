//! History lists: a log enters at its commit, newest first, and purge takes the oldest out.
//!
//! ```text
//!            begin                commit, one page, < 3/4 full
//!   (none) ────────▶ ACTIVE ────────────────────────────────▶ CACHED ──begin──▶ ACTIVE
//!                    │  ▲ │ commit                              ▲
//!     prepare::set   ▼  │ └───────────▶ TO_PURGE ──remove──▶ (freed)
//!                 PREPARED ──commit──▶ …         rolled back ───┘
//! ```

use crate::extent;
use crate::format::inode::SegmentHeader;
use crate::format::list;
use crate::format::list::{FilAddr, ListBase, ListNode};
use crate::format::rseg as layout;
use crate::format::undo_page::{
    self, LOG_HEADER_BYTES, LOG_HISTORY, LOG_NEEDS_PURGE, LOG_NEXT, LOG_START, LOG_TRX_NO,
    LOG_XID_EXISTS, LogHeader, OFF_FREE, OFF_LAST_LOG, OFF_NODE, OFF_PAGE_LIST, OFF_SEGMENT,
    OFF_START, OFF_STATE, State,
};
use crate::mtr::{Budget, Mode, Mtr, PageCtx, PageRef};
use crate::words::{Error, Lsn, PageNo, Result, TrxNo, be};

use super::latch;
use super::resurrect::parse_entry;
use super::rseg::{Cached, Oldest, Rseg, RsegState};
use super::segment::{NODE_NEXT, NODE_PREV, UndoLog};

/// What the mini-transaction of `commit` and of `finish_rolled_back` needs.
pub const COMMIT_LOG_BYTES: usize = 1 << 10;
/// Log bytes of a step of freeing a segment: an extent's pages.
const FREE_LOG_BYTES: usize = 8 << 10;
/// A cached page is reused up to this part of it.
const REUSE_NUMERATOR: usize = 3;
const REUSE_DENOMINATOR: usize = 4;

/// The node of a log header in a history list.
fn history_node(first: PageNo, header: u16) -> FilAddr {
    FilAddr::new(first, header + LOG_HISTORY as u16)
}

/// Commits a log into its rollback segment's history. `draw` draws the commit number; it is called
/// once, when nothing can fail any more. A log of one page that is not very full is CACHED, others
/// are left TO_PURGE. `binlog` = file and position of the transaction in the host's binary log.
///
/// Errors: damage; what reading gives. Nothing is changed then, and no number drawn.
pub fn commit(
    mtr: &mut Mtr<'_>,
    log: &UndoLog,
    binlog: Option<(&str, u64)>,
    mut draw: impl FnMut() -> TrxNo,
) -> Result<TrxNo> {
    let rseg = &log.rseg;
    rseg.latched(mtr, |mtr, state, header| {
        let first = latch::undo_page(mtr, rseg.page(log.first), Mode::X)?;
        let pages = latch::page_list(mtr, first)?.count();
        let free = latch::at(mtr, first, undo_page::free(mtr.view(first)))?;
        let list = latch::at(mtr, header, layout::history(mtr.view(header)))?;
        let newest = newest_of(mtr, rseg, &list)?;
        let no = draw();
        enter(mtr, header, &list, newest, first, log);
        mtr.write_u64(first, log.header as usize + LOG_TRX_NO, no.0);
        let cached =
            pages == 1 && free < mtr.view(first).len() * REUSE_NUMERATOR / REUSE_DENOMINATOR;
        if cached {
            mtr.write_u16(first, OFF_STATE, State::Cached as u16);
            state.cached.push(Cached {
                slot: log.slot,
                first: log.first,
            });
        } else {
            mtr.write_u16(first, OFF_STATE, State::ToPurge as u16);
            mtr.write_u32(
                header,
                layout::slot_offset(log.slot as usize),
                PageNo::NONE.0,
            );
            add_history_size(mtr, header, i64::from(pages));
            raise_max_trx_id(mtr, header, no.0);
        }
        if let Some((name, position)) = binlog {
            write_binlog(mtr, header, name, position);
        }
        let entry = Oldest {
            no,
            first: log.first,
            header: log.header,
        };
        let oldest = state.oldest.unwrap_or(entry);
        rseg.set_history(state, Some(oldest), u64::from(list.count()) + 1);
        Ok(no)
    })
}

/// The page with the newest entry, and that entry's node.
fn newest_of(
    mtr: &mut Mtr<'_>,
    rseg: &Rseg,
    list: &ListBase,
) -> Result<Option<(PageRef, FilAddr)>> {
    let Some(node) = list.first.some() else {
        return Ok(None);
    };
    let page = latch::undo_page(mtr, rseg.page(node.page()), Mode::X)?;
    let parsed = parse_entry(mtr.view(page), node)
        .and_then(|_| ListNode::parse(mtr.view(page), node.offset()));
    let found = latch::at(mtr, page, parsed)?;
    if found.prev.some().is_some() {
        return Err(Error::corrupt(
            mtr.page_id(page),
            "the first entry of a history list has one before it",
        ));
    }
    Ok(Some((page, node)))
}

/// Links the log in as the newest entry.
fn enter(
    mtr: &mut Mtr<'_>,
    header: PageRef,
    list: &ListBase,
    newest: Option<(PageRef, FilAddr)>,
    first: PageRef,
    log: &UndoLog,
) {
    let own = history_node(log.first, log.header);
    let node = ListNode {
        prev: FilAddr::NONE,
        next: list.first,
    };
    mtr.write(first, own.offset(), &node.to_bytes());
    if let Some((page, node)) = newest {
        mtr.write(page, node.offset() + list::NODE_PREV, &own.to_bytes());
    }
    let last = list.last.some().unwrap_or(own);
    let grown = ListBase::new(list.count() + 1, own, last);
    mtr.write(header, layout::OFF_HISTORY, &grown.to_bytes());
}

fn add_history_size(mtr: &mut Mtr<'_>, header: PageRef, change: i64) {
    let size = i64::from(layout::history_size(mtr.view(header))) + change;
    // A count for people: a wrong one on disk must not stop purge.
    mtr.write_u32(header, layout::OFF_HISTORY_SIZE, size.max(0) as u32);
}

fn raise_max_trx_id(mtr: &mut Mtr<'_>, header: PageRef, id: u64) {
    let view = mtr.view(header);
    let at = layout::off_max_trx_id(view.len());
    if be::u64_at(view, at) < id {
        mtr.write_u64(header, at, id);
    }
}

fn write_binlog(mtr: &mut Mtr<'_>, header: PageRef, name: &str, position: u64) {
    if name.is_empty() || name.len() >= layout::BINLOG_NAME_BYTES {
        return;
    }
    let at = layout::off_binlog_offset(mtr.view(header).len());
    mtr.write_u64(header, at, position);
    mtr.write(header, at + 8, name.as_bytes());
    mtr.write_u8(header, at + 8 + name.len(), 0);
}

/// Ends the log of a transaction that was rolled back wholly (cut to nothing), or wrote nothing: it
/// enters no history; its segment is kept for reuse. Returns the LSN that makes it durable, if anybody
/// cares.
///
/// Errors: damage; what reading gives; `Internal` if the log is not empty. Nothing is changed then.
pub fn finish_rolled_back(ctx: &PageCtx, log: &UndoLog) -> Result<Lsn> {
    if log.next_no.0 != 0 || log.pages != 1 {
        return Err(Error::internal("a log with records is thrown away"));
    }
    let rseg = &log.rseg;
    if log.late {
        rseg.latch().cached.push(log.cached());
        return Ok(Lsn(0));
    }
    let mut mtr = Mtr::start(ctx, Budget::system(COMMIT_LOG_BYTES))?;
    rseg.latched(&mut mtr, |mtr, state, header| {
        let first = latch::undo_page(mtr, rseg.page(log.first), Mode::X)?;
        let view = mtr.view(first);
        let at = log.header as usize;
        let parsed = LogHeader::parse(view, at).and_then(|own| {
            let previous = own.prev_log.get() as usize;
            let start = match previous {
                0 => 0,
                _ => LogHeader::parse(view, previous)?.log_start.get(),
            };
            Ok((previous, start))
        });
        let (previous, start) = latch::at(mtr, first, parsed)?;
        if previous == 0 {
            // Stays, with TRX_NO 0, as the reference leaves it; `segment` writes over it.
            mtr.write_u8(first, at + LOG_XID_EXISTS, 0);
        } else {
            mtr.memset(first, at, LOG_HEADER_BYTES, 0);
            mtr.write_u16(first, previous + LOG_NEXT, 0);
            mtr.write_u16(first, OFF_LAST_LOG, previous as u16);
            mtr.write_u16(first, OFF_START, start);
            mtr.write_u16(first, OFF_FREE, log.header);
        }
        mtr.write_u16(first, OFF_STATE, State::Cached as u16);
        raise_max_trx_id(mtr, header, log.trx_id.0);
        state.cached.push(Cached {
            slot: log.slot,
            first: log.first,
        });
        Ok(())
    })?;
    Ok(mtr.commit())
}

/// What `remove` did with the undo pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removed {
    /// The log stands on a page that is in use, or kept for reuse.
    Kept,
    /// The segment was freed, with so many pages.
    Freed(u32),
}

/// Takes the oldest entry out of a history list, and frees its undo segment if it was the last log
/// there. Called by purge alone, when the log's records are dealt with.
///
/// Errors: damage; what reading gives; `Internal` if `entry` is not the oldest. The entry is there
/// still then, perhaps with fewer pages and NEEDS_PURGE = 0.
pub fn remove(ctx: &PageCtx, rseg: &Rseg, entry: Oldest) -> Result<Removed> {
    let mut mtr = Mtr::reader(ctx);
    let first = latch::undo_page(&mut mtr, rseg.page(entry.first), Mode::S)?;
    let view = mtr.view(first);
    let parsed = LogHeader::parse(view, entry.header as usize)
        .and_then(|header| Ok((undo_page::state(view)?, header.next_log.get())));
    let (state, next) = latch::at(&mtr, first, parsed)?;
    let pages = latch::page_list(&mtr, first)?.count();
    drop(mtr);
    // A segment that is TO_PURGE never changes again.
    if state != State::ToPurge || next != 0 {
        remove_run(ctx, rseg, &Run::one(entry))?;
        return Ok(Removed::Kept);
    }
    if pages > 1 {
        while !free_step(ctx, rseg, entry)? {}
    }
    free_first(ctx, rseg, entry)?;
    Ok(Removed::Freed(pages))
}

/// Entries of a history list that follow one another, the oldest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The oldest.
    pub first: Oldest,
    /// The newest.
    pub last: Oldest,
    /// How many they are.
    pub count: u32,
}

impl Run {
    /// A single entry.
    pub fn one(entry: Oldest) -> Run {
        Run {
            first: entry,
            last: entry,
            count: 1,
        }
    }
}

/// Takes the oldest entries out of a history list, whose pages are all kept (`LogHead::keeps_page`), in
/// one mini-transaction.
///
/// Errors: as `remove`.
pub fn remove_run(ctx: &PageCtx, rseg: &Rseg, run: &Run) -> Result<()> {
    let mut mtr = Mtr::start(ctx, Budget::system(COMMIT_LOG_BYTES))?;
    rseg.latched(&mut mtr, |mtr, state, header| {
        let unlink = Unlink::find(mtr, rseg, state, header, run)?;
        unlink.apply(mtr, rseg, state, header);
        Ok(())
    })?;
    mtr.commit();
    Ok(())
}

/// The entry at a node of a history list.
///
/// Errors: damage; what reading gives.
pub fn entry_at(mtr: &mut Mtr<'_>, rseg: &Rseg, node: FilAddr) -> Result<Oldest> {
    let page = latch::undo_page(mtr, rseg.page(node.page()), Mode::S)?;
    let parsed = parse_entry(mtr.view(page), node);
    let (entry, _) = latch::at(mtr, page, parsed)?;
    mtr.release(page);
    Ok(entry)
}

/// Frees a part of a segment, all but its first page; true when only that is left.
fn free_step(ctx: &PageCtx, rseg: &Rseg, entry: Oldest) -> Result<bool> {
    let budget = Budget::system(FREE_LOG_BYTES).with_frames(4);
    let mut mtr = Mtr::start(ctx, budget)?;
    let first = latch::undo_page(&mut mtr, rseg.page(entry.first), Mode::X)?;
    let segment = segment_of(&mtr, first)?;
    let done = extent::free_segment_step(&mut mtr, segment, Some(entry.first))?;
    // Its later pages are going: nobody may look for them after a crash.
    mtr.write_u16(first, entry.header as usize + LOG_NEEDS_PURGE, 0);
    mtr.commit();
    Ok(done)
}

/// Frees the first page with the segment's inode, and takes the log out of the history.
fn free_first(ctx: &PageCtx, rseg: &Rseg, entry: Oldest) -> Result<()> {
    let budget = Budget::system(FREE_LOG_BYTES).with_frames(4);
    let mut mtr = Mtr::start(ctx, budget)?;
    rseg.latched(&mut mtr, |mtr, state, header| {
        let unlink = Unlink::find(mtr, rseg, state, header, &Run::one(entry))?;
        let segment = segment_of(mtr, unlink.page)?;
        let pages = latch::page_list(mtr, unlink.page)?.count();
        mtr.attempt(|mtr| match extent::free_segment_step(mtr, segment, None)? {
            true => Ok(()),
            false => {
                let why = "an undo segment has more than its first page";
                Err(Error::corrupt(segment.page(), why))
            }
        })?;
        unlink.apply(mtr, rseg, state, header);
        add_history_size(mtr, header, -i64::from(pages));
        raise_max_trx_id(mtr, header, entry.no.0);
        Ok(())
    })?;
    mtr.commit();
    Ok(())
}

fn segment_of(mtr: &Mtr<'_>, first: PageRef) -> Result<SegmentHeader> {
    let space = mtr.page_id(first).space;
    let geometry = mtr.ctx().spaces.find(space)?.geometry();
    latch::at(
        mtr,
        first,
        SegmentHeader::parse(mtr.view(first), OFF_SEGMENT, geometry),
    )
}

/// Taking the oldest entries out, thought out before it is done.
struct Unlink {
    /// First page of the last entry's segment.
    page: PageRef,
    list: ListBase,
    count: u32,
    /// The next oldest, with its page.
    newer: Option<(PageRef, Oldest)>,
}

impl Unlink {
    fn find(
        mtr: &mut Mtr<'_>,
        rseg: &Rseg,
        state: &RsegState,
        header: PageRef,
        run: &Run,
    ) -> Result<Unlink> {
        let list = latch::at(mtr, header, layout::history(mtr.view(header)))?;
        let Run { first, last, count } = *run;
        if state.oldest != Some(first) || list.last != history_node(first.first, first.header) {
            return Err(Error::internal(format!(
                "history entry {first:?} is not the oldest"
            )));
        }
        let page = latch::undo_page(mtr, rseg.page(last.first), Mode::X)?;
        let own = history_node(last.first, last.header);
        let node = latch::at(mtr, page, ListNode::parse(mtr.view(page), own.offset()))?;
        let newer = match node.prev.some() {
            None => None,
            Some(newer) => {
                let page = latch::undo_page(mtr, rseg.page(newer.page()), Mode::X)?;
                let parsed = parse_entry(mtr.view(page), newer).and_then(|(oldest, _)| {
                    let node = ListNode::parse(mtr.view(page), newer.offset())?;
                    if node.next != own || oldest.no <= last.no {
                        return Err(Error::corrupt_bytes(format!(
                            "history entries {oldest:?} and {last:?} do not follow each other"
                        )));
                    }
                    Ok(oldest)
                });
                Some((page, latch::at(mtr, page, parsed)?))
            }
        };
        let ends = node.next.some().is_none() == (count == 1);
        if newer.is_none() != (list.count() == count) || list.count() < count || !ends {
            return Err(Error::corrupt(
                mtr.page_id(header),
                format!("the history list {list:?} ends elsewhere"),
            ));
        }
        Ok(Unlink {
            page,
            list,
            count,
            newer,
        })
    }

    fn apply(self, mtr: &mut Mtr<'_>, rseg: &Rseg, state: &mut RsegState, header: PageRef) {
        let len = self.list.count() - self.count;
        let shrunk = match self.newer {
            None => ListBase::EMPTY,
            Some((page, newer)) => {
                let node = history_node(newer.first, newer.header);
                let at = node.offset() + list::NODE_NEXT;
                mtr.write(page, at, &FilAddr::NONE.to_bytes());
                ListBase::new(len, self.list.first, node)
            }
        };
        mtr.write(header, layout::OFF_HISTORY, &shrunk.to_bytes());
        let oldest = self.newer.map(|(_, oldest)| oldest);
        rseg.set_history(state, oldest, u64::from(len));
    }
}

/// Frees the pages at the beginning of a committed log of many pages, up to `keep`: purge is done
/// with them. A page at a time.
///
/// Errors: damage; what reading gives. What was freed stays so.
pub fn cut_head(ctx: &PageCtx, rseg: &Rseg, entry: Oldest, keep: PageNo) -> Result<()> {
    if keep == entry.first {
        return Ok(());
    }
    loop {
        let budget = Budget::system(FREE_LOG_BYTES).with_frames(4);
        let mut mtr = Mtr::start(ctx, budget)?;
        let freed = rseg.latched(&mut mtr, |mtr, _, header| {
            cut_second(mtr, rseg, header, entry, keep)
        })?;
        mtr.commit();
        if !freed {
            return Ok(());
        }
    }
}

/// Empties the first page's part of the log, and frees the page after it unless that is `keep`.
fn cut_second(
    mtr: &mut Mtr<'_>,
    rseg: &Rseg,
    header: PageRef,
    entry: Oldest,
    keep: PageNo,
) -> Result<bool> {
    let first = latch::undo_page(mtr, rseg.page(entry.first), Mode::X)?;
    let list = latch::page_list(mtr, first)?;
    let at = entry.header as usize;
    let parsed = (|| {
        let log = LogHeader::parse(mtr.view(first), at)?;
        let whole = log.next_log.get() == 0 && undo_page::state(mtr.view(first))? == State::ToPurge;
        match whole {
            true => log.end(mtr.view(first)),
            false => Err(Error::internal("a log of one page has no head to cut")),
        }
    })();
    let end = latch::at(mtr, first, parsed)?;
    let second = latch::node(mtr, first)?.next.page();
    if second == keep {
        mtr.write_u16(first, at + LOG_START, end as u16);
        return Ok(false);
    }
    let page = latch::undo_page(mtr, rseg.page(second), Mode::X)?;
    let third = latch::node(mtr, page)?.next;
    let after = latch::undo_page(mtr, rseg.page(third.page()), Mode::X)?;
    let node = latch::node(mtr, after)?;
    if third.offset() != OFF_NODE || node.prev.page() != second || list.count() < 3 {
        return Err(Error::corrupt(
            mtr.page_id(page),
            "the page list of an undo segment is broken",
        ));
    }
    let segment = segment_of(mtr, first)?;
    extent::free_page(mtr, segment, second)?;
    mtr.write_u16(first, at + LOG_START, end as u16);
    mtr.write(first, NODE_NEXT, &third.to_bytes());
    mtr.write(after, NODE_PREV, &list.first.to_bytes());
    let shrunk = ListBase::new(list.count() - 1, list.first, list.last);
    mtr.write(first, OFF_PAGE_LIST, &shrunk.to_bytes());
    add_history_size(mtr, header, -1);
    Ok(true)
}

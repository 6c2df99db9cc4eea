//! What a start finds in the undo slots (format-tablespace.md section 18).

use crate::format::list::{FilAddr, ListBase};
use crate::format::undo_page::{self, LOG_HISTORY, LogHeader, State, Xid};
use crate::format::undo_record::{UndoKind, UndoRecord};
use crate::mtr::{Mode, Mtr, PageCtx};
use crate::sync::Arc;
use crate::words::{Error, PageNo, Result, TableId, TrxId, TrxNo, UndoNo};

use super::latch;
use super::read::{self, LogReader};
use super::rseg::{Cached, Oldest, Rseg};
use super::segment::UndoLog;

/// A transaction that was running or prepared when the server stopped.
#[derive(Debug)]
pub struct FoundUndoLog {
    /// Its undo log.
    pub log: UndoLog,
    /// It is prepared: to be kept. Else it is to be rolled back.
    pub prepared: bool,
    /// Its XID, if it is prepared.
    pub xid: Option<Xid>,
}

/// What an undo slot holds.
pub(super) enum Slot {
    /// A segment kept for reuse.
    Cached,
    /// An unfinished transaction.
    Found(Box<FoundUndoLog>),
    /// A log that purge will free.
    Done,
}

/// Reads the undo segment in a slot, and the largest id or number it tells of.
pub(super) fn slot(
    mtr: &mut Mtr<'_>,
    rseg: &Arc<Rseg>,
    slot: u16,
    first: PageNo,
) -> Result<(Slot, u64)> {
    let id = rseg.page(first);
    let page = latch::undo_page(mtr, id, Mode::S)?;
    let list = latch::page_list(mtr, page)?;
    let image = mtr.view(page).to_vec();
    mtr.release(page);
    let named = |error: Error| error.at_page(id);
    let state = undo_page::state(&image).map_err(named)?;
    let at = undo_page::last_log(&image).map_err(named)?;
    let header = LogHeader::parse(&image, at).map_err(named)?;
    let mut largest = header.trx_id.get().max(header.trx_no.get());
    match state {
        State::Cached => return Ok((Slot::Cached, largest)),
        State::ToPurge => return Ok((Slot::Done, largest)),
        State::Active | State::Prepared => {}
    }
    if let prev @ 1.. = header.prev_log.get() as usize {
        let prev = LogHeader::parse(&image, prev).map_err(named)?;
        largest = largest.max(prev.trx_no.get());
    }
    let is_dict = header.dict_trans != 0;
    let segment = Cached { slot, first };
    let mut log = UndoLog::empty(rseg, segment, at as u16, 0, header.trx_id(), is_dict);
    (log.last, log.pages) = (list.last.page(), list.count());
    find_end(mtr, &mut log)?;
    let prepared = state == State::Prepared;
    let found = FoundUndoLog {
        log,
        prepared,
        xid: header.xid().copied().filter(|_| prepared),
    };
    Ok((Slot::Found(Box::new(found)), largest))
}

/// Reads where the last page ends, and the number of the last record.
fn find_end(mtr: &mut Mtr<'_>, log: &mut UndoLog) -> Result<()> {
    let page = latch::undo_page(mtr, log.rseg.page(log.last), Mode::S)?;
    log.free = latch::at(mtr, page, undo_page::free(mtr.view(page)))? as u16;
    mtr.release(page);
    let mut body = Vec::new();
    if read::last(mtr, log, &mut body)?.is_some() {
        log.next_no = UndoNo(UndoRecord::parse(&body)?.undo_no.0 + 1);
    }
    Ok(())
}

/// The tables that an unfinished transaction changed, each once: their locks are taken again. True: it
/// loaded the table when that was empty, and nobody else may write there before it ends.
///
/// Errors: damage in the log; what reading gives.
pub fn tables(ctx: &PageCtx, log: &UndoLog) -> Result<Vec<(TableId, bool)>> {
    let mut mtr = Mtr::reader(ctx);
    let mut reader = LogReader::new(&log.rseg, log.first, log.header);
    let mut tables: Vec<(TableId, bool)> = Vec::new();
    while let Some((_, body)) = reader.next(&mut mtr)? {
        let record = UndoRecord::parse(body)?;
        let loaded = record.kind == UndoKind::Empty;
        match tables
            .iter_mut()
            .find(|(table, _)| *table == record.table_id)
        {
            Some((_, was_loaded)) => *was_loaded |= loaded,
            None => tables.push((record.table_id, loaded)),
        }
    }
    Ok(tables)
}

/// The ends of a history list.
pub(super) struct HistoryEnds {
    pub(super) oldest: Option<Oldest>,
    /// The largest id or number of the newest entry.
    pub(super) newest: u64,
}

pub(super) fn history_ends(mtr: &mut Mtr<'_>, rseg: &Rseg, list: &ListBase) -> Result<HistoryEnds> {
    let (Some(first), Some(last)) = (list.first.some(), list.last.some()) else {
        return Ok(HistoryEnds {
            oldest: None,
            newest: 0,
        });
    };
    let (_, newest) = entry(mtr, rseg, first)?;
    let (oldest, _) = entry(mtr, rseg, last)?;
    Ok(HistoryEnds {
        oldest: Some(oldest),
        newest,
    })
}

fn entry(mtr: &mut Mtr<'_>, rseg: &Rseg, node: FilAddr) -> Result<(Oldest, u64)> {
    let page = latch::undo_page(mtr, rseg.page(node.page()), Mode::S)?;
    let parsed = parse_entry(mtr.view(page), node);
    let (oldest, trx_id) = latch::at(mtr, page, parsed)?;
    mtr.release(page);
    Ok((oldest, trx_id.0.max(oldest.no.0)))
}

/// The log header that a node of a history list is part of.
pub(super) fn parse_entry(page: &[u8], node: FilAddr) -> Result<(Oldest, TrxId)> {
    let at = node.offset().checked_sub(LOG_HISTORY);
    let at = at.ok_or_else(|| Error::corrupt_bytes("a history list leads nowhere"))?;
    let header = LogHeader::parse(page, at)?;
    let oldest = Oldest {
        no: TrxNo(header.trx_no.get()),
        first: node.page(),
        header: at as u16,
    };
    Ok((oldest, header.trx_id()))
}

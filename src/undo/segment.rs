//! Undo segments: where a transaction's undo log begins.

use crate::extent::{self, Direction, Reservation};
use crate::format::list::{FilAddr, ListBase};
use crate::format::redo_record::PageOp;
use crate::format::undo_page::{
    self, FIRST_LOG, LOG_HEADER_BYTES, LOG_NEXT, LogHeader, OFF_FREE, OFF_LAST_LOG, OFF_NODE,
    OFF_PAGE_LIST, OFF_SEGMENT, OFF_START, OFF_STATE, State,
};
use crate::format::{list, rseg as layout};
use crate::mtr::{Budget, Class, Mode, Mtr, PageCtx, PageRef};
use crate::sync::{Arc, Rank};
use crate::words::{Error, PageNo, Result, RsegId, TrxId, UndoNo};

use super::rseg::{Cached, Rseg, Rsegs};
use super::{apply, latch};

/// The undo log of a running transaction. Owned by it; one thread at a time.
#[derive(Debug)]
pub struct UndoLog {
    pub(super) rseg: Arc<Rseg>,
    /// Slot of the segment in the rollback segment's header.
    pub(super) slot: u16,
    pub(super) first: PageNo,
    /// Offset of the log header in the first page.
    pub(super) header: u16,
    pub(super) last: PageNo,
    /// First free byte of the last page.
    pub(super) free: u16,
    /// Pages of the segment.
    pub(super) pages: u32,
    pub(super) trx_id: TrxId,
    pub(super) next_no: UndoNo,
    pub(super) is_dict: bool,
    /// The record that is being built; keeps its memory.
    pub(super) scratch: Vec<u8>,
    /// Promise of a page, see `append::reserve`.
    pub(super) room: Option<Reservation>,
    /// The last record did not fit, and no page was promised.
    pub(super) short: bool,
    /// The log is not begun on its page, which waits for reuse: the first record does it. Until then `free`
    /// is the most that it can become.
    pub(super) late: bool,
}

impl UndoLog {
    /// A log in the first page of a segment, of which that is the only one, without a record.
    pub(super) fn empty(
        rseg: &Arc<Rseg>,
        segment: Cached,
        header: u16,
        free: u16,
        trx_id: TrxId,
        is_dict: bool,
    ) -> UndoLog {
        UndoLog {
            rseg: rseg.clone(),
            slot: segment.slot,
            first: segment.first,
            header,
            last: segment.first,
            free,
            pages: 1,
            trx_id,
            next_no: UndoNo(0),
            is_dict,
            scratch: Vec::new(),
            room: None,
            short: false,
            late: false,
        }
    }

    /// The transaction.
    pub fn trx_id(&self) -> TrxId {
        self.trx_id
    }

    /// Number of the next record: as many were appended and not cut again.
    pub fn next_no(&self) -> UndoNo {
        self.next_no
    }

    /// Builds records in `memory`, which the transaction before has left.
    pub fn build_in(&mut self, memory: Vec<u8>) {
        self.scratch = memory;
    }

    /// The memory in which records were built, for the next transaction.
    pub fn into_memory(self) -> Vec<u8> {
        self.scratch
    }

    /// Its rollback segment.
    pub fn rseg(&self) -> &Arc<Rseg> {
        &self.rseg
    }

    /// Number of its rollback segment.
    pub fn rseg_id(&self) -> RsegId {
        self.rseg.id()
    }

    /// Pages of its segment.
    pub fn page_count(&self) -> u32 {
        self.pages
    }

    /// The transaction changes the dictionary.
    pub fn is_dict(&self) -> bool {
        self.is_dict
    }
}

/// Log bytes of a mini-transaction that begins a log: a header, or a whole segment.
const BEGIN_LOG_BYTES: usize = 4 << 10;

/// Begins the undo log of a transaction: in a segment kept for reuse, or in a new one. `is_dict` marks
/// a transaction that changes the dictionary. Call it with no latch held.
///
/// Errors: `TooManyTransactions` if every slot of every rollback segment is taken; `NoSpace`; what
/// reading gives, `Corrupt` only if no rollback segment is sound. Nothing is changed then.
pub fn begin(ctx: &PageCtx, rsegs: &Rsegs, trx_id: TrxId, is_dict: bool) -> Result<UndoLog> {
    begin_at(ctx, rsegs, rsegs.next_turn(), trx_id, is_dict)
}

/// The same, beginning with rollback segment number `turn` (`Rsegs::in_turn`).
///
/// Errors: as `begin`.
pub fn begin_at(
    ctx: &PageCtx,
    rsegs: &Rsegs,
    turn: usize,
    trx_id: TrxId,
    is_dict: bool,
) -> Result<UndoLog> {
    let mut damage = None;
    for rseg in rsegs.in_turn(turn) {
        match begin_in(ctx, rseg, trx_id, is_dict) {
            Ok(Some(log)) => return Ok(log),
            Ok(None) => {}
            // One damaged segment refuses no transaction that another can take.
            Err(error @ Error::Corrupt(_)) => damage = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(damage.unwrap_or(Error::TooManyTransactions))
}

/// The same for a transaction that will write soon: where a segment waits for reuse the log is begun
/// with the first record, in its mini-transaction, and not at all if there comes none.
///
/// Errors: as `begin`.
pub fn begin_late(
    ctx: &PageCtx,
    rsegs: &Rsegs,
    turn: usize,
    trx_id: TrxId,
    is_dict: bool,
) -> Result<UndoLog> {
    let rseg = rsegs.in_turn(turn).next();
    let cached = rseg.and_then(|rseg| Some((rseg, rseg.latch().cached.pop()?)));
    let Some((rseg, cached)) = cached else {
        return begin_at(ctx, rsegs, turn, trx_id, is_dict);
    };
    let free = reused_end_max(ctx.page_size()) as u16;
    let mut log = UndoLog::empty(rseg, cached, 0, free, trx_id, is_dict);
    log.late = true;
    Ok(log)
}

/// A reused page ends below, with the new log's header.
fn reused_end_max(page_size: usize) -> usize {
    page_size * 7 / 8
}

impl UndoLog {
    /// Begins a late log now, in a mini-transaction of its own. Call it with no latch held.
    ///
    /// Errors: as `begin`.
    pub fn begin_now(&mut self, ctx: &PageCtx) -> Result<()> {
        if !self.late {
            return Ok(());
        }
        let rseg = self.rseg.clone();
        let mut mtr = Mtr::start(ctx, begin_budget(self.is_dict))?;
        let page = latch::undo_page(&mut mtr, rseg.page(self.first), Mode::X)?;
        match self.begin_on(&mut mtr, page) {
            Ok(()) => {
                ctx.reached("undo.reuse");
                mtr.commit();
            }
            Err(error) => {
                drop(mtr);
                log::error!("a damaged undo segment is left out of use: {error}");
                let made = create_in(ctx, &rseg, self.trx_id, self.is_dict)?;
                let mut made = made.ok_or(Error::TooManyTransactions)?;
                std::mem::swap(&mut made.scratch, &mut self.scratch);
                *self = made;
            }
        }
        Ok(())
    }

    /// Begins a late log on its page, which is latched X. The first record follows in the same
    /// mini-transaction.
    ///
    /// Errors: `Corrupt`; nothing is changed then.
    pub(super) fn begin_on(&mut self, mtr: &mut Mtr<'_>, page: PageRef) -> Result<()> {
        let rseg = self.rseg.clone();
        let begun = reuse_page(mtr, &rseg, page, self.cached(), self.trx_id, self.is_dict)?;
        (self.header, self.free, self.late) = (begun.header, begun.free, false);
        Ok(())
    }

    /// Its segment, as one that waits for reuse.
    pub(super) fn cached(&self) -> Cached {
        Cached {
            slot: self.slot,
            first: self.first,
        }
    }
}

/// `None` if the segment has no free slot.
fn begin_in(
    ctx: &PageCtx,
    rseg: &Arc<Rseg>,
    trx_id: TrxId,
    is_dict: bool,
) -> Result<Option<UndoLog>> {
    let mut mtr = Mtr::start(ctx, begin_budget(is_dict))?;
    let reused = reuse(&mut mtr, rseg, trx_id, is_dict)?;
    ctx.reached("undo.reuse");
    mtr.commit();
    match reused {
        Some(log) => Ok(Some(log)),
        None => create_in(ctx, rseg, trx_id, is_dict),
    }
}

/// Makes a new segment; `None` if there is no free slot.
fn create_in(
    ctx: &PageCtx,
    rseg: &Arc<Rseg>,
    trx_id: TrxId,
    is_dict: bool,
) -> Result<Option<UndoLog>> {
    let _room = extent::reserve(ctx, rseg.space(), 2, 1, class_of(is_dict))?;
    let mut mtr = Mtr::start(ctx, begin_budget(is_dict).with_frames(4))?;
    let made = rseg.latched(&mut mtr, |mtr, _, header| {
        mtr.attempt(|mtr| create(mtr, rseg, header, trx_id, is_dict))
    })?;
    mtr.commit();
    Ok(made)
}

fn begin_budget(is_dict: bool) -> Budget {
    Budget {
        class: class_of(is_dict),
        ..Budget::statement(BEGIN_LOG_BYTES)
    }
}

/// Which part of the log the undo of a transaction may use.
pub(super) fn class_of(is_dict: bool) -> Class {
    match is_dict {
        true => Class::Dictionary,
        false => Class::Statement,
    }
}

/// Takes a cached segment.
fn reuse(
    mtr: &mut Mtr<'_>,
    rseg: &Arc<Rseg>,
    trx_id: TrxId,
    is_dict: bool,
) -> Result<Option<UndoLog>> {
    // The segment is off the list while its page is read: nobody else takes it.
    let Some(cached) = rseg.latch().cached.pop() else {
        return Ok(None);
    };
    let begun = latch::undo_page(mtr, rseg.page(cached.first), Mode::X)
        .and_then(|page| reuse_page(mtr, rseg, page, cached, trx_id, is_dict));
    match begun {
        Ok(log) => Ok(Some(log)),
        Err(error @ Error::Corrupt(_)) => {
            log::error!("a damaged undo segment is left out of use: {error}");
            Ok(None)
        }
        Err(error) => {
            rseg.latch().cached.insert(0, cached);
            Err(error)
        }
    }
}

fn reuse_page(
    mtr: &mut Mtr<'_>,
    rseg: &Arc<Rseg>,
    page: PageRef,
    cached: Cached,
    trx_id: TrxId,
    is_dict: bool,
) -> Result<UndoLog> {
    let view = mtr.view(page);
    let checked = (|| {
        let (free, last) = (undo_page::free(view)?, undo_page::last_log(view)?);
        let header = LogHeader::parse(view, last)?;
        if undo_page::state(view)? != State::Cached || header.next_log.get() != 0 {
            return Err(Error::corrupt_bytes(
                "an undo segment is not free for reuse",
            ));
        }
        if free + LOG_HEADER_BYTES >= reused_end_max(view.len()) {
            return Err(Error::corrupt_bytes("a cached undo page is full"));
        }
        // The log of a transaction that was rolled back, and never in a history list.
        let unused = last == FIRST_LOG
            && header.trx_no().is_none()
            && header.log_start.get() as usize == free;
        Ok(match unused {
            true => (FIRST_LOG, 0),
            false => (free, last),
        })
    })();
    let (at, previous) = latch::at(mtr, page, checked)?;
    Ok(write_header(
        mtr,
        rseg,
        page,
        cached.slot,
        at,
        previous,
        trx_id,
        is_dict,
    ))
}

const _: () = assert!(OFF_FREE == OFF_START + 2 && OFF_LAST_LOG == OFF_STATE + 2);

fn pair(first: u16, second: u16) -> [u8; 4] {
    (u32::from(first) << 16 | u32::from(second)).to_be_bytes()
}

/// Writes the log header at `at` of a segment's first page, which becomes ACTIVE.
#[expect(clippy::too_many_arguments, reason = "the header's fields")]
fn write_header(
    mtr: &mut Mtr<'_>,
    rseg: &Arc<Rseg>,
    page: PageRef,
    slot: u16,
    at: usize,
    previous: usize,
    trx_id: TrxId,
    is_dict: bool,
) -> UndoLog {
    let mut header = LogHeader::new(trx_id, at, previous as u16);
    header.dict_trans = u8::from(is_dict);
    let start = header.log_start.get();
    mtr.write(page, at, zerocopy::IntoBytes::as_bytes(&header));
    if previous != 0 {
        mtr.write_u16(page, previous + LOG_NEXT, at as u16);
    }
    // Neighbours in one record: OFF_START and OFF_FREE, OFF_STATE and OFF_LAST_LOG.
    mtr.write(page, OFF_START, &pair(start, start));
    mtr.write(page, OFF_STATE, &pair(State::Active as u16, at as u16));
    let first = mtr.page_id(page).page;
    UndoLog::empty(
        rseg,
        Cached { slot, first },
        at as u16,
        start,
        trx_id,
        is_dict,
    )
}

/// Makes an undo segment and takes a slot for it; `None` if there is none.
fn create(
    mtr: &mut Mtr<'_>,
    rseg: &Arc<Rseg>,
    header: PageRef,
    trx_id: TrxId,
    is_dict: bool,
) -> Result<Option<UndoLog>> {
    let Some(slot) = layout::free_slot(mtr.view(header)) else {
        return Ok(None);
    };
    let segment = extent::create_segment(mtr, rseg.space())?;
    let page =
        extent::allocate_and_create(mtr, segment, PageNo(0), Direction::None, Rank::UndoPage)?;
    let first = mtr.page_id(page).page;
    mtr.ctx().reached("undo.begin");
    init_page(mtr, page)?;
    mtr.write(page, OFF_SEGMENT, &segment.to_bytes());
    let node = FilAddr::new(first, OFF_NODE as u16);
    let pages = ListBase::new(1, node, node);
    mtr.write(page, OFF_PAGE_LIST, &pages.to_bytes());
    mtr.write_u32(header, layout::slot_offset(slot), first.0);
    Ok(Some(write_header(
        mtr,
        rseg,
        page,
        slot as u16,
        FIRST_LOG,
        0,
        trx_id,
        is_dict,
    )))
}

/// UNDO_INIT.
pub(super) fn init_page(mtr: &mut Mtr<'_>, page: PageRef) -> Result<()> {
    mtr.extended(page, &PageOp::UndoInit, |bytes| {
        apply::init(bytes);
        Ok(())
    })
}

/// Marks a running transaction as one that changes the dictionary.
///
/// Errors: what reading gives.
pub fn mark_dict(ctx: &PageCtx, log: &mut UndoLog) -> Result<()> {
    if log.is_dict || log.late {
        log.is_dict = true;
        return Ok(());
    }
    let mut mtr = Mtr::start(ctx, Budget::dictionary(64))?;
    let page = latch::undo_page(&mut mtr, log.rseg.page(log.first), Mode::X)?;
    let at = log.header as usize + undo_page::LOG_DICT_TRANS;
    mtr.write_u8(page, at, 1);
    mtr.commit();
    log.is_dict = true;
    Ok(())
}

/// Within a list node on an undo page.
pub(super) const NODE_PREV: usize = OFF_NODE + list::NODE_PREV;
/// Within a list node on an undo page.
pub(super) const NODE_NEXT: usize = OFF_NODE + list::NODE_NEXT;

//! Rollback segments: what TRX_SYS names, and the facts of each that are kept in memory.

use crate::format::fil::{self, PageType};
use crate::format::inode::SegmentHeader;
use crate::format::list::ListBase;
use crate::format::{rseg as layout, trx_sys};
use crate::mtr::{Budget, Mode, Mtr, PageCtx, PageRef};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, Rank};
use crate::words::limits::RSEGS_MAX;
use crate::words::{Error, PageId, PageNo, Result, RsegId, SpaceId, TrxId, TrxNo};

use crate::extent::{self, Direction};
use crate::mtr::Class;

use super::latch;
use super::resurrect::{self, FoundUndoLog, Slot};

/// No history.
const NONE: u64 = u64::MAX;

/// A rollback segment.
#[derive(Debug)]
pub struct Rseg {
    id: RsegId,
    header: PageId,
    /// Number of the oldest entry of the history list, for a look without the latch.
    oldest: AtomicU64,
    history_len: AtomicU64,
    state: Mutex<RsegState>,
}

/// What the header page says, kept in memory (invariant 4).
#[derive(Debug, Default)]
pub struct RsegState {
    /// Segments that are kept for reuse.
    pub(super) cached: Vec<Cached>,
    pub(super) oldest: Option<Oldest>,
}

/// An undo segment that waits for its next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cached {
    pub(super) slot: u16,
    pub(super) first: PageNo,
}

/// The oldest entry of a history list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    /// Its commit number.
    pub no: TrxNo,
    /// First page of its undo segment.
    pub first: PageNo,
    /// Offset of its log header in that page.
    pub header: u16,
}

impl Rseg {
    fn new(id: RsegId, header: PageId) -> Rseg {
        Rseg {
            id,
            header,
            oldest: AtomicU64::new(NONE),
            history_len: AtomicU64::new(0),
            state: Mutex::new(Rank::Rseg, RsegState::default()),
        }
    }

    /// Its slot in TRX_SYS.
    pub fn id(&self) -> RsegId {
        self.id
    }

    /// Its header page.
    pub fn header(&self) -> PageId {
        self.header
    }

    /// The tablespace of its undo pages.
    pub fn space(&self) -> SpaceId {
        self.header.space
    }

    /// Page `page` of its tablespace.
    pub fn page(&self, page: PageNo) -> PageId {
        latch::beside(self.header, page)
    }

    /// Commit number of the oldest entry of the history list, if there is one.
    pub fn oldest_no(&self) -> Option<TrxNo> {
        match self.oldest.load(Ordering::Acquire) {
            NONE => None,
            no => Some(TrxNo(no)),
        }
    }

    /// The oldest entry of the history list.
    pub fn oldest(&self) -> Option<Oldest> {
        self.latch().oldest
    }

    /// Entries of the history list.
    pub fn history_len(&self) -> u64 {
        self.history_len.load(Ordering::Relaxed)
    }

    /// Segments kept for reuse.
    pub fn cached_count(&self) -> usize {
        self.latch().cached.len()
    }

    pub(super) fn latch(&self) -> MutexGuard<'_, RsegState> {
        self.state.lock()
    }

    /// Notes what the history list has become. With the latch held.
    pub(super) fn set_history(&self, state: &mut RsegState, oldest: Option<Oldest>, len: u64) {
        state.oldest = oldest;
        let no = oldest.map_or(NONE, |oldest| oldest.no.0);
        self.oldest.store(no, Ordering::Release);
        // Relaxed: for status output, and for the next change under the latch.
        self.history_len.store(len, Ordering::Relaxed);
    }

    /// Runs `work` under the latch, with the header page latched X. `work` latches what else it needs
    /// with `get`; when a page is missing, everything is released, the page read, and `work` runs
    /// again. The latch goes when `work` is done: the header page, held to the commit, keeps the
    /// order of what follows.
    pub(super) fn latched<'a, T>(
        &self,
        mtr: &mut Mtr<'a>,
        mut work: impl FnMut(&mut Mtr<'a>, &mut RsegState, PageRef) -> Result<T>,
    ) -> Result<T> {
        loop {
            mtr.prefetch(self.header)?;
            let mut state = self.latch();
            let done = latch::header(mtr, self.header, Mode::X)
                .and_then(|header| work(mtr, &mut state, header));
            drop(state);
            match done {
                Err(Error::WouldBlock) => mtr.restart()?,
                other => return other,
            }
        }
    }
}

/// All rollback segments.
#[derive(Debug)]
pub struct Rsegs {
    by_id: Vec<Option<Arc<Rseg>>>,
    /// Those that transactions get, in turn.
    assignable: Vec<Arc<Rseg>>,
    next: AtomicUsize,
}

/// What opening the rollback segments found.
#[derive(Debug)]
pub struct Opened {
    /// The segments.
    pub rsegs: Rsegs,
    /// The next transaction id (format-tablespace.md section 18).
    pub next_trx_id: TrxId,
    /// Transactions that were running or prepared.
    pub found: Vec<FoundUndoLog>,
}

impl Rsegs {
    /// Reads TRX_SYS, every rollback segment's header and the undo segments in their slots. The
    /// tablespaces must be open.
    ///
    /// Errors: damage in any of them; a rollback segment of a server before 10.3; what reading gives.
    /// All end the start: what a transaction left unfinished must not look committed.
    pub fn open(ctx: &PageCtx) -> Result<Opened> {
        let mut mtr = Mtr::reader(ctx);
        let id = PageId::new(SpaceId::SYSTEM, trx_sys::PAGE);
        let page = mtr.get(id, Mode::S, Rank::FspPage)?;
        let slots: Result<Vec<_>> = trx_sys::slots(mtr.view(page)).collect();
        let slots = latch::at(&mtr, page, slots)?;
        let mut newest = trx_sys::old_max_trx_id(mtr.view(page)).0;
        mtr.release(page);
        let mut found = Vec::new();
        let mut by_id: Vec<Option<Arc<Rseg>>> = (0..RSEGS_MAX).map(|_| None).collect();
        for (id, header) in slots {
            if ctx.spaces.get(header.space).is_none() {
                return Err(file_missing(ctx, header));
            }
            let rseg = Arc::new(Rseg::new(id, header));
            newest = newest.max(open_one(&mut mtr, &rseg, &mut found)?);
            by_id[id.0 as usize] = Some(rseg);
        }
        let rsegs = Rsegs::new(by_id)?;
        // DB_TRX_ID has 6 bytes: ids that began again from 0 would make new rows look old.
        let next = newest.checked_add(1).filter(|next| next >> 48 == 0);
        let next =
            next.ok_or_else(|| Error::corrupt(id, format!("transaction id {newest} in undo")))?;
        Ok(Opened {
            rsegs,
            next_trx_id: TrxId(next),
            found,
        })
    }

    fn new(by_id: Vec<Option<Arc<Rseg>>>) -> Result<Rsegs> {
        let all = || by_id.iter().flatten();
        // The system tablespace is used only where there are no undo tablespaces.
        let apart = all().any(|rseg| rseg.space() != SpaceId::SYSTEM);
        let assignable: Vec<_> = all()
            .filter(|rseg| !apart || rseg.space() != SpaceId::SYSTEM)
            .cloned()
            .collect();
        if assignable.is_empty() {
            let id = PageId::new(SpaceId::SYSTEM, trx_sys::PAGE);
            return Err(Error::corrupt(id, "there is no rollback segment"));
        }
        Ok(Rsegs {
            by_id,
            assignable,
            next: AtomicUsize::new(0),
        })
    }

    /// The segment with that number; `None` if TRX_SYS names none.
    pub fn get(&self, id: RsegId) -> Option<&Arc<Rseg>> {
        self.by_id.get(id.0 as usize).and_then(Option::as_ref)
    }

    /// All segments.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Rseg>> {
        self.by_id.iter().flatten()
    }

    /// A number for `in_turn`, another one each time.
    pub fn next_turn(&self) -> usize {
        // Relaxed: who gets which one matters to nobody.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The segments to try for a new transaction, beginning with number `start` of them. Who keeps to
    /// one number finds the pages that it used last in the processor's cache.
    pub fn in_turn(&self, start: usize) -> impl Iterator<Item = &Arc<Rseg>> {
        let count = self.assignable.len();
        (0..count).map(move |i| &self.assignable[start.wrapping_add(i) % count])
    }

    /// Entries of all history lists: Innodb_history_list_length.
    pub fn history_len(&self) -> u64 {
        self.all().map(|rseg| rseg.history_len()).sum()
    }

    /// The segment whose history has the smallest commit number of all.
    pub fn with_oldest(&self) -> Option<(&Arc<Rseg>, TrxNo)> {
        self.all()
            .filter_map(|rseg| Some((rseg, rseg.oldest_no()?)))
            .min_by_key(|&(_, no)| no)
    }
}

fn file_missing(ctx: &PageCtx, header: PageId) -> Error {
    let first = ctx.spaces.undo_path(1);
    Error::corrupt(
        header,
        format!(
            "a rollback segment is there, but of the files {first} and so on none is that undo tablespace: put it back"
        ),
    )
}

/// Reads one segment's header and slots; returns the largest id or number it tells of.
fn open_one(mtr: &mut Mtr<'_>, rseg: &Arc<Rseg>, found: &mut Vec<FoundUndoLog>) -> Result<u64> {
    let page = latch::header(mtr, rseg.header, Mode::S)?;
    let image = mtr.view(page).to_vec();
    mtr.release(page);
    let named = |error: Error| error.at_page(rseg.header);
    let kind = fil::page_type(&image);
    if kind != PageType::SYS {
        return Err(Error::corrupt(
            rseg.header,
            format!("a rollback segment header has type {kind:?}"),
        ));
    }
    layout::check_format(&image).map_err(named)?;
    let mut newest = layout::max_trx_id(&image).0;
    let history = layout::history(&image).map_err(named)?;
    let mut state = RsegState::default();
    for (slot, first) in layout::slots(&image) {
        let (what, largest) = resurrect::slot(mtr, rseg, slot as u16, first)?;
        newest = newest.max(largest);
        match what {
            Slot::Cached => state.cached.push(Cached {
                slot: slot as u16,
                first,
            }),
            Slot::Found(log) => found.push(*log),
            Slot::Done => {}
        }
    }
    let ends = resurrect::history_ends(mtr, rseg, &history)?;
    newest = newest.max(ends.newest);
    let mut latched = rseg.latch();
    *latched = state;
    rseg.set_history(&mut latched, ends.oldest, u64::from(history.count()));
    Ok(newest)
}

/// Log bytes of a mini-transaction that makes a rollback segment.
const CREATE_LOG_BYTES: usize = 16 << 10;

/// Makes the TRX_SYS page of a new instance; the next free page of the system tablespace must be
/// page 5.
///
/// Errors: `Internal` if it is not; what allocation gives.
pub fn create_trx_sys(mtr: &mut Mtr<'_>) -> Result<()> {
    let segment = extent::create_segment(mtr, SpaceId::SYSTEM)?;
    let page =
        extent::allocate_and_create(mtr, segment, trx_sys::PAGE, Direction::None, Rank::FspPage)?;
    if mtr.page_id(page).page != trx_sys::PAGE {
        return Err(Error::internal("TRX_SYS is made out of turn"));
    }
    mtr.write_u16(page, fil::OFF_TYPE, PageType::TRX_SYS.0);
    mtr.write(page, trx_sys::OFF_SEGMENT, &segment.to_bytes());
    mtr.memset(page, trx_sys::OFF_SLOTS, 8 * trx_sys::SLOTS_ON_DISK, 0xFF);
    Ok(())
}

/// Makes rollback segment `id` in `space` and enters it into TRX_SYS. Returns its header page.
///
/// Errors: what allocation gives.
pub fn create(mtr: &mut Mtr<'_>, space: SpaceId, id: RsegId) -> Result<PageId> {
    let segment = extent::create_segment(mtr, space)?;
    let page =
        extent::allocate_and_create(mtr, segment, PageNo(0), Direction::None, Rank::UndoPage)?;
    let header = mtr.page_id(page);
    init_header(mtr, page, segment);
    let sys = PageId::new(SpaceId::SYSTEM, trx_sys::PAGE);
    let sys = mtr.get_reading(sys, Mode::X, Rank::FspPage)?;
    mtr.write(
        sys,
        trx_sys::slot_offset(id),
        &trx_sys::slot_bytes(Some(header)),
    );
    Ok(header)
}

fn init_header(mtr: &mut Mtr<'_>, page: PageRef, segment: SegmentHeader) {
    let page_size = mtr.view(page).len();
    mtr.write_u16(page, fil::OFF_TYPE, PageType::SYS.0);
    mtr.write(page, layout::OFF_HISTORY, &ListBase::EMPTY.to_bytes());
    mtr.write(page, layout::OFF_SEGMENT, &segment.to_bytes());
    let slots = 4 * layout::slot_count(page_size);
    mtr.memset(page, layout::OFF_SLOTS, slots, 0xFF);
}

/// Makes the rollback segments 1 to 127 of a new instance: in turn in `undo_spaces`, or in the system
/// tablespace if there are none (format-tablespace.md 6.1). Number 0 is there already.
///
/// Errors: what allocation gives.
pub fn create_all(ctx: &PageCtx, undo_spaces: &[SpaceId]) -> Result<()> {
    for id in 1..RSEGS_MAX {
        let space = match undo_spaces.len() {
            0 => SpaceId::SYSTEM,
            count => undo_spaces[(id - 1) % count],
        };
        let _room = extent::reserve(ctx, space, 1, 1, Class::System)?;
        let budget = Budget::system(CREATE_LOG_BYTES).with_frames(4);
        let mut mtr = Mtr::start(ctx, budget)?;
        create(&mut mtr, space, RsegId(id as u8))?;
        mtr.commit();
    }
    Ok(())
}

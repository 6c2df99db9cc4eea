//! `Mtr`: start, latch, release. Changes stand in write.rs, the end in commit.rs.

use std::cell::Cell;

use super::ctx::{PageCtx, Scratch};
use super::memo::{PageRef, Savepoint};
use crate::buffer::{Draft, FrameCredit, Mode, PageGuard, Pin, Stamp, Told};
use crate::redo::Credit;
use crate::sync::Rank;
use crate::words::{Error, PageId, Result};

pub use crate::redo::Class;

/// What a mini-transaction may use at most; admitted before its first latch (M2).
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes of redo, nested mtrs included.
    pub log_bytes: usize,
    /// Frames taken while latches are held: new pages, and pages read by `get_reading`.
    pub frames: u32,
    /// Which part of the log may be used.
    pub class: Class,
}

impl Budget {
    /// A statement's mtr that changes existing pages and creates none.
    pub const fn statement(log_bytes: usize) -> Budget {
        Budget {
            log_bytes,
            frames: 0,
            class: Class::Statement,
        }
    }

    /// As `statement`, for changes of the dictionary.
    pub const fn dictionary(log_bytes: usize) -> Budget {
        Budget {
            log_bytes,
            frames: 0,
            class: Class::Dictionary,
        }
    }

    /// Rollback and purge: may use what statements cannot.
    pub const fn system(log_bytes: usize) -> Budget {
        Budget {
            log_bytes,
            frames: 0,
            class: Class::System,
        }
    }

    /// The same with room for `frames` frames.
    pub const fn with_frames(self, frames: u32) -> Budget {
        Budget { frames, ..self }
    }
}

/// Pages that an mtr keeps for its restarts at most: those of the highest tree with their siblings …
const ANCHORS_MAX: usize = 32;
/// … and no more than this part of the pool, since others keep theirs.
const ANCHORS_SHARE: usize = 8;

/// A mini-transaction.
///
/// Dropped unmodified it releases its latches. Dropped modified – a panic, or an error after the
/// first change – it freezes the engine (C4): what fails must fail before the first change, or inside an
/// `attempt`.
pub struct Mtr<'a> {
    pub(super) ctx: &'a PageCtx,
    pub(super) scratch: Scratch<'a>,
    /// Log room still free for records of this mtr and its nested ones.
    credit: Cell<usize>,
    pub(super) kind: Kind,
    /// Latches of outer mtrs are held: reading is not free even with an empty memo.
    outer_holds: bool,
    pub(super) modified: bool,
    missing: Option<PageId>,
    /// Keeps the pages that `restart` and `prefetch` brought in, newest last (T4).
    anchors: Vec<Pin<'a>>,
    _admission: Option<Credit<'a>>,
    frames: FrameCredit<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Changes are logged.
    Logged,
    /// Changes pages of the temporary tablespace only.
    Unlogged,
    /// Changes nothing.
    Reader,
}

impl<'a> Mtr<'a> {
    /// Admits `budget`, then starts. Call it with no latch held: it may wait for log room and for
    /// frames.
    ///
    /// Errors: `Stopped`, `LogRoom`, `LogHeld`, `BufferPoolFull`; `DeviceFull` for a statement's.
    pub fn start(ctx: &'a PageCtx, budget: Budget) -> Result<Mtr<'a>> {
        ctx.check_running()?;
        ctx.log.check_frozen()?;
        let check_room = || match budget.class {
            Class::Statement => ctx.pool.check_room_to_write(),
            _ => Ok(()),
        };
        check_room()?;
        let frames = ctx.pool.admit_frames(budget.frames)?;
        let log_bytes = budget.log_bytes as u64;
        let admission = ctx.log.admit_while(log_bytes, budget.class, &check_room)?;
        let mut mtr = Mtr::new(ctx, Kind::Logged, budget.log_bytes, frames);
        mtr._admission = Some(admission);
        Ok(mtr)
    }

    /// Starts an mtr that changes only pages of the temporary tablespace, which is never logged.
    ///
    /// Errors: `Stopped`, `BufferPoolFull`.
    pub fn start_no_log(ctx: &'a PageCtx, frames: u32) -> Result<Mtr<'a>> {
        ctx.check_running()?;
        let frames = ctx.pool.admit_frames(frames)?;
        Ok(Mtr::new(ctx, Kind::Unlogged, 0, frames))
    }

    /// Starts an mtr that only reads; costs no admission and cannot fail.
    pub fn reader(ctx: &'a PageCtx) -> Mtr<'a> {
        Mtr::new(ctx, Kind::Reader, 0, ctx.pool.no_frames())
    }

    /// Starts an mtr inside this one – undo before a row's change – that draws `log_bytes` and
    /// `frames` on this one's budget (M2). Both may be used side by side; commit the nested one
    /// before this one.
    ///
    /// Errors: `Internal` if the budget is used up: the caller asked for too little at start.
    pub fn nested(&self, log_bytes: usize, frames: u32) -> Result<Mtr<'a>> {
        let left = self.log_bytes_left();
        if log_bytes > left && self.kind == Kind::Logged {
            return Err(Error::internal(format!(
                "a nested mini-transaction wants {log_bytes} of {left} bytes"
            )));
        }
        let frames = self.frames.split(frames);
        self.credit.set(self.credit.get().saturating_sub(log_bytes));
        let mut nested = Mtr::new(self.ctx, self.kind, log_bytes, frames);
        nested.outer_holds = self.holds_latches();
        Ok(nested)
    }

    fn new(ctx: &'a PageCtx, kind: Kind, credit: usize, frames: FrameCredit<'a>) -> Mtr<'a> {
        Mtr {
            ctx,
            scratch: match kind {
                Kind::Reader => Scratch::empty(),
                Kind::Logged | Kind::Unlogged => ctx.scratch(),
            },
            credit: Cell::new(credit),
            kind,
            outer_holds: false,
            modified: false,
            missing: None,
            anchors: Vec::new(),
            _admission: None,
            frames,
        }
    }

    /// The pool, log and tablespaces that this mtr works on.
    pub fn ctx(&self) -> &'a PageCtx {
        self.ctx
    }

    /// Latches page `id` in `mode`, waiting for the latch.
    ///
    /// A page that the mtr holds already is not latched again: the held mode must cover `mode`; U is
    /// raised to X.
    ///
    /// Errors: `WouldBlock` if the page would have to be read while latches are held – `missing`
    /// names it then, and nothing was latched; else what a read may give: `Corrupt`, `Io`,
    /// `TablespaceMissing`, `BufferPoolFull`, `Stopped`.
    pub fn get(&mut self, id: PageId, mode: Mode, rank: Rank) -> Result<PageRef> {
        if let Some(page) = self.held_again(id, mode)? {
            return Ok(page);
        }
        let pin = match self.ctx.pool.find_ready(id)? {
            Some(pin) => pin,
            None if self.holds_latches() => {
                self.missing = Some(id);
                return Err(Error::WouldBlock);
            }
            None => self.ctx.pool.fetch(id)?,
        };
        Ok(self.latched(pin.latch(mode, rank)?))
    }

    /// Like `get`, but reads a missing page even under latches. Only for the callers that
    /// docs/latch-order.md lists (allocation, undo and BLOB pages); counted.
    pub fn get_reading(&mut self, id: PageId, mode: Mode, rank: Rank) -> Result<PageRef> {
        if let Some(page) = self.held_again(id, mode)? {
            return Ok(page);
        }
        let pin = match self.ctx.pool.find_ready(id)? {
            Some(pin) => pin,
            None if self.holds_latches() => self.ctx.pool.fetch_under_latches(id, &self.frames)?,
            None => self.ctx.pool.fetch(id)?,
        };
        Ok(self.latched(pin.latch(mode, rank)?))
    }

    /// Like `get`, but never waits: against the latch order (T3).
    ///
    /// Errors: `WouldBlock` if the latch is taken, or the page must be read (`missing` names it).
    pub fn try_get(&mut self, id: PageId, mode: Mode, rank: Rank) -> Result<PageRef> {
        if let Some(page) = self.held_again(id, mode)? {
            return Ok(page);
        }
        let Some(pin) = self.ctx.pool.find_ready(id)? else {
            self.missing = Some(id);
            return Err(Error::WouldBlock);
        };
        match pin.try_latch(mode, rank)? {
            Some(guard) => Ok(self.latched(guard)),
            None => Err(Error::WouldBlock),
        }
    }

    /// Latches page `id` if it is in the pool and has not changed since it had `stamp`; waits for the
    /// latch. `None` otherwise, and if the mtr holds latches: this is no step of a descent.
    ///
    /// Errors: `Stopped`.
    pub fn get_unchanged(
        &mut self,
        id: PageId,
        stamp: Stamp,
        mode: Mode,
        rank: Rank,
    ) -> Result<Option<PageRef>> {
        if self.holds_latches() {
            return Ok(None);
        }
        let Some(pin) = self.ctx.pool.find_ready(id)? else {
            return Ok(None);
        };
        if pin.stamp() != stamp {
            return Ok(None);
        }
        let guard = pin.latch(mode, rank)?;
        if guard.stamp_before() != stamp {
            return Ok(None);
        }
        Ok(Some(self.latched(guard)))
    }

    /// Latches the leaf that a guide told of, waiting for the latch; `None` if it is not in the pool.
    ///
    /// Errors: `Stopped`.
    pub fn get_told(
        &mut self,
        id: PageId,
        told: &Told,
        mode: Mode,
        rank: Rank,
    ) -> Result<Option<PageRef>> {
        if let Some(page) = self.held_again(id, mode)? {
            return Ok(Some(page));
        }
        match self.ctx.pool.find_told(id, told)? {
            Some(pin) => Ok(Some(self.latched(pin.latch(mode, rank)?))),
            None => Ok(None),
        }
    }

    /// True if a held inner page of a tree should get a guide.
    pub fn wants_guide(&self, page: PageRef) -> bool {
        self.scratch.memo.slot(page).guard.wants_guide()
    }

    /// Makes the guide of a held page.
    pub fn write_guide(&self, page: PageRef, draft: &Draft) {
        self.scratch.memo.slot(page).guard.write_guide(draft);
    }

    /// The stamp that a held page will have when its latch is given back.
    pub fn stamp_after(&self, page: PageRef) -> Stamp {
        self.scratch.memo.slot(page).guard.stamp_after()
    }

    fn held_again(&mut self, id: PageId, mode: Mode) -> Result<Option<PageRef>> {
        let Some(page) = self.scratch.memo.find(id) else {
            return Ok(None);
        };
        let slot = self.scratch.memo.slot_mut(page);
        if mode == Mode::X && slot.guard.mode() == Mode::U {
            slot.guard.upgrade();
        }
        assert!(
            slot.guard.mode().covers(mode),
            "page {id} is held in a weaker mode than {mode:?}"
        );
        slot.uses += 1;
        Ok(Some(page))
    }

    fn latched(&mut self, guard: PageGuard<'a>) -> PageRef {
        self.scratch.memo.push(guard, false)
    }

    /// The page that the last `WouldBlock` of this mtr was about, if it was about a page's absence.
    pub fn missing(&self) -> Option<PageId> {
        self.missing
    }

    /// After `WouldBlock` (T4): releases every latch and brings the missing page in; or, if a latch
    /// was taken, lets its holder go on. The caller then restarts its descent in this same mtr.
    ///
    /// Panics if a page was modified: restarts happen before the first change.
    ///
    /// Errors: as `get`; `WouldBlock` again in a nested mtr whose outer one holds latches.
    pub fn restart(&mut self) -> Result<()> {
        assert!(!self.modified, "a modified mini-transaction cannot restart");
        self.scratch.memo.release_all();
        match self.missing.take() {
            _ if self.outer_holds => Err(Error::WouldBlock),
            Some(id) => self.fetch_anchored(id),
            None => {
                std::thread::yield_now();
                Ok(())
            }
        }
    }

    /// Brings `id` into the pool. The mtr must hold no latch.
    ///
    /// Errors: as `get`; `WouldBlock` if latches are held.
    pub fn prefetch(&mut self, id: PageId) -> Result<()> {
        if self.ctx.pool.find_ready(id)?.is_some() {
            return Ok(());
        }
        if self.holds_latches() {
            self.missing = Some(id);
            return Err(Error::WouldBlock);
        }
        self.fetch_anchored(id)
    }

    /// Brings `id` in and keeps it to the end of the mtr. Kept only until it is latched, two pages of
    /// one descent could evict each other for ever in a pool whose other pages are all dirty.
    fn fetch_anchored(&mut self, id: PageId) -> Result<()> {
        let pin = match self.ctx.pool.fetch(id) {
            // What others keep in the same way may be what fills the pool.
            Err(Error::BufferPoolFull) if !self.anchors.is_empty() => {
                self.anchors.clear();
                self.ctx.pool.fetch(id)?
            }
            fetched => fetched?,
        };
        let most = ANCHORS_MAX.min(self.ctx.pool.frame_count() / ANCHORS_SHARE);
        if self.anchors.len() >= most {
            self.anchors.remove(0);
        }
        self.anchors.push(pin);
        Ok(())
    }

    /// Raises a U latch to X, waiting for readers to leave. X stays X.
    pub fn upgrade(&mut self, page: PageRef) {
        let guard = &mut self.scratch.memo.slot_mut(page).guard;
        assert!(guard.mode() != Mode::S, "S cannot be raised to X");
        if guard.mode() == Mode::U {
            guard.upgrade();
        }
    }

    /// Gives one `get` of an unmodified page back; the latch goes with the last one.
    pub fn release(&mut self, page: PageRef) {
        self.scratch.memo.release(page);
    }

    /// Now, for `release_from`.
    pub fn savepoint(&self) -> Savepoint {
        self.scratch.memo.savepoint()
    }

    /// Releases the pages latched since `since` that are unmodified.
    pub fn release_from(&mut self, since: Savepoint) {
        self.scratch.memo.release_from(since);
    }

    /// The page's bytes.
    #[inline]
    pub fn view(&self, page: PageRef) -> &[u8] {
        self.scratch.memo.slot(page).guard.bytes()
    }

    /// True after `note_checked`, until the page leaves the pool.
    #[inline]
    pub fn is_checked(&self, page: PageRef) -> bool {
        self.scratch.memo.slot(page).guard.is_checked()
    }

    /// What need be looked at only once after a page was read was looked at.
    pub fn note_checked(&self, page: PageRef) {
        self.scratch.memo.slot(page).guard.note_checked();
    }

    /// Which page a handle names.
    pub fn page_id(&self, page: PageRef) -> PageId {
        self.scratch.memo.slot(page).guard.id()
    }

    /// The mode in which a page is latched.
    pub fn mode(&self, page: PageRef) -> Mode {
        self.scratch.memo.slot(page).guard.mode()
    }

    /// The handle of `id` if the mtr holds it. Not a use of its own: do not release it.
    pub fn held(&self, id: PageId) -> Option<PageRef> {
        self.scratch.memo.find(id)
    }

    /// True if the mtr, or the one around it, holds a page latch.
    pub fn holds_latches(&self) -> bool {
        self.outer_holds || self.scratch.memo.held() > 0
    }

    /// True if a page was changed.
    pub fn is_modified(&self) -> bool {
        self.modified
    }

    /// Bytes of the budget that neither records nor nested mtrs have used.
    pub fn log_bytes_left(&self) -> usize {
        self.credit.get().saturating_sub(self.scratch.records.len())
    }

    pub(super) fn credit(&self) -> usize {
        self.credit.get()
    }

    pub(super) fn frames(&self) -> &FrameCredit<'a> {
        &self.frames
    }
}

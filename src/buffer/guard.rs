//! Pins and page guards: the only way to the bytes of a frame (P1).

use std::mem::ManuallyDrop;

use super::frame::{FLAG_CHECKED, FLAG_FREED, FLAG_FRESH, FLAG_POISONED, Frame, WriteState};
use super::pool::Pool;
use crate::format::fil;
use crate::os::planted;
use crate::sync::atomic::Ordering;
use crate::sync::{Rank, order};
use crate::words::{Lsn, PageId, Result};

pub use crate::sync::Mode;

impl Mode {
    /// Shared: reads.
    pub const S: Mode = Mode::Shared;
    /// Update: header fields that readers never look at; admits S.
    pub const U: Mode = Mode::Update;
    /// Exclusive: changes.
    pub const X: Mode = Mode::Exclusive;

    /// True if holding `self` allows all that `wanted` allows.
    pub fn covers(self, wanted: Mode) -> bool {
        self >= wanted
    }
}

/// The bytes that may be changed under U: PAGE_MAX_TRX_ID, PAGE_ROOT_AUTO_INC (P2).
pub const UPDATE_RANGE: std::ops::Range<usize> = 56..64;

/// Names the content of a page at a time: while the page has this stamp, its bytes are the same, but
/// for those that a holder of U may change. Each X latch ends it, reading and creating included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    frame: u32,
    version: u64,
}

/// A page kept in the pool, not latched.
pub struct Pin<'p> {
    pool: &'p Pool,
    index: u32,
}

impl<'p> Pin<'p> {
    /// Takes over a pin that was counted on frame `index`.
    pub(super) fn adopt(pool: &'p Pool, index: u32) -> Pin<'p> {
        Pin { pool, index }
    }

    pub(super) fn frame(&self) -> &'p Frame {
        self.pool.frame(self.index)
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Which page is kept.
    pub fn id(&self) -> PageId {
        self.frame().id()
    }

    /// The stamp now; it may be another one by the time the page is latched.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            frame: self.index,
            version: self.frame().latch.version(),
        }
    }

    /// Waits for the page's latch. The page's content must be there (`Pool::find_ready`, `fetch`).
    ///
    /// Errors: `Stopped` for a page that a panic left half-changed.
    #[track_caller]
    pub fn latch(self, mode: Mode, rank: Rank) -> Result<PageGuard<'p>> {
        self.frame().latch.lock(mode, rank);
        self.latched(mode, rank)
    }

    /// Latches the page if that needs no wait; `None` otherwise, the pin is then gone.
    ///
    /// Errors: as `latch`.
    pub fn try_latch(self, mode: Mode, rank: Rank) -> Result<Option<PageGuard<'p>>> {
        match self.frame().latch.try_lock(mode, rank) {
            true => self.latched(mode, rank).map(Some),
            false => Ok(None),
        }
    }

    /// Waits for X as `rank` outside the latch order, for a page that was just allocated: whoever
    /// still latches it is a late reader or the cleaner, and waits for nothing meanwhile.
    pub(super) fn latch_new(self, rank: Rank) -> Result<PageGuard<'p>> {
        self.frame().latch.lock(Mode::X, Rank::None);
        order::acquired(rank);
        self.latched(Mode::X, rank)
    }

    fn latched(self, mode: Mode, rank: Rank) -> Result<PageGuard<'p>> {
        let guard = PageGuard::adopt(self, mode, rank);
        match guard.frame().has_flag(FLAG_POISONED) {
            true => Err(guard.pin.pool.stopped_error()),
            false => Ok(guard),
        }
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.pool.unpin(self.index);
    }
}

/// A latched page: `&[u8]` in every mode, `&mut [u8]` under X.
pub struct PageGuard<'p> {
    pin: ManuallyDrop<Pin<'p>>,
    mode: Mode,
    rank: Rank,
}

impl<'p> PageGuard<'p> {
    /// Takes over a latch of `mode` and `rank` on the pinned frame.
    pub(super) fn adopt(pin: Pin<'p>, mode: Mode, rank: Rank) -> PageGuard<'p> {
        PageGuard {
            pin: ManuallyDrop::new(pin),
            mode,
            rank,
        }
    }

    pub(super) fn frame(&self) -> &'p Frame {
        self.pin.frame()
    }

    pub(super) fn pool(&self) -> &'p Pool {
        self.pin.pool
    }

    /// Number of the frame.
    pub(super) fn index(&self) -> u32 {
        self.pin.index
    }

    /// Which page this is.
    pub fn id(&self) -> PageId {
        self.frame().id()
    }

    /// The latched mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The stamp that the page had when this latch was taken.
    pub fn stamp_before(&self) -> Stamp {
        self.stamp(|version, own| version - own)
    }

    /// The stamp that the page will have when this latch is given back.
    pub fn stamp_after(&self) -> Stamp {
        self.stamp(|version, own| version + own)
    }

    /// `own`: X bumps the version once when it is taken and once when it is given back.
    fn stamp(&self, step: impl FnOnce(u64, u64) -> u64) -> Stamp {
        let version = self.frame().latch.version();
        Stamp {
            frame: self.index(),
            version: step(version, u64::from(self.mode == Mode::X)),
        }
    }

    /// The page's bytes, physical size.
    ///
    /// Under S a holder of U may change bytes `UPDATE_RANGE` and, at its commit, the page LSN:
    /// readers under S do not look there (P2).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let len = self.pin.pool.page_bytes(self.index());
        // SAFETY: the frame's memory is mapped as long as the pool lives, which the pin borrows. The
        // latch excludes X, so no `&mut` to these bytes exists; the bytes that a U holder changes
        // through `write_under_update` and `stamp_lsn` are never read under S.
        unsafe { std::slice::from_raw_parts(self.pin.pool.frame_ptr(self.index()).as_ptr(), len) }
    }

    /// The page's bytes to change. Panics unless X is held.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(
            self.mode == Mode::X,
            "page {} is changed under {:?}",
            self.id(),
            self.mode
        );
        let len = self.pin.pool.page_bytes(self.index());
        // SAFETY: as in `bytes`; X excludes every other guard of the page, and `&mut self` every
        // other borrow through this one.
        unsafe {
            std::slice::from_raw_parts_mut(self.pin.pool.frame_ptr(self.index()).as_ptr(), len)
        }
    }

    /// Changes bytes inside `UPDATE_RANGE` under U or X. Panics for other bytes or under S.
    pub fn write_under_update(&mut self, at: usize, bytes: &[u8]) {
        assert!(
            at >= UPDATE_RANGE.start && at + bytes.len() <= UPDATE_RANGE.end,
            "bytes {at}..{} of page {} are changed under {:?}",
            at + bytes.len(),
            self.id(),
            self.mode
        );
        self.write_raw(at, bytes);
    }

    fn write_raw(&mut self, at: usize, bytes: &[u8]) {
        assert!(self.mode >= Mode::U && at + bytes.len() <= fil::HEADER_BYTES.max(64));
        let page = self.pin.pool.frame_ptr(self.index()).as_ptr();
        // SAFETY: the range lies in the first 64 bytes of the frame, which is larger. U excludes
        // other U, X and the flush copy; holders of S never read these bytes (P2).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), page.add(at), bytes.len()) };
    }

    /// Gives the latch back and keeps the page in the pool.
    pub fn unlatch(self) -> Pin<'p> {
        let mut guard = ManuallyDrop::new(self);
        guard.frame().latch.unlock(guard.mode, guard.rank);
        // SAFETY: `guard` is never dropped, so the pin is taken once.
        unsafe { ManuallyDrop::take(&mut guard.pin) }
    }

    /// U → X: waits until the readers have left.
    pub fn upgrade(&mut self) {
        assert!(self.mode == Mode::U, "only U is raised to X");
        self.frame().latch.upgrade(self.rank);
        self.mode = Mode::X;
    }

    /// Publishes the changes of the mini-transaction `start..end` on this page: stamps the page LSN
    /// and enters the flush list. Needs U or X; called between append and unlatch.
    pub fn publish(&mut self, start: Lsn, end: Lsn) {
        if !planted("page.lsn_not_stamped") {
            self.write_raw(fil::OFF_LSN, &end.0.to_be_bytes());
        }
        if !planted("page.not_listed") {
            self.pin.pool.note_dirty(self.index(), start);
        }
    }

    /// Publishes changes that are not logged (temporary tablespace): to be written before eviction.
    pub fn publish_unlogged(&mut self) {
        assert!(self.mode >= Mode::U);
        self.pin
            .pool
            .note_dirty(self.index(), super::flush_list::UNLOGGED);
    }

    /// The page was freed by the mini-transaction that commits now.
    pub fn note_freed(&mut self) {
        self.frame().set_flag(FLAG_FREED);
    }

    /// The page is initialised by this mini-transaction, X is held.
    pub fn note_created(&mut self) {
        self.frame().clear_flag(FLAG_FREED);
        self.frame().set_flag(FLAG_FRESH);
    }

    /// The marks that `note_freed` and `note_created` set, for `set_allocation_flags`.
    pub fn allocation_flags(&self) -> u8 {
        self.frame().flags.load(Ordering::Acquire) & (FLAG_FREED | FLAG_FRESH)
    }

    /// Takes `note_freed` and `note_created` back, X is held.
    pub fn set_allocation_flags(&mut self, flags: u8) {
        for flag in [FLAG_FREED, FLAG_FRESH] {
            match flags & flag {
                0 => self.frame().clear_flag(flag),
                _ => self.frame().set_flag(flag),
            }
        }
    }

    /// True if the file lacks changes of the page.
    pub fn is_dirty(&self) -> bool {
        self.frame().write_state() != WriteState::Clean
    }

    /// Takes back what was written under U: from a copy of the whole page.
    pub fn restore_under_update(&mut self, copy: &[u8]) {
        self.write_raw(UPDATE_RANGE.start, &copy[UPDATE_RANGE]);
    }

    /// True after `note_checked`, until the page leaves the pool.
    pub fn is_checked(&self) -> bool {
        self.frame().has_flag(FLAG_CHECKED)
    }

    /// What need be looked at only once after a page was read was looked at.
    pub fn note_checked(&self) {
        self.frame().set_flag(FLAG_CHECKED);
    }

    /// The bytes hold changes that no log record tells: nobody may read them again (C4).
    pub fn poison(&mut self) {
        self.frame().set_flag(FLAG_POISONED);
    }
}

impl Drop for PageGuard<'_> {
    fn drop(&mut self) {
        self.frame().latch.unlock(self.mode, self.rank);
        // SAFETY: `pin` is dropped here and nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.pin) };
    }
}

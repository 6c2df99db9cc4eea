//! Growing and shrinking a pool that is in use.
//!
//! A pool grows by memory for frames behind those that it has. It shrinks from that end: the frames
//! behind the new limit are not handed out any more; free ones go out of use at once; a page in one of
//! the others moves to a frame before the limit, for which the coldest pages go as they always do; at
//! the end the memory is given back. A page that somebody has pinned, or that is being written, is
//! waited for.
//!
//! A page moves while its frame is OWNED: nobody has it pinned, so nobody latches, changes or writes
//! it, and who looks for it finds nothing until it is at its new place. A dirty one stays dirty.
//!
//! Descriptors are kept: their latches' versions must never come a second time (`Stamp`).

use std::time::{Duration, Instant};

use super::frame::{Frame, Load, NO_PAGE, WriteState};
use super::guard::Mode;
use super::lru::HOT;
use super::pool::Pool;
use super::supply::Need;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, Rank, ReadGuard, RwLock};
use crate::words::{Error, Result};

/// How long shrinking may stand still before it is given up.
const PATIENCE: Duration = Duration::from_secs(20);
/// Length of a sleep when every page left is in use.
const SLEEP: Duration = Duration::from_millis(2);
/// Frames between two looks at whether to go on.
const FRAMES_PER_LOOK: u32 = 256;

/// One resizing at a time, and how far it is.
pub(super) struct Resizer {
    busy: Mutex<()>,
    /// Read by who looks at frame after frame and must see each page.
    moving: RwLock<()>,
    /// Frames to empty, and those that are; 0 while nobody shrinks the pool.
    wanted: AtomicUsize,
    emptied: AtomicUsize,
    /// The pool's size as it was asked for.
    bytes: AtomicUsize,
}

impl Resizer {
    pub(super) fn new(bytes: usize) -> Resizer {
        Resizer {
            // Both outside the order: taken with no latch held.
            busy: Mutex::new(Rank::None, ()),
            moving: RwLock::new(Rank::None, ()),
            wanted: AtomicUsize::new(0),
            emptied: AtomicUsize::new(0),
            bytes: AtomicUsize::new(bytes),
        }
    }

    /// No page moves to another frame until the result is dropped.
    pub(super) fn hold_still(&self) -> ReadGuard<'_, ()> {
        self.moving.read()
    }

    fn note(&self, wanted: usize, emptied: usize) {
        // Relaxed: shown to people only.
        self.wanted.store(wanted, Ordering::Relaxed);
        self.emptied.store(emptied, Ordering::Relaxed);
    }
}

impl Pool {
    /// Its size in bytes, as it was asked for.
    pub fn bytes(&self) -> usize {
        self.resizer.bytes.load(Ordering::Relaxed)
    }

    /// Largest size in bytes that `resize` takes.
    pub fn bytes_max(&self) -> usize {
        self.config.bytes_max
    }

    /// Frames that a shrinking pool has emptied, of how many; `None` while nobody shrinks it.
    pub fn shrink_progress(&self) -> Option<(usize, usize)> {
        let wanted = self.resizer.wanted.load(Ordering::Relaxed);
        (wanted > 0).then(|| (self.resizer.emptied.load(Ordering::Relaxed), wanted))
    }

    /// Makes the pool `bytes` large while it is in use. Waits, when it shrinks, for pages that are in
    /// use; `go_on` is asked now and then. Call it with no latch held.
    ///
    /// Errors: `Invalid` for a size that cannot be had; `Busy` if the pool is being resized already, or
    /// if pages stay in use; `Interrupted` if `go_on` says no; `Stopped`; what writing pages gives. The
    /// pool has its old size then.
    pub fn resize(&self, bytes: usize, go_on: &dyn Fn() -> bool) -> Result<()> {
        if bytes > self.config.bytes_max {
            return Err(Error::invalid(format!(
                "innodb_buffer_pool_size={bytes}: at most {} until restart, as \
                 innodb_buffer_pool_size_max and the memory of the machine say",
                self.config.bytes_max
            )));
        }
        let frame_count = self.config.frame_count(bytes)?;
        let Some(_busy) = self.resizer.busy.try_lock() else {
            let why = "innodb_buffer_pool_size is being changed already";
            return Err(Error::Busy(why.into()));
        };
        self.check_running()?;
        match frame_count >= self.frame_count() {
            true => self.grow(frame_count)?,
            false => self.shrink(frame_count as u32, go_on)?,
        }
        self.resizer.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn grow(&self, frame_count: usize) -> Result<()> {
        let memory = self.region.commit(frame_count);
        let memory = memory.and_then(|()| self.frames.commit(frame_count));
        let memory = memory.and_then(|()| self.spots.commit(frame_count));
        memory
            .and_then(|()| self.table.grow(&self.frames, frame_count))
            .map_err(|_| self.config.too_large(frame_count * self.page_size()))?;
        self.lru.set_limit(&self.frames, frame_count as u32);
        self.frame_available.raise();
        Ok(())
    }

    fn shrink(&self, frame_count: u32, go_on: &dyn Fn() -> bool) -> Result<()> {
        let before = self.lru.set_limit(&self.frames, frame_count);
        let emptied = self.empty_behind(frame_count, go_on);
        self.resizer.note(0, 0);
        if let Err(error) = emptied {
            self.lru.set_limit(&self.frames, before);
            self.lru.lock().take_withdrawn_back(&self.frames);
            self.frame_available.raise();
            return Err(error);
        }
        let used = {
            let mut lists = self.lru.lock();
            let used = lists.fresh().max(frame_count);
            lists.forget_withdrawn(&self.frames);
            used
        };
        for at in frame_count..used {
            self.end_stamps(self.frame(at));
        }
        self.region.give_back(frame_count as usize, used as usize);
        Ok(())
    }

    /// Goes over the frames behind the limit until none of them is in use.
    fn empty_behind(&self, limit: u32, go_on: &dyn Fn() -> bool) -> Result<()> {
        let used = self.lru.lock().fresh();
        let wanted = used.saturating_sub(limit) as usize;
        let (mut fewest, mut since) = (usize::MAX, Instant::now());
        loop {
            self.check_running()?;
            let left = {
                let mut lists = self.lru.lock();
                lists.withdraw(&self.frames);
                lists.behind_limit()
            };
            self.resizer.note(wanted, wanted - left);
            if left == 0 {
                return Ok(());
            }
            if left < fewest {
                (fewest, since) = (left, Instant::now());
            } else if since.elapsed() > PATIENCE {
                return Err(Error::Busy(
                    format!(
                        "the buffer pool keeps its size: {left} pages behind the new end stay in use"
                    )
                    .into(),
                ));
            }
            let mut moved = 0;
            for at in limit..used {
                if (at - limit) % FRAMES_PER_LOOK == 0 {
                    self.resizer
                        .note(wanted, (wanted - left + moved).min(wanted));
                    if !go_on() {
                        return Err(Error::Interrupted);
                    }
                }
                moved += usize::from(self.vacate(at, limit)?);
            }
            if moved == 0 {
                // In use, or on their way to their files.
                self.wake_maker();
                std::thread::sleep(SLEEP);
            }
        }
    }

    /// Empties frame `at` if nobody has its page; true if it did.
    fn vacate(&self, at: u32, limit: u32) -> Result<bool> {
        let frame = self.frame(at);
        if !may_move(frame) {
            return Ok(false);
        }
        let cold = frame.heat.load(Ordering::Relaxed) != HOT;
        if cold && frame.write_state() == WriteState::Clean && self.evict_frames(vec![at]) > 0 {
            return Ok(true);
        }
        let to = self.take_frame_before(limit)?;
        let moved = {
            let _moving = self.resizer.moving.write();
            self.move_page(at, to)
        };
        if !moved {
            self.give_frame_back(to);
        }
        Ok(moved)
    }

    /// A free frame before the limit; waits for one.
    fn take_frame_before(&self, limit: u32) -> Result<u32> {
        let mut need = Need::new(1);
        loop {
            need.look(self);
            match self.take_free(false) {
                Some(at) if at < limit => return Ok(at),
                // Goes out of use.
                Some(at) => self.give_frame_back(at),
                None => self.make_room(&mut need)?,
            }
        }
    }

    /// Moves the page of frame `from` to the owned, empty frame `to`; false if somebody has it.
    fn move_page(&self, from: u32, to: u32) -> bool {
        let (source, target) = (self.frame(from), self.frame(to));
        if !source.try_own() {
            return false;
        }
        // In flight and unsynced pages are known to their batch by their frame.
        let stays = matches!(
            source.write_state(),
            WriteState::InFlight | WriteState::Unsynced
        );
        if source.load() != Load::Ready || stays {
            source.disown(0);
            return false;
        }
        let _section = self.critical("panic while a page was moved");
        let id = source.id();
        let (bytes, source_bytes) = (self.page_bytes(from), self.frame_ptr(from));
        // SAFETY: two frames of the pool, both OWNED by this thread and pinned by nobody, so that no
        // guard of either is there; a page is no larger than a frame.
        unsafe {
            std::ptr::copy_nonoverlapping(
                source_bytes.as_ptr(),
                self.frame_ptr(to).as_ptr(),
                bytes,
            );
        }
        target.take_over(source);
        self.end_stamps(target);
        self.flush_list.hand_over(&self.frames, from, to);
        {
            let shard = self.table.shard(id);
            self.table.unlink(&shard, &self.frames, id, from);
            source.set_id(NO_PAGE);
            target.set_id(id.to_u64());
            self.table.link(&shard, &self.frames, id, to);
        }
        {
            let mut lists = self.lru.lock();
            lists.replace(&self.frames, from, to);
            source.reset();
            lists.add_free(&self.frames, from);
        }
        target.disown(0);
        true
    }

    /// What is in this frame, which nobody has, is something else from here on.
    fn end_stamps(&self, frame: &Frame) {
        let latched = frame.latch.try_lock(Mode::X, Rank::None);
        assert!(latched, "nobody latches a frame that nobody can pin");
        frame.latch.unlock(Mode::X, Rank::None);
    }
}

fn may_move(frame: &Frame) -> bool {
    frame.pins() == Some(0)
        && frame.load() == Load::Ready
        && matches!(frame.write_state(), WriteState::Clean | WriteState::Dirty)
}

//! Bringing a page in: the thread that misses it reads it, others wait on the frame.
//!
//! The reader holds the frame's latch X (outside the latch order: nobody who waits for it holds
//! anything the reader needs) while the frame is LOADING; who must wait for the page waits for S.

use super::frame::Load;
use super::guard::{Mode, PageGuard, Pin};
use super::pool::Pool;
use super::supply::FrameCredit;
use crate::format::checksum::Content;
use crate::format::{checksum, fil};
use crate::os::planted;
use crate::sync::Rank;
use crate::sync::atomic::Ordering;
use crate::words::{Error, Lsn, PageId, Result};

impl Pool {
    /// The page, pinned, read from its file if it is not in the pool. Waits; call it with no latch
    /// held.
    ///
    /// Errors: `Corrupt`, `Io`, `TablespaceMissing`, `BufferPoolFull`, `Stopped`.
    pub fn fetch(&self, id: PageId) -> Result<Pin<'_>> {
        self.advance_tick();
        self.fetch_with(id, || self.take_frame())
    }

    /// The same under latches, for the callers that docs/latch-order.md lists: takes its frame from
    /// the promise.
    pub fn fetch_under_latches(&self, id: PageId, credit: &FrameCredit<'_>) -> Result<Pin<'_>> {
        self.counters
            .reads_under_latches
            .fetch_add(1, Ordering::Relaxed);
        self.fetch_with(id, || self.take_frame_now(credit))
    }

    fn fetch_with(&self, id: PageId, take: impl Fn() -> Result<u32>) -> Result<Pin<'_>> {
        loop {
            self.check_running()?;
            if let Some(pin) = self.pin(id) {
                if let Some(pin) = self.when_loaded(pin) {
                    return Ok(pin);
                }
                // Its reader failed: find out why by reading it ourselves.
                continue;
            }
            let at = take()?;
            match self.enter(id, at, Load::Loading, Rank::None) {
                Ok(guard) => {
                    let pin = self.load(guard)?;
                    self.missed(id);
                    return Ok(pin);
                }
                Err(at) => {
                    self.give_frame_back(at);
                    // It may be on its way out: let the evictor finish.
                    std::thread::yield_now();
                }
            }
        }
    }

    /// Waits until the page is loaded; `None` if its read failed.
    fn when_loaded<'p>(&'p self, pin: Pin<'p>) -> Option<Pin<'p>> {
        let frame = pin.frame();
        if frame.load() == Load::Loading {
            frame.latch.lock(Mode::S, Rank::None);
            frame.latch.unlock(Mode::S, Rank::None);
        }
        if frame.load() != Load::Ready {
            return None;
        }
        self.touch(frame);
        Some(pin)
    }

    /// Fills a LOADING frame that is held alone, for somebody who uses the page.
    fn load<'p>(&'p self, guard: PageGuard<'p>) -> Result<Pin<'p>> {
        let pin = self.load_unused(guard)?;
        self.touch(pin.frame());
        Ok(pin)
    }

    /// The same for nobody in particular.
    pub(super) fn load_unused<'p>(&'p self, guard: PageGuard<'p>) -> Result<Pin<'p>> {
        self.load_from(guard, false)
    }

    /// As `load_unused`. `is_read`: the frame has what the file holds.
    pub(super) fn load_from<'p>(
        &'p self,
        mut guard: PageGuard<'p>,
        is_read: bool,
    ) -> Result<Pin<'p>> {
        let id = guard.id();
        let at = guard.index();
        let _section = self.critical("panic while a page was read");
        self.reached("pool.load");
        let filled = self.fill(id, &mut guard, is_read);
        match filled {
            Ok(oldest) => {
                if let Some(start) = oldest {
                    self.note_dirty(at, start);
                    if let Some(hook) = self.hook.get() {
                        hook.listed(id);
                    }
                }
                self.counters.reads.fetch_add(1, Ordering::Relaxed);
                let mut lists = self.lru.lock();
                lists.add(&self.frames, at);
                drop(lists);
                self.frame(at).set_load(Load::Ready);
                Ok(guard.unlatch())
            }
            Err(error) => {
                self.leave(at);
                self.frame(at).set_load(Load::Failed);
                // The last pin on the frame, this one or a waiter's, frees it.
                drop(guard);
                Err(error)
            }
        }
    }

    /// Reads, verifies, repairs, brings up to date (P4).
    fn fill(&self, id: PageId, guard: &mut PageGuard<'_>, is_read: bool) -> Result<Option<Lsn>> {
        let space = self.spaces.find(id.space)?;
        let page = guard.bytes_mut();
        let hook = self.hook.get();
        if hook.is_some_and(|hook| hook.rebuilds(id)) {
            fil::init(page, id);
        } else {
            if !is_read {
                space.read_page(id.page, page)?;
            }
            if let Err(error) = self.check(id, page, space.flags().flavour()) {
                let copy = hook.and_then(|hook| hook.repair(id, page));
                let sound = copy.filter(|copy| {
                    !planted("doublewrite.no_repair")
                        && copy.len() == page.len()
                        && matches!(
                            checksum::verify(copy, space.flags().flavour(), id),
                            Ok(Content::Written)
                        )
                });
                let Some(copy) = sound else {
                    return Err(error.in_file(&space.path()));
                };
                page.copy_from_slice(&copy);
                self.counters.repaired.fetch_add(1, Ordering::Relaxed);
            }
            space.decode(id.page, page)?;
        }
        match hook {
            Some(hook) => hook.on_read(id, page),
            None => Ok(None),
        }
    }

    fn check(&self, id: PageId, page: &[u8], flavour: checksum::Flavour) -> Result<()> {
        if planted("page.checksum_not_verified") {
            return Ok(());
        }
        match checksum::verify(page, flavour, id)? {
            Content::Written => Ok(()),
            // Valid as bytes, but nobody asks for a page that was never written.
            _ => Err(Error::corrupt(
                id,
                "the page was never written: all bytes are zero",
            )),
        }
    }

    /// A new page: X-latched, content undefined; the pool's old content, if any, is void.
    ///
    /// Errors: `BufferPoolFull`, `Stopped`.
    pub fn create(
        &self,
        id: PageId,
        rank: Rank,
        credit: &FrameCredit<'_>,
    ) -> Result<PageGuard<'_>> {
        loop {
            self.check_running()?;
            if let Some(pin) = self.pin(id) {
                match self.when_loaded(pin) {
                    Some(pin) => return pin.latch_new(rank),
                    None => continue,
                }
            }
            let at = self.take_frame_now(credit)?;
            match self.enter(id, at, Load::Ready, rank) {
                Ok(guard) => {
                    self.counters.created.fetch_add(1, Ordering::Relaxed);
                    self.lru.lock().add(&self.frames, at);
                    self.touch(self.frame(at));
                    return Ok(guard);
                }
                Err(at) => {
                    self.give_frame_back(at);
                    std::thread::yield_now();
                }
            }
        }
    }
}

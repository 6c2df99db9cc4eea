//! Pages that are looked at without a pin or a latch: a descent by guides.

use super::frame::{Frame, Load};
use super::guard::{PageGuard, Pin};
use super::guide::{self, Draft, Sight, Told, Want};
use super::pool::Pool;
use super::spots::{self, KeyHash};
use crate::sync::prefetch::{prefetch_address, prefetch_value};
use crate::words::{PageId, Result};

/// Of a cache line.
const LINE_BYTES: usize = 64;
/// Lines of a record that are asked for.
const LINES_ASKED_FOR: usize = 4;

impl Pool {
    /// Bytes that guides take, and as many as they may for a pool of this size.
    pub fn guide_memory(&self) -> (u64, u64) {
        let guides = &self.guides.guides;
        let one = 8 * (guide::HEAD + 2 * self.guides.children_max) as u64;
        let made = guides.iter().filter(|guide| guide.words.get().is_some());
        let most = guide::guides_of(self.frame_count()).min(guides.len());
        // Those that a larger pool had are not given back.
        let in_use = made.count() as u64 * one;
        (in_use, (most as u64 * one).max(in_use))
    }

    /// The page as it is now, if it is in the pool and nobody changes it. It is not kept there.
    pub fn sight(&self, id: PageId) -> Option<Sight> {
        let frame = self.table.look(&self.frames, id)?;
        self.sight_in(frame, id)
    }

    /// The same for the child that a guide told of.
    #[inline]
    pub fn sight_told(&self, id: PageId, told: &Told) -> Option<Sight> {
        if let Some(sight) = self.sight_in(told.hint, id) {
            return Some(sight);
        }
        let sight = self.sight(id)?;
        self.guides.correct(told, sight.frame);
        Some(sight)
    }

    #[inline]
    fn sight_in(&self, at: u32, id: PageId) -> Option<Sight> {
        let frame = self.frames.get(at as usize)?;
        let version = frame.latch.version();
        let sight = Sight {
            frame: at,
            page: id.to_u64(),
            version,
        };
        // Odd: somebody holds X.
        let there = version & 1 == 0 && self.is_there(frame, &sight);
        there.then_some(sight)
    }

    fn is_there(&self, frame: &Frame, sight: &Sight) -> bool {
        frame.id_word() == sight.page && frame.load() == Load::Ready
    }

    /// True if the page has not changed, nor left its frame, since it was seen: what was read of it
    /// between is true now.
    ///
    /// A page that leaves its frame keeps the frame's version until another page comes, so both count.
    /// Who latched another page before asks about all changes that were made before those to that page.
    #[inline]
    pub fn still(&self, sight: &Sight) -> bool {
        let frame = self.frame(sight.frame);
        frame.id_word() == sight.page && frame.latch.version() == sight.version
    }

    /// What the page's guide says; counts as a use of the page. `None`: it has no guide, or that does
    /// not tell.
    #[inline]
    pub fn ask(&self, at: &Sight, want: &Want<'_>) -> Option<Told> {
        let frame = self.frame(at.frame);
        let told = self.guides.ask(frame, at, want)?;
        self.touch(frame);
        Some(told)
    }

    /// As `find_ready` for the child that a guide told of.
    ///
    /// Errors: `Stopped`.
    #[inline]
    pub fn find_told(&self, id: PageId, told: &Told) -> Result<Option<Pin<'_>>> {
        self.check_running()?;
        if let Some(frame) = self.frames.get(told.hint as usize) {
            self.expect_search(told.hint);
            let word = id.to_u64();
            if frame.id_word() == word && frame.try_pin() {
                let pin = Pin::adopt(self, told.hint);
                if frame.id_word() == word && frame.load() == Load::Ready {
                    self.touch(frame);
                    return Ok(Some(pin));
                }
            }
        }
        let found = self.find_ready(id)?;
        if let Some(pin) = &found {
            self.guides.correct(told, pin.index());
        }
        Ok(found)
    }

    /// Asks for what the search for a key in the child that a guide told of will look at: its frame, and the
    /// record, if the spots that are there now tell where it stands.
    #[inline]
    pub fn expect_record(&self, told: &Told, hash: KeyHash) {
        let Some(frame) = self.frames.get(told.hint as usize) else {
            return;
        };
        prefetch_address(self.spots.address(told.hint, hash));
        prefetch_value(frame);
        self.expect_search(told.hint);
        let version = frame.latch.version();
        // Not believed: the first one that may be it.
        if let Some(place) = self.spots.find(told.hint, version, hash, |_| true) {
            let start = self.frame_ptr(told.hint).as_ptr().cast_const();
            for line in 0..LINES_ASKED_FOR {
                prefetch_address(start.wrapping_add(place + line * LINE_BYTES));
            }
        }
    }

    /// Asks for what a search in the frame's page looks at first: page header and directory.
    #[inline]
    fn expect_search(&self, at: u32) {
        let start = self.frame_ptr(at).as_ptr().cast_const();
        let last = self.config.page_size - LINE_BYTES;
        for line in [0, LINE_BYTES, last] {
            prefetch_address(start.wrapping_add(line));
        }
    }
}

impl PageGuard<'_> {
    /// The page as it is.
    pub fn sight(&self) -> Sight {
        Sight {
            frame: self.index(),
            page: self.id().to_u64(),
            version: self.frame().latch.version(),
        }
    }

    /// Where on this leaf, which is latched S, stands the record that `is_it` accepts, if its spots tell.
    #[inline]
    pub fn spot(&self, hash: KeyHash, is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        let version = self.frame().latch.version();
        self.pool().spots.find(self.index(), version, hash, is_it)
    }

    /// True if this leaf of `count` records, which is latched S, was often searched as it is now. The
    /// caller then writes its spots before he gives the latch back.
    pub fn wants_spots(&self, count: usize) -> bool {
        let version = self.frame().latch.version();
        count <= spots::RECORDS_MAX && self.pool().spots.is_wanted(self.index(), version)
    }

    /// Writes the spots that are wanted.
    pub fn write_spots(&self, records: impl Iterator<Item = (KeyHash, usize)>) {
        let version = self.frame().latch.version();
        self.pool().spots.write(self.index(), version, records);
    }

    /// True if the page, an inner one of a tree, was often visited without a guide.
    pub fn wants_guide(&self) -> bool {
        self.pool().guides.is_wanted(self.frame(), &self.sight())
    }

    /// Makes the page's guide, if there is room. `draft` says what the page says.
    pub fn write_guide(&self, draft: &Draft) {
        let (pool, sight) = (self.pool(), self.sight());
        let frames = pool.frame_count();
        pool.guides.write(self.frame(), &sight, draft, frames);
    }
}

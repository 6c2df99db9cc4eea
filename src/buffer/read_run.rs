//! Bringing in pages that stand side by side in their file with one read: for recovery, which needs all
//! that changed. A device gives neighbours several times as fast as one page after the other.

use super::frame::Load;
use super::guard::PageGuard;
use super::pool::Pool;
use crate::sync::Rank;
use crate::words::{Error, PageId, Result};

impl Pool {
    /// Brings in neighbouring pages of one tablespace, as many from the front as there are frames for
    /// without waiting, at least one. Tells `each` of those that were read what became of them; those
    /// that are in the pool are passed over. Returns the number of pages dealt with. Waits for the first
    /// frame; call it with no latch held.
    ///
    /// Errors: `BufferPoolFull`, `Stopped`.
    pub fn read_run(&self, run: &[PageId], each: impl FnMut(PageId, Result<()>)) -> Result<usize> {
        self.read_run_into(run, || self.take_free(false), || self.take_frame(), each)
    }

    /// As `read_run`, into frames that nobody will miss: none is waited for, nothing is evicted. 0 if
    /// there is none.
    ///
    /// Errors: `Stopped`.
    pub(super) fn read_run_to_spare(
        &self,
        run: &[PageId],
        each: impl FnMut(PageId, Result<()>),
    ) -> Result<usize> {
        let spare = || self.take_spare();
        let done = self.read_run_into(run, spare, || Err(Error::BufferPoolFull), each);
        match done {
            Err(Error::BufferPoolFull) => Ok(0),
            done => done,
        }
    }

    fn read_run_into(
        &self,
        run: &[PageId],
        take: impl Fn() -> Option<u32>,
        take_first: impl Fn() -> Result<u32>,
        mut each: impl FnMut(PageId, Result<()>),
    ) -> Result<usize> {
        self.check_running()?;
        self.advance_tick();
        let _section = self.critical("panic while pages were read");
        let mut guards: Vec<PageGuard<'_>> = Vec::with_capacity(run.len());
        let mut dealt_with = 0;
        for &id in run {
            if self.contains(id) {
                dealt_with += 1;
                continue;
            }
            let at = match take() {
                Some(at) => at,
                // Others may wait for the pages that are entered already.
                None if !guards.is_empty() || dealt_with > 0 => break,
                None => take_first()?,
            };
            dealt_with += 1;
            match self.enter(id, at, Load::Loading, Rank::None) {
                Ok(guard) => guards.push(guard),
                Err(at) => self.give_frame_back(at),
            }
        }
        let mut read = Vec::with_capacity(guards.len());
        let mut rest = &mut guards[..];
        while !rest.is_empty() {
            let (part, behind) = rest.split_at_mut(neighbours(rest));
            let is_read = self.read_neighbours(part);
            read.resize(read.len() + part.len(), is_read);
            rest = behind;
        }
        for (guard, is_read) in guards.into_iter().zip(read) {
            let id = guard.id();
            each(id, self.load_from(guard, is_read).map(drop));
        }
        Ok(dealt_with)
    }

    /// False if they are to be read one by one: one of them may be damaged, or rebuilt from the log
    /// behind the end of its file.
    fn read_neighbours(&self, guards: &mut [PageGuard<'_>]) -> bool {
        let first = guards[0].id();
        if guards.len() == 1 {
            return false;
        }
        let Ok(space) = self.spaces.find(first.space) else {
            return false;
        };
        let mut pages: Vec<&mut [u8]> = guards.iter_mut().map(PageGuard::bytes_mut).collect();
        space.read_pages(first.page, &mut pages).is_ok()
    }
}

/// How many pages from the front stand side by side.
fn neighbours(guards: &[PageGuard<'_>]) -> usize {
    let first = guards[0].id();
    let follow = |(guard, number): &(&PageGuard<'_>, u32)| {
        guard.id().space == first.space && guard.id().page.0 == *number
    };
    guards.iter().zip(first.page.0..).take_while(follow).count()
}

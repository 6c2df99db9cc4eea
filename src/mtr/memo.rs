//! What a mini-transaction holds: the latched pages, and what it did to each.

use crate::buffer::PageGuard;
use crate::words::PageId;

/// Handle of a page that an `Mtr` holds: valid for that mtr until released or committed.
///
/// Used after its release it panics: that is a bug of the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRef {
    at: u32,
    serial: u32,
}

/// A moment in an mtr's latching: pages latched later can be released together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Savepoint(u32);

/// A page in the memo.
pub(super) struct Slot<'a> {
    pub(super) guard: PageGuard<'a>,
    serial: u32,
    /// How many `get`s returned this slot and were not released.
    pub(super) uses: u32,
    /// Bytes were changed (and logged, if the tablespace is logged).
    pub(super) modified: bool,
}

/// Pages that a memo holds without memory of its own: those of a reader.
const NEAR: usize = 3;

/// The pages of an mtr. The place of a released page is used again.
#[derive(Default)]
pub(super) struct Memo<'a> {
    /// The first places …
    near: [Option<Slot<'a>>; NEAR],
    /// … and those that come after them.
    more: Vec<Option<Slot<'a>>>,
    next_serial: u32,
    held: u32,
}

impl<'a> Memo<'a> {
    /// An empty memo that takes over the memory of `spare`.
    pub(super) fn reusing(spare: Memo<'static>) -> Memo<'a> {
        Memo {
            more: recycle(spare.more),
            ..Memo::default()
        }
    }

    /// The memory, for the next mtr. Whatever is still latched is released, newest first.
    pub(super) fn into_spare(mut self) -> Memo<'static> {
        self.release_all();
        Memo {
            more: recycle(std::mem::take(&mut self.more)),
            ..Memo::default()
        }
    }

    #[inline]
    fn at(&self, at: usize) -> Option<&Slot<'a>> {
        match self.near.get(at) {
            Some(place) => place.as_ref(),
            None => self.more.get(at - NEAR)?.as_ref(),
        }
    }

    #[inline]
    fn at_mut(&mut self, at: usize) -> Option<&mut Slot<'a>> {
        match at < NEAR {
            true => self.near[at].as_mut(),
            false => self.more.get_mut(at - NEAR)?.as_mut(),
        }
    }

    pub(super) fn find(&self, id: PageId) -> Option<PageRef> {
        // Newest first: a page is mostly asked for again soon after.
        if self.held == 0 {
            return None;
        }
        let is_it = |slot: &Option<Slot<'a>>| slot.as_ref().is_some_and(|s| s.guard.id() == id);
        let at = match self.more.iter().rposition(is_it) {
            Some(at) => at + NEAR,
            None => self.near.iter().rposition(is_it)?,
        };
        let slot = self.at(at)?;
        Some(PageRef {
            at: at as u32,
            serial: slot.serial,
        })
    }

    pub(super) fn push(&mut self, guard: PageGuard<'a>, modified: bool) -> PageRef {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.held += 1;
        let slot = Some(Slot {
            guard,
            serial,
            uses: 1,
            modified,
        });
        let at = if let Some(at) = self.near.iter().position(Option::is_none) {
            self.near[at] = slot;
            at
        } else if let Some(at) = self.more.iter().position(Option::is_none) {
            self.more[at] = slot;
            at + NEAR
        } else {
            self.more.push(slot);
            self.more.len() - 1 + NEAR
        };
        PageRef {
            at: at as u32,
            serial,
        }
    }

    #[inline]
    pub(super) fn slot(&self, page: PageRef) -> &Slot<'a> {
        match self.at(page.at as usize) {
            Some(slot) if slot.serial == page.serial => slot,
            _ => panic!("{page:?} is not held by this mini-transaction"),
        }
    }

    pub(super) fn slot_mut(&mut self, page: PageRef) -> &mut Slot<'a> {
        match self.at_mut(page.at as usize) {
            Some(slot) if slot.serial == page.serial => slot,
            _ => panic!("{page:?} is not held by this mini-transaction"),
        }
    }

    /// The slot, unless the page was released.
    pub(super) fn get_mut(&mut self, page: PageRef) -> Option<&mut Slot<'a>> {
        let slot = self.at_mut(page.at as usize)?;
        (slot.serial == page.serial).then_some(slot)
    }

    /// Drops one use; the latch goes with the last one. Panics on a modified page (M5).
    pub(super) fn release(&mut self, page: PageRef) {
        let slot = self.slot_mut(page);
        slot.uses -= 1;
        if slot.uses == 0 {
            assert!(!slot.modified, "a modified page is released before commit");
            let at = page.at as usize;
            match at < NEAR {
                true => self.near[at] = None,
                false => self.more[at - NEAR] = None,
            }
            self.held -= 1;
        }
    }

    pub(super) fn savepoint(&self) -> Savepoint {
        Savepoint(self.next_serial)
    }

    /// Releases the unmodified pages latched since `since`, whatever their use count.
    pub(super) fn release_from(&mut self, since: Savepoint) {
        let places = self.near.iter_mut().chain(&mut self.more);
        for place in places.rev() {
            if place
                .as_ref()
                .is_some_and(|slot| slot.serial >= since.0 && !slot.modified)
            {
                *place = None;
                self.held -= 1;
            }
        }
    }

    /// Latches held.
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    pub(super) fn release_all(&mut self) {
        if self.held > 0 {
            while self.more.pop().is_some() {}
            self.near.iter_mut().rev().for_each(|place| *place = None);
        }
        self.held = 0;
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot<'a>> {
        self.near.iter_mut().chain(&mut self.more).flatten()
    }
}

/// Hands the memory of an emptied vector on under another lifetime: collecting in place keeps the
/// allocation.
fn recycle<'a, 'b>(mut slots: Vec<Option<Slot<'a>>>) -> Vec<Option<Slot<'b>>> {
    slots.clear();
    slots.into_iter().map(|_| None).collect()
}

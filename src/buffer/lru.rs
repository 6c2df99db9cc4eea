//! Replacement: which frame goes when room is needed.
//!
//! Two lists, young and old, as InnoDB's midpoint LRU: a page enters at the head of *old*, which is
//! kept at 3/8 of all pages, and leaves from its tail. The difference: a hit moves nothing. It only
//! raises the frame's heat (one relaxed store, at most twice); the evictor, when it meets a hot
//! frame at the tail of old, moves it to the head of young, and a frame that sinks from young to
//! old while hot gets a second round. So a hit takes no latch, and a scan, whose pages are used
//! for less than `old_time` after their first use, never becomes hot.

use super::frame::{Frame, Place};
use super::list::{List, LruLinks};
use crate::sync::atomic::Ordering;
use crate::sync::{Mutex, MutexGuard, Rank};

pub(super) const USED: u8 = 1;
pub(super) const HOT: u8 = 2;
/// Frames that sink from young to old in one step at most.
const SINK_MAX: usize = 64;

pub(super) struct Lru {
    lists: Mutex<Lists>,
}

pub(super) struct Lists {
    pub(super) free: List<LruLinks>,
    young: List<LruLinks>,
    old: List<LruLinks>,
    /// Frames of the free list that are promised to running mini-transactions.
    pub(super) promised: usize,
}

/// Counts for status.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LruCounts {
    pub(super) free: usize,
    pub(super) young: usize,
    pub(super) old: usize,
}

impl Lru {
    /// All of `frames` start in the free list.
    pub(super) fn new(frames: &[Frame]) -> Lru {
        let mut free = List::new();
        for at in 0..frames.len() as u32 {
            free.push_tail(frames, at);
            frames[at as usize].set_place(Place::Free);
        }
        Lru {
            lists: Mutex::new(
                Rank::Lru,
                Lists {
                    free,
                    young: List::new(),
                    old: List::new(),
                    promised: 0,
                },
            ),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock()
    }

    pub(super) fn counts(&self) -> LruCounts {
        let lists = self.lock();
        LruCounts {
            free: lists.free.len(),
            young: lists.young.len(),
            old: lists.old.len(),
        }
    }
}

/// A use of a page: the hit path. `tick` is coarse time, `old_ticks` the time after its first use
/// during which further uses say nothing.
#[inline]
pub(super) fn touch(frame: &Frame, tick: u32, old_ticks: u32) {
    match frame.heat.load(Ordering::Relaxed) {
        HOT => {}
        USED => {
            if tick.wrapping_sub(frame.first_use.load(Ordering::Relaxed)) >= old_ticks {
                frame.heat.store(HOT, Ordering::Relaxed);
            }
        }
        _ => {
            // Two first uses at once write nearly the same time: either will do.
            frame.first_use.store(tick, Ordering::Relaxed);
            frame.heat.store(USED, Ordering::Relaxed);
        }
    }
}

impl Lists {
    /// A page came in: it starts at the midpoint.
    pub(super) fn add(&mut self, frames: &[Frame], at: u32) {
        debug_assert_eq!(frames[at as usize].place(), Place::None);
        self.old.push_head(frames, at);
        frames[at as usize].set_place(Place::Old);
        self.rebalance(frames);
    }

    /// Takes a frame out of whatever list it is on.
    pub(super) fn remove(&mut self, frames: &[Frame], at: u32) {
        let frame = &frames[at as usize];
        match frame.place() {
            Place::None => return,
            Place::Free => self.free.remove(frames, at),
            Place::Young => self.young.remove(frames, at),
            Place::Old => self.old.remove(frames, at),
        }
        frame.set_place(Place::None);
    }

    /// Gives an owned, empty frame back.
    pub(super) fn add_free(&mut self, frames: &[Frame], at: u32) {
        debug_assert_eq!(frames[at as usize].place(), Place::None);
        self.free.push_head(frames, at);
        frames[at as usize].set_place(Place::Free);
    }

    /// A free frame; unpromised ones only, unless the caller redeems a promise.
    pub(super) fn take_free(&mut self, frames: &[Frame], redeems: bool) -> Option<u32> {
        if !redeems && self.free.len() <= self.promised {
            return None;
        }
        let at = self.free.pop_head(frames)?;
        frames[at as usize].set_place(Place::None);
        self.promised -= usize::from(redeems && self.promised > 0);
        Some(at)
    }

    /// Frames of the free list that are not promised.
    pub(super) fn free_unpromised(&self) -> usize {
        self.free.len().saturating_sub(self.promised)
    }

    /// Walks at most `depth` frames from the cold end and collects those that `wanted` accepts, at
    /// most `limit`. Hot ones are moved to young on the way.
    pub(super) fn coldest(
        &mut self,
        frames: &[Frame],
        depth: usize,
        limit: usize,
        mut wanted: impl FnMut(&Frame) -> bool,
        found: &mut Vec<u32>,
    ) {
        if limit == 0 {
            return;
        }
        self.walk_cold(frames, depth, |at, frame| {
            if wanted(frame) {
                found.push(at);
            }
            found.len() < limit
        });
    }

    /// Shows at most `depth` frames from the cold end, coldest first, until `see` says false. Hot ones
    /// are moved to young on the way.
    pub(super) fn walk_cold(
        &mut self,
        frames: &[Frame],
        depth: usize,
        mut see: impl FnMut(u32, &Frame) -> bool,
    ) {
        let mut next = self.old.tail();
        let mut looked = 0;
        while let Some(at) = next {
            if looked >= depth {
                return;
            }
            looked += 1;
            next = List::<LruLinks>::prev(frames, at);
            let frame = &frames[at as usize];
            if frame.heat.load(Ordering::Relaxed) == HOT {
                self.make_young(frames, at);
            } else if !see(at, frame) {
                return;
            }
        }
        // All of old is hot, pinned or dirty: look at young as well, coldest first.
        next = self.young.tail();
        while let Some(at) = next {
            if looked >= depth {
                return;
            }
            looked += 1;
            next = List::<LruLinks>::prev(frames, at);
            if !see(at, &frames[at as usize]) {
                return;
            }
        }
    }

    /// The page cannot go for a while: out of the way of those that can.
    pub(super) fn set_aside(&mut self, frames: &[Frame], at: u32) {
        if frames[at as usize].place() == Place::Old {
            self.make_young(frames, at);
        }
    }

    fn make_young(&mut self, frames: &[Frame], at: u32) {
        let frame = &frames[at as usize];
        self.old.remove(frames, at);
        self.young.push_head(frames, at);
        frame.set_place(Place::Young);
        // It must be used again to count as hot when it comes down.
        frame.heat.store(USED, Ordering::Relaxed);
        self.rebalance(frames);
    }

    /// Keeps old at 3/8 of all pages: young's tail sinks, hot ones go round once more.
    fn rebalance(&mut self, frames: &[Frame]) {
        for _ in 0..SINK_MAX {
            let total = self.young.len() + self.old.len();
            if self.old.len() * 8 >= total * 3 {
                return;
            }
            let Some(at) = self.young.tail() else { return };
            let frame = &frames[at as usize];
            self.young.remove(frames, at);
            if frame.heat.load(Ordering::Relaxed) == HOT {
                frame.heat.store(USED, Ordering::Relaxed);
                self.young.push_head(frames, at);
            } else {
                self.old.push_head(frames, at);
                frame.set_place(Place::Old);
            }
        }
    }
}

//! Replacement: which frame goes when room is needed.
//!
//! Two lists, young and old, as InnoDB's midpoint LRU: a page enters at the head of *old*, which is
//! kept at 3/8 of all pages, and leaves from its tail. The difference: a hit moves nothing. It only
//! raises the frame's heat (one relaxed store, at most twice); the evictor, when it meets a hot
//! frame at the tail of old, moves it to the head of young, and a frame that sinks from young to
//! old while hot gets a second round. So a hit takes no latch, and a scan, whose pages are used
//! for less than `old_time` after their first use, never becomes hot.
//!
//! Where pages leave old sooner than that after they came, none could become hot, and young would keep
//! for ever what was hot when the pool filled: the time is then a part of that for which pages stay
//! (`Turn`).

use super::frame::{Frame, Place};
use super::list::{List, LruLinks};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};

pub(super) const USED: u8 = 1;
pub(super) const HOT: u8 = 2;
/// Frames that sink from young to old in one step at most.
const SINK_MAX: usize = 64;

/// Of the time for which a page stays in old, the part after which a use makes it hot, if that is
/// sooner than `old_time`.
const YOUNG_PART: u32 = 2;
/// But at least so many ticks: one access touches a page more than once.
const HOT_AFTER_MIN: u32 = 2;

pub(super) struct Lru {
    lists: Mutex<Lists>,
    /// innodb_old_blocks_time, in ticks.
    old_ticks: AtomicU32,
    /// Ticks after its first use at which a page becomes hot.
    hot_after: AtomicU32,
    /// `Lists::limit`.
    frame_count: AtomicU32,
}

pub(super) struct Lists {
    free: List<LruLinks>,
    /// The first frame that nobody used yet: it and those behind it are free, too, up to `limit`.
    fresh: u32,
    /// Frames of the pool. Those behind it are not handed out any more.
    limit: u32,
    /// Frames behind the limit that went out of use.
    withdrawn: u32,
    young: List<LruLinks>,
    old: List<LruLinks>,
    turn: Turn,
    /// Frames of the free list that are promised to running mini-transactions.
    pub(super) promised: usize,
}

/// While as many pages leave old as are in it: that is how long one stays there.
struct Turn {
    /// The tick at which it began.
    began: u32,
    left: usize,
    /// Ticks of the turn before.
    length: u32,
}

/// Counts for status.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LruCounts {
    pub(super) free: usize,
    pub(super) young: usize,
    pub(super) old: usize,
}

impl Lru {
    /// The first `frame_count` frames are free.
    pub(super) fn new(frame_count: u32, old_ticks: u32) -> Lru {
        Lru {
            lists: Mutex::new(
                Rank::Lru,
                Lists {
                    free: List::new(),
                    fresh: 0,
                    limit: frame_count,
                    withdrawn: 0,
                    young: List::new(),
                    old: List::new(),
                    turn: Turn {
                        began: 0,
                        left: 0,
                        length: u32::MAX,
                    },
                    promised: 0,
                },
            ),
            old_ticks: AtomicU32::new(old_ticks),
            hot_after: AtomicU32::new(old_ticks),
            frame_count: AtomicU32::new(frame_count),
        }
    }

    /// Frames of the pool.
    #[inline]
    pub(super) fn frame_count(&self) -> usize {
        // Relaxed: who shares frames out by it may do so by what was true a moment ago.
        self.frame_count.load(Ordering::Relaxed) as usize
    }

    /// The pool has `frame_count` frames from here on; returns what it had. Those behind are
    /// withdrawn as far as they are free; `Lists::withdraw` goes on with it.
    pub(super) fn set_limit(&self, frames: &[Frame], frame_count: u32) -> u32 {
        let mut lists = self.lock();
        let before = std::mem::replace(&mut lists.limit, frame_count);
        self.frame_count.store(frame_count, Ordering::Relaxed);
        lists.withdraw(frames);
        before
    }

    /// Changes innodb_old_blocks_time, in ticks.
    pub(super) fn set_old_ticks(&self, ticks: u32) {
        self.old_ticks.store(ticks, Ordering::Relaxed);
        let length = self.lock().turn.length;
        self.turn_took(length);
    }

    /// Pages left; it is `tick` now.
    pub(super) fn note_evicted(&self, lists: &mut Lists, count: usize, tick: u32) {
        if let Some(length) = lists.turn(count, tick) {
            self.turn_took(length);
        }
    }

    fn turn_took(&self, length: u32) {
        // Relaxed: which of two uses counts may be decided by what was true a moment ago.
        let old_ticks = self.old_ticks.load(Ordering::Relaxed);
        let hot_after = old_ticks.min((length / YOUNG_PART).max(HOT_AFTER_MIN));
        self.hot_after.store(hot_after, Ordering::Relaxed);
    }

    /// A use of a page at `tick`: the hit path.
    #[inline]
    pub(super) fn touch(&self, frame: &Frame, tick: u32) {
        touch(frame, tick, self.hot_after.load(Ordering::Relaxed));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock()
    }

    pub(super) fn counts(&self) -> LruCounts {
        let lists = self.lock();
        LruCounts {
            free: lists.free_len(),
            young: lists.young.len(),
            old: lists.old.len(),
        }
    }
}

/// `tick` is coarse time, `hot_after` the time after its first use during which further uses say nothing.
#[inline]
fn touch(frame: &Frame, tick: u32, hot_after: u32) {
    match frame.heat.load(Ordering::Relaxed) {
        HOT => {}
        USED => {
            if tick.wrapping_sub(frame.first_use.load(Ordering::Relaxed)) >= hot_after {
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

    /// `count` pages left; the ticks of the turn that ends with them, if one does.
    fn turn(&mut self, count: usize, tick: u32) -> Option<u32> {
        self.turn.left += count;
        if self.turn.left < self.old.len() {
            return None;
        }
        let length = tick.wrapping_sub(self.turn.began);
        self.turn = Turn {
            began: tick,
            left: 0,
            length,
        };
        Some(length)
    }

    /// Takes a frame out of whatever list it is on.
    pub(super) fn remove(&mut self, frames: &[Frame], at: u32) {
        let frame = &frames[at as usize];
        match frame.place() {
            Place::None | Place::Withdrawn => return,
            Place::Free => self.free.remove(frames, at),
            Place::Young => self.young.remove(frames, at),
            Place::Old => self.old.remove(frames, at),
        }
        frame.set_place(Place::None);
    }

    /// Gives an owned, empty frame back; one behind the limit goes out of use, unless it is promised.
    pub(super) fn add_free(&mut self, frames: &[Frame], at: u32) {
        debug_assert_eq!(frames[at as usize].place(), Place::None);
        let place = match at < self.limit {
            true => {
                self.free.push_head(frames, at);
                Place::Free
            }
            false if self.free_len() < self.promised => {
                self.free.push_tail(frames, at);
                Place::Free
            }
            false => {
                self.withdrawn += 1;
                Place::Withdrawn
            }
        };
        frames[at as usize].set_place(place);
    }

    /// A free frame; unpromised ones only, unless the caller redeems a promise.
    pub(super) fn take_free(&mut self, frames: &[Frame], redeems: bool) -> Option<u32> {
        if !redeems && self.free_len() <= self.promised {
            return None;
        }
        let at = match self.free.pop_head(frames) {
            Some(at) => at,
            None if self.fresh < self.limit => {
                self.fresh += 1;
                self.fresh - 1
            }
            None => return None,
        };
        frames[at as usize].set_place(Place::None);
        self.promised -= usize::from(redeems && self.promised > 0);
        Some(at)
    }

    /// Free frames.
    pub(super) fn free_len(&self) -> usize {
        self.free.len() + self.limit.saturating_sub(self.fresh) as usize
    }

    /// Free frames that are not promised.
    pub(super) fn free_unpromised(&self) -> usize {
        self.free_len().saturating_sub(self.promised)
    }

    // Resizing ----------------------------------------------------------------------------------

    /// The frames behind this one were never used.
    pub(super) fn fresh(&self) -> u32 {
        self.fresh
    }

    /// Free frames behind the limit, those that are not promised, go out of use.
    pub(super) fn withdraw(&mut self, frames: &[Frame]) {
        let mut next = self.free.tail();
        while let Some(at) = next.filter(|_| self.free_len() > self.promised) {
            next = List::<LruLinks>::prev(frames, at);
            if at >= self.limit {
                self.free.remove(frames, at);
                frames[at as usize].set_place(Place::Withdrawn);
                self.withdrawn += 1;
            }
        }
    }

    /// Frames behind the limit that are still in use.
    pub(super) fn behind_limit(&self) -> usize {
        (self.fresh.saturating_sub(self.limit) - self.withdrawn) as usize
    }

    /// All frames behind the limit went out of use: they count as never used.
    pub(super) fn forget_withdrawn(&mut self, frames: &[Frame]) {
        for at in self.limit..self.fresh {
            debug_assert_eq!(frames[at as usize].place(), Place::Withdrawn);
            frames[at as usize].set_place(Place::None);
        }
        self.fresh = self.fresh.min(self.limit);
        self.withdrawn = 0;
    }

    /// Frames that went out of use, up to the limit, are free again.
    pub(super) fn take_withdrawn_back(&mut self, frames: &[Frame]) {
        for at in 0..self.fresh.min(self.limit) {
            if frames[at as usize].place() == Place::Withdrawn {
                frames[at as usize].set_place(Place::None);
                self.withdrawn -= 1;
                self.add_free(frames, at);
            }
        }
    }

    /// `to`, an owned frame, takes the place of `from`, whose page it has now.
    pub(super) fn replace(&mut self, frames: &[Frame], from: u32, to: u32) {
        let place = frames[from as usize].place();
        let list = match place {
            Place::Young => &mut self.young,
            Place::Old => &mut self.old,
            Place::None | Place::Free | Place::Withdrawn => return,
        };
        list.insert_after(frames, Some(from), to);
        list.remove(frames, from);
        frames[to as usize].set_place(place);
        frames[from as usize].set_place(Place::None);
    }

    // The cold end ------------------------------------------------------------------------------

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

    /// Shows at most `count` frames from the hot end.
    pub(super) fn walk_hot(&self, frames: &[Frame], count: usize, mut see: impl FnMut(&Frame)) {
        let mut left = count;
        for list in [&self.young, &self.old] {
            let mut next = list.head();
            while let Some(at) = next.filter(|_| left > 0) {
                see(&frames[at as usize]);
                next = List::<LruLinks>::next(frames, at);
                left -= 1;
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

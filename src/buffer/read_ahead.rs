//! Reading pages before anybody asks for them, by threads of their own.
//!
//! Only a miss asks, so a hit costs nothing. *Linear*: the miss is at the border of an extent, and enough
//! pages of the extent before it, in the direction of the scan, are here and used: the rest of the
//! extent and the one that follows are read. *Random*: many pages of the missed page's extent are hot:
//! the rest of it is read. A page that was read ahead enters at the midpoint, unused, so that a wrong
//! guess is the first to go. The same threads read *lists*, the pages that a dump of the pool names
//! (`read_list.rs`), when no range waits.

use std::collections::VecDeque;

use super::frame::Load;
use super::lru;
use super::pool::Pool;
use crate::format::fsp::Geometry;
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::{Condvar, Mutex, Rank};
use crate::words::{PageId, PageNo, Result, SpaceId};

/// Hot pages of an extent from which on the rest is read, of 64.
const HOT_MIN: u32 = 13;
/// Extents that wait to be read; more are forgotten.
const WAITING_MAX: usize = 32;
/// Extents of a linear read-ahead: the one that a scan enters and those behind it.
const EXTENTS: u32 = 2;
/// Pages read ahead are at most this part of the pool.
const POOL_PART: usize = 8;

/// What waits to be read, and when to read.
pub(super) struct ReadAhead {
    pub(super) queue: Mutex<Queue>,
    pub(super) wanted: Condvar,
    /// A list was read, or will not be.
    pub(super) list_done: Condvar,
    /// innodb_read_ahead_threshold, pages of 64; 0: never.
    threshold: AtomicU32,
    /// innodb_random_read_ahead.
    random: AtomicBool,
    /// Readers that run; nothing is queued without.
    readers: AtomicU32,
}

#[derive(Default)]
pub(super) struct Queue {
    ranges: VecDeque<Range>,
    pub(super) lists: VecDeque<Vec<PageId>>,
    /// Lists that are being read.
    pub(super) lists_read: usize,
    pub(super) stopped: bool,
}

enum Job {
    Range(Range),
    List(Vec<PageId>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    space: SpaceId,
    from: u32,
    to: u32,
    random: bool,
}

impl ReadAhead {
    pub(super) fn new() -> ReadAhead {
        ReadAhead {
            queue: Mutex::new(Rank::Leaf, Queue::default()),
            wanted: Condvar::new(),
            list_done: Condvar::new(),
            threshold: AtomicU32::new(0),
            random: AtomicBool::new(false),
            readers: AtomicU32::new(0),
        }
    }

    fn ask(&self, range: Range) {
        let mut queue = self.queue.lock();
        if queue.ranges.len() < WAITING_MAX && !queue.ranges.contains(&range) {
            queue.ranges.push_back(range);
            self.wanted.notify_one();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.queue.lock();
        loop {
            if queue.stopped {
                return None;
            }
            if let Some(range) = queue.ranges.pop_front() {
                return Some(Job::Range(range));
            }
            if let Some(list) = queue.lists.pop_front() {
                queue.lists_read += 1;
                return Some(Job::List(list));
            }
            queue = self.wanted.wait(queue);
        }
    }
}

impl Pool {
    /// When to read ahead: after `threshold` of 64 pages in sequence (0: never), and, if `random`,
    /// when an extent is hot.
    pub fn set_read_ahead(&self, threshold: u32, random: bool) {
        self.read_ahead
            .threshold
            .store(threshold, Ordering::Relaxed);
        self.read_ahead.random.store(random, Ordering::Relaxed);
    }

    /// A reader's life: reads what is asked for until `stop_reading_ahead`.
    pub fn run_read_ahead(&self) {
        self.read_ahead.readers.fetch_add(1, Ordering::AcqRel);
        while let Some(job) = self.read_ahead.next() {
            match job {
                Job::Range(range) => self.read_range(range),
                Job::List(list) => self.read_listed(list),
            }
        }
        self.read_ahead.readers.fetch_sub(1, Ordering::AcqRel);
    }

    /// True while a reader runs.
    pub fn reads_ahead(&self) -> bool {
        self.read_ahead.readers.load(Ordering::Relaxed) > 0
    }

    /// Ends the readers; pages that wait are not read.
    pub fn stop_reading_ahead(&self) {
        self.read_ahead.queue.lock().stopped = true;
        self.read_ahead.wanted.notify_all();
        self.read_ahead.list_done.notify_all();
    }

    /// A page was not here and has been read.
    pub(super) fn missed(&self, id: PageId) {
        if !self.reads_ahead() || id.space == SpaceId::TEMPORARY {
            return;
        }
        let extent = Geometry::of_page_size(self.page_size()).extent_pages();
        if let Some(range) = self.linear(id, extent).or_else(|| self.random(id, extent)) {
            self.read_ahead.ask(range);
        }
    }

    fn linear(&self, id: PageId, extent: u32) -> Option<Range> {
        let threshold = self.read_ahead.threshold.load(Ordering::Relaxed);
        let (start, space, page) = (id.page.0 - id.page.0 % extent, id.space, id.page.0);
        let (before, from, to) = if page == start && start >= extent {
            (start - extent, page + 1, page + EXTENTS * extent)
        } else if page == start + extent - 1 {
            let first = start.saturating_sub((EXTENTS - 1) * extent);
            (start + extent, first, page)
        } else {
            return None;
        };
        let wanted = threshold.min(64) * extent / 64;
        let used = (before..before + extent)
            .filter(|&page| self.heat_of(PageId::new(space, PageNo(page))) >= lru::USED)
            .count();
        let long_enough = wanted > 0 && used as u32 >= wanted;
        long_enough.then_some(Range {
            space,
            from,
            to,
            random: false,
        })
    }

    fn random(&self, id: PageId, extent: u32) -> Option<Range> {
        if !self.read_ahead.random.load(Ordering::Relaxed) {
            return None;
        }
        let from = id.page.0 - id.page.0 % extent;
        let hot = (from..from + extent)
            .filter(|&page| self.heat_of(PageId::new(id.space, PageNo(page))) >= lru::HOT)
            .count();
        (hot as u32 >= HOT_MIN * extent / 64).then_some(Range {
            space: id.space,
            from,
            to: from + extent,
            random: true,
        })
    }

    fn heat_of(&self, id: PageId) -> u8 {
        let heat = |pin: super::guard::Pin<'_>| pin.frame().heat.load(Ordering::Relaxed);
        self.pin(id).map_or(0, heat)
    }

    fn read_range(&self, range: Range) {
        let Some(space) = self.spaces.get(range.space) else {
            return;
        };
        let to = range.to.min(space.size_pages());
        let most = (self.frame_count() / POOL_PART) as u32;
        for page in (range.from..to).take(most as usize) {
            // Damage, free pages and a file that goes away are the business of whoever needs the page.
            match self.read_one_ahead(PageId::new(range.space, PageNo(page))) {
                Ok(false) | Err(_) => {}
                Ok(true) => {
                    let counter = match range.random {
                        true => &self.counters.read_ahead_random,
                        false => &self.counters.read_ahead,
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }
            if self.check_running().is_err() {
                return;
            }
        }
    }

    /// True if it was read; false if it is here, or if no frame is free: nothing is evicted for it.
    fn read_one_ahead(&self, id: PageId) -> Result<bool> {
        if self.contains(id) {
            return Ok(false);
        }
        let Some(at) = self.take_free(false) else {
            return Ok(false);
        };
        match self.enter(id, at, Load::Loading, Rank::None) {
            Ok(guard) => self.load_unused(guard).map(|_| true),
            Err(at) => {
                self.give_frame_back(at);
                Ok(false)
            }
        }
    }
}

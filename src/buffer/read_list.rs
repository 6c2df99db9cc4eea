//! Which pages are hot, and bringing named pages in ahead: a dump of the pool, and its load.
//!
//! A load is given in lists, in the order in which the pages are wanted. The threads that read ahead
//! take them, into frames that the maker does not count on: nothing is evicted for a load, and one that
//! finds the pool full ends.

use std::time::Duration;

use super::pool::Pool;
use super::read_ahead::Queue;
use crate::sync::atomic::Ordering;
use crate::words::{PageId, SpaceId};

/// Lists that wait; who has more is held up.
const WAITING_MAX: usize = 8;
/// Who waits looks up so often whether the pool is frozen: then nobody reads on.
const LOOK: Duration = Duration::from_millis(100);

/// What became of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listed {
    /// It waits to be read.
    Taken,
    /// The pool has no frames to spare.
    Full,
    /// Nobody reads any more.
    NoReader,
}

impl Pool {
    /// The pages used most, hottest first, `count` at most.
    pub fn hottest(&self, count: usize) -> Vec<PageId> {
        let mut pages = Vec::with_capacity(count.min(self.frame_count()));
        let lists = self.lru.lock();
        lists.walk_hot(&self.frames, count, |frame| {
            // Not pinned: it may be on its way out, and then it names no page, or one that was here.
            let id = frame.id();
            if id.space < SpaceId::UPPER_BOUND {
                pages.push(id);
            }
        });
        pages
    }

    /// True if frames are left that nobody counts on.
    pub fn has_room_to_spare(&self) -> bool {
        self.lru.lock().free_unpromised() > self.free_frames_target()
    }

    /// Gives pages to those that read ahead; waits while many wait. Pages that are here are passed over,
    /// and so are those that cannot be read.
    pub fn read_list(&self, pages: Vec<PageId>) -> Listed {
        if !self.has_room_to_spare() {
            return Listed::Full;
        }
        let mut queue = self.read_ahead.queue.lock();
        loop {
            if queue.stopped || !self.reads_ahead() || self.check_running().is_err() {
                return Listed::NoReader;
            }
            if queue.lists.len() < WAITING_MAX {
                queue.lists.push_back(pages);
                self.read_ahead.wanted.notify_one();
                return Listed::Taken;
            }
            queue = self.read_ahead.list_done.wait_for(queue, LOOK).0;
        }
    }

    /// Waits until all lists are read, or until nobody reads any more.
    pub fn wait_for_lists(&self) {
        let mut queue = self.read_ahead.queue.lock();
        let waits =
            |queue: &Queue| queue.lists_read > 0 || !(queue.lists.is_empty() || queue.stopped);
        while waits(&queue) && self.check_running().is_ok() {
            queue = self.read_ahead.list_done.wait_for(queue, LOOK).0;
        }
    }

    /// Forgets the lists that wait.
    pub fn forget_lists(&self) {
        self.read_ahead.queue.lock().lists.clear();
        self.read_ahead.list_done.notify_all();
    }

    /// Reads the pages of a list: neighbours together.
    pub(super) fn read_listed(&self, mut list: Vec<PageId>) {
        list.sort_unstable();
        list.dedup();
        list.retain(|id| {
            let space = self.spaces.get(id.space);
            space.is_some_and(|space| id.page.0 < space.size_pages())
        });
        let mut rest = &list[..];
        while !rest.is_empty() {
            // Damage, free pages and a file that goes away are the business of whoever needs the page.
            let read = self.read_run_to_spare(rest, |_, read| {
                let read = u64::from(read.is_ok());
                self.counters.loaded.fetch_add(read, Ordering::Relaxed);
            });
            match read {
                Ok(0) | Err(_) => break,
                Ok(done) => rest = &rest[done..],
            }
        }
        self.read_ahead.queue.lock().lists_read -= 1;
        self.read_ahead.list_done.notify_all();
    }
}

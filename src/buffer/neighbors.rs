//! Flush neighbours (innodb_flush_neighbors): on a disk that rotates, dirty pages beside one that is
//! written are written with it, since that saves a seek. Elsewhere it would only write more.

use std::collections::HashSet;

use super::frame::WriteState;
use super::pool::Pool;
use crate::format::fsp::Geometry;
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::words::{PageId, PageNo};

/// An area is an extent, but at most this part of the pool.
const POOL_PART: usize = 16;

/// innodb_flush_neighbors.
pub(super) struct Neighbors(AtomicU8);

impl Neighbors {
    pub(super) fn new() -> Neighbors {
        Neighbors(AtomicU8::new(0))
    }
}

impl Pool {
    /// Dirty neighbours of a page that is written go with it: 0 none, 1 those without a gap between,
    /// 2 all of the extent.
    pub fn set_flush_neighbors(&self, neighbors: u8) {
        // Relaxed: a setting.
        self.flusher.neighbors.0.store(neighbors, Ordering::Relaxed);
    }

    /// Pins dirty neighbours of the pinned pages, each beside its page; of more than `limit` in all the
    /// last pages are left for the next time.
    pub(super) fn pin_neighbors(&self, pinned: &mut Vec<u32>, limit: usize) {
        let neighbors = self.flusher.neighbors.0.load(Ordering::Relaxed);
        if neighbors == 0 || pinned.is_empty() {
            return;
        }
        let wanted = std::mem::take(pinned);
        let mut group = Group {
            pool: self,
            waiting: wanted.iter().copied().collect(),
            taken: HashSet::with_capacity(wanted.len()),
            pinned,
        };
        for at in wanted {
            if !group.waiting.remove(&at) {
                continue;
            }
            if group.pinned.len() >= limit {
                // Still dirty, so the last unpin frees nothing.
                self.frames[at as usize].unpin();
                continue;
            }
            group.push(at);
            let id = self.frames[at as usize].id();
            let space = self.spaces.get(id.space);
            if space.is_some_and(|space| space.rotates()) {
                group.take_area(id, neighbors == 1);
            }
        }
    }
}

/// Pages that will be written.
struct Group<'p> {
    pool: &'p Pool,
    /// Pinned and wanted anyway, not yet among `pinned`.
    waiting: HashSet<u32>,
    /// The same frames as in `pinned`.
    taken: HashSet<u32>,
    pinned: &'p mut Vec<u32>,
}

impl Group<'_> {
    fn push(&mut self, at: u32) {
        self.taken.insert(at);
        self.pinned.push(at);
    }

    fn take_area(&mut self, id: PageId, adjacent: bool) {
        let extent = Geometry::of_page_size(self.pool.page_size()).extent_pages();
        let part = (self.pool.frame_count() / POOL_PART).next_power_of_two();
        let area = extent.min(part as u32);
        let first = id.page.0 / area * area;
        let (before, after) = (first..id.page.0, id.page.0 + 1..first + area);
        let mut take = |page: u32| self.take(PageId::new(id.space, PageNo(page)));
        if adjacent {
            let _ = before.rev().take_while(|&page| take(page)).count();
            let _ = after.take_while(|&page| take(page)).count();
        } else {
            before.chain(after).for_each(|page| {
                take(page);
            });
        }
    }

    /// False if the page is not there or not dirty.
    fn take(&mut self, id: PageId) -> bool {
        let Some(at) = self.pool.table.look(&self.pool.frames, id) else {
            return false;
        };
        if self.taken.contains(&at) {
            return true;
        }
        let pinned = self.waiting.remove(&at) || self.pin_dirty(at, id);
        if pinned {
            self.push(at);
        }
        pinned
    }

    fn pin_dirty(&self, at: u32, id: PageId) -> bool {
        let frame = &self.pool.frames[at as usize];
        if !frame.try_pin() {
            return false;
        }
        let dirty = frame.id_word() == id.to_u64() && frame.write_state() == WriteState::Dirty;
        if !dirty {
            self.pool.unpin(at);
        }
        dirty
    }
}

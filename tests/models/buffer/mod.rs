//! The page table and its frames, with the steps by which the pool uses them (`enter`, `leave`,
//! `take_out` of src/buffer).

#[path = "../../../src/buffer/frame.rs"]
mod frame;
#[path = "../../../src/buffer/table.rs"]
mod table;

mod region {
    //! Plain memory.
    pub(super) struct Region;

    impl Region {
        pub(super) fn descriptors<T>(count: usize, make: impl FnMut(usize) -> T) -> Box<[T]> {
            (0..count).map(make).collect()
        }
    }
}

use crate::sync::raw::atomic::{AtomicU64, Ordering};
use crate::sync::{Mode, Rank};
use crate::words::PageId;
use frame::{Frame, Load, NO_PAGE, WriteState};
use table::{Found, Table};

/// A pool that has no files: the content of a frame is the id of its page.
pub struct Pool {
    table: Table,
    frames: Vec<Frame>,
    content: Vec<AtomicU64>,
}

impl Pool {
    /// All frames are free.
    pub fn new(frame_count: usize) -> Pool {
        Pool {
            table: Table::new(frame_count),
            frames: (0..frame_count).map(|_| Frame::new()).collect(),
            content: (0..frame_count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Finds the page, pins and reads it; `None` if it is not there.
    pub fn read(&self, id: PageId) -> Option<u64> {
        let at = match self.table.find(&self.frames, id) {
            Found::Pinned(at) => at,
            Found::Stale(at) => {
                self.frames[at as usize].unpin();
                return None;
            }
            Found::Nothing => {
                let shard = self.table.shard(id);
                let at = self.table.find_in(&shard, &self.frames, id)?;
                if !self.frames[at as usize].try_pin() {
                    return None;
                }
                at
            }
        };
        let frame = &self.frames[at as usize];
        frame.latch.lock(Mode::Shared, Rank::None);
        let content = self.content[at as usize].load(Ordering::Relaxed);
        assert!(frame.id() == id && frame.load() == Load::Ready, "a pinned frame keeps its page");
        frame.latch.unlock(Mode::Shared, Rank::None);
        frame.unpin();
        Some(content)
    }

    /// Brings the page into an owned frame; false if somebody else was faster.
    pub fn bring(&self, id: PageId, at: usize) -> bool {
        let frame = &self.frames[at];
        {
            let shard = self.table.shard(id);
            if self.table.find_in(&shard, &self.frames, id).is_some() {
                return false;
            }
            frame.set_id(id.to_u64());
            frame.set_load(Load::Loading);
            assert!(frame.latch.try_lock(Mode::Exclusive, Rank::None), "an owned frame");
            self.table.link(&shard, &self.frames, id, at as u32);
            frame.disown(1);
        }
        self.content[at].store(id.to_u64(), Ordering::Relaxed);
        frame.set_load(Load::Ready);
        frame.latch.unlock(Mode::Exclusive, Rank::None);
        frame.unpin();
        true
    }

    /// Evicts the page of frame `at`, which is owned afterwards; false if it is in use.
    pub fn evict(&self, at: usize) -> bool {
        let frame = &self.frames[at];
        if !frame.try_own() {
            return false;
        }
        if frame.load() != Load::Ready || frame.write_state() != WriteState::Clean {
            frame.disown(0);
            return false;
        }
        let id = frame.id();
        let shard = self.table.shard(id);
        self.table.unlink(&shard, &self.frames, id, at as u32);
        frame.set_id(NO_PAGE);
        drop(shard);
        // Nobody may read what is here now.
        self.content[at].store(NO_PAGE, Ordering::Relaxed);
        frame.reset();
        true
    }
}

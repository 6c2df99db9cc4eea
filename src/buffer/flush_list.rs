//! The dirty pages, in shards, each ordered by the oldest change that the file lacks.
//!
//! Performs every arrow of the write state (docs/ARCHITECTURE.md section 5):
//!
//! | arrow                                 | function       | held besides the shard      |
//! |---------------------------------------|----------------|-----------------------------|
//! | clean → dirty                         | `note_dirty`   | page latch U or X           |
//! | in flight, unsynced → … + dirty again | `note_dirty`   | page latch U or X           |
//! | dirty → in flight                     | `begin_write`  | page latch U or X           |
//! | in flight → unsynced                  | `written`      | -                           |
//! | unsynced → clean, or dirty            | `synced`       | -                           |
//! | in flight → dirty                     | `write_failed` | -                           |
//! | dirty → clean                         | `forget`       | page latch U or X, or owned |
//! | unsynced → clean                      | `abandon`      | owned; its file has failed  |
//!
//! Dirty leaves only under the page's latch, so `note_dirty` under that latch sees *dirty* without
//! the shard's mutex and need do nothing more: the usual case of a busy page.

use super::frame::{Frame, WriteState};
use super::list::{FlushLinks, List};
use crate::os::planted;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, Padded, Rank};
use crate::words::Lsn;

const SHARD_COUNT: usize = 16;
/// The order key of pages that are not logged: they never hold a checkpoint back.
pub(super) const UNLOGGED: Lsn = Lsn(u64::MAX);

pub(super) struct FlushList {
    shards: Box<[Padded<Mutex<Shard>>]>,
    dirty_count: AtomicUsize,
}

struct Shard {
    logged: List<FlushLinks>,
    /// Pages of the temporary tablespace, in no order.
    unlogged: List<FlushLinks>,
}

impl Shard {
    fn list(&mut self, key: u64) -> &mut List<FlushLinks> {
        match Lsn(key) {
            UNLOGGED => &mut self.unlogged,
            _ => &mut self.logged,
        }
    }

    /// Puts a frame at its place. Changes come nearly in LSN order, so the walk from the tail
    /// is short.
    fn insert(&mut self, frames: &[Frame], at: u32) {
        let key = frames[at as usize].oldest.load(Ordering::Relaxed);
        let list = self.list(key);
        let mut before = list.tail();
        while let Some(other) = before {
            if frames[other as usize].oldest.load(Ordering::Relaxed) <= key {
                break;
            }
            before = List::<FlushLinks>::prev(frames, other);
        }
        list.insert_after(frames, before, at);
    }

    fn remove(&mut self, frames: &[Frame], at: u32) {
        let key = frames[at as usize].oldest.load(Ordering::Relaxed);
        self.list(key).remove(frames, at);
    }
}

impl FlushList {
    pub(super) fn new() -> FlushList {
        let shard = || Shard {
            logged: List::new(),
            unlogged: List::new(),
        };
        FlushList {
            shards: (0..SHARD_COUNT)
                .map(|_| Padded(Mutex::new(Rank::FlushShard, shard())))
                .collect(),
            dirty_count: AtomicUsize::new(0),
        }
    }

    fn shard(&self, at: u32) -> &Mutex<Shard> {
        &self.shards[at as usize % SHARD_COUNT].0
    }

    /// Pages in the lists.
    pub(super) fn dirty_count(&self) -> usize {
        self.dirty_count.load(Ordering::Relaxed)
    }

    /// The page changed; `start` = start LSN of the mini-transaction, or `UNLOGGED`.
    pub(super) fn note_dirty(&self, frames: &[Frame], at: u32, start: Lsn) {
        let frame = &frames[at as usize];
        if frame.write_state() == WriteState::Dirty {
            return;
        }
        let mut shard = self.shard(at).lock();
        match frame.write_state() {
            WriteState::Clean => {
                frame.oldest.store(start.0, Ordering::Relaxed);
                frame.set_write_state(WriteState::Dirty);
                shard.insert(frames, at);
                self.dirty_count.fetch_add(1, Ordering::Relaxed);
            }
            WriteState::Dirty => {}
            WriteState::InFlight | WriteState::Unsynced => {
                let forgets = planted("page.redirtied_forgotten");
                if frame.redirtied.load(Ordering::Relaxed) == 0 && !forgets {
                    frame.redirtied.store(start.0, Ordering::Relaxed);
                }
            }
        }
    }

    /// A copy is being taken; false if the page is not dirty (any more).
    pub(super) fn begin_write(&self, frames: &[Frame], at: u32) -> bool {
        let _shard = self.shard(at).lock();
        let frame = &frames[at as usize];
        let starts = frame.write_state() == WriteState::Dirty;
        if starts {
            frame.set_write_state(WriteState::InFlight);
        }
        starts
    }

    /// The copy is in the file.
    pub(super) fn written(&self, frames: &[Frame], at: u32) {
        let _shard = self.shard(at).lock();
        let frame = &frames[at as usize];
        assert_eq!(frame.write_state(), WriteState::InFlight);
        frame.set_write_state(WriteState::Unsynced);
    }

    /// The file was synced after the copy was written (F2).
    pub(super) fn synced(&self, frames: &[Frame], at: u32) {
        let mut shard = self.shard(at).lock();
        let frame = &frames[at as usize];
        assert_eq!(frame.write_state(), WriteState::Unsynced);
        self.settle(&mut shard, frames, at);
    }

    /// The copy never reached the file and will be taken again: the old LSN goes on counting.
    pub(super) fn write_failed(&self, frames: &[Frame], at: u32) {
        let _shard = self.shard(at).lock();
        let frame = &frames[at as usize];
        assert_eq!(frame.write_state(), WriteState::InFlight);
        frame.redirtied.store(0, Ordering::Relaxed);
        frame.set_write_state(WriteState::Dirty);
    }

    /// A dirty page need not be written: it was freed, or its tablespace dropped. Nothing is done
    /// to a page that is not dirty; true if it is clean now.
    pub(super) fn forget(&self, frames: &[Frame], at: u32) -> bool {
        let mut shard = self.shard(at).lock();
        match frames[at as usize].write_state() {
            WriteState::Clean => true,
            WriteState::Dirty => {
                self.settle(&mut shard, frames, at);
                true
            }
            WriteState::InFlight | WriteState::Unsynced => false,
        }
    }

    /// A dropped page of a failed file, which no fsync will ever settle; in flight ones are waited for.
    pub(super) fn abandon(&self, frames: &[Frame], at: u32) {
        let mut shard = self.shard(at).lock();
        let frame = &frames[at as usize];
        if frame.write_state() == WriteState::Unsynced {
            frame.redirtied.store(0, Ordering::Relaxed);
            self.settle(&mut shard, frames, at);
        }
    }

    fn settle(&self, shard: &mut Shard, frames: &[Frame], at: u32) {
        let frame = &frames[at as usize];
        shard.remove(frames, at);
        let redirtied = frame.redirtied.swap(0, Ordering::Relaxed);
        frame.oldest.store(redirtied, Ordering::Relaxed);
        if redirtied == 0 {
            frame.set_write_state(WriteState::Clean);
            self.dirty_count.fetch_sub(1, Ordering::Relaxed);
        } else {
            frame.set_write_state(WriteState::Dirty);
            shard.insert(frames, at);
        }
    }

    /// Start LSN of the oldest logged change that some file lacks (L2).
    pub(super) fn oldest(&self, frames: &[Frame]) -> Option<Lsn> {
        self.shards
            .iter()
            .filter_map(|shard| {
                let shard = shard.0.lock();
                let head = shard.logged.head()?;
                Some(Lsn(frames[head as usize].oldest.load(Ordering::Relaxed)))
            })
            .min()
    }

    /// Logged dirty pages whose oldest change is below `below`; counts up to about `limit`.
    pub(super) fn count_below(&self, frames: &[Frame], below: Lsn, limit: usize) -> usize {
        let each_max = limit.div_ceil(SHARD_COUNT);
        let count = |shard: &Padded<Mutex<Shard>>| {
            let shard = shard.0.lock();
            let mut next = shard.logged.head();
            let mut count = 0;
            while let Some(at) = next {
                let oldest = frames[at as usize].oldest.load(Ordering::Relaxed);
                if oldest >= below.0 || count >= each_max {
                    break;
                }
                count += 1;
                next = List::<FlushLinks>::next(frames, at);
            }
            count
        };
        self.shards.iter().map(count).sum()
    }

    /// Pins up to `limit` dirty pages whose oldest change is below `below`, oldest first.
    pub(super) fn pin_oldest(
        &self,
        frames: &[Frame],
        below: Lsn,
        limit: usize,
        out: &mut Vec<u32>,
    ) {
        let mut found: Vec<(u64, u32)> = Vec::new();
        for shard in &self.shards {
            let shard = shard.0.lock();
            let before = found.len();
            let mut next = shard.logged.head();
            while let Some(at) = next {
                let frame = &frames[at as usize];
                let oldest = frame.oldest.load(Ordering::Relaxed);
                if oldest >= below.0 || found.len() - before >= limit {
                    break;
                }
                if frame.write_state() == WriteState::Dirty && frame.try_pin() {
                    found.push((oldest, at));
                }
                next = List::<FlushLinks>::next(frames, at);
            }
        }
        found.sort_unstable();
        for (_, at) in found.drain(found.len().min(limit)..) {
            // Still dirty, so the last unpin frees nothing.
            frames[at as usize].unpin();
        }
        out.extend(found.into_iter().map(|(_, at)| at));
    }
}

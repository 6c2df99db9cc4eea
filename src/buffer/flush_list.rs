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
//! | dirty, in another frame               | `hand_over`    | both frames owned           |
//!
//! Dirty leaves only under the page's latch, so `note_dirty` under that latch sees *dirty* without
//! the shard's mutex and need do nothing more: the usual case of a busy page.

use std::collections::BTreeSet;

use super::frame::{Frame, WriteState};
use super::list::{FlushLinks, List};
use crate::os::planted;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, Padded, Rank};
use crate::words::Lsn;

const SHARD_COUNT: usize = 16;
/// How far a place in the list is looked for. Who changes pages finds it within a few steps; a page that
/// recovery brings up belongs anywhere, and a walk over thousands for each would never end.
const STEPS_MAX: usize = 64;
/// The order key of pages that are not logged: they never hold a checkpoint back.
pub(super) const UNLOGGED: Lsn = Lsn(u64::MAX);

pub(super) struct FlushList {
    shards: Box<[Padded<Mutex<Shard>>]>,
    dirty_count: AtomicUsize,
}

struct Shard {
    logged: List<FlushLinks>,
    /// Those whose place in the list was too far away, by their key.
    far: BTreeSet<(u64, u32)>,
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
        let mut steps = 0;
        while let Some(other) = before {
            if frames[other as usize].oldest.load(Ordering::Relaxed) <= key {
                break;
            }
            steps += 1;
            if steps > STEPS_MAX {
                self.far.insert((key, at));
                return;
            }
            before = List::<FlushLinks>::prev(frames, other);
        }
        list.insert_after(frames, before, at);
    }

    fn remove(&mut self, frames: &[Frame], at: u32) {
        let key = frames[at as usize].oldest.load(Ordering::Relaxed);
        if self.far.is_empty() || !self.far.remove(&(key, at)) {
            self.list(key).remove(frames, at);
        }
    }

    /// Logged pages by age, from the oldest on: first those of the list, then the far ones.
    fn oldest_first<'s>(
        &'s self,
        frames: &'s [Frame],
    ) -> [Box<dyn Iterator<Item = (u64, u32)> + 's>; 2] {
        let next = |&at: &u32| List::<FlushLinks>::next(frames, at);
        let listed = std::iter::successors(self.logged.head(), next);
        let with_key = |at: u32| (frames[at as usize].oldest.load(Ordering::Relaxed), at);
        [
            Box::new(listed.map(with_key)),
            Box::new(self.far.iter().copied()),
        ]
    }
}

impl FlushList {
    pub(super) fn new() -> FlushList {
        let shard = || Shard {
            logged: List::new(),
            far: BTreeSet::new(),
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

    /// The page of frame `from` is in frame `to` now. Both stand in the lists for a moment, so that the
    /// page never stops counting.
    pub(super) fn hand_over(&self, frames: &[Frame], from: u32, to: u32) {
        let (source, target) = (&frames[from as usize], &frames[to as usize]);
        if source.write_state() != WriteState::Dirty {
            return;
        }
        let oldest = source.oldest.load(Ordering::Relaxed);
        {
            let mut shard = self.shard(to).lock();
            target.oldest.store(oldest, Ordering::Relaxed);
            target.set_write_state(WriteState::Dirty);
            shard.insert(frames, to);
            self.dirty_count.fetch_add(1, Ordering::Relaxed);
        }
        let mut shard = self.shard(from).lock();
        self.settle(&mut shard, frames, from);
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
        let of_shard = |shard: &Padded<Mutex<Shard>>| {
            let shard = shard.0.lock();
            let ways = shard.oldest_first(frames);
            ways.into_iter()
                .filter_map(|mut way| way.next())
                .map(|(oldest, _)| Lsn(oldest))
                .min()
        };
        self.shards.iter().filter_map(of_shard).min()
    }

    /// Logged dirty pages whose oldest change is below `below`; counts up to about `limit`.
    pub(super) fn count_below(&self, frames: &[Frame], below: Lsn, limit: usize) -> usize {
        let each_max = limit.div_ceil(SHARD_COUNT);
        let count = |shard: &Padded<Mutex<Shard>>| {
            let shard = shard.0.lock();
            let ways = shard.oldest_first(frames);
            let below = |way: Box<dyn Iterator<Item = (u64, u32)> + '_>| {
                way.take_while(|(oldest, _)| *oldest < below.0)
                    .take(each_max)
                    .count()
            };
            ways.into_iter().map(below).sum::<usize>().min(each_max)
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
            for way in shard.oldest_first(frames) {
                let before = found.len();
                for (oldest, at) in way {
                    if oldest >= below.0 || found.len() - before >= limit {
                        break;
                    }
                    let frame = &frames[at as usize];
                    if frame.write_state() == WriteState::Dirty && frame.try_pin() {
                        found.push((oldest, at));
                    }
                }
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

//! The pages that wait for their records: what the pool asks on each read, what holds the checkpoint
//! back.
//!
//! ```text
//!   Waiting ──on_read──▶ Applied ──listed──▶ (gone)        nothing to apply: gone at once
//!      ├──on_create──▶ Void ──settle──▶ (gone)
//!      ├──on_free──▶ (gone)      freed under the log gate, so that no checkpoint comes between
//!      └──on_drop──▶ (gone)      the file is being deleted, under a hold on checkpoints
//! ```
//!
//! Pages of a missing file wait until it is dropped, or for the next start.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::apply::bring_up;
use super::index::RedoIndex;
use super::progress::{Origin, Progress};
use crate::buffer::PageLoaded;
use crate::format::fil;
use crate::redo::Log;
use crate::space::Registry;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, Once, Rank, RwLock};
use crate::words::{Error, Lsn, PageId, Result, SpaceId};

/// Shards of the list of waiting pages.
const SHARDS: usize = 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Not read since the start.
    Waiting,
    /// Up to date in its frame, not yet in the flush list.
    Applied,
    /// Created anew by a mini-transaction that may not have ended yet.
    Void,
}

/// A file that pages wait for.
struct Missing {
    path: Box<str>,
    oldest: Lsn,
    pages: usize,
}

/// What recovery does to pages on their way into the pool.
pub struct Pending {
    index: RwLock<RedoIndex>,
    /// A page that is not here needs nothing.
    shards: Box<[Mutex<HashMap<PageId, Phase>>]>,
    left: AtomicUsize,
    bytes_left: AtomicU64,
    progress: Progress,
    /// All pages by the start of their oldest record, and how many of them are done.
    by_age: Mutex<(Vec<(Lsn, PageId)>, usize)>,
    /// Missing files that are waited for, and the number of their pages.
    missing: Mutex<BTreeMap<SpaceId, Missing>>,
    missing_left: AtomicUsize,
    /// No page can have a newer LSN than the log. Set once the log is open.
    log: Once<Arc<Log>>,
}

impl Pending {
    /// Takes over what a scan found: `origin` tells about it.
    pub fn new(index: RedoIndex, origin: Origin) -> Pending {
        let mut shards: Vec<HashMap<PageId, Phase>> = vec![HashMap::new(); SHARDS];
        let mut by_age = Vec::with_capacity(index.page_count());
        for id in index.pages() {
            by_age.push((index.oldest(id).unwrap_or_default(), id));
            shards[shard_of(id)].insert(id, Phase::Waiting);
        }
        by_age.sort_unstable();
        let bytes = by_age.iter().map(|(_, id)| index.bytes_of(*id)).sum();
        Pending {
            bytes_left: AtomicU64::new(bytes),
            progress: Progress::new(origin, by_age.len() as u64, bytes),
            left: AtomicUsize::new(by_age.len()),
            by_age: Mutex::new(Rank::Leaf, (by_age, 0)),
            shards: shards
                .into_iter()
                .map(|shard| Mutex::new(Rank::Leaf, shard))
                .collect(),
            index: RwLock::new(Rank::Leaf, index),
            missing: Mutex::new(Rank::Leaf, BTreeMap::new()),
            missing_left: AtomicUsize::new(0),
            log: Once::new(),
        }
    }

    /// Tells which log the pages belong to; once.
    pub fn set_log(&self, log: Arc<Log>) {
        // A second call names the same log.
        let _ = self.log.set(log);
    }

    /// Finds out which pages wait for files that are missing, and tells the log why it is kept; once,
    /// after `set_log`.
    pub fn wait_for_files(&self, spaces: &Registry) {
        let waited_for = spaces.waited_for().into_iter();
        let file = |path| Missing {
            path,
            oldest: Lsn(u64::MAX),
            pages: 0,
        };
        let mut missing: BTreeMap<SpaceId, Missing> = waited_for
            .map(|(id, absent)| (id, file(absent.path)))
            .collect();
        for (lsn, id) in &self.by_age.lock().0 {
            if let Some(file) = missing.get_mut(&id.space) {
                file.pages += 1;
                file.oldest = file.oldest.min(*lsn);
            }
        }
        *self.missing.lock() = missing;
        self.tell_log();
    }

    /// Pages that wait for files that are missing.
    pub fn missing_count(&self) -> usize {
        self.missing_left.load(Ordering::Acquire)
    }

    /// Pages that wait and whose files are there. While a missing file is dropped its pages leave
    /// `count` first: then there may seem to be fewer of these than there are.
    pub fn present_count(&self) -> usize {
        self.count().saturating_sub(self.missing_count())
    }

    /// The missing files, as a list in a sentence.
    pub fn missing_files(&self) -> String {
        let missing = self.missing.lock();
        let paths: Vec<&str> = missing.values().map(|file| &*file.path).collect();
        paths.join(", ")
    }

    fn tell_log(&self) {
        let (pages, oldest) = {
            let missing = self.missing.lock();
            let pages = missing.values().map(|file| file.pages).sum();
            (pages, missing.values().map(|file| file.oldest).min())
        };
        self.missing_left.store(pages, Ordering::Release);
        let Some(log) = self.log.get() else { return };
        let why = format!(
            "{}: put the file back and restart, or drop its table",
            self.missing_files()
        );
        log.hold_back(oldest.map(|oldest| (oldest, &*why)));
    }

    /// Pages that are not settled.
    pub fn count(&self) -> usize {
        self.left.load(Ordering::Acquire)
    }

    /// Bytes of their records.
    pub(super) fn bytes_left(&self) -> u64 {
        self.bytes_left.load(Ordering::Relaxed)
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Start of the oldest record that no file and no flush list has (L2).
    pub fn oldest(&self) -> Option<Lsn> {
        if self.count() == 0 {
            return None;
        }
        loop {
            let (at, lsn, id) = {
                let by_age = self.by_age.lock();
                let (pages, done) = &*by_age;
                let &(lsn, id) = pages.get(*done)?;
                (*done, lsn, id)
            };
            if self.has(id) {
                return Some(lsn);
            }
            let mut by_age = self.by_age.lock();
            // Others pass the same pages meanwhile.
            by_age.1 = by_age.1.max(at + 1);
        }
    }

    /// The pages that wait and whose files are there, in file order.
    pub fn present_pages(&self) -> Vec<PageId> {
        let missing: BTreeSet<SpaceId> = self.missing.lock().keys().copied().collect();
        let mut pages = Vec::new();
        for shard in &self.shards {
            pages.extend(shard.lock().keys().copied());
        }
        pages.retain(|id| !missing.contains(&id.space));
        pages.sort_unstable();
        pages
    }

    /// The page was latched after it was brought up or created: whatever made its records void is in
    /// the log now.
    pub fn settle(&self, id: PageId) {
        let phase = self.phase(id);
        if matches!(phase, Some(Phase::Void | Phase::Applied)) {
            self.remove(id);
        }
    }

    /// Forgets one page: its damage is known and stays where it is.
    pub fn give_up(&self, id: PageId) {
        self.remove(id);
    }

    /// Gives the memory back once nothing waits.
    pub fn shrink(&self) {
        if self.count() == 0 {
            let index = std::mem::take(&mut *self.index.write());
            // Without the latch: its file goes with it.
            drop(index);
            *self.by_age.lock() = (Vec::new(), 0);
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.index.read().bytes()
    }

    /// True if the page is not settled.
    pub(super) fn has(&self, id: PageId) -> bool {
        self.phase(id).is_some()
    }

    fn phase(&self, id: PageId) -> Option<Phase> {
        self.shards[shard_of(id)].lock().get(&id).copied()
    }

    fn waits(&self, id: PageId) -> bool {
        self.count() > 0 && self.phase(id) == Some(Phase::Waiting)
    }

    fn set(&self, id: PageId, phase: Phase) {
        if let Some(was) = self.shards[shard_of(id)].lock().get_mut(&id) {
            *was = phase;
        }
    }

    fn remove(&self, id: PageId) {
        // Before: once nothing waits, the index goes.
        let bytes = self.index.read().bytes_of(id);
        if self.shards[shard_of(id)].lock().remove(&id).is_some() {
            self.removed(1, bytes);
        }
    }

    fn removed(&self, pages: usize, bytes: u64) {
        self.bytes_left.fetch_sub(bytes, Ordering::Relaxed);
        if self.left.fetch_sub(pages, Ordering::AcqRel) == pages && pages > 0 {
            self.progress.end();
        }
    }

    /// A page of another instance, or of files that are newer than the log, would swallow changes at
    /// the next recovery.
    fn check_lsn(&self, id: PageId, page: &[u8]) -> Result<()> {
        let Some(log) = self.log.get() else {
            return Ok(());
        };
        let (found, end) = (fil::lsn(page), log.lsn());
        if found <= end || id.space == SpaceId::TEMPORARY {
            return Ok(());
        }
        Err(Error::corrupt(
            id,
            format!("the page's LSN {found} is behind the end of the redo log, {end}"),
        ))
    }
}

impl PageLoaded for Pending {
    fn rebuilds(&self, id: PageId) -> bool {
        self.waits(id) && self.index.read().rebuilds(id)
    }

    fn repair(&self, _: PageId, _: &[u8]) -> Option<Box<[u8]>> {
        // Torn pages were restored in their files before the first read (torn.rs).
        None
    }

    fn on_read(&self, id: PageId, page: &mut [u8]) -> Result<Option<Lsn>> {
        self.check_lsn(id, page)?;
        if !self.waits(id) {
            return Ok(None);
        }
        let spilled = self.index.read().spilled(id);
        // Read without the latch. The index stays as it is while a page waits.
        let spilled = spilled.map_or(Ok(Vec::new()), |spilled| spilled.read())?;
        let oldest = bring_up(id, page, self.index.read().of_page(id, &spilled))?;
        match oldest {
            Some(_) => self.set(id, Phase::Applied),
            None => self.remove(id),
        }
        Ok(oldest)
    }

    fn listed(&self, id: PageId) {
        if self.phase(id) == Some(Phase::Applied) {
            self.remove(id);
        }
    }

    fn on_create(&self, id: PageId) {
        if self.waits(id) {
            self.set(id, Phase::Void);
        }
    }

    fn on_free(&self, id: PageId) {
        if self.count() > 0 {
            self.remove(id);
        }
    }

    fn on_drop(&self, space: SpaceId) {
        if self.count() == 0 {
            return;
        }
        for shard in &self.shards {
            let mut dropped = Vec::new();
            shard.lock().retain(|id, _| {
                let goes = id.space == space;
                if goes {
                    dropped.push(*id);
                }
                !goes
            });
            let index = self.index.read();
            let bytes = dropped.iter().map(|id| index.bytes_of(*id)).sum();
            drop(index);
            self.removed(dropped.len(), bytes);
        }
        let was_missing = self.missing.lock().remove(&space).is_some();
        if was_missing {
            self.tell_log();
        }
    }
}

fn shard_of(id: PageId) -> usize {
    (id.page.0 ^ id.space.0.wrapping_mul(31)) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtr::testing::{SPACE, TestPages};
    use crate::words::PageNo;

    /// A DROP right after a crash left the pages that waited in the list: no checkpoint passed them
    /// ever again, and the log filled up.
    #[test]
    fn pages_of_a_dropped_table_do_not_hold_the_checkpoint_back() {
        let pages = TestPages::new(4096, 64, 20);
        let other = pages.add_space(SpaceId(6), 20).id();
        let mut index = RedoIndex::default();
        for (space, start) in [(SPACE, 20_000), (other, 30_000)] {
            let id = PageId::new(space, PageNo(3));
            let mtr = (Lsn(start), Lsn(start + 100));
            index.append(id, mtr, &[0; 4]);
        }
        let pending = Arc::new(Pending::new(index, Origin::default()));
        pages.ctx.pool.set_hook(pending.clone());
        assert_eq!((pending.count(), pending.oldest()), (2, Some(Lsn(20_000))));
        pages.ctx.pool.discard_space(SPACE);
        assert_eq!((pending.count(), pending.oldest()), (1, Some(Lsn(30_000))));
        pages.ctx.pool.discard_space(other);
        assert_eq!((pending.count(), pending.oldest()), (0, None));
    }

    #[test]
    fn pages_of_a_missing_file_are_left_out_of_the_sweep_and_keep_the_log() {
        let pages = TestPages::new(4096, 64, 20);
        let (away, start) = (SpaceId(6), Lsn(pages.ctx.log.lsn().0 - 10));
        let mut index = RedoIndex::default();
        for (space, page) in [(SPACE, 3), (away, 3), (away, 4)] {
            let id = PageId::new(space, PageNo(page));
            let mtr = (start, Lsn(start.0 + 4));
            index.append(id, mtr, &[0; 4]);
        }
        let absent = crate::space::Absent {
            name: "./t/away.ibd".into(),
            path: "/data/t/away.ibd".into(),
            until: pages.ctx.log.lsn(),
            waits: true,
        };
        pages.ctx.spaces.note_absent(away, absent);
        let pending = Arc::new(Pending::new(index, Origin::default()));
        pending.set_log(pages.ctx.log.clone());
        pending.wait_for_files(&pages.ctx.spaces);
        pages.ctx.pool.set_hook(pending.clone());
        assert_eq!(pending.present_pages(), [PageId::new(SPACE, PageNo(3))]);
        assert_eq!((pending.count(), pending.missing_count()), (3, 2));
        assert_eq!(pending.present_count(), 1);
        assert_eq!(pending.missing_files(), "/data/t/away.ibd");
        assert_eq!(pages.ctx.log.held_lsn(), Some(start));
        pages.ctx.pool.discard_space(SPACE);
        assert_eq!(pages.ctx.log.held_lsn(), Some(start));
        // A cleaner that looked while the file was being dropped found fewer pages than are missing.
        pending.give_up(PageId::new(away, PageNo(3)));
        assert_eq!((pending.count(), pending.missing_count()), (1, 2));
        assert_eq!(pending.present_count(), 0);
        pages.ctx.pool.discard_space(away);
        assert_eq!((pending.count(), pending.missing_count()), (0, 0));
        assert_eq!(pages.ctx.log.held_lsn(), None);
    }
}

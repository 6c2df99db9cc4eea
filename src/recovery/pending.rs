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

use super::index::RedoIndex;
use super::progress::{Origin, Progress};
use super::readback::{Buffers, Excerpt, add_spans, bring_up_with};
use super::scan::LogBytes;
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

/// What the pages wait for.
struct Source {
    index: RedoIndex,
    /// What the index was made from.
    log: Arc<dyn LogBytes>,
}

/// Pages that are being brought up together, in file order, and what they need of the log.
struct Group {
    pages: Box<[PageId]>,
    excerpt: Excerpt,
}

/// Records at hand, for as long as this lives.
pub(super) struct Ahead<'p> {
    pending: &'p Pending,
    group: Option<Arc<Group>>,
    count: usize,
}

/// What recovery does to pages on their way into the pool.
pub struct Pending {
    /// `None` when nothing waits any more.
    source: RwLock<Option<Arc<Source>>>,
    /// At most one for each thread that sweeps.
    ahead: Mutex<Vec<Arc<Group>>>,
    buffers: Arc<Buffers>,
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
    /// Takes over what a scan of `log` found: `origin` tells about it.
    pub fn new(index: RedoIndex, log: Arc<dyn LogBytes>, origin: Origin) -> Pending {
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
            source: RwLock::new(Rank::Leaf, Some(Arc::new(Source { index, log }))),
            ahead: Mutex::new(Rank::Leaf, Vec::new()),
            buffers: Arc::new(Buffers::new()),
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
            let source = self.source.write().take();
            // Without the latch: its files are closed.
            drop(source);
            self.buffers.clear();
            *self.by_age.lock() = (Vec::new(), 0);
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let index = self.source().map_or(0, |source| source.index.bytes());
        index + self.buffers.bytes()
    }

    fn source(&self) -> Option<Arc<Source>> {
        self.source.read().clone()
    }

    /// Reads what pages of `run`, which is in file order, need of the log: for as many from the front as
    /// memory is meant for, at least one. What cannot be read here is an error of the page that needs
    /// it.
    pub(super) fn read_ahead(&self, run: &[PageId]) -> Ahead<'_> {
        let mut ahead = Ahead {
            pending: self,
            group: None,
            count: run.len(),
        };
        let Some(source) = self.source() else {
            return ahead;
        };
        loop {
            let pages = &run[..ahead.count];
            let mut spans = Vec::new();
            for &id in pages.iter().filter(|id| self.waits(**id)) {
                if add_spans(&source.index, id, Lsn(0), &mut spans).is_err() {
                    return ahead;
                }
            }
            spans.sort_unstable();
            if spans.is_empty() {
                return ahead;
            }
            if !Excerpt::holds_all(&*source.log, &spans) {
                if ahead.count == 1 {
                    // It is read piece by piece by whoever brings the page up.
                    return ahead;
                }
                ahead.count /= 2;
                continue;
            }
            if let Ok((excerpt, _)) = Excerpt::read(&*source.log, &spans, &self.buffers) {
                let pages = pages.into();
                let group = Arc::new(Group { pages, excerpt });
                self.ahead.lock().push(group.clone());
                ahead.group = Some(group);
            }
            return ahead;
        }
    }

    fn group_of(&self, id: PageId) -> Option<Arc<Group>> {
        let ahead = self.ahead.lock();
        let has = |group: &&Arc<Group>| group.pages.binary_search(&id).is_ok();
        ahead.iter().find(has).cloned()
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
        let bytes = self.bytes_of(id);
        if self.shards[shard_of(id)].lock().remove(&id).is_some() {
            self.removed(1, bytes);
        }
    }

    fn bytes_of(&self, id: PageId) -> u64 {
        let source = self.source.read();
        source
            .as_ref()
            .map_or(0, |source| source.index.bytes_of(id))
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
        self.waits(id)
            && self
                .source()
                .is_some_and(|source| source.index.rebuilds(id))
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
        // Without a latch: the log may be read.
        let Some(source) = self.source() else {
            return Ok(None);
        };
        let group = self.group_of(id);
        let excerpt = group.as_ref().map(|group| &group.excerpt);
        let oldest = bring_up_with(
            (&source.index, &*source.log),
            id,
            page,
            (excerpt, &self.buffers),
        )?;
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
            let bytes = dropped.iter().map(|id| self.bytes_of(*id)).sum();
            self.removed(dropped.len(), bytes);
        }
        let was_missing = self.missing.lock().remove(&space).is_some();
        if was_missing {
            self.tell_log();
        }
    }
}

impl Ahead<'_> {
    /// Pages from the front that it is for.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Ahead<'_> {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            let mut ahead = self.pending.ahead.lock();
            ahead.retain(|other| !Arc::ptr_eq(other, group));
        }
    }
}

fn shard_of(id: PageId) -> usize {
    (id.page.0 ^ id.space.0.wrapping_mul(31)) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::redo_file::{Checkpoint, LogGeometry};
    use crate::mtr::testing::{SPACE, TestPages};
    use crate::words::PageNo;

    /// Nothing stays there.
    struct NoLog;

    impl LogBytes for NoLog {
        fn geometry(&self) -> LogGeometry {
            unreachable!("no entry is in the log")
        }

        fn checkpoint(&self) -> Option<Checkpoint> {
            None
        }

        fn read(&self, _: Lsn, _: &mut [u8]) -> Result<()> {
            unreachable!("no entry is in the log")
        }
    }

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
        let pending = Arc::new(Pending::new(index, Arc::new(NoLog), Origin::default()));
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
        let pending = Arc::new(Pending::new(index, Arc::new(NoLog), Origin::default()));
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

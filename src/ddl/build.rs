//! Building new indexes from the clustered one: threads read ranges of it and sort what they find, then the
//! trees are built bottom up, one after the other.
//!
//! Nobody changes the table meanwhile; purge may take delete-marked rows away, which have no entries in
//! the new indexes.

use crate::dict::OpenTable;
use crate::mtr::{Mtr, PageCtx, retry};
use crate::os::thread::{OnPanic, Threads};
use crate::page::record::is_metadata;
use crate::page::{RecOffset, SearchMode, layout};
use crate::row::{self, EntryMaker, SortPlace, Sorted, Sorter, UniqueCheck};
use crate::schema::Tuple;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, Rank};
use crate::tree::{Bulk, Intent, Seek, Tree};
use crate::words::{Error, Result, TrxId};
use std::time::Duration;

/// Ranges for each thread, so that none has much more to do than the others.
const RANGES_PER_THREAD: usize = 8;
/// Between two looks at whether the others are done, and the session is to stop.
const STEP: Duration = Duration::from_millis(2);
/// Entries between two looks at whether the session is to stop.
const KILL_STEP: u64 = 1024;

/// New indexes to be built.
pub struct BuildJob {
    table: Arc<OpenTable>,
    trees: Vec<Tree>,
    writer: TrxId,
}

/// What a build works with.
#[derive(Clone)]
pub struct BuildMeans {
    /// Pages.
    pub ctx: Arc<PageCtx>,
    /// Sort buffers, one for each thread and index.
    pub place: SortPlace,
    /// Threads that read and sort, the caller's among them.
    pub threads: usize,
    /// innodb_fill_factor.
    pub fill_factor: u32,
    /// Told when a thread panics.
    pub on_panic: OnPanic,
}

/// Two rows have the same key in a new unique index.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Position of the index among the table's.
    pub index: u16,
    /// The key.
    pub key: Tuple,
}

/// What the threads share.
struct Scan {
    ctx: Arc<PageCtx>,
    table: Arc<OpenTable>,
    trees: Vec<Tree>,
    place: SortPlace,
    /// Where ranges begin; the first one at the begin, each ends where the next one begins.
    starts: Vec<Tuple>,
    next: AtomicUsize,
    running: AtomicUsize,
    stop: AtomicBool,
    failed: Mutex<Option<Error>>,
    /// By index, what each thread sorted.
    done: Mutex<Vec<Vec<Sorter>>>,
}

impl BuildJob {
    pub(super) fn new(table: &Arc<OpenTable>, trees: Vec<Tree>, writer: TrxId) -> BuildJob {
        BuildJob {
            table: table.clone(),
            trees,
            writer,
        }
    }

    /// Builds the indexes; tells of the first key in the order of the first index that two rows have.
    ///
    /// # Errors
    /// `Interrupted` once `killed` says so; `NoSpace`, `Io`, `Stopped`; damage of the table.
    pub fn run(self, means: BuildMeans, killed: &dyn Fn() -> bool) -> Result<Option<Refused>> {
        let clustered = self.table.clustered();
        let wanted = match means.threads {
            0 | 1 => 1,
            threads => threads * RANGES_PER_THREAD,
        };
        let starts = clustered.range_starts(&means.ctx, wanted)?;
        let threads = means.threads.min(starts.len() + 1).max(1);
        let done = self.trees.iter().map(|_| Vec::new()).collect();
        let scan = Arc::new(Scan {
            ctx: means.ctx.clone(),
            table: self.table.clone(),
            trees: self.trees,
            place: means.place.clone(),
            starts,
            next: AtomicUsize::new(0),
            running: AtomicUsize::new(threads),
            stop: AtomicBool::new(false),
            failed: Mutex::new(Rank::Leaf, None),
            done: Mutex::new(Rank::Leaf, done),
        });
        let sorters = scan.run(threads, &means, killed)?;
        for (tree, sorters) in scan.trees.iter().zip(sorters) {
            let refused = build_tree(&means, tree, sorters, self.writer, killed)?;
            if refused.is_some() {
                return Ok(refused);
            }
        }
        Ok(None)
    }
}

fn build_tree(
    means: &BuildMeans,
    tree: &Tree,
    sorters: Vec<Sorter>,
    writer: TrxId,
    killed: &dyn Fn() -> bool,
) -> Result<Option<Refused>> {
    let mut sorted = Sorted::new(tree, &means.place, sorters)?;
    let mut unique = UniqueCheck::new(tree);
    let mut bulk = Bulk::begin(tree, &means.ctx, writer, means.fill_factor)?;
    let mut count = 0;
    while let Some(item) = sorted.next(tree)? {
        if unique.is_second(tree, &item) {
            let found = unique.take_refused();
            return Ok(found.map(|(index, key)| Refused { index, key }));
        }
        bulk.push(item.record(), item.extra())?;
        count += 1;
        if count % KILL_STEP == 0 && killed() {
            return Err(Error::Interrupted);
        }
    }
    bulk.finish()?;
    Ok(None)
}

impl Scan {
    /// Reads the table with `threads` threads; returns the sorted entries of each index.
    fn run(
        self: &Arc<Scan>,
        threads: usize,
        means: &BuildMeans,
        killed: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<Sorter>>> {
        let helpers = Threads::new(means.on_panic.clone());
        for _ in 1..threads {
            let scan = self.clone();
            let started = helpers.start("xt_index_build", move || scan.work(&|| false));
            if started.is_err() {
                // Those that are there do it all.
                self.running.fetch_sub(1, Ordering::AcqRel);
            }
        }
        self.work(killed);
        while self.running.load(Ordering::Acquire) > 0 {
            if killed() {
                self.fail(Error::Interrupted);
            }
            std::thread::sleep(STEP);
        }
        helpers.join_all();
        let failed = self.failed.lock().take();
        match failed {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut *self.done.lock())),
        }
    }

    fn fail(&self, error: Error) {
        self.stop.store(true, Ordering::Release);
        self.failed.lock().get_or_insert(error);
    }

    /// One thread's part.
    fn work(&self, killed: &dyn Fn() -> bool) {
        let leaving = Leaving(self);
        let mut sorters: Vec<Sorter> = (self.trees.iter())
            .map(|tree| Sorter::new(tree, &self.place))
            .collect();
        match self.ranges(&mut sorters, killed) {
            Ok(()) => {
                let mut done = self.done.lock();
                for (all, sorter) in done.iter_mut().zip(sorters) {
                    all.push(sorter);
                }
                drop(done);
                leaving.well();
            }
            Err(error) => self.fail(error),
        }
    }

    fn ranges(&self, sorters: &mut [Sorter], killed: &dyn Fn() -> bool) -> Result<()> {
        let mut maker = EntryMaker::new(&self.ctx, self.table.trees(), &self.trees);
        loop {
            let range = self.next.fetch_add(1, Ordering::Relaxed);
            if range > self.starts.len() || self.stop.load(Ordering::Acquire) {
                return Ok(());
            }
            let start = range.checked_sub(1).map(|before| &self.starts[before]);
            self.range(&mut maker, start, self.starts.get(range), sorters, killed)?;
        }
    }

    /// The rows from `start` on and before `end`: leaf by leaf, each copied, for sorting may write to a file.
    fn range(
        &self,
        maker: &mut EntryMaker<'_>,
        start: Option<&Tuple>,
        end: Option<&Tuple>,
        sorters: &mut [Sorter],
        killed: &dyn Fn() -> bool,
    ) -> Result<()> {
        let tree = self.table.clustered();
        let mut page = Vec::new();
        let mut after: Option<Tuple> = None;
        loop {
            if killed() {
                return Err(Error::Interrupted);
            }
            if self.stop.load(Ordering::Acquire) {
                return Ok(());
            }
            let seek = match (&after, start) {
                (Some(last), _) => Seek::Key(last, SearchMode::Greater),
                (None, Some(start)) => Seek::Key(start, SearchMode::GreaterOrEqual),
                (None, None) => Seek::First,
            };
            let (from, _) = retry(&self.ctx, None, |mtr| copy_leaf(tree, mtr, seek, &mut page))?;
            let Some(from) = from else { return Ok(()) };
            let last = maker.entries_of(&page, from, end, &mut |i, entry, image| {
                sorters[i].push(&self.trees[i], entry, image, 0)
            })?;
            match last {
                row::Leaf::GoesOn(last) => {
                    let ascends = |after| tree.compare_keys(after, &last).is_lt();
                    if !after.as_ref().is_none_or(ascends) {
                        return Err(tree.named(layout::corrupt(&page, "keys that do not ascend")));
                    }
                    after = Some(last);
                }
                row::Leaf::Ended => return Ok(()),
            }
        }
    }
}

/// Copies the leaf of `seek`, or the next one if no row follows on it; the first row's record. `None` at the tree's end.
fn copy_leaf(
    tree: &Tree,
    mtr: &mut Mtr<'_>,
    seek: Seek<'_>,
    page: &mut Vec<u8>,
) -> Result<Option<RecOffset>> {
    let mut at = tree.seek(mtr, seek, Intent::Read)?;
    let view = mtr.view(at.page);
    // A hidden record may be all that the first leaf has.
    let is_row = !layout::is_system(view, at.rec) && !is_metadata(view, at.rec);
    if !is_row && !tree.next(mtr, &mut at)? {
        return Ok(None);
    }
    page.clear();
    page.extend_from_slice(mtr.view(at.page));
    Ok(Some(at.rec))
}

/// Counts a thread out, whatever ends it; one that panicked has failed.
struct Leaving<'s>(&'s Scan);

impl Leaving<'_> {
    fn well(self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        std::mem::forget(self);
    }
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0
            .fail(Error::internal("a thread that built an index failed"));
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

//! The pool itself: frames, table, lists; looking a page up, making one, giving it back.

use std::ptr::NonNull;

use super::flush::Flusher;
use super::flush_list::FlushList;
use super::frame::{FLAG_FREED, Frame, Load, NO_PAGE};
use super::guard::{Mode, PageGuard, Pin};
use super::guide::Guides;
use super::hook::PageLoaded;
use super::lru::Lru;
use super::read_ahead::ReadAhead;
use super::region::{Array, Region};
use super::resize::Resizer;
use super::spots::Spots;
use super::table::{Found, Table};
use crate::redo::Log;
use crate::space::Registry;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Event, Once, Rank, Signal};
use crate::words::{Error, Lsn, PageId, Result};

/// How a pool is made.
#[derive(Clone, Copy, Debug)]
pub struct PoolConfig {
    /// Bytes of page images.
    pub bytes: usize,
    /// As many there may be later (`Pool::resize`); fewer, if there are no such addresses.
    pub bytes_max: usize,
    /// innodb_page_size.
    pub page_size: usize,
    /// innodb_old_blocks_time: a page must be used this long after its first use to become young.
    pub old_blocks_time_ms: u32,
    /// innodb_lru_scan_depth: how many free frames the maker keeps at hand, and how many frames it
    /// keeps clean at the cold end, at most; a small pool has fewer.
    pub free_frames_target: usize,
}

impl PoolConfig {
    /// Defaults for a pool of `bytes`.
    pub fn new(bytes: usize, page_size: usize) -> PoolConfig {
        PoolConfig {
            bytes,
            bytes_max: bytes,
            page_size,
            old_blocks_time_ms: 1000,
            free_frames_target: 1536,
        }
    }

    /// Frames of a pool of `bytes`. Errors: `Invalid` if they are too few or too many.
    pub(super) fn frame_count(&self, bytes: usize) -> Result<usize> {
        let frame_count = bytes / self.page_size;
        if frame_count < FRAMES_MIN {
            return Err(Error::invalid(format!(
                "innodb_buffer_pool_size: at least {FRAMES_MIN} pages of {} bytes are needed",
                self.page_size
            )));
        }
        match frame_count <= FRAMES_MAX {
            true => Ok(frame_count),
            false => Err(self.too_large(bytes)),
        }
    }

    pub(super) fn too_large(&self, bytes: usize) -> Error {
        Error::invalid(format!(
            "innodb_buffer_pool_size={bytes}: the system does not give that much memory"
        ))
    }
}

/// Fewest frames a pool works with: the largest mini-transaction plus some readers.
pub(super) const FRAMES_MIN: usize = 64;
/// Most frames: their numbers and those of the table's buckets have 32 bits.
const FRAMES_MAX: usize = 1 << 31;
/// Length of a tick of the coarse clock.
const TICK_MS: u32 = 1;

/// The buffer pool.
pub struct Pool {
    pub(super) config: PoolConfig,
    pub(super) frames: Array<Frame>,
    pub(super) region: Region,
    pub(super) resizer: Resizer,
    pub(super) table: Table,
    pub(super) guides: Guides,
    pub(super) spots: Spots,
    pub(super) lru: Lru,
    pub(super) flush_list: FlushList,
    pub(super) flusher: Flusher,
    pub(super) read_ahead: ReadAhead,
    pub(super) hook: Once<Arc<dyn PageLoaded>>,
    pub(super) log: Arc<Log>,
    pub(super) spaces: Arc<Registry>,
    frozen: AtomicBool,
    frozen_why: Once<Box<str>>,
    /// Coarse time, for the LRU.
    tick: AtomicU32,
    /// `PoolConfig::free_frames_target`.
    pub(super) scan_depth: AtomicUsize,
    started: std::time::Instant,
    /// Raised when a frame became free, or clean at the cold end.
    pub(super) frame_available: Signal,
    /// Set when dirty pages should be written now.
    pub(super) cleaner_wanted: Event,
    /// Set when free frames should be made now.
    pub(super) maker_wanted: Event,
    /// Set when pages at the cold end should be written now.
    pub(super) cold_writer_wanted: Event,
    /// A maker of free frames runs: who needs one may wait for it instead of writing pages itself.
    pub(super) maker_runs: AtomicBool,
    pub(super) counters: Counters,
}

/// What a pool is made of, before it is one.
struct Memory {
    region: Region,
    frames: Array<Frame>,
    table: Table,
    spots: Spots,
}

impl Memory {
    /// Memory for `frame_count` frames in ranges for as many as `config.bytes_max` says, or as there
    /// are addresses for; also returns the bytes of these.
    fn reserve(config: &PoolConfig, frame_count: usize) -> Result<(Memory, usize)> {
        let mut max = (config.bytes_max / config.page_size).clamp(frame_count, FRAMES_MAX);
        loop {
            match Memory::ranges(config.page_size, frame_count, max) {
                Ok(memory) => {
                    let committed = memory.region.commit(frame_count);
                    return committed
                        .map(|()| (memory, max * config.page_size))
                        .map_err(|_| config.too_large(config.bytes));
                }
                Err(_) if max > frame_count => max = (max / 2).max(frame_count),
                Err(_) => return Err(config.too_large(config.bytes)),
            }
        }
    }

    fn ranges(page_size: usize, frame_count: usize, max: usize) -> Result<Memory> {
        let frames = Array::reserve(max)?;
        frames.commit(frame_count)?;
        let spots = Spots::reserve(max)?;
        spots.commit(frame_count)?;
        Ok(Memory {
            spots,
            region: Region::reserve(page_size, max)?,
            frames,
            table: Table::new(frame_count, max)?,
        })
    }
}

/// Totals since the pool was opened.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) reads: AtomicU64,
    pub(super) reads_under_latches: AtomicU64,
    pub(super) created: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) written_cold: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) waits_for_frame: AtomicU64,
    pub(super) repaired: AtomicU64,
    pub(super) read_ahead: AtomicU64,
    pub(super) read_ahead_random: AtomicU64,
    pub(super) read_ahead_evicted: AtomicU64,
    pub(super) loaded: AtomicU64,
}

/// What the pool holds and did; for status.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PoolCounts {
    pub frames: usize,
    pub free: usize,
    pub young: usize,
    pub old: usize,
    pub dirty: usize,
    pub reads: u64,
    pub reads_under_latches: u64,
    pub created: u64,
    pub written: u64,
    pub written_cold: u64,
    pub evicted: u64,
    pub waits_for_frame: u64,
    pub repaired: u64,
    pub read_ahead: u64,
    pub read_ahead_random: u64,
    /// Read ahead and evicted before anybody used them.
    pub read_ahead_evicted: u64,
    /// Read because a list named them.
    pub loaded: u64,
}

impl Pool {
    /// Reserves the frames. Errors: `Invalid` for a pool that is too small, or larger than the system
    /// can give.
    pub fn open(mut config: PoolConfig, log: Arc<Log>, spaces: Arc<Registry>) -> Result<Pool> {
        let frame_count = config.frame_count(config.bytes)?;
        let (memory, bytes_max) = Memory::reserve(&config, frame_count)?;
        config.bytes_max = bytes_max;
        Ok(Pool {
            config,
            region: memory.region,
            table: memory.table,
            spots: memory.spots,
            guides: Guides::new(bytes_max / config.page_size, config.page_size),
            frames: memory.frames,
            resizer: Resizer::new(config.bytes),
            lru: Lru::new(
                frame_count as u32,
                config.old_blocks_time_ms.div_ceil(TICK_MS),
            ),
            flush_list: FlushList::new(),
            flusher: Flusher::new(),
            read_ahead: ReadAhead::new(),
            hook: Once::new(),
            log,
            spaces,
            frozen: AtomicBool::new(false),
            frozen_why: Once::new(),
            tick: AtomicU32::new(0),
            scan_depth: AtomicUsize::new(config.free_frames_target),
            started: std::time::Instant::now(),
            frame_available: Signal::new(),
            cleaner_wanted: Event::new(),
            maker_wanted: Event::new(),
            cold_writer_wanted: Event::new(),
            maker_runs: AtomicBool::new(false),
            counters: Counters::default(),
        })
    }

    /// Sets the hook; once, before the first page is read.
    pub fn set_hook(&self, hook: Arc<dyn PageLoaded>) {
        if self.hook.set(hook).is_err() {
            panic!("the page hook is set twice");
        }
    }

    /// innodb_page_size.
    pub fn page_size(&self) -> usize {
        self.config.page_size
    }

    /// Frames of the pool.
    pub fn frame_count(&self) -> usize {
        self.lru.frame_count()
    }

    /// The frames that were ever used.
    pub(super) fn used_frames(&self) -> &[Frame] {
        let used = self.lru.lock().fresh() as usize;
        &self.frames[..used]
    }

    /// What the pool holds and did.
    pub fn counts(&self) -> PoolCounts {
        let lru = self.lru.counts();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PoolCounts {
            frames: self.frame_count(),
            free: lru.free,
            young: lru.young,
            old: lru.old,
            dirty: self.flush_list.dirty_count(),
            reads: read(&self.counters.reads),
            reads_under_latches: read(&self.counters.reads_under_latches),
            created: read(&self.counters.created),
            written: read(&self.counters.written),
            written_cold: read(&self.counters.written_cold),
            evicted: read(&self.counters.evicted),
            waits_for_frame: read(&self.counters.waits_for_frame),
            repaired: read(&self.counters.repaired),
            read_ahead: read(&self.counters.read_ahead),
            read_ahead_random: read(&self.counters.read_ahead_random),
            read_ahead_evicted: read(&self.counters.read_ahead_evicted),
            loaded: read(&self.counters.loaded),
        }
    }

    /// Start LSN of the oldest change that some file lacks, or `None`: an upper bound for the
    /// checkpoint (L2). Pages that still wait for recovery are not counted here.
    pub fn oldest_modification(&self) -> Option<Lsn> {
        self.flush_list.oldest(&self.frames)
    }

    /// Pages that some file lacks changes of.
    pub fn dirty_count(&self) -> usize {
        self.flush_list.dirty_count()
    }

    // Freezing ----------------------------------------------------------------------------------

    /// No page write starts from here on; look-ups fail. For good.
    #[cold]
    pub fn freeze(&self, why: &str) {
        let _first_reason_stays = self.frozen_why.set(why.into());
        self.frozen.store(true, Ordering::SeqCst);
        self.frame_available.raise();
        self.cleaner_wanted.set();
        self.maker_wanted.set();
        self.cold_writer_wanted.set();
    }

    /// The thread passes a crash point.
    pub(super) fn reached(&self, name: &str) {
        self.log.crash_points().reached(name);
    }

    /// Until it is dropped, a panic stops pool and log: a frame is between two states.
    pub(super) fn critical(&self, what: &'static str) -> Critical<'_> {
        Critical { pool: self, what }
    }

    /// Errors: `Stopped` after `freeze`.
    #[inline]
    pub fn check_running(&self) -> Result<()> {
        match self.frozen.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(self.stopped_error()),
        }
    }

    #[cold]
    pub(super) fn stopped_error(&self) -> Error {
        let why = self
            .frozen_why
            .get()
            .map_or("a page is half-changed", |why| why);
        Error::Stopped(why.into())
    }

    // Looking up --------------------------------------------------------------------------------

    pub(super) fn frame(&self, index: u32) -> &Frame {
        &self.frames[index as usize]
    }

    pub(super) fn frame_ptr(&self, index: u32) -> NonNull<u8> {
        self.region.frame(index as usize)
    }

    /// Physical size of the page in a frame.
    #[inline]
    pub(super) fn page_bytes(&self, index: u32) -> usize {
        match self.frame(index).physical_sectors.load(Ordering::Relaxed) {
            0 => self.config.page_size,
            sectors => sectors as usize * 512,
        }
    }

    /// The page's frame, pinned, whatever its load state.
    pub(super) fn pin(&self, id: PageId) -> Option<Pin<'_>> {
        loop {
            match self.table.find(&self.frames, id) {
                Found::Pinned(at) => return Some(Pin::adopt(self, at)),
                Found::Stale(at) => self.unpin(at),
                Found::Nothing => return None,
            }
        }
    }

    /// The page, pinned, if it is in the pool with its content; a use of it.
    ///
    /// Errors: `Stopped`.
    #[inline]
    pub fn find_ready(&self, id: PageId) -> Result<Option<Pin<'_>>> {
        self.check_running()?;
        let Some(pin) = self.pin(id) else {
            return Ok(None);
        };
        if pin.frame().load() != Load::Ready {
            return Ok(None);
        }
        self.touch(pin.frame());
        Ok(Some(pin))
    }

    /// True if the page is in the pool. A hint.
    pub fn contains(&self, id: PageId) -> bool {
        self.pin(id).is_some()
    }

    #[inline]
    pub(super) fn touch(&self, frame: &Frame) {
        // Relaxed: a time that is coarse anyway.
        self.lru.touch(frame, self.tick.load(Ordering::Relaxed));
    }

    /// Changes `PoolConfig::old_blocks_time_ms`.
    pub fn set_old_blocks_time(&self, ms: u32) {
        self.lru.set_old_ticks(ms.div_ceil(TICK_MS));
    }

    /// Changes `PoolConfig::free_frames_target`.
    pub fn set_lru_scan_depth(&self, frames: usize) {
        self.scan_depth.store(frames, Ordering::Relaxed);
        self.wake_maker();
    }

    /// Moves the coarse clock on; called by misses and by the cleaner.
    pub(crate) fn advance_tick(&self) {
        let tick = self.started.elapsed().as_millis() / u128::from(TICK_MS);
        self.tick.store(tick as u32, Ordering::Relaxed);
    }

    /// Gives a pin back. The last one on a frame whose read failed frees the frame.
    pub(super) fn unpin(&self, at: u32) {
        let frame = self.frame(at);
        if frame.unpin() && frame.load() == Load::Failed && frame.try_own() {
            // Between unpin and try_own the frame may have been freed and used for another page.
            match frame.load() {
                Load::Failed => self.give_frame_back(at),
                _ => frame.disown(0),
            }
        }
    }

    // Making and forgetting ---------------------------------------------------------------------

    /// Puts an owned, empty frame into the table for `id`, pinned once and X-latched as `rank`;
    /// gives it back as `Err` if the page is in the table already.
    pub(super) fn enter(
        &self,
        id: PageId,
        at: u32,
        load: Load,
        rank: Rank,
    ) -> std::result::Result<PageGuard<'_>, u32> {
        let frame = self.frame(at);
        let physical = match self.spaces.get(id.space) {
            Some(space) => space.geometry().physical_bytes(),
            None => self.config.page_size,
        };
        let shard = self.table.shard(id);
        if self.table.find_in(&shard, &self.frames, id).is_some() {
            return Err(at);
        }
        frame.set_id(id.to_u64());
        frame.set_load(load);
        // 0 stands for the usual size.
        let sectors = if physical == self.config.page_size {
            0
        } else {
            (physical / 512) as u16
        };
        frame.physical_sectors.store(sectors, Ordering::Relaxed);
        let latched = frame.latch.try_lock(Mode::X, rank);
        assert!(latched, "nobody latches a frame that nobody can pin");
        self.table.link(&shard, &self.frames, id, at);
        frame.disown(1);
        Ok(PageGuard::adopt(Pin::adopt(self, at), Mode::X, rank))
    }

    /// Takes an owned frame out of the table; nobody finds it from here on.
    pub(super) fn leave(&self, at: u32) {
        let frame = self.frame(at);
        let id = frame.id();
        let shard = self.table.shard(id);
        self.table.unlink(&shard, &self.frames, id, at);
        frame.set_id(NO_PAGE);
    }

    /// Owned and out of the table → free list.
    pub(super) fn give_frame_back(&self, at: u32) {
        self.give_frames_back(&[at]);
    }

    /// As `give_frame_back`, for frames whose pages were evicted.
    pub(super) fn give_frames_back(&self, frames: &[u32]) {
        if frames.is_empty() {
            return;
        }
        let tick = self.tick.load(Ordering::Relaxed);
        let mut lists = self.lru.lock();
        for &at in frames {
            lists.remove(&self.frames, at);
            self.frame(at).reset();
            lists.add_free(&self.frames, at);
        }
        self.lru.note_evicted(&mut lists, frames.len(), tick);
        drop(lists);
        self.frame_available.raise();
    }

    // Changes -----------------------------------------------------------------------------------

    pub(super) fn note_dirty(&self, at: u32, start: Lsn) {
        self.flush_list.note_dirty(&self.frames, at, start);
    }

    /// The page was freed by the mini-transaction that commits now: its content need not be
    /// written any more, unless it is created again.
    pub fn note_freed(&self, id: PageId) {
        if let Some(pin) = self.pin(id) {
            pin.frame().set_flag(FLAG_FREED);
        }
        if let Some(hook) = self.hook.get() {
            hook.on_free(id);
        }
    }

    /// Records that recovery keeps for the page are void: it is created anew.
    pub fn forget_pending(&self, id: PageId) {
        if let Some(hook) = self.hook.get() {
            hook.on_create(id);
        }
    }
}

/// See `Pool::critical`.
pub(super) struct Critical<'p> {
    pool: &'p Pool,
    what: &'static str,
}

impl Drop for Critical<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.pool.freeze(self.what);
            self.pool.log.freeze(self.what);
        }
    }
}

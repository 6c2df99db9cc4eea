//! The log as a whole: its parts and its state.

use super::admission::Room;
use super::checkpoint::Checkpoints;
use super::file::{BLOCK, LogFile};
use super::held::Held;
use super::writer::Writer;
use crate::format::redo_file::LogCapacity;
use crate::os::CrashPoints;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::watermark::WINDOW;
use crate::sync::{Arc, Gate, GateGuard, GroupLock, Mutex, Once, Rank, Ring, RwLock, Watermark};
use crate::words::{Error, Lsn, Result};

/// How a log is made and opened.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// innodb_log_group_home_dir.
    pub dir: String,
    /// innodb_log_file_size in bytes: a multiple of 4096.
    pub file_size: u64,
    /// innodb_log_buffer_size in bytes; rounded up to whole MiB, at least 2 MiB.
    pub buffer_size: usize,
    /// innodb_page_size: the margins of the capacity depend on it.
    pub page_size: usize,
    /// Text for the header of a new file.
    pub creator: String,
    /// Past the system's cache.
    pub direct: bool,
    /// False: syncs are left out (innodb_flush_method=nosync). Loses commits at a power cut.
    pub sync: bool,
}

/// A write into the system's cache takes some microseconds: less than to sleep and be woken.
const WRITE_SPINS: u32 = 100;

/// Hook 3 of docs/ARCHITECTURE.md: the log fills, pages must be flushed and a checkpoint made.
pub trait CheckpointNeeded: Send + Sync {
    /// Pages that are dirty since before `target` should be flushed, then a checkpoint made;
    /// `urgent`: operations wait for it. Called often: it only wakes somebody.
    fn checkpoint_needed(&self, target: Lsn, urgent: bool);
}

/// The redo log.
///
/// The way of a mini-transaction: `admit` → page latches → `enter` → `append` → stamp pages, enter
/// flush lists → `registered` → leave the gate → `write_up_to`.
pub struct Log {
    file: RwLock<Arc<LogFile>>,
    /// What the file says of itself, for those who append: changed under the exclusive gate.
    pub(super) first_lsn: AtomicU64,
    pub(super) size: AtomicU64,
    pub(super) options: LogOptions,
    pub(super) crash_points: Arc<CrashPoints>,
    /// Positions in it are LSN minus `origin`, which is a block's start in each file that this log had,
    /// so that its blocks are the file's.
    pub(super) ring: Arc<Ring>,
    origin: Lsn,
    pub(super) gate: Gate,
    pub(super) registered: Watermark,
    pub(super) writer: Mutex<Writer>,
    pub(super) write: GroupLock,
    pub(super) flush: GroupLock,
    pub(super) checkpoint_lsn: AtomicU64,
    pub(super) checkpoints: Mutex<Checkpoints>,
    pub(super) room: Room,
    pub(super) held: Held,
    pub(super) hook: Once<Arc<dyn CheckpointNeeded>>,
    frozen: AtomicBool,
    /// Frozen by a panic: not even memory may be trusted.
    broken: AtomicBool,
    why_frozen: Once<Box<str>>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("path", &self.file().path())
            .field("lsn", &self.lsn())
            .field("written", &self.written_lsn())
            .field("flushed", &self.flushed_lsn())
            .field("checkpoint", &self.checkpoint_lsn())
            .finish_non_exhaustive()
    }
}

/// What `Log::assemble` needs beyond the options.
pub(super) struct Start {
    pub(super) file: LogFile,
    pub(super) end: Lsn,
    /// The bytes of the last block before `end`.
    pub(super) head: Vec<u8>,
    pub(super) checkpoints: Checkpoints,
}

impl Log {
    pub(super) fn assemble(
        options: LogOptions,
        crash_points: Arc<CrashPoints>,
        start: Start,
    ) -> Result<Log> {
        const MIB: usize = 1 << 20;
        let geometry = start.file.geometry();
        let capacity = LogCapacity::new(geometry.file_size(), options.page_size)
            .ok_or_else(|| Error::invalid("innodb_log_file_size is too small to work with"))?;
        let ring_size = options.buffer_size.max(2 * MIB).div_ceil(MIB) * MIB;
        let position = start.end.0 - geometry.first_lsn().0;
        let ring = Arc::new(Ring::new(ring_size, position, &start.head));
        let unwritten = start.file.unwritten_from(start.end);
        let writer = Writer::new(ring.reader(), position, unwritten);
        let checkpoint_lsn = start.checkpoints.last.lsn.0;
        Ok(Log {
            first_lsn: AtomicU64::new(geometry.first_lsn().0),
            size: AtomicU64::new(geometry.file_size()),
            origin: geometry.first_lsn(),
            file: RwLock::new(Rank::Leaf, Arc::new(start.file)),
            options,
            crash_points,
            ring,
            gate: Gate::new(Rank::LogGate),
            registered: Watermark::new(start.end.0, WINDOW),
            writer: Mutex::new(Rank::FileState, writer),
            write: GroupLock::new(Rank::LogWrite, start.end.0).spinning(WRITE_SPINS),
            flush: GroupLock::new(Rank::LogFlush, start.end.0),
            checkpoint_lsn: AtomicU64::new(checkpoint_lsn),
            checkpoints: Mutex::new(Rank::Checkpoint, start.checkpoints),
            room: Room::new(),
            held: Held::none(capacity.statement_age()),
            hook: Once::new(),
            frozen: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            why_frozen: Once::new(),
        })
    }

    /// Sets the hook; once, before the first `admit`.
    pub fn set_hook(&self, hook: Arc<dyn CheckpointNeeded>) {
        assert!(
            self.hook.set(hook).is_ok(),
            "the checkpoint hook is set once"
        );
    }

    /// The next LSN.
    #[inline]
    pub fn lsn(&self) -> Lsn {
        self.to_lsn(self.ring.position())
    }

    /// Everything below is in the file, perhaps not durably.
    #[inline]
    pub fn written_lsn(&self) -> Lsn {
        Lsn(self.write.reached())
    }

    /// Everything below survives a power cut.
    #[inline]
    pub fn flushed_lsn(&self) -> Lsn {
        Lsn(self.flush.reached())
    }

    /// The last checkpoint.
    #[inline]
    pub fn checkpoint_lsn(&self) -> Lsn {
        Lsn(self.checkpoint_lsn.load(Ordering::Acquire))
    }

    /// Bytes of log that recovery would read now.
    pub fn age(&self) -> u64 {
        self.lsn().0.saturating_sub(self.checkpoint_lsn().0)
    }

    /// The limits of the age.
    #[inline]
    pub fn capacity(&self) -> LogCapacity {
        let capacity = LogCapacity::new(self.file_size(), self.options.page_size);
        capacity.expect("looked at when the file was opened")
    }

    /// The file now.
    pub(super) fn file(&self) -> Arc<LogFile> {
        self.file.read().clone()
    }

    /// Goes on in another file. The gate is held exclusively, and nobody writes.
    pub(super) fn set_file(&self, file: LogFile) {
        let geometry = file.geometry();
        assert!(
            geometry.first_lsn().0.abs_diff(self.origin.0) % BLOCK as u64 == 0,
            "blocks stay where they are"
        );
        self.first_lsn
            .store(geometry.first_lsn().0, Ordering::SeqCst);
        self.size.store(geometry.file_size(), Ordering::SeqCst);
        let unwritten = file.unwritten_from(self.lsn());
        self.writer.lock().set_unwritten(unwritten);
        let old = std::mem::replace(&mut *self.file.write(), Arc::new(file));
        // Without the latch: closing it may give its lock back.
        drop(old);
    }

    /// The options it was opened with.
    pub fn options(&self) -> &LogOptions {
        &self.options
    }

    /// Bytes of the log file.
    pub fn file_size(&self) -> u64 {
        self.size.load(Ordering::SeqCst)
    }

    /// The crash points that the log passes.
    pub fn crash_points(&self) -> &Arc<CrashPoints> {
        &self.crash_points
    }

    /// Enters the gate with others, to append.
    #[inline]
    #[track_caller]
    pub fn enter(&self) -> GateGuard<'_> {
        self.gate.enter()
    }

    /// Enters the gate alone: for a FILE_MODIFY that must stand directly before its
    /// mini-transaction.
    #[track_caller]
    pub fn enter_exclusive(&self) -> GateGuard<'_> {
        self.gate.enter_exclusive()
    }

    /// Stops the log for good: no write starts any more, every wait ends with `Error::Stopped`.
    /// Any thread, under any latch, also while unwinding. The first reason stays.
    pub fn freeze(&self, why: &str) {
        self.broken.store(true, Ordering::SeqCst);
        self.stop(why);
    }

    /// The device failed: as `freeze`, but mini-transactions that have begun are still appended, to
    /// the buffer alone. So pages in memory stay whole, and reads go on.
    pub(super) fn fail(&self, why: &str) {
        self.stop(why);
    }

    fn stop(&self, why: &str) {
        // The first reason stays; a later one is dropped.
        let _ = self.why_frozen.set(why.into());
        if !self.frozen.swap(true, Ordering::SeqCst) {
            log::error!("the redo log is stopped: {why}");
        }
        self.write.fail();
        self.flush.fail();
        self.room.wake();
    }

    /// Errors: `Stopped` after `freeze`, not after `fail`.
    #[inline]
    pub(super) fn check_broken(&self) -> Result<()> {
        match self.broken.load(Ordering::Acquire) {
            true => Err(self.stopped()),
            false => Ok(()),
        }
    }

    /// True after `freeze`, and after a failure.
    #[inline]
    pub fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Acquire)
    }

    /// `Error::Stopped` with the reason, after `freeze` or a failure.
    #[inline]
    pub fn check_frozen(&self) -> Result<()> {
        if self.is_frozen() {
            Err(self.stopped())
        } else {
            Ok(())
        }
    }

    #[cold]
    pub(super) fn stopped(&self) -> Error {
        Error::Stopped(self.why_frozen.get().cloned().unwrap_or_default())
    }

    pub(super) fn to_lsn(&self, position: u64) -> Lsn {
        Lsn(self.origin.0 + position)
    }

    pub(super) fn to_position(&self, lsn: Lsn) -> u64 {
        lsn.0 - self.origin.0
    }
}

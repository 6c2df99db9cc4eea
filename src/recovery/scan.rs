//! One pass over the log: from the checkpoint to the logical end (format-redo.md sections 2, 3, 13).

use std::time::{Duration, Instant};

use super::index::{RedoIndex, any_page_of};
use super::merge::{Merger, bad};
use super::pipeline::{Pipeline, READS_AT_ONCE, ScanOptions};
use crate::format::redo_file::{Checkpoint, LogGeometry};
use crate::redo::LogFile;
use crate::words::{Error, Lsn, Result, SpaceId};

/// What the log is read through, by several threads at once: in the pass, and again for records that
/// stayed there.
pub trait LogBytes: Send + Sync {
    /// Where LSNs stand.
    fn geometry(&self) -> LogGeometry;

    /// The checkpoint that counts; `None` if no block is valid.
    fn checkpoint(&self) -> Option<Checkpoint>;

    /// Fills `buf` from `lsn` on, over the end of the circular area if need be.
    fn read(&self, lsn: Lsn, buf: &mut [u8]) -> Result<()>;
}

impl LogBytes for LogFile {
    fn geometry(&self) -> LogGeometry {
        LogFile::geometry(self)
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        LogFile::checkpoint(self).map(|(checkpoint, _)| checkpoint)
    }

    fn read(&self, lsn: Lsn, buf: &mut [u8]) -> Result<()> {
        LogFile::read(self, lsn, buf)
    }
}

/// What the pass found.
#[derive(Debug)]
pub struct LogScan {
    /// Where it began.
    pub checkpoint: Checkpoint,
    /// The logical end of the log: where appending goes on.
    pub end: Lsn,
    /// The log is logically empty: it was shut down cleanly, no page waits.
    pub clean: bool,
    /// The records by page, and what becomes of the files.
    pub index: RedoIndex,
    /// Number of mini-transactions read.
    pub mtr_count: u64,
    /// How long the pass took.
    pub took: Duration,
}

impl LogScan {
    /// Checks that every tablespace is named in time. `is_undo` tells undo tablespaces, which need
    /// no name.
    ///
    /// Errors: `Corrupt` naming a space whose records cannot be matched with a file.
    pub fn check_names(&self, is_undo: impl Fn(SpaceId) -> bool) -> Result<()> {
        match self.index.unnamed().find(|&space| !is_undo(space)) {
            None => Ok(()),
            Some(space) => Err(Error::corrupt(
                any_page_of(&self.index, space),
                format!(
                    "redo log: no record names the file of tablespace {space}; if it is an undo \
                     tablespace, its file is missing: put it back (undo001, undo002 and so on)"
                ),
            )),
        }
    }
}

impl ScanOptions {
    /// With the calling thread and no other.
    pub fn one_thread() -> ScanOptions {
        ScanOptions {
            threads: 1,
            ..ScanOptions::for_index_of(usize::MAX)
        }
    }

    /// On this machine, for an index that keeps `index_bytes_max` bytes of records in memory.
    pub fn for_index_of(index_bytes_max: usize) -> ScanOptions {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        ScanOptions {
            // More than there are processors: some wait for the device.
            threads: processors.min(THREADS_MAX) + READS_AT_ONCE,
            chunk_bytes: match index_bytes_max {
                0..CHUNKS_FROM => CHUNK_BYTES_MAX / 4,
                _ => CHUNK_BYTES_MAX,
            },
            alone_bytes: ALONE_BYTES,
        }
    }
}

/// More threads than that wait for the one that puts their work together.
const THREADS_MAX: usize = 8;
/// What is read at once, if the index may take as much as this.
const CHUNK_BYTES_MAX: usize = 4 << 20;
const CHUNKS_FROM: usize = 128 << 20;
/// A log shorter than this is read sooner than threads are started.
const ALONE_BYTES: u64 = 1 << 20;

/// Reads the log once, with the calling thread and no other, into an index without a limit.
///
/// Errors: `Corrupt` if there is no valid checkpoint, if FILE_CHECKPOINT for it is missing, or for
/// records that cannot be, although the CRC holds; what reading gives.
pub fn scan(log: &dyn LogBytes) -> Result<LogScan> {
    scan_into(log, RedoIndex::default(), ScanOptions::one_thread())
}

/// As `scan`, into an empty index that may have a limit. What comes out depends on no option.
///
/// Errors: those of `scan`, and what keeping records in a file gives.
pub fn scan_into(log: &dyn LogBytes, index: RedoIndex, options: ScanOptions) -> Result<LogScan> {
    let started = Instant::now();
    let checkpoint = log
        .checkpoint()
        .ok_or_else(|| bad("no valid checkpoint block in its header"))?;
    let merger = Merger::new(checkpoint, index);
    let from = checkpoint.lsn;
    let (end, merger) = Pipeline::new(log, from, merger, options).run(from)?;
    let named = merger.named()?;
    Ok(LogScan {
        checkpoint,
        end,
        clean: checkpoint.lsn == checkpoint.end_lsn && named == end,
        mtr_count: merger.mtr_count,
        index: merger.index,
        took: started.elapsed(),
    })
}

//! The file ib_logfile0: header, checkpoint blocks, records by LSN.

use crate::format::redo_file::{
    CHECKPOINT_BYTES, Checkpoint, HEADER_BYTES, LogGeometry, LogHeader, OFF_RECORDS,
    checkpoint_offset,
};
use crate::os::file::{is_errno, join};
use crate::os::{AlignedBuf, File, FileLock, OpenMode, Vfs};
use crate::sync::Arc;
use crate::words::{Error, Lsn, Result};

/// Unit of writes: what every device takes, and what stock uses on most.
pub const BLOCK: usize = 4096;

/// Name of the log file.
pub const NAME: &str = "ib_logfile0";
/// Name under which a new log file is made.
pub const NAME_NEW: &str = "ib_logfile101";

/// An open log file whose header is valid.
#[derive(Debug)]
pub struct LogFile {
    file: Arc<dyn File>,
    header: LogHeader,
    geometry: LogGeometry,
    checkpoint: Option<(Checkpoint, usize)>,
    _lock: Option<Box<dyn FileLock>>,
}

impl LogFile {
    /// Opens the log in `dir` and takes its lock, unless `mode` is read-only.
    ///
    /// Errors: `Error::Io` (ENOENT: no log), `Error::Unsupported` for other formats,
    /// `Error::Corrupt` for a damaged header.
    pub fn open(vfs: &dyn Vfs, dir: &str, mode: OpenMode) -> Result<LogFile> {
        let path = join(dir, NAME);
        let file = vfs.open(&path, mode)?;
        let lock = if mode.write { Some(file.lock()?) } else { None };
        LogFile::from_file(file, lock).map_err(|error| error.in_file(&path))
    }

    pub(super) fn from_file(
        file: Arc<dyn File>,
        lock: Option<Box<dyn FileLock>>,
    ) -> Result<LogFile> {
        let size = file.size()?;
        if size < OFF_RECORDS + 16 {
            return Err(Error::corrupt_bytes(
                "the redo log is too short, its LSN is unknown",
            ));
        }
        let mut start = AlignedBuf::new(OFF_RECORDS as usize);
        file.read_at(&mut start, 0)?;
        let header = LogHeader::parse(&start[..HEADER_BYTES])?;
        let geometry = LogGeometry::new(header.first_lsn, size).expect("checked above");
        let block = |slot: usize| {
            let at = checkpoint_offset(slot) as usize;
            Checkpoint::parse(&start[at..at + CHECKPOINT_BYTES], header.first_lsn)
        };
        let checkpoint = Checkpoint::choose(block(0), block(1));
        Ok(LogFile {
            file,
            header,
            geometry,
            checkpoint,
            _lock: lock,
        })
    }

    /// The header.
    pub fn header(&self) -> &LogHeader {
        &self.header
    }

    /// Where LSNs stand in the file.
    pub fn geometry(&self) -> LogGeometry {
        self.geometry
    }

    /// The checkpoint that counts, and its slot; `None` if both blocks are damaged.
    pub fn checkpoint(&self) -> Option<(Checkpoint, usize)> {
        self.checkpoint
    }

    /// Path of the file.
    pub fn path(&self) -> &str {
        self.file.path()
    }

    /// Reads the bytes at `lsn`, over the end of the circular area if need be. Any content: what
    /// was never written there, or comes from a lap before, is for the caller to find out.
    pub fn read(&self, lsn: Lsn, buf: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let at = Lsn(lsn.0 + done as u64);
            let piece = (self.geometry.bytes_to_wrap(at) as usize).min(buf.len() - done);
            self.read_unaligned(&mut buf[done..done + piece], self.geometry.offset(at))?;
            done += piece;
        }
        Ok(())
    }

    /// Reads whole blocks around the bytes asked for: direct I/O takes no less.
    fn read_unaligned(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let block = BLOCK as u64;
        let start = offset / block * block;
        let end = (offset + buf.len() as u64).div_ceil(block) * block;
        if end > self.geometry.file_size() {
            // A file whose size is not whole blocks (mariadb-backup's): never opened directly.
            return self.file.read_at(buf, offset);
        }
        if end - start == buf.len() as u64 && AlignedBuf::is_aligned(buf, BLOCK) {
            return self.file.read_at(buf, offset);
        }
        let mut blocks = AlignedBuf::new((end - start) as usize);
        self.file.read_at(&mut blocks, start)?;
        let skip = (offset - start) as usize;
        buf.copy_from_slice(&blocks[skip..skip + buf.len()]);
        Ok(())
    }

    /// Writes whole blocks at `lsn`, which stands at a block's start; splits at the end of the file.
    pub(super) fn write_blocks(&self, lsn: Lsn, blocks: &[u8]) -> Result<()> {
        let offset = self.geometry.offset(lsn);
        debug_assert!(
            offset % BLOCK as u64 == 0 && blocks.len() % BLOCK == 0,
            "whole blocks"
        );
        let first = (self.geometry.bytes_to_wrap(lsn) as usize).min(blocks.len());
        self.file.write_at(&blocks[..first], offset)?;
        if first < blocks.len() {
            self.file.write_at(&blocks[first..], OFF_RECORDS)?;
        }
        Ok(())
    }

    /// From where on, behind `lsn`, the file was never written; `None` if all of it was, or if nobody
    /// knows.
    pub(super) fn unwritten_from(&self, lsn: Lsn) -> Option<Lsn> {
        let offset = self.geometry.offset(lsn);
        let hole = self.file.unwritten_from(offset)?.div_ceil(BLOCK as u64) * BLOCK as u64;
        Some(Lsn(lsn.0 + (hole - offset)))
    }

    /// Writes a checkpoint block; not durable before `sync`.
    pub(super) fn write_checkpoint(&self, checkpoint: Checkpoint, slot: usize) -> Result<()> {
        let mut block = AlignedBuf::new(BLOCK);
        block[..CHECKPOINT_BYTES].copy_from_slice(&checkpoint.to_bytes());
        self.file.write_at(&block, checkpoint_offset(slot))
    }

    /// Makes durable what was written, by an earlier process, too.
    ///
    /// Errors: `Io`; it is not tried again (F5).
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data()
    }
}

/// True if there is a log in `dir`.
pub fn exists(vfs: &dyn Vfs, dir: &str) -> Result<bool> {
    vfs.exists(&join(dir, NAME))
}

/// Removes `ib_logfile1` … `ib_logfile101`: what an older server or an interrupted resize left.
pub fn remove_leftovers(vfs: &dyn Vfs, dir: &str) -> Result<()> {
    for name in vfs.list_dir(dir)? {
        let number = name
            .strip_prefix("ib_logfile")
            .and_then(|text| text.parse::<u32>().ok());
        if matches!(number, Some(1..=101)) {
            match vfs.remove(&join(dir, &name)) {
                Err(error) if !is_errno(&error, libc::ENOENT) => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

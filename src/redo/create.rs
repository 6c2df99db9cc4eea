//! A new log file, and the old one opened to go on.

use super::checkpoint::Checkpoints;
use super::file::{BLOCK, LogFile, NAME, NAME_NEW};
use super::log::{Log, LogOptions, Start};
use crate::format::redo_encode::Encoder;
use crate::format::redo_file::{Checkpoint, FIRST_LSN, LogHeader, OFF_RECORDS};
use crate::format::redo_record::FileOp;
use crate::os::file::{is_errno, join};
use crate::os::{AlignedBuf, CrashPoints, OpenMode, Vfs};
use crate::sync::Arc;
use crate::words::{Error, Lsn, Result};

/// After a crash so many bytes behind the end are cleared: more than one write can have torn.
const SCRUB_BYTES: u64 = 32 << 20;

impl LogOptions {
    pub(super) fn mode(&self) -> OpenMode {
        OpenMode {
            write: true,
            direct: self.direct,
        }
    }
}

impl Log {
    /// Makes a new log that is logically empty at `lsn` – for a new database `FIRST_LSN`, else where
    /// the old log ended – and puts it in the place of the old one, which must be empty, too. The
    /// log's next LSN is `lsn` + 16.
    pub fn create(
        vfs: &dyn Vfs,
        options: LogOptions,
        crash_points: Arc<CrashPoints>,
        lsn: Lsn,
    ) -> Result<Log> {
        if lsn < FIRST_LSN || options.file_size % BLOCK as u64 != 0 {
            return Err(Error::invalid(
                "a log starts at 12288 or above and has whole blocks",
            ));
        }
        let new = join(&options.dir, NAME_NEW);
        match vfs.remove(&new) {
            Err(error) if !is_errno(&error, libc::ENOENT) => return Err(error),
            _ => {}
        }
        let head = write_new_file(vfs, &new, &options, lsn)?;
        vfs.rename(&new, &join(&options.dir, NAME))?;
        vfs.sync_dir(&options.dir)?;
        let file = LogFile::open(vfs, &options.dir, options.mode())?;
        let checkpoints = Checkpoints {
            last: Checkpoint { lsn, end_lsn: lsn },
            next_slot: 0,
            count: 0,
        };
        let end = Lsn(lsn.0 + head.len() as u64);
        Log::assemble(
            options,
            crash_points,
            Start {
                file,
                end,
                head,
                checkpoints,
            },
        )
    }

    /// Goes on with the log in `file` behind `end`, the end that the scan of it found. A file that
    /// was not shut down cleanly is cleared behind its end first: what a torn write left there must
    /// not look like a continuation of what is written next.
    pub fn open(
        options: LogOptions,
        crash_points: Arc<CrashPoints>,
        file: LogFile,
        end: Lsn,
    ) -> Result<Log> {
        let Some((last, slot)) = file.checkpoint() else {
            return Err(Error::corrupt_bytes("no valid checkpoint").in_file(file.path()));
        };
        let geometry = file.geometry();
        if geometry.capacity() % BLOCK as u64 != 0 {
            return Err(Error::invalid(format!(
                "the redo log {} is not whole blocks: make a new one",
                file.path()
            )));
        }
        if end.0 < last.end_lsn.0 || end.0 - last.lsn.0 > geometry.capacity() {
            return Err(Error::invalid(format!("the log cannot end at {end}")));
        }
        let in_block = (end.0 - geometry.first_lsn().0) % BLOCK as u64;
        let mut head = vec![0; in_block as usize];
        file.read(Lsn(end.0 - in_block), &mut head)?;
        if end.0 != last.end_lsn.0 + super::checkpoint::FILE_CHECKPOINT_BYTES
            || last.lsn != last.end_lsn
        {
            scrub(&file, end, &head, last.lsn)?;
        }
        let checkpoints = Checkpoints {
            last,
            next_slot: slot ^ 1,
            count: 0,
        };
        Log::assemble(
            options,
            crash_points,
            Start {
                file,
                end,
                head,
                checkpoints,
            },
        )
    }

    /// True if the log file is not as large as `options` say, or not usable for appending: a new one
    /// is to be made, when nothing in this one is needed any more.
    pub fn wants_new_file(file: &LogFile, options: &LogOptions) -> bool {
        let geometry = file.geometry();
        geometry.file_size() != options.file_size || geometry.capacity() % BLOCK as u64 != 0
    }
}

/// Writes header, checkpoint blocks and FILE_CHECKPOINT; yields the latter's bytes.
fn write_new_file(vfs: &dyn Vfs, path: &str, options: &LogOptions, lsn: Lsn) -> Result<Vec<u8>> {
    let mut mtr = Vec::new();
    Encoder::new().file_op(&mut mtr, &FileOp::Checkpoint(lsn));
    // The first lap's sequence bit is 1.
    crate::format::redo_encode::finish(&mut mtr, 0, 1);
    let mut start = AlignedBuf::new(OFF_RECORDS as usize + BLOCK);
    let header = LogHeader::new(lsn, &options.creator).to_bytes();
    start[..header.len()].copy_from_slice(&header);
    let block = Checkpoint { lsn, end_lsn: lsn }.to_bytes();
    for slot in [0, 1] {
        let at = crate::format::redo_file::checkpoint_offset(slot) as usize;
        start[at..at + block.len()].copy_from_slice(&block);
    }
    start[OFF_RECORDS as usize..OFF_RECORDS as usize + mtr.len()].copy_from_slice(&mtr);
    let file = vfs.create(path, options.mode())?;
    let made = file
        .allocate(options.file_size)
        .and_then(|()| file.write_at(&start, 0))
        .and_then(|()| file.sync_data());
    if let Err(error) = made {
        drop(file);
        // Best effort: a leftover is removed at the next attempt.
        let _ = vfs.remove(path);
        return Err(error);
    }
    Ok(mtr)
}

fn scrub(file: &LogFile, end: Lsn, head: &[u8], checkpoint: Lsn) -> Result<()> {
    let geometry = file.geometry();
    let block = BLOCK as u64;
    let mut at = Lsn(end.0 - head.len() as u64);
    let free_until = checkpoint.0 + geometry.capacity();
    let room = free_until.saturating_sub(at.0) / block * block;
    let mut left = room.min(SCRUB_BYTES);
    let mut zeros = AlignedBuf::new(1 << 20);
    zeros[..head.len()].copy_from_slice(head);
    while left > 0 {
        let piece = left.min(zeros.len() as u64);
        file.write_blocks(at, &zeros[..piece as usize])?;
        zeros[..head.len()].fill(0);
        at.0 += piece;
        left -= piece;
    }
    file.sync()
}

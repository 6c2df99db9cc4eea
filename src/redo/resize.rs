//! A log file of another size, while the engine runs.
//!
//! Everything from the last checkpoint on goes into the new file before it takes the old one's name, so
//! either name that a crash leaves stands for the whole log. Nothing is appended meanwhile, so little may
//! be left to copy: who calls this has just written pages and made a checkpoint.

use super::checkpoint::Checkpoints;
use super::file::{BLOCK, LogFile, NAME, NAME_NEW};
use super::log::Log;
use crate::format::redo_file::{
    LogCapacity, LogGeometry, LogHeader, OFF_RECORDS, checkpoint_offset,
};
use crate::format::redo_frame::{Framing, MTR_TRAILER_BYTES, frame_unchecked};
use crate::format::redo_record::FileOp;
use crate::os::file::{is_errno, join};
use crate::os::{AlignedBuf, File, Vfs};
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, GateGuard};
use crate::words::{Error, Lsn, Result};

/// More than this is not copied while everybody waits.
const COPY_MAX: u64 = 8 << 20;
/// No padding is shorter: record head and trailer, and some zeros.
const PADDING_MIN: u64 = 32;

/// What became of a resize.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resized {
    /// The log has its new size.
    Done,
    /// There is too much log behind the checkpoint: write pages, make a checkpoint, and ask again.
    Later,
}

impl Log {
    /// Puts a file of `file_size` bytes, whole blocks, into the place of the log file. Appends and
    /// commits wait meanwhile.
    ///
    /// Errors: `Invalid` for a size that cannot be worked with; what the file system gives: then the
    /// log is as it was, but if its directory cannot be synced, or the new file not be opened: then it is
    /// stopped.
    pub fn resize(&self, vfs: &dyn Vfs, file_size: u64) -> Result<Resized> {
        if file_size % BLOCK as u64 != 0
            || LogCapacity::new(file_size, self.options.page_size).is_none()
        {
            return Err(Error::invalid(format!(
                "a redo log of {file_size} bytes cannot be worked with"
            )));
        }
        let mut checkpoints = self.checkpoints.lock();
        self.check_frozen()?;
        if self.age() > COPY_MAX {
            return Ok(Resized::Later);
        }
        let path = join(&self.options.dir, NAME_NEW);
        remove(vfs, &path)?;
        let file = vfs.create(&path, self.options.mode())?;
        // The blocks first: that may take a while.
        let result = file
            .allocate(file_size)
            .and_then(|()| self.replace(vfs, file, &mut checkpoints));
        if !matches!(result, Ok(Resized::Done)) {
            // Best effort: a leftover is removed at the next start.
            let _ = remove(vfs, &path);
        }
        drop(checkpoints);
        self.room.wake();
        result
    }

    fn replace(
        &self,
        vfs: &dyn Vfs,
        file: Arc<dyn File>,
        checkpoints: &mut Checkpoints,
    ) -> Result<Resized> {
        let gate = self.enter_exclusive();
        self.pad_block(&gate)?;
        let end = self.lsn();
        // Nobody writes to the old file from here on: all of it is there.
        self.write_up_to(end, true)?;
        let size = file.size()?;
        let before = self.file_size();
        // A smaller limit holds from here on: what was admitted by the old one is counted by now. A larger
        // one must wait for the file: who was admitted by it would write over the old one's records.
        self.size.store(size.min(before), Ordering::SeqCst);
        let fits = self.age() + self.room.admitted() <= self.system_limit();
        if self.age() > COPY_MAX || !fits {
            self.size.store(before, Ordering::SeqCst);
            return Ok(Resized::Later);
        }
        let dir = &self.options.dir;
        let copied = self.copy_tail(&*file, checkpoints, end);
        drop(file);
        let renamed = copied.and_then(|()| vfs.rename(&join(dir, NAME_NEW), &join(dir, NAME)));
        if let Err(error) = renamed {
            self.size.store(before, Ordering::SeqCst);
            return Err(error);
        }
        let opened = vfs
            .sync_dir(dir)
            .and_then(|()| LogFile::open(vfs, dir, self.options.mode()));
        match opened {
            Ok(file) => self.set_file(file),
            Err(error) => {
                // Nobody knows which of the two a power cut would leave, and only one goes on.
                self.fail(&error.to_string());
                return Err(self.stopped());
            }
        }
        checkpoints.next_slot = 0;
        if self.held_lsn().is_none() {
            self.hold_back(None);
        }
        Ok(Resized::Done)
    }

    /// Fills the last block, so that none is written again: sequence bits change with the file.
    fn pad_block(&self, gate: &GateGuard<'_>) -> Result<()> {
        let block = BLOCK as u64;
        let mut gap = block - self.to_position(self.lsn()) % block;
        if gap == block {
            return Ok(());
        }
        if gap < PADDING_MIN {
            gap += block;
        }
        // The head of a record of 16 bytes and more takes 2 or 3 bytes.
        let trailer = MTR_TRAILER_BYTES as u64;
        let head = if gap - trailer - 16 < 128 { 2 } else { 3 };
        let zeros = (gap - trailer - head) as usize;
        self.append_file_ops(gate, &[FileOp::Padding(zeros)])?;
        debug_assert_eq!(self.to_position(self.lsn()) % block, 0);
        Ok(())
    }

    /// Writes header, checkpoint blocks and the records from the checkpoint up to `end`, durably.
    fn copy_tail(&self, file: &dyn File, checkpoints: &Checkpoints, end: Lsn) -> Result<()> {
        let block = BLOCK as u64;
        let last = checkpoints.last;
        let position = self.to_position(last.lsn) / block * block;
        let first_lsn = self.to_lsn(position);
        let geometry = LogGeometry::new(first_lsn, file.size()?)
            .ok_or_else(|| Error::internal("the size was looked at"))?;
        // And a block of zeros, where the log ends.
        let bytes = (end.0 - first_lsn.0) as usize;
        let mut all = AlignedBuf::new(OFF_RECORDS as usize + bytes + BLOCK);
        let header = LogHeader::new(first_lsn, &self.options.creator).to_bytes();
        all[..header.len()].copy_from_slice(&header);
        let checkpoint = last.to_bytes();
        for slot in [0, 1] {
            let at = checkpoint_offset(slot) as usize;
            all[at..at + checkpoint.len()].copy_from_slice(&checkpoint);
        }
        let records = &mut all[OFF_RECORDS as usize..OFF_RECORDS as usize + bytes];
        let old = self.file();
        old.read(first_lsn, records)?;
        let skip = (last.lsn.0 - first_lsn.0) as usize;
        records[..skip].fill(0);
        set_sequence_bits(&mut records[skip..], last.lsn, old.geometry(), geometry)?;
        file.write_at(&all, 0)?;
        file.sync_data()
    }
}

/// Gives whole mini-transactions, which start at `from`, the bits of another file. The checksum leaves
/// them out.
fn set_sequence_bits(
    records: &mut [u8],
    from: Lsn,
    old: LogGeometry,
    new: LogGeometry,
) -> Result<()> {
    let mut at = 0;
    while at < records.len() {
        let lsn = |n: usize| Lsn(from.0 + (at + n) as u64);
        let Framing::Mtr { total, .. } = frame_unchecked(&records[at..], |n| old.seq_bit(lsn(n)))
        else {
            return Err(Error::corrupt_bytes(format!(
                "redo log: the records at LSN {} read back as other bytes",
                lsn(0)
            )));
        };
        let bit = total - MTR_TRAILER_BYTES;
        records[at + bit] = new.seq_bit(lsn(bit));
        at += total;
    }
    Ok(())
}

fn remove(vfs: &dyn Vfs, path: &str) -> Result<()> {
    match vfs.remove(path) {
        Err(error) if !is_errno(&error, libc::ENOENT) => Err(error),
        _ => Ok(()),
    }
}

//! Group commit: write and sync (protocol L5).

use super::file::BLOCK;
use super::log::Log;
use crate::os::{AlignedBuf, planted};
use crate::sync::{RingReader, Turn};
use crate::words::{Lsn, Result};

/// Writes up to this many bytes are gathered into one.
const STAGE: usize = 64 << 10;

/// So much of a new file is written with zeros at once.
const AHEAD: u64 = 1 << 20;
/// Syncs within as much log that make it worth while.
const SYNCS_MIN: u32 = 16;

/// What the leader of a write works with.
#[derive(Debug)]
pub(super) struct Writer {
    reader: RingReader,
    /// Position up to where the file is written.
    written: u64,
    stage: AlignedBuf,
    /// From here on no block of the file was ever written, up to its end; `None`: they all were.
    unwritten: Option<Lsn>,
    /// Syncs since it was looked at.
    syncs: u32,
    pub(super) writes: u64,
    pub(super) bytes: u64,
}

impl Writer {
    pub(super) fn new(reader: RingReader, written: u64, unwritten: Option<Lsn>) -> Writer {
        Writer {
            reader,
            written,
            stage: AlignedBuf::new(STAGE),
            unwritten,
            syncs: 0,
            writes: 0,
            bytes: 0,
        }
    }

    /// Writes everything up to position `to`, which is filled, and zeros up to the end of its
    /// block – or a block of zeros, if it ends with one (redo invariant 4).
    fn write(&mut self, log: &Log, to: u64) -> Result<()> {
        let block = BLOCK as u64;
        let from = self.written / block * block;
        let whole = to / block * block;
        let end = whole + block;
        let file = log.file();
        if end - from <= STAGE as u64 {
            self.gather(from, to, (end - from) as usize);
            file.write_blocks(log.to_lsn(from), &self.stage[..(end - from) as usize])?;
        } else {
            let (first, second) = self.reader.pieces(from, whole);
            file.write_blocks(log.to_lsn(from), first)?;
            if !second.is_empty() {
                file.write_blocks(log.to_lsn(from + first.len() as u64), second)?;
            }
            self.gather(whole, to, BLOCK);
            file.write_blocks(log.to_lsn(whole), &self.stage[..BLOCK])?;
        }
        self.written = to;
        self.writes += 1;
        self.bytes += end - from;
        // The last block is written again by the next write.
        self.reader.consume(whole);
        Ok(())
    }

    /// Before a sync: sees to it that the blocks that are written next were written before. The first write
    /// of a block that is only allocated must be noted by the file system, whose journal is then written
    /// and synced, too: several times the cost of a commit, for each block of a new log.
    fn prepare(&mut self, log: &Log) -> Result<()> {
        let Some(unwritten) = self.unwritten else {
            return Ok(());
        };
        self.syncs += 1;
        let block = BLOCK as u64;
        let next = self.written / block * block + block;
        let unwritten = log.to_position(unwritten);
        if next < unwritten || self.syncs < SYNCS_MIN {
            return Ok(());
        }
        self.syncs = 0;
        let from = unwritten.max(next);
        let to = from / AHEAD * AHEAD + 2 * AHEAD;
        // The first lap ends where the file does.
        let file = log.file();
        let geometry = file.geometry();
        let end = log.to_position(Lsn(geometry.first_lsn().0 + geometry.capacity()));
        let zeros = AlignedBuf::new(AHEAD as usize);
        let mut at = from;
        while at < to.min(end) {
            let piece = (to.min(end) - at).min(AHEAD);
            file.write_blocks(log.to_lsn(at), &zeros[..piece as usize])?;
            at += piece;
        }
        self.unwritten = (to < end).then_some(log.to_lsn(to));
        Ok(())
    }

    /// The log goes on in another file.
    pub(super) fn set_unwritten(&mut self, unwritten: Option<Lsn>) {
        self.unwritten = unwritten;
    }

    fn gather(&mut self, from: u64, to: u64, len: usize) {
        let (first, second) = self.reader.pieces(from, to);
        let filled = first.len() + second.len();
        self.stage[..first.len()].copy_from_slice(first);
        self.stage[first.len()..filled].copy_from_slice(second);
        self.stage[filled..len].fill(0);
    }
}

impl Log {
    /// Returns when everything below `lsn` is in the file – survives kill -9 – or, if `durable`, on
    /// the device – survives a power cut. One of several callers works for all.
    ///
    /// Errors: `Error::Stopped` if the log is frozen or fails now; what `lsn` stands for may or may
    /// not survive then.
    pub fn write_up_to(&self, lsn: Lsn, durable: bool) -> Result<()> {
        // A frozen log gives the LSN that never becomes durable.
        let appended = lsn <= self.lsn() || self.is_frozen();
        debug_assert!(appended, "{lsn} was not appended yet");
        if planted("log.write_skipped") {
            return Ok(());
        }
        if durable && self.options.sync {
            return self.flush_to(lsn);
        }
        self.write_to(lsn)?;
        Ok(())
    }

    /// Writes and syncs everything appended before the call.
    pub fn flush_all(&self) -> Result<()> {
        self.write_up_to(self.lsn(), true)
    }

    fn flush_to(&self, lsn: Lsn) -> Result<()> {
        match self.flush.acquire(lsn.0) {
            Turn::Reached => Ok(()),
            Turn::Failed => Err(self.stopped()),
            Turn::Leader => {
                let work = Unwinding {
                    log: self,
                    what: "syncing",
                };
                let result = self.write_to(lsn).and_then(|written| {
                    self.crash_points.reached("redo.before_sync");
                    self.check_frozen()?;
                    self.writer.lock().prepare(self)?;
                    if !planted("log.sync_skipped") {
                        self.file().sync()?;
                    }
                    Ok(written)
                });
                std::mem::forget(work);
                match result {
                    Ok(written) => {
                        self.flush.release(written.0);
                        Ok(())
                    }
                    Err(error) => {
                        // F5: never retried. After a failed sync nobody knows what is on the device.
                        self.fail(&error.to_string());
                        self.flush.release_failed();
                        Err(self.stopped())
                    }
                }
            }
        }
    }

    /// Writes what is filled, at least up to `lsn`; yields up to where it is written.
    pub(super) fn write_to(&self, lsn: Lsn) -> Result<Lsn> {
        match self.write.acquire(lsn.0) {
            Turn::Reached => Ok(self.written_lsn()),
            Turn::Failed => Err(self.stopped()),
            Turn::Leader => {
                let work = Unwinding {
                    log: self,
                    what: "writing",
                };
                let result = self.write_filled(lsn);
                std::mem::forget(work);
                match result {
                    Ok(written) => {
                        self.write.release(written.0);
                        self.room.wake();
                        Ok(written)
                    }
                    Err(error) => {
                        self.fail(&error.to_string());
                        self.write.release_failed();
                        Err(self.stopped())
                    }
                }
            }
        }
    }

    fn write_filled(&self, lsn: Lsn) -> Result<Lsn> {
        if !self
            .ring
            .wait_filled(self.to_position(lsn), &|| self.is_frozen())
        {
            return Err(self.stopped());
        }
        let to = self.ring.filled();
        self.crash_points.reached("redo.before_write");
        self.check_frozen()?;
        self.writer.lock().write(self, to)?;
        self.crash_points.reached("redo.after_write");
        Ok(self.to_lsn(to))
    }

    /// Writes of the log file, and bytes in them (status Innodb_os_log_written).
    pub fn write_counts(&self) -> (u64, u64) {
        let writer = self.writer.lock();
        (writer.writes, writer.bytes)
    }
}

/// Freezes the log if the leader panics: its followers would wait for ever.
struct Unwinding<'a> {
    log: &'a Log,
    what: &'static str,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        // Reached by unwinding only: the leader forgets it when its work is done.
        self.log
            .freeze(&format!("a panic while {} the log", self.what));
        crate::sync::order::released(match self.what {
            "writing" => crate::sync::Rank::LogWrite,
            _ => crate::sync::Rank::LogFlush,
        });
    }
}

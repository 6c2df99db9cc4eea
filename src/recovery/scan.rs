//! One pass over the log: from the checkpoint to the logical end (format-redo.md sections 2, 3, 13).

use super::index::{RedoIndex, any_page_of};
use super::parse::MtrContent;
use crate::format::redo_file::{Checkpoint, LogGeometry};
use crate::format::redo_frame::{Framing, frame};
use crate::redo::LogFile;
use crate::words::limits::MTR_BYTES_MAX;
use crate::words::{Error, Lsn, Result, SpaceId};

/// What the log is read through.
pub trait LogBytes {
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

/// Reads the log once.
///
/// Errors: `Corrupt` if there is no valid checkpoint, if FILE_CHECKPOINT for it is missing, or for
/// records that cannot be, although the CRC holds.
pub fn scan(log: &dyn LogBytes) -> Result<LogScan> {
    scan_into(log, RedoIndex::default())
}

/// As `scan`, into an empty index that may have a limit.
///
/// Errors: those of `scan`, and what keeping records in a file gives.
pub fn scan_into(log: &dyn LogBytes, mut index: RedoIndex) -> Result<LogScan> {
    let checkpoint = log
        .checkpoint()
        .ok_or_else(|| bad("no valid checkpoint block in its header"))?;
    let mut search = Search {
        checkpoint,
        reached: false,
        named: None,
    };
    let mut window = Window::new(log, checkpoint.lsn);
    let mut mtr_count = 0;
    while let Some(mtr) = window.next_mtr()? {
        search.before(mtr.start)?;
        let content = index
            .take_in(mtr.start, mtr.end, mtr.records, search.named.is_some())
            .map_err(|error| at_lsn(error, mtr.start))?;
        if search.after(mtr.end, content)? {
            index.end_of_naming();
        }
        mtr_count += 1;
    }
    let named = search.named.ok_or_else(|| search.missing())?;
    let end = window.lsn;
    let clean = checkpoint.lsn == checkpoint.end_lsn && named == end;
    Ok(LogScan {
        checkpoint,
        end,
        clean,
        index,
        mtr_count,
    })
}

/// The search for the FILE_CHECKPOINT record that belongs to the checkpoint.
struct Search {
    checkpoint: Checkpoint,
    /// The mini-transaction at the checkpoint's end LSN was seen.
    reached: bool,
    /// End of the mini-transaction with FILE_CHECKPOINT.
    named: Option<Lsn>,
}

impl Search {
    fn before(&mut self, start: Lsn) -> Result<()> {
        self.reached |= start == self.checkpoint.end_lsn;
        if !self.reached && start > self.checkpoint.end_lsn {
            return Err(bad(
                "the checkpoint's end LSN lies inside a mini-transaction",
            ));
        }
        Ok(())
    }

    /// True if this was the record searched for.
    fn after(&mut self, end: Lsn, content: MtrContent) -> Result<bool> {
        if !self.reached || self.named.is_some() {
            return Ok(false);
        }
        if content.changes {
            return Err(self.missing());
        }
        let is_it = content.checkpoint == Some(self.checkpoint.lsn);
        if is_it {
            self.named = Some(end);
        }
        Ok(is_it)
    }

    fn missing(&self) -> Error {
        let Checkpoint { lsn, end_lsn } = self.checkpoint;
        bad(&format!("missing FILE_CHECKPOINT({lsn}) at {end_lsn}"))
    }
}

/// A mini-transaction in the window.
struct Mtr<'w> {
    start: Lsn,
    end: Lsn,
    records: &'w [u8],
}

/// Bytes of log read at once.
const CHUNK: usize = 1 << 20;

/// Moves over the log, holding what was read and not yet passed.
struct Window<'l> {
    log: &'l dyn LogBytes,
    geometry: LogGeometry,
    /// Start of the next mini-transaction.
    lsn: Lsn,
    /// One lap behind the checkpoint: the log cannot be longer.
    limit: Lsn,
    bytes: Vec<u8>,
    /// Where `lsn` stands in `bytes`.
    at: usize,
}

impl<'l> Window<'l> {
    fn new(log: &'l dyn LogBytes, lsn: Lsn) -> Window<'l> {
        let geometry = log.geometry();
        let limit = Lsn(lsn.0.saturating_add(geometry.capacity()));
        Window {
            log,
            geometry,
            lsn,
            limit,
            bytes: Vec::new(),
            at: 0,
        }
    }

    /// The next mini-transaction; `None` at the logical end of the log, `lsn` then is that end.
    fn next_mtr(&mut self) -> Result<Option<Mtr<'_>>> {
        let (geometry, lsn) = (self.geometry, self.lsn);
        let seq_bit_at = |n: usize| geometry.seq_bit(Lsn(lsn.0 + n as u64));
        let (len, total) = loop {
            let incomplete = match frame(&self.bytes[self.at..], seq_bit_at) {
                Framing::Mtr { records, total } => break (records.len(), total),
                other => other == Framing::Incomplete,
            };
            if !incomplete || !self.read_on()? {
                return Ok(None);
            }
        };
        let (start, at) = (self.lsn, self.at);
        self.lsn = Lsn(start.0 + total as u64);
        self.at += total;
        Ok(Some(Mtr {
            start,
            end: self.lsn,
            records: &self.bytes[at..at + len],
        }))
    }

    /// Reads more; false if one whole lap was read.
    fn read_on(&mut self) -> Result<bool> {
        self.bytes.drain(..self.at);
        self.at = 0;
        let have = self.bytes.len();
        let from = Lsn(self.lsn.0 + have as u64);
        // Up to a multiple of the chunk in the file: the reads after the first are whole blocks.
        let aligned = CHUNK - self.geometry.offset(from) as usize % CHUNK;
        let more = (self.limit.0 - from.0).min(aligned as u64) as usize;
        if more == 0 || have > MTR_BYTES_MAX + CHUNK {
            return Ok(false);
        }
        self.bytes.resize(have + more, 0);
        self.log.read(from, &mut self.bytes[have..])?;
        Ok(true)
    }
}

#[cold]
fn bad(why: &str) -> Error {
    Error::corrupt_bytes(format!("redo log: {why}"))
}

/// Adds where in the log a record stands.
#[cold]
fn at_lsn(error: Error, lsn: Lsn) -> Error {
    match error {
        Error::Corrupt(mut corruption) => {
            corruption.why = format!("{} (mini-transaction at LSN {lsn})", corruption.why).into();
            Error::Corrupt(corruption)
        }
        other => other,
    }
}

//! Entries that memory does not hold: a file beside the log, there until the last page is up to date.
//!
//! When the chains in memory reach their limit, all of them go to the file, sorted by page: each page
//! that has one gets one *piece* there. A page is then brought up from its pieces, oldest first, and
//! from what memory has. The file is never synced: after a crash the log is read again.

use crate::os::{File, OpenMode, Vfs};
use crate::sync::Arc;
use crate::words::{Error, Result};

/// The file's name.
const NAME: &str = "ib_redo_index.tmp";
/// Bytes written at once.
const BUFFER_BYTES: usize = 1 << 20;
/// "No piece".
pub(super) const NO_PIECE: u32 = u32::MAX;

/// Where the file may be made.
#[derive(Clone, Debug)]
pub struct SpillPlace {
    vfs: Arc<dyn Vfs>,
    path: Box<str>,
}

impl SpillPlace {
    /// In directory `dir`.
    pub fn new(vfs: &Arc<dyn Vfs>, dir: &str) -> SpillPlace {
        SpillPlace {
            vfs: vfs.clone(),
            path: crate::os::file::join(dir, NAME).into(),
        }
    }

    /// The file's path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Removes what a killed recovery left.
    ///
    /// Errors: what the file system gives.
    pub fn remove_leftover(&self) -> Result<()> {
        match self.vfs.exists(&self.path)? {
            true => self.vfs.remove(&self.path),
            false => Ok(()),
        }
    }
}

/// One page's chain at one spill.
#[derive(Clone, Copy, Debug)]
struct Piece {
    offset: u64,
    len: u32,
    /// CRC-32C: what is read back is taken apart without another look.
    checksum: u32,
    /// The page's next one.
    next: u32,
}

/// The file and where pages stand in it.
#[derive(Debug)]
pub(super) struct Spill {
    place: SpillPlace,
    file: Arc<dyn File>,
    /// Bytes in the file, then those that are to follow.
    written: u64,
    buffer: Vec<u8>,
    /// Where the piece begins that is being put together, and its checksum so far.
    begun: u64,
    checksum: u32,
    pieces: Vec<Piece>,
}

impl Spill {
    /// Errors: what the file system gives.
    pub(super) fn new(place: &SpillPlace) -> Result<Spill> {
        place.remove_leftover()?;
        let file = place.vfs.create(&place.path, OpenMode::WRITE)?;
        Ok(Spill {
            place: place.clone(),
            file,
            written: 0,
            buffer: Vec::with_capacity(BUFFER_BYTES * 2),
            begun: 0,
            checksum: 0,
            pieces: Vec::new(),
        })
    }

    /// Adds bytes to the piece.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
    }

    /// Ends the piece, which follows `before` of the same page; its number.
    ///
    /// Errors: what writing gives, with what to do.
    pub(super) fn end_piece(&mut self, before: u32) -> Result<u32> {
        let end = self.written + self.buffer.len() as u64;
        let number = self.pieces.len() as u32;
        self.pieces.push(Piece {
            offset: self.begun,
            len: (end - self.begun) as u32,
            checksum: std::mem::take(&mut self.checksum),
            next: NO_PIECE,
        });
        self.begun = end;
        if before != NO_PIECE {
            self.pieces[before as usize].next = number;
        }
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(number)
    }

    /// Writes what is buffered.
    ///
    /// Errors: as `end_piece`.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.write_at(&self.buffer, self.written);
        written.map_err(|error| {
            Error::invalid(format!(
                "recovery keeps what it found in the redo log in {}: {error}; make room there, or start with a larger \
                 innodb_buffer_pool_size",
                self.place.path
            ))
        })?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Shows `each` the pieces of a page from `first` on.
    ///
    /// Errors: those of `each`; what reading gives; `Corrupt` if these are not the bytes that were
    /// written.
    pub(super) fn visit(
        &self,
        first: u32,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut at, mut bytes) = (first, Vec::new());
        while let Some(piece) = self.pieces.get(at as usize) {
            bytes.resize(piece.len as usize, 0);
            self.file.read_at(&mut bytes, piece.offset)?;
            if crc32c::crc32c(&bytes) != piece.checksum {
                let why = "recovery's index reads back as other bytes; restart";
                return Err(Error::corrupt_bytes(why).in_file(self.file.path()));
            }
            each(&bytes)?;
            at = piece.next;
        }
        Ok(())
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.buffer.capacity() + self.pieces.capacity() * size_of::<Piece>()
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if let Err(error) = self.place.vfs.remove(&self.place.path) {
            log::warn!("{error}; the file is of no use and may be removed");
        }
    }
}

//! Runs of sorted entries in a temporary file without a name, and the memory that sorting takes.

use super::sort::Item;
use crate::os::{File, OpenMode, Vfs};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::words::{Error, Result};

/// Names that are tried for a temporary file.
const NAMES_MAX: u32 = 1000;

/// How much memory a sort may take, and where the rest goes.
#[derive(Clone, Debug)]
pub struct SortPlace {
    vfs: Arc<dyn Vfs>,
    dir: Arc<str>,
    buffer_bytes: usize,
    in_use: Arc<AtomicU64>,
}

impl SortPlace {
    /// Bytes that are written and read at once.
    pub const BLOCK_BYTES: usize = 32 << 10;

    /// Buffers of `buffer_bytes` (innodb_sort_buffer_size) for each index and thread, files in directory
    /// `dir`. `in_use` counts the bytes.
    pub fn new(
        vfs: &Arc<dyn Vfs>,
        dir: &str,
        buffer_bytes: usize,
        in_use: &Arc<AtomicU64>,
    ) -> SortPlace {
        SortPlace {
            vfs: vfs.clone(),
            dir: dir.into(),
            buffer_bytes,
            in_use: in_use.clone(),
        }
    }

    pub(super) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Runs that a buffer's memory can merge.
    pub(super) fn runs_at_once(&self) -> usize {
        (self.buffer_bytes / Self::BLOCK_BYTES).max(2)
    }

    pub(super) fn count(&self) -> Counted {
        Counted {
            in_use: self.in_use.clone(),
            bytes: 0,
        }
    }

    /// A file that goes with the last who has it open.
    pub(super) fn create_file(&self) -> Result<Arc<TempFile>> {
        for number in 0..NAMES_MAX {
            let name = format!("#ib_sort_{}_{number}.tmp", std::process::id());
            let path = crate::os::file::join(&self.dir, &name);
            if self.vfs.exists(&path)? {
                continue;
            }
            match self.vfs.create(&path, OpenMode::WRITE) {
                Ok(file) => {
                    self.vfs.remove(&path)?;
                    return Ok(Arc::new(TempFile {
                        file,
                        end: AtomicU64::new(0),
                    }));
                }
                // Another thread makes one of this name just now.
                Err(error) if crate::os::file::is_errno(&error, libc::EEXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::invalid(format!(
            "directory {} is full of temporary files of sorts",
            self.dir
        )))
    }
}

/// Bytes counted as in use, until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    in_use: Arc<AtomicU64>,
    bytes: usize,
}

impl Counted {
    pub(super) fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let (before, now) = (self.bytes as u64, bytes as u64);
        self.in_use
            .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A file for runs.
#[derive(Debug)]
pub(super) struct TempFile {
    file: Arc<dyn File>,
    end: AtomicU64,
}

/// A block of whole entries.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    len: u32,
    /// CRC-32C: what is read back is taken apart without another look.
    checksum: u32,
}

/// A run in a file.
#[derive(Debug)]
pub(super) struct Run {
    file: Arc<TempFile>,
    blocks: Vec<Block>,
}

/// Writes a run.
pub(super) struct RunWriter {
    run: Run,
    buffer: Vec<u8>,
}

impl RunWriter {
    pub(super) fn new(file: &Arc<TempFile>) -> RunWriter {
        RunWriter {
            run: Run {
                file: file.clone(),
                blocks: Vec::new(),
            },
            buffer: Vec::with_capacity(SortPlace::BLOCK_BYTES),
        }
    }

    pub(super) fn push(&mut self, entry: &[u8]) -> Result<()> {
        if self.buffer.len() + entry.len() > SortPlace::BLOCK_BYTES {
            self.flush()?;
        }
        self.buffer.extend_from_slice(entry);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let file = &self.run.file;
        let len = self.buffer.len() as u32;
        let offset = file.end.fetch_add(len.into(), Ordering::Relaxed);
        file.file.write_at(&self.buffer, offset)?;
        self.run.blocks.push(Block {
            offset,
            len,
            checksum: crc32c::crc32c(&self.buffer),
        });
        self.buffer.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Run> {
        self.flush()?;
        Ok(self.run)
    }
}

/// A run that is read from its begin to its end.
#[derive(Debug)]
pub(super) struct SortedRun {
    run: Run,
    n_keys: usize,
    next_block: usize,
    block: Vec<u8>,
    at: usize,
}

impl SortedRun {
    pub(super) fn open(run: Run, n_keys: usize) -> Result<SortedRun> {
        let mut opened = SortedRun {
            run,
            n_keys,
            next_block: 0,
            block: Vec::new(),
            at: 0,
        };
        opened.read_block()?;
        Ok(opened)
    }

    fn read_block(&mut self) -> Result<()> {
        self.at = 0;
        self.block.clear();
        let Some(block) = self.run.blocks.get(self.next_block) else {
            return Ok(());
        };
        self.next_block += 1;
        self.block.resize(block.len as usize, 0);
        let file = &self.run.file.file;
        file.read_at(&mut self.block, block.offset)?;
        match crc32c::crc32c(&self.block) == block.checksum {
            true => Ok(()),
            false => {
                let why = "sorted entries read back as other bytes";
                Err(Error::corrupt_bytes(why).in_file(file.path()))
            }
        }
    }

    pub(super) fn item(&self) -> Option<Item<'_>> {
        Item::first(&self.block[self.at..], self.n_keys)
    }

    pub(super) fn advance(&mut self) -> Result<()> {
        self.at += self.item().map_or(0, |item| item.len());
        match self.at >= self.block.len() {
            true => self.read_block(),
            false => Ok(()),
        }
    }
}

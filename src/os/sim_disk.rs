//! The simulated device: what files hold, what of it is durable, and what a power cut leaves.
//!
//! A state is cheap to copy: blocks are shared until they are written. Every change is an `Event`, so a
//! run can be recorded once and its states derived afterwards, one for each moment and seed.

use std::collections::{BTreeMap, BTreeSet};

use super::sim::Random;
use crate::sync::Arc;

/// The smallest unit that a device writes whole, and the unit of most devices of today.
const SECTORS: [usize; 2] = [512, 4096];
/// Unit of sharing.
const BLOCK: usize = 4096;
const ZEROS: [u8; BLOCK] = [0; BLOCK];
/// Blocks that are shared as a whole: a copy of a file copies one pointer for so many.
const CHUNK: usize = 64;

/// A block; `None` is zeros, never written.
pub(super) type Block = Option<Arc<[u8; BLOCK]>>;
type Chunk = Option<Arc<[Block; CHUNK]>>;

/// Bytes of a file; what was never written is zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytes {
    chunks: Vec<Chunk>,
    len: usize,
}

impl Bytes {
    pub(super) fn new(bytes: &[u8]) -> Bytes {
        let mut new = Bytes::default();
        new.write(0, bytes);
        new
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn block(&self, number: usize) -> Option<&Arc<[u8; BLOCK]>> {
        self.chunks[number / CHUNK].as_ref()?[number % CHUNK].as_ref()
    }

    fn block_mut(&mut self, number: usize) -> &mut Block {
        let chunk =
            self.chunks[number / CHUNK].get_or_insert_with(|| Arc::new([const { None }; CHUNK]));
        &mut Arc::make_mut(chunk)[number % CHUNK]
    }

    /// False if the range is not within the file.
    pub(super) fn read(&self, offset: usize, buf: &mut [u8]) -> bool {
        if offset + buf.len() > self.len {
            return false;
        }
        let mut done = 0;
        while done < buf.len() {
            let (block, at) = ((offset + done) / BLOCK, (offset + done) % BLOCK);
            let piece = (BLOCK - at).min(buf.len() - done);
            let to = &mut buf[done..done + piece];
            match self.block(block) {
                Some(from) => to.copy_from_slice(&from[at..at + piece]),
                None => to.fill(0),
            }
            done += piece;
        }
        true
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.resize(self.len.max(offset + bytes.len()));
        let mut done = 0;
        while done < bytes.len() {
            let (block, at) = ((offset + done) / BLOCK, (offset + done) % BLOCK);
            let piece = &bytes[done..bytes.len().min(done + BLOCK - at)];
            done += piece.len();
            if let Ok(whole) = <&[u8; BLOCK]>::try_from(piece) {
                self.write_block(block, whole);
                continue;
            }
            let slot = self.block_mut(block);
            let to = Arc::make_mut(slot.get_or_insert_with(|| Arc::new(ZEROS)));
            to[at..at + piece.len()].copy_from_slice(piece);
        }
    }

    fn write_block(&mut self, number: usize, bytes: &[u8; BLOCK]) {
        if *bytes == ZEROS {
            if self.block(number).is_some() {
                *self.block_mut(number) = None;
            }
            return;
        }
        let slot = self.block_mut(number);
        match slot.as_mut().and_then(Arc::get_mut) {
            Some(own) => *own = *bytes,
            None => *slot = Some(Arc::new(*bytes)),
        }
    }

    /// Whole blocks become zeros.
    fn clear(&mut self, blocks: std::ops::Range<usize>) {
        self.resize(self.len.max(blocks.end * BLOCK));
        for number in blocks {
            if self.block(number).is_some() {
                *self.block_mut(number) = None;
            }
        }
    }

    pub(super) fn resize(&mut self, len: usize) {
        if len < self.len {
            self.clear(len.div_ceil(BLOCK)..self.len.div_ceil(BLOCK));
            if len % BLOCK > 0 {
                if let Some(last) = self.block_mut(len / BLOCK) {
                    Arc::make_mut(last)[len % BLOCK..].fill(0);
                }
            }
        }
        self.chunks
            .resize(len.div_ceil(BLOCK).div_ceil(CHUNK), None);
        self.len = len;
    }

    /// All blocks, shared; `None`: zeros. The last one may be longer than the file.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let blocks = 0..self.len.div_ceil(BLOCK);
        blocks.map(|number| self.block(number).cloned()).collect()
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        self.read(0, &mut bytes);
        bytes
    }
}

/// A change of a file's bytes.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Write {
        offset: usize,
        bytes: Arc<[u8]>,
    },
    /// A write of zeros, whole blocks: a start clears megabytes of log.
    Zeros {
        offset: usize,
        len: usize,
    },
    Resize(usize),
}

impl Op {
    pub(super) fn write(offset: usize, bytes: &[u8]) -> Op {
        let is_zero = |block: &[u8]| *block == ZEROS;
        match offset % BLOCK == 0 && bytes.chunks(BLOCK).all(is_zero) {
            true => Op::Zeros {
                offset,
                len: bytes.len(),
            },
            false => Op::Write {
                offset,
                bytes: bytes.into(),
            },
        }
    }

    fn apply(&self, to: &mut Bytes) {
        match self {
            Op::Write { offset, bytes } => to.write(*offset, bytes),
            Op::Zeros { offset, len } => to.clear(offset / BLOCK..(offset + len) / BLOCK),
            Op::Resize(len) => to.resize(*len),
        }
    }
}

/// A change of names.
#[derive(Clone, Debug)]
pub(super) enum DirOp {
    Link { path: String, inode: usize },
    Unlink { path: String },
    Rename { from: String, to: String },
}

impl DirOp {
    fn apply(&self, files: &mut BTreeMap<String, usize>) {
        match self {
            DirOp::Link { path, inode } => {
                files.insert(path.clone(), *inode);
            }
            DirOp::Unlink { path } => {
                files.remove(path);
            }
            DirOp::Rename { from, to } => {
                if let Some(inode) = files.remove(from) {
                    files.insert(to.clone(), inode);
                }
            }
        }
    }

    fn names(&self) -> [&str; 2] {
        match self {
            DirOp::Link { path, .. } | DirOp::Unlink { path } => [path, path],
            DirOp::Rename { from, to } => [from, to],
        }
    }
}

/// A file, whatever its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    /// What reads see.
    pub(super) content: Bytes,
    /// What the device holds for sure.
    durable: Bytes,
    unsynced: Vec<Op>,
}

/// Everything that changes a disk, in the order in which it happened.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A new inode; it gets the next number. A `Dir` event names it.
    New,
    Data {
        inode: usize,
        op: Op,
    },
    /// All that was written to the file is durable.
    Sync(usize),
    /// A sync failed: what was unsynced is lost, though reads still see it.
    Lose(usize),
    Dir(DirOp),
    /// All changes of names are durable: the journal is one.
    SyncDirs,
    MakeDir(String),
    RemoveDir(String),
    /// A note of whoever records.
    Mark(u64),
}

/// A device and the system's cache of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) inodes: Vec<Inode>,
    pub(super) files: BTreeMap<String, usize>,
    durable_files: BTreeMap<String, usize>,
    unsynced_dirs: Vec<DirOp>,
    pub(super) dirs: BTreeSet<String>,
}

impl Disk {
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::New => self.inodes.push(Inode::default()),
            Event::Data { inode, op } => {
                let inode = &mut self.inodes[*inode];
                op.apply(&mut inode.content);
                inode.unsynced.push(op.clone());
            }
            Event::Sync(inode) => {
                let inode = &mut self.inodes[*inode];
                for op in std::mem::take(&mut inode.unsynced) {
                    op.apply(&mut inode.durable);
                }
            }
            Event::Lose(inode) => self.inodes[*inode].unsynced.clear(),
            Event::Dir(op) => {
                op.apply(&mut self.files);
                self.unsynced_dirs.push(op.clone());
            }
            Event::SyncDirs => {
                for op in std::mem::take(&mut self.unsynced_dirs) {
                    op.apply(&mut self.durable_files);
                }
            }
            Event::MakeDir(path) => {
                self.dirs.insert(path.clone());
            }
            Event::RemoveDir(path) => {
                self.dirs.remove(path);
            }
            Event::Mark(_) => {}
        }
    }

    /// Makes or replaces a file, durably.
    pub(super) fn put(&mut self, path: &str, dir: &str, bytes: &[u8]) {
        let content = Bytes::new(bytes);
        let inode = self.inodes.len();
        self.inodes.push(Inode {
            durable: content.clone(),
            content,
            unsynced: Vec::new(),
        });
        self.files.insert(path.into(), inode);
        self.durable_files.insert(path.into(), inode);
        self.dirs.insert(dir.into());
    }

    /// Bytes of all files that have a name.
    pub(super) fn used(&self) -> usize {
        let len = |&inode: &usize| self.inodes[inode].content.len();
        self.files.values().map(len).sum()
    }

    /// What the device holds after a power cut now: the durable state and, by `seed`, parts of what
    /// was not synced.
    pub(super) fn cut(&self, seed: u64) -> Disk {
        let mut random = Random(seed);
        let mut files = self.durable_files.clone();
        keep_names(&mut files, &self.unsynced_dirs, &mut random);
        let survives = |inode: &Inode| {
            let mut durable = inode.durable.clone();
            if !inode.unsynced.is_empty() {
                keep_data(&mut durable, &inode.unsynced, &mut random);
            }
            Inode {
                content: durable.clone(),
                durable,
                unsynced: Vec::new(),
            }
        };
        Disk {
            inodes: self.inodes.iter().map(survives).collect(),
            durable_files: files.clone(),
            files,
            unsynced_dirs: Vec::new(),
            dirs: self.dirs.clone(),
        }
    }
}

/// Mostly a prefix of the changes, as a journal keeps them; at times some of them, in order, where
/// one that was lost takes along the later ones of the same names.
fn keep_names(files: &mut BTreeMap<String, usize>, ops: &[DirOp], random: &mut Random) {
    let kept = random.below(ops.len() as u64 + 1) as usize;
    if random.below(4) > 0 {
        ops[..kept].iter().for_each(|op| op.apply(files));
        return;
    }
    let mut lost: BTreeSet<&str> = BTreeSet::new();
    for op in ops {
        let is_lost = random.below(2) == 0 || op.names().iter().any(|name| lost.contains(name));
        match is_lost {
            true => lost.extend(op.names()),
            false => op.apply(files),
        }
    }
}

fn keep_data(bytes: &mut Bytes, ops: &[Op], random: &mut Random) {
    let sector = SECTORS[random.below(2) as usize];
    match random.below(8) {
        0 => {}
        1 => ops.iter().for_each(|op| op.apply(bytes)),
        // In order up to one that is torn.
        2 | 3 => {
            let last = random.below(ops.len() as u64) as usize;
            ops[..last].iter().for_each(|op| op.apply(bytes));
            keep_sectors(bytes, &ops[last], sector, 5, random);
        }
        // Whole writes in any order.
        4 => {
            for op in ops {
                if random.below(2) == 0 {
                    op.apply(bytes);
                }
            }
        }
        _ => {
            let chance = [1, 2, 5, 8, 9][random.below(5) as usize];
            for op in ops {
                keep_sectors(bytes, op, sector, chance, random);
            }
        }
    }
}

/// Applies each sector of a write with `chance` in ten – or a run of them at its begin or end – or a
/// change of size with that chance.
fn keep_sectors(bytes: &mut Bytes, op: &Op, sector: usize, chance: u64, random: &mut Random) {
    let (offset, len) = match op {
        Op::Write { offset, bytes } => (*offset, bytes.len()),
        Op::Zeros { offset, len } => (*offset, *len),
        Op::Resize(_) => {
            if random.below(10) < chance {
                op.apply(bytes);
            }
            return;
        }
    };
    let first = offset / sector;
    let count = (offset + len).div_ceil(sector) - first;
    let border = random.below(count as u64 + 1) as usize;
    let shape = random.below(4);
    for i in 0..count {
        let kept = match shape {
            0 => i < border,
            1 => i >= border,
            _ => random.below(10) < chance,
        };
        if kept {
            let start = ((first + i) * sector).max(offset);
            let end = ((first + i + 1) * sector).min(offset + len);
            match op {
                Op::Write { bytes: new, .. } => {
                    bytes.write(start, &new[start - offset..end - offset]);
                }
                _ => bytes.write(start, &ZEROS[..end - start]),
            }
        }
    }
}

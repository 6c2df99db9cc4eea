//! Files in memory, with seeded faults, kills and power cuts.
//!
//! A file has a *content*, what reads see (the system's cache), and a *durable* state, what the
//! device holds. Writes join a list of unsynced operations; a sync carries them over. A power cut
//! keeps the durable state and a seeded choice of the unsynced: each 512-byte sector of each write
//! by itself, so writes are lost, torn and reordered. Changes of directories are kept as a prefix of
//! their order, like a journalling file system keeps them, unless `sync_dir` covers them.
//!
//! Direct files refuse transfers that are not whole 4096-byte blocks: real devices do, too.

use std::collections::{BTreeMap, BTreeSet};

use super::aligned::AlignedBuf;
use super::file::{File, FileLock, OpenMode, Vfs, parent};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, Rank};
use crate::words::{Error, Result};

const SECTOR: usize = 512;
const BLOCK: usize = 4096;

/// A call that a fault may hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `File::read_at`.
    Read,
    /// `File::write_at`.
    Write,
    /// `File::sync_data`.
    Sync,
    /// `File::allocate`.
    Allocate,
}

/// A planned failure.
#[derive(Clone, Debug)]
struct Fault {
    call: Call,
    /// Only paths that end so.
    path_end: String,
    /// Calls that pass before.
    after: u64,
    errno: i32,
    /// True: this call only; false: all later ones, too.
    once: bool,
}

#[derive(Clone, Debug)]
enum Op {
    Write { offset: usize, bytes: Vec<u8> },
    Resize(usize),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    content: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Op>,
}

#[derive(Clone, Debug)]
enum DirOp {
    Link { path: String, inode: usize },
    Unlink { path: String },
    Rename { from: String, to: String },
}

#[derive(Clone, Debug, Default)]
struct State {
    inodes: Vec<Inode>,
    files: BTreeMap<String, usize>,
    durable_files: BTreeMap<String, usize>,
    unsynced_dirs: Vec<DirOp>,
    dirs: BTreeSet<String>,
    faults: Vec<Fault>,
    bytes_max: Option<u64>,
    /// Writes and syncs until the power goes; `None`: it stays.
    power_left: Option<u64>,
    off: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    locked: Mutex<BTreeSet<usize>>,
}

/// A file system in memory. Clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct SimVfs(Arc<Shared>);

impl Default for SimVfs {
    fn default() -> SimVfs {
        SimVfs::new()
    }
}

impl SimVfs {
    /// Empty.
    pub fn new() -> SimVfs {
        SimVfs::from_state(State::default())
    }

    fn from_state(state: State) -> SimVfs {
        let state = Mutex::new(Rank::Leaf, state);
        SimVfs(Arc::new(Shared {
            state,
            locked: Mutex::new(Rank::Leaf, BTreeSet::new()),
        }))
    }

    /// What a process finds that starts after this one was killed: all that was written, no locks.
    pub fn after_kill(&self) -> SimVfs {
        let mut state = self.0.state.lock().clone();
        state.off = false;
        state.power_left = None;
        state.faults.clear();
        SimVfs::from_state(state)
    }

    /// What the device holds after a power cut now, by `seed`.
    pub fn after_power_cut(&self, seed: u64) -> SimVfs {
        let mut random = Random(seed);
        let mut state = self.0.state.lock().clone();
        let kept = random.below(state.unsynced_dirs.len() as u64 + 1) as usize;
        for op in std::mem::take(&mut state.unsynced_dirs)
            .into_iter()
            .take(kept)
        {
            apply_dir_op(&mut state.durable_files, op);
        }
        for inode in &mut state.inodes {
            // Nothing, all, or any part of what was not synced.
            let chance = [0, 2, 5, 8, 10][random.below(5) as usize];
            for op in std::mem::take(&mut inode.unsynced) {
                keep_part(&mut inode.durable, op, chance, &mut random);
            }
            inode.content = inode.durable.clone();
        }
        state.files = state.durable_files.clone();
        state.off = false;
        state.power_left = None;
        state.faults.clear();
        SimVfs::from_state(state)
    }

    /// Plans a failure: after `after` calls on paths that end with `path_end`, one (`once`) or all
    /// further calls fail with `errno`. A failed write transfers nothing; a failed sync loses what
    /// was unsynced without a further error, as file systems do.
    pub fn fail(&self, call: Call, path_end: &str, after: u64, errno: i32, once: bool) {
        let fault = Fault {
            call,
            path_end: path_end.into(),
            after,
            errno,
            once,
        };
        self.0.state.lock().faults.push(fault);
    }

    /// No further planned failures.
    pub fn heal(&self) {
        let mut state = self.0.state.lock();
        state.faults.clear();
        state.bytes_max = None;
    }

    /// The device holds so many bytes: growing beyond is ENOSPC.
    pub fn limit_bytes(&self, bytes_max: u64) {
        self.0.state.lock().bytes_max = Some(bytes_max);
    }

    /// The power goes after so many writes and syncs: every later call fails with EIO and changes
    /// nothing. Take `after_power_cut` then.
    pub fn cut_power_after(&self, calls: u64) {
        self.0.state.lock().power_left = Some(calls);
    }

    /// True if the power went.
    pub fn is_off(&self) -> bool {
        self.0.state.lock().off
    }

    /// The whole content of a file, as reads see it.
    pub fn content(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.0.state.lock();
        state
            .files
            .get(path)
            .map(|&inode| state.inodes[inode].content.clone())
    }

    /// Makes or replaces a file, durably: a fixture.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        let mut state = self.0.state.lock();
        let inode = state.inodes.len();
        state.inodes.push(Inode {
            content: bytes.to_vec(),
            durable: bytes.to_vec(),
            unsynced: Vec::new(),
        });
        state.files.insert(path.into(), inode);
        state.durable_files.insert(path.into(), inode);
        state.dirs.insert(parent(path).into());
    }

    fn wrap(&self, path: &str, inode: usize, mode: OpenMode) -> Arc<dyn File> {
        let write = AtomicBool::new(mode.write);
        Arc::new(SimFile {
            vfs: self.clone(),
            path: path.into(),
            inode,
            write,
            direct: mode.direct,
        })
    }
}

impl State {
    /// Counts a call, and fails it if a fault or the power says so.
    fn check(&mut self, call: Call, name: &'static str, path: &str) -> Result<()> {
        if matches!(call, Call::Write | Call::Sync | Call::Allocate) {
            match &mut self.power_left {
                Some(0) => self.off = true,
                Some(left) => *left -= 1,
                None => {}
            }
        }
        if self.off {
            return Err(Error::io(name, path, libc::EIO));
        }
        let hit = |fault: &&mut Fault| fault.call == call && path.ends_with(&fault.path_end);
        let mut failed = None;
        for (at, fault) in self.faults.iter_mut().enumerate().filter(|(_, f)| hit(f)) {
            if fault.after == 0 {
                failed = Some((at, fault.errno, fault.once));
                break;
            }
            fault.after -= 1;
        }
        let Some((at, errno, once)) = failed else {
            return Ok(());
        };
        if once {
            self.faults.remove(at);
        }
        Err(Error::io(name, path, errno))
    }

    fn check_room(&self, grown: usize, name: &'static str, path: &str) -> Result<()> {
        let Some(bytes_max) = self.bytes_max else {
            return Ok(());
        };
        let used: usize = self
            .files
            .values()
            .map(|&inode| self.inodes[inode].content.len())
            .sum();
        if (used + grown) as u64 > bytes_max {
            return Err(Error::io(name, path, libc::ENOSPC));
        }
        Ok(())
    }

    fn dir_op(&mut self, op: DirOp) {
        apply_dir_op(&mut self.files, op.clone());
        self.unsynced_dirs.push(op);
    }

    fn found(&self, path: &str, name: &'static str) -> Result<usize> {
        if self.off {
            return Err(Error::io(name, path, libc::EIO));
        }
        self.files
            .get(path)
            .copied()
            .ok_or_else(|| Error::io(name, path, libc::ENOENT))
    }
}

fn apply_dir_op(files: &mut BTreeMap<String, usize>, op: DirOp) {
    match op {
        DirOp::Link { path, inode } => {
            files.insert(path, inode);
        }
        DirOp::Unlink { path } => {
            files.remove(&path);
        }
        DirOp::Rename { from, to } => {
            if let Some(inode) = files.remove(&from) {
                files.insert(to, inode);
            }
        }
    }
}

fn apply(bytes: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write { offset, bytes: new } => {
            if bytes.len() < offset + new.len() {
                bytes.resize(offset + new.len(), 0);
            }
            bytes[*offset..offset + new.len()].copy_from_slice(new);
        }
        Op::Resize(to) => bytes.resize(*to, 0),
    }
}

/// Applies each sector of a write, or a resize, with `chance` in ten.
fn keep_part(bytes: &mut Vec<u8>, op: Op, chance: u64, random: &mut Random) {
    let Op::Write { offset, bytes: new } = op else {
        if random.below(10) < chance {
            apply(bytes, &op);
        }
        return;
    };
    let mut at = 0;
    while at < new.len() {
        let sector_end = (offset + at) / SECTOR * SECTOR + SECTOR;
        let end = (sector_end - offset).min(new.len());
        if random.below(10) < chance {
            apply(
                bytes,
                &Op::Write {
                    offset: offset + at,
                    bytes: new[at..end].to_vec(),
                },
            );
        }
        at = end;
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        let inode = self.0.state.lock().found(path, "open")?;
        Ok(self.wrap(path, inode, mode))
    }

    fn create(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut state = self.0.state.lock();
        if state.files.contains_key(path) {
            return Err(Error::io("create", path, libc::EEXIST));
        }
        state.check_room(0, "create", path)?;
        if state.off {
            return Err(Error::io("create", path, libc::EIO));
        }
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.dir_op(DirOp::Link {
            path: path.into(),
            inode,
        });
        drop(state);
        Ok(self.wrap(
            path,
            inode,
            OpenMode {
                write: true,
                ..mode
            },
        ))
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let state = self.0.state.lock();
        Ok(state.files.contains_key(path) || state.dirs.contains(path))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        state.found(from, "rename")?;
        state.dir_op(DirOp::Rename {
            from: from.into(),
            to: to.into(),
        });
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        state.found(path, "unlink")?;
        state.dir_op(DirOp::Unlink { path: path.into() });
        Ok(())
    }

    fn list_dir(&self, path: &str) -> Result<Vec<String>> {
        let state = self.0.state.lock();
        let names = state.files.keys().chain(&state.dirs);
        let inside = names.filter(|name| parent(name) == path && *name != path);
        let mut names: Vec<String> = inside
            .map(|name| name[name.rfind('/').map_or(0, |at| at + 1)..].to_string())
            .collect();
        names.sort();
        Ok(names)
    }

    fn create_dir(&self, path: &str) -> Result<()> {
        self.0.state.lock().dirs.insert(path.into());
        Ok(())
    }

    fn remove_dir(&self, path: &str) -> Result<()> {
        if !self.list_dir(path)?.is_empty() {
            return Err(Error::io("rmdir", path, libc::ENOTEMPTY));
        }
        self.0.state.lock().dirs.remove(path);
        Ok(())
    }

    /// Covers changes of all directories: the journal is one.
    fn sync_dir(&self, path: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        state.check(Call::Sync, "fsync", path)?;
        for op in std::mem::take(&mut state.unsynced_dirs) {
            apply_dir_op(&mut state.durable_files, op);
        }
        Ok(())
    }
}

#[derive(Debug)]
struct SimFile {
    vfs: SimVfs,
    path: String,
    inode: usize,
    write: AtomicBool,
    direct: bool,
}

impl SimFile {
    fn check_aligned(&self, name: &'static str, buf: &[u8], offset: u64) -> Result<()> {
        let whole = offset % BLOCK as u64 == 0 && buf.len() % BLOCK == 0;
        if self.direct && !(whole && AlignedBuf::is_aligned(buf, SECTOR)) {
            return Err(Error::io(name, &self.path, libc::EINVAL));
        }
        Ok(())
    }

    fn change(&self, op: Op) {
        let mut state = self.vfs.0.state.lock();
        let inode = &mut state.inodes[self.inode];
        apply(&mut inode.content, &op);
        inode.unsynced.push(op);
    }
}

impl File for SimFile {
    fn path(&self) -> &str {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.check_aligned("read", buf, offset)?;
        let mut state = self.vfs.0.state.lock();
        state.check(Call::Read, "read", &self.path)?;
        let content = &state.inodes[self.inode].content;
        let bytes = content.get(offset as usize..offset as usize + buf.len());
        buf.copy_from_slice(bytes.ok_or_else(|| Error::io("read", &self.path, 0))?);
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.check_aligned("write", buf, offset)?;
        if !self.write.load(Ordering::Relaxed) {
            return Err(Error::io("write", &self.path, libc::EBADF));
        }
        {
            let mut state = self.vfs.0.state.lock();
            state.check(Call::Write, "write", &self.path)?;
            let grown = (offset as usize + buf.len())
                .saturating_sub(state.inodes[self.inode].content.len());
            state.check_room(grown, "write", &self.path)?;
        }
        self.change(Op::Write {
            offset: offset as usize,
            bytes: buf.to_vec(),
        });
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        let mut state = self.vfs.0.state.lock();
        let checked = state.check(Call::Sync, "fdatasync", &self.path);
        let off = state.off;
        let inode = &mut state.inodes[self.inode];
        if checked.is_ok() {
            for op in std::mem::take(&mut inode.unsynced) {
                apply(&mut inode.durable, &op);
            }
        } else if !off {
            inode.unsynced.clear();
        }
        checked
    }

    fn size(&self) -> Result<u64> {
        Ok(self.vfs.0.state.lock().inodes[self.inode].content.len() as u64)
    }

    fn allocate(&self, to: u64) -> Result<()> {
        let size = self.size()?;
        if to > size {
            {
                let mut state = self.vfs.0.state.lock();
                state.check(Call::Allocate, "fallocate", &self.path)?;
                state.check_room((to - size) as usize, "fallocate", &self.path)?;
            }
            self.change(Op::Resize(to as usize));
        }
        Ok(())
    }

    fn truncate(&self, to: u64) -> Result<()> {
        self.vfs
            .0
            .state
            .lock()
            .check(Call::Write, "ftruncate", &self.path)?;
        self.change(Op::Resize(to as usize));
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.vfs
            .0
            .state
            .lock()
            .check(Call::Write, "punch", &self.path)?;
        self.change(Op::Write {
            offset: offset as usize,
            bytes: vec![0; len as usize],
        });
        Ok(())
    }

    fn alignment(&self) -> usize {
        if self.direct { BLOCK } else { 1 }
    }

    fn lock(&self) -> Result<Box<dyn FileLock>> {
        if !self.vfs.0.locked.lock().insert(self.inode) {
            return Err(Error::Busy(format!("{} is locked", self.path).into()));
        }
        Ok(Box::new(SimLock {
            shared: self.vfs.0.clone(),
            inode: self.inode,
        }))
    }
}

#[derive(Debug)]
struct SimLock {
    shared: Arc<Shared>,
    inode: usize,
}

impl FileLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.shared.locked.lock().remove(&self.inode);
    }
}

/// A small seeded generator: the same seed gives the same run.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits (splitmix64).
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound
    }
}

//! Files in memory, with seeded faults, kills and power cuts.
//!
//! A file has a *content*, what reads see (the system's cache), and a *durable* state, what the
//! device holds. Writes join a list of unsynced operations; a sync carries them over. A power cut
//! keeps the durable state and a seeded choice of the unsynced (`sim_disk`): writes are lost, torn by
//! sectors and reordered, growth and names may be kept without what was written before or after.
//!
//! A run can be recorded (`sim_record`), and its states derived afterwards. The n-th call of a run
//! can be made to fail, whatever it is (`Blow`); short transfers and EINTR strike below `write_all` and
//! `read_all`, where the system's would.
//!
//! Direct files refuse transfers that are not whole 4096-byte blocks: real devices do, too.

use std::collections::BTreeSet;

use super::aligned::AlignedBuf;
use super::file::{File, FileLock, OpenMode, Vfs, parent, read_all, write_all};
use super::sim_disk::{DirOp, Disk, Event, Op};
use super::sim_record::Recording;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, Rank};
use crate::words::{Error, Result};

pub use super::sim_fault::{Blow, Call, Struck};

const SECTOR: usize = 512;
const BLOCK: usize = 4096;

/// How a transfer is disturbed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Disturbed {
    No,
    Short,
    Eintr,
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

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) disk: Disk,
    pub(super) recording: Option<Recording>,
    faults: Vec<Fault>,
    /// What hits which call, counted from 0; `None`: nothing planned, or it is over.
    blow: Option<(Blow, u64)>,
    /// What was hit.
    struck: Option<Struck>,
    calls: u64,
    /// Inodes whose sync failed, and syncs of them that were tried again.
    failed_syncs: BTreeSet<usize>,
    syncs_retried: Vec<String>,
    bytes_max: Option<u64>,
    /// Writes and syncs until the power goes; `None`: it stays.
    power_left: Option<u64>,
    off: bool,
    rotates: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    locked: Mutex<BTreeSet<usize>>,
}

/// A file system in memory. Clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct SimVfs(pub(super) Arc<Shared>);

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

    pub(super) fn from_disk(disk: Disk) -> SimVfs {
        SimVfs::from_state(State {
            disk,
            ..State::default()
        })
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
        SimVfs::from_disk(self.0.state.lock().disk.clone())
    }

    /// What the device holds after a power cut now, by `seed`.
    pub fn after_power_cut(&self, seed: u64) -> SimVfs {
        SimVfs::from_disk(self.0.state.lock().disk.cut(seed))
    }

    /// `blow` hits the call number `at` from now on, or the first one after it that can fail so.
    pub fn strike(&self, blow: Blow, at: u64) {
        let mut state = self.0.state.lock();
        let at = state.calls + at;
        state.blow = Some((blow, at));
        state.struck = None;
    }

    /// What the planned blow has hit, if it has.
    pub fn struck(&self) -> Option<Struck> {
        self.0.state.lock().struck.clone()
    }

    /// Its files lie on a disk that rotates.
    pub fn set_rotates(&self) {
        self.0.state.lock().rotates = true;
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.0.state.lock().calls
    }

    /// Paths of files that were synced again after a failed sync (F5 forbids it).
    pub fn syncs_retried(&self) -> Vec<String> {
        self.0.state.lock().syncs_retried.clone()
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
        state.blow = None;
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
        let disk = &self.0.state.lock().disk;
        let inode = disk.files.get(path)?;
        Some(disk.inodes[*inode].content.to_vec())
    }

    /// The content of a file in blocks of 4096 bytes, which are not copied; `None`: zeros.
    pub fn blocks(&self, path: &str) -> Option<Vec<Option<Arc<[u8; BLOCK]>>>> {
        let disk = &self.0.state.lock().disk;
        let inode = disk.files.get(path)?;
        Some(disk.inodes[*inode].content.blocks())
    }

    /// Makes or replaces a file, durably: a fixture.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        let mut state = self.0.state.lock();
        assert!(state.recording.is_none(), "a fixture is not recorded");
        state.disk.put(path, parent(path), bytes);
    }

    /// Paths of all files.
    pub fn paths(&self) -> Vec<String> {
        self.0.state.lock().disk.files.keys().cloned().collect()
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
    pub(super) fn apply(&mut self, event: Event) {
        self.disk.apply(&event);
        if let Some(recording) = &mut self.recording {
            recording.push(event);
        }
    }

    /// Counts a call, and fails it if a fault or the power says so.
    fn check(&mut self, call: Call, name: &'static str, path: &str) -> Result<Disturbed> {
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
        self.calls += 1;
        if let Some(disturbed) = self.blow(call, name, path)? {
            return Ok(disturbed);
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
            return Ok(Disturbed::No);
        };
        if once {
            self.faults.remove(at);
        }
        Err(Error::io(name, path, errno))
    }

    /// The planned blow, if it is this call's turn.
    fn blow(&mut self, call: Call, name: &'static str, path: &str) -> Result<Option<Disturbed>> {
        let Some((blow, at)) = self.blow else {
            return Ok(None);
        };
        if self.calls <= at || !blow.can_hit(call, name == "create") {
            return Ok(None);
        }
        if self.struck.is_none() {
            self.struck = Some(Struck {
                call,
                name,
                path: path.into(),
                number: self.calls - 1,
            });
        }
        if !blow.is_for_good() {
            self.blow = None;
        }
        match blow {
            Blow::Short => Ok(Some(Disturbed::Short)),
            Blow::Eintr => Ok(Some(Disturbed::Eintr)),
            Blow::Eio | Blow::EioForGood | Blow::Fsync => Err(Error::io(name, path, libc::EIO)),
            Blow::Enospc | Blow::EnospcForGood => Err(Error::io(name, path, libc::ENOSPC)),
        }
    }

    fn check_room(&self, grown: usize, name: &'static str, path: &str) -> Result<()> {
        match self.bytes_max {
            Some(bytes_max) if (self.disk.used() + grown) as u64 > bytes_max => {
                Err(Error::io(name, path, libc::ENOSPC))
            }
            _ => Ok(()),
        }
    }

    fn found(&mut self, path: &str, name: &'static str) -> Result<usize> {
        self.check(Call::Name, name, path)?;
        let inode = self.disk.files.get(path).copied();
        inode.ok_or_else(|| Error::io(name, path, libc::ENOENT))
    }

    fn len(&self, inode: usize) -> usize {
        self.disk.inodes[inode].content.len()
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        let inode = self.0.state.lock().found(path, "open")?;
        Ok(self.wrap(path, inode, mode))
    }

    fn create(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut state = self.0.state.lock();
        state.check(Call::Name, "create", path)?;
        if state.disk.files.contains_key(path) {
            return Err(Error::io("create", path, libc::EEXIST));
        }
        state.check_room(0, "create", path)?;
        let inode = state.disk.inodes.len();
        state.apply(Event::New);
        state.apply(Event::Dir(DirOp::Link {
            path: path.into(),
            inode,
        }));
        drop(state);
        let mode = OpenMode {
            write: true,
            ..mode
        };
        Ok(self.wrap(path, inode, mode))
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let disk = &self.0.state.lock().disk;
        Ok(disk.files.contains_key(path) || disk.dirs.contains(path))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        state.found(from, "rename")?;
        state.apply(Event::Dir(DirOp::Rename {
            from: from.into(),
            to: to.into(),
        }));
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        state.found(path, "unlink")?;
        state.apply(Event::Dir(DirOp::Unlink { path: path.into() }));
        Ok(())
    }

    fn list_dir(&self, path: &str) -> Result<Vec<String>> {
        let mut state = self.0.state.lock();
        state.check(Call::Name, "readdir", path)?;
        let names = state.disk.files.keys().chain(&state.disk.dirs);
        let inside = names.filter(|name| parent(name) == path && *name != path);
        let mut names: Vec<String> = inside
            .map(|name| name[name.rfind('/').map_or(0, |at| at + 1)..].to_string())
            .collect();
        names.sort();
        Ok(names)
    }

    fn has_descriptors(&self) -> bool {
        false
    }

    fn create_dir(&self, path: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        if !state.disk.dirs.contains(path) {
            state.apply(Event::MakeDir(path.into()));
        }
        Ok(())
    }

    fn remove_dir(&self, path: &str) -> Result<()> {
        if !self.list_dir(path)?.is_empty() {
            return Err(Error::io("rmdir", path, libc::ENOTEMPTY));
        }
        self.0.state.lock().apply(Event::RemoveDir(path.into()));
        Ok(())
    }

    /// Covers changes of all directories: the journal is one.
    fn sync_dir(&self, path: &str) -> Result<()> {
        let mut state = self.0.state.lock();
        state.check(Call::Sync, "fsync", path)?;
        state.apply(Event::SyncDirs);
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

    fn change(state: &mut State, inode: usize, op: Op) {
        state.apply(Event::Data { inode, op });
    }

    /// How many bytes a disturbed transfer moves.
    fn moved(&self, len: usize, disturbed: &mut (Disturbed, u32)) -> std::io::Result<usize> {
        match disturbed {
            (Disturbed::Short, left @ 1..) => {
                *left = 0;
                // Devices move whole sectors.
                Ok((len / 2).next_multiple_of(SECTOR).min(len))
            }
            (Disturbed::Eintr, left @ 1..) => {
                *left -= 1;
                Err(std::io::Error::from_raw_os_error(libc::EINTR))
            }
            _ => Ok(len),
        }
    }

    fn failed(&self, name: &'static str, error: &std::io::Error) -> Error {
        Error::io(name, &self.path, error.raw_os_error().unwrap_or(0))
    }
}

impl File for SimFile {
    fn path(&self) -> &str {
        &self.path
    }

    fn rotates(&self) -> bool {
        self.vfs.0.state.lock().rotates
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.check_aligned("read", buf, offset)?;
        let mut state = self.vfs.0.state.lock();
        let mut disturbed = (state.check(Call::Read, "read", &self.path)?, 3);
        let content = &state.disk.inodes[self.inode].content;
        let call = |buf: &mut [u8], offset: u64| {
            let len = self.moved(buf.len(), &mut disturbed)?;
            // As pread: what there is, 0 at the end.
            let len = len.min(content.len().saturating_sub(offset as usize));
            assert!(content.read(offset as usize, &mut buf[..len]), "within");
            Ok(len)
        };
        read_all(buf, offset, call).map_err(|error| self.failed("read", &error))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        self.check_aligned("write", buf, offset)?;
        if !self.write.load(Ordering::Relaxed) {
            return Err(Error::io("write", &self.path, libc::EBADF));
        }
        let mut state = self.vfs.0.state.lock();
        let mut disturbed = (state.check(Call::Write, "write", &self.path)?, 3);
        let grown = (offset as usize + buf.len()).saturating_sub(state.len(self.inode));
        state.check_room(grown, "write", &self.path)?;
        let call = |buf: &[u8], offset: u64| {
            if self.direct && offset % BLOCK as u64 != 0 {
                return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
            }
            let len = self.moved(buf.len(), &mut disturbed)?;
            let op = Op::write(offset as usize, &buf[..len]);
            Self::change(&mut state, self.inode, op);
            Ok(len)
        };
        write_all(buf, offset, self.alignment(), call).map_err(|error| self.failed("write", &error))
    }

    fn sync_data(&self) -> Result<()> {
        let mut state = self.vfs.0.state.lock();
        let checked = state.check(Call::Sync, "fdatasync", &self.path);
        if state.failed_syncs.contains(&self.inode) {
            state.syncs_retried.push(self.path.clone());
        }
        match checked {
            Ok(_) => state.apply(Event::Sync(self.inode)),
            Err(error) => {
                if !state.off {
                    state.failed_syncs.insert(self.inode);
                    state.apply(Event::Lose(self.inode));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn size(&self) -> Result<u64> {
        Ok(self.vfs.0.state.lock().len(self.inode) as u64)
    }

    fn allocate(&self, to: u64) -> Result<()> {
        let mut state = self.vfs.0.state.lock();
        let size = state.len(self.inode) as u64;
        if to > size {
            state.check(Call::Allocate, "fallocate", &self.path)?;
            state.check_room((to - size) as usize, "fallocate", &self.path)?;
            Self::change(&mut state, self.inode, Op::Resize(to as usize));
        }
        Ok(())
    }

    fn truncate(&self, to: u64) -> Result<()> {
        let mut state = self.vfs.0.state.lock();
        state.check(Call::Write, "ftruncate", &self.path)?;
        Self::change(&mut state, self.inode, Op::Resize(to as usize));
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        let mut state = self.vfs.0.state.lock();
        state.check(Call::Write, "punch", &self.path)?;
        let op = Op::write(offset as usize, &vec![0; len as usize]);
        Self::change(&mut state, self.inode, op);
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

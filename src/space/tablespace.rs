//! One tablespace: identity, files, size, state.

use std::sync::Weak;

use super::handles::Handles;
use super::transform::PageTransform;
use crate::format::fsp::{Geometry, SpaceFlags};
use crate::os::{File, FileLock};
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Arc, GroupLock, Mutex, Once, Rank, RwLock};
use crate::words::{Error, Lsn, PageNo, Result, SpaceId};

/// What a tablespace holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// ibdata1 …
    System,
    /// undoNNN.
    Undo,
    /// One table or partition.
    Table,
    /// ibtmp1: never logged, never synced.
    Temporary,
}

/// What may be done with a tablespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Everything.
    Normal = 0,
    /// A write or sync failed: cached pages may be used, nothing is read or written any more.
    Failed = 1,
    /// Its file is being deleted.
    Deleting = 2,
}

/// One file of a tablespace.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) path: Arc<str>,
    /// Open while I/O is under way (`Space::begin_io`); a table's may be closed in between.
    pub(super) file: Option<Arc<dyn File>>,
    pub(super) first_page: u32,
    /// Pages of this file; the last file of the chain holds all the rest.
    pub(super) pages: u32,
}

impl Part {
    pub(super) fn new(file: Arc<dyn File>, first_page: u32, pages: u32) -> Part {
        Part {
            path: file.path().into(),
            file: Some(file),
            first_page,
            pages,
        }
    }
}

/// A tablespace.
///
/// ```text
/// Normal ──a write or sync fails──▶ Failed        (`Space::fail`)
/// Normal, Failed ──DROP──▶ Deleting               (`Space::stop_io`)
/// ```
#[derive(Debug)]
pub struct Space {
    id: SpaceId,
    kind: Kind,
    flags: SpaceFlags,
    name: RwLock<Arc<str>>,
    pub(super) parts: RwLock<Vec<Part>>,
    pub(super) locks: Mutex<Vec<Box<dyn FileLock>>>,
    size_pages: AtomicU32,
    state: AtomicU8,
    pub(super) pending: AtomicU32,
    /// Its file is open; changed under the lock of `parts`.
    pub(super) is_open: AtomicBool,
    /// It was read or written since somebody looked for a file to close.
    pub(super) recent: AtomicBool,
    /// Where it counts as open, and itself there; of a table.
    pub(super) handles: Option<Arc<Handles>>,
    pub(super) own: Weak<Space>,
    /// As how many files it counts while it is open.
    pub(super) file_count: usize,
    modified_lsn: AtomicU64,
    /// Writes that ended.
    pub(super) writes: AtomicU64,
    /// Syncs, by the number of writes they cover.
    pub(super) syncs: GroupLock,
    reserved: Reserved,
    /// Its device is asked once.
    rotates: Once<bool>,
    /// What its pages go through on their way out and in.
    pub(super) transform: Once<Arc<dyn PageTransform>>,
}

/// What running operations were promised of a tablespace's room; kept by `extent`.
#[derive(Debug)]
pub struct Reserved {
    /// Free extents.
    pub extents: AtomicU32,
    /// Free pages, while the file is shorter than an extent.
    pub pages: AtomicU32,
    /// Held while the file grows.
    pub growing: Mutex<()>,
}

impl Space {
    pub(super) fn new(
        id: SpaceId,
        kind: Kind,
        flags: SpaceFlags,
        name: &str,
        parts: Vec<Part>,
        size_pages: u32,
    ) -> Space {
        Space {
            id,
            kind,
            flags,
            name: RwLock::new(Rank::FileState, name.into()),
            parts: RwLock::new(Rank::FileState, parts),
            locks: Mutex::new(Rank::FileState, Vec::new()),
            size_pages: AtomicU32::new(size_pages),
            state: AtomicU8::new(State::Normal as u8),
            pending: AtomicU32::new(0),
            is_open: AtomicBool::new(true),
            recent: AtomicBool::new(true),
            handles: None,
            own: Weak::new(),
            file_count: 0,
            modified_lsn: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            syncs: GroupLock::new(Rank::FileState, 0),
            reserved: Reserved {
                extents: AtomicU32::new(0),
                pages: AtomicU32::new(0),
                growing: Mutex::new(Rank::Space, ()),
            },
            rotates: Once::new(),
            transform: Once::new(),
        }
    }

    /// Room that is spoken for.
    pub fn reserved(&self) -> &Reserved {
        &self.reserved
    }

    /// Its id.
    #[inline]
    pub fn id(&self) -> SpaceId {
        self.id
    }

    /// What it holds.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// FSP_SPACE_FLAGS of its page 0.
    #[inline]
    pub fn flags(&self) -> SpaceFlags {
        self.flags
    }

    /// True if it lies on a disk that rotates.
    pub fn rotates(&self) -> bool {
        let ask = || {
            let Ok(_open) = self.pin_open() else {
                return false;
            };
            let files = self.all_files();
            files.first().is_some_and(|file| file.rotates())
        };
        *self.rotates.get_or_init(ask)
    }

    /// Page and extent sizes.
    #[inline]
    pub fn geometry(&self) -> Geometry {
        self.flags.geometry()
    }

    /// `db/table` of a table in filename encoding; `innodb_system`, `innodb_undo001`,
    /// `innodb_temporary`.
    pub fn name(&self) -> Arc<str> {
        self.name.read().clone()
    }

    pub(super) fn set_name(&self, name: &str) {
        *self.name.write() = name.into();
    }

    /// Path of its first file, as opened.
    pub fn path(&self) -> String {
        self.parts
            .read()
            .first()
            .map(|part| part.path.to_string())
            .unwrap_or_default()
    }

    /// True if its changes are announced by FILE_MODIFY: tables only (format-redo.md section 8).
    #[inline]
    pub fn is_named_in_log(&self) -> bool {
        self.kind == Kind::Table
    }

    /// True if its pages are never logged.
    #[inline]
    pub fn is_temporary(&self) -> bool {
        self.kind == Kind::Temporary
    }

    /// SIZE of page 0 in pages: what allocation may hand out.
    #[inline]
    pub fn size_pages(&self) -> u32 {
        self.size_pages.load(Ordering::Acquire)
    }

    /// Notes a new SIZE, after page 0 was changed to say so.
    pub fn set_size_pages(&self, pages: u32) {
        self.size_pages.store(pages, Ordering::Release);
    }

    /// Raises the noted SIZE if it is smaller: recovery saw a record that sets it.
    pub fn raise_size_pages(&self, pages: u32) {
        self.size_pages.fetch_max(pages, Ordering::AcqRel);
    }

    /// What may be done with it.
    #[inline]
    pub fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Normal,
            1 => State::Failed,
            _ => State::Deleting,
        }
    }

    /// No page of it is read or written any more, until restart.
    pub fn fail(&self, why: &str) {
        let from = State::Normal as u8;
        let to = State::Failed as u8;
        if self
            .state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            log::error!(
                "tablespace {} ({}): {why}; it is read from memory only until restart",
                self.id,
                self.path()
            );
        }
        self.syncs.fail();
    }

    pub(super) fn set_deleting(&self) {
        self.state.store(State::Deleting as u8, Ordering::SeqCst);
    }

    /// An error unless pages may be read and written.
    pub fn check_usable(&self) -> Result<()> {
        match self.state() {
            State::Normal => Ok(()),
            State::Failed => Err(Error::FileFailed(self.path().into())),
            State::Deleting => Err(Error::TablespaceMissing(self.name().as_ref().into())),
        }
    }

    /// LSN of the FILE_MODIFY record that names it since the last checkpoint, or 0: the next
    /// mini-transaction that changes it must be preceded by one (protocol M, step 2).
    /// Changed from 0 and back under the exclusive log gate only; read under the shared one.
    #[inline]
    pub fn modified_lsn(&self) -> Lsn {
        Lsn(self.modified_lsn.load(Ordering::Acquire))
    }

    pub(super) fn set_modified_lsn(&self, lsn: Lsn) {
        self.modified_lsn.store(lsn.0, Ordering::Release);
    }

    /// The file that holds `page`, and the offset in it. While I/O is under way.
    pub(super) fn locate(&self, page: PageNo) -> Option<(Arc<dyn File>, u64)> {
        let parts = self.parts.read();
        let at = parts
            .partition_point(|part| part.first_page <= page.0)
            .checked_sub(1)?;
        let part = &parts[at];
        let last = at + 1 == parts.len();
        if !last && page.0 - part.first_page >= part.pages {
            return None;
        }
        let offset = (page.0 - part.first_page) as u64 * self.geometry().physical_bytes() as u64;
        Some((part.file.clone()?, offset))
    }

    pub(super) fn all_files(&self) -> Vec<Arc<dyn File>> {
        self.parts
            .read()
            .iter()
            .filter_map(|part| part.file.clone())
            .collect()
    }
}

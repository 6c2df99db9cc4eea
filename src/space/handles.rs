//! How many files are open: the limit (innodb_open_files), and closing what nobody uses for its sake.
//!
//! Files of tables are closed and opened again; those of the system and undo tablespaces stay open. Which
//! goes is decided by a clock: one that was used since the hand passed it is spared once. A file with
//! unsynced writes is synced first, since a failure of that sync would be told to nobody later (F5); one
//! that is being read or written stays. So the limit is soft, as InnoDB's is.

use std::collections::VecDeque;
use std::sync::Weak;

use super::registry::Places;
use super::tablespace::{Kind, Space, State};
use crate::os::{File, OpenMode, Vfs};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, Rank};
use crate::words::Result;

/// What is open.
#[derive(Debug)]
pub struct Handles {
    vfs: Arc<dyn Vfs>,
    mode: OpenMode,
    limit: AtomicUsize,
    open: AtomicUsize,
    /// Tables whose files are open, and some that went since.
    clock: Mutex<VecDeque<Weak<Space>>>,
}

/// How files are opened.
pub(super) fn mode(places: &Places) -> OpenMode {
    OpenMode {
        write: !places.read_only,
        direct: places.direct,
    }
}

impl Handles {
    /// No limit yet.
    pub(super) fn new(vfs: &Arc<dyn Vfs>, places: &Places) -> Handles {
        Handles {
            vfs: vfs.clone(),
            mode: mode(places),
            limit: AtomicUsize::new(usize::MAX),
            open: AtomicUsize::new(0),
            clock: Mutex::new(Rank::Leaf, VecDeque::new()),
        }
    }

    pub(super) fn set_limit(&self, files: usize) {
        self.limit.store(files, Ordering::Relaxed);
    }

    pub(super) fn open_files(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// The tablespace, whose files are open, counts from here on.
    pub(super) fn enrol(handles: &Arc<Handles>, mut space: Space) -> Arc<Space> {
        space.file_count = space.all_files().len();
        handles.open.fetch_add(space.file_count, Ordering::SeqCst);
        space.handles = Some(handles.clone());
        let space = Arc::new_cyclic(|own| {
            space.own = own.clone();
            space
        });
        if space.kind() == Kind::Table {
            handles.clock.lock().push_back(space.own.clone());
        }
        space
    }

    /// Closes files until one more may be opened, or until none is left that can be closed. With nothing
    /// of a tablespace held.
    pub(super) fn make_room(&self) {
        for sync in [false, true] {
            // Twice round: what was used lately is spared once.
            let mut tries = 2 * self.clock.lock().len();
            while self.open_files() >= self.limit.load(Ordering::Relaxed) {
                if tries == 0 {
                    break;
                }
                tries -= 1;
                let Some(own) = self.clock.lock().pop_front() else {
                    break;
                };
                let Some(space) = own.upgrade() else {
                    continue;
                };
                if space.recent.swap(false, Ordering::Relaxed) || !space.close_if_idle(sync) {
                    self.clock.lock().push_back(own);
                }
            }
        }
    }
}

impl Space {
    /// Opens the file if it was closed. I/O is announced: nobody closes it before that has ended.
    ///
    /// Errors: what opening gives.
    pub(super) fn keep_open(&self) -> Result<()> {
        if !self.recent.load(Ordering::Relaxed) {
            self.recent.store(true, Ordering::Relaxed);
        }
        // SeqCst with `close_if_idle`: either this caller sees that the file is closed, or the closer sees
        // the announcement.
        match self.is_open.load(Ordering::SeqCst) {
            true => Ok(()),
            false => self.open_again(),
        }
    }

    #[cold]
    fn open_again(&self) -> Result<()> {
        let Some(handles) = &self.handles else {
            return Ok(());
        };
        handles.make_room();
        {
            let mut parts = self.parts.write();
            let part = &mut parts[0];
            if part.file.is_some() {
                return Ok(());
            }
            part.file = Some(handles.vfs.open(&part.path, handles.mode)?);
            handles.open.fetch_add(1, Ordering::SeqCst);
            self.is_open.store(true, Ordering::SeqCst);
        }
        handles.clock.lock().push_back(self.own.clone());
        Ok(())
    }

    /// Closes the file, unless it is being used; with `sync` one is synced that must be. False if it stays
    /// open.
    fn close_if_idle(&self, sync: bool) -> bool {
        let Some(handles) = &self.handles else {
            return false;
        };
        if sync && self.has_unsynced_writes() && self.pending_io() == 0 && self.sync().is_err() {
            return false;
        }
        let closed: Option<Arc<dyn File>> = {
            let mut parts = self.parts.write();
            self.is_open.store(false, Ordering::SeqCst);
            let is_idle = self.pending_io() == 0
                && !self.has_unsynced_writes()
                && self.state() == State::Normal;
            match is_idle {
                true => parts[0].file.take(),
                false => {
                    self.is_open.store(true, Ordering::SeqCst);
                    return false;
                }
            }
        };
        handles
            .open
            .fetch_sub(usize::from(closed.is_some()), Ordering::SeqCst);
        true
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if let Some(handles) = self.handles.as_ref().filter(|_| *self.is_open.get_mut()) {
            handles.open.fetch_sub(self.file_count, Ordering::SeqCst);
        }
    }
}

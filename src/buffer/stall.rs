//! Page writes that find no room on the device: who waits, and until when.
//!
//! A page was given out only when its blocks were allocated, so this is rare: a file system that writes
//! elsewhere, a quota. The batch in which it happens is *kept*: its images stay in its buffer and in its
//! doublewrite block, whose copy of a page that the failed write tore is the only good one, and it is
//! written again until all of it is in place. Meanwhile other pages of the file wait; other files go
//! through the other batch; statements that would change pages wait, and fail when that takes long.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::pool::Pool;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Rank, Signal};
use crate::words::{Error, Result, SpaceId};

/// How long a statement waits for room.
const PATIENCE: Duration = Duration::from_secs(2);
/// Length of one sleep.
const SLEEP: Duration = Duration::from_millis(50);

/// Which files lack room.
pub(super) struct Stall {
    /// There is one; so that who need not wait looks at nothing else.
    any: AtomicBool,
    files: Mutex<Files>,
    ended: Signal,
}

#[derive(Default)]
struct Files {
    /// By tablespace, its path.
    spaces: HashMap<SpaceId, Box<str>>,
    /// The doublewrite blocks.
    doublewrite: Option<Box<str>>,
    /// What made the last page write or sync fail.
    failure: Option<Error>,
}

impl Files {
    fn first(&self) -> Option<&str> {
        let space = self.spaces.values().next().or(self.doublewrite.as_ref());
        space.map(|path| &**path)
    }
}

impl Stall {
    pub(super) fn new() -> Stall {
        Stall {
            any: AtomicBool::new(false),
            files: Mutex::new(Rank::Leaf, Files::default()),
            ended: Signal::new(),
        }
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        // Relaxed: a statement that slips through changes pages in memory, as those before it did.
        self.any.load(Ordering::Relaxed)
    }

    fn change(&self, change: impl FnOnce(&mut Files)) {
        let mut files = self.files.lock();
        change(&mut files);
        let any = files.first().is_some();
        let before = self.any.swap(any, Ordering::Relaxed);
        drop(files);
        if before && !any {
            log::info!("pages can be written again");
            self.ended.raise();
        }
    }

    /// A write to the tablespace found no room.
    pub(super) fn begin(&self, space: SpaceId, path: String) {
        let first = !self.any();
        if first {
            log::error!("{path}: no room on the device for pages; writing is tried again");
        }
        self.change(|files| {
            files.failure = Some(Error::io("write", &path, libc::ENOSPC));
            files.spaces.insert(space, path.into());
        });
    }

    /// A write to the doublewrite blocks found no room, or some.
    pub(super) fn doublewrite(&self, full: Option<String>) {
        if full.is_some() || self.any() {
            self.change(|files| files.doublewrite = full.map(Into::into));
        }
    }

    /// Pages of the tablespace were written, or it is dropped.
    pub(super) fn end(&self, space: SpaceId) {
        if self.any() {
            self.change(|files| {
                files.spaces.remove(&space);
            });
        }
    }

    /// True if the tablespace lacks room.
    pub(super) fn has(&self, space: SpaceId) -> bool {
        self.any() && self.files.lock().spaces.contains_key(&space)
    }

    /// A page write or a sync failed.
    pub(super) fn note_failure(&self, error: &Error) {
        self.files.lock().failure = Some(error.clone());
    }

    /// What made the last one fail.
    pub(super) fn failure(&self) -> Error {
        let files = self.files.lock();
        let full = files.spaces.keys().next().copied();
        let full = full.or(files.doublewrite.as_ref().map(|_| SpaceId::SYSTEM));
        let failure = files.failure.clone().or(full.map(Error::NoSpace));
        failure.unwrap_or_else(|| Error::Stopped("pages cannot be written".into()))
    }
}

impl Pool {
    /// True while page writes fail for want of room.
    pub fn writes_stalled(&self) -> bool {
        self.flusher.stall.any()
    }

    /// For a statement that is about to change pages: waits a while if pages cannot be written. Call it
    /// with no latch held.
    ///
    /// Errors: `DeviceFull` with the file's name if there is no room after that; `Stopped`.
    #[inline]
    pub fn check_room_to_write(&self) -> Result<()> {
        match self.flusher.stall.any() {
            false => Ok(()),
            true => self.wait_for_room_to_write(),
        }
    }

    #[cold]
    fn wait_for_room_to_write(&self) -> Result<()> {
        let stall = &self.flusher.stall;
        let until = Instant::now() + PATIENCE;
        loop {
            let seen = stall.ended.seen();
            self.check_running()?;
            let files = stall.files.lock();
            let Some(path) = files.first() else {
                return Ok(());
            };
            if Instant::now() >= until {
                return Err(Error::DeviceFull(path.into()));
            }
            drop(files);
            self.wake_cleaner();
            stall.ended.wait(seen, SLEEP);
        }
    }
}

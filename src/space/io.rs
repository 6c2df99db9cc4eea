//! Page reads, page writes, sync: raw bytes, no checksum, no LSN; `buffer` does those.

use std::time::Duration;

use super::tablespace::{Kind, Space, State};
use crate::os::{File, WriteAt};
use crate::sync::atomic::Ordering;
use crate::sync::watermark::Pause;
use crate::sync::{Arc, Turn};
use crate::words::{Error, PageId, PageNo, Result};

/// Keeps a tablespace from being deleted while I/O is under way.
#[derive(Debug)]
pub struct IoGuard<'a>(&'a Space);

/// A write that is about to be carried out. Dropped without `write_ended` if it never was.
#[derive(Debug)]
pub struct Announced<'a> {
    /// Where to.
    pub write: WriteAt<'a>,
    guard: IoGuard<'a>,
}

impl Drop for IoGuard<'_> {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Space {
    /// Announces I/O; an error if the tablespace failed or is being deleted.
    pub fn begin_io(&self) -> Result<IoGuard<'_>> {
        // SeqCst with `stop_io`: either this caller sees Deleting, or the deleter sees the count.
        self.pending.fetch_add(1, Ordering::SeqCst);
        let guard = IoGuard(self);
        self.check_usable()?;
        self.keep_open()?;
        Ok(guard)
    }

    /// As `begin_io`, whatever the state of the tablespace.
    ///
    /// Errors: its file cannot be opened.
    pub(super) fn pin_open(&self) -> Result<IoGuard<'_>> {
        self.pending.fetch_add(1, Ordering::SeqCst);
        let guard = IoGuard(self);
        self.keep_open()?;
        Ok(guard)
    }

    /// Number of reads and writes under way.
    pub fn pending_io(&self) -> u32 {
        self.pending.load(Ordering::SeqCst)
    }

    /// Refuses new I/O for good and waits for the running one to end, at most `timeout`.
    pub fn stop_io(&self, timeout: Duration) -> Result<()> {
        self.set_deleting();
        let until = std::time::Instant::now() + timeout;
        let mut pause = Pause::new();
        while self.pending_io() > 0 {
            if std::time::Instant::now() > until {
                return Err(Error::Busy(
                    format!("I/O on {} does not end", self.path()).into(),
                ));
            }
            pause.pause();
        }
        Ok(())
    }

    /// Reads a physical page as it lies in the file. A page behind the end of the file is
    /// `Error::Corrupt`, a device error `Error::Io`; both name the file.
    pub fn read_page(&self, page: PageNo, buf: &mut [u8]) -> Result<()> {
        assert_eq!(
            buf.len(),
            self.geometry().physical_bytes(),
            "a buffer of one physical page"
        );
        let _guard = self.begin_io()?;
        let (file, offset) = self.place(page)?;
        match file.read_at(buf, offset) {
            Err(Error::Io(failure)) if failure.errno == 0 => Err(Error::corrupt(
                PageId::new(self.id(), page),
                "the file ends before this page",
            )
            .in_file(file.path())),
            result => result,
        }
    }

    /// Reads neighbouring physical pages from `first` on, in one transfer where the system can.
    ///
    /// Errors: as `read_page`, of any of them; then none may be used.
    pub fn read_pages(&self, first: PageNo, pages: &mut [&mut [u8]]) -> Result<()> {
        let bytes = self.geometry().physical_bytes();
        assert!(
            pages.iter().all(|page| page.len() == bytes) && !pages.is_empty(),
            "whole pages"
        );
        let _guard = self.begin_io()?;
        let (file, offset) = self.place(first)?;
        let (last_file, _) = self.place(PageNo(first.0 + pages.len() as u32 - 1))?;
        if std::ptr::addr_eq(&*file, &*last_file) {
            return file.read_parts_at(pages, offset);
        }
        for (page, number) in pages.iter_mut().zip(first.0..) {
            let (file, offset) = self.place(PageNo(number))?;
            file.read_at(page, offset)?;
        }
        Ok(())
    }

    /// Writes a physical page. Not durable before `sync`. A full device is `Error::NoSpace`: the
    /// caller waits and tries again (the page was allocated, so this is rare); any other error
    /// fails the tablespace.
    pub fn write_page(&self, page: PageNo, buf: &[u8]) -> Result<()> {
        assert_eq!(
            buf.len(),
            self.geometry().physical_bytes(),
            "a buffer of one physical page"
        );
        self.write_pages(page, buf)
    }

    /// As `write_page`, for neighbouring pages in one buffer, in one file of the chain.
    pub fn write_pages(&self, first: PageNo, buf: &[u8]) -> Result<()> {
        let announced = self.announce_write(first, buf)?;
        let result = announced.write.file.write_at(buf, announced.write.offset);
        self.write_ended(announced, result)
    }

    /// The first half of `write_pages`: where the pages go. Whoever carries the write out then calls
    /// `write_ended`.
    ///
    /// Errors: the tablespace failed or is being deleted; `Corrupt` if it has no such page.
    pub fn announce_write<'a>(&'a self, first: PageNo, buf: &'a [u8]) -> Result<Announced<'a>> {
        let bytes = self.geometry().physical_bytes();
        assert!(buf.len() % bytes == 0 && !buf.is_empty(), "whole pages");
        let guard = self.begin_io()?;
        let (file, offset) = self.place(first)?;
        let last = PageNo(first.0 + (buf.len() / bytes) as u32 - 1);
        let (last_file, _) = self.place(last)?;
        assert!(std::ptr::addr_eq(&*file, &*last_file), "pages of one file");
        let write = WriteAt {
            file,
            bytes: buf,
            offset,
        };
        Ok(Announced { write, guard })
    }

    /// The second half of `write_pages`; errors as there.
    pub fn write_ended(&self, announced: Announced<'_>, result: Result<()>) -> Result<()> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        drop(announced.guard);
        result.map_err(|error| self.write_failed(error))
    }

    /// Makes all writes that ended before the call survive a power cut. One of several callers does
    /// the work. A failure is final: the tablespace is failed (F5).
    pub fn sync(&self) -> Result<()> {
        if self.kind() == Kind::Temporary {
            return Ok(());
        }
        let wanted = self.writes.load(Ordering::SeqCst);
        // Before the turn, which counts as a latch.
        let _open = match wanted > self.syncs.reached() {
            true => Some(self.pin_open()?),
            false => None,
        };
        let files = self.all_files();
        match self.syncs.acquire(wanted) {
            Turn::Reached => Ok(()),
            Turn::Failed => {
                self.check_usable()?;
                Err(Error::FileFailed(self.path().into()))
            }
            Turn::Leader => self.sync_as_leader(&files),
        }
    }

    fn sync_as_leader(&self, files: &[Arc<dyn File>]) -> Result<()> {
        // Not the number wanted: writes that ended meanwhile are covered, too.
        let covered = self.writes.load(Ordering::SeqCst);
        let result = if self.state() == State::Deleting {
            Ok(())
        } else {
            files.iter().try_for_each(|file| file.sync_data())
        };
        match result {
            Ok(()) => self.syncs.release(covered),
            Err(error) => {
                self.syncs.release_failed();
                self.fail(&error.to_string());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes durable what an earlier process may have left in the system's cache.
    pub fn sync_what_was_left(&self) -> Result<()> {
        self.note_unsynced();
        self.sync()
    }

    /// True if writes ended that no sync covers.
    pub fn has_unsynced_writes(&self) -> bool {
        self.writes.load(Ordering::SeqCst) > self.syncs.reached()
    }

    /// Notes that something other than a page write must be covered by the next sync.
    pub(super) fn note_unsynced(&self) {
        self.writes.fetch_add(1, Ordering::SeqCst);
    }

    /// Gives the blocks of `count` freed pages back to the file system; they read as zeros.
    pub fn punch_pages(&self, first: PageNo, count: u32) -> Result<()> {
        let _guard = self.begin_io()?;
        let (file, offset) = self.place(first)?;
        file.punch(
            offset,
            count as u64 * self.geometry().physical_bytes() as u64,
        )?;
        self.note_unsynced();
        Ok(())
    }

    fn write_failed(&self, error: Error) -> Error {
        if crate::os::file::is_errno(&error, libc::ENOSPC)
            || crate::os::file::is_errno(&error, libc::EDQUOT)
        {
            return Error::NoSpace(self.id());
        }
        self.fail(&error.to_string());
        error
    }

    fn place(&self, page: PageNo) -> Result<(Arc<dyn File>, u64)> {
        self.locate(page).ok_or_else(|| {
            Error::corrupt(
                PageId::new(self.id(), page),
                "no file of the tablespace holds this page",
            )
            .in_file(&self.path())
        })
    }
}

//! Create, rename, delete: the system calls. Their log records are durable before (protocol L6);
//! `ddl` and `recovery` see to the order.

use std::time::Duration;

use super::data_file_path::DataFilePath;
use super::registry::Registry;
use super::tablespace::{Kind, Part, Space};
use crate::format::fsp::SpaceFlags;
use crate::os::file::{is_errno, join, parent};
use crate::os::{File, OpenMode, planted};
use crate::sync::Arc;
use crate::words::{Error, Result, SpaceId};

/// How long a deletion waits for reads and writes under way.
const IO_WAIT: Duration = Duration::from_secs(60);

impl Registry {
    /// Makes the file of table `name` (`db/t`) with `pages` zero pages, durably, and the directory
    /// of the database if it is missing. Page 0 is written by a mini-transaction afterwards.
    ///
    /// Errors: `Error::TablespaceExists`, `Error::NoSpace`; then nothing is left behind.
    pub fn create_table(
        &self,
        id: SpaceId,
        name: &str,
        flags: SpaceFlags,
        pages: u32,
    ) -> Result<Arc<Space>> {
        let path = self.table_path(name);
        self.vfs.create_dir(parent(&path))?;
        self.handles.make_room();
        let bytes = pages as u64 * flags.geometry().physical_bytes() as u64;
        let file = self.create_file(id, &path, bytes)?;
        let part = Part::new(file, 0, 0);
        let space = Space::new(id, Kind::Table, flags, name, vec![part], pages);
        self.insert(space)
            .inspect_err(|_| self.remove_quietly(&path))
    }

    /// Makes undo tablespace file no. `number` with `pages` zero pages.
    pub fn create_undo(
        &self,
        id: SpaceId,
        number: u32,
        flags: SpaceFlags,
        pages: u32,
    ) -> Result<Arc<Space>> {
        let path = self.undo_path(number);
        let file = self.create_file(id, &path, pages as u64 * flags.page_size() as u64)?;
        let locks = self.lock(&*file)?;
        let part = Part::new(file, 0, 0);
        let name = format!("innodb_undo{number:03}");
        let space = Space::new(id, Kind::Undo, flags, &name, vec![part], pages);
        space.locks.lock().extend(locks);
        self.insert(space)
    }

    /// Makes the files of the system tablespace, or of the temporary one, with zero pages, and
    /// locks them.
    pub fn create_system(
        &self,
        kind: Kind,
        path: &DataFilePath,
        flags: SpaceFlags,
    ) -> Result<Arc<Space>> {
        let (id, name) = match kind {
            Kind::Temporary => (SpaceId::TEMPORARY, "innodb_temporary"),
            _ => (SpaceId::SYSTEM, "innodb_system"),
        };
        let mut files: Vec<Arc<dyn File>> = Vec::new();
        let mut locks = Vec::new();
        for data_file in &path.files {
            let full = join(&self.places().system_dir, &data_file.name);
            let file = self.create_file(id, &full, data_file.bytes)?;
            locks.extend(self.lock(&*file)?);
            files.push(file);
        }
        let limits = self.part_sizes(path, &files)?;
        let mut parts = Vec::new();
        let mut start = 0;
        for ((file, data_file), limit) in files.into_iter().zip(&path.files).zip(limits) {
            parts.push(Part::new(file, start, limit));
            start += (data_file.bytes / flags.page_size() as u64) as u32;
        }
        let space = Space::new(id, kind, flags, name, parts, start);
        space.locks.lock().extend(locks);
        self.insert(space)
    }

    /// Renames the file of a table to that of `name`. Durable when this returns. After a failure the
    /// space has the name that its file has.
    ///
    /// Errors: `TablespaceExists`, `Io`; `Stopped`: nobody knows the name of the file any more, and only
    /// recovery can mend that.
    pub fn rename_table(&self, space: &Space, name: &str) -> Result<()> {
        let (from, to) = (space.path(), self.table_path(name));
        // Nobody opens it meanwhile, by whichever name.
        let _open = space.pin_open()?;
        if self.vfs.exists(&to)? {
            return Err(Error::TablespaceExists(to.into()));
        }
        self.vfs.create_dir(parent(&to))?;
        self.vfs.rename(&from, &to)?;
        // The open file carries its old path: open it again. Reads and writes under way finish on
        // the old descriptor, which is the same file.
        let file = match self.open_file(&to) {
            Ok(file) => file,
            Err(error) => {
                let back = self.vfs.rename(&to, &from);
                let back = back.and_then(|()| self.sync_renamed(&from, &to));
                return Err(back.err().map_or(error, |second| {
                    Error::Stopped(format!("{from} is {to} now: {second}").into())
                }));
            }
        };
        space.parts.write()[0] = Part::new(file, 0, 0);
        space.set_name(name);
        self.sync_renamed(&from, &to)
    }

    fn sync_renamed(&self, from: &str, to: &str) -> Result<()> {
        self.sync_names(parent(to))?;
        match parent(from) == parent(to) {
            true => Ok(()),
            false => self.sync_names(parent(from)),
        }
    }

    /// Ends all I/O on a tablespace, forgets it and removes its file. Its pages must be gone from
    /// the pool. A file that is gone already is fine.
    ///
    /// Errors: `Busy`, `Io`; `Stopped`: whether it is gone is known after recovery only.
    pub fn delete(&self, space: &Space) -> Result<()> {
        space.stop_io(IO_WAIT)?;
        self.remove(space.id());
        let path = space.path();
        match self.vfs.remove(&path) {
            Err(error) if is_errno(&error, libc::ENOENT) => {}
            Err(error) => return Err(error),
            Ok(()) => self.sync_names(parent(&path))?,
        }
        self.remove_link(space)
    }

    /// Makes names durable. A failure is final, as for a file's bytes (F5): what the log says is done
    /// again at the next start.
    fn sync_names(&self, dir: &str) -> Result<()> {
        let synced = self.sync_dir(dir);
        synced.map_err(|error| Error::Stopped(format!("{error}; restart to recover").into()))
    }

    /// Removes a file by path: leftovers that are not open. A file that is gone is fine.
    pub fn remove_file(&self, path: &str) -> Result<()> {
        match self.vfs.remove(path) {
            Err(error) if is_errno(&error, libc::ENOENT) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => self.sync_dir(parent(path)),
        }
    }

    fn remove_link(&self, space: &Space) -> Result<()> {
        if space.kind() != Kind::Table {
            return Ok(());
        }
        let link = join(&self.places().data_dir, &format!("{}.isl", space.name()));
        if self.vfs.exists(&link)? {
            self.remove_file(&link)
        } else {
            Ok(())
        }
    }

    fn create_file(&self, id: SpaceId, path: &str, bytes: u64) -> Result<Arc<dyn File>> {
        let mode = OpenMode {
            write: true,
            ..self.mode()
        };
        let file = match self.vfs.create(path, mode) {
            Err(error) if is_errno(&error, libc::EEXIST) => {
                return Err(Error::TablespaceExists(path.into()));
            }
            result => result?,
        };
        let made = file.allocate(bytes).and_then(|()| file.sync_data());
        if let Err(error) = made.and_then(|()| self.sync_dir(parent(path))) {
            drop(file);
            self.remove_quietly(path);
            if is_errno(&error, libc::ENOSPC) || is_errno(&error, libc::EDQUOT) {
                return Err(Error::NoSpace(id));
            }
            return Err(error);
        }
        Ok(file)
    }

    fn sync_dir(&self, path: &str) -> Result<()> {
        match planted("directory.sync_skipped") {
            true => Ok(()),
            false => self.vfs.sync_dir(path),
        }
    }

    fn remove_quietly(&self, path: &str) {
        // Durably: who makes a table of that name meets no file.
        if let Err(error) = self.remove_file(path) {
            log::warn!("{path} is left over: {error}");
        }
    }
}

//! All tablespaces of an engine by id, and where their files lie.

use std::collections::HashMap;

use super::absent::Absents;
use super::data_file_path::DataFilePath;
use super::handles::{self, Handles};
use super::open::{self, FirstPage, Repair, Wanted};
use super::tablespace::{Kind, Space};
use crate::os::file::join;
use crate::os::{File, OpenMode, Vfs};
use crate::sync::{Arc, GateGuard, Mutex, Padded, Rank, RwLock};
use crate::words::{Error, Lsn, Result, SpaceId};

const SHARDS: usize = 16;

/// Where files lie, and how they are opened.
#[derive(Clone, Debug)]
pub struct Places {
    /// Directory of the databases.
    pub data_dir: String,
    /// Directory of the system tablespace (innodb_data_home_dir).
    pub system_dir: String,
    /// Directory of undo tablespaces (innodb_undo_directory).
    pub undo_dir: String,
    /// innodb_page_size.
    pub page_size: usize,
    /// Past the system's cache (innodb_flush_method=O_DIRECT, the default).
    pub direct: bool,
    /// Nothing is written.
    pub read_only: bool,
}

/// One shard of the look-up by id.
type Shard = Padded<RwLock<HashMap<SpaceId, Arc<Space>>>>;

/// The tablespaces.
#[derive(Debug)]
pub struct Registry {
    pub(super) vfs: Arc<dyn Vfs>,
    places: Places,
    shards: [Shard; SHARDS],
    /// Tablespaces named by FILE_MODIFY since the last checkpoint. Changed under the exclusive gate.
    modified: Mutex<Vec<Arc<Space>>>,
    pub(super) absents: Absents,
    pub(super) handles: Arc<Handles>,
}

impl Registry {
    /// No tablespaces yet.
    pub fn new(vfs: Arc<dyn Vfs>, places: Places) -> Registry {
        Registry {
            handles: Arc::new(Handles::new(&vfs, &places)),
            vfs,
            places,
            shards: std::array::from_fn(|_| Padded(RwLock::new(Rank::FileState, HashMap::new()))),
            modified: Mutex::new(Rank::FileState, Vec::new()),
            absents: Absents::new(),
        }
    }

    /// At most so many files are open (innodb_open_files), but for those that are being used: tables'
    /// files are closed, the longest unused ones first.
    pub fn set_open_files_max(&self, files: usize) {
        self.handles.set_limit(files);
    }

    /// Open files.
    pub fn open_files(&self) -> usize {
        self.handles.open_files()
    }

    /// Where files lie.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// The file system.
    pub fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }

    /// The tablespace, if it is open.
    #[inline]
    pub fn get(&self, id: SpaceId) -> Option<Arc<Space>> {
        self.shard(id).read().get(&id).cloned()
    }

    /// The tablespace, or `Error::TablespaceMissing`.
    pub fn find(&self, id: SpaceId) -> Result<Arc<Space>> {
        self.get(id)
            .ok_or_else(|| Error::TablespaceMissing(format!("tablespace {id}").into()))
    }

    /// All tablespaces, in no order.
    pub fn all(&self) -> Vec<Arc<Space>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.read().values().cloned());
        }
        all
    }

    /// Adds an opened tablespace; an error if the id is taken.
    pub fn insert(&self, space: Space) -> Result<Arc<Space>> {
        let space = Handles::enrol(&self.handles, space);
        let mut shard = self.shard(space.id()).write();
        if let Some(other) = shard.get(&space.id()).cloned() {
            drop(shard);
            let (id, path) = (space.id(), other.path());
            return Err(Error::TablespaceExists(
                format!("{id} is {path}, so {} cannot have that id", space.path()).into(),
            ));
        }
        shard.insert(space.id(), space.clone());
        Ok(space)
    }

    /// Forgets a tablespace; its file stays open as long as somebody holds the `Arc`.
    pub fn remove(&self, id: SpaceId) -> Option<Arc<Space>> {
        let space = self.shard(id).write().remove(&id)?;
        self.modified.lock().retain(|other| other.id() != id);
        Some(space)
    }

    /// Path of the file of table `name` (`db/t`), as log records name it: `./db/t.ibd`.
    pub fn table_path(&self, name: &str) -> String {
        join(&self.places.data_dir, &format!("{name}.ibd"))
    }

    /// How log records name the file of a table: `./db/t.ibd`, or its path if it lies elsewhere.
    pub fn log_path(&self, space: &Space) -> String {
        let (path, name) = (space.path(), space.name());
        if path == self.table_path(&name) {
            format!("./{name}.ibd")
        } else {
            path
        }
    }

    /// The file that a log record names: the reverse of `log_path`.
    pub fn resolve_log_path(&self, name: &str) -> String {
        join(
            &self.places.data_dir,
            name.strip_prefix("./").unwrap_or(name),
        )
    }

    /// Path of undo tablespace file no. `number`, from 1: `undo001`.
    pub fn undo_path(&self, number: u32) -> String {
        join(&self.places.undo_dir, &format!("undo{number:03}"))
    }

    /// Opens the file of a table. A `.isl` file beside the table, if any, tells a path elsewhere.
    ///
    /// Errors: `Error::TablespaceMissing` if there is no file, or changes wait for it to be back at the
    /// next start; `Error::Corrupt` by
    /// format-tablespace.md section 5, `Error::Unsupported` for page compression.
    pub fn open_table(&self, id: SpaceId, name: &str, repair: Repair<'_>) -> Result<Arc<Space>> {
        if let Some(space) = self.get(id) {
            return Ok(space);
        }
        self.check_present(id, name)?;
        let path = self.find_table_file(name)?;
        self.open_table_at(id, name, &path, repair)
    }

    /// As `open_table`, with the path known.
    pub fn open_table_at(
        &self,
        id: SpaceId,
        name: &str,
        path: &str,
        repair: Repair<'_>,
    ) -> Result<Arc<Space>> {
        self.check_present(id, name)?;
        self.handles.make_room();
        let file = match self.open_file(path) {
            Err(error) if crate::os::file::is_errno(&error, libc::ENOENT) => {
                return Err(Error::TablespaceMissing(format!("{name} ({path})").into()));
            }
            result => result?,
        };
        let wanted = Wanted {
            id,
            kind: Kind::Table,
            name,
            page_size: self.places.page_size,
        };
        self.insert(open::open(wanted, vec![file], &[0], repair)?)
    }

    fn find_table_file(&self, name: &str) -> Result<String> {
        let path = self.table_path(name);
        if self.vfs.exists(&path)? {
            return Ok(path);
        }
        let link = join(&self.places.data_dir, &format!("{name}.isl"));
        if self.vfs.exists(&link)? {
            let text = self.vfs.read_small(&link)?;
            let text = String::from_utf8(text)
                .map_err(|_| Error::corrupt_bytes("no path in it").in_file(&link))?;
            return Ok(text.trim_end().to_string());
        }
        Err(Error::TablespaceMissing(format!("{name} ({path})").into()))
    }

    /// Opens undo tablespace file no. `number`; `None` if there is no such file.
    pub fn open_undo(&self, number: u32, repair: Repair<'_>) -> Result<Option<Arc<Space>>> {
        let path = self.undo_path(number);
        if !self.vfs.exists(&path)? {
            return Ok(None);
        }
        let file = self.open_file(&path)?;
        let lock = self.lock(&*file)?;
        // Its id is what page 0 says: ids of undo tablespaces are consecutive, from any start.
        // A torn page 0 leaves the number of the file as the best guess to look up a copy by.
        let id = match FirstPage::read(&*file, self.places.page_size) {
            Ok(first) => first.space,
            Err(_) => SpaceId(number),
        };
        let name = format!("innodb_undo{number:03}");
        let wanted = Wanted {
            id,
            kind: Kind::Undo,
            name: &name,
            page_size: self.places.page_size,
        };
        let space = open::open(wanted, vec![file], &[0], repair)?;
        space.locks.lock().extend(lock);
        self.insert(space).map(Some)
    }

    /// Opens the system tablespace and takes the locks that keep other servers out.
    pub fn open_system(&self, path: &DataFilePath, repair: Repair<'_>) -> Result<Arc<Space>> {
        let mut files = Vec::new();
        let mut locks = Vec::new();
        for data_file in &path.files {
            let file = self.open_file(&join(&self.places.system_dir, &data_file.name))?;
            locks.extend(self.lock(&*file)?);
            files.push(file);
        }
        let sizes = self.part_sizes(path, &files)?;
        let wanted = Wanted {
            id: SpaceId::SYSTEM,
            kind: Kind::System,
            name: "innodb_system",
            page_size: self.places.page_size,
        };
        let space = open::open(wanted, files, &sizes, repair)?;
        space.locks.lock().extend(locks);
        self.insert(space)
    }

    /// Pages of each file; of the last one its limit, 0 if it has none.
    pub(super) fn part_sizes(
        &self,
        path: &DataFilePath,
        files: &[Arc<dyn File>],
    ) -> Result<Vec<u32>> {
        let page = self.places.page_size as u64;
        let mut sizes = Vec::new();
        for (at, (data_file, file)) in path.files.iter().zip(files).enumerate() {
            let pages = (data_file.bytes / page) as u32;
            let found = (file.size()? >> 20 << 20) / page;
            if at + 1 < files.len() {
                if found != pages as u64 {
                    return Err(Error::invalid(format!(
                        "{} has {found} pages, innodb_data_file_path says {pages}",
                        file.path()
                    )));
                }
                sizes.push(pages);
            } else if path.autoextend {
                sizes.push((path.bytes_max / page) as u32);
            } else {
                sizes.push(pages.max(found as u32));
            }
        }
        Ok(sizes)
    }

    /// Notes that a FILE_MODIFY record that ends at `lsn` names the tablespace. `gate`: exclusive.
    pub fn set_modified(&self, gate: &GateGuard<'_>, space: &Arc<Space>, lsn: Lsn) {
        assert!(
            gate.is_exclusive(),
            "the list of modified tablespaces changes alone"
        );
        if space.modified_lsn() == Lsn(0) {
            self.modified.lock().push(space.clone());
        }
        space.set_modified_lsn(lsn);
    }

    /// Largest number of bytes that the records of `take_modified` need.
    pub fn modified_names_bytes(&self) -> usize {
        let list = self.modified.lock().clone();
        let open = list.iter().map(|space| self.log_path(space).len() + 32);
        open.sum::<usize>() + self.absents.names_bytes()
    }

    /// What a checkpoint at `checkpoint` names: every tablespace in the list, with its `log_path`, and
    /// those without a file. Those whose last FILE_MODIFY is not above leave the list. `gate`: exclusive.
    pub fn take_modified(&self, gate: &GateGuard<'_>, checkpoint: Lsn) -> Vec<(SpaceId, String)> {
        assert!(
            gate.is_exclusive(),
            "the list of modified tablespaces changes alone"
        );
        let list = std::mem::take(&mut *self.modified.lock());
        let open = list.iter().map(|space| (space.id(), self.log_path(space)));
        let names = open.chain(self.absents.take_names(checkpoint)).collect();
        let (leaving, staying): (Vec<_>, Vec<_>) = list
            .into_iter()
            .partition(|space| space.modified_lsn() <= checkpoint);
        for space in leaving {
            space.set_modified_lsn(Lsn(0));
        }
        *self.modified.lock() = staying;
        names
    }

    pub(super) fn open_file(&self, path: &str) -> Result<Arc<dyn File>> {
        self.vfs.open(path, self.mode())
    }

    pub(super) fn mode(&self) -> OpenMode {
        handles::mode(&self.places)
    }

    pub(super) fn lock(&self, file: &dyn File) -> Result<Option<Box<dyn crate::os::FileLock>>> {
        if self.places.read_only {
            Ok(None)
        } else {
            file.lock().map(Some)
        }
    }

    fn shard(&self, id: SpaceId) -> &RwLock<HashMap<SpaceId, Arc<Space>>> {
        &self.shards[id.0 as usize % SHARDS]
    }
}

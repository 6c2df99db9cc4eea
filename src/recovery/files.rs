//! What the log says of tablespace files, done on disk: renames and deletions finished, missing files
//! of young tables made anew, sizes brought up (format-redo.md sections 8 and 13, step 4). A file that is
//! missing otherwise is waited for: nobody can tell whether it comes back.

use super::index::{FileEvents, RedoIndex};
use super::torn::Torn;
use crate::format::fsp::SpaceFlags;
use crate::os::file::parent;
use crate::space::open::probe;
use crate::space::{Absent, Kind, Registry, Space};
use crate::sync::Arc;
use crate::words::{Error, Lsn, PageId, PageNo, Result, SpaceId};

/// How strict to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leniency {
    /// innodb_force_recovery ≥ 1: the records of a missing file are given up instead of kept.
    pub missing_files: bool,
}

/// Opens every tablespace that the log, which ends at `end`, changes, the system and undo tablespaces
/// being open already. Records of tablespaces that are gone leave the index; those of a file that is
/// missing stay there, and the registry knows of it (`Registry::absent`).
///
/// Errors: what the file system gives.
pub fn open_files(
    index: &mut RedoIndex,
    spaces: &Registry,
    torn: &Torn,
    leniency: Leniency,
    end: Lsn,
) -> Result<()> {
    let files: Vec<(SpaceId, FileEvents)> = index
        .files()
        .iter()
        .map(|(id, events)| (*id, events.clone()))
        .collect();
    for (id, events) in files {
        if events.deleted {
            finish_delete(spaces, torn, id, &events)?;
            index.drop_space(id);
            continue;
        }
        let opened = match spaces.get(id) {
            Some(space) => Opened::Space(space),
            None => open_named(index, spaces, torn, id, &events, leniency)?,
        };
        let waits = match opened {
            Opened::Space(space) => {
                bring_size_up(&space, &events)?;
                continue;
            }
            Opened::Missing(why) => {
                let waits = index.has_pages_of(id);
                if waits {
                    say_what_waits(&why);
                }
                waits
            }
            Opened::Useless => {
                index.drop_space(id);
                false
            }
        };
        note_absent(spaces, id, &events, end, waits);
    }
    Ok(())
}

/// What became of a file that the log names.
enum Opened {
    Space(Arc<Space>),
    /// It is not there, or cannot be read now; whatever the log has of it is kept.
    Missing(Error),
    /// It is not there, or damaged; what the log has of it is given up.
    Useless,
}

/// Until its records are behind the checkpoint, the log goes on naming the file.
fn note_absent(spaces: &Registry, id: SpaceId, events: &FileEvents, end: Lsn, waits: bool) {
    let Some(name) = events.name.clone().filter(|_| events.used) else {
        return;
    };
    let path = spaces.resolve_log_path(&name).into();
    let absent = Absent {
        name,
        path,
        until: end,
        waits,
    };
    spaces.note_absent(id, absent);
}

fn say_what_waits(why: &Error) {
    log::error!(
        "{why}, and the redo log has changes of it. Put the file back and restart, and they are applied. \
         DROP TABLE, or a start with innodb_force_recovery=1, gives them up. Until then the redo log is \
         kept, and has room for so many changes of other tables only"
    );
}

/// After a kill what its process wrote may be in the system's cache alone, names as well as pages.
/// Here it counts as written from now on – a page that is newer than its records is clean, the
/// doublewrite blocks are used again, checkpoints pass – so it must survive a power cut.
///
/// Errors: what syncing gives.
pub fn make_durable(index: &RedoIndex, spaces: &Registry) -> Result<()> {
    let mut dirs = std::collections::BTreeSet::new();
    for events in index.files().values() {
        if events.created || events.deleted || !events.renames.is_empty() {
            let paths = names_of(events)
                .into_iter()
                .map(|name| spaces.resolve_log_path(name));
            dirs.extend(paths.map(|path| parent(&path).to_string()));
        }
    }
    for dir in dirs {
        if spaces.vfs().exists(&dir)? {
            spaces.vfs().sync_dir(&dir)?;
        }
    }
    // Pages that are not synced were changed after the checkpoint, so the log names their files, and
    // they are open by now.
    let mut open = spaces.all();
    open.sort_unstable_by_key(|space| space.id());
    open.iter().try_for_each(|space| space.sync_what_was_left())
}

/// The FILE_DELETE record is durable, so the file is to go, whether its removal was reached or not.
fn finish_delete(spaces: &Registry, torn: &Torn, id: SpaceId, events: &FileEvents) -> Result<()> {
    for name in names_of(events) {
        let path = spaces.resolve_log_path(name);
        if spaces.vfs().exists(&path)? && holds(spaces, torn, &path, id, events.created)? {
            log::info!("{path} is removed: it was being dropped");
            spaces.remove_file(&path)?;
        }
    }
    Ok(())
}

/// The latest name first.
fn names_of(events: &FileEvents) -> Vec<&str> {
    let mut names: Vec<&str> = events.name.as_deref().into_iter().collect();
    for (old, new) in events.renames.iter().rev() {
        for name in [new, old] {
            if !names.contains(&&**name) {
                names.push(name);
            }
        }
    }
    names
}

/// True if the file, under one of the names that the log has for the tablespace, belongs to it. A page 0
/// that was never written or is torn does not say; then it does if the log has all of it, or a copy of the page
/// is there.
///
/// Errors: the file cannot be read.
fn holds(spaces: &Registry, torn: &Torn, path: &str, id: SpaceId, created: bool) -> Result<bool> {
    match probe(&**spaces.vfs(), path, spaces.places().page_size) {
        Ok(first) => Ok(first.space == id),
        Err(Error::Corrupt(_)) if is_open(spaces, path) => Ok(false),
        Err(Error::Corrupt(_)) => {
            Ok(created || torn.first_page(PageId::new(id, PageNo(0))).is_some())
        }
        Err(error @ Error::Io(_)) => Err(error),
        Err(_) => Ok(false),
    }
}

fn is_open(spaces: &Registry, path: &str) -> bool {
    spaces.all().iter().any(|space| space.path() == path)
}

fn open_named(
    index: &RedoIndex,
    spaces: &Registry,
    torn: &Torn,
    id: SpaceId,
    events: &FileEvents,
    leniency: Leniency,
) -> Result<Opened> {
    let Some(latest) = events.name.as_deref() else {
        // No name, no records of its own (`check_names` saw to that).
        return Ok(Opened::Useless);
    };
    let path = spaces.resolve_log_path(latest);
    let name = table_name(latest);
    finish_renames(spaces, torn, id, events, &path)?;
    let repair = |page: PageId| torn.first_page(page);
    let error = match spaces.open_table_at(id, &name, &path, &repair) {
        Ok(space) => return Ok(Opened::Space(space)),
        Err(error) => error,
    };
    if !events.used && !events.created {
        // Named, but not changed: whoever opens the table will see.
        return Ok(Opened::Useless);
    }
    let first = PageId::new(id, PageNo(0));
    let replaceable = match index.rebuilds(first) {
        true => is_replaceable(spaces, &path),
        false => Ok(false),
    };
    let error = match replaceable {
        Ok(true) => return make_anew(spaces, id, &name, &path, events).map(Opened::Space),
        Ok(false) => error,
        // Nobody knows whether it is damaged.
        Err(error) => error,
    };
    match error {
        // It may be back at the next start, or readable.
        error if !leniency.missing_files && !matches!(error, Error::Corrupt(_)) => {
            Ok(Opened::Missing(error))
        }
        // Damage stays local: the table will say so, its records are of no use.
        error => {
            log::error!("{path}: {error}; its changes in the redo log are given up");
            Ok(Opened::Useless)
        }
    }
}

/// A crash between FILE_RENAME and rename(): the file has one of its older names.
fn finish_renames(
    spaces: &Registry,
    torn: &Torn,
    id: SpaceId,
    events: &FileEvents,
    path: &str,
) -> Result<()> {
    if spaces.vfs().exists(path)? {
        return Ok(());
    }
    for name in names_of(events).into_iter().skip(1) {
        let old = spaces.resolve_log_path(name);
        if spaces.vfs().exists(&old)? && holds(spaces, torn, &old, id, events.created)? {
            log::info!("{old} is renamed to {path}, as the redo log says");
            spaces.vfs().create_dir(parent(path))?;
            spaces.vfs().rename(&old, path)?;
            spaces.vfs().sync_dir(parent(path))?;
            return spaces.vfs().sync_dir(parent(&old));
        }
    }
    Ok(())
}

/// No file, or one whose page 0 was never written: all of it is in the log.
fn is_replaceable(spaces: &Registry, path: &str) -> Result<bool> {
    match probe(&**spaces.vfs(), path, spaces.places().page_size) {
        Err(Error::Io(failure)) if failure.errno == libc::ENOENT => Ok(true),
        Err(Error::Corrupt(_)) => Ok(true),
        Err(error @ Error::Io(_)) => Err(error),
        _ => Ok(false),
    }
}

fn make_anew(
    spaces: &Registry,
    id: SpaceId,
    name: &str,
    path: &str,
    events: &FileEvents,
) -> Result<Arc<Space>> {
    let flags = match events.flags {
        Some(flags) => SpaceFlags::parse(flags)?,
        None => SpaceFlags::full_crc32(spaces.places().page_size),
    };
    if spaces.table_path(name) != path {
        return Err(Error::unsupported(format!(
            "{path} is to be made anew, outside the data directory"
        )));
    }
    spaces.remove_file(path)?;
    log::info!("{path} is made anew from the redo log");
    spaces.create_table(id, name, flags, events.size.unwrap_or(0))
}

fn bring_size_up(space: &Space, events: &FileEvents) -> Result<()> {
    let Some(size) = events.size else {
        return Ok(());
    };
    if events.trimmed.is_some() && space.kind() == Kind::Undo {
        space.truncate(size)?;
    }
    space.raise_size_pages(size);
    space.allocate(size)
}

/// `db/t` of `./db/t.ibd` or `/elsewhere/db/t.ibd`.
fn table_name(path: &str) -> String {
    let path = path.strip_suffix(".ibd").unwrap_or(path);
    let mut parts: Vec<&str> = path.rsplitn(3, '/').take(2).collect();
    parts.reverse();
    parts.join("/")
}

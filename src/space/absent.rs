//! Tablespaces that the log changes and that have no usable file. Nothing reads or writes them; but as
//! long as the log has records of them, checkpoints must name them, or the next recovery could not tell
//! whose records those are.

use std::collections::BTreeMap;

use super::registry::Registry;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Rank};
use crate::words::{Error, Lsn, Result, SpaceId};

/// A tablespace without a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// How the log names the file.
    pub name: Box<str>,
    /// Where the file should be.
    pub path: Box<str>,
    /// The log has no record of it from here on.
    pub until: Lsn,
    /// Its records are kept for the file to come back; else they were given up.
    pub waits: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Absents {
    list: Mutex<BTreeMap<SpaceId, Absent>>,
    any_waits: AtomicBool,
}

impl Absents {
    pub(super) fn new() -> Absents {
        Absents {
            list: Mutex::new(Rank::FileState, BTreeMap::new()),
            any_waits: AtomicBool::new(false),
        }
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<SpaceId, Absent>)) {
        let mut list = self.list.lock();
        change(&mut list);
        let any_waits = list.values().any(|absent| absent.waits);
        self.any_waits.store(any_waits, Ordering::Release);
    }

    /// What a checkpoint at `checkpoint` names. Those of which no record is left then leave the list.
    pub(super) fn take_names(&self, checkpoint: Lsn) -> Vec<(SpaceId, String)> {
        let mut names = Vec::new();
        self.change(|list| {
            names.extend(
                list.iter()
                    .map(|(id, absent)| (*id, absent.name.to_string())),
            );
            list.retain(|_, absent| absent.until > checkpoint);
        });
        names
    }

    /// Bytes that the records of `take_names` need at most.
    pub(super) fn names_bytes(&self) -> usize {
        let list = self.list.lock();
        list.values().map(|absent| absent.name.len() + 32).sum()
    }
}

impl Registry {
    /// Notes a tablespace that the log changes and that has no usable file.
    pub fn note_absent(&self, id: SpaceId, absent: Absent) {
        self.absents.change(|list| {
            list.insert(id, absent);
        });
    }

    /// The tablespace, if it is one of those.
    pub fn absent(&self, id: SpaceId) -> Option<Absent> {
        self.absents.list.lock().get(&id).cloned()
    }

    /// Those whose records are kept.
    pub fn waited_for(&self) -> Vec<(SpaceId, Absent)> {
        let list = self.absents.list.lock();
        let waited_for = list.iter().filter(|(_, absent)| absent.waits);
        waited_for
            .map(|(id, absent)| (*id, absent.clone()))
            .collect()
    }

    /// Its records are void: FILE_DELETE of it is in the log.
    pub fn forget_absent(&self, id: SpaceId) {
        self.absents.change(|list| {
            list.remove(&id);
        });
    }

    /// True while changes of a missing file wait for it.
    #[inline]
    pub fn is_waiting_for_files(&self) -> bool {
        self.absents.any_waits.load(Ordering::Acquire)
    }

    /// Errors: `TablespaceMissing` if changes wait for the file of the tablespace: should it be back by
    /// now, only the next start can apply them.
    pub(super) fn check_present(&self, id: SpaceId, name: &str) -> Result<()> {
        match self.absent(id).filter(|absent| absent.waits) {
            None => Ok(()),
            Some(Absent { path, .. }) => Err(Error::TablespaceMissing(
                format!("{name} ({path}: put it back and restart)").into(),
            )),
        }
    }
}

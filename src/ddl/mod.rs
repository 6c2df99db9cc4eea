//! Statements that change the dictionary: create, drop, rename, truncate, add and drop indexes.
//!
//! Knows how rows of SYS_*, trees and files change together; knows nothing of sessions. Each
//! statement is one dictionary transaction of its own.
//!
//! Invariants
//!  1. Rows of SYS_* change under undo; the file of a table is made after the row that names it,
//!     and removed after the commit that drops it. So a crash leaves a file without a row only if
//!     the row's undo, or its purge, still removes it.
//!  2. The log record of a deletion or renaming is durable before the system call (L6).
//!  3. A table is changed only while nobody uses it (`OpenTable::retire`), under `DictGuard`; while its
//!     indexes are built, as long as that takes, without it.
//!  4. A statement that returns success is durable.
//!
//! Latches: DictOperation, for the whole statement but for builds of indexes.
//! Crash:   before the commit, rollback undoes it; after it, purge completes it.
//! Read:    define.rs, create.rs, drop.rs, rename.rs, truncate.rs, index.rs, build.rs.

#![forbid(unsafe_code)]

/// Building new indexes, by several threads.
pub mod build;

/// New tables.
pub mod create;

/// From the host's columns and keys to a definition, with all checks.
pub mod define;

/// Dropping tables, and what crashes left.
pub mod drop;

/// Adding and dropping secondary indexes.
pub mod index;

#[cfg(test)]
mod kept_log_tests;

/// Renaming tables.
pub mod rename;

#[cfg(test)]
mod tests;

/// Emptying tables.
pub mod truncate;

use crate::dict::system_tables::{self, TableRow};
use crate::dict::{Dict, DictGuard, OpenTable};
use crate::mtr::{CriticalSection, PageCtx};
use crate::page::RecordView;
use crate::schema::{FieldRef, Tuple};
use crate::sync::Arc;
use crate::trx::Trx;
use crate::words::{Error, Result};
use std::ops::ControlFlow;

pub use build::{BuildJob, BuildMeans, Refused};
pub use define::{Limits, NewTable, define};
pub use index::{AddError, NewIndexes};

use define::check_record_size;

/// What statements work with.
pub struct Ddl<'e> {
    /// Pages, log, files.
    pub ctx: &'e PageCtx,
    /// The dictionary.
    pub dict: &'e Dict,
    /// Undoes all changes of a transaction and ends it.
    pub roll_back: &'e dyn Fn(&mut Trx) -> Result<()>,
    /// New files are of the full_crc32 flavour (innodb_checksum_algorithm).
    pub full_crc32: bool,
}

impl Ddl<'_> {
    /// Runs `work` as a dictionary transaction: committed durably, or undone. `trx` is started and has
    /// written nothing.
    fn transact<T>(&self, trx: &mut Trx, work: impl FnOnce(&mut Trx) -> Result<T>) -> Result<T> {
        if self.ctx.spaces.places().read_only {
            return Err(Error::ReadOnly);
        }
        let _section = CriticalSection::enter(self.ctx, "panic while the dictionary changed");
        trx.begin_write(self.ctx, true)?;
        let done = work(trx).and_then(|value| Ok((value, trx.commit(self.ctx, None)?)));
        match done {
            Ok((value, committed)) => {
                self.ctx.reached("ddl.committed");
                self.ctx.log.write_up_to(committed.lsn, true)?;
                Ok(value)
            }
            Err(error) => {
                if let Err(second) = (self.roll_back)(trx) {
                    log::error!("a change of the dictionary is not undone: {second}");
                    match self.ctx.log.is_frozen() {
                        true => self.dict.close_door(),
                        false => self.ctx.freeze("a change of the dictionary is not undone"),
                    }
                }
                Err(error)
            }
        }
    }

    /// Retires the table if it is open.
    fn retire(&self, row: &TableRow) -> Result<Option<Retired<'_>>> {
        let busy = |why| Err(Error::Busy(format!("table {} {why}", row.name).into()));
        let table = self.dict.cached_by_id(row.id);
        if self.dict.locks().table_is_locked_by_others(None, row.id) {
            return busy("is locked");
        }
        match table {
            None => Ok(None),
            // Whoever did it builds an index, and has let go of the dictionary.
            Some(table) if table.is_retired() => busy("is being changed"),
            Some(table) if table.retire() => Ok(Some(Retired {
                dict: self.dict,
                table,
                keep: true,
            })),
            Some(_) => busy("is in use"),
        }
    }

    /// Refuses tables with foreign keys, in either role: later parts bring them.
    fn refuse_foreign_keys(&self, guard: &DictGuard<'_>, name: &str) -> Result<()> {
        let foreign = match guard.open_table(self.ctx, "SYS_FOREIGN") {
            Err(Error::NoSuchTable(_)) => return Ok(()),
            other => other?,
        };
        let mut found = false;
        let tree = foreign.clustered();
        system_tables::scan(self.ctx, tree, &Tuple::new(), &mut |view| {
            let is = |i: usize| field_is(view, i, name);
            found |= !view.is_deleted() && (is(3) || is(4));
            Ok(ControlFlow::Continue(()))
        })?;
        match found {
            true => Err(Error::unsupported(format!(
                "changing table {name}, which has foreign keys"
            ))),
            false => Ok(()),
        }
    }
}

fn field_is(view: &RecordView<'_>, i: usize, name: &str) -> bool {
    i < view.len() && view.field(i) == FieldRef::Bytes(name.as_bytes())
}

/// A table that nobody may use: lets users in again if the statement fails.
struct Retired<'e> {
    dict: &'e Dict,
    table: Arc<OpenTable>,
    keep: bool,
}

impl Retired<'_> {
    /// The statement succeeded: the table leaves the cache, and stays retired.
    fn forget(mut self) {
        self.keep = false;
    }
}

impl Drop for Retired<'_> {
    fn drop(&mut self) {
        match self.keep {
            true => self.table.revive(),
            false => self.dict.forget(&self.table),
        }
    }
}

/// Checks "database/table".
///
/// # Errors
/// `Invalid`.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let wrong = |why: &str| Err(Error::invalid(format!("table name {name:?}: {why}")));
    let Some((database, table)) = name.split_once('/') else {
        return wrong("it has no database");
    };
    if database.is_empty() || table.is_empty() || table.contains('/') {
        return wrong("it is not database/table");
    }
    if name.contains('\0') || database.starts_with('.') {
        return wrong("it is no file name");
    }
    // 64 characters each, five bytes a character in filename encoding.
    if database.len() > 320 || table.len() > 512 {
        return wrong("it is too long");
    }
    Ok(())
}

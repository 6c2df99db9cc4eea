//! Freeing what a row of SYS_INDEXES stood for. Called when the row goes: by purge, by rollback, by
//! DDL. Everything here may be repeated, after a crash too.

use super::cache::Dict;
use super::system_tables::IndexRow;
use crate::format::redo_record::FileOp;
use crate::mtr::{Budget, Mtr, PageCtx};
use crate::schema::IndexType;
use crate::space::Space;
use crate::space::open::FirstPage;
use crate::sync::Arc;
use crate::words::{Error, PageId, PageNo, Result, SpaceId};

impl Dict {
    /// Frees the tree of a row of SYS_INDEXES; with a clustered index in a file of its own, the file.
    /// Nobody uses the table any more. What is gone already is fine. Call it with no latch held.
    ///
    /// # Errors
    /// Damage that keeps the tree from being freed; what removing the file gives.
    pub fn drop_tree(&self, ctx: &PageCtx, row: &IndexRow) -> Result<()> {
        let whole_file = row.ty & IndexType::CLUSTERED != 0 && row.space != SpaceId::SYSTEM;
        if let Some(table) = self.cached_by_id(row.table).filter(|_| whole_file) {
            self.forget(&table);
        }
        let space = match ctx.spaces.get(row.space) {
            Some(space) => space,
            None => match self.open_for_drop(ctx, row)? {
                Some(space) => space,
                None => return Ok(()),
            },
        };
        if whole_file {
            return delete_file(ctx, &space);
        }
        if row.root == PageNo::NONE {
            return Ok(());
        }
        crate::tree::free(ctx, PageId::new(row.space, row.root), row.id)
    }

    /// Opens the file of a table that is dropped, by the name in its delete-marked row; `None` if
    /// there is no such file, or it is another table's by now.
    fn open_for_drop(&self, ctx: &PageCtx, row: &IndexRow) -> Result<Option<Arc<Space>>> {
        let Some(name) = self.name_of(ctx, row.table, true)? else {
            return Ok(None);
        };
        let path = ctx.spaces.table_path(&name);
        if !ctx.spaces.vfs().exists(&path)? {
            return Ok(None);
        }
        let none = |_: PageId| None;
        match ctx.spaces.open_table(row.space, &name, &none) {
            Ok(space) => Ok(Some(space)),
            Err(Error::TablespaceMissing(_) | Error::Corrupt(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Removes the file of a table, its log record durable first (L6).
///
/// # Errors
/// `Stopped`, `Io`; `Busy` if I/O on it does not end.
pub fn delete_file(ctx: &PageCtx, space: &Space) -> Result<()> {
    let name = ctx.spaces.log_path(space);
    let mut mtr = Mtr::start(ctx, Budget::system(256 + name.len()))?;
    let hold = ctx.log.hold_checkpoints();
    mtr.file_op(&FileOp::Delete {
        space: space.id(),
        name: name.as_bytes(),
    });
    let lsn = mtr.commit();
    ctx.log.write_up_to(lsn, true)?;
    // Under the hold: pages that are thrown away unwritten hold a checkpoint back no more, and the
    // log must still name the deletion when the file is gone.
    ctx.pool.discard_space(space.id());
    let deleted = ctx.spaces.delete(space);
    drop(hold);
    deleted
}

/// The tablespace id that page 0 of a file says; `None` if there is no file, or no valid page 0.
///
/// # Errors
/// What opening the file gives.
pub fn space_of_file(ctx: &PageCtx, path: &str) -> Result<Option<SpaceId>> {
    if !ctx.spaces.vfs().exists(path)? {
        return Ok(None);
    }
    let mode = crate::os::OpenMode {
        write: false,
        direct: false,
    };
    let file = ctx.spaces.vfs().open(path, mode)?;
    let first = FirstPage::read(&*file, ctx.page_size());
    Ok(first.ok().map(|first| first.space))
}

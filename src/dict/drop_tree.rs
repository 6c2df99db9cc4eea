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
use crate::words::{Error, PageId, PageNo, Result, SpaceId, TableId};

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
        // A new table of the same name: its page 0 may never have been written.
        let is_other = |space: &Arc<Space>| space.id() != row.space && space.path() == path;
        if ctx.spaces.all().iter().any(is_other) {
            return Ok(None);
        }
        let none = |_: PageId| None;
        match ctx.spaces.open_table(row.space, &name, &none) {
            Ok(space) => Ok(Some(space)),
            Err(Error::TablespaceMissing(_)) => Ok(None),
            Err(Error::Corrupt(_)) => remove_unwritten(ctx, &path).map(|()| None),
            Err(error) => Err(error),
        }
    }
}

/// Removes a file whose page 0 was never written: its creation was cut short. Any other file that does
/// not open stays.
fn remove_unwritten(ctx: &PageCtx, path: &str) -> Result<()> {
    let file = ctx.spaces.vfs().open(path, crate::os::OpenMode::READ)?;
    let mut start = [0; 4096];
    if file.size()? >= start.len() as u64 {
        file.read_at(&mut start, 0)?;
    }
    drop(file);
    match crate::format::fil::is_all_zero(&start) {
        true => ctx.spaces.remove_file(path),
        false => Ok(()),
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

/// Renames the file of a table to that of `name`, its log record durable first (L6).
///
/// # Errors
/// `TablespaceExists` if there is such a file; `Stopped`, `Io`.
pub fn rename_file(ctx: &PageCtx, space: &Space, name: &str) -> Result<()> {
    let to = ctx.spaces.table_path(name);
    if ctx.spaces.vfs().exists(&to)? {
        return Err(Error::TablespaceExists(to.into()));
    }
    let (old, new) = (ctx.spaces.log_path(space), format!("./{name}.ibd"));
    let budget = Budget::system(256 + old.len() + new.len());
    let mut mtr = Mtr::start(ctx, budget)?;
    let hold = ctx.log.hold_checkpoints();
    mtr.file_op(&FileOp::Rename {
        space: space.id(),
        old: old.as_bytes(),
        new: new.as_bytes(),
    });
    let lsn = mtr.commit();
    ctx.log.write_up_to(lsn, true)?;
    ctx.reached("ddl.rename_logged");
    let renamed = ctx.spaces.rename_table(space, name);
    ctx.reached("ddl.renamed");
    drop(hold);
    renamed
}

impl Dict {
    /// Undoes a renaming: the file of the table gets its old name back. What an undo record of a
    /// renaming asks for, after the rows of SYS_TABLES are as they were. May be repeated.
    ///
    /// # Errors
    /// What looking for the file and renaming it give.
    pub fn undo_rename(&self, ctx: &PageCtx, id: TableId, old_name: &str) -> Result<()> {
        if let Some(table) = self.cached_by_id(id) {
            self.forget(&table);
        }
        let Some(row) = super::load::table_row(ctx, self.system(), old_name)? else {
            return Ok(());
        };
        if row.space == SpaceId::SYSTEM {
            return Ok(());
        }
        let space = match ctx.spaces.get(row.space) {
            Some(space) => Some(space),
            None => find_file(ctx, row.space, old_name)?,
        };
        let Some(space) = space.filter(|space| &*space.name() != old_name) else {
            return Ok(());
        };
        let path = ctx.spaces.table_path(old_name);
        if ctx.spaces.vfs().exists(&path)? {
            remove_unwritten(ctx, &path)?;
        }
        match rename_file(ctx, &space, old_name) {
            Err(Error::TablespaceExists(path)) => {
                // The table is without its file until somebody moves the other one; no other
                // table need suffer.
                log::error!("table {old_name} does not get its file back: {path} is in the way");
                Ok(())
            }
            other => other,
        }
    }
}

/// Opens the file of tablespace `id` under whatever name it has in the directory of table `name`;
/// `None` if it is not there.
fn find_file(ctx: &PageCtx, id: SpaceId, name: &str) -> Result<Option<Arc<Space>>> {
    let Some((database, _)) = name.split_once('/') else {
        return Ok(None);
    };
    let dir = crate::os::file::join(&ctx.spaces.places().data_dir, database);
    for file in ctx.spaces.vfs().list_dir(&dir)? {
        let Some(stem) = file.strip_suffix(".ibd") else {
            continue;
        };
        let table = format!("{database}/{stem}");
        if space_of_file(ctx, &ctx.spaces.table_path(&table))? == Some(id) {
            return ctx.spaces.open_table(id, &table, &|_| None).map(Some);
        }
    }
    Ok(None)
}

/// The tablespace id that page 0 of a file says; `None` if there is no file, or no valid page 0.
///
/// # Errors
/// What opening the file gives.
pub fn space_of_file(ctx: &PageCtx, path: &str) -> Result<Option<SpaceId>> {
    if !ctx.spaces.vfs().exists(path)? {
        return Ok(None);
    }
    let file = ctx.spaces.vfs().open(path, crate::os::OpenMode::READ)?;
    let first = FirstPage::read(&*file, ctx.page_size());
    Ok(first.ok().map(|first| first.space))
}

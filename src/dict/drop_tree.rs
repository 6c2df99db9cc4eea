//! Freeing what a row of SYS_INDEXES stood for. Called when the row goes: by purge, by rollback, by
//! DDL. Everything here may be repeated, after a crash too.

use super::cache::Dict;
use super::system_tables::{self, IndexRow};
use crate::format::redo_record::FileOp;
use crate::mtr::{Budget, Class, Mtr, PageCtx};
use crate::redo::CheckpointHold;
use crate::schema::{IndexType, Tuple};
use crate::space::open::{FirstPage, probe};
use crate::space::{Absent, Space};
use crate::sync::Arc;
use crate::words::{Error, PageId, PageNo, Result, SpaceId, TableId};
use std::ops::ControlFlow;

impl Dict {
    /// Frees the tree of a row of SYS_INDEXES; with a clustered index in a file of its own, the file.
    /// Nobody uses the table any more. What is gone already is fine. Call it with no latch held.
    ///
    /// # Errors
    /// Damage that keeps the tree from being freed; what removing the file gives.
    pub fn drop_tree(&self, ctx: &PageCtx, row: &IndexRow) -> Result<()> {
        let whole_file = is_whole_file(row);
        if let Some(table) = self.cached_by_id(row.table).filter(|_| whole_file) {
            self.forget(&table);
        }
        let absent = ctx.spaces.absent(row.space);
        if let Some(absent) = absent.filter(|absent| whole_file && absent.waits) {
            return delete_absent(ctx, row.space, &absent);
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

    /// Rows of SYS_INDEXES that committed drops left to purge and that stand for a file of their own. Only
    /// after the rollback of the dictionary, and while nobody changes it.
    ///
    /// # Errors
    /// Damaged pages, what reading gives.
    pub fn dropped_files(&self, ctx: &PageCtx) -> Result<Vec<IndexRow>> {
        let (indexes, all) = (self.system().indexes.clustered(), Tuple::new());
        let mut dropped = Vec::new();
        system_tables::scan(ctx, indexes, &all, &mut |view| {
            // One that cannot be understood is purge's to report.
            match IndexRow::parse(view) {
                Ok(row) if view.is_deleted() && is_whole_file(&row) => dropped.push(row),
                _ => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if !dropped.is_empty() {
            let live = self.table_rows(ctx)?;
            dropped.retain(|row| live.iter().all(|table| table.space != row.space));
        }
        Ok(dropped)
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

/// True for a clustered index in a file of its own: the file goes with it.
fn is_whole_file(row: &IndexRow) -> bool {
    row.ty & IndexType::CLUSTERED != 0 && row.space != SpaceId::SYSTEM
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
    let hold = log_deletion(ctx, space.id(), &name)?;
    ctx.pool.discard_space(space.id());
    let deleted = ctx.spaces.delete(space);
    if let Err(Error::Stopped(why)) = &deleted {
        ctx.freeze(why);
    }
    drop(hold);
    deleted
}

/// What `delete_file` does, for a file that is missing: what the log has of it is void, and recovery does
/// not ask for it again. If the file is back, it goes.
fn delete_absent(ctx: &PageCtx, id: SpaceId, absent: &Absent) -> Result<()> {
    let hold = log_deletion(ctx, id, &absent.name)?;
    ctx.pool.discard_space(id);
    ctx.spaces.forget_absent(id);
    let is_back = probe(&**ctx.spaces.vfs(), &absent.path, ctx.page_size());
    let deleted = match is_back {
        Ok(first) if first.space == id => ctx.spaces.remove_file(&absent.path),
        _ => Ok(()),
    };
    drop(hold);
    deleted
}

/// Makes FILE_DELETE durable. No checkpoint starts until the result is dropped: pages that are thrown away
/// unwritten hold none back any more, and the log must still name the deletion when the file is gone.
fn log_deletion<'c>(ctx: &'c PageCtx, space: SpaceId, name: &str) -> Result<CheckpointHold<'c>> {
    let budget = Budget {
        class: Class::Checkpoint,
        ..Budget::system(256 + name.len())
    };
    let mut mtr = Mtr::start(ctx, budget)?;
    let hold = ctx.log.hold_checkpoints();
    let name = name.as_bytes();
    mtr.file_op(&FileOp::Delete { space, name });
    let lsn = mtr.commit();
    ctx.log.write_up_to(lsn, true)?;
    Ok(hold)
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
    mtr.file_op(&rename_op(space.id(), &old, &new));
    let lsn = mtr.commit();
    ctx.log.write_up_to(lsn, true)?;
    ctx.reached("ddl.rename_logged");
    let renamed = ctx.spaces.rename_table(space, name);
    ctx.reached("ddl.renamed");
    match &renamed {
        Err(Error::Stopped(why)) => ctx.freeze(why),
        // The next start would rename the file as the log says, and nobody would undo that.
        Err(_) if &*space.name() != name => {
            drop(hold);
            let mut mtr = Mtr::start(ctx, budget)?;
            mtr.file_op(&rename_op(space.id(), &new, &old));
            mtr.commit();
        }
        _ => {}
    }
    renamed
}

fn rename_op<'n>(space: SpaceId, old: &'n str, new: &'n str) -> FileOp<'n> {
    FileOp::Rename {
        space,
        old: old.as_bytes(),
        new: new.as_bytes(),
    }
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

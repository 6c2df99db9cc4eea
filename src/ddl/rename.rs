//! Renaming tables.

use super::drop::refuse_full_text;
use super::{Ddl, check_name};
use crate::dict::drop_tree::rename_file;
use crate::dict::rows;
use crate::dict::system_tables::TableRow;
use crate::dict::write::{Writer, note_rename};
use crate::trx::Trx;
use crate::words::{Error, Result, SpaceId};

impl Ddl<'_> {
    /// Renames a table and its file.
    ///
    /// # Errors
    /// `NoSuchTable`, `TableExists`, `TablespaceExists`, `TablespaceMissing`, `Busy`, `LogHeld`,
    /// `ReadOnly`, `Unsupported`: foreign keys, full-text indexes.
    pub fn rename(&self, trx: &mut Trx, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        self.ctx.log.check_statement_room()?;
        let guard = self.dict.exclusive();
        let row = guard.table_row(self.ctx, from)?;
        match guard.table_row(self.ctx, to) {
            Err(Error::NoSuchTable(_)) => {}
            Ok(_) => return Err(Error::TableExists(to.into())),
            Err(error) => return Err(error),
        }
        self.refuse_foreign_keys(&guard, from)?;
        refuse_full_text(&row)?;
        let retired = self.retire(&row)?;
        self.transact(trx, |trx| self.rename_in(trx, &row, to))?;
        if let Some(retired) = retired {
            retired.forget();
        }
        Ok(())
    }

    /// Renames within a dictionary transaction. The undo record of the name comes first, so that
    /// rollback renames the file last, when the rows are as they were.
    pub(super) fn rename_in(&self, trx: &mut Trx, row: &TableRow, to: &str) -> Result<()> {
        let (ctx, dict) = (self.ctx, self.dict);
        note_rename(ctx, trx, row.id, &row.name)?;
        ctx.reached("ddl.rename_noted");
        let writer = &mut Writer::Trx(trx);
        rows::delete_table(ctx, dict, &row.name, writer)?;
        let renamed = TableRow {
            name: to.into(),
            ..row.clone()
        };
        rows::insert_table_row(ctx, dict, &renamed, writer)?;
        if row.space == SpaceId::SYSTEM {
            return Ok(());
        }
        let space = match ctx.spaces.get(row.space) {
            Some(space) => space,
            None => ctx.spaces.open_table(row.space, &row.name, &|_| None)?,
        };
        rename_file(ctx, &space, to)
    }
}

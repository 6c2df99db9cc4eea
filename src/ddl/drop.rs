//! Dropping tables.

use super::Ddl;
use crate::dict::rows;
use crate::dict::system_tables::{IndexRow, TableRow};
use crate::dict::write::Writer;
use crate::schema::IndexType;
use crate::schema::table::mix_len;
use crate::trx::Trx;
use crate::words::{Error, Result, SpaceId};

/// Tables that a TRUNCATE was about to drop have such names.
pub(super) const TRUNCATED: &str = "#sql-ib";

impl Ddl<'_> {
    /// Drops a table. One whose file is missing or damaged can be dropped, too.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy`, `ReadOnly`, `Unsupported`: foreign keys, full-text indexes.
    pub fn drop_table(&self, trx: &mut Trx, name: &str) -> Result<()> {
        let guard = self.dict.exclusive();
        let row = guard.table_row(self.ctx, name)?;
        self.refuse_foreign_keys(&guard, name)?;
        refuse_full_text(&row)?;
        let retired = self.retire(&row)?;
        let indexes = self.transact(trx, |trx| self.drop_in(trx, &row))?;
        if let Some(retired) = retired {
            retired.forget();
        }
        self.remove_files(&indexes);
        Ok(())
    }

    /// Delete-marks the rows within a dictionary transaction; what is to be freed after the commit.
    pub(super) fn drop_in(&self, trx: &mut Trx, row: &TableRow) -> Result<Vec<IndexRow>> {
        let indexes = self.dict.index_rows(self.ctx, row.id)?;
        let writer = &mut Writer::Trx(trx);
        rows::delete(self.ctx, self.dict, &row.name, row.id, writer)?;
        self.ctx.reached("ddl.drop_rows");
        Ok(indexes)
    }

    /// Removes the file of a dropped table. Trees in the system tablespace wait for purge. What fails
    /// here is tried again by purge: the table is gone all the same.
    pub(super) fn remove_files(&self, indexes: &[IndexRow]) {
        for index in indexes {
            let own_file = index.ty & IndexType::CLUSTERED != 0 && index.space != SpaceId::SYSTEM;
            if !own_file {
                continue;
            }
            self.ctx.reached("ddl.drop_file");
            if let Err(error) = self.dict.drop_tree(self.ctx, index) {
                log::warn!(
                    "the file of tablespace {} stays for now: {error}",
                    index.space
                );
            }
        }
    }
}

/// True for the name of a table that an unfinished TRUNCATE had put aside. Other `#sql` tables are the
/// host's business: its own log says whether they are to be kept.
pub fn is_leftover(name: &str) -> bool {
    let table = name.split_once('/').map(|(_, table)| table);
    table.is_some_and(|table| table.starts_with(TRUNCATED))
}

/// Auxiliary tables belong to a full-text index; a later version drops them with it.
pub(super) fn refuse_full_text(row: &TableRow) -> Result<()> {
    match row.mix_len & (mix_len::FTS | mix_len::FTS_HAS_DOC_ID) {
        0 => Ok(()),
        _ => Err(Error::unsupported(format!(
            "changing table {}, which has a FULLTEXT index",
            row.name
        ))),
    }
}

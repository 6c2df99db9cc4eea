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
            if let Err(error) = self.dict.drop_tree(self.ctx, index) {
                log::warn!(
                    "the file of tablespace {} stays for now: {error}",
                    index.space
                );
            }
        }
    }

    /// Drops what unfinished statements left: tables that TRUNCATE had put aside. At the start, after
    /// the rollback of unfinished transactions. Returns how many.
    ///
    /// # Errors
    /// What reading SYS_TABLES gives; a table that cannot be dropped is only logged.
    pub fn drop_leftovers(&self, trx: &mut Trx, start: &mut dyn FnMut(&mut Trx)) -> Result<u32> {
        let is_leftover = |name: &str| {
            let table = name.split_once('/').map(|(_, table)| table);
            table.is_some_and(|t| t.starts_with(TRUNCATED))
        };
        let mut dropped = 0;
        for row in self.dict.table_rows(self.ctx)? {
            if !is_leftover(&row.name) {
                continue;
            }
            start(trx);
            match self.drop_table(trx, &row.name) {
                Ok(()) => dropped += 1,
                Err(error) => log::warn!("leftover {} stays: {error}", row.name),
            }
        }
        Ok(dropped)
    }
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

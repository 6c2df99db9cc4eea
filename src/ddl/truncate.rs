//! Emptying tables: a new table of the same definition takes the place of the old one, as InnoDB does
//! it since 10.2.

use super::Ddl;
use super::drop::{TRUNCATED, refuse_full_text};
use crate::dict::system_tables::TableRow;
use crate::schema::{IndexDef, KeyPart, Table, TableDef};
use crate::trx::Trx;
use crate::words::{Error, Result};

impl Ddl<'_> {
    /// Empties a table: new id, new file, AUTO_INCREMENT from 1.
    ///
    /// # Errors
    /// `NoSuchTable`, `TablespaceMissing`, `Busy`, `ReadOnly`, `NoSpace`, `LogHeld`, `Unsupported`: foreign
    /// keys, full-text and spatial indexes, COMPRESSED.
    pub fn truncate(&self, trx: &mut Trx, name: &str) -> Result<()> {
        self.ctx.log.check_statement_room()?;
        let guard = self.dict.exclusive();
        let row = guard.table_row(self.ctx, name)?;
        self.refuse_foreign_keys(&guard, name)?;
        refuse_full_text(&row)?;
        let table = guard.open_table(self.ctx, name)?;
        if table.is_read_only() {
            return Err(Error::ReadOnly);
        }
        let def = definition_of(&guard.definition_of(self.ctx, &row)?);
        drop(table);
        let retired = self.retire(&row)?;
        let database = name.split_once('/').map_or("", |(database, _)| database);
        let aside = format!("{database}/{TRUNCATED}{}", row.id);
        let indexes = self.transact(trx, |trx| {
            self.rename_in(trx, &row, &aside)?;
            self.ctx.reached("ddl.truncate_aside");
            self.create_in(trx, def, 0)?;
            self.ctx.reached("ddl.truncate_created");
            let row = TableRow {
                name: aside.as_str().into(),
                ..row.clone()
            };
            self.drop_in(trx, &row)
        })?;
        if let Some(retired) = retired {
            retired.forget();
        }
        self.remove_files(&indexes);
        Ok(())
    }
}

/// The definition by which a table is made again, or changed; new ids and places are for those who do.
pub(super) fn definition_of(table: &Table) -> TableDef {
    let indexes = table.indexes.iter().map(|index| IndexDef {
        id: index.id,
        name: index.name.clone(),
        ty: index.ty,
        root: index.root,
        parts: index.fields[..index.n_user_fields as usize]
            .iter()
            .map(|field| KeyPart {
                column: field.column,
                prefix_len: field.prefix_len,
                desc: field.desc,
            })
            .collect(),
        merge_threshold: index.merge_threshold,
    });
    TableDef {
        id: table.id,
        name: table.name.clone(),
        space: table.space,
        flags: table.flags,
        compact: table.is_compact(),
        mix_len: table.mix_len,
        path: None,
        columns: table.stored_columns().to_vec(),
        virtual_columns: table.virtual_columns.to_vec(),
        indexes: indexes.collect(),
    }
}

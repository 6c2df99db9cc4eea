//! Adding and dropping secondary indexes.
//!
//! One dictionary transaction for all of it: rows of SYS_INDEXES and SYS_FIELDS first, then the trees, which
//! nobody finds before the commit. A crash, or an error, has the rows undone, and with each row of
//! SYS_INDEXES its tree goes.

use super::build::{BuildJob, Refused};
use super::drop::refuse_full_text;
use super::truncate::definition_of;
use super::{Ddl, Retired, check_record_size};
use crate::dict::rows;
use crate::dict::write::Writer;
use crate::dict::{DictGuard, OpenTable};
use crate::extent;
use crate::mtr::Class;
use crate::schema::{IndexDef, IndexType, Table, TableDef};
use crate::sync::Arc;
use crate::tree::Tree;
use crate::trx::Trx;
use crate::words::{Error, IndexId, Result};

/// Indexes to be added to a table.
pub struct NewIndexes<'n> {
    /// "database/table".
    pub table: &'n str,
    /// As the table's definition will have them, without ids and roots.
    pub indexes: Vec<IndexDef>,
    /// What CREATE TABLE checks.
    pub limits: super::Limits,
    /// Runs a build to its end.
    pub build: &'n dyn Fn(BuildJob) -> Result<Option<Refused>>,
}

/// An index could not be added.
#[derive(Debug)]
pub struct AddError {
    /// Why.
    pub error: Error,
    /// For `DuplicateKey`: the definition with the new indexes, and the key that two rows have.
    pub refused: Option<(Arc<Table>, Refused)>,
}

impl From<Error> for AddError {
    fn from(error: Error) -> AddError {
        AddError {
            error,
            refused: None,
        }
    }
}

impl Ddl<'_> {
    /// Adds indexes to a table that nobody uses.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy`, `ReadOnly`, `Invalid`: a name that is taken; `DuplicateKey`, whose `index` counts
    /// the table's indexes with the new ones behind; `RowTooLarge`, `NoSpace`, `Interrupted`, `Io`,
    /// `Unsupported`: foreign keys, full-text and spatial indexes, a key that would be the primary one.
    pub fn add_indexes(&self, trx: &mut Trx, new: NewIndexes<'_>) -> Result<(), AddError> {
        self.ctx.log.check_statement_room()?;
        let guard = self.dict.exclusive();
        let (table, mut def, retired) = self.alter(&guard, new.table)?;
        let first_new = def.indexes.len();
        for index in &new.indexes {
            check_new(&table, &def, index)?;
            def.indexes.push(index.clone());
        }
        let ids = self
            .dict
            .counters()
            .new_index_ids(self.ctx, new.indexes.len() as u32)?;
        for (i, index) in (0..).zip(&mut def.indexes[first_new..]) {
            index.id = IndexId(ids.0 + i);
        }
        let built = def.clone().build()?;
        for index in &built.indexes[first_new..] {
            check_record_size(&built, index, new.limits)?;
        }
        let mut refused = None;
        let done = self.transact(trx, |trx| {
            let trees = self.make_trees(trx, &mut def, first_new)?;
            self.ctx.reached("ddl.index_made");
            let job = BuildJob::new(&table, trees, trx.id().unwrap_or_default());
            if let Some(found) = (new.build)(job)? {
                let index = found.index;
                refused = Some((Arc::new(def.clone().build()?), found));
                return Err(Error::DuplicateKey { index });
            }
            self.ctx.reached("ddl.index_built");
            Ok(())
        });
        done.map_err(|error| AddError { error, refused })?;
        if let Some(retired) = retired {
            retired.forget();
        }
        Ok(())
    }

    /// Drops an index of a table that nobody uses; purge frees its tree.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy`, `ReadOnly`, `Invalid`: no such index, or the clustered one; `Unsupported`: foreign
    /// keys, full-text and spatial indexes.
    pub fn drop_index(&self, trx: &mut Trx, name: &str, index: &str) -> Result<()> {
        let guard = self.dict.exclusive();
        let (table, def, retired) = self.alter(&guard, name)?;
        let same = |def: &&IndexDef| def.name.to_lowercase() == index.to_lowercase();
        let found = def.indexes.iter().find(same);
        let found = found.filter(|index| !index.ty.has(IndexType::CLUSTERED));
        let found = found.ok_or_else(|| {
            Error::invalid(format!(
                "table {} has no secondary index {index}",
                table.name()
            ))
        })?;
        self.transact(trx, |trx| {
            let writer = &mut Writer::Trx(trx);
            rows::delete_index(self.ctx, self.dict, def.id, found.id, writer)
        })?;
        if let Some(retired) = retired {
            retired.forget();
        }
        Ok(())
    }

    /// The table, its definition, and nobody who uses it.
    fn alter<'d>(
        &'d self,
        guard: &DictGuard<'_>,
        name: &str,
    ) -> Result<(Arc<OpenTable>, TableDef, Option<Retired<'d>>)> {
        let row = guard.table_row(self.ctx, name)?;
        self.refuse_foreign_keys(guard, name)?;
        refuse_full_text(&row)?;
        let table = guard.open_table(self.ctx, name)?;
        table.check_writable()?;
        let def = definition_of(&guard.definition_of(self.ctx, &row)?);
        let retired = self.retire(&row)?;
        Ok((table, def, retired))
    }

    /// Rows and empty trees of the indexes from position `first` of the definition on.
    fn make_trees(&self, trx: &mut Trx, def: &mut TableDef, first: usize) -> Result<Vec<Tree>> {
        let (ctx, dict) = (self.ctx, self.dict);
        let mut indexes = std::mem::take(&mut def.indexes);
        let made = indexes[first..].iter_mut().try_for_each(|index| {
            let writer = &mut Writer::Trx(&mut *trx);
            rows::insert_index(ctx, dict, def, index, writer)?;
            rows::insert_fields(ctx, dict, def, index, writer)?;
            let _room = extent::reserve(ctx, def.space, 2, 2, Class::Statement)?;
            index.root = rows::create_tree(ctx, dict, def, index.id)?;
            Ok(())
        });
        def.indexes = indexes;
        made?;
        let table = Arc::new(def.clone().build()?);
        let positions = first..table.indexes.len();
        let tree = |i| {
            Tree::new(
                table.clone(),
                i,
                dict.locks().clone(),
                dict.collations().clone(),
            )
        };
        Ok(positions.map(tree).collect())
    }
}

fn check_new(table: &OpenTable, def: &TableDef, index: &IndexDef) -> Result<()> {
    let same = |other: &IndexDef| other.name.to_lowercase() == index.name.to_lowercase();
    if def.indexes.iter().any(same) {
        return Err(Error::invalid(format!("duplicate key name {}", index.name)));
    }
    if index.ty.has(IndexType::CLUSTERED) {
        return Err(Error::unsupported("ADD PRIMARY KEY"));
    }
    // The server takes such a key for the primary one and wants the rows in its order.
    if table.def().has_generated_key() && def.can_be_clustered(index) {
        return Err(Error::unsupported(format!(
            "ADD UNIQUE {} of columns that are NOT NULL to a table without a primary key",
            index.name
        )));
    }
    Ok(())
}

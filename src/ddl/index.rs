//! Adding and dropping secondary indexes.
//!
//! One dictionary transaction for all of it: rows of SYS_INDEXES and SYS_FIELDS first, then the trees, which
//! nobody finds before the commit. A crash, or an error, has the rows undone, and with each row of
//! SYS_INDEXES its tree goes.
//!
//! While trees are built the dictionary is free for others. The table stays retired, which keeps everybody
//! from it.

use super::build::{BuildJob, Refused};
use super::drop::refuse_full_text;
use super::truncate::definition_of;
use super::{Ddl, Retired, check_record_size, define};
use crate::dict::rows;
use crate::dict::write::Writer;
use crate::dict::{DictGuard, OpenTable};
use crate::extent;
use crate::host::image::{ImageKey, TableImage};
use crate::mtr::Class;
use crate::row::Template;
use crate::schema::{IndexDef, IndexType, Table, TableDef};
use crate::sync::Arc;
use crate::tree::Tree;
use crate::trx::Trx;
use crate::words::{Error, IndexId, Result};

/// Indexes to be added to a table.
pub struct NewIndexes<'n> {
    /// "database/table".
    pub table: &'n str,
    /// Columns and keys of the table with the new ones.
    pub image: &'n TableImage,
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
    /// Adds the keys of the image that the dictionary does not have to a table that nobody uses.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy`, `ReadOnly`, `Invalid`: names and keys that cannot be, columns that are not the
    /// table's; `DuplicateKey`, whose `index` counts the table's indexes with the new ones behind;
    /// `RowTooLarge`, `KeyTooLong`, `NoSpace`, `Interrupted`, `Io`, `Unsupported`: foreign keys, full-text and
    /// spatial indexes, keys on virtual columns, a key that would be the primary one.
    pub fn add_indexes(&self, trx: &mut Trx, new: NewIndexes<'_>) -> Result<(), AddError> {
        self.ctx.log.check_statement_room()?;
        let guard = self.dict.exclusive();
        let (table, mut def, retired) = self.alter(&guard, new.table)?;
        let first_new = def.indexes.len();
        let added = indexes_to_add(&table, &def, &new)?;
        if added.is_empty() {
            return Ok(());
        }
        let count = added.len() as u32;
        def.indexes.extend(added);
        let ids = self.dict.counters().new_index_ids(self.ctx, count)?;
        for (i, index) in (0..).zip(&mut def.indexes[first_new..]) {
            index.id = IndexId(ids.0 + i);
        }
        let built = def.clone().build()?;
        for index in &built.indexes[first_new..] {
            check_record_size(&built, index, new.limits)?;
        }
        let (mut refused, mut guard) = (None, Some(guard));
        let done = self.transact(trx, |trx| {
            let trees = self.make_trees(trx, &mut def, first_new)?;
            self.ctx.reached("ddl.index_made");
            let job = BuildJob::new(&table, trees, trx.id().unwrap_or_default());
            // Other statements of DDL go on meanwhile, and tables are opened.
            guard.take();
            let built = (new.build)(job);
            guard = Some(self.dict.exclusive());
            if let Some(found) = built? {
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
    /// `NoSuchTable`, `Busy`, `ReadOnly`, `Invalid`: no such index; `Unsupported`: the clustered one, foreign
    /// keys, full-text and spatial indexes.
    pub fn drop_index(&self, trx: &mut Trx, name: &str, index: &str) -> Result<()> {
        let guard = self.dict.exclusive();
        let (table, def, retired) = self.alter(&guard, name)?;
        let same = |def: &&IndexDef| def.name.to_lowercase() == index.to_lowercase();
        let found = def.indexes.iter().find(same).ok_or_else(|| {
            Error::invalid(format!("table {} has no index {index}", table.name()))
        })?;
        if found.ty.has(IndexType::CLUSTERED) {
            let name = &found.name;
            return Err(Error::unsupported(format!(
                "dropping {name}, by which the rows are in order"
            )));
        }
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

/// Definitions of the keys that the table does not have, without ids and roots.
fn indexes_to_add(
    table: &OpenTable,
    def: &TableDef,
    new: &NewIndexes<'_>,
) -> Result<Vec<IndexDef>> {
    define::check_keys(new.image)?;
    let is_there = |key: &ImageKey| {
        let name = key.name.to_lowercase();
        def.indexes
            .iter()
            .any(|index| index.name.to_lowercase() == name)
    };
    let mut image = new.image.clone();
    let (there, added): (Vec<_>, Vec<_>) = image.keys.into_iter().partition(is_there);
    image.keys = there.into();
    // By what the host calls a column the new entries are made: it must be the table's.
    Template::new(Arc::new(image), table.def())?;
    let index = |key: &ImageKey| {
        let index = define::index(new.image, key, table.def().format, new.limits)?;
        check_new(table, def, &index)?;
        Ok(index)
    };
    added.iter().map(index).collect()
}

fn check_new(table: &OpenTable, def: &TableDef, index: &IndexDef) -> Result<()> {
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

//! Tables by name: create, drop, rename, truncate, find, list, describe.
//!
//! Names are "database/table" as the dictionary spells them. Each call that changes something first
//! commits the session's transaction, and is atomic.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::open::Engine;
use super::session::Session;
use super::types::{
    CreateOptions, RowFormat, SessionConfig, TableDescription, TableFlags, TableInfo, Wait,
};
use crate::ddl::{self, Ddl, NewTable, define};
use crate::dict::describe::describe;
use crate::host::callbacks::SessionCtx;
use crate::host::image::TableImage;
use crate::row::{self, Patience, Template};
use crate::schema;
use crate::settings::ids;
use crate::trx::Trx;
use crate::words::{Error, Result, TrxId};

/// Between two looks at a table that a rollback holds.
const ROLLBACK_STEP: Duration = Duration::from_millis(5);

/// SQL's name of a stored row format.
pub(super) fn host_format(format: schema::RowFormat) -> RowFormat {
    match format {
        schema::RowFormat::Redundant => RowFormat::Redundant,
        schema::RowFormat::Compact => RowFormat::Compact,
        schema::RowFormat::Dynamic => RowFormat::Dynamic,
        schema::RowFormat::Compressed => RowFormat::Compressed,
    }
}

impl Engine {
    /// Creates a table and its tablespace.
    ///
    /// # Errors
    /// `TableExists`, `TablespaceExists`, `KeyTooLong`, `RowTooLarge`, `Unsupported`, `ReadOnly`,
    /// `CollationUnknown`, `NoSpace`, `Io`.
    pub fn create_table(
        &self,
        session: &mut Session,
        name: &str,
        image: &TableImage,
        options: &CreateOptions,
    ) -> Result<()> {
        let new = NewTable {
            name,
            image,
            format: self.format_for(options)?,
        };
        let limits = self.limits();
        let limits = ddl::Limits {
            page_size: limits.page_size as usize,
            key_bytes_max: limits.key_length_max,
            strict: session.settings().is_on(ids::STRICT_MODE),
        };
        let def = define(&new, limits)?;
        self.check_collations(&def.clone().build()?)?;
        let first = options.auto_increment;
        self.change(session, |ddl, trx| ddl.create(trx, def.clone(), first))?;
        Ok(())
    }

    /// Errors: `CollationUnknown` if the host does not know the order of an index.
    fn check_collations(&self, def: &schema::Table) -> Result<()> {
        let unknown = def.unknown_collations(&**self.dict().collations());
        let found = def.indexes.iter().zip(&unknown);
        match found.filter_map(|(index, id)| Some((index, (*id)?))).next() {
            None => Ok(()),
            Some((index, id)) => Err(Error::CollationUnknown(
                format!(
                    "collation {id} of index {} of table {}",
                    index.name, def.name
                )
                .into(),
            )),
        }
    }

    /// The row format asked for; refuses options of later versions.
    fn format_for(&self, options: &CreateOptions) -> Result<schema::RowFormat> {
        let refused = [
            (options.temporary, "temporary tables"),
            (options.key_block_size != 0, "KEY_BLOCK_SIZE"),
            (options.data_directory.is_some(), "DATA DIRECTORY"),
            (options.page_compressed == Some(true), "PAGE_COMPRESSED"),
            (options.encrypted == Some(true), "ENCRYPTED"),
        ];
        if let Some((_, what)) = refused.iter().find(|(given, _)| *given) {
            return Err(Error::unsupported(*what));
        }
        Ok(match options.row_format {
            Some(RowFormat::Redundant) => schema::RowFormat::Redundant,
            Some(RowFormat::Compact) => schema::RowFormat::Compact,
            Some(RowFormat::Dynamic) => schema::RowFormat::Dynamic,
            Some(RowFormat::Compressed) => {
                return Err(Error::unsupported("ROW_FORMAT=COMPRESSED"));
            }
            None => match self.settings().choice(ids::DEFAULT_ROW_FORMAT) {
                "redundant" => schema::RowFormat::Redundant,
                "compact" => schema::RowFormat::Compact,
                _ => schema::RowFormat::Dynamic,
            },
        })
    }

    /// Drops a table.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy` (a handle is in use), `ReadOnly`.
    pub fn drop_table(&self, session: &mut Session, name: &str) -> Result<()> {
        self.change(session, |ddl, trx| ddl.drop_table(trx, name))
    }

    /// Renames a table.
    ///
    /// # Errors
    /// `NoSuchTable`, `TableExists`, `Busy`, `ReadOnly`.
    pub fn rename_table(&self, session: &mut Session, from: &str, to: &str) -> Result<()> {
        self.change(session, |ddl, trx| ddl.rename(trx, from, to))
    }

    /// Empties a table: new tablespace, new id, AUTO_INCREMENT from 1.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy`, `ReadOnly`.
    pub fn truncate_table(&self, session: &mut Session, name: &str) -> Result<()> {
        self.change(session, |ddl, trx| ddl.truncate(trx, name))
    }

    /// Drops all tables of a database. One that cannot be dropped ends it; those before it are gone.
    pub fn drop_database(&self, session: &mut Session, database: &str) -> Result<()> {
        let is_of = |name: &str| name.split_once('/').is_some_and(|(db, _)| db == database);
        for row in self.dict().table_rows(self.ctx())? {
            if is_of(&row.name) {
                self.drop_table(session, &row.name)?;
            }
        }
        Ok(())
    }

    /// Runs a statement of DDL in a transaction of its own. One that is refused while transactions of
    /// before the start are being rolled back waits for them, as for any lock.
    pub(super) fn change<T>(
        &self,
        session: &mut Session,
        work: impl Fn(&Ddl<'_>, &mut Trx) -> Result<T>,
    ) -> Result<T> {
        if self.is_read_only() {
            return Err(Error::ReadOnly);
        }
        session.commit()?;
        session.start(false);
        let ctx = self.ctx();
        let tables = row::DictTables {
            ctx,
            dict: self.dict(),
        };
        let roll_back = |trx: &mut Trx| row::rollback(ctx, trx, &tables);
        let ddl = Ddl {
            ctx,
            dict: self.dict(),
            roll_back: &roll_back,
            full_crc32: self
                .settings()
                .choice(ids::CHECKSUM_ALGORITHM)
                .ends_with("full_crc32"),
        };
        let (patience, since) = (session.patience(Wait::Default), Instant::now());
        let done = loop {
            // Asked first: the last of them may end while the statement is refused.
            let is_rolling_back = self.transactions.is_rolling_back();
            match work(&ddl, session.trx()) {
                Err(Error::Busy(_)) if is_rolling_back => match patience {
                    _ if session.is_killed() => break Err(Error::Interrupted),
                    Patience::AtMost(limit) if since.elapsed() < limit => {
                        std::thread::sleep(ROLLBACK_STEP);
                    }
                    _ => break Err(Error::LockWaitTimeout),
                },
                other => break other,
            }
        };
        // A statement that was refused has begun no write.
        session.rollback()?;
        done
    }

    /// Removes the files of tables whose drop was committed and cut short: their names are free from here
    /// on. What fails is tried again by purge. At the start, after the rollback of unfinished changes of the
    /// dictionary.
    pub(super) fn finish_drops(&self) {
        if self.trx().rsegs.history_len() == 0 {
            return;
        }
        let (ctx, dict) = (self.ctx(), self.dict());
        let _no_ddl = dict.exclusive();
        let dropped = dict.dropped_files(ctx).unwrap_or_else(|error| {
            log::warn!("files of dropped tables are left to purge: {error}");
            Vec::new()
        });
        for row in dropped {
            match dict.drop_tree(ctx, &row) {
                Ok(()) => log::info!("tablespace {}, dropped before the stop, is gone", row.space),
                Err(error) => log::warn!("dropped tablespace {} stays: {error}", row.space),
            }
        }
    }

    /// Drops what unfinished statements left. At the start, after the rollback of unfinished changes
    /// of the dictionary.
    ///
    /// # Errors
    /// What reading the dictionary gives.
    pub(super) fn drop_leftovers(self: &Arc<Engine>) -> Result<()> {
        let config = SessionConfig {
            isolation: super::types::Isolation::RepeatableRead,
            connection_id: 0,
            ctx: SessionCtx::default(),
        };
        let mut session = Session::open(self, config)?;
        for row in self.dict().table_rows(self.ctx())? {
            if !ddl::drop::is_leftover(&row.name) {
                continue;
            }
            match self.drop_table(&mut session, &row.name) {
                Ok(()) => log::info!("{}, left by an unfinished TRUNCATE, is dropped", row.name),
                Err(error) => log::warn!("{} stays: {error}", row.name),
            }
        }
        session.close();
        Ok(())
    }

    /// Facts of a table; `clustered_key` counts the dictionary's indexes.
    ///
    /// # Errors
    /// `NoSuchTable`, `Corrupt`, what reading the dictionary gives.
    pub fn find_table(&self, name: &str) -> Result<TableInfo> {
        let def = self.dict().definition(self.ctx(), name)?;
        let open = self.dict().cached(name);
        let positions = describe(&def).and_then(|image| Template::new(Arc::new(image), &def));
        Ok(TableInfo {
            row_format: host_format(def.format),
            table_id: def.id,
            space_id: def.space,
            ref_length: positions.map_or(0, |template| template.position_bytes(&def) as u32),
            clustered_key: (!def.has_generated_key()).then_some(0),
            flags: TableFlags {
                discarded: def.is_discarded(),
                corrupt: open.as_ref().is_some_and(|table| table.is_corrupt()),
                read_only: self.is_read_only() || open.is_some_and(|table| table.is_read_only()),
                no_collation: self.check_collations(&def).is_err(),
                ..TableFlags::default()
            },
            version: TrxId(0),
        })
    }

    /// Names of user tables, sorted; `database` limits them.
    ///
    /// # Errors
    /// `Corrupt`, what reading the dictionary gives.
    pub fn table_names(&self, database: Option<&str>) -> Result<Vec<Box<str>>> {
        self.dict().table_names(self.ctx(), database)
    }

    /// Columns and keys as the dictionary has them.
    ///
    /// # Errors
    /// `NoSuchTable`, `Corrupt`, what reading the dictionary gives.
    pub fn describe_table(&self, name: &str) -> Result<TableDescription> {
        let def = self.dict().definition(self.ctx(), name)?;
        Ok(TableDescription {
            image: describe(&def)?,
            row_format: host_format(def.format),
            table_id: def.id,
        })
    }
}

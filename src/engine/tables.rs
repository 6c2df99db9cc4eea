//! Tables by name: create, drop, rename, truncate, find, list, describe.
//!
//! Names are "database/table" as the dictionary spells them. Each call that changes something first
//! commits the session's transaction, and is atomic.

use super::open::Engine;
use super::session::Session;
use super::types::{CreateOptions, TableDescription, TableInfo};
use crate::host::image::TableImage;
use crate::words::{Error, Result};

fn unbuilt<T>() -> Result<T> {
    Err(Error::unsupported("the storage core is not assembled yet"))
}

impl Engine {
    /// Creates a table and its tablespace.
    ///
    /// # Errors
    /// `TableExists`, `TablespaceExists`, `KeyTooLong`, `RowTooLarge`, `Unsupported`, `ReadOnly`,
    /// `NoSpace`, `Io`.
    pub fn create_table(
        &self,
        session: &mut Session,
        name: &str,
        image: &TableImage,
        options: &CreateOptions,
    ) -> Result<()> {
        let _ = (session, name, image, options);
        unbuilt()
    }

    /// Drops a table.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy` (a handle is in use), `ReadOnly`.
    pub fn drop_table(&self, session: &mut Session, name: &str) -> Result<()> {
        let _ = (session, name);
        unbuilt()
    }

    /// Renames a table.
    ///
    /// # Errors
    /// `NoSuchTable`, `TableExists`, `Busy`, `ReadOnly`.
    pub fn rename_table(&self, session: &mut Session, from: &str, to: &str) -> Result<()> {
        let _ = (session, from, to);
        unbuilt()
    }

    /// Empties a table: new tablespace, new id, AUTO_INCREMENT from 1.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy`, `ReadOnly`.
    pub fn truncate_table(&self, session: &mut Session, name: &str) -> Result<()> {
        let _ = (session, name);
        unbuilt()
    }

    /// Drops all tables of a database.
    pub fn drop_database(&self, session: &mut Session, database: &str) -> Result<()> {
        let _ = (session, database);
        unbuilt()
    }

    /// Facts of a table; `clustered_key` counts the dictionary's indexes.
    pub fn find_table(&self, name: &str) -> Result<TableInfo> {
        let _ = name;
        unbuilt()
    }

    /// Names of user tables, sorted; `database` limits them.
    pub fn table_names(&self, database: Option<&str>) -> Result<Vec<Box<str>>> {
        let _ = database;
        unbuilt()
    }

    /// Columns and keys as the dictionary has them.
    pub fn describe_table(&self, name: &str) -> Result<TableDescription> {
        let _ = name;
        unbuilt()
    }
}

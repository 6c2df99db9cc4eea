//! Adding and dropping indexes of a table that is there.

use std::cell::RefCell;

use super::open::Engine;
use super::session::Session;
use crate::ddl::{self, AddError, BuildMeans, NewIndexes, Refused};
use crate::host::image::{BlobHeap, KeyKind, TableImage};
use crate::row::Template;
use crate::schema::Table;
use crate::settings::ids;
use crate::sync::Arc;
use crate::words::{Error, Result};

/// Threads of an index build, if there are as many processors.
const BUILD_THREADS_MAX: usize = 4;

impl Engine {
    /// Adds the keys of `image` that the dictionary does not have. On `DuplicateKey`, whose index is the
    /// position in `image.keys`, `row` gets the columns of the key that two rows have.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy`, `ReadOnly`, `Invalid`, `DuplicateKey`, `RowTooLarge`, `KeyTooLong`, `NoSpace`,
    /// `Interrupted`, `Io`, `Unsupported`, `CollationUnknown`.
    pub fn add_indexes(
        &self,
        session: &mut Session,
        name: &str,
        image: &TableImage,
        row: Option<&mut [u8]>,
    ) -> Result<()> {
        let def = self.dict().definition(self.ctx(), name)?;
        let limits = self.limits();
        let limits = ddl::Limits {
            page_size: limits.page_size as usize,
            key_bytes_max: limits.key_length_max,
            strict: session.settings().is_on(ids::STRICT_MODE),
        };
        let is_there = |name: &str| {
            let same =
                |index: &crate::schema::Index| index.name.to_lowercase() == name.to_lowercase();
            def.indexes.iter().any(same)
        };
        let mut indexes = Vec::new();
        for key in image.keys.iter().filter(|key| !is_there(&key.name)) {
            if key.kind == KeyKind::Primary {
                return Err(Error::unsupported("ADD PRIMARY KEY"));
            }
            indexes.push(ddl::define::index(image, key, def.format, limits)?);
        }
        if indexes.is_empty() {
            return Ok(());
        }
        let means = self.build_means(session);
        let killed = session.kill_probe();
        let build = |job: ddl::BuildJob| job.run(means.clone(), &killed);
        let refused: RefCell<Option<(Arc<Table>, Refused)>> = RefCell::new(None);
        let done = self.change(session, |ddl, trx| {
            let new = NewIndexes {
                table: name,
                indexes: indexes.clone(),
                limits,
                build: &build,
            };
            let added = ddl.add_indexes(trx, new);
            added.map_err(
                |AddError {
                     error,
                     refused: found,
                 }| {
                    *refused.borrow_mut() = found;
                    error
                },
            )
        });
        match (done, refused.into_inner()) {
            (Err(Error::DuplicateKey { .. }), Some((table, found))) => {
                Err(show_refused(image, &table, &found, row)?)
            }
            (done, _) => done,
        }
    }

    /// Drops an index.
    ///
    /// # Errors
    /// `NoSuchTable`, `Busy`, `ReadOnly`, `Invalid`: no such index, or the clustered one.
    pub fn drop_index(&self, session: &mut Session, name: &str, index: &str) -> Result<()> {
        self.change(session, |ddl, trx| ddl.drop_index(trx, name, index))
    }

    fn build_means(&self, session: &mut Session) -> BuildMeans {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        BuildMeans {
            ctx: self.ctx().clone(),
            place: self.sort_place(session),
            threads: cores.min(BUILD_THREADS_MAX),
            fill_factor: self.settings().uint(ids::FILL_FACTOR) as u32,
            // It changed no page: the statement fails, and nothing else.
            on_panic: Arc::new(|name, text| log::error!("thread {name} failed: {text}")),
        }
    }
}

/// The error with the host's number of the key, and the key's columns in `row`.
fn show_refused(
    image: &TableImage,
    table: &Table,
    found: &Refused,
    row: Option<&mut [u8]>,
) -> Result<Error> {
    let template = Template::new(std::sync::Arc::new(image.clone()), table)?;
    let index = usize::from(found.index);
    let key = template.key_of_index(index);
    if let Some(row) = row {
        let mut heap = BlobHeap::default();
        // Keys on BLOBs are told without their value: nobody would keep the memory.
        if !image.columns.iter().any(|column| column.kind.is_blob()) {
            template.load_key(table, index, &found.key, row, &mut heap);
        }
    }
    Ok(Error::DuplicateKey {
        index: key.unwrap_or(index) as u16,
    })
}

//! Adding and dropping indexes of a table that is there.

use std::cell::RefCell;

use super::open::Engine;
use super::session::Session;
use crate::ddl::{self, BuildMeans, NewIndexes, Refused};
use crate::host::image::{BlobHeap, ImageKeyPart, TableImage};
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
        let limits = self.limits();
        let limits = ddl::Limits {
            page_size: limits.page_size as usize,
            key_bytes_max: limits.key_length_max,
            strict: session.settings().is_on(ids::STRICT_MODE),
        };
        let means = self.build_means(session);
        let killed = session.kill_probe();
        let build = |job: ddl::BuildJob| job.run(means.clone(), &killed);
        let refused: RefCell<Option<(Arc<Table>, Refused)>> = RefCell::new(None);
        let done = self.change(session, |ddl, trx| {
            let new = NewIndexes {
                table: name,
                image,
                limits,
                build: &build,
            };
            ddl.add_indexes(trx, new).map_err(|failed| {
                *refused.borrow_mut() = failed.refused;
                failed.error
            })
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
    /// `NoSuchTable`, `Busy`, `ReadOnly`, `Invalid`: no such index; `Unsupported`: the clustered one.
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
    // A key on a BLOB is told without its value: nobody would keep the memory.
    let is_blob = |part: &ImageKeyPart| image.columns[part.column as usize].kind.is_blob();
    let has_blob = key.is_some_and(|key| image.keys[key].parts.iter().any(is_blob));
    if let Some(row) = row.filter(|_| !has_blob) {
        template.load_key(table, index, &found.key, row, &mut BlobHeap::default());
    }
    Ok(Error::DuplicateKey {
        index: key.unwrap_or(index) as u16,
    })
}

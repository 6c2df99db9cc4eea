//! Loading an empty table through a handle: between `bulk_begin` and `bulk_end` rows are collected, then
//! the trees are built at once.
//!
//! As in the reference engine it takes a session that asks for neither foreign key checks nor unique checks:
//! the table is locked as a whole, and of duplicates only the end tells.

use super::handle::TableHandle;
use super::session::{LoadId, Session};
use crate::host::image::{BlobHeap, RowIn};
use crate::row::{self, BulkLoad, InsertMode, SortPlace};
use crate::schema::Tuple;
use crate::settings::ids;
use crate::sync::atomic::Ordering;
use crate::words::{Error, Result};

/// What a handle is about to do, or does.
#[derive(Default)]
pub(super) enum Loading {
    /// Rows go in one by one.
    #[default]
    No,
    /// The next row decides.
    Wanted,
    /// Rows are collected.
    Yes(Box<Load>),
}

/// A load, and what it has put off.
pub(super) struct Load {
    rows: BulkLoad,
    /// The largest AUTO_INCREMENT value that is not in the root yet.
    autoinc: Option<u64>,
    /// By which the session knows it.
    id: LoadId,
}

impl TableHandle {
    /// About `rows` inserts follow; 0 = unknown. They are collected if the table is empty, nobody else uses
    /// it, and the statement asks for no checks (`StatementFlags`).
    pub fn bulk_begin(&mut self, session: &mut Session, _rows: u64) -> Result<()> {
        self.bulk_end(session)?;
        let flags = session.statement();
        let checks_nothing = flags.relaxed_unique && flags.no_foreign_keys;
        if checks_nothing && self.insert_mode == InsertMode::Plain && !self.expects_duplicates {
            self.loading = Loading::Wanted;
        }
        Ok(())
    }

    /// They are over: what was collected goes into the table. Nothing of it is left after an error.
    ///
    /// # Errors
    /// Those of inserts: `DuplicateKey` for the row that would have been refused first.
    pub fn bulk_end(&mut self, session: &mut Session) -> Result<()> {
        self.refused = None;
        let Loading::Yes(load) = std::mem::take(&mut self.loading) else {
            return Ok(());
        };
        let Load { rows, autoinc, id } = *load;
        session.check_not_aborted()?;
        if !session.has_load(id) {
            return Ok(());
        }
        let before = rows.undo_no();
        let done = match autoinc {
            Some(last) => row::push_counter(self.engine().ctx(), self.table().clustered(), last),
            None => Ok(()),
        };
        let mut key = None;
        let trees = self.table().trees();
        let done = done.and_then(|()| {
            session.run(self.patience, |op| {
                rows.finish(op, trees).map_err(|failed| {
                    key = failed.key;
                    failed.error
                })
            })
        });
        match done {
            Ok(count) => {
                session.load_ended(id);
                self.table().changes().fetch_add(count, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                if let (Error::DuplicateKey { index }, Some(key)) = (&error, key) {
                    self.refused = Some((*index, key));
                }
                if session.check_not_aborted().is_ok() {
                    session.undo_to(before)?;
                }
                Err(error)
            }
        }
    }

    /// Puts the key columns that `bulk_end` refused into a row; other columns are left as they are.
    ///
    /// # Errors
    /// `KeyNotFound` if it refused none.
    pub fn refused_key(&mut self, row: &mut [u8]) -> Result<()> {
        let Some((index, key)) = self.refused.take() else {
            return Err(Error::KeyNotFound);
        };
        let mut heap = BlobHeap::default();
        let table = self.table().def().clone();
        let index = usize::from(index);
        self.template()
            .load_key(&table, index, &key, row, &mut heap);
        self.refused = Some((index as u16, key));
        *self.blobs() = heap;
        Ok(())
    }

    /// Adds a row to the load; `false` if it is to be inserted as any other.
    pub(super) fn insert_in_load(&mut self, session: &mut Session, row: RowIn<'_>) -> Result<bool> {
        if let Loading::Wanted = self.loading {
            self.loading = self.begin_load(session)?;
        }
        let value = match &self.loading {
            Loading::Yes(load) if session.has_load(load.id) => self.note_autoinc(row),
            _ => return Ok(false),
        };
        let (engine, table) = (self.engine().clone(), self.table().clone());
        let Loading::Yes(load) = &mut self.loading else {
            return Ok(false);
        };
        load.autoinc = load.autoinc.max(value);
        let (template, work, patience) = (&self.template, &mut self.work, self.patience);
        let row_id = || engine.dict().counters().next_row_id(engine.ctx());
        session.run(patience, |op| {
            load.rows
                .add(op, table.trees(), template, work, row, &row_id)
        })?;
        Ok(true)
    }

    fn begin_load(&mut self, session: &mut Session) -> Result<Loading> {
        let place = self.engine().sort_place(session);
        let fill_factor = self.engine().settings().uint(ids::FILL_FACTOR) as u32;
        let trees = self.table().trees();
        let begun = session.run(self.patience, |op| {
            BulkLoad::begin(op, trees, place, fill_factor)
        })?;
        Ok(match begun {
            None => Loading::No,
            Some(rows) => {
                let id = session.load_begun(rows.undo_no());
                Loading::Yes(Box::new(Load {
                    rows,
                    autoinc: None,
                    id,
                }))
            }
        })
    }
}

/// A key that `bulk_end` refused: the index, and its key fields.
pub(super) type RefusedKey = Option<(u16, Tuple)>;

impl super::open::Engine {
    /// Where sorts of a session put what memory does not hold: innodb_tmpdir, or beside the databases.
    pub(super) fn sort_place(&self, session: &mut Session) -> SortPlace {
        let ctx = self.ctx();
        let set = session.settings().get_text(ids::TMPDIR, self.settings());
        let dir = match set.is_empty() {
            true => &ctx.spaces.places().data_dir,
            false => &set,
        };
        let buffer = self.settings().uint(ids::SORT_BUFFER_SIZE) as usize;
        SortPlace::new(ctx.spaces.vfs(), dir, buffer, &ctx.sort_bytes)
    }

    /// Bytes of sort buffers in use: part of the memory budget.
    pub fn sort_memory(&self) -> u64 {
        self.ctx().sort_bytes.load(Ordering::Relaxed)
    }
}

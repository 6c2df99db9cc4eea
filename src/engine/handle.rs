//! A table handle: one open table with the host's row template, bound to a session for a statement.
//!
//! The caller (`abi/table`) keeps the order of calls: `begin_use` before reads and writes, a scan or an
//! index begun before `next`, a row read before `update` and `delete`, buffers of the right size.
//! Every call that reads or writes gets the session to which the handle is bound.

use super::bulk::{Loading, RefusedKey};
use super::columns::fill_columns;
use super::open::Engine;
use super::session::Session;
use super::tables::host_format;
use super::types::{
    Batch, Direction, Extra, Find, LockMode, OpenFlags, TableFlags, TableInfo, TableUse, Wait,
};
use crate::dict::{InUse, OpenTable};
use crate::host::image::{BlobHeap, RowIn, TableImage};
use crate::lock::TableMode;
use crate::row::{self, Cursor, InsertMode, Locking, Op, Patience, Reader, Rows, Start, Template};
use crate::schema::Tuple;
use crate::sync::Arc;
use crate::words::{Error, Result, TrxId};

/// One open table.
pub struct TableHandle {
    engine: Arc<Engine>,
    name: Box<str>,
    image: Arc<TableImage>,
    table: Arc<OpenTable>,
    pub(super) template: Template,
    /// BLOBs of the rows handed out last; cleared at the begin of every read.
    blobs: BlobHeap,
    in_use: InUse,
    how: TableUse,
    pub(super) patience: Patience,
    locking: Locking,
    /// Columns to fill, and columns that updates look at; ascending.
    read_columns: Vec<u16>,
    write_columns: Vec<u16>,
    pub(super) insert_mode: InsertMode,
    pub(super) expects_duplicates: bool,
    pub(super) loading: Loading,
    pub(super) refused: RefusedKey,
    cursor: Cursor,
    /// A scan or index is open: the cursor means something.
    is_open: bool,
    /// Rows that others hold locked are shown as last committed, to see whether they match at all.
    semi_consistent: bool,
    /// Clustered key of the row read last, but for what `in_cursor` says.
    current: Tuple,
    has_current: bool,
    /// It is the cursor's current row, and `current` is to be made of it.
    in_cursor: bool,
    pub(super) work: row::Workspace,
}

const UNUSED: TableUse = TableUse {
    lock: LockMode::None,
    wait: Wait::Default,
    write: false,
    lock_table: false,
};

impl TableHandle {
    /// Opens `name` ("database/table"); `image` must agree with the dictionary: same columns in the same
    /// order, keys found by name.
    ///
    /// # Errors
    /// `NoSuchTable`, `TablespaceMissing`, `Corrupt`, `Invalid` (template and table differ),
    /// `Unsupported`, `CollationUnknown` (the rows' own order).
    pub fn open(
        engine: &Arc<Engine>,
        name: &str,
        image: TableImage,
        flags: OpenFlags,
    ) -> Result<TableHandle> {
        // Damage is met by reads in any case.
        let _ = flags;
        let image = Arc::new(image);
        let table = engine.dict().open_table(engine.ctx(), name)?;
        table.check_collation(0)?;
        let template = Template::new(image.clone(), table.def())?;
        let mut columns = Vec::new();
        fill_columns(&mut columns, &image, None);
        Ok(TableHandle {
            engine: engine.clone(),
            name: name.into(),
            read_columns: columns.clone(),
            write_columns: columns,
            image,
            in_use: InUse::none_of(&table),
            table,
            template,
            blobs: BlobHeap::default(),
            how: UNUSED,
            patience: Patience::NoWait,
            locking: Locking::None,
            insert_mode: InsertMode::Plain,
            expects_duplicates: false,
            loading: Loading::No,
            refused: None,
            cursor: Cursor::new(0),
            is_open: false,
            semi_consistent: false,
            current: Tuple::new(),
            has_current: false,
            in_cursor: false,
            work: row::Workspace::default(),
        })
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The host's template.
    pub fn image(&self) -> &Arc<TableImage> {
        &self.image
    }

    /// The table.
    pub(super) fn table(&self) -> &Arc<OpenTable> {
        &self.table
    }

    /// How rows become entries.
    pub(super) fn template(&self) -> &Template {
        &self.template
    }

    /// BLOB memory of the rows handed out.
    pub fn blobs(&mut self) -> &mut BlobHeap {
        &mut self.blobs
    }

    /// Facts about the table.
    pub fn info(&self) -> Result<TableInfo> {
        let def = self.table.def();
        Ok(TableInfo {
            row_format: host_format(def.format),
            table_id: def.id,
            space_id: self.table.space_id(),
            ref_length: self.template.position_bytes(def) as u32,
            clustered_key: match def.has_generated_key() {
                true => None,
                false => self.host_key(0),
            },
            flags: TableFlags {
                corrupt: self.table.is_corrupt(),
                read_only: self.table.is_read_only(),
                no_collation: self.table.check_collations().is_err(),
                ..TableFlags::default()
            },
            version: TrxId(0),
        })
    }

    /// The host's number of the key at position `index` of `schema::Table::indexes`.
    pub fn host_key(&self, index: u16) -> Option<u32> {
        let key = self.template.key_of_index(usize::from(index));
        key.map(|key| key as u32)
    }

    /// Binds to a session for a statement; all columns, all switches off.
    pub fn begin_use(&mut self, session: &mut Session, how: &TableUse) -> Result<()> {
        self.end_use();
        session.check_not_aborted()?;
        if self.table.is_retired() {
            self.open_again()?;
        }
        if how.write {
            self.table.check_writable()?;
        }
        self.in_use.enter()?;
        session.start(false);
        self.how = *how;
        self.patience = session.patience(how.wait);
        self.locking = session.locking(how.lock);
        if how.lock_table {
            let mode = match how.lock {
                LockMode::Exclusive => TableMode::Exclusive,
                _ => TableMode::Shared,
            };
            let id = self.table.id();
            let locked = session.run(self.patience, |op| row::lock_table(op, id, mode));
            locked.inspect_err(|_| self.in_use.leave())?;
        }
        session.use_table(self.locking == Locking::None);
        fill_columns(&mut self.read_columns, &self.image, None);
        fill_columns(&mut self.write_columns, &self.image, None);
        Ok(())
    }

    /// DDL replaced the table: the new one, if the template still fits.
    fn open_again(&mut self) -> Result<()> {
        let table = self
            .engine
            .dict()
            .open_table(self.engine.ctx(), &self.name)?;
        self.template = Template::new(self.image.clone(), table.def())
            .map_err(|_| Error::TableDefinitionChanged)?;
        self.in_use = InUse::none_of(&table);
        self.table = table;
        self.work = row::Workspace::default();
        Ok(())
    }

    /// Ends the use: scan or index ended, BLOBs freed.
    pub fn end_use(&mut self) {
        self.has_current = false;
        self.cursor_end();
        self.blobs.clear();
        self.in_use.leave();
        self.how = UNUSED;
        self.insert_mode = InsertMode::Plain;
        self.expects_duplicates = false;
        self.loading = Loading::No;
        self.semi_consistent = false;
    }

    /// Columns read and written: bit i = column i; `None` = all. A short map means 0 for the rest.
    pub fn set_columns(&mut self, read: Option<&[u8]>, write: Option<&[u8]>) {
        fill_columns(&mut self.read_columns, &self.image, read);
        fill_columns(&mut self.write_columns, &self.image, write);
    }

    /// Turns a switch.
    pub fn extra(&mut self, session: &mut Session, what: Extra) -> Result<()> {
        let _ = session;
        match what {
            Extra::WriteCanReplace(on) => {
                self.insert_mode = match on {
                    true => InsertMode::Replace,
                    false => InsertMode::Plain,
                }
            }
            Extra::InsertWithUpdate => self.insert_mode = InsertMode::Replace,
            Extra::SemiConsistent(on) => {
                self.semi_consistent = on;
                self.cursor.set_semi_consistent(on);
            }
            Extra::IgnoreDuplicate(on) => self.expects_duplicates = on,
            // The others allow shortcuts that are not taken.
            _ => {}
        }
        Ok(())
    }

    // Reading ------------------------------------------------------------------------------------

    /// Errors: `TableDefinitionChanged` if the transaction's view is older than the table, whose rows
    /// of that time are gone (TRUNCATE).
    fn check_not_newer(&mut self, session: &mut Session, index: usize) -> Result<()> {
        if let Loading::Yes(_) = self.loading {
            self.bulk_end(session)?;
        }
        let sees = session.trx().open_view().is_none_or(|view| {
            let registry = &self.engine.trx().registry;
            view.sees(registry, self.table.index_created(index))
        });
        match sees {
            true => Ok(()),
            false => Err(Error::TableDefinitionChanged),
        }
    }

    /// Starts a scan in clustered order; `sequential` false: only for `read_position`.
    ///
    /// Errors: `TableDefinitionChanged`.
    pub fn scan_begin(&mut self, session: &mut Session, sequential: bool) -> Result<()> {
        self.check_not_newer(session, 0)?;
        self.cursor_end();
        if sequential {
            self.open_cursor(0);
        }
        Ok(())
    }

    /// Chooses a key.
    ///
    /// Errors: `Invalid`, `Unsupported`, `Corrupt`; `TableDefinitionChanged`.
    pub fn index_begin(&mut self, session: &mut Session, key: u32) -> Result<()> {
        if key as usize >= self.image.keys.len() {
            return Err(Error::invalid(format!("there is no key {key}")));
        }
        let index = self.template.index_of_key(key as usize);
        self.check_not_newer(session, index)?;
        self.table.tree(index)?;
        self.open_cursor(index);
        Ok(())
    }

    fn open_cursor(&mut self, index: usize) {
        self.keep_current();
        self.cursor.begin_anew(index);
        self.cursor.set_semi_consistent(self.semi_consistent);
        self.is_open = true;
    }

    /// Ends scan or index.
    pub fn cursor_end(&mut self) {
        self.keep_current();
        self.is_open = false;
    }

    /// Finds a row by a key image (checked: ends after a part, or inside a string part with the prefix
    /// flags). An empty key: the first or last row, as `find` looks.
    pub fn index_read(
        &mut self,
        session: &mut Session,
        row: &mut [u8],
        key: &[u8],
        find: Find,
    ) -> Result<()> {
        let last = matches!(
            find,
            Find::KeyOrPrev | Find::Before | Find::PrefixLast | Find::PrefixLastOrPrev
        );
        let start = match key.is_empty() {
            true if last => Start::Last,
            true => Start::First,
            false => {
                self.fill_key(key)?;
                Start::Key(find.into())
            }
        };
        let found = self.fetch(session, start, &mut Rows::one(row));
        match found {
            Err(Error::EndOfFile) => Err(Error::KeyNotFound),
            other => other,
        }
    }

    /// First row of the index; `last`: last row.
    pub fn index_edge(&mut self, session: &mut Session, row: &mut [u8], last: bool) -> Result<()> {
        let start = if last { Start::Last } else { Start::First };
        self.fetch(session, start, &mut Rows::one(row))
    }

    /// Next row of the scan or index; before any row: the first one.
    pub fn next(&mut self, session: &mut Session, row: &mut [u8]) -> Result<()> {
        let start = self.onward(Direction::Next);
        self.fetch(session, start, &mut Rows::one(row))
    }

    /// Previous row of the index.
    pub fn prev(&mut self, session: &mut Session, row: &mut [u8]) -> Result<()> {
        let start = self.onward(Direction::Prev);
        self.fetch(session, start, &mut Rows::one(row))
    }

    /// Next row if it has the key (or prefix), else `EndOfFile`.
    pub fn next_same(&mut self, session: &mut Session, row: &mut [u8], key: &[u8]) -> Result<()> {
        self.fill_key(key)?;
        self.fetch(session, Start::NextSame, &mut Rows::one(row))
    }

    /// Several rows. Returns how many were stored and how it ended: rows before an error are valid.
    pub fn read_n(&mut self, session: &mut Session, batch: Batch<'_>) -> (usize, Result<()>) {
        let start = self.onward(batch.direction);
        let mut rows = Rows {
            images: batch.rows,
            stride: batch.row_stride,
            positions: batch.refs,
            capacity: batch.capacity,
            count: 0,
        };
        let done = self.fetch(session, start, &mut rows);
        (rows.count, done)
    }

    fn onward(&self, direction: Direction) -> Start {
        let placed = self.is_open && self.cursor.is_placed();
        match (direction, placed) {
            (Direction::Next, true) => Start::Next,
            (Direction::Next, false) => Start::First,
            (Direction::Prev, true) => Start::Prev,
            (Direction::Prev, false) => Start::Last,
        }
    }

    fn fill_key(&mut self, key: &[u8]) -> Result<()> {
        self.check_open()?;
        let cursor = &mut self.cursor;
        let Some(number) = self.template.key_of_index(cursor.index()) else {
            return Err(Error::internal("a key without an index"));
        };
        self.template.search_entry(number, key, cursor.key())
    }

    fn check_open(&self) -> Result<()> {
        match self.is_open {
            true => Ok(()),
            false => Err(Error::invalid("no scan or index is open")),
        }
    }

    fn fetch(&mut self, session: &mut Session, start: Start, rows: &mut Rows<'_>) -> Result<()> {
        self.blobs.clear();
        self.has_current = false;
        let patience = self.patience;
        self.check_open()?;
        let cursor = &mut self.cursor;
        let mut reader = Reader {
            trees: self.table.trees(),
            template: &self.template,
            columns: &self.read_columns,
            locking: self.locking,
            heap: &mut self.blobs,
            work: &mut self.work,
        };
        let done = session.run(patience, |op| cursor.fetch(op, &mut reader, start, rows));
        self.has_current = rows.count > 0 && cursor.current().is_some();
        self.in_cursor = self.has_current;
        done
    }

    /// Before the cursor goes on or away, if the row read last is meant still.
    fn keep_current(&mut self) {
        let in_cursor = std::mem::take(&mut self.in_cursor) && self.has_current;
        if let (true, Some(key)) = (in_cursor, self.cursor.current()) {
            self.current.clone_from(key);
        }
    }

    /// Position of the row read last; `row` is its image.
    pub fn position(&mut self, _row: &[u8], position: &mut [u8]) -> Result<()> {
        self.check_current()?;
        self.template
            .store_position(self.table.def(), &self.current, position);
        Ok(())
    }

    /// The row at a position. An open scan or index keeps its place.
    pub fn read_position(
        &mut self,
        session: &mut Session,
        row: &mut [u8],
        position: &[u8],
    ) -> Result<()> {
        self.blobs.clear();
        self.has_current = false;
        self.in_cursor = false;
        let mut key = std::mem::take(&mut self.current);
        let filled = self
            .template
            .key_of_position(self.table.def(), position, &mut key);
        let mut reader = Reader {
            trees: self.table.trees(),
            template: &self.template,
            columns: &self.read_columns,
            locking: self.locking,
            heap: &mut self.blobs,
            work: &mut self.work,
        };
        let patience = self.patience;
        let done = filled
            .and_then(|()| session.run(patience, |op| row::read_key(op, &mut reader, &key, row)));
        self.current = key;
        self.has_current = done.is_ok();
        done
    }

    /// Order of two positions.
    pub fn compare_positions(&self, a: &[u8], b: &[u8]) -> Result<std::cmp::Ordering> {
        let def = self.table.def();
        let (mut first, mut second) = (Tuple::new(), Tuple::new());
        self.template.key_of_position(def, a, &mut first)?;
        self.template.key_of_position(def, b, &mut second)?;
        Ok(self.table.clustered().compare_keys(&first, &second))
    }

    /// Gives up the lock of the row read last where the isolation level allows.
    pub fn unlock_row(&mut self, session: &mut Session) {
        let (patience, trees) = (self.patience, self.table.trees());
        if self.is_open {
            let cursor = &mut self.cursor;
            // A lock that stays is no harm.
            let _kept = session.run(patience, |op| cursor.unlock_row(op, trees));
        }
    }

    /// The row read last is the committed version of a row that someone holds locked.
    pub fn was_semi_consistent(&self) -> bool {
        self.is_open && self.cursor.was_semi_consistent()
    }

    fn check_current(&mut self) -> Result<()> {
        self.keep_current();
        match self.has_current {
            true => Ok(()),
            false => Err(Error::invalid("no row has been read")),
        }
    }

    // Writing ------------------------------------------------------------------------------------

    /// Runs a change of one row; after an error nothing of it is left.
    fn change(
        &mut self,
        session: &mut Session,
        body: impl FnOnce(&mut Change<'_>, &mut Op<'_>) -> Result<()>,
    ) -> Result<()> {
        session.check_not_aborted()?;
        let before = session.trx().next_undo_no();
        let mut change = Change {
            engine: &self.engine,
            table: &self.table,
            template: &self.template,
            columns: &self.write_columns,
            current: &self.current,
            work: &mut self.work,
        };
        let done = session.run(self.patience, |op| body(&mut change, op));
        if done.is_ok() {
            self.table
                .changes()
                .fetch_add(1, crate::sync::atomic::Ordering::Relaxed);
        } else if session.check_not_aborted().is_ok() {
            session.undo_to(before)?;
        }
        done
    }

    /// Inserts a row.
    pub fn insert(&mut self, session: &mut Session, row: RowIn<'_>) -> Result<()> {
        if !matches!(self.loading, Loading::No) && self.insert_in_load(session, row)? {
            return Ok(());
        }
        self.push_autoinc(row)?;
        let mode = self.insert_mode;
        self.change(session, |change, op| {
            let dict = change.engine.dict();
            let row_id = || dict.counters().next_row_id(change.engine.ctx());
            row::insert(
                op,
                change.table.trees(),
                change.template,
                change.work,
                row,
                mode,
                &row_id,
            )
        })
    }

    /// Changes the row read last. Only columns of the write set are looked at; the old values are
    /// those of the row itself.
    pub fn update(&mut self, session: &mut Session, new: RowIn<'_>) -> Result<()> {
        self.check_current()?;
        self.change(session, |change, op| {
            row::update(
                op,
                change.table.trees(),
                change.template,
                change.work,
                change.current,
                change.columns,
                new,
            )
        })
    }

    /// Deletes the row read last.
    pub fn delete(&mut self, session: &mut Session) -> Result<()> {
        self.check_current()?;
        self.change(session, |change, op| {
            row::delete(op, change.table.trees(), change.work, change.current, false)
        })
    }
}

/// What a change of a row works with beside the transaction.
struct Change<'h> {
    engine: &'h Engine,
    table: &'h OpenTable,
    template: &'h Template,
    columns: &'h [u16],
    current: &'h Tuple,
    work: &'h mut row::Workspace,
}

//! A table handle: one open table with the host's row template, bound to a session for a statement.
//!
//! The caller (`abi/table`) keeps the order of calls: `begin_use` before reads and writes, a scan or an
//! index begun before `next`, a row read before `update` and `delete`, buffers of the right size.
//! Every call that reads or writes gets the session to which the handle is bound.

use std::sync::Arc;

use super::open::Engine;
use super::session::Session;
use super::types::{
    Batch, Bound, CheckFinding, Extra, Find, OpenFlags, TableInfo, TableStats, TableUse,
};
use crate::host::image::{BlobHeap, RowIn, TableImage};
use crate::words::{Error, Result};

/// One open table.
pub struct TableHandle {
    engine: Arc<Engine>,
    image: Arc<TableImage>,
    /// BLOBs of the rows handed out last; cleared at the begin of every read.
    blobs: BlobHeap,
}

fn unbuilt<T>() -> Result<T> {
    Err(Error::unsupported("the storage core is not assembled yet"))
}

impl TableHandle {
    /// Opens `name` ("database/table"); `image` must agree with the dictionary: same columns in the same
    /// order, keys found by name.
    ///
    /// # Errors
    /// `NoSuchTable`, `TablespaceMissing`, `Corrupt`, `Invalid` (template and table differ),
    /// `Unsupported`.
    pub fn open(
        engine: &Arc<Engine>,
        name: &str,
        image: TableImage,
        flags: OpenFlags,
    ) -> Result<TableHandle> {
        let _ = (name, flags);
        let _ = TableHandle {
            engine: engine.clone(),
            image: Arc::new(image),
            blobs: BlobHeap::default(),
        };
        unbuilt()
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The host's template.
    pub fn image(&self) -> &Arc<TableImage> {
        &self.image
    }

    /// BLOB memory of the rows handed out.
    pub fn blobs(&mut self) -> &mut BlobHeap {
        &mut self.blobs
    }

    /// Facts about the table.
    pub fn info(&self) -> Result<TableInfo> {
        unbuilt()
    }

    /// The host's number of the key at position `index` of `schema::Table::indexes`.
    pub fn host_key(&self, index: u16) -> Option<u32> {
        let _ = index;
        None
    }

    /// Binds to a session for a statement; all columns, all switches off.
    pub fn begin_use(&mut self, session: &mut Session, how: &TableUse) -> Result<()> {
        let _ = (session, how);
        unbuilt()
    }

    /// Ends the use: scan or index ended, BLOBs freed.
    pub fn end_use(&mut self) {
        self.blobs.clear();
    }

    /// Columns read and written: bit i = column i; `None` = all. A short map means 0 for the rest.
    pub fn set_columns(&mut self, read: Option<&[u8]>, write: Option<&[u8]>) {
        let _ = (read, write);
    }

    /// Turns a switch.
    pub fn extra(&mut self, session: &mut Session, what: Extra) -> Result<()> {
        let _ = (session, what);
        Ok(())
    }

    /// Starts a scan in clustered order; `sequential` false: only for `read_position`.
    pub fn scan_begin(&mut self, session: &mut Session, sequential: bool) -> Result<()> {
        let _ = (session, sequential);
        unbuilt()
    }

    /// Chooses a key.
    pub fn index_begin(&mut self, session: &mut Session, key: u32) -> Result<()> {
        let _ = (session, key);
        unbuilt()
    }

    /// Ends scan or index.
    pub fn cursor_end(&mut self) {}

    /// Finds a row by a key image (checked: ends after a part, or inside a string part with the prefix
    /// flags). An empty key: the first or last row, as `find` looks.
    pub fn index_read(
        &mut self,
        session: &mut Session,
        row: &mut [u8],
        key: &[u8],
        find: Find,
    ) -> Result<()> {
        let _ = (session, row, key, find);
        unbuilt()
    }

    /// First row of the index; `last`: last row.
    pub fn index_edge(&mut self, session: &mut Session, row: &mut [u8], last: bool) -> Result<()> {
        let _ = (session, row, last);
        unbuilt()
    }

    /// Next row of the scan or index; before any row: the first one.
    pub fn next(&mut self, session: &mut Session, row: &mut [u8]) -> Result<()> {
        let _ = (session, row);
        unbuilt()
    }

    /// Previous row of the index.
    pub fn prev(&mut self, session: &mut Session, row: &mut [u8]) -> Result<()> {
        let _ = (session, row);
        unbuilt()
    }

    /// Next row if it has the key (or prefix), else `EndOfFile`.
    pub fn next_same(&mut self, session: &mut Session, row: &mut [u8], key: &[u8]) -> Result<()> {
        let _ = (session, row, key);
        unbuilt()
    }

    /// Several rows. Returns how many were stored and how it ended: rows before an error are valid.
    pub fn read_n(&mut self, session: &mut Session, batch: Batch<'_>) -> (usize, Result<()>) {
        let _ = (session, batch);
        (0, unbuilt())
    }

    /// Position of the row read last; `row` is its image.
    pub fn position(&mut self, row: &[u8], position: &mut [u8]) -> Result<()> {
        let _ = (row, position);
        unbuilt()
    }

    /// The row at a position. An open scan or index keeps its place.
    pub fn read_position(
        &mut self,
        session: &mut Session,
        row: &mut [u8],
        position: &[u8],
    ) -> Result<()> {
        let _ = (session, row, position);
        unbuilt()
    }

    /// Order of two positions.
    pub fn compare_positions(&self, a: &[u8], b: &[u8]) -> Result<std::cmp::Ordering> {
        let _ = (a, b);
        unbuilt()
    }

    /// Gives up the lock of the row read last where the isolation level allows.
    pub fn unlock_row(&mut self, session: &mut Session) {
        let _ = session;
    }

    /// The row read last is the committed version of a row that someone holds locked.
    pub fn was_semi_consistent(&self) -> bool {
        false
    }

    /// Inserts a row.
    pub fn insert(&mut self, session: &mut Session, row: RowIn<'_>) -> Result<()> {
        let _ = (session, row);
        unbuilt()
    }

    /// Changes the row read last. Only columns of the write set are looked at; the old values are
    /// those of the row itself.
    pub fn update(&mut self, session: &mut Session, new: RowIn<'_>) -> Result<()> {
        let _ = (session, new);
        unbuilt()
    }

    /// Deletes the row read last.
    pub fn delete(&mut self, session: &mut Session) -> Result<()> {
        let _ = session;
        unbuilt()
    }

    /// About `rows` inserts follow; 0 = unknown.
    pub fn bulk_begin(&mut self, session: &mut Session, rows: u64) -> Result<()> {
        let _ = (session, rows);
        Ok(())
    }

    /// They are over.
    pub fn bulk_end(&mut self, session: &mut Session) -> Result<()> {
        let _ = session;
        Ok(())
    }

    /// Reserves AUTO_INCREMENT values: first value and how many. `wanted` 0 = unknown.
    pub fn autoinc_reserve(
        &mut self,
        session: &mut Session,
        offset: u64,
        increment: u64,
        wanted: u64,
    ) -> Result<(u64, u64)> {
        let _ = (session, offset, increment, wanted);
        unbuilt()
    }

    /// Sets the next value, but not below the largest in the table.
    pub fn autoinc_set(&mut self, session: &mut Session, next: u64) -> Result<()> {
        let _ = (session, next);
        unbuilt()
    }

    /// Estimates, from memory.
    pub fn stats(&self) -> Result<TableStats> {
        unbuilt()
    }

    /// Rows per value of the first 1, 2, … parts of a key; each at least 1.
    pub fn rec_per_key(&self, key: u32, out: &mut [f64]) -> Result<()> {
        let _ = (key, out);
        unbuilt()
    }

    /// Estimated rows between two ends, at least 1. The handle is bound.
    pub fn records_in_range(
        &mut self,
        key: u32,
        lower: Option<Bound<'_>>,
        upper: Option<Bound<'_>>,
    ) -> Result<u64> {
        let _ = (key, lower, upper);
        unbuilt()
    }

    /// Walks all indexes; `found` gets each finding, and returns false to stop (`Interrupted`).
    /// `extended`: also compares the indexes row by row. True: all is well.
    pub fn check(
        &mut self,
        session: &mut Session,
        extended: bool,
        found: &mut dyn FnMut(CheckFinding) -> bool,
    ) -> Result<bool> {
        let _ = (session, extended, found);
        unbuilt()
    }

    /// Recalculates statistics.
    pub fn analyze(&mut self, session: &mut Session) -> Result<()> {
        let _ = session;
        unbuilt()
    }
}

//! Older versions of a row, from its undo records.

use super::undo_row;
use crate::format::record::DELETED;
use crate::format::undo_record::UndoRecord;
use crate::mtr::Mtr;
use crate::schema::{Index, Table, Tuple};
use crate::trx::{ReadView, TrxSystem};
use crate::undo;
use crate::words::{Error, Result};

/// More versions than a row can have had: the chain is circular.
const VERSIONS_MAX: u64 = 1 << 40;

/// Memory for walking versions.
#[derive(Default)]
pub(super) struct Versions {
    body: Vec<u8>,
}

impl Versions {
    /// Turns `row` – a version of a row whose leaf is latched – into the version before; `false` if
    /// there is none: it was inserted with this one.
    ///
    /// Errors: `Corrupt` if the undo record is not there or belongs to another table.
    pub(super) fn step_back(
        &mut self,
        mtr: &mut Mtr<'_>,
        sys: &TrxSystem,
        table: &Table,
        row: &mut Tuple,
    ) -> Result<bool> {
        let index = table.clustered();
        let roll_ptr = undo_row::roll_ptr_of(index, row);
        if roll_ptr.is_insert() {
            return Ok(false);
        }
        let named = |e: Error| e.in_index(&table.name, &index.name);
        undo::read::record(mtr, &sys.rsegs, roll_ptr, &mut self.body).map_err(named)?;
        let record = UndoRecord::parse(&self.body).map_err(named)?;
        if record.table_id != table.id {
            let why = "the history of a row is missing: its undo record is another table's";
            return Err(named(Error::corrupt_bytes(why)));
        }
        let update = record.update(index.n_uniq as usize).map_err(named)?;
        undo_row::apply(index, &update, row).map_err(named)?;
        Ok(true)
    }

    /// Turns `row` into the version that `view` sees; `false` if it sees none, or a deleted one.
    pub(super) fn visible(
        &mut self,
        mtr: &mut Mtr<'_>,
        sys: &TrxSystem,
        table: &Table,
        view: &ReadView,
        row: &mut Tuple,
    ) -> Result<bool> {
        let index = table.clustered();
        for _ in 0..VERSIONS_MAX {
            if view.sees(&sys.registry, undo_row::trx_id_of(index, row)) {
                return Ok(row.info_bits & DELETED == 0);
            }
            if !self.step_back(mtr, sys, table, row)? {
                return Ok(false);
            }
        }
        Err(circular(table, index))
    }

    /// Turns `row` into the newest version that is committed; `false` if there is none, or it is a
    /// deleted one. For semi-consistent reads.
    pub(super) fn last_committed(
        &mut self,
        mtr: &mut Mtr<'_>,
        sys: &TrxSystem,
        table: &Table,
        row: &mut Tuple,
    ) -> Result<bool> {
        let index = table.clustered();
        for _ in 0..VERSIONS_MAX {
            let id = undo_row::trx_id_of(index, row);
            if sys.registry.active_owner(id).is_none() {
                return Ok(row.info_bits & DELETED == 0);
            }
            if !self.step_back(mtr, sys, table, row)? {
                return Ok(false);
            }
        }
        Err(circular(table, index))
    }
}

#[cold]
fn circular(table: &Table, index: &Index) -> Error {
    Error::corrupt_bytes("a row's versions lead in a circle").in_index(&table.name, &index.name)
}

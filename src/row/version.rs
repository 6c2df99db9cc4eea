//! Older versions of a row, from its undo records.

use super::undo_row;
use crate::format::record::DELETED;
use crate::format::undo_record::UndoRecord;
use crate::mtr::Mtr;
use crate::schema::{Table, Tuple};
use crate::trx::{ReadView, TrxSystem};
use crate::undo;
use crate::words::{Error, Result, RollPtr};

/// Memory for walking versions.
#[derive(Default)]
pub(super) struct Versions {
    body: Vec<u8>,
}

/// Tells a chain of versions that a damaged undo page leads in a circle (Brent): each power of two
/// steps the place is noted, and a circle comes back to it.
#[derive(Default)]
pub(super) struct Steps {
    taken: u64,
    noted: Option<RollPtr>,
}

impl Steps {
    /// Leaves the version with DB_ROLL_PTR `at`; true if the walk was there before.
    fn return_to(&mut self, at: RollPtr) -> bool {
        if self.noted == Some(at) {
            return true;
        }
        self.taken += 1;
        if self.taken.is_power_of_two() {
            self.noted = Some(at);
        }
        false
    }
}

impl Versions {
    /// Turns `row` – a version of a row whose leaf is latched – into the version before; `false` if
    /// there is none: it was inserted with this one. `steps` = those of this walk.
    ///
    /// Errors: `Corrupt` if the undo record is not there or belongs to another table, and if the walk
    /// does not end.
    pub(super) fn step_back(
        &mut self,
        mtr: &mut Mtr<'_>,
        sys: &TrxSystem,
        table: &Table,
        row: &mut Tuple,
        steps: &mut Steps,
    ) -> Result<bool> {
        let index = table.clustered();
        let roll_ptr = undo_row::roll_ptr_of(index, row);
        if roll_ptr.is_insert() {
            return Ok(false);
        }
        let named = |e: Error| e.in_index(&table.name, &index.name);
        if steps.return_to(roll_ptr) {
            let why = "the history of a row is damaged: its versions lead in a circle";
            return Err(named(Error::corrupt_bytes(why)));
        }
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
        let mut steps = Steps::default();
        while !view.sees(&sys.registry, undo_row::trx_id_of(index, row)) {
            if !self.step_back(mtr, sys, table, row, &mut steps)? {
                return Ok(false);
            }
        }
        Ok(row.info_bits & DELETED == 0)
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
        let mut steps = Steps::default();
        let is_running = |row: &Tuple| sys.registry.active_owner(undo_row::trx_id_of(index, row));
        while is_running(row).is_some() {
            if !self.step_back(mtr, sys, table, row, &mut steps)? {
                return Ok(false);
            }
        }
        Ok(row.info_bits & DELETED == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A limit of 2^40 steps once stood here: a reader of damaged undo spun under the leaf's latch.
    #[test]
    fn a_circle_of_versions_is_noticed_and_a_long_history_is_none() {
        for (straight, round) in [(0, 1), (3, 1), (5, 7), (1000, 300)] {
            let mut steps = Steps::default();
            let walk = (0..straight).chain((straight..straight + round).cycle());
            let noticed = walk.take_while(|&at| !steps.return_to(RollPtr(at))).count();
            let most = 4 * (straight + round) as usize + 4;
            assert!(
                noticed <= most,
                "{straight} + {round}: after {noticed} steps"
            );
        }
        let mut steps = Steps::default();
        assert!((0..100_000).all(|at| !steps.return_to(RollPtr(at))));
    }
}

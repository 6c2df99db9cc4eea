//! CHECK TABLE's look at rows: whether the indexes of a table agree, through one read view.
//!
//! A row that the view sees has one entry in each index, whatever others do meanwhile: purge leaves
//! what a view needs. So each visible row is looked up in each secondary tree, and the visible
//! entries of each tree are counted: if every row has its entry and there are as many entries as
//! rows, each entry has its row.
//!
//! An entry on a page whose changes the view sees all (PAGE_MAX_TRX_ID) is settled: there its
//! delete mark says whether it is visible, and its bytes are those of the row. Elsewhere the row's
//! version decides, as it does for readers.

use super::entry::{self, Fetched};
use super::op::Op;
use super::read::{Locking, Sight};
use super::version::Versions;
use crate::mtr::Mtr;
use crate::page::{Offsets, RecordView, SearchMode, layout, record};
use crate::schema::{FieldColumn, Tuple};
use crate::tree::{Intent, Position, Seek, StoredPosition, Tree};
use crate::words::{Error, Result};

/// Rows of which the entries are kept between two walks, and their bytes: memory is bounded.
const BATCH_ROWS: usize = 256;
const BATCH_BYTES: usize = 256 << 10;

/// What is wrong between a row and an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disagreement {
    /// The row has no entry.
    Missing,
    /// The row's entry is delete-marked.
    Marked,
    /// The entry is equal to the row's in order, but has other bytes.
    OtherBytes,
    /// The entry belongs to no row.
    Stray,
}

/// Told of each disagreement: index position, what, and the clustered key. An error ends the walk.
pub type Told<'f> = &'f mut dyn FnMut(usize, Disagreement, &Tuple) -> Result<()>;

/// A comparison of a table's indexes.
pub struct Agreement<'t, 'e> {
    trees: &'t [Tree],
    sight: Sight<'e>,
    offsets: Offsets,
    versions: Versions,
    fetched: Fetched,
    row: Tuple,
    entry: Tuple,
    of_row: Tuple,
    key: Tuple,
    batch: Batch,
}

/// Rows seen, with the entries that they must have.
#[derive(Default)]
struct Batch {
    rows: Vec<Tuple>,
    /// One for each row and index, in this order.
    entries: Vec<Tuple>,
    count: usize,
    bytes: usize,
}

impl<'t, 'e> Agreement<'t, 'e> {
    /// Opens the transaction's view, unless it is open.
    pub fn new(op: &mut Op<'e>, trees: &'t [Tree]) -> Agreement<'t, 'e> {
        Agreement {
            trees,
            sight: Sight::of(op, Locking::None),
            offsets: Offsets::new(),
            versions: Versions::default(),
            fetched: Fetched::default(),
            row: Tuple::new(),
            entry: Tuple::new(),
            of_row: Tuple::new(),
            key: Tuple::new(),
            batch: Batch::default(),
        }
    }

    /// True if the entries of an index follow from stored columns, so that rows can be looked up.
    pub fn can_look_up(tree: &Tree) -> bool {
        let mut fields = tree.index().fields.iter();
        fields.all(|field| matches!(field.column, FieldColumn::Stored(_)))
    }

    /// Counts the visible rows, and looks each of them up in the trees at `indexes`.
    ///
    /// Errors: `Interrupted`; what `told` gives; damage; what reading gives.
    pub fn rows(&mut self, op: &Op<'_>, indexes: &[usize], told: Told<'_>) -> Result<u64> {
        let mut stored = StoredPosition::new();
        let mut rows = 0;
        loop {
            op.check_killed()?;
            self.batch.count = 0;
            self.batch.bytes = 0;
            let mut mtr = Mtr::reader(op.ctx);
            let more = loop {
                match self.collect(&mut mtr, &mut stored, indexes) {
                    Err(Error::WouldBlock) => mtr.restart()?,
                    other => break other?,
                }
            };
            drop(mtr);
            rows += self.batch.count as u64;
            self.look_up_batch(op, indexes, told)?;
            if !more {
                return Ok(rows);
            }
        }
    }

    /// Fills the batch with the rows after `stored`, which follows; `false` at the end.
    fn collect(
        &mut self,
        mtr: &mut Mtr<'_>,
        stored: &mut StoredPosition,
        indexes: &[usize],
    ) -> Result<bool> {
        let trees = self.trees;
        let tree = &trees[0];
        let (mut at, _) = stored.restore(tree, mtr, Intent::Read)?;
        // Rows without indexes are only counted: then the loop ends for the sake of the kill check.
        while self.batch.count < BATCH_ROWS && self.batch.bytes < BATCH_BYTES {
            if !tree.next(mtr, &mut at)? {
                return Ok(false);
            }
            if self.sees_row(mtr, &at)? {
                if !indexes.is_empty() {
                    self.fetched.fetch(mtr, trees, &self.row)?;
                    self.put(indexes)?;
                }
                self.batch.count += 1;
            }
            stored.store(tree, mtr, &at, &mut self.offsets)?;
        }
        Ok(true)
    }

    /// True if the view sees a version of the clustered record at `at`; it is in `self.row` then.
    fn sees_row(&mut self, mtr: &mut Mtr<'_>, at: &Position) -> Result<bool> {
        let tree = &self.trees[0];
        let record = RecordView::new(mtr.view(at.page), at.rec, tree.index(), &mut self.offsets)?;
        let id = record.trx_id().unwrap_or_default();
        record.copy_to(&mut self.row);
        let (sys, table) = (self.sight.sys, tree.table());
        match &self.sight.view {
            Some(view) if !view.sees(&sys.registry, id) => {
                self.versions.visible(mtr, sys, table, view, &mut self.row)
            }
            _ => Ok(!super::read::record_is_deleted(&self.row)),
        }
    }

    /// Puts the entries of `self.row` behind those of the batch.
    fn put(&mut self, indexes: &[usize]) -> Result<()> {
        let clustered = self.trees[0].index();
        let batch = &mut self.batch;
        let row = batch.count;
        if batch.rows.len() == row {
            batch.rows.push(Tuple::new());
            batch.entries.extend(indexes.iter().map(|_| Tuple::new()));
        }
        batch.rows[row].copy_prefix_of(&self.row, clustered.n_uniq as usize);
        let entries = &mut batch.entries[row * indexes.len()..];
        for (entry, &index) in entries.iter_mut().zip(indexes) {
            let tree = &self.trees[index];
            entry::secondary(tree, clustered, &self.row, &self.fetched, entry)?;
            batch.bytes += entry.fields().map(|field| field.len()).sum::<usize>();
        }
        Ok(())
    }

    fn look_up_batch(&mut self, op: &Op<'_>, indexes: &[usize], told: Told<'_>) -> Result<()> {
        // Index by index: neighbouring rows often have neighbouring entries.
        for (at, &index) in indexes.iter().enumerate() {
            for row in 0..self.batch.count {
                let wanted = row * indexes.len() + at;
                let mut mtr = Mtr::reader(op.ctx);
                let found = loop {
                    match self.look_up(&mut mtr, index, wanted) {
                        Err(Error::WouldBlock) => mtr.restart()?,
                        other => break other?,
                    }
                };
                drop(mtr);
                if let Some(what) = found {
                    told(index, what, &self.batch.rows[row])?;
                }
            }
        }
        Ok(())
    }

    /// What is wrong with entry number `wanted` of the batch, if anything.
    fn look_up(
        &mut self,
        mtr: &mut Mtr<'_>,
        index: usize,
        wanted: usize,
    ) -> Result<Option<Disagreement>> {
        let tree = &self.trees[index];
        let entry = &self.batch.entries[wanted];
        let at = tree.seek(mtr, Seek::Key(entry, SearchMode::LessOrEqual), Intent::Read)?;
        if usize::from(at.low_match) != entry.len() {
            return Ok(Some(Disagreement::Missing));
        }
        let view = mtr.view(at.page);
        if !self.is_settled(view) {
            return Ok(None);
        }
        let found = RecordView::new(view, at.rec, tree.index(), &mut self.offsets)?;
        if found.is_deleted() {
            return Ok(Some(Disagreement::Marked));
        }
        let same = found.fields().zip(entry.fields()).all(|(a, b)| a == b);
        Ok((!same).then_some(Disagreement::OtherBytes))
    }

    /// True if the view sees all changes of a secondary leaf.
    fn is_settled(&self, view: &[u8]) -> bool {
        let max = layout::max_trx_id(view);
        self.sight.view.is_none_or(|v| v.sees_all_up_to(max))
    }

    /// Counts the visible entries of a secondary tree. `strict`: also looks for the row of each.
    ///
    /// Errors: as `rows`.
    pub fn entries(
        &mut self,
        op: &Op<'_>,
        index: usize,
        strict: bool,
        told: Told<'_>,
    ) -> Result<u64> {
        let mut stored = StoredPosition::new();
        let mut entries = 0;
        loop {
            op.check_killed()?;
            let mut mtr = Mtr::reader(op.ctx);
            let more = loop {
                match self.count(&mut mtr, &mut stored, index, strict, &mut entries) {
                    Err(Error::WouldBlock) => mtr.restart()?,
                    other => break other?,
                }
            };
            drop(mtr);
            match more {
                Counted::All => return Ok(entries),
                Counted::Some => {}
                Counted::Stray => told(index, Disagreement::Stray, &self.key)?,
            }
        }
    }

    /// Counts some entries after `stored`, which follows.
    fn count(
        &mut self,
        mtr: &mut Mtr<'_>,
        stored: &mut StoredPosition,
        index: usize,
        strict: bool,
        entries: &mut u64,
    ) -> Result<Counted> {
        let tree = &self.trees[index];
        let (mut at, _) = stored.restore(tree, mtr, Intent::Read)?;
        for _ in 0..BATCH_ROWS {
            if !tree.next(mtr, &mut at)? {
                return Ok(Counted::All);
            }
            let view = mtr.view(at.page);
            let (deleted, settled) = (record::is_deleted(view, at.rec), self.is_settled(view));
            let seen = match settled && (deleted || !strict) {
                true => Entry::of(!deleted),
                false => self.sees_entry(mtr, tree, &at, deleted, settled)?,
            };
            stored.store(tree, mtr, &at, &mut self.offsets)?;
            match seen {
                Entry::Visible => *entries += 1,
                Entry::Hidden => {}
                Entry::Stray => {
                    *entries += 1;
                    return Ok(Counted::Stray);
                }
            }
        }
        Ok(Counted::Some)
    }

    /// Asks the row of the entry at `at`. The leaf stays latched: a row is put in before its
    /// entries and removed after them, so an entry without any record of its row is damage.
    fn sees_entry(
        &mut self,
        mtr: &mut Mtr<'_>,
        tree: &Tree,
        at: &Position,
        deleted: bool,
        settled: bool,
    ) -> Result<Entry> {
        let clustered = &self.trees[0];
        let record = RecordView::new(mtr.view(at.page), at.rec, tree.index(), &mut self.offsets)?;
        record.copy_to(&mut self.entry);
        let get = |i| record.field(i);
        let collations = tree.collations();
        entry::clustered_key(
            tree.index(),
            clustered.index(),
            get,
            collations,
            &mut self.key,
        )?;
        let seek = Seek::Key(&self.key, SearchMode::LessOrEqual);
        let found = clustered.seek(mtr, seek, Intent::Read)?;
        let there = usize::from(found.low_match) == self.key.len();
        let visible = there && self.sees_row(mtr, &found)? && self.row_has_entry(mtr, tree)?;
        mtr.release(found.page);
        Ok(match visible {
            true => Entry::Visible,
            false if deleted => Entry::Hidden,
            false if there && !settled => Entry::Hidden,
            false => Entry::Stray,
        })
    }

    /// True if `self.row` has the entry `self.entry`.
    fn row_has_entry(&mut self, mtr: &mut Mtr<'_>, tree: &Tree) -> Result<bool> {
        if !Self::can_look_up(tree) {
            return Ok(true);
        }
        self.fetched.fetch(mtr, self.trees, &self.row)?;
        let clustered = self.trees[0].index();
        entry::secondary(tree, clustered, &self.row, &self.fetched, &mut self.of_row)?;
        Ok(entry::is_equal(tree, &self.of_row, &self.entry))
    }
}

enum Counted {
    All,
    Some,
    Stray,
}

enum Entry {
    Visible,
    Hidden,
    /// No row has it.
    Stray,
}

impl Entry {
    fn of(visible: bool) -> Entry {
        match visible {
            true => Entry::Visible,
            false => Entry::Hidden,
        }
    }
}

//! Loading an empty table: rows are collected and sorted, then the trees are built bottom up.
//!
//! The table is locked as a whole, and the undo log has one record that says "it was empty". Nothing of the
//! rows is in a tree before `finish`.

use super::codec::Template;
use super::insert::{secondary_trees, shorten};
use super::op::{Op, Workspace, again};
use super::sort::{Item, Sorted, Sorter};
use super::sort_run::SortPlace;
use super::{secondary, undo_row};
use crate::format::undo_build::UndoBuilder;
use crate::format::undo_record::UndoKind;
use crate::host::image::RowIn;
use crate::lock::{Outcome, TableMode};
use crate::mtr::{Budget, Mtr};
use crate::page::RecordImage;
use crate::schema::{FieldRef, IndexType, Table, Tuple};
use crate::tree::{Bulk, Tree};
use crate::words::{Error, Result, RollPtr, SpaceId, TableId, TrxId, UndoNo};

/// Bytes of the EMPTY record.
const UNDO_BYTES: usize = 32;
/// Entries between two looks at whether the session is to stop.
const KILL_STEP: u64 = 1024;

/// A load under way.
pub struct BulkLoad {
    table: TableId,
    /// By the tree's position; `None`: it has none.
    sorters: Vec<Option<Sorter>>,
    place: SortPlace,
    fill_factor: u32,
    trx_id: TrxId,
    roll_ptr: RollPtr,
    /// The number that the EMPTY record has.
    undo_no: UndoNo,
    rows: u64,
    images: Vec<RecordImage>,
}

/// Why a load failed: the error, and the key that two rows have.
#[derive(Debug)]
pub struct LoadError {
    /// What happened.
    pub error: Error,
    /// For `DuplicateKey`: the key fields of the entry that came second.
    pub key: Option<Tuple>,
}

impl From<Error> for LoadError {
    fn from(error: Error) -> LoadError {
        LoadError { error, key: None }
    }
}

/// True if a load can build this table: in a file of its own, every index a B-tree whose records are as the
/// table was made.
fn is_plain(table: &Table) -> bool {
    let beyond = IndexType::FULLTEXT | IndexType::SPATIAL | IndexType::HAS_VIRTUAL;
    table.space != SpaceId::SYSTEM
        && table.clustered().instant.is_none()
        && !table.indexes.iter().any(|index| index.ty.has(beyond))
}

impl BulkLoad {
    /// Begins a load, if the table is empty and nobody else uses it; `None` if rows must go in one by one.
    /// The table is locked then to the transaction's end.
    ///
    /// Errors: `TooManyTransactions`, `NoSpace`, `ReadOnly`; damage; what reading gives.
    pub fn begin(
        op: &mut Op<'_>,
        trees: &[Tree],
        place: SortPlace,
        fill_factor: u32,
    ) -> Result<Option<BulkLoad>> {
        let table = trees[0].table();
        if !is_plain(table) || !all_empty(op, trees)? {
            return Ok(None);
        }
        let owner = op.trx.owner().clone();
        let locks = &op.sys.locks;
        if let Outcome::Wait(wait) = locks.lock_table(&owner, table.id, TableMode::Exclusive) {
            locks.cancel(&wait);
            return Ok(None);
        }
        // Nobody can have written since.
        if !all_empty(op, trees)? {
            return Ok(None);
        }
        let trx_id = op.trx.begin_write(op.ctx, false)?;
        let undo_no = op.trx.next_undo_no();
        let roll_ptr = note_empty(op, table.id)?;
        op.ctx.reached("bulk.begun");
        let sorters = trees.iter().map(|tree| {
            let sorted = tree.index().has_tree();
            sorted.then(|| Sorter::new(tree, &place))
        });
        Ok(Some(BulkLoad {
            table: table.id,
            sorters: sorters.collect(),
            place,
            fill_factor,
            trx_id,
            roll_ptr,
            undo_no,
            rows: 0,
            images: trees.iter().map(|_| RecordImage::new()).collect(),
        }))
    }

    /// Where a rollback of the load goes back to.
    pub fn undo_no(&self) -> UndoNo {
        self.undo_no
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a host's row. `row_id` draws the hidden key of a table that has no key of its own.
    ///
    /// Errors: those of a row that cannot be stored, as of an insert; `NoSpace`, `Io` of the temporary file.
    /// The row is not part of the load then.
    pub fn add(
        &mut self,
        op: &Op<'_>,
        trees: &[Tree],
        template: &Template,
        work: &mut Workspace,
        row: RowIn<'_>,
        row_id: &dyn Fn() -> Result<u64>,
    ) -> Result<()> {
        let table = trees[0].table();
        debug_assert_eq!(table.id, self.table);
        template.clustered_entry(table, row, trees[0].collations(), &mut work.row);
        if table.has_generated_key() {
            let id = row_id()?.to_be_bytes();
            work.row.set(0, FieldRef::Bytes(&id[2..]));
        }
        shorten(op, trees, table, work)?;
        // What may fail for the row's own sake comes before its off-page values are written.
        self.images[0].build(trees[0].index(), &work.row)?;
        for tree in secondary_trees(trees) {
            secondary::entry_of_row(trees, tree, work)?;
            self.images[tree.position()].build(tree.index(), &work.entry)?;
        }
        write_big_values(op, &trees[0], work)?;
        undo_row::stamp(table.clustered(), &mut work.row, self.trx_id, self.roll_ptr);
        work.row.info_bits = 0;
        self.images[0].build(trees[0].index(), &work.row)?;
        self.sort_in(trees, work)?;
        self.rows += 1;
        Ok(())
    }

    fn sort_in(&mut self, trees: &[Tree], work: &mut Workspace) -> Result<()> {
        for (i, tree) in trees.iter().enumerate() {
            let Some(sorter) = &mut self.sorters[i] else {
                continue;
            };
            let entry = match i {
                0 => &work.row,
                _ => {
                    secondary::entry_of_row(trees, tree, work)?;
                    &work.entry
                }
            };
            if let Err(error) = sorter.push(tree, entry, &self.images[i], self.rows) {
                for sorter in self.sorters[..i].iter_mut().flatten() {
                    sorter.pop();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Builds the trees. After an error the caller rolls back to `undo_no`.
    ///
    /// Errors: `DuplicateKey` for the row that an insert would have refused first; `NoSpace`, `Interrupted`,
    /// `Io`, `Stopped`.
    pub fn finish(mut self, op: &Op<'_>, trees: &[Tree]) -> Result<u64, LoadError> {
        let mut refused: Option<Refused> = None;
        for (i, tree) in trees.iter().enumerate() {
            let Some(sorter) = self.sorters[i].take() else {
                continue;
            };
            if refused.is_some() && !tree.index().is_unique() {
                continue;
            }
            let mut sorted = Sorted::new(tree, &self.place, vec![sorter])?;
            let build = refused.is_none();
            let found = self.build_one(op, tree, &mut sorted, build)?;
            // Equal numbers: the index that an insert comes to first.
            refused = match (refused, found) {
                (Some(first), Some(found)) if found.number < first.number => Some(found),
                (first, found) => first.or(found),
            };
        }
        match refused {
            None => Ok(self.rows),
            Some(refused) => Err(LoadError {
                error: Error::DuplicateKey {
                    index: refused.index,
                },
                key: Some(refused.key),
            }),
        }
    }

    /// Builds one tree, or only looks for keys that two rows have.
    fn build_one(
        &self,
        op: &Op<'_>,
        tree: &Tree,
        sorted: &mut Sorted,
        build: bool,
    ) -> Result<Option<Refused>> {
        let mut bulk = match build {
            true => Some(Bulk::begin(tree, op.ctx, self.trx_id, self.fill_factor)?),
            false => None,
        };
        let mut unique = UniqueCheck::new(tree);
        let mut count = 0;
        while let Some(item) = sorted.next(tree)? {
            count += 1;
            if count % KILL_STEP == 0 {
                op.check_killed()?;
            }
            if unique.is_second(tree, &item) {
                bulk = None;
            }
            if let Some(bulk) = &mut bulk {
                bulk.push(item.record(), item.extra())?;
            }
        }
        if let Some(bulk) = bulk {
            bulk.finish()?;
        }
        Ok(unique.refused)
    }
}

fn all_empty(op: &Op<'_>, trees: &[Tree]) -> Result<bool> {
    for tree in trees {
        if tree.index().has_tree() && !tree.is_empty(op.ctx)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes the EMPTY record.
fn note_empty(op: &mut Op<'_>, table: TableId) -> Result<RollPtr> {
    loop {
        let needs = op.trx.reserve_undo(op.ctx, UNDO_BYTES)?;
        let budget = Budget::statement(needs.log_bytes + op.ctx.page_size());
        let mut mtr = Mtr::start(op.ctx, budget.with_frames(needs.frames))?;
        let appended = op.trx.append_undo(&mut mtr, |out, no| {
            UndoBuilder::begin(out, UndoKind::Empty, 0, no, table);
        });
        if let Some(roll_ptr) = again(appended)? {
            mtr.commit();
            return Ok(roll_ptr);
        }
    }
}

/// Writes the values that `shorten` took off the page, and lets `work.row` name them.
fn write_big_values(op: &Op<'_>, tree: &Tree, work: &mut Workspace) -> Result<()> {
    for (field, value) in &work.big.0 {
        let reference = tree.write_blob_ahead(op.ctx, value)?;
        work.row
            .set_reference(usize::from(*field), &reference.to_bytes());
    }
    Ok(())
}

/// The row that is not accepted.
struct Refused {
    /// The index whose key two rows have.
    index: u16,
    /// Number of the second of them.
    number: u64,
    /// The key.
    key: Tuple,
}

/// Looks at the entries of a unique index in order, for two that have the same key.
pub struct UniqueCheck {
    /// Key fields to compare; 0: the index is not unique.
    n_uniq: usize,
    /// The entry before.
    before: Vec<u8>,
    /// Of several entries with the same key, the one that came first.
    earliest: Option<Vec<u8>>,
    /// The first row that an insert would have refused.
    refused: Option<Refused>,
}

impl UniqueCheck {
    /// Nothing seen yet.
    pub fn new(tree: &Tree) -> UniqueCheck {
        let index = tree.index();
        UniqueCheck {
            n_uniq: match index.is_unique() {
                true => index.n_uniq.into(),
                false => 0,
            },
            before: Vec::new(),
            earliest: None,
            refused: None,
        }
    }

    /// True if the key of `item`, which follows those seen so far, was there before.
    pub fn is_second(&mut self, tree: &Tree, item: &Item<'_>) -> bool {
        if self.n_uniq == 0 {
            return false;
        }
        let before = Item::first(&self.before, tree.index().n_tree_unique());
        let same = before.is_some_and(|before| before.has_same_key(item, self.n_uniq, tree));
        match same {
            true => self.note_second(tree, item),
            false => self.earliest = None,
        }
        self.before.clear();
        self.before.extend_from_slice(item.bytes());
        same
    }

    /// Position of the index, and the key that was refused first.
    pub fn take_refused(&mut self) -> Option<(u16, Tuple)> {
        self.refused
            .take()
            .map(|refused| (refused.index, refused.key))
    }

    /// Of entries with one key all but the earliest are refused; they come in order of what follows it.
    #[cold]
    fn note_second(&mut self, tree: &Tree, item: &Item<'_>) {
        let known = self.earliest.take().unwrap_or_else(|| self.before.clone());
        let earliest =
            Item::first(&known, tree.index().n_tree_unique()).expect("an entry was kept");
        let item_is_later = earliest.number() < item.number();
        let (first, second) = match item_is_later {
            true => (&earliest, item),
            false => (item, &earliest),
        };
        let number = second.number();
        if self
            .refused
            .as_ref()
            .is_none_or(|refused| number < refused.number)
        {
            let mut key = Tuple::new();
            second.copy_key_to(self.n_uniq, &mut key);
            self.refused = Some(Refused {
                index: tree.position() as u16,
                number,
                key,
            });
        }
        self.earliest = Some(first.bytes().to_vec());
    }
}

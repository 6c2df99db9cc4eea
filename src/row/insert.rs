//! Inserting a row: the clustered record, its off-page values, the secondary entries.

use super::codec::Template;
use super::convert::is_same;
use super::lock_row::{self, lock_clustered, lock_insert};
use super::observer::Event;
use super::op::{Op, Step, Workspace, again};
use super::place::{self, Placement, Spot};
use super::undo_row::{self, Change};
use super::{offpage, secondary};
use crate::format::record::DELETED;
use crate::format::undo_record::UndoKind;
use crate::host::image::RowIn;
use crate::lock::{Outcome, RecordKind, RecordMode};
use crate::mtr::Mtr;
use crate::page::RecordView;
use crate::schema::{FieldRef, RowFormat, Table, Tuple};
use crate::tree::{Change as TreeChange, Scratch, Tree};
use crate::trx::Trx;
use crate::words::{Error, Result, TrxId};

use super::op::How;

/// How duplicates are met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertMode {
    /// INSERT: the duplicate gets a shared lock.
    Plain,
    /// REPLACE, ON DUPLICATE KEY UPDATE: an exclusive one, since it is about to change.
    Replace,
}

/// Inserts a host's row. `row_id` draws the hidden key of a table that has no key of its own.
///
/// Errors: `DuplicateKey`, `RowTooLarge`, `ReadOnly`, `NoSpace`, `UndoRecordTooLarge`,
/// `TooManyTransactions`, those of `Op::wait`; damage. After any of them the statement is to be
/// rolled back to where it stood before the row.
pub fn insert(
    op: &mut Op<'_>,
    trees: &[Tree],
    template: &Template,
    work: &mut Workspace,
    row: RowIn<'_>,
    mode: InsertMode,
    row_id: &dyn Fn() -> Result<u64>,
) -> Result<()> {
    let table = trees[0].table();
    template.clustered_entry(table, row, trees[0].collations(), &mut work.row);
    if table.has_generated_key() {
        let id = row_id()?.to_be_bytes();
        work.row.set(0, FieldRef::Bytes(&id[2..]));
    }
    insert_row(op, trees, work, mode, false)
}

/// Inserts a row given as a clustered entry with zeros in the system columns: for the dictionary
/// (`is_dict`) and for copies. BLOBs come whole.
///
/// Errors: as `insert`.
pub fn insert_tuple(
    op: &mut Op<'_>,
    trees: &[Tree],
    work: &mut Workspace,
    row: &Tuple,
    is_dict: bool,
) -> Result<()> {
    work.row.clone_from(row);
    insert_row(op, trees, work, InsertMode::Plain, is_dict)
}

/// Inserts `work.row`.
pub(super) fn insert_row(
    op: &mut Op<'_>,
    trees: &[Tree],
    work: &mut Workspace,
    mode: InsertMode,
    is_dict: bool,
) -> Result<()> {
    let table = trees[0].table();
    op.trx.begin_write(op.ctx, is_dict)?;
    lock_row::intend(op, work, table.id, true)?;
    shorten(op, trees, table, work)?;
    insert_clustered(op, trees, work, mode)?;
    write_blobs(op, &trees[0], work)?;
    for tree in secondary_trees(trees) {
        secondary::entry_of_row(trees, tree, work)?;
        secondary::insert(op, trees, tree, work, mode)?;
    }
    op.tell(table, &work.row, Event::Inserted);
    Ok(())
}

/// The trees of the secondary indexes that have one.
pub(super) fn secondary_trees(trees: &[Tree]) -> impl Iterator<Item = &Tree> {
    trees[1..]
        .iter()
        .filter(|tree| tree.index().has_tree() && !tree.index().is_spatial())
}

/// Moves values of `work.row` off the page; those that secondary entries need are kept whole in
/// `work.fetched`.
pub(super) fn shorten(
    op: &Op<'_>,
    trees: &[Tree],
    table: &Table,
    work: &mut Workspace,
) -> Result<()> {
    let index = table.clustered();
    let has_prefix = matches!(table.format, RowFormat::Redundant | RowFormat::Compact);
    let page_size = op.ctx.page_size();
    offpage::shorten(index, has_prefix, page_size, &mut work.row, &mut work.big)?;
    work.fetched.clear();
    for (field, rest) in &work.big.0 {
        let field = usize::from(*field);
        let column = index.fields[field].column;
        let mut all = trees[1..].iter().flat_map(|tree| &tree.index().fields);
        if all.any(|f| f.column == column) {
            let local = work.row.field(field).bytes().unwrap_or(&[]);
            let prefix = local.len() - crate::words::limits::BLOB_REF_BYTES;
            let mut value = local[..prefix].to_vec();
            value.extend_from_slice(rest);
            work.fetched.add(field, value);
        }
    }
    Ok(())
}

/// Writes the values that `shorten` took off the page. `work.key` is the row's clustered key.
pub(super) fn write_blobs(op: &Op<'_>, clustered: &Tree, work: &mut Workspace) -> Result<()> {
    if work.big.0.is_empty() {
        return Ok(());
    }
    let Workspace {
        key, big, offsets, ..
    } = work;
    offpage::write_all(op.ctx, clustered, key, big, offsets)
}

/// Inserts `work.row` into the clustered tree; a delete-marked record of its key is made the row.
/// Leaves the key in `work.key`.
pub(super) fn insert_clustered(
    op: &mut Op<'_>,
    trees: &[Tree],
    work: &mut Workspace,
    mode: InsertMode,
) -> Result<()> {
    let tree = &trees[0];
    let table = tree.table();
    let index = table.clustered();
    let n_uniq = index.n_uniq as usize;
    let trx_id = op.trx.id().expect("begin_write came before");
    let Workspace {
        tree: scratch,
        row,
        old,
        key,
        changed,
        ordering,
        old_fetched,
        ..
    } = work;
    key.copy_prefix_of(row, n_uniq);
    row.info_bits = 0;
    let record_bytes = offpage::record_size(index, row);
    let mut undo_bytes = undo_row::insert_bytes(key);
    let mut revival = Revival {
        row,
        old,
        changed,
        ordering: ordering.of(table),
        fetched: old_fetched,
    };
    let mut change = TreeChange::Insert;
    loop {
        let done = op.change(tree, undo_bytes, record_bytes, |trx, mtr, how| {
            let spot = place::find(tree, mtr, key, how, change)?;
            if usize::from(spot.at.low_match) == n_uniq {
                let may = how == How::Restructure && change == TreeChange::Both;
                let step =
                    revival.attempt(trx, mtr, trees, spot, may, mode, undo_bytes, scratch)?;
                if let Step::Restructure = step {
                    change = TreeChange::Both;
                }
                return Ok(step);
            }
            let row = &mut *revival.row;
            insert_attempt(trx, mtr, tree, spot, key, row, trx_id, scratch)
        })?;
        match done {
            Attempted::Done => return Ok(()),
            Attempted::NeedsUndo(bytes) => undo_bytes = bytes,
        }
    }
}

enum Attempted {
    Done,
    /// The row's undo record is longer than was reserved.
    NeedsUndo(usize),
}

#[expect(clippy::too_many_arguments, reason = "one attempt's whole state")]
fn insert_attempt(
    trx: &mut Trx,
    mtr: &mut Mtr<'_>,
    tree: &Tree,
    mut spot: Spot<'_>,
    key: &Tuple,
    row: &mut Tuple,
    trx_id: TrxId,
    scratch: &mut Scratch,
) -> Result<Step<Attempted>> {
    if let Outcome::Wait(wait) = lock_insert(trx, mtr, &spot.at)? {
        return Ok(Step::Wait(wait));
    }
    if spot.path.is_none() && !tree.fits(mtr, &spot.at, row, scratch)? {
        return Ok(Step::Restructure);
    }
    let table = tree.table();
    let appended = trx.append_undo(mtr, |out, no| {
        undo_row::build_insert(out, no, table.id, key)
    });
    let Some(roll_ptr) = again(appended)? else {
        return Ok(Step::Again);
    };
    undo_row::stamp(tree.index(), row, trx_id, roll_ptr);
    match &mut spot.path {
        None => tree.insert(mtr, &mut spot.at, row, scratch)?,
        Some(path) => {
            tree.insert_restructuring(mtr, path, row, scratch)?;
        }
    }
    Ok(Step::Done(Attempted::Done))
}

/// Making a delete-marked record the new row.
struct Revival<'w> {
    row: &'w mut Tuple,
    old: &'w mut Tuple,
    changed: &'w mut Vec<u16>,
    ordering: &'w [u16],
    fetched: &'w mut super::entry::Fetched,
}

impl Revival<'_> {
    #[expect(clippy::too_many_arguments, reason = "one attempt's whole state")]
    fn attempt(
        &mut self,
        trx: &mut Trx,
        mtr: &mut Mtr<'_>,
        trees: &[Tree],
        mut spot: Spot<'_>,
        may_restructure: bool,
        mode: InsertMode,
        undo_bytes: usize,
        scratch: &mut Scratch,
    ) -> Result<Step<Attempted>> {
        let tree = &trees[0];
        let view = mtr.view(spot.at.page);
        RecordView::new(view, spot.at.rec, tree.index(), &mut scratch.offsets)?.copy_to(self.old);
        let writer = undo_row::trx_id_of(tree.index(), self.old);
        let kind = match trx.isolation().locks_gaps() {
            true => RecordKind::NextKey,
            false => RecordKind::Record,
        };
        let wanted = lock_row::mode(mode == InsertMode::Replace, kind);
        if let Outcome::Wait(wait) = lock_clustered(trx, mtr, &spot.at, writer, wanted) {
            return Ok(Step::Wait(wait));
        }
        if self.old.info_bits & DELETED == 0 {
            return Err(Error::DuplicateKey { index: 0 });
        }
        let outcome = lock_clustered(trx, mtr, &spot.at, writer, RecordMode::X_RECORD);
        if let Outcome::Wait(wait) = outcome {
            return Ok(Step::Wait(wait));
        }
        self.compare(tree);
        self.fetched.fetch(mtr, trees, self.old)?;
        let found = place::placement(tree, mtr, &spot.at, self.row, self.changed, scratch)?;
        if found == Placement::Restructure && !may_restructure {
            return Ok(Step::Restructure);
        }
        let table = tree.table();
        let change = Change {
            kind: UndoKind::UpdateDeleted,
            table,
            old: self.old,
            fields: self.changed,
            ordering: self.ordering,
            same_size: found == Placement::InPlace,
            prefixes: self.fetched,
        };
        let needed = change.bytes_max();
        if needed > undo_bytes {
            // Nothing is changed yet: the mini-transaction ends empty.
            return Ok(Step::Done(Attempted::NeedsUndo(needed)));
        }
        let appended = trx.append_undo(mtr, |out, no| change.build(out, no));
        let Some(roll_ptr) = again(appended)? else {
            return Ok(Step::Again);
        };
        let trx_id = trx.id().expect("it writes");
        undo_row::stamp(tree.index(), self.row, trx_id, roll_ptr);
        place::put(tree, mtr, &mut spot, found, self.row, self.changed, scratch)?;
        Ok(Step::Done(Attempted::Done))
    }

    /// Notes the fields in which the new row differs from the old record.
    fn compare(&mut self, tree: &Tree) {
        self.changed.clear();
        let system = tree.index().trx_id_field.unwrap_or(u16::MAX);
        for i in 0..self.row.len() {
            let field = i as u16;
            if field != system
                && field != system + 1
                && !is_same(self.old.field(i), self.row.field(i))
            {
                self.changed.push(field);
            }
        }
    }
}

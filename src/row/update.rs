//! Changing a row: in its place, or – if its clustered key changes – by delete-marking it and
//! inserting another.

use super::codec::Template;
use super::convert::is_same;
use super::insert::{InsertMode, insert_clustered, secondary_trees, shorten, write_blobs};
use super::lock_row::{self, lock_clustered};
use super::observer::Event;
use super::op::{How, Op, Step, Workspace, again};
use super::place::{self, Placement};
use super::undo_row::{self, Change};
use super::{entry, offpage, secondary};
use crate::format::blob::{BlobRef, REF_BYTES, REF_FLAGS};
use crate::format::record::DELETED;
use crate::format::undo_record::UndoKind;
use crate::host::image::RowIn;
use crate::lock::{Outcome, RecordMode};
use crate::mtr::{Mtr, retry};
use crate::page::RecordView;
use crate::schema::{FieldColumn, FieldRef, Tuple};
use crate::tree::{Change as TreeChange, Intent, Tree};
use crate::words::{Error, Result};

/// Bit of a reference's flags byte: the record does not own the BLOB.
const NOT_OWNER: u8 = 0x80;

/// Gives the row with clustered key `key` the values that `new` has in the host columns `columns`.
///
/// Errors: `RecordIsTheSame`, `RecordChanged` (there is no such row), and those of `insert`. After
/// the latter the statement is to be rolled back to where it stood before the row.
pub fn update(
    op: &mut Op<'_>,
    trees: &[Tree],
    template: &Template,
    work: &mut Workspace,
    key: &Tuple,
    columns: &[u16],
    new: RowIn<'_>,
) -> Result<()> {
    work.key.clone_from(key);
    begin(op, trees, work, false)?;
    work.row.clone_from(&work.old);
    work.changed.clear();
    for &number in columns {
        let Some(field) = template.columns[usize::from(number)].field else {
            continue;
        };
        let at = usize::from(field);
        work.entry.clear();
        template.store_column(usize::from(number), new, &mut work.entry);
        let value = work.entry.field(0);
        let same = match (work.row.field(at), value) {
            (FieldRef::External(local), FieldRef::Bytes(new)) => {
                is_same_off_page(op, &trees[0], local, new)?
            }
            (old, new) => is_same(old, new),
        };
        if !same {
            work.row.set(at, value);
            work.changed.push(field);
        }
    }
    change_row(op, trees, work)
}

/// True if the long value, whose local part is `local`, is `new`. The row is locked, so nobody frees
/// or replaces it.
fn is_same_off_page(op: &Op<'_>, clustered: &Tree, local: &[u8], new: &[u8]) -> Result<bool> {
    let reference = BlobRef::of_local_part(local)?;
    let prefix = &local[..local.len() - REF_BYTES];
    let len = prefix.len() + reference.len_bytes() as usize;
    if len != new.len() || !new.starts_with(prefix) {
        return Ok(false);
    }
    let (rest, _) = retry(op.ctx, None, |mtr| {
        let mut rest = Vec::new();
        clustered.read_blob(mtr, reference, &mut rest)?;
        Ok(rest)
    })?;
    Ok(rest == new[prefix.len()..])
}

/// As `update`, with new values by clustered field: for the dictionary (`is_dict`) and for engine
/// columns. Values come whole.
///
/// Errors: as `update`.
pub fn update_fields(
    op: &mut Op<'_>,
    trees: &[Tree],
    work: &mut Workspace,
    key: &Tuple,
    values: &[(u16, FieldRef<'_>)],
    is_dict: bool,
) -> Result<()> {
    work.key.clone_from(key);
    begin(op, trees, work, is_dict)?;
    work.row.clone_from(&work.old);
    work.changed.clear();
    for &(field, value) in values {
        if !is_same(work.row.field(usize::from(field)), value) {
            work.row.set(usize::from(field), value);
            work.changed.push(field);
        }
    }
    change_row(op, trees, work)
}

/// Locks the row of `work.key` and copies it to `work.old`, with the off-page values that secondary
/// entries need.
pub(super) fn begin(
    op: &mut Op<'_>,
    trees: &[Tree],
    work: &mut Workspace,
    is_dict: bool,
) -> Result<()> {
    op.trx.begin_write(op.ctx, is_dict)?;
    lock_row::intend(op, work, trees[0].table().id, true)?;
    let tree = &trees[0];
    loop {
        let mut mtr = Mtr::reader(op.ctx);
        let outcome = loop {
            match copy_locked(op, trees, tree, &mut mtr, work) {
                Err(Error::WouldBlock) => mtr.restart()?,
                other => break other?,
            }
        };
        drop(mtr);
        match outcome {
            Outcome::Granted => return Ok(()),
            Outcome::Wait(wait) => op.wait(&wait)?,
        }
    }
}

fn copy_locked(
    op: &mut Op<'_>,
    trees: &[Tree],
    tree: &Tree,
    mtr: &mut Mtr<'_>,
    work: &mut Workspace,
) -> Result<Outcome> {
    let at = tree.seek_near(mtr, &work.key, Intent::Read, &mut work.leaf)?;
    if usize::from(at.low_match) != work.key.len() {
        return Err(Error::RecordChanged);
    }
    let record = RecordView::new(mtr.view(at.page), at.rec, tree.index(), &mut work.offsets)?;
    let writer = record.trx_id().unwrap_or_default();
    let outcome = lock_clustered(op.trx, mtr, &at, writer, RecordMode::X_RECORD);
    if let Outcome::Granted = outcome {
        record.copy_to(&mut work.old);
        if work.old.info_bits & DELETED != 0 {
            return Err(Error::RecordChanged);
        }
        work.old_fetched.fetch(mtr, trees, &work.old)?;
    }
    Ok(outcome)
}

/// Makes `work.old` become `work.row`; `work.changed` names the fields that differ.
fn change_row(op: &mut Op<'_>, trees: &[Tree], work: &mut Workspace) -> Result<()> {
    if work.changed.is_empty() {
        return Err(Error::RecordIsTheSame);
    }
    let tree = &trees[0];
    let index = tree.index();
    change_prefixes(tree, work);
    work.row.info_bits = 0;
    let table = tree.table();
    shorten(op, trees, table, work)?;
    keep_fetched(work);
    let n_uniq = index.n_uniq;
    if work.changed.iter().any(|&field| field < n_uniq) {
        return change_key(op, trees, work);
    }
    for (field, _) in &work.big.0 {
        // It moves off the page, changed or not; its undo record keeps the value.
        if !work.changed.contains(field) {
            work.changed.push(*field);
        }
    }
    change_in_place(op, trees, work)?;
    write_blobs(op, tree, work)?;
    for tree in secondary_trees(trees) {
        change_secondary(op, trees, tree, work)?;
    }
    op.tell(table, &work.old, Event::Deleted);
    op.tell(table, &work.row, Event::Inserted);
    Ok(())
}

/// A changed column may stand in the clustered key as a prefix too.
fn change_prefixes(tree: &Tree, work: &mut Workspace) {
    let index = tree.index();
    for (i, field) in index.fields[..index.n_uniq as usize].iter().enumerate() {
        let FieldColumn::Stored(ordinal) = field.column else {
            continue;
        };
        let whole = index.field_of_column(ordinal);
        let whole = whole.filter(|_| field.prefix_len != 0);
        let Some(whole) = whole.filter(|&f| work.changed.contains(&(f as u16))) else {
            continue;
        };
        work.entry.clear();
        work.entry.push(work.row.field(whole));
        entry::cut_last(&mut work.entry, field, tree.collations());
        if !is_same(work.row.field(i), work.entry.field(0)) {
            work.row.set(i, work.entry.field(0));
            work.changed.push(i as u16);
        }
    }
}

/// The off-page values that stay: secondary entries of the new row need them as those of the old.
fn keep_fetched(work: &mut Workspace) {
    let Workspace {
        row,
        fetched,
        old_fetched,
        ..
    } = work;
    for i in 0..row.len() {
        let kept = matches!(row.field(i), FieldRef::External(_)) && fetched.get(i).is_none();
        if let (true, Some(value)) = (kept, old_fetched.get(i)) {
            fetched.add(i, value.to_vec());
        }
    }
}

fn change_in_place(op: &mut Op<'_>, trees: &[Tree], work: &mut Workspace) -> Result<()> {
    let tree = &trees[0];
    let table = tree.table();
    let trx_id = op.trx.id().expect("begin_write came before");
    let Workspace {
        tree: scratch,
        row,
        old,
        key,
        leaf,
        changed,
        ordering,
        old_fetched,
        ..
    } = work;
    let same_size = changed.iter().all(|&f| {
        let (a, b) = (old.field(usize::from(f)), row.field(usize::from(f)));
        matches!((a, b), (FieldRef::Bytes(a), FieldRef::Bytes(b)) if a.len() == b.len())
    });
    let change = Change {
        kind: UndoKind::UpdateExisting,
        table,
        old,
        fields: changed,
        ordering: ordering.of(table),
        same_size,
        prefixes: old_fetched,
    };
    let record_bytes = offpage::record_size(tree.index(), row);
    op.change(tree, change.bytes_max(), record_bytes, |trx, mtr, how| {
        let mut spot = place::find_near(tree, mtr, key, how, TreeChange::Both, leaf)?;
        if usize::from(spot.at.low_match) != key.len() {
            return Err(Error::RecordChanged);
        }
        let found = place::placement(tree, mtr, &spot.at, row, changed, scratch)?;
        if found == Placement::Restructure && how == How::Leaf {
            return Ok(Step::Restructure);
        }
        let appended = trx.append_undo(mtr, |out, no| change.build(out, no));
        let Some(roll_ptr) = again(appended)? else {
            return Ok(Step::Again);
        };
        undo_row::stamp(tree.index(), row, trx_id, roll_ptr);
        place::put(tree, mtr, &mut spot, found, row, changed, scratch)?;
        Ok(Step::Done(()))
    })
}

fn change_secondary(
    op: &mut Op<'_>,
    trees: &[Tree],
    tree: &Tree,
    work: &mut Workspace,
) -> Result<()> {
    let clustered = trees[0].index();
    let touched = |&f: &u16| {
        let column = clustered.fields[usize::from(f)].column;
        tree.index()
            .fields
            .iter()
            .any(|field| field.column == column)
    };
    if !work.changed.iter().any(touched) {
        return Ok(());
    }
    let (old, fetched) = (&work.old, &work.old_fetched);
    entry::secondary(tree, clustered, old, fetched, &mut work.old_entry)?;
    secondary::entry_of_row(trees, tree, work)?;
    if entry::is_identical(&work.old_entry, &work.entry) {
        return Ok(());
    }
    secondary::delete_mark(op, tree, &work.old_entry)?;
    secondary::insert(op, trees, tree, work, InsertMode::Plain)
}

/// The clustered key changes: the record is delete-marked, the row inserted under its new key. The
/// off-page values that stay change their owner.
fn change_key(op: &mut Op<'_>, trees: &[Tree], work: &mut Workspace) -> Result<()> {
    let inherited: Vec<u16> = (0..work.row.len())
        .filter(|&i| !work.changed.contains(&(i as u16)))
        .filter(|&i| matches!(work.old.field(i), FieldRef::External(_)))
        .map(|i| i as u16)
        .collect();
    mark_deleted(op, trees, work, &inherited)?;
    op.tell(trees[0].table(), &work.old, Event::Deleted);
    for &field in &inherited {
        let at = usize::from(field);
        let FieldRef::External(local) = work.row.field(at) else {
            continue;
        };
        let mut bytes = local.to_vec();
        let reference = BlobRef::of_local_part(&bytes)?;
        let moved = reference.with_owner(true).with_inherited(true).to_bytes();
        let start = bytes.len() - REF_BYTES;
        bytes[start..].copy_from_slice(&moved);
        work.row.set(at, FieldRef::External(&bytes));
    }
    // The clustered insert uses `old` for a record in its way: the entries of the row come first.
    let mut old_entries = Vec::new();
    for tree in secondary_trees(trees) {
        let mut made = Tuple::new();
        let (old, fetched) = (&work.old, &work.old_fetched);
        entry::secondary(tree, trees[0].index(), old, fetched, &mut made)?;
        old_entries.push(made);
    }
    insert_clustered(op, trees, work, InsertMode::Plain)?;
    write_blobs(op, &trees[0], work)?;
    for (tree, old) in secondary_trees(trees).zip(&old_entries) {
        secondary::entry_of_row(trees, tree, work)?;
        if entry::is_identical(old, &work.entry) {
            continue;
        }
        secondary::delete_mark(op, tree, old)?;
        secondary::insert(op, trees, tree, work, InsertMode::Plain)?;
    }
    op.tell(trees[0].table(), &work.row, Event::Inserted);
    Ok(())
}

/// Delete-marks the clustered record `work.old` of `work.key`, which is locked. It gives up the
/// BLOBs of the fields `disowned`.
pub(super) fn mark_deleted(
    op: &mut Op<'_>,
    trees: &[Tree],
    work: &mut Workspace,
    disowned: &[u16],
) -> Result<()> {
    let tree = &trees[0];
    let table = tree.table();
    let trx_id = op.trx.id().expect("begin_write came before");
    let Workspace {
        tree: scratch,
        old,
        key,
        leaf,
        ordering,
        old_fetched,
        ..
    } = work;
    let change = Change {
        kind: UndoKind::DeleteMark,
        table,
        old,
        fields: &[],
        ordering: ordering.of(table),
        same_size: false,
        prefixes: old_fetched,
    };
    op.change(tree, change.bytes_max(), 0, |trx, mtr, how| {
        let spot = place::find_near(tree, mtr, key, how, TreeChange::Both, leaf)?;
        if usize::from(spot.at.low_match) != key.len() {
            return Err(Error::RecordChanged);
        }
        let appended = trx.append_undo(mtr, |out, no| change.build(out, no));
        let Some(roll_ptr) = again(appended)? else {
            return Ok(Step::Again);
        };
        tree.stamp(mtr, &spot.at, trx_id, roll_ptr, scratch)?;
        tree.set_delete_mark(mtr, &spot.at, true);
        for &field in disowned {
            set_owner(mtr, &spot, &scratch.offsets, usize::from(field), false);
        }
        Ok(Step::Done(()))
    })
}

/// Sets or clears the owner bit of an off-page field of the record, whose offsets are computed.
pub(super) fn set_owner(
    mtr: &mut Mtr<'_>,
    spot: &place::Spot<'_>,
    offsets: &crate::page::Offsets,
    field: usize,
    owner: bool,
) {
    let (_, end) = offsets.range(field);
    let at = spot.at.rec.at() + end - REF_BYTES + REF_FLAGS;
    let now = mtr.view(spot.at.page)[at];
    let flags = match owner {
        true => now & !NOT_OWNER,
        false => now | NOT_OWNER,
    };
    mtr.write_u8(spot.at.page, at, flags);
}

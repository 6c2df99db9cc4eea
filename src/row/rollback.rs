//! Undoing: record by record from the end of the transaction's undo log.
//!
//! Secondary entries go first, the clustered record last: a crash in between finds the record still
//! as the undo record says, and does it again. What is undone already is recognised by the row's
//! DB_ROLL_PTR (M3).

use super::entry;
use super::insert::secondary_trees;
use super::op::{How, Step, system_change};
use super::place::{self, Placement};
use super::remove::{Tables, Undoing, mark_entry, remove, restore_entry, seen_by_all};
use super::undo_row;
use super::update::set_owner;
use crate::format::record::DELETED;
use crate::format::undo_record::{NO_ORDER_CHANGE, UndoField, UndoKind, UndoRecord, UndoUpdate};
use crate::mtr::{CriticalSection, PageCtx, retry};
use crate::os::planted;
use crate::page::RecordView;
use crate::schema::{FieldRef, Tuple};
use crate::tree::{Change, Guess, Tree};
use crate::trx::Trx;
use crate::undo::{self, Position};
use crate::words::{Error, Result, RollPtr, TrxId, UndoNo};

/// Undo records undone before the log is cut.
const CUT_EVERY: u32 = 64;

/// Undoes the whole transaction and ends it: locks go, no transaction is open then.
///
/// Errors: damage in undo pages, what reading gives. The transaction is open still.
pub fn rollback(ctx: &PageCtx, trx: &mut Trx, tables: &dyn Tables) -> Result<()> {
    rollback_unless(ctx, trx, tables, &|| false)
}

/// The same, broken off once `told_to_end` says so: the transaction is open then, its undo log says what
/// is left to be undone, and any later rollback goes on with it.
///
/// Errors: as `rollback`; `Interrupted` if it was broken off.
pub fn rollback_unless(
    ctx: &PageCtx,
    trx: &mut Trx,
    tables: &dyn Tables,
    told_to_end: &dyn Fn() -> bool,
) -> Result<()> {
    trx.begin_rollback(ctx)?;
    undo_down_to(ctx, trx, tables, UndoNo(0), told_to_end)?;
    trx.finish_rollback(ctx)
}

/// Undoes what the transaction did from undo number `keep_below` on: a statement, what follows a
/// savepoint. Locks stay.
///
/// Errors: as `rollback`.
pub fn rollback_to(
    ctx: &PageCtx,
    trx: &mut Trx,
    tables: &dyn Tables,
    keep_below: UndoNo,
) -> Result<()> {
    undo_down_to(ctx, trx, tables, keep_below, &|| false)
}

fn undo_down_to(
    ctx: &PageCtx,
    trx: &mut Trx,
    tables: &dyn Tables,
    keep_below: UndoNo,
    told_to_end: &dyn Fn() -> bool,
) -> Result<()> {
    if trx.next_undo_no() <= keep_below {
        return Ok(());
    }
    let _section = CriticalSection::enter(ctx, "panic in a rollback");
    let sys = trx.system().clone();
    let mut undoing = Undoing::new(ctx, &sys, tables);
    let mut position: Option<Position> = None;
    let mut body = Vec::new();
    let mut since_cut = 0;
    // Damage in one table must not keep the changes of others: they are undone all the same. The undo
    // log stays whole then; going over it again finds undone what is undone (M3).
    let mut failed: Option<Error> = None;
    while let (Some(log), Some(id)) = (trx.undo(), trx.id()) {
        if told_to_end() {
            return Err(Error::Interrupted);
        }
        let rseg = log.rseg_id();
        let (found, _) = retry(ctx, None, |mtr| match position {
            None => undo::read::last(mtr, log, &mut body),
            Some(at) => undo::read::before(mtr, log, at, &mut body),
        })?;
        let Some(found) = found else { break };
        ctx.reached("rollback.step");
        let record = UndoRecord::parse(&body)?;
        if record.undo_no < keep_below {
            break;
        }
        let undone = match planted("rollback.record_skipped") {
            true => Ok(()),
            false => {
                let roll_ptr = found.roll_ptr(rseg, &body)?;
                undo_one(&mut undoing, id, roll_ptr, &record, told_to_end)
            }
        };
        position = Some(found);
        match undone {
            Ok(()) => {}
            Err(error) if is_of_a_table(&error) => {
                failed.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
        since_cut += 1;
        if since_cut >= CUT_EVERY && failed.is_none() {
            trx.cut_undo(ctx, record.undo_no)?;
            (position, since_cut) = (None, 0);
        }
    }
    match failed {
        None => trx.cut_undo(ctx, keep_below),
        Some(error) => Err(error),
    }
}

/// Damage of one table or its file, which says nothing of others.
fn is_of_a_table(error: &Error) -> bool {
    matches!(
        error,
        Error::Corrupt(_)
            | Error::Io(_)
            | Error::TablespaceMissing(_)
            | Error::Unsupported(_)
            | Error::CollationUnknown(_)
    )
}

/// Undoes what one record says.
fn undo_one(
    undoing: &mut Undoing<'_>,
    id: TrxId,
    roll_ptr: RollPtr,
    record: &UndoRecord<'_>,
    told_to_end: &dyn Fn() -> bool,
) -> Result<()> {
    if record.kind == UndoKind::RenameTable {
        return undoing
            .tables
            .undo_rename(record.table_id, record.old_name()?);
    }
    let Some(table) = undoing.tables.open(record.table_id)? else {
        return Ok(());
    };
    let trees = table.trees();
    if trees.iter().any(|tree| tree.index().is_spatial()) {
        let name = &trees[0].table().name;
        return Err(Error::unsupported(format!(
            "undoing changes of table {name}, which has a SPATIAL index: the server that made them can"
        )));
    }
    let n_uniq = trees[0].index().n_uniq as usize;
    match record.kind {
        UndoKind::Insert => {
            undo_row::key_of(record.insert(n_uniq)?.key, &mut undoing.key)?;
            match undoing.find(trees, roll_ptr)? {
                true => undo_insert(undoing, trees, roll_ptr),
                false => Ok(()),
            }
        }
        UndoKind::UpdateExisting | UndoKind::UpdateDeleted | UndoKind::DeleteMark => {
            let update = record.update(n_uniq)?;
            undo_row::key_of(update.key.clone(), &mut undoing.key)?;
            if !undoing.find(trees, roll_ptr)? {
                return Ok(());
            }
            old_version(undoing, trees, &update)?;
            if record.kind == UndoKind::DeleteMark {
                return undo_delete(undoing, trees, id, roll_ptr);
            }
            undo_update(undoing, trees, id, roll_ptr, record, &update)
        }
        UndoKind::Empty => undo_load(undoing.ctx, trees, told_to_end),
        // Instant metadata is undone by those who write it.
        UndoKind::RenameTable | UndoKind::InsertMetadata => Ok(()),
    }
}

/// The table was empty: it is locked since, so all that is there goes.
fn undo_load(ctx: &PageCtx, trees: &[Tree], told_to_end: &dyn Fn() -> bool) -> Result<()> {
    for tree in secondary_trees(trees) {
        tree.make_empty(ctx, told_to_end)?;
    }
    trees[0].make_empty(ctx, told_to_end)
}

fn old_version(undoing: &mut Undoing<'_>, trees: &[Tree], update: &UndoUpdate<'_>) -> Result<()> {
    let index = trees[0].index();
    undoing.old.clone_from(&undoing.row);
    undo_row::apply(index, update, &mut undoing.old)?;
    let Undoing {
        ctx,
        old,
        old_fetched,
        ..
    } = undoing;
    retry(ctx, None, |mtr| old_fetched.fetch(mtr, trees, old))?;
    Ok(())
}

fn undo_insert(undoing: &mut Undoing<'_>, trees: &[Tree], roll_ptr: RollPtr) -> Result<()> {
    let mut made = Tuple::new();
    for tree in secondary_trees(trees) {
        let (row, fetched) = (&undoing.row, &undoing.fetched);
        entry::secondary(tree, trees[0].index(), row, fetched, &mut made)?;
        remove(
            undoing.ctx,
            tree,
            &made,
            &mut Guess::default(),
            &mut undoing.scratch,
            &mut |_, _| Ok(true),
        )?;
    }
    let inherited: Vec<usize> = (0..undoing.row.len())
        .filter(|&i| is_inherited(undoing.row.field(i)))
        .collect();
    if !inherited.is_empty() {
        // The older version of the row takes its BLOBs back: the new one must not free them.
        for &field in &inherited {
            undoing.row.set(field, FieldRef::Null);
        }
    }
    undoing.remove_row(trees, roll_ptr)
}

fn is_inherited(field: FieldRef<'_>) -> bool {
    match field {
        FieldRef::External(local) => {
            crate::format::blob::BlobRef::of_local_part(local).is_ok_and(|r| r.is_inherited())
        }
        _ => false,
    }
}

fn undo_delete(
    undoing: &mut Undoing<'_>,
    trees: &[Tree],
    id: TrxId,
    roll_ptr: RollPtr,
) -> Result<()> {
    let mut made = Tuple::new();
    for tree in secondary_trees(trees) {
        let (old, fetched) = (&undoing.old, &undoing.old_fetched);
        entry::secondary(tree, trees[0].index(), old, fetched, &mut made)?;
        restore_entry(undoing.ctx, tree, &made, id, &mut undoing.scratch)?;
    }
    let tree = &trees[0];
    let Undoing {
        ctx,
        key,
        old,
        scratch,
        ..
    } = undoing;
    let (trx_id, before) = (
        undo_row::trx_id_of(tree.index(), old),
        undo_row::roll_ptr_of(tree.index(), old),
    );
    system_change(ctx, tree, 0, |mtr, how| {
        let spot = place::find(tree, mtr, key, how, Change::Both)?;
        if usize::from(spot.at.low_match) != key.len() {
            return Ok(Step::Done(()));
        }
        let view = mtr.view(spot.at.page);
        let record = RecordView::new(view, spot.at.rec, tree.index(), &mut scratch.offsets)?;
        if record.roll_ptr() != Some(roll_ptr) {
            return Ok(Step::Done(()));
        }
        tree.stamp(mtr, &spot.at, trx_id, before, scratch)?;
        tree.set_delete_mark(mtr, &spot.at, old.info_bits & DELETED != 0);
        for field in (0..scratch.offsets.len()).filter(|&i| scratch.offsets.is_external(i)) {
            set_owner(mtr, &spot, &scratch.offsets, field, true);
        }
        Ok(Step::Done(()))
    })
}

fn undo_update(
    undoing: &mut Undoing<'_>,
    trees: &[Tree],
    id: TrxId,
    roll_ptr: RollPtr,
    record: &UndoRecord<'_>,
    update: &UndoUpdate<'_>,
) -> Result<()> {
    let was_deleted = undoing.old.info_bits & DELETED != 0;
    if was_deleted || record.update_info & NO_ORDER_CHANGE == 0 {
        for tree in secondary_trees(trees) {
            undo_entries(undoing, trees, tree, id, was_deleted)?;
        }
    }
    let mut changed = Vec::new();
    for change in update.changes.clone() {
        if let UndoField::Stored { field, .. } = change? {
            changed.push(field as u16);
        }
    }
    for &field in &changed {
        undoing.free_field(&trees[0], usize::from(field), roll_ptr, true)?;
    }
    restore_row(undoing, &trees[0], roll_ptr, &changed)?;
    if was_deleted {
        remove_if_purged(undoing, trees)?;
    }
    Ok(())
}

/// The new version's entry goes, unless an older version has it: then only its life ends. The old
/// version's entry lives again.
fn undo_entries(
    undoing: &mut Undoing<'_>,
    trees: &[Tree],
    tree: &Tree,
    id: TrxId,
    was_deleted: bool,
) -> Result<()> {
    let index = trees[0].index();
    let (mut new, mut old) = (Tuple::new(), Tuple::new());
    entry::secondary(tree, index, &undoing.row, &undoing.fetched, &mut new)?;
    entry::secondary(tree, index, &undoing.old, &undoing.old_fetched, &mut old)?;
    if !was_deleted && entry::is_identical(&new, &old) {
        return Ok(());
    }
    if was_deleted || !entry::is_equal(tree, &new, &old) {
        let ctx = undoing.ctx;
        let (needed, _) = retry(ctx, None, |mtr| undoing.older_has(mtr, trees, tree, &new))?;
        match needed {
            true => {
                mark_entry(ctx, tree, &new, id)?;
            }
            false => {
                let leaf = &mut Guess::default();
                remove(ctx, tree, &new, leaf, &mut undoing.scratch, &mut |_, _| {
                    Ok(true)
                })?;
            }
        }
    }
    if !was_deleted {
        restore_entry(undoing.ctx, tree, &old, id, &mut undoing.scratch)?;
    }
    Ok(())
}

/// Gives the clustered record the bytes of `self.old`.
fn restore_row(
    undoing: &mut Undoing<'_>,
    tree: &Tree,
    roll_ptr: RollPtr,
    changed: &[u16],
) -> Result<()> {
    let Undoing {
        ctx,
        key,
        old,
        scratch,
        ..
    } = undoing;
    let bytes = super::offpage::record_size(tree.index(), old);
    system_change(ctx, tree, bytes, |mtr, how| {
        let mut spot = place::find(tree, mtr, key, how, Change::Both)?;
        if usize::from(spot.at.low_match) != key.len() {
            return Ok(Step::Done(()));
        }
        let view = mtr.view(spot.at.page);
        let record = RecordView::new(view, spot.at.rec, tree.index(), &mut scratch.offsets)?;
        if record.roll_ptr() != Some(roll_ptr) {
            return Ok(Step::Done(()));
        }
        let found = place::placement(tree, mtr, &spot.at, old, changed, scratch)?;
        if found == Placement::Restructure && how == How::Leaf {
            return Ok(Step::Restructure);
        }
        place::put(tree, mtr, &mut spot, found, old, changed, scratch)?;
        Ok(Step::Done(()))
    })
}

/// A record that is delete-marked again: purge may have passed it while it lived. If every view sees
/// the deletion, it goes now.
fn remove_if_purged(undoing: &mut Undoing<'_>, trees: &[Tree]) -> Result<()> {
    let index = trees[0].index();
    let deleter = undo_row::trx_id_of(index, &undoing.old);
    if !seen_by_all(undoing.sys, deleter) {
        return Ok(());
    }
    let roll_ptr = undo_row::roll_ptr_of(index, &undoing.old);
    undoing.row.clone_from(&undoing.old);
    undoing.remove_row(trees, roll_ptr)
}

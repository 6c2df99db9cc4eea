//! The rows' side of purge: what a committed undo record leaves to be removed.

use super::entry;
use super::insert::secondary_trees;
use super::remove::{Seen, Tables, Undoing, remove};
use super::undo_row;
use crate::format::blob::BlobRef;
use crate::format::record::DELETED;
use crate::format::undo_record::{
    NO_ORDER_CHANGE, UndoField, UndoKind, UndoRecord, UndoUpdate, UndoValue,
};
use crate::mtr::{Mtr, PageCtx};
use crate::page::{Offsets, RecordView, SearchMode};
use crate::schema::Tuple;
use crate::tree::{Guess, Intent, Seek, Tree};
use crate::trx::TrxSystem;
use crate::words::{Error, Result, RollPtr};

/// Removes what the undo record at `roll_ptr`, of a transaction that every view sees, leaves
/// behind: the delete-marked record if it is still the newest version, entries that no version has,
/// BLOBs that the old version alone held.
///
/// Errors: damage, what reading gives. It may be called again.
pub fn purge_record(
    ctx: &PageCtx,
    sys: &TrxSystem,
    tables: &dyn Tables,
    roll_ptr: RollPtr,
    record: &UndoRecord<'_>,
) -> Result<()> {
    Purging::new(ctx, sys, tables).record(roll_ptr, record)
}

/// Purge of many records, with memory that is reused.
pub struct Purging<'e>(Undoing<'e>);

impl<'e> Purging<'e> {
    /// Purges rows of the tables that `tables` opens.
    pub fn new(ctx: &'e PageCtx, sys: &'e TrxSystem, tables: &'e dyn Tables) -> Purging<'e> {
        Purging(Undoing::new(ctx, sys, tables))
    }

    /// As `purge_record`.
    ///
    /// Errors: as there.
    pub fn record(&mut self, roll_ptr: RollPtr, record: &UndoRecord<'_>) -> Result<()> {
        purge_with(&mut self.0, roll_ptr, record)
    }
}

fn purge_with(undoing: &mut Undoing<'_>, roll_ptr: RollPtr, record: &UndoRecord<'_>) -> Result<()> {
    let (ctx, sys, tables) = (undoing.ctx, undoing.sys, undoing.tables);
    if !record.kind.has_old_version() {
        return Ok(());
    }
    let is_delete = record.kind == UndoKind::DeleteMark;
    let entries = is_delete
        || record.kind == UndoKind::UpdateExisting && record.update_info & NO_ORDER_CHANGE == 0;
    if !entries && !record.extern_updated {
        return Ok(());
    }
    let Some(table) = tables.open(record.table_id)? else {
        return Ok(());
    };
    let trees = table.trees();
    let update = record.update(trees[0].index().n_uniq as usize)?;
    undo_row::key_of(update.key.clone(), &mut undoing.key)?;
    if entries {
        let known = partial_row(undoing, trees, &update)?;
        for tree in secondary_trees(trees) {
            remove_entry(undoing, trees, tree, &known, &update, is_delete)?;
        }
    }
    if is_delete {
        if undoing.find(trees, roll_ptr)? && undoing.row.info_bits & DELETED != 0 {
            undoing.remove_row(trees, roll_ptr)?;
        }
        return Ok(());
    }
    if record.extern_updated {
        free_old_blobs(ctx, sys, trees, roll_ptr, &update)?;
    }
    Ok(())
}

/// Puts what the undo record knows of the old row into `old`: key, changed and ordering columns.
/// Returns which fields that are.
fn partial_row(
    undoing: &mut Undoing<'_>,
    trees: &[Tree],
    update: &UndoUpdate<'_>,
) -> Result<Vec<bool>> {
    let index = trees[0].index();
    let mut known = vec![false; index.fields.len()];
    undoing.old.clear();
    undoing.old_fetched.clear();
    for (i, known) in known.iter_mut().enumerate() {
        *known = i < undoing.key.len();
        match *known {
            true => undoing.old.push(undoing.key.field(i)),
            false => undoing.old.push_null(),
        }
    }
    for field in update.changes.clone().chain(update.ordering.clone()) {
        let UndoField::Stored { field, value } = field? else {
            continue;
        };
        let at = field as usize;
        if at >= known.len() {
            let why = format!("an undo record names field {at} of {}", known.len());
            return Err(Error::corrupt_bytes(why));
        }
        if let UndoValue::Extern(part) = &value {
            let local = part.local();
            let prefix = local.len() - crate::format::blob::REF_BYTES;
            undoing.old_fetched.add(at, local[..prefix].to_vec());
        }
        undo_row::set_value(&mut undoing.old, at, &value);
        known[at] = true;
    }
    Ok(known)
}

/// Removes the old version's entry of a secondary tree if it is delete-marked and no version of the
/// row has it.
fn remove_entry(
    undoing: &mut Undoing<'_>,
    trees: &[Tree],
    tree: &Tree,
    known: &[bool],
    update: &UndoUpdate<'_>,
    is_delete: bool,
) -> Result<()> {
    let clustered = trees[0].index();
    let mut touched = is_delete;
    for field in &tree.index().fields {
        let from = entry::clustered_field(field, clustered, tree.index())?;
        if !known[from] {
            // The index is younger than the undo record.
            return Ok(());
        }
        for change in update.changes.clone() {
            let named =
                matches!(change?, UndoField::Stored { field, .. } if field as usize == from);
            touched |= named;
        }
    }
    if !touched {
        return Ok(());
    }
    let mut wanted = Tuple::new();
    entry::secondary(
        tree,
        clustered,
        &undoing.old,
        &undoing.old_fetched,
        &mut wanted,
    )?;
    let ctx = undoing.ctx;
    let mut scratch = std::mem::take(&mut undoing.scratch);
    let mut offsets = Offsets::new();
    let saved = undoing.old.clone();
    let mut leaf = Guess::default();
    let mut wants = |mtr: &mut Mtr<'_>, seen: Seen| {
        if !seen.is_deleted {
            return Ok(false);
        }
        let needed = is_needed(undoing, mtr, trees, tree, &wanted, &mut offsets)?;
        Ok(!needed)
    };
    let done = remove(ctx, tree, &wanted, &mut leaf, &mut scratch, &mut wants);
    undoing.old = saved;
    undoing.scratch = scratch;
    done.map(|_| ())
}

/// True if the row has the entry in a version that somebody may read.
fn is_needed(
    undoing: &mut Undoing<'_>,
    mtr: &mut Mtr<'_>,
    trees: &[Tree],
    tree: &Tree,
    wanted: &Tuple,
    offsets: &mut Offsets,
) -> Result<bool> {
    let clustered = &trees[0];
    let seek = Seek::Key(&undoing.key, SearchMode::LessOrEqual);
    let at = clustered.seek(mtr, seek, Intent::Read)?;
    if usize::from(at.low_match) != undoing.key.len() {
        return Ok(false);
    }
    RecordView::new(mtr.view(at.page), at.rec, clustered.index(), offsets)?
        .copy_to(&mut undoing.old);
    let needed = undoing.older_has(mtr, trees, tree, wanted)?;
    Ok(needed)
}

/// Frees the BLOBs that the old version's changed fields held.
fn free_old_blobs(
    ctx: &PageCtx,
    sys: &TrxSystem,
    trees: &[Tree],
    roll_ptr: RollPtr,
    update: &UndoUpdate<'_>,
) -> Result<()> {
    for (number, field) in update.changes.clone().enumerate() {
        let UndoField::Stored {
            value: UndoValue::Extern(part),
            ..
        } = field?
        else {
            continue;
        };
        let reference = BlobRef::of_local_part(part.local())?;
        if !reference.is_owner() || reference.is_unwritten() {
            continue;
        }
        let n_uniq = trees[0].index().n_uniq as usize;
        trees[0].free_blob_of_undo(ctx, reference, &mut |mtr| {
            crate::undo::read::field_reference(mtr, &sys.rsegs, roll_ptr, n_uniq, number)
        })?;
    }
    Ok(())
}

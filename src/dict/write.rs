//! Rows of SYS_*: inserting and delete-marking them, with undo, like any row.
//!
//! `row` does this for users' tables with locks, off-page columns and all row formats. Rows of SYS_*
//! are short REDUNDANT records that nobody locks – `DictGuard` keeps others out – and `dict` stands
//! below `row`.

use super::open_table::OpenTable;
use crate::format::record::DELETED;
use crate::format::undo_build::UndoBuilder;
use crate::format::undo_record::{OldVersion, UndoField, UndoKind, UndoValue};
use crate::mtr::{Budget, Class, Mtr, PageCtx, retry};
use crate::page::{Offsets, RecordView, SearchMode};
use crate::schema::{FieldColumn, FieldRef, Index, Tuple};
use crate::tree::{Change, Intent, Position, Scratch, Seek, Tree};
use crate::trx::Trx;
use crate::undo::Needs;
use crate::words::{Error, Result, RollPtr, TableId, TrxId, UndoNo, be};

/// Redo of one change on a leaf.
const LOG_BYTES: usize = 32 << 10;
/// An undo record of a SYS_* row: key, values, ordering columns.
const UNDO_BYTES: usize = 1024;

/// The transaction that the bootstrap's rows name: one that ended before all others.
pub const BOOT_TRX: TrxId = TrxId(1);

/// Who changes the dictionary.
pub enum Writer<'t> {
    /// The creation of an instance: no undo.
    Bootstrap,
    /// A transaction after `begin_write`.
    Trx(&'t mut Trx),
}

/// How one attempt ended.
enum Attempt {
    Done,
    /// More undo must be reserved.
    MoreUndo,
    /// The leaf has no room.
    NoRoom,
}

impl Writer<'_> {
    fn trx_id(&self) -> Result<TrxId> {
        match self {
            Writer::Bootstrap => Ok(BOOT_TRX),
            Writer::Trx(trx) => trx
                .id()
                .ok_or_else(|| Error::internal("the dictionary changes before begin_write")),
        }
    }

    fn reserve(&mut self, ctx: &PageCtx) -> Result<Needs> {
        match self {
            Writer::Bootstrap => Ok(Needs::default()),
            Writer::Trx(trx) => trx.reserve_undo(ctx, UNDO_BYTES),
        }
    }

    /// `None`: more undo must be reserved.
    fn append(
        &mut self,
        mtr: &mut Mtr<'_>,
        build: impl FnOnce(&mut Vec<u8>, UndoNo),
    ) -> Result<Option<RollPtr>> {
        match self {
            Writer::Bootstrap => Ok(Some(RollPtr::NO_UNDO)),
            Writer::Trx(trx) => match trx.append_undo(mtr, build) {
                Err(Error::WouldBlock) => Ok(None),
                other => other.map(Some),
            },
        }
    }
}

/// Inserts a row into a dictionary table: `values` by column. A delete-marked row of the same key is
/// replaced.
///
/// # Errors
/// `DuplicateKey`; what reading and undo give.
pub fn insert(
    ctx: &PageCtx,
    table: &OpenTable,
    values: &Tuple,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let trx_id = writer.trx_id()?;
    let row = entry(table.clustered().index(), values, trx_id);
    let mut scratch = Scratch::default();
    insert_clustered(ctx, table, &row, writer, &mut scratch)?;
    for tree in &table.trees()[1..] {
        let entry = entry(tree.index(), values, trx_id);
        insert_secondary(ctx, tree, &entry, trx_id, &mut scratch)?;
    }
    Ok(())
}

/// Delete-marks the row with the clustered key `key`, and its secondary entries; false if there is no
/// such row.
///
/// # Errors
/// What reading and undo give.
pub fn delete(
    ctx: &PageCtx,
    table: &OpenTable,
    key: &Tuple,
    writer: &mut Writer<'_>,
) -> Result<bool> {
    let trx_id = writer.trx_id()?;
    let mut scratch = Scratch::default();
    let mut row = Tuple::new();
    loop {
        let budget = budget(writer.reserve(ctx)?);
        let (attempt, _) = retry(ctx, Some(budget), |mtr| {
            delete_clustered(mtr, table, key, &mut row, writer, trx_id, &mut scratch)
        })?;
        match attempt {
            None => return Ok(false),
            Some(Attempt::Done) => break,
            Some(_) => continue,
        }
    }
    let clustered = table.clustered().index();
    let value_of = |column: FieldColumn| {
        let at = clustered.fields.iter().position(|f| f.column == column);
        row.field(at.expect("every column is in the clustered index"))
    };
    for tree in &table.trees()[1..] {
        let mut entry = Tuple::new();
        for field in &tree.index().fields {
            entry.push(value_of(field.column));
        }
        mark_secondary(ctx, tree, &entry, true, trx_id, &mut scratch)?;
    }
    Ok(true)
}

fn budget(undo: Needs) -> Budget {
    Budget::dictionary(LOG_BYTES + undo.log_bytes).with_frames(undo.frames + 2)
}

/// The entry of a row in an index; DB_ROLL_PTR is set when it is known.
fn entry(index: &Index, values: &Tuple, trx_id: TrxId) -> Tuple {
    let mut entry = Tuple::new();
    for field in &index.fields {
        match field.column {
            FieldColumn::Stored(i) if (i as usize) < values.len() => {
                entry.push(values.field(i as usize))
            }
            _ if field.ty.len == 6 => {
                let mut bytes = [0; 6];
                be::put_u48(&mut bytes, 0, trx_id.0);
                entry.push_bytes(&bytes);
            }
            _ => entry.push_bytes(&roll_ptr_bytes(RollPtr::NO_UNDO)),
        }
    }
    entry
}

fn roll_ptr_bytes(roll_ptr: RollPtr) -> [u8; 7] {
    let bytes = roll_ptr.0.to_be_bytes();
    std::array::from_fn(|i| bytes[i + 1])
}

fn undo_value(field: FieldRef<'_>) -> UndoValue<'_> {
    match field {
        FieldRef::Null => UndoValue::Null,
        FieldRef::Bytes(b) | FieldRef::External(b) => UndoValue::Bytes(b),
    }
}

/// Sets DB_ROLL_PTR of a clustered entry.
fn set_roll_ptr(index: &Index, row: &mut Tuple, roll_ptr: RollPtr) {
    let at = index.roll_ptr_field().expect("a clustered index") as usize;
    row.set(at, FieldRef::Bytes(&roll_ptr_bytes(roll_ptr)));
}

fn insert_clustered(
    ctx: &PageCtx,
    table: &OpenTable,
    row: &Tuple,
    writer: &mut Writer<'_>,
    scratch: &mut Scratch,
) -> Result<()> {
    let tree = table.clustered();
    loop {
        let needs = writer.reserve(ctx)?;
        let (attempt, _) = retry(ctx, Some(budget(needs)), |mtr| {
            let seek = Seek::Key(row, SearchMode::LessOrEqual);
            let mut at = tree.seek(mtr, seek, Intent::Modify)?;
            if let Some(done) = reuse(mtr, table, &at, row, writer, scratch)? {
                return Ok(done);
            }
            if !tree.fits(mtr, &at, row, scratch)? {
                return Ok(Attempt::NoRoom);
            }
            let Some(row) = stamped(mtr, table, row, writer)? else {
                return Ok(Attempt::MoreUndo);
            };
            tree.insert(mtr, &mut at, &row, scratch)?;
            Ok(Attempt::Done)
        })?;
        match attempt {
            Attempt::Done => return Ok(()),
            Attempt::MoreUndo => continue,
            Attempt::NoRoom => {}
        }
        let _room = tree.reserve_for_change(ctx, Class::Dictionary)?;
        let change = tree.change_budget(ctx, Class::Dictionary);
        let budget = Budget {
            log_bytes: change.log_bytes + needs.log_bytes,
            frames: change.frames + needs.frames,
            ..change
        };
        let (attempt, _) = retry(ctx, Some(budget), |mtr| {
            let (at, mut path) = tree.seek_to_restructure(mtr, row, Change::Insert)?;
            if let Some(done) = reuse(mtr, table, &at, row, writer, scratch)? {
                return Ok(done);
            }
            let Some(row) = stamped(mtr, table, row, writer)? else {
                return Ok(Attempt::MoreUndo);
            };
            tree.insert_restructuring(mtr, &mut path, &row, scratch)?;
            Ok(Attempt::Done)
        })?;
        if let Attempt::Done = attempt {
            return Ok(());
        }
    }
}

/// Writes the undo of an insert; the row with its roll pointer.
fn stamped(
    mtr: &mut Mtr<'_>,
    table: &OpenTable,
    row: &Tuple,
    writer: &mut Writer<'_>,
) -> Result<Option<Tuple>> {
    let index = table.clustered().index();
    let roll_ptr = writer.append(mtr, |out, no| {
        let mut undo = UndoBuilder::begin(out, UndoKind::Insert, 0, no, table.id());
        for i in 0..index.n_uniq as usize {
            undo.value(&undo_value(row.field(i)));
        }
    })?;
    Ok(roll_ptr.map(|roll_ptr| {
        let mut row = row.clone();
        set_roll_ptr(index, &mut row, roll_ptr);
        row
    }))
}

/// If a record with the row's key is at `at`: a live one is a duplicate, a delete-marked one becomes
/// the row.
fn reuse(
    mtr: &mut Mtr<'_>,
    table: &OpenTable,
    at: &Position,
    row: &Tuple,
    writer: &mut Writer<'_>,
    scratch: &mut Scratch,
) -> Result<Option<Attempt>> {
    let tree = table.clustered();
    let index = tree.index();
    if (at.low_match as usize) < index.n_uniq as usize {
        return Ok(None);
    }
    let mut offsets = Offsets::new();
    let view = RecordView::new(mtr.view(at.page), at.rec, index, &mut offsets)?;
    if !view.is_deleted() {
        return Err(Error::DuplicateKey { index: 0 });
    }
    let old_version = old_version(&view)?;
    let mut old = Tuple::new();
    view.copy_to(&mut old);
    let first = index.n_uniq as usize + 2;
    let changes: Vec<usize> = (first..row.len())
        .filter(|&i| old.field(i) != row.field(i))
        .collect();
    let fits =
        |&i: &usize| old.field(i).bytes().map(<[u8]>::len) == row.field(i).bytes().map(<[u8]>::len);
    if !changes.iter().all(fits) {
        return Err(Error::internal("a row of the dictionary of another size"));
    }
    let roll_ptr = writer.append(mtr, |out, no| {
        let mut undo = UndoBuilder::begin(out, UndoKind::UpdateDeleted, 0, no, table.id());
        undo.old_version(&old_version);
        for i in 0..index.n_uniq as usize {
            undo.value(&undo_value(old.field(i)));
        }
        undo.count(changes.len() as u32);
        for &i in &changes {
            undo.field(&UndoField::Stored {
                field: i as u32,
                value: undo_value(old.field(i)),
            });
        }
        ordering_columns(&mut undo, table, &old, &changes);
    })?;
    let Some(roll_ptr) = roll_ptr else {
        return Ok(Some(Attempt::MoreUndo));
    };
    let values = changes.iter().map(|&i| (i, row.field(i)));
    if !tree.update_in_place(mtr, at, values, scratch)? {
        return Err(Error::internal(
            "a row of the dictionary does not fit its place",
        ));
    }
    tree.stamp(mtr, at, writer.trx_id()?, roll_ptr, scratch)?;
    tree.set_delete_mark(mtr, at, false);
    Ok(Some(Attempt::Done))
}

fn old_version(view: &RecordView<'_>) -> Result<OldVersion> {
    match (view.trx_id(), view.roll_ptr()) {
        (Some(trx_id), Some(roll_ptr)) => Ok(OldVersion {
            info_bits: view.info_bits() & DELETED,
            trx_id,
            roll_ptr,
        }),
        _ => Err(Error::corrupt_bytes(
            "a row of the dictionary without DB_TRX_ID",
        )),
    }
}

/// The list by which purge finds the secondary entries of a version: all ordering columns that are
/// not among the changes.
fn ordering_columns(undo: &mut UndoBuilder<'_>, table: &OpenTable, row: &Tuple, changes: &[usize]) {
    undo.begin_list();
    let fields = &table.clustered().index().fields;
    for (i, field) in fields.iter().enumerate() {
        let FieldColumn::Stored(ordinal) = field.column else {
            continue;
        };
        if table.def().is_ordering_column(ordinal) && !changes.contains(&i) {
            undo.field(&UndoField::Stored {
                field: i as u32,
                value: undo_value(row.field(i)),
            });
        }
    }
    undo.end_list();
}

/// `None`: there is no such row.
fn delete_clustered(
    mtr: &mut Mtr<'_>,
    table: &OpenTable,
    key: &Tuple,
    row: &mut Tuple,
    writer: &mut Writer<'_>,
    trx_id: TrxId,
    scratch: &mut Scratch,
) -> Result<Option<Attempt>> {
    let tree = table.clustered();
    let index = tree.index();
    let at = tree.seek(mtr, Seek::Key(key, SearchMode::LessOrEqual), Intent::Modify)?;
    if (at.low_match as usize) < index.n_uniq as usize {
        return Ok(None);
    }
    let mut offsets = Offsets::new();
    let view = RecordView::new(mtr.view(at.page), at.rec, index, &mut offsets)?;
    if view.is_deleted() {
        return Ok(None);
    }
    let old_version = old_version(&view)?;
    view.copy_to(row);
    let roll_ptr = writer.append(mtr, |out, no| {
        let mut undo = UndoBuilder::begin(out, UndoKind::DeleteMark, 0, no, table.id());
        undo.old_version(&old_version);
        for i in 0..index.n_uniq as usize {
            undo.value(&undo_value(row.field(i)));
        }
        ordering_columns(&mut undo, table, row, &[]);
    })?;
    let Some(roll_ptr) = roll_ptr else {
        return Ok(Some(Attempt::MoreUndo));
    };
    tree.stamp(mtr, &at, trx_id, roll_ptr, scratch)?;
    tree.set_delete_mark(mtr, &at, true);
    Ok(Some(Attempt::Done))
}

fn insert_secondary(
    ctx: &PageCtx,
    tree: &Tree,
    entry: &Tuple,
    trx_id: TrxId,
    scratch: &mut Scratch,
) -> Result<()> {
    if mark_secondary(ctx, tree, entry, false, trx_id, scratch)? {
        return Ok(());
    }
    let (done, _) = retry(ctx, Some(Budget::dictionary(LOG_BYTES)), |mtr| {
        let seek = Seek::Key(entry, SearchMode::LessOrEqual);
        let mut at = tree.seek(mtr, seek, Intent::Modify)?;
        if !tree.fits(mtr, &at, entry, scratch)? {
            return Ok(false);
        }
        tree.insert(mtr, &mut at, entry, scratch)?;
        tree.raise_max_trx_id(mtr, at.page, trx_id);
        Ok(true)
    })?;
    if done {
        return Ok(());
    }
    let _room = tree.reserve_for_change(ctx, Class::Dictionary)?;
    let budget = tree.change_budget(ctx, Class::Dictionary);
    retry(ctx, Some(budget), |mtr| {
        let (_, mut path) = tree.seek_to_restructure(mtr, entry, Change::Insert)?;
        let at = tree.insert_restructuring(mtr, &mut path, entry, scratch)?;
        tree.raise_max_trx_id(mtr, at.page, trx_id);
        Ok(())
    })?;
    Ok(())
}

/// Sets or clears the mark of the entry that equals `entry`; false if there is none.
fn mark_secondary(
    ctx: &PageCtx,
    tree: &Tree,
    entry: &Tuple,
    deleted: bool,
    trx_id: TrxId,
    _scratch: &mut Scratch,
) -> Result<bool> {
    let (found, _) = retry(ctx, Some(Budget::dictionary(LOG_BYTES)), |mtr| {
        let seek = Seek::Key(entry, SearchMode::LessOrEqual);
        let at = tree.seek(mtr, seek, Intent::Modify)?;
        if (at.low_match as usize) < tree.index().n_tree_unique() {
            return Ok(false);
        }
        tree.raise_max_trx_id(mtr, at.page, trx_id);
        tree.set_delete_mark(mtr, &at, deleted);
        Ok(true)
    })?;
    Ok(found)
}

/// Appends the undo record by which a rollback gives a table its name back.
///
/// # Errors
/// What undo gives.
pub fn note_rename(ctx: &PageCtx, trx: &mut Trx, id: TableId, old_name: &str) -> Result<()> {
    loop {
        let needs = trx.reserve_undo(ctx, old_name.len() + 32)?;
        let mut mtr = Mtr::start(ctx, budget(needs))?;
        let appended = trx.append_undo(&mut mtr, |out, no| {
            UndoBuilder::begin(out, UndoKind::RenameTable, 0, no, id).name(old_name);
        });
        mtr.commit();
        match appended {
            Err(Error::WouldBlock) => continue,
            other => return other.map(|_| ()),
        }
    }
}

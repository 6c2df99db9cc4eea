//! What rollback and purge share: finding the record that an undo record is about, removing records
//! and entries, freeing off-page values.

use super::entry::{self, Fetched};
use super::offpage::find_reference;
use super::op::{How, Step, system_change};
use super::place::{self, Placement};
use super::undo_row;
use super::version::{Steps, Versions};
use crate::dict::system_tables::IndexRow;
use crate::dict::{Dict, InUse, OpenTable};
use crate::format::blob::BlobRef;
use crate::format::record::DELETED;
use crate::mtr::{Mtr, PageCtx, retry};
use crate::page::{Offsets, RecordView, SearchMode};
use crate::schema::{FieldRef, Tuple, system};
use crate::sync::Arc;
use crate::tree::{Change, Guess, Intent, Scratch, Seek, Tree};
use crate::trx::{TrxState, TrxSystem};
use crate::words::{Error, Result, RollPtr, SpaceId, TableId, TrxId};

/// Tables by id, as undo records name them.
pub trait Tables {
    /// The open table; `None` if it is gone: its records are skipped.
    ///
    /// Errors: what keeps a table that is there from being used; `Unsupported` for one that only another
    /// version can change. Its records wait.
    fn open(&self, id: TableId) -> Result<Option<Arc<dyn HasTrees>>>;

    /// A row of SYS_INDEXES is about to be removed: what it stands for goes. No latch is held.
    fn drop_tree(&self, row: &IndexRow) -> Result<()>;

    /// The rows of SYS_TABLES have the old name again: the file is to follow.
    fn undo_rename(&self, id: TableId, old_name: &str) -> Result<()>;
}

/// An open table, as far as its trees matter.
pub trait HasTrees: Send + Sync {
    /// The clustered tree first.
    fn trees(&self) -> &[Tree];
}

/// DDL waits for the use to end.
impl HasTrees for InUse {
    fn trees(&self) -> &[Tree] {
        OpenTable::trees(self)
    }
}

/// The dictionary's tables.
pub struct DictTables<'d> {
    /// Pages.
    pub ctx: &'d PageCtx,
    /// The dictionary.
    pub dict: &'d Dict,
}

impl Tables for DictTables<'_> {
    fn open(&self, id: TableId) -> Result<Option<Arc<dyn HasTrees>>> {
        loop {
            let table = match self.dict.open_by_id(self.ctx, id) {
                Ok(table) => table,
                // A table that is there and cannot be read is another thing: its rows keep the changes.
                Err(Error::NoSuchTable(_)) => return Ok(None),
                Err(error) => return Err(error),
            };
            table.check_collations()?;
            if let Ok(in_use) = table.enter() {
                return Ok(Some(Arc::new(in_use)));
            }
            // DDL is at work on it: whether the table is there, and how, is known when it has ended.
            drop(self.dict.exclusive());
        }
    }

    fn undo_rename(&self, id: TableId, old_name: &str) -> Result<()> {
        self.dict.undo_rename(self.ctx, id, old_name)
    }

    fn drop_tree(&self, row: &IndexRow) -> Result<()> {
        self.dict.drop_tree(self.ctx, row)
    }
}

/// Engine and memory of a rollback or a purge.
pub(super) struct Undoing<'e> {
    pub(super) ctx: &'e PageCtx,
    pub(super) sys: &'e TrxSystem,
    pub(super) tables: &'e dyn Tables,
    pub(super) scratch: Scratch,
    pub(super) offsets: Offsets,
    /// Clustered key of the row.
    pub(super) key: Tuple,
    /// The leaf on which it was found last.
    pub(super) leaf: Guess,
    /// The row as it is.
    pub(super) row: Tuple,
    pub(super) fetched: Fetched,
    /// The row as it was.
    pub(super) old: Tuple,
    pub(super) old_fetched: Fetched,
    pub(super) versions: Versions,
}

impl<'e> Undoing<'e> {
    pub(super) fn new(ctx: &'e PageCtx, sys: &'e TrxSystem, tables: &'e dyn Tables) -> Self {
        Undoing {
            ctx,
            sys,
            tables,
            scratch: Scratch::default(),
            offsets: Offsets::new(),
            key: Tuple::new(),
            leaf: Guess::default(),
            row: Tuple::new(),
            fetched: Fetched::default(),
            old: Tuple::new(),
            old_fetched: Fetched::default(),
            versions: Versions::default(),
        }
    }

    /// Copies the clustered record of `self.key` to `self.row` if `roll_ptr` is its latest undo
    /// record; `false` if not: nothing is left to do for it.
    pub(super) fn find(&mut self, trees: &[Tree], roll_ptr: RollPtr) -> Result<bool> {
        let tree = &trees[0];
        let Undoing {
            ctx,
            key,
            leaf,
            row,
            offsets,
            fetched,
            ..
        } = self;
        // The record before may have been of another table.
        *leaf = Guess::default();
        let (found, _) = retry(ctx, None, |mtr| {
            let at = tree.seek_near(mtr, key, Intent::Read, leaf)?;
            if usize::from(at.low_match) != key.len() {
                return Ok(false);
            }
            let record = RecordView::new(mtr.view(at.page), at.rec, tree.index(), offsets)?;
            if record.roll_ptr() != Some(roll_ptr) {
                return Ok(false);
            }
            record.copy_to(row);
            fetched.fetch(mtr, trees, row)?;
            Ok(true)
        })?;
        Ok(found)
    }

    /// Removes the clustered record of `self.key` if `roll_ptr` is its latest undo record, its
    /// off-page values first. `self.row` is a copy of it.
    pub(super) fn remove_row(&mut self, trees: &[Tree], roll_ptr: RollPtr) -> Result<()> {
        let tree = &trees[0];
        if tree.index().id.0 == system::SYS_INDEXES_ID && tree.space() == SpaceId::SYSTEM {
            self.drop_tree(tree)?;
        }
        for field in 0..self.row.len() {
            self.free_field(tree, field, roll_ptr, false)?;
        }
        let Undoing {
            ctx,
            key,
            leaf,
            scratch,
            ..
        } = self;
        let same = |seen: Seen| seen.roll_ptr == Some(roll_ptr);
        remove(ctx, tree, key, leaf, scratch, &mut |_, seen| Ok(same(seen)))?;
        Ok(())
    }

    fn drop_tree(&mut self, tree: &Tree) -> Result<()> {
        let Undoing {
            ctx, key, offsets, ..
        } = self;
        let (row, _) = retry(ctx, None, |mtr| {
            let at = tree.seek(mtr, Seek::Key(key, SearchMode::LessOrEqual), Intent::Read)?;
            if usize::from(at.low_match) != key.len() {
                return Ok(None);
            }
            let view = RecordView::new(mtr.view(at.page), at.rec, tree.index(), offsets)?;
            IndexRow::parse(&view).map(Some)
        })?;
        match row {
            Some(row) => self.tables.drop_tree(&row),
            None => Ok(()),
        }
    }

    /// Frees the BLOB of a field of `self.row` if the record owns it; with `made_now`, if it was made
    /// by the change that is undone. The record is looked up for each page, with its `roll_ptr`.
    pub(super) fn free_field(
        &mut self,
        tree: &Tree,
        field: usize,
        roll_ptr: RollPtr,
        made_now: bool,
    ) -> Result<()> {
        let FieldRef::External(local) = self.row.field(field) else {
            return Ok(());
        };
        let reference = BlobRef::of_local_part(local)?;
        if !reference.is_owner() || made_now && reference.is_inherited() {
            return Ok(());
        }
        let Undoing {
            ctx, key, offsets, ..
        } = self;
        let ctx: &PageCtx = ctx;
        let freed = tree.free_blob(ctx, reference, &mut |mtr| {
            let found = find_reference(tree, mtr, key, field, Some(roll_ptr), offsets)?;
            let (page, at) = found.ok_or(Error::KeyNotFound)?;
            Ok((page, at))
        });
        match freed {
            // The record is gone: so are its BLOBs.
            Err(Error::KeyNotFound) => Ok(()),
            other => other,
        }
    }

    /// True if some version of the row – from `self.old` backwards, as far as anybody may look –
    /// has the entry. Latches held by `mtr` stay.
    pub(super) fn older_has(
        &mut self,
        mtr: &mut Mtr<'_>,
        trees: &[Tree],
        tree: &Tree,
        wanted: &Tuple,
    ) -> Result<bool> {
        let clustered = &trees[0];
        let mut version = self.old.clone();
        let mut made = Tuple::new();
        let mut fetched = Fetched::default();
        let mut steps = Steps::default();
        loop {
            if version.info_bits & DELETED == 0 {
                fetched.fetch(mtr, trees, &version)?;
                entry::secondary(tree, clustered.index(), &version, &fetched, &mut made)?;
                if entry::is_equal(tree, &made, wanted) {
                    return Ok(true);
                }
            }
            let writer = undo_row::trx_id_of(clustered.index(), &version);
            if seen_by_all(self.sys, writer) {
                return Ok(false);
            }
            let table = clustered.table();
            if !self
                .versions
                .step_back(mtr, self.sys, table, &mut version, &mut steps)?
            {
                return Ok(false);
            }
        }
    }
}

/// True if every view, open now or later, sees what the transaction did.
pub(super) fn seen_by_all(sys: &TrxSystem, id: TrxId) -> bool {
    match sys.registry.state(id) {
        None => true,
        Some(TrxState::Committed(no)) => no < sys.views.oldest(&sys.registry),
        Some(TrxState::Active(_)) => false,
    }
}

/// What `remove` tells of the record that it is about to remove.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// It is delete-marked.
    pub(super) is_deleted: bool,
    /// Its latest undo record, in a clustered tree.
    pub(super) roll_ptr: Option<RollPtr>,
}

/// Removes the record with `key`, if it is there and `wanted` – which may latch other pages – says so;
/// true if it did. `leaf`: where it may be found.
pub(super) fn remove<'e>(
    ctx: &'e PageCtx,
    tree: &Tree,
    key: &Tuple,
    leaf: &mut Guess,
    scratch: &mut Scratch,
    wanted: &mut dyn FnMut(&mut Mtr<'e>, Seen) -> Result<bool>,
) -> Result<bool> {
    system_change(ctx, tree, 0, |mtr, how| {
        let mut spot = place::find_near(tree, mtr, key, how, Change::Delete, leaf)?;
        if usize::from(spot.at.low_match) != key.len() {
            return Ok(Step::Done(false));
        }
        let view = mtr.view(spot.at.page);
        let record = RecordView::new(view, spot.at.rec, tree.index(), &mut scratch.offsets)?;
        let seen = Seen {
            is_deleted: record.is_deleted(),
            roll_ptr: record.roll_ptr(),
        };
        if !wanted(mtr, seen)? {
            return Ok(Step::Done(false));
        }
        match &mut spot.path {
            None if !tree.deletes_in_place(mtr, &spot.at, scratch)? => {
                return Ok(Step::Restructure);
            }
            None => tree.delete(mtr, &mut spot.at, scratch)?,
            Some(path) => tree.delete_restructuring(mtr, path, spot.at.rec, scratch)?,
        }
        Ok(Step::Done(true))
    })
}

/// Sets the delete mark of a secondary entry; true if the entry is there.
pub(super) fn mark_entry(ctx: &PageCtx, tree: &Tree, wanted: &Tuple, id: TrxId) -> Result<bool> {
    system_change(ctx, tree, 0, |mtr, how| {
        let spot = place::find(tree, mtr, wanted, how, Change::Both)?;
        if usize::from(spot.at.low_match) != wanted.len() {
            return Ok(Step::Done(false));
        }
        tree.set_delete_mark(mtr, &spot.at, true);
        tree.raise_max_trx_id(mtr, spot.at.page, id);
        Ok(Step::Done(true))
    })
}

/// Makes a secondary entry live again, with its very bytes; inserts it if it is not there.
pub(super) fn restore_entry(
    ctx: &PageCtx,
    tree: &Tree,
    wanted: &Tuple,
    id: TrxId,
    scratch: &mut Scratch,
) -> Result<()> {
    let bytes = wanted.fields().map(|f| f.len() + 2).sum();
    let mut old = Tuple::new();
    system_change(ctx, tree, bytes, |mtr, how| {
        let mut spot = place::find(tree, mtr, wanted, how, Change::Both)?;
        if usize::from(spot.at.low_match) == wanted.len() {
            let view = mtr.view(spot.at.page);
            RecordView::new(view, spot.at.rec, tree.index(), &mut scratch.offsets)?
                .copy_to(&mut old);
            let changed: Vec<u16> = (0..wanted.len())
                .filter(|&i| old.field(i) != wanted.field(i))
                .map(|i| i as u16)
                .collect();
            let found = place::placement(tree, mtr, &spot.at, wanted, &changed, scratch)?;
            if found == Placement::Restructure && how == How::Leaf {
                return Ok(Step::Restructure);
            }
            place::put(tree, mtr, &mut spot, found, wanted, &changed, scratch)?;
        } else {
            match &mut spot.path {
                None if !tree.fits(mtr, &spot.at, wanted, scratch)? => {
                    return Ok(Step::Restructure);
                }
                None => tree.insert(mtr, &mut spot.at, wanted, scratch)?,
                Some(path) => {
                    spot.at = tree.insert_restructuring(mtr, path, wanted, scratch)?;
                }
            }
        }
        tree.raise_max_trx_id(mtr, spot.at.page, id);
        Ok(Step::Done(()))
    })
}

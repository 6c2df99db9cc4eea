//! Locks on rows: explicit ones, and the implicit ones that a row's DB_TRX_ID stands for.
//!
//! A row that a running transaction wrote is locked by it without an entry in the lock table. Who
//! meets such a row makes the entry for the writer, then asks for its own lock.

use super::entry::{self, Fetched};
use super::op::{Op, Workspace};
use super::undo_row;
use super::version::{Steps, Versions};
use crate::format::record::DELETED;
use crate::lock::{Outcome, Owner, RecordKind, RecordMode, Strength, TableMode};
use crate::mtr::{Mtr, retry};
use crate::os::planted;
use crate::page::{Offsets, RecordView, SearchMode, layout, record};
use crate::schema::{Table, Tuple};
use crate::sync::Arc;
use crate::tree::{Intent, Position, Seek, Tree};
use crate::trx::{Trx, TrxSystem};
use crate::words::{HeapNo, PageId, Result, TableId, TrxId};

/// Takes a table lock, waiting if need be.
///
/// Errors: as `Op::wait`.
pub fn lock_table(op: &mut Op<'_>, table: TableId, mode: TableMode) -> Result<()> {
    let sys = op.sys;
    let owner = op.trx.owner();
    match sys.locks.lock_table(owner, table, mode) {
        Outcome::Granted => Ok(()),
        Outcome::Wait(wait) => op.wait(&wait),
    }
}

/// Takes the table's intention lock once per transaction.
pub(super) fn intend(
    op: &mut Op<'_>,
    work: &mut Workspace,
    table: TableId,
    exclusive: bool,
) -> Result<()> {
    let id = op.trx.owner().id();
    let held = work
        .intention
        .is_some_and(|(owner, of, strong)| owner == id && of == table && (strong || !exclusive));
    if held {
        return Ok(());
    }
    let mode = match exclusive {
        true => TableMode::IntentionExclusive,
        false => TableMode::IntentionShared,
    };
    lock_table(op, table, mode)?;
    work.intention = Some((id, table, exclusive));
    Ok(())
}

/// Where a record is, for the lock table.
pub(super) fn place(mtr: &Mtr<'_>, at: &Position) -> (PageId, HeapNo) {
    (
        mtr.page_id(at.page),
        record::heap_no(mtr.view(at.page), at.rec),
    )
}

/// Asks for a lock on a record that has no implicit one: the supremum, a gap.
pub(super) fn lock_plain(trx: &mut Trx, mtr: &Mtr<'_>, at: &Position, mode: RecordMode) -> Outcome {
    let (page, heap) = place(mtr, at);
    let owner = trx.owner().clone();
    trx.system().locks.lock_record(&owner, page, heap, mode)
}

/// True if a lock that is about to be taken may be given back by `unlock_row`: the level keeps no
/// locks on rows that do not match, and the transaction has none there yet.
pub(super) fn is_new(trx: &mut Trx, mtr: &Mtr<'_>, at: &Position, mode: RecordMode) -> bool {
    if trx.isolation().locks_gaps() {
        return false;
    }
    let (page, heap) = place(mtr, at);
    let owner = trx.owner().clone();
    !trx.system().locks.holds(&owner, page, heap, mode)
}

/// Gives back the lock on the record with `key`, unless this transaction changed the row.
///
/// Errors: damage; what reading gives.
pub(super) fn unlock(op: &mut Op<'_>, tree: &Tree, key: &Tuple, mode: RecordMode) -> Result<()> {
    let owner = op.trx.owner().clone();
    let (own, sys) = (op.trx.id(), op.trx.system());
    let mut offsets = Offsets::new();
    retry(op.ctx, None, |mtr| {
        let at = tree.seek(mtr, Seek::Key(key, SearchMode::LessOrEqual), Intent::Read)?;
        if usize::from(at.low_match) != key.len() {
            return Ok(());
        }
        let record = RecordView::new(mtr.view(at.page), at.rec, tree.index(), &mut offsets)?;
        if record.trx_id().is_none() || record.trx_id() != own {
            let (page, heap) = place(mtr, &at);
            sys.locks.unlock_record(&owner, page, heap, mode);
        }
        Ok(())
    })?;
    Ok(())
}

/// Makes the lock of a running writer explicit. The page is latched.
fn make_explicit(sys: &TrxSystem, writer: &Arc<Owner>, id: TrxId, page: PageId, heap: HeapNo) {
    sys.locks.make_explicit(writer, page, heap);
    // Its locks may have been released between the look into the registry and now; then nobody
    // would ever take this one away.
    if sys.registry.active_owner(id).is_none() {
        sys.locks
            .unlock_record(writer, page, heap, RecordMode::X_RECORD);
    }
}

/// Asks for a lock on a clustered record with `trx_id` in it. Without effect if this transaction
/// wrote the row and only the record is wanted: it has that lock implicitly.
pub(super) fn lock_clustered(
    trx: &mut Trx,
    mtr: &Mtr<'_>,
    at: &Position,
    trx_id: TrxId,
    mode: RecordMode,
) -> Outcome {
    let (page, heap) = place(mtr, at);
    let own = trx.id() == Some(trx_id);
    if own && mode.kind == RecordKind::Record {
        return Outcome::Granted;
    }
    let owner = trx.owner().clone();
    let sys = trx.system();
    if !own && mode.kind != RecordKind::Gap {
        if let Some(writer) = sys.registry.active_owner(trx_id) {
            if !planted("lock.implicit_forgotten") {
                make_explicit(sys, &writer, trx_id, page, heap);
            }
        }
    }
    sys.locks.lock_record(&owner, page, heap, mode)
}

/// Asks for a lock on a secondary entry. The implicit lock is with the transaction that wrote the
/// row, if what it did to the row concerns this entry.
///
/// Errors: `WouldBlock`: restart; damage.
pub(super) fn lock_secondary(
    trx: &mut Trx,
    mtr: &mut Mtr<'_>,
    trees: &[Tree],
    tree: &Tree,
    at: &Position,
    mode: RecordMode,
) -> Result<Outcome> {
    let (page, heap) = place(mtr, at);
    let sys = trx.system().clone();
    let max = layout::max_trx_id(mtr.view(at.page));
    if mode.kind != RecordKind::Gap && max >= sys.registry.low_water() {
        let writer = Implicit::new(&sys, trees, tree).writer(mtr, at)?;
        if let Some((id, writer)) = writer.filter(|(id, _)| trx.id() != Some(*id)) {
            make_explicit(&sys, &writer, id, page, heap);
        }
    }
    let owner = trx.owner().clone();
    Ok(sys.locks.lock_record(&owner, page, heap, mode))
}

/// Who holds an implicit lock on a secondary entry.
struct Implicit<'t> {
    sys: &'t TrxSystem,
    trees: &'t [Tree],
    tree: &'t Tree,
    offsets: Offsets,
    entry: Tuple,
    key: Tuple,
    row: Tuple,
    of_version: Tuple,
    fetched: Fetched,
    versions: Versions,
}

impl<'t> Implicit<'t> {
    fn new(sys: &'t TrxSystem, trees: &'t [Tree], tree: &'t Tree) -> Implicit<'t> {
        Implicit {
            sys,
            trees,
            tree,
            offsets: Offsets::new(),
            entry: Tuple::new(),
            key: Tuple::new(),
            row: Tuple::new(),
            of_version: Tuple::new(),
            fetched: Fetched::default(),
            versions: Versions::default(),
        }
    }

    fn table(&self) -> &'t Table {
        self.trees[0].table()
    }

    /// The running transaction among whose versions of the row the entry changes its state.
    fn writer(&mut self, mtr: &mut Mtr<'_>, at: &Position) -> Result<Option<(TrxId, Arc<Owner>)>> {
        let clustered = &self.trees[0];
        let view = RecordView::new(
            mtr.view(at.page),
            at.rec,
            self.tree.index(),
            &mut self.offsets,
        )?;
        view.copy_to(&mut self.entry);
        let deleted = view.is_deleted();
        entry::clustered_key(
            self.tree.index(),
            clustered.index(),
            |i| self.entry.field(i),
            clustered.collations(),
            &mut self.key,
        )?;
        let seek = Seek::Key(&self.key, SearchMode::LessOrEqual);
        let found = clustered.seek(mtr, seek, Intent::Read)?;
        if usize::from(found.low_match) != self.key.len() {
            mtr.release(found.page);
            return Ok(None);
        }
        let view = mtr.view(found.page);
        let row = RecordView::new(view, found.rec, clustered.index(), &mut self.offsets)?;
        row.copy_to(&mut self.row);
        let id = undo_row::trx_id_of(clustered.index(), &self.row);
        let writer = match self.sys.registry.active_owner(id) {
            Some(owner) if self.concerns(mtr, id, deleted)? => Some((id, owner)),
            _ => None,
        };
        mtr.release(found.page);
        Ok(writer)
    }

    /// True if some version of the row by `id`, or the one before them all, holds the entry another
    /// way than the entry itself says.
    fn concerns(&mut self, mtr: &mut Mtr<'_>, id: TrxId, deleted: bool) -> Result<bool> {
        let index = self.trees[0].index();
        let mut steps = Steps::default();
        loop {
            if self.is_in_version(mtr)? == deleted {
                return Ok(true);
            }
            if undo_row::trx_id_of(index, &self.row) != id {
                return Ok(false);
            }
            let table = self.table();
            if !self
                .versions
                .step_back(mtr, self.sys, table, &mut self.row, &mut steps)?
            {
                // Before the insert the entry was not there.
                return Ok(!deleted);
            }
        }
    }

    fn is_in_version(&mut self, mtr: &mut Mtr<'_>) -> Result<bool> {
        if self.row.info_bits & DELETED != 0 {
            return Ok(false);
        }
        self.fetched.fetch(mtr, self.trees, &self.row)?;
        let clustered = self.trees[0].index();
        entry::secondary(
            self.tree,
            clustered,
            &self.row,
            &self.fetched,
            &mut self.of_version,
        )?;
        Ok(entry::is_equal(self.tree, &self.of_version, &self.entry))
    }
}

/// Before a secondary entry is marked, unmarked or changed: waits only for explicit locks, since
/// another writer's implicit one would have stopped us at the clustered record.
pub(super) fn lock_secondary_change(trx: &mut Trx, mtr: &Mtr<'_>, at: &Position) -> Outcome {
    let (page, heap) = place(mtr, at);
    if trx.system().locks.page_is_free(page) {
        return Outcome::Granted;
    }
    let owner = trx.owner().clone();
    trx.system()
        .locks
        .lock_record(&owner, page, heap, RecordMode::X_RECORD)
}

/// Asks whether a record may be inserted after `at`.
pub(super) fn lock_insert(trx: &mut Trx, mtr: &Mtr<'_>, at: &Position) -> Result<Outcome> {
    let page = mtr.page_id(at.page);
    if trx.system().locks.page_is_free(page) {
        return Ok(Outcome::Granted);
    }
    let view = mtr.view(at.page);
    let next = record::heap_no(view, layout::next(view, at.rec)?);
    let owner = trx.owner().clone();
    Ok(trx.system().locks.lock_insert(&owner, page, next))
}

/// A mode of the given halves.
pub(super) fn mode(exclusive: bool, kind: RecordKind) -> RecordMode {
    let strength = match exclusive {
        true => Strength::Exclusive,
        false => Strength::Shared,
    };
    RecordMode::new(strength, kind)
}

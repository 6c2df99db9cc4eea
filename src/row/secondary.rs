//! Secondary entries: inserting, delete-marking, looking for duplicates.
//!
//! No undo: what a rollback must do follows from the clustered row's undo record.

use super::entry;
use super::insert::InsertMode;
use super::lock_row::{self, lock_insert, lock_secondary_change};
use super::op::{How, Op, Step, Workspace};
use super::place::{self, Placement, Spot};
use crate::format::record::DELETED;
use crate::lock::{Outcome, RecordKind};
use crate::mtr::Mtr;
use crate::os::planted;
use crate::page::{RecordView, SearchMode, layout};
use crate::schema::Tuple;
use crate::schema::compare::compare_fields;
use crate::tree::{Change, Intent, Position, Scratch, Seek, Tree};
use crate::trx::Trx;
use crate::words::{Error, Result};

/// A record of a secondary index is small: its key parts and the clustered key.
const ENTRY_BYTES: usize = 4 << 10;

/// Builds the entry of `work.row` in `work.entry`.
pub(super) fn entry_of_row(trees: &[Tree], tree: &Tree, work: &mut Workspace) -> Result<()> {
    let clustered = trees[0].index();
    entry::secondary(tree, clustered, &work.row, &work.fetched, &mut work.entry)
}

/// Inserts `work.entry`, or takes the delete mark off the entry that is there.
///
/// Errors: `DuplicateKey` and those of `Op::wait`.
pub(super) fn insert(
    op: &mut Op<'_>,
    trees: &[Tree],
    tree: &Tree,
    work: &mut Workspace,
    mode: InsertMode,
) -> Result<()> {
    let n_uniq = tree.index().n_uniq as usize;
    let unique = tree.index().is_unique() && (0..n_uniq).all(|i| !work.entry.field(i).is_null());
    let mut checked = !unique;
    let mut change = Change::Insert;
    loop {
        let Workspace {
            tree: scratch,
            entry,
            old_entry,
            ..
        } = &mut *work;
        let done = op.change(tree, 0, ENTRY_BYTES, |trx, mtr, how| {
            let spot = place::find(tree, mtr, entry, how, change)?;
            let most = usize::from(spot.at.low_match.max(spot.at.up_match));
            if !checked && most >= n_uniq {
                return Ok(Step::Done(false));
            }
            if usize::from(spot.at.low_match) == entry.len() {
                let may = how == How::Restructure && change == Change::Both;
                let step = revive(trx, mtr, tree, spot, may, entry, old_entry, scratch)?;
                if let Step::Restructure = step {
                    change = Change::Both;
                }
                return Ok(step);
            }
            insert_attempt(trx, mtr, tree, spot, entry, scratch)
        })?;
        if done {
            return Ok(());
        }
        check_duplicate(op, trees, tree, work, mode)?;
        checked = true;
    }
}

fn insert_attempt(
    trx: &mut Trx,
    mtr: &mut Mtr<'_>,
    tree: &Tree,
    mut spot: Spot<'_>,
    entry: &Tuple,
    scratch: &mut Scratch,
) -> Result<Step<bool>> {
    if let Outcome::Wait(wait) = lock_insert(trx, mtr, &spot.at)? {
        return Ok(Step::Wait(wait));
    }
    if spot.path.is_none() && !tree.fits(mtr, &spot.at, entry, scratch)? {
        return Ok(Step::Restructure);
    }
    match &mut spot.path {
        None => tree.insert(mtr, &mut spot.at, entry, scratch)?,
        Some(path) => spot.at = tree.insert_restructuring(mtr, path, entry, scratch)?,
    }
    note_writer(trx, mtr, tree, &spot.at);
    Ok(Step::Done(true))
}

fn note_writer(trx: &Trx, mtr: &mut Mtr<'_>, tree: &Tree, at: &Position) {
    let id = trx.id().expect("only writers change entries");
    tree.raise_max_trx_id(mtr, at.page, id);
}

/// The entry is there: takes its mark off, and gives it the new bytes where only the collation
/// says that they are equal.
#[expect(clippy::too_many_arguments, reason = "one attempt's whole state")]
fn revive(
    trx: &mut Trx,
    mtr: &mut Mtr<'_>,
    tree: &Tree,
    mut spot: Spot<'_>,
    may_restructure: bool,
    entry: &Tuple,
    old: &mut Tuple,
    scratch: &mut Scratch,
) -> Result<Step<bool>> {
    if let Outcome::Wait(wait) = lock_secondary_change(trx, mtr, &spot.at) {
        return Ok(Step::Wait(wait));
    }
    let view = mtr.view(spot.at.page);
    RecordView::new(view, spot.at.rec, tree.index(), &mut scratch.offsets)?.copy_to(old);
    if old.info_bits & DELETED == 0 && entry::is_identical(old, entry) {
        return Ok(Step::Done(true));
    }
    let changed: Vec<u16> = (0..entry.len())
        .filter(|&i| old.field(i) != entry.field(i))
        .map(|i| i as u16)
        .collect();
    let found = place::placement(tree, mtr, &spot.at, entry, &changed, scratch)?;
    if found == Placement::Restructure && !may_restructure {
        return Ok(Step::Restructure);
    }
    place::put(tree, mtr, &mut spot, found, entry, &changed, scratch)?;
    note_writer(trx, mtr, tree, &spot.at);
    Ok(Step::Done(true))
}

/// Delete-marks the entry `entry`.
///
/// Errors: `Corrupt` if it is not there; those of `Op::wait`.
pub(super) fn delete_mark(op: &mut Op<'_>, tree: &Tree, entry: &Tuple) -> Result<()> {
    op.change(tree, 0, 0, |trx, mtr, how| {
        let spot = place::find(tree, mtr, entry, how, Change::Both)?;
        if usize::from(spot.at.low_match) != entry.len() {
            let table = &tree.table().name;
            let why = "an entry of a row is missing";
            return Err(
                Error::corrupt(mtr.page_id(spot.at.page), why).in_index(table, &tree.index().name)
            );
        }
        if let Outcome::Wait(wait) = lock_secondary_change(trx, mtr, &spot.at) {
            return Ok(Step::Wait(wait));
        }
        if !planted("secondary.mark_skipped") {
            tree.set_delete_mark(mtr, &spot.at, true);
        }
        note_writer(trx, mtr, tree, &spot.at);
        Ok(Step::Done(()))
    })
}

/// Looks for another row with the unique key of `work.entry`, and locks what keeps others from
/// inserting one: every entry of the key, and the one after.
fn check_duplicate(
    op: &mut Op<'_>,
    trees: &[Tree],
    tree: &Tree,
    work: &mut Workspace,
    mode: InsertMode,
) -> Result<()> {
    let n_uniq = tree.index().n_uniq as usize;
    work.prefix.copy_prefix_of(&work.entry, n_uniq);
    let wanted = lock_row::mode(mode == InsertMode::Replace, RecordKind::NextKey);
    loop {
        let mut mtr = Mtr::reader(op.ctx);
        let step = loop {
            match scan(op.trx, &mut mtr, trees, tree, &work.prefix, wanted) {
                Err(Error::WouldBlock) => mtr.restart()?,
                other => break other?,
            }
        };
        drop(mtr);
        match step {
            Outcome::Granted => return Ok(()),
            Outcome::Wait(wait) => op.wait(&wait)?,
        }
    }
}

fn scan(
    trx: &mut Trx,
    mtr: &mut Mtr<'_>,
    trees: &[Tree],
    tree: &Tree,
    key: &Tuple,
    wanted: crate::lock::RecordMode,
) -> Result<Outcome> {
    let seek = Seek::Key(key, SearchMode::GreaterOrEqual);
    let mut at = tree.seek(mtr, seek, Intent::Read)?;
    let mut offsets = crate::page::Offsets::new();
    loop {
        let view = mtr.view(at.page);
        if at.rec == layout::supremum(view) {
            if let Outcome::Wait(wait) = lock_row::lock_plain(trx, mtr, &at, wanted) {
                return Ok(Outcome::Wait(wait));
            }
            if !tree.next(mtr, &mut at)? {
                return Ok(Outcome::Granted);
            }
            continue;
        }
        let outcome = lock_row::lock_secondary(trx, mtr, trees, tree, &at, wanted)?;
        if let Outcome::Wait(wait) = outcome {
            return Ok(Outcome::Wait(wait));
        }
        let view = mtr.view(at.page);
        let record = RecordView::new(view, at.rec, tree.index(), &mut offsets)?;
        let equal = (0..key.len()).all(|i| {
            let field = &tree.index().fields[i];
            compare_fields(field, record.field(i), key.field(i), tree.collations()).is_eq()
        });
        if !equal {
            return Ok(Outcome::Granted);
        }
        if !record.is_deleted() {
            let index = tree.position() as u16;
            return Err(Error::DuplicateKey { index });
        }
        let last = layout::next(view, at.rec)? == layout::supremum(view);
        if last {
            at.rec = layout::supremum(view);
            continue;
        }
        if !tree.next(mtr, &mut at)? {
            return Ok(Outcome::Granted);
        }
    }
}

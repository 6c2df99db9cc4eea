//! Putting a new version of a record where the old one stands: in place, on the page, or with a
//! structure change.

use super::op::How;
use crate::format::record::DELETED;
use crate::mtr::Mtr;
use crate::page::layout::corrupt;
use crate::page::update::fits_in_place;
use crate::page::{RecordView, SearchMode};
use crate::schema::{FieldRef, Tuple};
use crate::tree::{Change, Guess, Intent, Path, Position, Scratch, Seek, Tree};
use crate::words::Result;

/// A place to change, with the path if the tree may be restructured.
pub(super) struct Spot<'t> {
    pub(super) at: Position,
    pub(super) path: Option<Path<'t>>,
}

/// Finds the last record not above `key`, to change its leaf.
///
/// Errors: `WouldBlock`: restart; damage.
pub(super) fn find<'t>(
    tree: &'t Tree,
    mtr: &mut Mtr<'_>,
    key: &Tuple,
    how: How,
    change: Change,
) -> Result<Spot<'t>> {
    match how {
        How::Leaf => {
            let seek = Seek::Key(key, SearchMode::LessOrEqual);
            let at = tree.seek(mtr, seek, Intent::Modify)?;
            Ok(Spot { at, path: None })
        }
        How::Restructure => {
            let (at, path) = tree.seek_to_restructure(mtr, key, change)?;
            Ok(Spot {
                at,
                path: Some(path),
            })
        }
    }
}

/// As `find` for a whole tree-unique key, beginning with the leaf that was visited last.
pub(super) fn find_near<'t>(
    tree: &'t Tree,
    mtr: &mut Mtr<'_>,
    key: &Tuple,
    how: How,
    change: Change,
    leaf: &mut Guess,
) -> Result<Spot<'t>> {
    match how {
        How::Leaf => {
            let at = tree.seek_near(mtr, key, Intent::Modify, leaf)?;
            Ok(Spot { at, path: None })
        }
        How::Restructure => find(tree, mtr, key, how, change),
    }
}

/// How a record's new version gets in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Placement {
    /// Byte by byte.
    InPlace,
    /// Out and in again on its page.
    OnPage,
    /// With a structure change.
    Restructure,
}

/// Decides before anything is changed. `changed` = fields that differ, system columns left out.
pub(super) fn placement(
    tree: &Tree,
    mtr: &Mtr<'_>,
    at: &Position,
    new: &Tuple,
    changed: &[u16],
    scratch: &mut Scratch,
) -> Result<Placement> {
    let view = mtr.view(at.page);
    let record = RecordView::new(view, at.rec, tree.index(), &mut scratch.offsets)?;
    let fits = |&f: &u16| fits_in_place(&record, usize::from(f), new.field(usize::from(f)));
    if changed.iter().all(fits) {
        // They change, too, and are never NULL, off-page or of another length.
        let stamp: [&[u8]; 2] = [&[0; 6], &[0; 7]];
        let takes = |(f, bytes)| fits_in_place(&record, usize::from(f), FieldRef::Bytes(bytes));
        if !system_fields(tree).zip(stamp).all(takes) {
            let why = format!("the system columns of the record at {}", at.rec.at());
            return Err(corrupt(view, why));
        }
        return Ok(Placement::InPlace);
    }
    match tree.replacement_fits(mtr, at, new, scratch)? {
        true => Ok(Placement::OnPage),
        false => Ok(Placement::Restructure),
    }
}

/// DB_TRX_ID and DB_ROLL_PTR of a clustered record.
fn system_fields(tree: &Tree) -> impl Iterator<Item = u16> + Clone {
    let first = tree.index().trx_id_field;
    first.into_iter().flat_map(|f| [f, f + 1])
}

/// Puts `new`, stamped, into the place of the record, with its delete mark.
pub(super) fn put(
    tree: &Tree,
    mtr: &mut Mtr<'_>,
    spot: &mut Spot<'_>,
    placement: Placement,
    new: &Tuple,
    changed: &[u16],
    scratch: &mut Scratch,
) -> Result<()> {
    match (placement, &mut spot.path) {
        (Placement::InPlace, _) => {
            let fields = changed.iter().copied().chain(system_fields(tree));
            let changes = fields.map(|f| (usize::from(f), new.field(usize::from(f))));
            let written = tree.update_in_place(mtr, &spot.at, changes, scratch)?;
            assert!(written, "what fitted in place does so still");
            tree.set_delete_mark(mtr, &spot.at, new.info_bits & DELETED != 0);
            Ok(())
        }
        (Placement::OnPage, _) => tree.replace(mtr, &mut spot.at, new, scratch),
        (Placement::Restructure, Some(path)) => {
            spot.at = tree.replace_restructuring(mtr, path, &spot.at, new, scratch)?;
            Ok(())
        }
        (Placement::Restructure, None) => {
            unreachable!("a structure change is asked for before anything is changed")
        }
    }
}

//! Deleting a row: the clustered record is delete-marked, then its secondary entries. Purge removes
//! them once no view needs them.

use super::insert::secondary_trees;
use super::observer::Event;
use super::op::{Op, Workspace};
use super::update::{begin, mark_deleted};
use super::{entry, secondary};
use crate::schema::Tuple;
use crate::tree::Tree;
use crate::words::Result;

/// Deletes the row with clustered key `key`. `is_dict`: it is one of the dictionary's.
///
/// Errors: `RecordChanged` (there is no such row), those of `Op::wait`, `NoSpace`, damage. Then the
/// statement is to be rolled back to where it stood before the row.
pub fn delete(
    op: &mut Op<'_>,
    trees: &[Tree],
    work: &mut Workspace,
    key: &Tuple,
    is_dict: bool,
) -> Result<()> {
    work.key.clone_from(key);
    begin(op, trees, work, is_dict)?;
    mark_deleted(op, trees, work, &[])?;
    for tree in secondary_trees(trees) {
        let (old, fetched) = (&work.old, &work.old_fetched);
        entry::secondary(tree, trees[0].index(), old, fetched, &mut work.entry)?;
        secondary::delete_mark(op, tree, &work.entry)?;
    }
    op.tell(trees[0].table(), &work.old, Event::Deleted);
    Ok(())
}

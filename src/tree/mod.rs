//! The B-tree: search, cursors, inserts and deletes that may restructure, BLOB chains.
//!
//! Knows index pages and their links; knows nothing of transactions, visibility or undo. `row`
//! positions here, locks, writes undo, and calls the change.
//!
//! Invariants
//!  1. The root page number never changes (T5).
//!  2. Every page but the root has exactly one node pointer in the level above, in list order; its
//!     key equals the page's first key on inner levels, and on the leaf level separates the page
//!     from its left neighbour. The leftmost pointer of each level is the min-rec.
//!  3. Only the root may be empty.
//!  4. Inner pages and sibling links change only under the tree latch (T2), in one mtr (M4).
//!  5. Whoever moves leaf records tells the lock table in the same mtr, before it commits.
//!  6. What may fail after its first change runs as an `attempt`: pages and locks are then as before.
//!  7. A secondary leaf that records came to has class 0 in the change-buffer bitmap.
//!
//! Latches: `Tree`, then `IndexPage` top-down and left to right; against it only try-latches (T3).
//! Crash:   a structure change is recovered wholly or not at all.
//! Read:    search.rs, guide.rs, point.rs, cursor.rs, insert.rs, attempt.rs, path.rs, split.rs,
//!          delete.rs, merge.rs, update.rs, blob.rs, bulk.rs, empty.rs, ranges.rs, create.rs,
//!          validate.rs.

#![forbid(unsafe_code)]

mod attempt;
mod blob;
mod bulk;
mod create;
mod cursor;
#[cfg(test)]
mod damage_tests;
mod delete;
mod empty;
#[cfg(test)]
mod guess_tests;
mod guide;
mod insert;
mod merge;
mod path;
mod point;
mod ranges;
mod search;
mod split;
#[cfg(test)]
mod tests;
mod update;
mod validate;

pub use bulk::Bulk;
pub use create::{create, free};
pub use cursor::StoredPosition;
pub use path::{Change, Path};
pub use point::Point;
pub use search::{Guess, Intent, Position, Seek};
pub use validate::TreeCounts;

use std::cmp::Ordering;

use crate::extent::change_bitmap::Lowered;
use crate::host::collation::CollationSource;
use crate::lock::{LockTable, Moved};
use crate::mtr::{Mtr, PageRef};
use crate::page::{Offsets, layout};
use crate::schema::compare::compare_fields;
use crate::schema::{Index, Table, Tuple};
use crate::sync::{Arc, Latch, Mode, Rank};
use crate::words::{Error, PageId, PageNo, Result, SpaceId};

/// One index of an open table: what a search needs to know, and the latch of its structure.
pub struct Tree {
    table: Arc<Table>,
    position: usize,
    locks: Arc<LockTable>,
    collations: Arc<dyn CollationSource>,
    latch: Latch,
    lowered: Lowered,
}

/// Memory for tree operations, reused from call to call. One for each session.
#[derive(Debug, Default)]
pub struct Scratch {
    /// For operations on one page.
    pub page: crate::page::Scratch,
    /// Field positions of one record.
    pub offsets: Offsets,
    pub(crate) moved: Vec<Moved>,
    /// What the lock table is told at the end of an attempt.
    pub(crate) waiting: attempt::Waiting,
}

/// The tree latch, held during a structure change (T2).
pub struct Restructuring<'t>(&'t Tree);

impl Drop for Restructuring<'_> {
    fn drop(&mut self) {
        self.0.latch.unlock(Mode::U, Rank::Tree);
    }
}

impl Tree {
    /// The tree of `table.indexes[position]`.
    pub fn new(
        table: Arc<Table>,
        position: usize,
        locks: Arc<LockTable>,
        collations: Arc<dyn CollationSource>,
    ) -> Tree {
        Tree {
            table,
            position,
            locks,
            collations,
            latch: Latch::new(),
            lowered: Lowered::default(),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The index.
    #[inline]
    pub fn index(&self) -> &Index {
        &self.table.indexes[self.position]
    }

    /// Position of the index in the table's list.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The tablespace.
    pub fn space(&self) -> SpaceId {
        self.table.space
    }

    /// The locks that records of the tree may have.
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// Orders text.
    #[inline]
    pub fn collations(&self) -> &dyn CollationSource {
        &*self.collations
    }

    /// Order of two keys, or of as many fields as both have.
    pub fn compare_keys(&self, a: &Tuple, b: &Tuple) -> Ordering {
        let fields = self.index().fields.iter();
        let values = fields.zip(a.fields().zip(b.fields()));
        values
            .map(|(field, (a, b))| compare_fields(field, a, b, self.collations()))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// The root.
    pub fn root(&self) -> PageId {
        self.page(self.index().root)
    }

    pub(crate) fn page(&self, page: PageNo) -> PageId {
        PageId::new(self.space(), page)
    }

    /// Takes the tree latch: before any page latch, waits for other structure changes.
    fn restructure(&self) -> Restructuring<'_> {
        self.latch.lock(Mode::U, Rank::Tree);
        Restructuring(self)
    }

    /// Before records come to `page`: as a secondary leaf it must not claim free space in the
    /// change-buffer bitmap.
    fn claim_no_space(&self, mtr: &mut Mtr<'_>, page: PageRef) -> Result<()> {
        if self.index().is_clustered() || !layout::is_leaf(mtr.view(page)) {
            return Ok(());
        }
        let leaf = mtr.page_id(page);
        self.lowered.lower(mtr, leaf)
    }

    /// Damage in this tree, with its names filled in.
    #[cold]
    pub(crate) fn damaged(&self, page: PageId, why: impl Into<Box<str>>) -> Error {
        self.named(Error::corrupt(page, why))
    }

    /// Adds table and index to an error about damage.
    #[cold]
    pub(crate) fn named(&self, error: Error) -> Error {
        error.in_index(&self.table.name, &self.index().name)
    }
}

//! Remembering a place while no latch is held, and coming back to it.
//!
//! As InnoDB, which remembers the page and its modification clock and falls back to the key: while
//! the leaf is unchanged the record stands where it stood, else it is looked for from the root.

use std::cmp::Ordering;

use super::Tree;
use super::point::Point;
use super::search::{Guess, Intent, Position, Seek};
use crate::mtr::Mtr;
use crate::page::SearchMode;
use crate::page::layout::{self, RecOffset};
use crate::page::offsets::Offsets;
use crate::page::record::RecordView;
use crate::schema::Tuple;
use crate::words::Result;

/// A remembered record: its tree-unique key. Reused from row to row without allocating.
#[derive(Debug, Default)]
pub struct StoredPosition {
    key: Tuple,
    place: Place,
    leaf: Guess,
    /// Where it stood on the leaf.
    rec: RecOffset,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    /// Nothing stored.
    #[default]
    Nowhere,
    /// On the record with the key.
    On,
    /// Before every record of the index.
    BeforeFirst,
    /// After every record of the index.
    AfterLast,
}

impl StoredPosition {
    /// Nothing stored.
    pub fn new() -> StoredPosition {
        StoredPosition::default()
    }

    /// True once something is stored.
    pub fn is_stored(&self) -> bool {
        self.place != Place::Nowhere
    }

    /// Forgets the place.
    pub fn clear(&mut self) {
        self.place = Place::Nowhere;
    }

    /// The leaf of the remembered record.
    pub fn leaf(&self) -> Guess {
        self.leaf
    }

    /// The key of the remembered record.
    pub fn key(&self) -> Option<&Tuple> {
        (self.place == Place::On).then_some(&self.key)
    }

    /// Remembers `at`. A place on infimum or supremum stands for the end of the index there.
    pub fn store(
        &mut self,
        tree: &Tree,
        mtr: &Mtr<'_>,
        at: &Position,
        offsets: &mut Offsets,
    ) -> Result<()> {
        let view = mtr.view(at.page);
        if at.rec == layout::infimum(view) {
            self.place = Place::BeforeFirst;
            return Ok(());
        }
        if at.rec == layout::supremum(view) {
            self.place = Place::AfterLast;
            return Ok(());
        }
        let record = RecordView::new(view, at.rec, tree.index(), offsets)?;
        record.copy_key_to(&mut self.key, tree.index().n_tree_unique());
        self.place = Place::On;
        self.leaf = Guess::at(mtr, at);
        self.rec = at.rec;
        Ok(())
    }

    /// Remembers the record with `key`, which is taken over; what memory there was is given for it.
    pub fn store_point(&mut self, key: &mut Tuple, point: &Point<'_>) {
        std::mem::swap(&mut self.key, key);
        self.place = Place::On;
        self.leaf = point.guess();
        self.rec = point.rec();
    }

    /// Checks that the remembered record lies beyond the key `last`, in the direction of a scan.
    ///
    /// Errors: `Corrupt`: the scan would go round for ever.
    pub fn check_moved(&self, tree: &Tree, last: &Tuple, forward: bool) -> Result<()> {
        let Some(key) = self.key() else { return Ok(()) };
        let expected = match forward {
            true => Ordering::Less,
            false => Ordering::Greater,
        };
        if tree.compare_keys(last, key) == expected {
            return Ok(());
        }
        let page = self.leaf.page().unwrap_or(tree.root());
        Err(tree.damaged(page, "the records are out of order"))
    }

    /// Comes back: on the remembered record (`true`), or if it is gone on the last record below
    /// it (`false`), so that `next` goes on with the first one above, and `prev` repeats none
    /// after one step less.
    pub fn restore(
        &self,
        tree: &Tree,
        mtr: &mut Mtr<'_>,
        intent: Intent,
    ) -> Result<(Position, bool)> {
        match self.place {
            Place::On => {
                if let Some(page) = tree.reenter(mtr, intent, self.leaf)? {
                    let at = Position {
                        page,
                        rec: self.rec,
                        low_match: tree.index().n_tree_unique() as u16,
                        up_match: 0,
                    };
                    return Ok((at, true));
                }
                let seek = Seek::Key(&self.key, SearchMode::LessOrEqual);
                let at = tree.seek(mtr, seek, intent)?;
                let found = at.low_match as usize == tree.index().n_tree_unique();
                Ok((at, found))
            }
            Place::Nowhere | Place::BeforeFirst => Ok((tree.seek(mtr, Seek::First, intent)?, true)),
            Place::AfterLast => {
                let mut at = tree.seek(mtr, Seek::Last, intent)?;
                at.rec = layout::supremum(mtr.view(at.page));
                Ok((at, true))
            }
        }
    }
}

//! One record of a leaf by its whole key, for a reader that needs nothing else: guides lead to the leaf,
//! and its latch is all that is held.

use super::Tree;
use super::search::Guess;
use crate::buffer::{Mode, PageGuard};
use crate::mtr::PageCtx;
use crate::page::layout::{self, RecOffset};
use crate::page::search::{SearchMode, search};
use crate::schema::Tuple;
use crate::sync::Rank;
use crate::words::Result;

/// A record on a leaf that is latched S.
pub struct Point<'p> {
    leaf: PageGuard<'p>,
    rec: RecOffset,
}

impl Point<'_> {
    /// The leaf's bytes.
    #[inline]
    pub fn view(&self) -> &[u8] {
        self.leaf.bytes()
    }

    /// Where the record stands on it.
    pub fn rec(&self) -> RecOffset {
        self.rec
    }

    /// The leaf, to be tried first when the caller comes back.
    pub fn guess(&self) -> Guess {
        Guess::of(self.leaf.id(), self.leaf.stamp_after())
    }
}

impl Tree {
    /// The record with the tree-unique key `key`. The caller holds no latch. `None`: `seek` tells whether
    /// there is one.
    ///
    /// Errors: damage, `Stopped`.
    pub fn point<'p>(&self, ctx: &'p PageCtx, key: &Tuple) -> Result<Option<Point<'p>>> {
        if key.len() != self.index().n_tree_unique() {
            return Ok(None);
        }
        let mode = SearchMode::LessOrEqual;
        let latch = |id, told: &_| match ctx.pool.find_told(id, told)? {
            Some(pin) => pin.latch(Mode::S, Rank::IndexPage).map(Some),
            None => Ok(None),
        };
        let Some(leaf) = self.guided(&ctx.pool, key, mode, latch)? else {
            return Ok(None);
        };
        let view = leaf.bytes();
        // What is wrong with a page the other way says.
        let is_leaf = layout::check(view, self.index()).is_ok() && layout::is_leaf(view);
        if !is_leaf || !leaf.is_checked() {
            return Ok(None);
        }
        let found = search(view, self.index(), key, mode, self.collations());
        let found = found.map_err(|error| self.named(error))?;
        if usize::from(found.low_match) != key.len() {
            return Ok(None);
        }
        let rec = found.rec;
        Ok(Some(Point { leaf, rec }))
    }
}

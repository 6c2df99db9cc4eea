//! One record of a leaf by its whole key, for a reader that needs nothing else: guides lead to the leaf,
//! its latch is all that is held, and spots lead to the record (T7).

use super::Tree;
use super::search::Guess;
use crate::buffer::{KeyHash, Mode, PageGuard};
use crate::mtr::PageCtx;
use crate::page::layout::{self, RecOffset};
use crate::page::record;
use crate::page::search::{SearchMode, leading_plain, search};
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
        let (count, bytes) = leading_plain(self.index(), self.index().fields.len(), key);
        let hash = (count == key.len()).then(|| KeyHash::of(bytes));
        let latch = |id, told: &_| {
            if let Some(hash) = hash {
                ctx.pool.expect_record(told, hash);
            }
            match ctx.pool.find_told(id, told)? {
                Some(pin) => pin.latch(Mode::S, Rank::IndexPage).map(Some),
                None => Ok(None),
            }
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
        if let Some(hash) = hash {
            let is_it = |at: usize| view.get(at..at + bytes.len()) == Some(bytes);
            if let Some(at) = leaf.spot(hash, is_it) {
                let rec = RecOffset(at as u16);
                return Ok(Some(Point { leaf, rec }));
            }
        }
        let found = search(view, self.index(), key, mode, self.collations());
        let found = found.map_err(|error| self.named(error))?;
        if usize::from(found.low_match) != key.len() {
            return Ok(None);
        }
        if hash.is_some() && leaf.wants_spots(layout::n_recs(view)) {
            self.write_spots(&leaf, bytes.len());
        }
        let rec = found.rec;
        Ok(Some(Point { leaf, rec }))
    }

    /// Tells where each record of a leaf stands whose key has its first `key_bytes` bytes.
    #[cold]
    fn write_spots(&self, leaf: &PageGuard<'_>, key_bytes: usize) {
        let view = leaf.bytes();
        // What is wrong with a record the search says.
        let records = layout::records(view).map_while(|rec| rec.ok());
        let whole = records.filter(|rec| !record::is_min_rec(view, *rec));
        leaf.write_spots(whole.filter_map(|rec| {
            let key = view.get(rec.at()..rec.at() + key_bytes)?;
            Some((KeyHash::of(key), rec.at()))
        }));
    }
}

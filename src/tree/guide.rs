//! Descent by guides: inner pages are neither latched nor looked at, only the leaf is (T6).
//!
//! Where a guide is missing, or the first bytes of the key do not decide, nothing is lost: the descent
//! begins anew with latches, and makes the guides that it misses.

use super::Tree;
use super::search::{Intent, Position};
use crate::buffer::{Draft, Pool, SHARED_MAX, Told, Want, big_endian};
use crate::mtr::{Mtr, PageRef};
use crate::page::layout::{self, RecOffset};
use crate::page::record;
use crate::page::search::{self, SearchMode, leading_plain};
use crate::schema::Tuple;
use crate::sync::Rank;
use crate::words::limits::TREE_HEIGHT_MAX;
use crate::words::{PageId, Result};

impl Tree {
    /// As `seek` by key; `None` if guides do not lead to the leaf.
    pub(super) fn seek_guided(
        &self,
        mtr: &mut Mtr<'_>,
        key: &Tuple,
        mode: SearchMode,
        intent: Intent,
    ) -> Result<Option<Position>> {
        let pool = &mtr.ctx().pool;
        let mut latched = None;
        let page = self.guided(pool, key, mode, |id, told| {
            latched = mtr.get_told(id, told, intent.mode(), Rank::IndexPage)?;
            Ok(latched)
        })?;
        let Some(page) = page else {
            // The leaf, if it is not the right one any more.
            latched.into_iter().for_each(|page| mtr.release(page));
            return Ok(None);
        };
        self.check_page(mtr, page, 0)?;
        let view = mtr.view(page);
        let found = search::search(view, self.index(), key, mode, self.collations())?;
        Ok(Some(Position {
            page,
            rec: found.rec,
            low_match: found.low_match,
            up_match: found.up_match,
        }))
    }

    /// Goes by guides to the leaf of `key` and latches it with `latch`; `None` if that gives none, or
    /// if guides do not lead there.
    #[inline]
    pub(super) fn guided<L>(
        &self,
        pool: &Pool,
        key: &Tuple,
        mode: SearchMode,
        latch: impl FnOnce(PageId, &Told) -> Result<Option<L>>,
    ) -> Result<Option<L>> {
        let index = self.index();
        let in_pointer = index.n_node_key_fields();
        let (count, bytes) = leading_plain(index, in_pointer, key);
        if count == 0 {
            return Ok(None);
        }
        let want = Want {
            tree: index.id.0,
            key: bytes,
            is_whole: count == key.len().min(in_pointer),
            equal_is_low: matches!(mode, SearchMode::LessOrEqual | SearchMode::Greater),
        };
        let Some(mut at) = pool.sight(self.root()) else {
            return Ok(None);
        };
        for _ in 0..TREE_HEIGHT_MAX {
            let Some(told) = pool.ask(&at, &want) else {
                return Ok(None);
            };
            let child = self.page(told.child);
            if told.level <= 1 {
                let leaf = latch(child, &told)?;
                // Dropped, its latch is given back.
                return Ok(leaf.filter(|_| pool.still(&at)));
            }
            let Some(below) = pool.sight_told(child, &told) else {
                return Ok(None);
            };
            // The child was the right one when it was seen.
            if !pool.still(&at) {
                return Ok(None);
            }
            at = below;
        }
        Ok(None)
    }

    /// Makes the guide of a latched inner page that is often visited without one.
    pub(super) fn guide(&self, mtr: &Mtr<'_>, page: PageRef) {
        if mtr.wants_guide(page) {
            // Where something is wrong, the page is read record by record, and that is told.
            if let Some(draft) = self.draft(mtr.view(page)).ok().flatten() {
                mtr.write_guide(page, &draft);
            }
        }
    }

    /// What the page says; `None` if its keys do not begin with bytes that order as they do.
    fn draft(&self, view: &[u8]) -> Result<Option<Draft>> {
        let index = self.index();
        let key_bytes = search::plain_bytes(index, index.n_node_key_fields());
        if key_bytes == 0 || layout::is_leaf(view) {
            return Ok(None);
        }
        let key_of = |rec: RecOffset| view.get(rec.at()..rec.at() + key_bytes);
        let mut records = Vec::with_capacity(layout::n_recs(view));
        for rec in layout::records(view) {
            records.push(rec?);
        }
        let shared = match records[..] {
            [_, first, .., last] => match (key_of(first), key_of(last)) {
                (Some(a), Some(b)) => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
                _ => return Ok(None),
            },
            _ => 0,
        };
        let mut draft = Draft {
            tree: index.id.0,
            level: layout::level(view),
            key_bytes,
            ..Draft::default()
        };
        let shared = shared.min(SHARED_MAX);
        for (i, &rec) in records.iter().enumerate() {
            let Some(key) = key_of(rec) else {
                return Ok(None);
            };
            if i == 1 {
                draft.shared.extend_from_slice(&key[..shared]);
            }
            let is_min = record::is_min_rec(view, rec);
            let window = big_endian(&key[shared..]);
            let ascends = i < 2 || draft.windows[i - 1] <= window;
            if i > 0 && (is_min || key[..shared] != draft.shared[..] || !ascends) {
                return Ok(None);
            }
            draft.windows.push(window);
            draft.children.push(self.child(view, rec)?.0);
        }
        Ok(Some(draft))
    }
}

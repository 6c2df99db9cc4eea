//! Descent from the root to a leaf by latch coupling (T1).

use super::Tree;
use crate::buffer::Stamp;
use crate::format::record as header;
use crate::mtr::{Mode, Mtr, PageRef};
use crate::page::layout::{self, RecOffset};
use crate::page::record;
use crate::page::search::{Found, SearchMode, search};
use crate::schema::Tuple;
use crate::sync::{Rank, prefetch};
use crate::words::limits::TREE_HEIGHT_MAX;
use crate::words::{PageId, PageNo, Result};

/// Bytes of a record that a scan asks for ahead: where its length is not known, and at most.
const PREFETCHED: u32 = 128;
const PREFETCHED_MAX: u32 = 512;
/// Of a cache line.
const LINE_BYTES: usize = 64;

/// Where to go in key order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seek<'k> {
    /// By key; the key may have fewer fields than the index.
    Key(&'k Tuple, SearchMode),
    /// Before the first record.
    First,
    /// At the last record.
    Last,
}

/// What the leaf is latched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Intent {
    /// Reading: S.
    Read,
    /// Changing one leaf: X.
    Modify,
}

impl Intent {
    /// The latch mode of the leaf.
    pub fn mode(self) -> Mode {
        match self {
            Intent::Read => Mode::S,
            Intent::Modify => Mode::X,
        }
    }
}

/// The leaf that was visited last, to be tried first: between reading a row and changing it nothing
/// has mostly happened there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Guess(Option<(PageId, Stamp)>);

impl Guess {
    /// The leaf of a place.
    pub fn at(mtr: &Mtr<'_>, at: &Position) -> Guess {
        Guess(Some((mtr.page_id(at.page), mtr.stamp_after(at.page))))
    }

    /// A leaf with its stamp.
    pub(super) fn of(leaf: PageId, stamp: Stamp) -> Guess {
        Guess(Some((leaf, stamp)))
    }

    /// Which leaf.
    pub(super) fn page(&self) -> Option<PageId> {
        self.0.map(|(page, _)| page)
    }
}

/// A place on a leaf, valid while the mini-transaction holds the page.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// The leaf.
    pub page: PageRef,
    /// A record of it, or infimum or supremum: before the first, after the last of the page.
    pub rec: RecOffset,
    /// Leading key fields that equal those of the last record below (or equal to) the key.
    pub low_match: u16,
    /// Leading key fields that equal those of the record after that one.
    pub up_match: u16,
}

impl Tree {
    /// Descends to the leaf of `seek`. On return the mtr holds the leaf and nothing else of the
    /// tree.
    ///
    /// `GreaterOrEqual` and `Greater` may end on the supremum: the record is then the first one of
    /// the next page, see `next`.
    ///
    /// Errors: `WouldBlock` (restart the mtr), `Corrupt`, and what reading a page may give.
    pub fn seek(&self, mtr: &mut Mtr<'_>, seek: Seek<'_>, intent: Intent) -> Result<Position> {
        self.descend(mtr, seek, intent).map_err(|e| self.named(e))
    }

    /// As `seek` for a whole tree-unique key, `LessOrEqual`, beginning with the leaf that `guess`
    /// remembers: if that has not changed and holds the key, there is no descent. `guess` then
    /// remembers the leaf that was found.
    pub fn seek_near(
        &self,
        mtr: &mut Mtr<'_>,
        key: &Tuple,
        intent: Intent,
        guess: &mut Guess,
    ) -> Result<Position> {
        let at = match self.revisit(mtr, key, intent, *guess)? {
            Some(at) => at,
            None => self.seek(mtr, Seek::Key(key, SearchMode::LessOrEqual), intent)?,
        };
        *guess = Guess::at(mtr, &at);
        Ok(at)
    }

    /// The record with `key` on the remembered leaf. A leaf that has not changed is still a leaf of
    /// the tree, and a key that stands there stands nowhere else.
    fn revisit(
        &self,
        mtr: &mut Mtr<'_>,
        key: &Tuple,
        intent: Intent,
        guess: Guess,
    ) -> Result<Option<Position>> {
        let Some(page) = self.reenter(mtr, intent, guess)? else {
            return Ok(None);
        };
        let n_unique = self.index().n_tree_unique();
        if key.len() == n_unique {
            let view = mtr.view(page);
            let mode = SearchMode::LessOrEqual;
            let found = search(view, self.index(), key, mode, self.collations());
            let found = found.map_err(|e| self.named(e))?;
            if found.low_match as usize == n_unique {
                return Ok(Some(Position {
                    page,
                    rec: found.rec,
                    low_match: found.low_match,
                    up_match: found.up_match,
                }));
            }
        }
        mtr.release(page);
        Ok(None)
    }

    /// Latches the remembered leaf if it has not changed.
    pub(super) fn reenter(
        &self,
        mtr: &mut Mtr<'_>,
        intent: Intent,
        guess: Guess,
    ) -> Result<Option<PageRef>> {
        let Some((id, stamp)) = guess.0 else {
            return Ok(None);
        };
        let Some(page) = mtr.get_unchanged(id, stamp, intent.mode(), Rank::IndexPage)? else {
            return Ok(None);
        };
        if self.check_page(mtr, page, 0).is_ok() {
            return Ok(Some(page));
        }
        mtr.release(page);
        Ok(None)
    }

    fn descend(&self, mtr: &mut Mtr<'_>, seek: Seek<'_>, intent: Intent) -> Result<Position> {
        if let Seek::Key(key, mode) = seek {
            if let Some(at) = self.seek_guided(mtr, key, mode, intent)? {
                return Ok(at);
            }
        }
        let mut page = self.latch_root(mtr, intent)?;
        let mut level = layout::level(mtr.view(page));
        while level > 0 {
            self.guide(mtr, page);
            let view = mtr.view(page);
            let child = self.child(view, self.pointer_for(view, seek)?)?;
            level -= 1;
            let mode = if level == 0 { intent.mode() } else { Mode::S };
            let next = mtr.get(self.page(child), mode, Rank::IndexPage)?;
            self.check_page(mtr, next, level)?;
            mtr.release(page);
            page = next;
        }
        let view = mtr.view(page);
        let found = self.find(view, seek)?;
        Ok(Position {
            page,
            rec: found.rec,
            low_match: found.low_match,
            up_match: found.up_match,
        })
    }

    /// Latches the root: S, or in the leaf's mode if it is the leaf.
    fn latch_root(&self, mtr: &mut Mtr<'_>, intent: Intent) -> Result<PageRef> {
        let id = self.root();
        loop {
            let page = mtr.get(id, Mode::S, Rank::IndexPage)?;
            self.check_root(mtr, page)?;
            if intent == Intent::Read || !layout::is_leaf(mtr.view(page)) {
                return Ok(page);
            }
            // It may grow a level between the two latches: then X on an inner root is more than
            // needed, and is given back.
            mtr.release(page);
            let page = mtr.get(id, Mode::X, Rank::IndexPage)?;
            self.check_root(mtr, page)?;
            if layout::is_leaf(mtr.view(page)) {
                return Ok(page);
            }
            mtr.release(page);
        }
    }

    pub(super) fn check_root(&self, mtr: &Mtr<'_>, page: PageRef) -> Result<()> {
        let view = mtr.view(page);
        layout::check(view, self.index())?;
        if layout::level(view) as usize >= TREE_HEIGHT_MAX {
            return Err(layout::corrupt(
                view,
                format!("level {}", layout::level(view)),
            ));
        }
        self.check_list(mtr, page)
    }

    /// Once after a page was read: a record list that is circular would hold a scan for ever.
    fn check_list(&self, mtr: &Mtr<'_>, page: PageRef) -> Result<()> {
        if !mtr.is_checked(page) {
            layout::check_list(mtr.view(page))?;
            mtr.note_checked(page);
        }
        Ok(())
    }

    /// Checks a page that was reached by a pointer from its latched parent or sibling.
    pub(super) fn check_page(&self, mtr: &Mtr<'_>, page: PageRef, level: u16) -> Result<()> {
        let view = mtr.view(page);
        layout::check(view, self.index())?;
        if layout::level(view) != level {
            let why = format!("level {} where {level} belongs", layout::level(view));
            return Err(layout::corrupt(view, why));
        }
        self.check_list(mtr, page)
    }

    /// The node pointer to follow from an inner page.
    pub(super) fn pointer_for(&self, view: &[u8], seek: Seek<'_>) -> Result<RecOffset> {
        match seek {
            Seek::First => layout::first(view),
            Seek::Last => layout::last(view),
            Seek::Key(key, mode) => {
                let mode = match mode {
                    SearchMode::Less | SearchMode::GreaterOrEqual => SearchMode::Less,
                    SearchMode::LessOrEqual | SearchMode::Greater => SearchMode::LessOrEqual,
                };
                let low = search(view, self.index(), key, mode, self.collations())?.low;
                // A key below the first pointer of an inner page that is not leftmost: the first
                // child is the right one, since the parent's pointer led here.
                if low == layout::infimum(view) {
                    layout::first(view)
                } else {
                    Ok(low)
                }
            }
        }
    }

    /// The child page that the node pointer at `rec` names.
    pub(super) fn child(&self, view: &[u8], rec: RecOffset) -> Result<PageNo> {
        if layout::is_system(view, rec) {
            return Err(layout::corrupt(view, "an inner page without node pointers"));
        }
        let child = record::child_of(view, rec, self.index())?;
        if child == PageNo::NONE || child.0 < 3 && self.space().0 != 0 {
            return Err(layout::corrupt(
                view,
                format!("a node pointer to page {child}"),
            ));
        }
        Ok(child)
    }

    fn find(&self, view: &[u8], seek: Seek<'_>) -> Result<Found> {
        let at = |rec| Found {
            rec,
            low: rec,
            up: rec,
            low_match: 0,
            up_match: 0,
        };
        match seek {
            Seek::First => Ok(at(layout::infimum(view))),
            Seek::Last => Ok(at(layout::last(view)?)),
            Seek::Key(key, mode) => search(view, self.index(), key, mode, self.collations()),
        }
    }

    /// Steps to the next row's record if it stands on the same page; `false`, and not a step, if it
    /// does not.
    ///
    /// Errors: damage.
    #[inline]
    pub fn next_on_page(&self, mtr: &Mtr<'_>, at: &mut Position) -> Result<bool> {
        let view = mtr.view(at.page);
        let supremum = layout::supremum(view);
        if at.rec == supremum {
            return Ok(false);
        }
        let rec = layout::next(view, at.rec).map_err(|e| self.named(e))?;
        if rec == supremum || record::is_min_rec(view, rec) {
            return Ok(false);
        }
        at.rec = rec;
        self.prefetch_ahead(view, rec);
        Ok(true)
    }

    /// Asks for the second record after `rec` – records lie in the order in which they came – whose
    /// place the one between tells, which was asked for a step ago.
    #[inline]
    fn prefetch_ahead(&self, view: &[u8], rec: RecOffset) {
        let Ok(next) = layout::next(view, rec) else {
            return;
        };
        if next == layout::supremum(view) {
            return;
        }
        let ahead = header::next(view, next.at(), self.index().compact);
        let ends = self.index().fixed_ends.as_deref();
        let len = ends.and_then(<[u32]>::last).copied().unwrap_or(PREFETCHED);
        let end = ahead + len.min(PREFETCHED_MAX) as usize;
        let lines = (ahead.saturating_sub(header::REDUNDANT_EXTRA)..end).step_by(LINE_BYTES);
        lines.for_each(|at| prefetch(view, at));
    }

    /// As `next_on_page`, the other way.
    ///
    /// Errors: damage.
    pub fn prev_on_page(&self, mtr: &Mtr<'_>, at: &mut Position) -> Result<bool> {
        let view = mtr.view(at.page);
        let infimum = layout::infimum(view);
        if at.rec == infimum {
            return Ok(false);
        }
        let rec = layout::previous(view, at.rec).map_err(|e| self.named(e))?;
        if rec == infimum || record::is_min_rec(view, rec) {
            return Ok(false);
        }
        at.rec = rec;
        Ok(true)
    }

    /// Steps to the next row's record, to the right page if need be; `false` = the end: the
    /// position is then on the last page's supremum. Hidden metadata records are passed over.
    ///
    /// Errors: `WouldBlock`: restart, and come back to the place by its key (`StoredPosition`).
    pub fn next(&self, mtr: &mut Mtr<'_>, at: &mut Position) -> Result<bool> {
        self.step_right(mtr, at).map_err(|e| self.named(e))
    }

    fn step_right(&self, mtr: &mut Mtr<'_>, at: &mut Position) -> Result<bool> {
        loop {
            let view = mtr.view(at.page);
            let mut rec = at.rec;
            if rec != layout::supremum(view) {
                rec = layout::next(view, rec)?;
            }
            if rec != layout::supremum(view) {
                at.rec = rec;
                if record::is_metadata(view, rec) {
                    continue;
                }
                return Ok(true);
            }
            at.rec = rec;
            let Some(right) = layout::next_page(view) else {
                return Ok(false);
            };
            let (mode, here) = (mtr.mode(at.page), mtr.page_id(at.page));
            let next = mtr.get(self.page(right), mode, Rank::IndexPage)?;
            self.check_page(mtr, next, 0)?;
            if layout::prev_page(mtr.view(next)) != Some(here.page) {
                let why = format!("left link does not lead back to page {}", here.page);
                return Err(layout::corrupt(mtr.view(next), why));
            }
            mtr.release(at.page);
            *at = Position {
                page: next,
                rec: layout::infimum(mtr.view(next)),
                low_match: 0,
                up_match: 0,
            };
        }
    }

    /// Steps to the previous row's record; `false` = there is none: the position is then on the
    /// first page's infimum (or metadata record).
    ///
    /// The step to the left page only tries the latch (T3): `WouldBlock` = restart, and come back
    /// to the place by its key.
    pub fn prev(&self, mtr: &mut Mtr<'_>, at: &mut Position) -> Result<bool> {
        self.step_left(mtr, at).map_err(|e| self.named(e))
    }

    fn step_left(&self, mtr: &mut Mtr<'_>, at: &mut Position) -> Result<bool> {
        loop {
            let view = mtr.view(at.page);
            let mut rec = at.rec;
            if rec != layout::infimum(view) {
                rec = layout::previous(view, rec)?;
            }
            if rec != layout::infimum(view) {
                at.rec = rec;
                return Ok(!record::is_metadata(view, rec));
            }
            at.rec = rec;
            let Some(left) = layout::prev_page(view) else {
                return Ok(false);
            };
            let (mode, here) = (mtr.mode(at.page), mtr.page_id(at.page));
            let prev = mtr.try_get(self.page(left), mode, Rank::IndexPage)?;
            self.check_page(mtr, prev, 0)?;
            if layout::next_page(mtr.view(prev)) != Some(here.page) {
                let why = format!("right link does not lead back to page {}", here.page);
                return Err(layout::corrupt(mtr.view(prev), why));
            }
            mtr.release(at.page);
            *at = Position {
                page: prev,
                rec: layout::supremum(mtr.view(prev)),
                low_match: 0,
                up_match: 0,
            };
        }
    }
}

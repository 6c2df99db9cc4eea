//! The latched path of a structure change (T2).
//!
//! InnoDB latches the leaf level first and walks up. Here the path is found top-down with S
//! latches – under the tree latch inner pages stand still – and only then X-latched, top-down and
//! left to right, from the lowest page that certainly absorbs the change. What is missing in the
//! pool is read between the two, with no page latched.

use super::create::Segments;
use super::search::Seek;
use super::{Restructuring, Tree};
use crate::mtr::{Mode, Mtr, PageRef};
use crate::page::layout::{self, RecOffset};
use crate::page::space;
use crate::schema::Field;
use crate::sync::Rank;
use crate::words::{PageNo, Result};

/// What the structure change is for: decides which pages absorb it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// An insert: pages may split.
    Insert,
    /// A delete: pages may merge or go.
    Delete,
    /// A record that grows or moves: both.
    Both,
}

/// One level of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// The left neighbour, if the level may be linked anew.
    pub(super) left: Option<PageRef>,
    /// The page on the path.
    pub(super) page: PageRef,
    /// The right neighbour, likewise.
    pub(super) right: Option<PageRef>,
    /// The right neighbour's right neighbour, if the right one may be merged into the page.
    pub(super) beyond: Option<PageRef>,
}

impl Level {
    /// A page without latched neighbours.
    pub(super) fn alone(page: PageRef) -> Level {
        Level {
            left: None,
            page,
            right: None,
            beyond: None,
        }
    }
}

/// X-latched pages from the leaf upwards, and the tree latch. It may be dropped before the mtr
/// commits: whoever takes the tree latch then waits at the first page that is still X-latched.
pub struct Path<'t> {
    /// `levels[0]` is the leaf. Ends with the root, or with the lowest page that absorbs the change.
    pub(super) levels: Vec<Level>,
    /// The tree's segments: read before any page is latched that the allocation latches.
    pub(super) segments: Segments,
    _latched: Restructuring<'t>,
}

/// A page of the path as phase one saw it.
#[derive(Clone, Copy)]
struct Seen {
    page: PageNo,
    left: Option<PageNo>,
    right: Option<PageNo>,
    absorbs: bool,
}

impl Path<'_> {
    /// The leaf.
    pub fn leaf(&self) -> PageRef {
        self.levels[0].page
    }
}

impl Tree {
    /// Takes the tree latch and latches the path to `seek`'s leaf for a structure change. The mtr
    /// holds no page. The leaf's content may have changed since the caller last saw it.
    ///
    /// Errors: `WouldBlock` (restart the mtr), `Corrupt`, and what reading a page may give.
    pub fn latch_path(
        &self,
        mtr: &mut Mtr<'_>,
        seek: Seek<'_>,
        change: Change,
    ) -> Result<Path<'_>> {
        let _latched = self.restructure();
        let (levels, segments) = self
            .see_path(mtr, seek, change)
            .and_then(|(seen, segments)| Ok((self.latch_seen(mtr, &seen, change)?, segments)))
            .map_err(|e| self.named(e))?;
        Ok(Path {
            levels,
            segments,
            _latched,
        })
    }

    /// Phase one: from the root down with S latches.
    fn see_path(
        &self,
        mtr: &mut Mtr<'_>,
        seek: Seek<'_>,
        change: Change,
    ) -> Result<(Vec<Seen>, Segments)> {
        let mut seen = Vec::with_capacity(4);
        let mut page = mtr.get(self.root(), Mode::S, Rank::IndexPage)?;
        self.check_root(mtr, page)?;
        let segments = Segments::of_root(mtr, page)?;
        let mut level = layout::level(mtr.view(page));
        loop {
            let view = mtr.view(page);
            let at = (level > 0)
                .then(|| self.pointer_for(view, seek))
                .transpose()?;
            seen.push(Seen {
                page: mtr.page_id(page).page,
                left: layout::prev_page(view),
                right: layout::next_page(view),
                absorbs: match at {
                    Some(rec) => self.absorbs(view, rec, change)?,
                    None => false,
                },
            });
            let Some(rec) = at else { break };
            let child = self.child(view, rec)?;
            level -= 1;
            let next = mtr.get(self.page(child), Mode::S, Rank::IndexPage)?;
            self.check_page(mtr, next, level)?;
            mtr.release(page);
            page = next;
        }
        mtr.release(page);
        seen.reverse();
        Ok((seen, segments))
    }

    /// True if an inner page takes the loss or gain of one node pointer below it without changing
    /// its own place in the tree.
    fn absorbs(&self, view: &[u8], rec: RecOffset, change: Change) -> Result<bool> {
        let pointer = self.node_pointer_size_max(view.len());
        let takes = space::max_insert_size_after_reorganise(view, 2) >= 2 * pointer;
        let gives = layout::n_recs(view) > 2
            && rec != layout::first(view)?
            && space::data_size(view) >= self.merge_limit(view.len()) + 2 * pointer;
        Ok(match change {
            Change::Insert => takes,
            Change::Delete => gives,
            Change::Both => takes && gives,
        })
    }

    /// Phase two: X latches from the lowest absorbing page down, each level left to right.
    fn latch_seen(&self, mtr: &mut Mtr<'_>, seen: &[Seen], change: Change) -> Result<Vec<Level>> {
        let top = (1..seen.len())
            .find(|&l| seen[l].absorbs)
            .unwrap_or(seen.len() - 1);
        let mut levels = Vec::with_capacity(top + 1);
        for (level, s) in seen[..=top].iter().enumerate().rev() {
            // A top page that absorbs the change keeps its neighbours.
            let linked = !s.absorbs || level == 0;
            let left = self.latch_x(mtr, s.left.filter(|_| linked), level)?;
            let page = self
                .latch_x(mtr, Some(s.page), level)?
                .expect("asked for one");
            let right = self.latch_x(mtr, s.right.filter(|_| linked), level)?;
            let merges = change != Change::Insert;
            let beyond = right
                .filter(|_| merges)
                .and_then(|r| layout::next_page(mtr.view(r)));
            let beyond = self.latch_x(mtr, beyond, level)?;
            self.check_links(mtr, left, page, right)?;
            levels.push(Level {
                left,
                page,
                right,
                beyond,
            });
        }
        levels.reverse();
        Ok(levels)
    }

    fn latch_x(
        &self,
        mtr: &mut Mtr<'_>,
        page: Option<PageNo>,
        level: usize,
    ) -> Result<Option<PageRef>> {
        let Some(page) = page else { return Ok(None) };
        let page = mtr.get(self.page(page), Mode::X, Rank::IndexPage)?;
        self.check_page(mtr, page, level as u16)?;
        Ok(Some(page))
    }

    fn check_links(
        &self,
        mtr: &Mtr<'_>,
        left: Option<PageRef>,
        page: PageRef,
        right: Option<PageRef>,
    ) -> Result<()> {
        let here = Some(mtr.page_id(page).page);
        let left_agrees = left.is_none_or(|l| layout::next_page(mtr.view(l)) == here);
        let right_agrees = right.is_none_or(|r| layout::prev_page(mtr.view(r)) == here);
        if left_agrees && right_agrees {
            return Ok(());
        }
        Err(layout::corrupt(
            mtr.view(page),
            "the neighbours' links do not lead back here",
        ))
    }

    /// Bytes that a node pointer takes at most: half a page if a key field has no small bound.
    fn node_pointer_size_max(&self, page_size: usize) -> usize {
        let index = self.index();
        let fields = &index.fields[..index.n_node_key_fields()];
        // Value, length bytes, a bit in the NULL bitmap; header and child page.
        let size = |f: &Field| match (f.prefix_len, f.fixed_len) {
            (0, 0) => f.ty.len as usize,
            (0, fixed) => fixed as usize,
            (prefix, _) => prefix as usize,
        };
        let data: usize = fields.iter().map(|f| size(f) + 3).sum();
        (data + 12).min(page_size / 2)
    }

    /// A page with less data than this is merged with a neighbour.
    pub(super) fn merge_limit(&self, page_size: usize) -> usize {
        page_size * self.index().merge_threshold as usize / 100
    }
}

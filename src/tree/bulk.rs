//! Building a tree bottom up from records in key order.
//!
//! Pages are filled in memory and written whole, one mini-transaction a page: it also takes the page
//! that comes next, so that the link to it is known. Nobody finds them before the last
//! mini-transaction, which makes the root. A crash leaves pages of the tree's segments to which nothing
//! leads: `make_empty` frees them, as the reference engine does.

use super::create::Segments;
use super::split::{set_next, set_prev};
use super::{Scratch, Tree};
use crate::extent::{self, Direction};
use crate::format::record::MIN_REC;
use crate::mtr::{Budget, Class, Mode, Mtr, PageCtx, PageRef, retry};
use crate::page::layout;
use crate::page::list;
use crate::page::logged::on;
use crate::page::update::raise_max_trx_id;
use crate::page::write::write_difference;
use crate::page::{Offsets, PageBuilder, RecordImage, RecordView, space};
use crate::schema::Tuple;
use crate::sync::Rank;
use crate::words::{Error, PageNo, Result, TrxId};

/// Redo of a page beside its bytes: allocation of two pages, links.
const LOG_BYTES: usize = 16 << 10;
/// A page, and those of the space's header, descriptors, inodes and bitmap.
const FRAMES: u32 = 8;
/// innodb_fill_factor at which clustered pages still keep room for growing updates.
const WHOLE: u32 = 100;

/// A tree under construction.
pub struct Bulk<'t> {
    tree: &'t Tree,
    ctx: &'t PageCtx,
    segments: Segments,
    /// PAGE_MAX_TRX_ID of secondary leaves.
    writer: TrxId,
    /// Bytes that stay free on each page.
    reserve: usize,
    levels: Vec<Level>,
    image: RecordImage,
    pointer: Tuple,
    offsets: Offsets,
    pages: u64,
}

/// One level's last page.
struct Level {
    builder: PageBuilder,
    /// Its number; a level's first page gets one when a second page follows.
    page: Option<PageNo>,
    prev: Option<PageNo>,
}

impl Tree {
    /// True if the tree has no record at all, delete-marked ones included. Every writer of the table is
    /// locked out.
    ///
    /// Errors: damage; what reading gives.
    pub fn is_empty(&self, ctx: &PageCtx) -> Result<bool> {
        let (empty, _) = retry(ctx, None, |mtr| {
            let root = mtr.get(self.root(), Mode::S, Rank::IndexPage)?;
            self.check_root(mtr, root)?;
            let view = mtr.view(root);
            Ok(layout::is_leaf(view) && layout::n_recs(view) == 0)
        })?;
        Ok(empty)
    }
}

impl<'t> Bulk<'t> {
    /// Begins to build `tree`, which is empty and stays so: its writers are locked out. `fill_factor` as
    /// innodb_fill_factor, 10 to 100.
    ///
    /// Errors: damage; what reading gives.
    pub fn begin(
        tree: &'t Tree,
        ctx: &'t PageCtx,
        writer: TrxId,
        fill_factor: u32,
    ) -> Result<Bulk<'t>> {
        let (segments, _) = retry(ctx, None, |mtr| tree.segments(mtr))?;
        let page_size = ctx.page_size();
        let reserve = match fill_factor {
            WHOLE.. if tree.index().is_clustered() => space::update_reserve(page_size),
            percent => page_size * (WHOLE.saturating_sub(percent)) as usize / WHOLE as usize,
        };
        Ok(Bulk {
            tree,
            ctx,
            segments,
            writer,
            reserve,
            levels: Vec::new(),
            image: RecordImage::new(),
            pointer: Tuple::new(),
            offsets: Offsets::new(),
            pages: 0,
        })
    }

    /// Appends a leaf record, given with its header of `extra` bytes: above all before it.
    ///
    /// Errors: `NoSpace`, `BufferPoolFull`, `LogRoom`, `Stopped`. The tree is empty then; `make_empty` frees
    /// what was taken.
    pub fn push(&mut self, record: &[u8], extra: usize) -> Result<()> {
        self.add(0, record, extra)
            .map_err(|error| self.tree.named(error))
    }

    fn add(&mut self, level: usize, record: &[u8], extra: usize) -> Result<()> {
        if level == self.levels.len() {
            let index = self.tree.index();
            let is_secondary_leaf = level == 0 && !index.is_clustered();
            let writer = if is_secondary_leaf {
                self.writer
            } else {
                TrxId(0)
            };
            let number = level as u16;
            let size = self.ctx.page_size();
            self.levels.push(Level {
                builder: PageBuilder::new(
                    size,
                    self.tree.space(),
                    index.id,
                    number,
                    index.compact,
                    writer,
                )?,
                page: None,
                prev: None,
            });
        }
        let builder = &mut self.levels[level].builder;
        // Two records at least: a level above must be smaller than the one below.
        let reserve = if builder.n_recs() < 2 {
            0
        } else {
            self.reserve
        };
        if !builder.has_room(record.len(), reserve) {
            if builder.n_recs() == 0 {
                return Err(Error::internal("a record larger than a page"));
            }
            self.end_page(level, true)?;
        }
        self.levels[level].builder.push(record, extra);
        Ok(())
    }

    /// Writes a level's page, and notes it in the level above. `more`: another one follows.
    fn end_page(&mut self, level: usize, more: bool) -> Result<()> {
        self.levels[level].builder.finish();
        let (own, next) = self.write_page(level, more)?;
        self.pages += 1;
        let at = &mut self.levels[level];
        let (index, first) = (self.tree.index(), at.builder.first());
        let view = RecordView::new(at.builder.page(), first, index, &mut self.offsets)?;
        view.copy_node_pointer_to(&mut self.pointer, own);
        if at.prev.is_none() {
            self.pointer.info_bits = MIN_REC;
        }
        at.builder.clear();
        (at.prev, at.page) = (Some(own), next);
        let mut image = std::mem::take(&mut self.image);
        image.build(index, &self.pointer)?;
        let added = self.add(level + 1, image.bytes(), image.extra_size());
        self.image = image;
        added
    }

    fn write_page(&self, level: usize, more: bool) -> Result<(PageNo, Option<PageNo>)> {
        let (tree, at) = (self.tree, &self.levels[level]);
        let _room = tree.reserve_pages(self.ctx, 2, Class::Statement)?;
        let budget = Budget::statement(2 * self.ctx.page_size() + LOG_BYTES).with_frames(FRAMES);
        let (written, _) = retry(self.ctx, Some(budget), |mtr| {
            mtr.attempt(|mtr| {
                let hint = at.prev.map_or(PageNo(0), |page| PageNo(page.0 + 1));
                let own = match at.page {
                    Some(page) => page,
                    None => self.allocate(mtr, level, hint)?,
                };
                let next = match more {
                    true => Some(self.allocate(mtr, level, PageNo(own.0 + 1))?),
                    false => None,
                };
                self.fill(mtr, level, own, next)?;
                Ok((own, next))
            })
        })?;
        self.ctx.reached("bulk.page");
        Ok(written)
    }

    fn allocate(&self, mtr: &mut Mtr<'_>, level: usize, hint: PageNo) -> Result<PageNo> {
        let segment = self.segments.of_level(level as u16);
        Ok(extent::allocate_page(mtr, segment, hint, Direction::Up)?.page)
    }

    fn fill(
        &self,
        mtr: &mut Mtr<'_>,
        level: usize,
        own: PageNo,
        next: Option<PageNo>,
    ) -> Result<PageRef> {
        let (tree, at) = (self.tree, &self.levels[level]);
        let page = mtr.create(tree.page(own), Rank::IndexPage)?;
        let index = tree.index();
        list::create(&mut on(mtr, page), index.id, level as u16, index.compact)?;
        set_prev(mtr, page, at.prev);
        set_next(mtr, page, next);
        write_difference(&mut on(mtr, page), at.builder.page());
        tree.claim_no_space(mtr, page)?;
        Ok(page)
    }

    /// Writes what is left, the root last: from now on the records can be found. Returns how many pages
    /// were written beside the root.
    ///
    /// Errors: as `push`; `Invalid` if somebody wrote to the tree meanwhile.
    pub fn finish(mut self) -> Result<u64> {
        let mut top = 0;
        while top < self.levels.len() && self.levels[top].prev.is_some() {
            self.end_page(top, false)
                .map_err(|error| self.tree.named(error))?;
            top += 1;
        }
        if top < self.levels.len() {
            self.write_root(top)
                .map_err(|error| self.tree.named(error))?;
        }
        Ok(self.pages)
    }

    fn write_root(&mut self, top: usize) -> Result<()> {
        let (tree, level) = (self.tree, &mut self.levels[top]);
        let image = level.builder.finish();
        let budget = tree.change_budget(self.ctx, Class::Statement);
        let mut scratch = Scratch::default();
        retry(self.ctx, Some(budget), |mtr| {
            let _latched = tree.restructure();
            let root = mtr.get(tree.root(), Mode::X, Rank::IndexPage)?;
            tree.check_root(mtr, root)?;
            let view = mtr.view(root);
            if !layout::is_leaf(view) || layout::n_recs(view) > 0 {
                return Err(Error::invalid(format!(
                    "table {} was written to during a bulk load",
                    tree.table().name
                )));
            }
            tree.claim_no_space(mtr, root)?;
            mtr.attempt(|mtr| {
                // Its heap may hold what was removed, in the form of a leaf's records.
                tree.reset_root(mtr, root, top as u16, &mut scratch)?;
                let Scratch {
                    page: work, moved, ..
                } = &mut scratch;
                let (view, index) = (mtr.view(root), tree.index());
                let (after, first) = (layout::infimum(view), layout::first(image)?);
                let until = layout::supremum(image);
                list::prepare_copy(view, after, image, first, until, index, work, moved)?
                    .ok_or_else(|| layout::corrupt(view, "no room in an empty root"))?;
                list::finish_copy(&mut on(mtr, root), work);
                if top == 0 && !tree.index().is_clustered() {
                    raise_max_trx_id(&mut on(mtr, root), self.writer);
                }
                Ok(())
            })
        })?;
        self.ctx.reached("bulk.root");
        Ok(())
    }
}

//! Applying what a stock server left in the change buffer, before anything uses a secondary index.

use std::collections::BTreeSet;
use std::fmt;

use super::remove::{Seen, mark_entry, remove, restore_entry};
use crate::change_buffer::{self, Buffered, Leaf};
use crate::dict::{Dict, OpenTable};
use crate::extent::change_bitmap;
use crate::format::fil::PageType;
use crate::format::ibuf::Operation;
use crate::mtr::{Mode, PageCtx, retry};
use crate::page::layout;
use crate::sync::{Arc, Rank};
use crate::tree::{Guess, Scratch, Tree};
use crate::words::{Error, PageId, Result, SpaceId, TrxId};

/// What became of the changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Merged {
    /// They are in their indexes now.
    pub applied: u64,
    /// Nobody wants them: the page, or its table, is gone.
    pub discarded: u64,
    /// Their table cannot be opened: they stay.
    pub left: u64,
}

impl fmt::Display for Merged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Merged {
            applied,
            discarded,
            left,
        } = self;
        write!(
            f,
            "{applied} changes merged, {discarded} discarded, {left} left"
        )
    }
}

/// The tables of a tablespace.
enum Home {
    Gone,
    Tables(Vec<Arc<OpenTable>>),
}

/// Where a change belongs.
enum Target<'m> {
    Leaf(&'m Tree),
    Nowhere,
}

struct Merge<'c> {
    ctx: &'c PageCtx,
    dict: &'c Dict,
    home: Option<(SpaceId, Home)>,
    /// A change of theirs failed: later ones must not overtake it, and stay too.
    unusable: BTreeSet<SpaceId>,
    scratch: Scratch,
    merged: Merged,
}

/// Applies every change, then empties the change buffer. Nobody else uses the tables yet, and they
/// are no longer cached as open when this returns. If a table cannot be opened, its changes stay, and
/// so does the buffer.
///
/// # Errors
/// Damage of the change buffer; what reading its pages gives; `Stopped`.
pub fn merge_change_buffer(ctx: &PageCtx, dict: &Dict) -> Result<Merged> {
    let mut merge = Merge {
        ctx,
        dict,
        home: None,
        unusable: BTreeSet::new(),
        scratch: Scratch::default(),
        merged: Merged::default(),
    };
    if change_buffer::is_empty(ctx)? {
        return Ok(merge.merged);
    }
    let mut next = Some(change_buffer::first_leaf(ctx)?);
    let mut leaves_left = ctx.spaces.find(SpaceId::SYSTEM)?.size_pages();
    // Its last changes may stand on the next leaf.
    let mut open: Option<PageId> = None;
    while let Some(page) = next {
        let leaf = change_buffer::leaf(ctx, page)?;
        open = merge.leaf(&leaf, open)?;
        next = leaf.next;
        leaves_left = leaves_left
            .checked_sub(1)
            .ok_or_else(|| Error::corrupt_bytes("the change buffer's leaves are a circle"))?;
    }
    merge.close(open)?;
    merge.leave_home();
    if merge.merged.left == 0 {
        change_buffer::empty(ctx)?;
    }
    Ok(merge.merged)
}

impl Merge<'_> {
    /// Applies the changes of one leaf. `open` is the page whose bit is still to be cleared; returns
    /// the one of the last change.
    fn leaf(&mut self, leaf: &Leaf, mut open: Option<PageId>) -> Result<Option<PageId>> {
        let mut is_done = vec![false; leaf.changes.len()];
        let mut finished = Vec::new();
        for (i, change) in leaf.changes.iter().enumerate() {
            if open != Some(change.page) {
                finished.extend(open);
                open = None;
            }
            if !change.done {
                is_done[i] = self.change(change, leaf.max_trx_id)?;
            }
            if change.done || is_done[i] {
                open = Some(change.page);
            }
        }
        change_buffer::mark_done(self.ctx, leaf, |i| is_done[i])?;
        for page in finished {
            self.close(Some(page))?;
        }
        Ok(open)
    }

    /// All changes of the page are done.
    fn close(&mut self, page: Option<PageId>) -> Result<()> {
        let Some(page) = page else { return Ok(()) };
        if self.unusable.contains(&page.space) {
            return Ok(());
        }
        match self.home(page.space)? {
            Home::Tables(_) => change_buffer::clear_bits(self.ctx, page),
            Home::Gone => Ok(()),
        }
    }

    /// Applies or discards a change; false if it must stay.
    fn change(&mut self, change: &Buffered, writer: TrxId) -> Result<bool> {
        let page = change.page;
        if self.unusable.contains(&page.space) {
            self.merged.left += 1;
            return Ok(false);
        }
        match self.try_change(change, writer) {
            Ok(()) => Ok(true),
            Err(error @ Error::Stopped(_)) => Err(error),
            Err(error) => {
                log::error!("changes of {page} and others stay in the change buffer: {error}");
                self.leave_home();
                self.unusable.insert(page.space);
                self.merged.left += 1;
                Ok(false)
            }
        }
    }

    fn try_change(&mut self, change: &Buffered, writer: TrxId) -> Result<()> {
        let ctx = self.ctx;
        let mut scratch = std::mem::take(&mut self.scratch);
        let target = match self.home(change.page.space)? {
            Home::Gone => Target::Nowhere,
            Home::Tables(tables) => target(ctx, tables, change)?,
        };
        match target {
            Target::Leaf(tree) => {
                apply(ctx, tree, change, writer, &mut scratch)?;
                self.merged.applied += 1;
            }
            Target::Nowhere => self.merged.discarded += 1,
        }
        self.scratch = scratch;
        Ok(())
    }

    /// The tables of `space`, opened. Changes come by space, so that one is enough to remember.
    fn home(&mut self, space: SpaceId) -> Result<&Home> {
        if self.home.as_ref().is_none_or(|(known, _)| *known != space) {
            self.leave_home();
            let home = find_home(self.ctx, self.dict, space)?;
            self.home = Some((space, home));
        }
        let (_, home) = self.home.as_ref().expect("found above");
        Ok(home)
    }

    fn leave_home(&mut self) {
        if let Some((_, Home::Tables(tables))) = self.home.take() {
            forget(self.dict, &tables);
        }
    }
}

/// Opened again, a table whose changes stay is refused.
fn forget(dict: &Dict, tables: &[Arc<OpenTable>]) {
    // The dictionary's own stay open.
    for table in tables.iter().filter(|table| table.name().contains('/')) {
        dict.forget(table);
    }
}

fn find_home(ctx: &PageCtx, dict: &Dict, space: SpaceId) -> Result<Home> {
    let mut tables = Vec::new();
    for row in dict
        .table_rows(ctx)?
        .iter()
        .filter(|row| row.space == space)
    {
        match dict.open_table(ctx, &row.name) {
            Ok(table) => tables.push(table),
            Err(error) => {
                forget(dict, &tables);
                return Err(error);
            }
        }
    }
    if space == SpaceId::SYSTEM {
        tables.push(dict.system().tables.clone());
    }
    match tables.is_empty() {
        true => Ok(Home::Gone),
        false => Ok(Home::Tables(tables)),
    }
}

/// The tree whose leaf the change's page is.
fn target<'m>(
    ctx: &PageCtx,
    tables: &'m [Arc<OpenTable>],
    change: &Buffered,
) -> Result<Target<'m>> {
    let (index, _) = retry(ctx, None, |mtr| {
        if !change_bitmap::has_buffered(mtr, change.page)? {
            return Ok(None);
        }
        let held = mtr.get(change.page, Mode::S, Rank::IndexPage)?;
        let view = mtr.view(held);
        let is_leaf = layout::page_type(view) == PageType::INDEX.0 && layout::is_leaf(view);
        Ok(is_leaf.then(|| layout::index_id(view)))
    })?;
    let trees = tables.iter().flat_map(|table| table.trees());
    let tree = index.and_then(|id| {
        trees
            .filter(|tree| !tree.index().is_clustered())
            .find(|tree| tree.index().id == id)
    });
    match tree {
        None => Ok(Target::Nowhere),
        Some(tree) if tree.index().fields.len() == change.entry.len() => Ok(Target::Leaf(tree)),
        Some(tree) => {
            let why = "a change in the change buffer has not the fields of its index";
            Err(Error::corrupt(change.page, why).in_index(&tree.table().name, &tree.index().name))
        }
    }
}

/// Each operation leaves what is already there, since a crash may bring it here again.
fn apply(
    ctx: &PageCtx,
    tree: &Tree,
    change: &Buffered,
    writer: TrxId,
    scratch: &mut Scratch,
) -> Result<()> {
    let entry = &change.entry;
    match change.operation {
        Operation::Insert => restore_entry(ctx, tree, entry, writer, scratch),
        Operation::DeleteMark => mark_entry(ctx, tree, entry, writer).map(drop),
        Operation::Delete => {
            let leaf = &mut Guess::default();
            let mut is_marked = |_: &mut _, seen: Seen| Ok(seen.is_deleted);
            remove(ctx, tree, entry, leaf, scratch, &mut is_marked).map(drop)
        }
    }
}

//! CHECK TABLE's view of a tree: every page, link, pointer and key order.

use super::Tree;
use crate::mtr::{Mode, Mtr, PageCtx};
use crate::page::layout::{self, corrupt};
use crate::page::offsets::Offsets;
use crate::page::record::{self, RecordView};
use crate::page::search::compare_record;
use crate::page::validate::validate;
use crate::schema::Tuple;
use crate::sync::Rank;
use crate::words::limits::TREE_HEIGHT_MAX;
use crate::words::{PageNo, Result};
use std::cmp::Ordering;

/// What a validation counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeCounts {
    /// Leaf records, delete-marked ones included, the metadata record not.
    pub records: u64,
    /// Delete-marked ones among them.
    pub deleted: u64,
    /// Pages of all levels.
    pub pages: u64,
    /// Leaves among them.
    pub leaves: u64,
    /// Levels above the leaves.
    pub height: u16,
}

/// A depth-first walk, left to right.
struct Walk<'t> {
    tree: &'t Tree,
    ctx: &'t PageCtx,
    counts: TreeCounts,
    /// For each level: the page visited last and the one it says comes next.
    last: Vec<Option<(PageNo, Option<PageNo>)>>,
    /// The last leaf key visited.
    last_key: Tuple,
    /// Asked between pages.
    killed: &'t dyn Fn() -> Result<()>,
}

/// A node pointer, and where its subtree must end.
struct Child {
    page: PageNo,
    key: Tuple,
    min_rec: bool,
}

impl Tree {
    /// Checks the whole tree. Structure changes wait meanwhile, changes of single leaves do not.
    /// `killed` is asked between pages, with no page latched.
    ///
    /// Errors: `Corrupt` with the first contradiction; what reading a page or `killed` gives.
    pub fn validate(&self, ctx: &PageCtx, killed: &dyn Fn() -> Result<()>) -> Result<TreeCounts> {
        let _still = self.restructure();
        let mut walk = Walk {
            tree: self,
            ctx,
            counts: TreeCounts::default(),
            last: Vec::new(),
            last_key: Tuple::new(),
            killed,
        };
        walk.run().map_err(|e| self.named(e))
    }
}

impl Walk<'_> {
    fn run(&mut self) -> Result<TreeCounts> {
        let mut mtr = Mtr::reader(self.ctx);
        let root = mtr.get(self.tree.root(), Mode::S, Rank::IndexPage)?;
        self.tree.check_root(&mtr, root)?;
        let level = layout::level(mtr.view(root));
        drop(mtr);
        if level as usize >= TREE_HEIGHT_MAX {
            return Err(self
                .tree
                .damaged(self.tree.root(), format!("height {level}")));
        }
        self.counts.height = level;
        self.last = vec![None; level as usize + 1];
        self.visit(self.tree.root().page, level, None)?;
        for last in &self.last {
            if let Some((page, Some(next))) = last {
                let why = format!("page {next} follows, but no node pointer leads there");
                return Err(self.tree.damaged(self.tree.page(*page), why));
            }
        }
        Ok(self.counts)
    }

    /// Checks a page and everything below it. `pointer` = what led here, `None` for the root.
    fn visit(&mut self, page: PageNo, level: u16, pointer: Option<&Child>) -> Result<()> {
        (self.killed)()?;
        let mut children = Vec::new();
        {
            let mut mtr = Mtr::reader(self.ctx);
            let handle = mtr.get(self.tree.page(page), Mode::S, Rank::IndexPage)?;
            self.tree.check_page(&mtr, handle, level)?;
            let view = mtr.view(handle);
            validate(view, self.tree.index(), self.tree.collations())?;
            self.check_links(view, page, level)?;
            if let Some(pointer) = pointer {
                self.check_pointer(view, level, pointer)?;
            }
            self.counts.pages += 1;
            match level {
                0 => self.count_leaf(view)?,
                _ => self.collect_children(view, &mut children)?,
            }
        }
        for child in &children {
            self.visit(child.page, level - 1, Some(child))?;
        }
        Ok(())
    }

    fn check_links(&mut self, view: &[u8], page: PageNo, level: u16) -> Result<()> {
        let prev = layout::prev_page(view);
        let last = self.last[level as usize];
        let linked = match last {
            None => prev.is_none(),
            Some((before, next)) => prev == Some(before) && next == Some(page),
        };
        if !linked {
            let why = format!("left link {prev:?} does not agree with the level above ({last:?})");
            return Err(corrupt(view, why));
        }
        self.last[level as usize] = Some((page, layout::next_page(view)));
        Ok(())
    }

    /// The pointer's key: equal to the first key on inner levels, not above it on leaves.
    fn check_pointer(&self, view: &[u8], level: u16, pointer: &Child) -> Result<()> {
        let first = layout::first(view)?;
        if layout::is_system(view, first) {
            return Err(corrupt(view, "an empty page that is not the root"));
        }
        if pointer.min_rec || record::is_min_rec(view, first) {
            return Ok(());
        }
        let tree = self.tree;
        let (order, _) =
            compare_record(view, first, tree.index(), &pointer.key, tree.collations())?;
        match order {
            Ordering::Equal => Ok(()),
            Ordering::Less if level == 0 => Ok(()),
            _ => Err(corrupt(
                view,
                "the node pointer's key does not fit the first key",
            )),
        }
    }

    fn count_leaf(&mut self, view: &[u8]) -> Result<()> {
        self.counts.leaves += 1;
        let tree = self.tree;
        let mut offsets = Offsets::new();
        let mut last = None;
        for rec in layout::records(view) {
            let rec = rec?;
            if record::is_metadata(view, rec) {
                continue;
            }
            if last.is_none() && !self.last_key.is_empty() {
                let key = &self.last_key;
                let (order, _) = compare_record(view, rec, tree.index(), key, tree.collations())?;
                if order != Ordering::Less {
                    return Err(corrupt(
                        view,
                        "the first key is not above the left page's last",
                    ));
                }
            }
            last = Some(rec);
            self.counts.records += 1;
            self.counts.deleted += u64::from(record::is_deleted(view, rec));
        }
        if let Some(rec) = last {
            let record = RecordView::new(view, rec, tree.index(), &mut offsets)?;
            record.copy_key_to(&mut self.last_key, tree.index().n_tree_unique());
        }
        Ok(())
    }

    fn collect_children(&self, view: &[u8], children: &mut Vec<Child>) -> Result<()> {
        let index = self.tree.index();
        let mut offsets = Offsets::new();
        let leftmost = layout::prev_page(view).is_none();
        for (i, rec) in layout::records(view).enumerate() {
            let rec = rec?;
            let min_rec = record::is_min_rec(view, rec);
            if min_rec != (leftmost && i == 0) {
                return Err(corrupt(
                    view,
                    "the min-rec mark is not on the leftmost node pointer",
                ));
            }
            let record = RecordView::new(view, rec, index, &mut offsets)?;
            let mut key = Tuple::new();
            record.copy_key_to(&mut key, index.n_node_key_fields());
            children.push(Child {
                page: self.tree.child(view, rec)?,
                key,
                min_rec,
            });
        }
        Ok(())
    }
}

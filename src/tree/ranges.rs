//! Dividing a tree into ranges of about equal size, for several threads.

use super::Tree;
use crate::mtr::{Mode, Mtr, PageCtx, retry};
use crate::page::{Offsets, RecordView, layout};
use crate::schema::Tuple;
use crate::sync::Rank;
use crate::words::{PageNo, Result};

impl Tree {
    /// Keys at which ranges begin, ascending: about `wanted` ranges, the first of which begins before all
    /// keys and is not among them. Fewer in a small tree.
    ///
    /// Errors: damage; what reading gives.
    pub fn range_starts(&self, ctx: &PageCtx, wanted: usize) -> Result<Vec<Tuple>> {
        let (keys, _) = retry(ctx, None, |mtr| {
            // Inner pages stand still.
            let _latched = self.restructure();
            let root = mtr.get(self.root(), Mode::S, Rank::IndexPage)?;
            self.check_root(mtr, root)?;
            let mut level = layout::level(mtr.view(root));
            mtr.release(root);
            let mut pages = vec![self.root().page];
            let mut keys = Vec::new();
            while level > 0 && keys.len() < wanted {
                keys.clear();
                let mut children = Vec::new();
                for &page in &pages {
                    self.pointers_of(mtr, page, level, &mut keys, &mut children)?;
                }
                pages = children;
                level -= 1;
            }
            Ok(keys)
        })
        .map_err(|error| self.named(error))?;
        let step = keys.len().div_ceil(wanted.max(1)).max(1);
        Ok(keys.into_iter().step_by(step).skip(1).collect())
    }

    fn pointers_of(
        &self,
        mtr: &mut Mtr<'_>,
        page: PageNo,
        level: u16,
        keys: &mut Vec<Tuple>,
        children: &mut Vec<PageNo>,
    ) -> Result<()> {
        let page = mtr.get(self.page(page), Mode::S, Rank::IndexPage)?;
        if mtr.page_id(page) != self.root() {
            self.check_page(mtr, page, level)?;
        }
        let view = mtr.view(page);
        let mut offsets = Offsets::new();
        for rec in layout::records(view) {
            let rec = rec?;
            let pointer = RecordView::new(view, rec, self.index(), &mut offsets)?;
            let mut key = Tuple::new();
            pointer.copy_key_to(&mut key, self.index().n_node_key_fields());
            keys.push(key);
            children.push(self.child(view, rec)?);
        }
        mtr.release(page);
        Ok(())
    }
}

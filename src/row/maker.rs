//! Entries of new indexes from the clustered leaves of a table that nobody changes.

use std::cmp::Ordering;

use super::entry::{self, Fetched};
use crate::mtr::{PageCtx, retry};
use crate::page::{Offsets, RecOffset, RecordImage, RecordView, layout};
use crate::schema::Tuple;
use crate::schema::compare::compare_fields;
use crate::tree::Tree;
use crate::words::Result;

/// How reading a leaf ended.
pub enum Leaf {
    /// Rows may follow behind the one with this key.
    GoesOn(Tuple),
    /// The range's end was met.
    Ended,
}

/// Makes entries.
pub struct EntryMaker<'m> {
    ctx: &'m PageCtx,
    /// The table's trees, the clustered one first; off-page values are read for all indexes.
    trees: &'m [Tree],
    new: &'m [Tree],
    offsets: Offsets,
    row: Tuple,
    entry: Tuple,
    fetched: Fetched,
    image: RecordImage,
}

impl<'m> EntryMaker<'m> {
    /// For the indexes `new` of the table of `trees`.
    pub fn new(ctx: &'m PageCtx, trees: &'m [Tree], new: &'m [Tree]) -> EntryMaker<'m> {
        EntryMaker {
            ctx,
            trees,
            new,
            offsets: Offsets::new(),
            row: Tuple::new(),
            entry: Tuple::new(),
            fetched: Fetched::default(),
            image: RecordImage::new(),
        }
    }

    /// Calls `take` with the entries of each row on `page`, a copy of a clustered leaf, from `from` on and before
    /// the key `end`: number of the new index, entry, record. Delete-marked rows have none.
    ///
    /// Errors: damage; what reading off-page values and `take` give.
    pub fn entries_of(
        &mut self,
        page: &[u8],
        from: RecOffset,
        end: Option<&Tuple>,
        take: &mut dyn FnMut(usize, &Tuple, &RecordImage) -> Result<()>,
    ) -> Result<Leaf> {
        let clustered = &self.trees[0];
        let index = clustered.index();
        let mut rec = from;
        let mut last = None;
        let mut ended = false;
        for _ in 0..=layout::n_heap(page) {
            if rec == layout::supremum(page) {
                break;
            }
            let view = RecordView::new(page, rec, index, &mut self.offsets)?;
            let is_behind = end.is_some_and(|end| is_at_least(clustered, &view, end));
            if ended && !is_behind {
                return Err(layout::corrupt(page, "keys that do not ascend"));
            }
            ended = is_behind;
            last = Some(rec);
            if !ended && !view.is_deleted() {
                view.copy_to(&mut self.row);
                self.one_row(take)?;
            }
            rec = layout::next(page, rec)?;
        }
        let Some(last) = last.filter(|_| rec == layout::supremum(page)) else {
            return Err(layout::corrupt(page, "a list of records without an end"));
        };
        if ended {
            return Ok(Leaf::Ended);
        }
        let mut key = Tuple::new();
        let view = RecordView::new(page, last, index, &mut self.offsets)?;
        view.copy_key_to(&mut key, index.n_uniq.into());
        Ok(Leaf::GoesOn(key))
    }

    fn one_row(
        &mut self,
        take: &mut dyn FnMut(usize, &Tuple, &RecordImage) -> Result<()>,
    ) -> Result<()> {
        let clustered = self.trees[0].index();
        self.fetch()?;
        for (i, tree) in self.new.iter().enumerate() {
            entry::secondary(tree, clustered, &self.row, &self.fetched, &mut self.entry)?;
            self.image.build(tree.index(), &self.entry)?;
            take(i, &self.entry, &self.image)?;
        }
        Ok(())
    }

    fn fetch(&mut self) -> Result<()> {
        let is_whole = |field: crate::schema::FieldRef<'_>| {
            !matches!(field, crate::schema::FieldRef::External(_))
        };
        self.fetched.clear();
        if self.row.fields().all(is_whole) {
            return Ok(());
        }
        let Self {
            fetched,
            trees,
            new,
            row,
            ..
        } = self;
        retry(self.ctx, None, |mtr| {
            fetched.fetch_for(mtr, &trees[0], new, row)
        })?;
        Ok(())
    }
}

/// True if the record is not below the key.
fn is_at_least(tree: &Tree, view: &RecordView<'_>, key: &Tuple) -> bool {
    for (i, field) in tree.index().fields[..key.len()].iter().enumerate() {
        let order = compare_fields(field, view.field(i), key.field(i), tree.collations());
        if order != Ordering::Equal {
            return order == Ordering::Greater;
        }
    }
    true
}

//! The changes of a page inside a mini-transaction: the only functions by which a tree changes its
//! pages.
//!
//! Each is the plain function of its module over a page that logs. The handle must be latched X
//! (`raise_max_trx_id`: U is enough). An error has changed and logged nothing.

use crate::format::redo_record::PageOp;
use crate::mtr::{Mtr, PageRef};
use crate::schema::{FieldRef, Index, Tuple};
use crate::words::{IndexId, PageNo, Result, RollPtr, TrxId};

use super::insert::Scratch;
use super::list::{self, Moved};
use super::write::PageWrite;
use super::{Offsets, RecOffset, apply, update};

/// A page that logs its changes: what the plain functions take.
pub struct LoggedPage<'m, 'a> {
    mtr: &'m mut Mtr<'a>,
    page: PageRef,
}

/// Page `page` of `mtr`, to be changed.
pub fn on<'m, 'a>(mtr: &'m mut Mtr<'a>, page: PageRef) -> LoggedPage<'m, 'a> {
    LoggedPage { mtr, page }
}

impl PageWrite for LoggedPage<'_, '_> {
    fn page(&self) -> &[u8] {
        self.mtr.view(self.page)
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.mtr.write(self.page, offset, bytes);
    }

    fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        self.mtr.memset(self.page, offset, len, byte);
    }

    fn apply(&mut self, op: &PageOp<'_>) -> Result<()> {
        self.mtr
            .extended(self.page, op, |bytes| apply::apply(bytes, op))
    }
}

/// Makes a page that `Mtr::create` initialised an empty index page (`list::create`).
pub fn create(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    index: IndexId,
    level: u16,
    compact: bool,
) -> Result<()> {
    list::create(&mut on(mtr, page), index, level, compact)
}

/// Removes all records (`list::empty`).
pub fn empty(mtr: &mut Mtr<'_>, page: PageRef, scratch: &mut Scratch) -> Result<()> {
    list::empty(&mut on(mtr, page), scratch)
}

/// Sets the level of an empty root (`list::set_level`).
pub fn set_level(mtr: &mut Mtr<'_>, page: PageRef, level: u16) {
    list::set_level(&mut on(mtr, page), level);
}

/// Inserts `tuple` behind `prev` (`insert::insert`). `Ok(None)`: it does not fit as the page is.
pub fn insert(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    index: &Index,
    prev: RecOffset,
    tuple: &Tuple,
    scratch: &mut Scratch,
) -> Result<Option<RecOffset>> {
    super::insert::insert(&mut on(mtr, page), index, prev, tuple, scratch)
}

/// Inserts the record in `scratch.image` behind `prev` (`insert::insert_image`).
pub fn insert_image(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    index: &Index,
    prev: RecOffset,
    scratch: &mut Scratch,
) -> Result<Option<RecOffset>> {
    super::insert::insert_image(&mut on(mtr, page), index, prev, scratch)
}

/// Removes a record; returns the one before it (`delete::delete`).
pub fn delete(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    index: &Index,
    rec: RecOffset,
    offsets: &mut Offsets,
) -> Result<RecOffset> {
    super::delete::delete(&mut on(mtr, page), index, rec, offsets)
}

/// Writes fields that keep their size; false, with nothing changed, if one does not
/// (`update::update_in_place`).
pub fn update_in_place<'v>(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    index: &Index,
    rec: RecOffset,
    offsets: &Offsets,
    changes: impl Iterator<Item = (usize, FieldRef<'v>)> + Clone,
) -> bool {
    update::update_in_place(&mut on(mtr, page), index, rec, offsets, changes)
}

/// Sets or clears the delete mark.
pub fn set_delete_mark(mtr: &mut Mtr<'_>, page: PageRef, rec: RecOffset, deleted: bool) {
    update::set_delete_mark(&mut on(mtr, page), rec, deleted);
}

/// Sets or clears the mark of the leftmost node pointer of a level.
pub fn set_min_rec(mtr: &mut Mtr<'_>, page: PageRef, rec: RecOffset, min_rec: bool) {
    update::set_min_rec(&mut on(mtr, page), rec, min_rec);
}

/// Stamps DB_TRX_ID and DB_ROLL_PTR (`update::set_trx_id`).
pub fn set_trx_id(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    index: &Index,
    rec: RecOffset,
    offsets: &Offsets,
    ids: (TrxId, RollPtr),
) -> Result<()> {
    update::set_trx_id(&mut on(mtr, page), index, rec, offsets, ids.0, ids.1)
}

/// Points a node pointer to another child (`update::set_child`).
pub fn set_child(mtr: &mut Mtr<'_>, page: PageRef, child_offset: usize, child: PageNo) {
    update::set_child(&mut on(mtr, page), child_offset, child);
}

/// Raises PAGE_MAX_TRX_ID of a secondary leaf.
pub fn raise_max_trx_id(mtr: &mut Mtr<'_>, page: PageRef, trx_id: TrxId) {
    update::raise_max_trx_id(&mut on(mtr, page), trx_id);
}

/// Rebuilds the page in key order (`list::reorganise`); `moved` tells the lock table.
pub fn reorganise(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    index: &Index,
    scratch: &mut Scratch,
    moved: &mut Vec<Moved>,
) -> Result<()> {
    list::reorganise(&mut on(mtr, page), index, scratch, moved)
}

/// Copies the records `from..until` of `source` behind `after` of `page` (`list::copy_range`).
/// `Ok(None)`, with nothing changed: they do not fit as the page is.
#[expect(
    clippy::too_many_arguments,
    reason = "two places in two pages, and memory to work in"
)]
pub fn copy_range(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    after: RecOffset,
    source: PageRef,
    from: RecOffset,
    until: RecOffset,
    index: &Index,
    scratch: &mut Scratch,
    moved: &mut Vec<Moved>,
) -> Result<Option<RecOffset>> {
    let (bytes, source) = (mtr.view(page), mtr.view(source));
    let last = list::prepare_copy(bytes, after, source, from, until, index, scratch, moved)?;
    if last.is_some() {
        list::finish_copy(&mut on(mtr, page), scratch);
    }
    Ok(last)
}

/// Removes the records `from..until` (`list::delete_range`).
pub fn delete_range(
    mtr: &mut Mtr<'_>,
    page: PageRef,
    from: RecOffset,
    until: RecOffset,
    index: &Index,
    scratch: &mut Scratch,
) -> Result<()> {
    list::delete_range(&mut on(mtr, page), from, until, index, scratch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::collation::BytesOnly;
    use crate::mtr::testing::TestPages;
    use crate::page::{SearchMode, layout, search, tests, validate};
    use crate::sync::Rank;

    #[test]
    fn records_go_through_a_mini_transaction_and_a_failed_change_leaves_no_trace() {
        let pages = TestPages::new(16384, 64, 64);
        let table = tests::table(true);
        let index = table.clustered();
        let mut scratch = Scratch::new();
        let mut mtr = pages.mtr();
        let page = mtr.create(pages.id(7), Rank::IndexPage).expect("a frame");
        create(&mut mtr, page, index.id, 0, true).expect("an empty page");
        for id in 0..50u32 {
            let mut tuple = Tuple::new();
            tuple.push_bytes(&(id * 2).to_be_bytes());
            tuple.push_bytes(&[0; 6]);
            tuple.push_bytes(&[0; 7]);
            tuple.push_bytes(b"text");
            tuple.push_null();
            tuple.push_null();
            let view = mtr.view(page);
            let found =
                search(view, index, &tuple, SearchMode::LessOrEqual, &BytesOnly).expect("sound");
            let rec = insert(&mut mtr, page, index, found.rec, &tuple, &mut scratch);
            assert!(rec.expect("sound").is_some());
            tuple.truncate(3);
            assert!(insert(&mut mtr, page, index, found.rec, &tuple, &mut scratch).is_err());
        }
        let first = layout::first(mtr.view(page)).expect("sound");
        set_delete_mark(&mut mtr, page, first, true);
        delete(&mut mtr, page, index, first, &mut scratch.offsets).expect("sound");
        validate::validate(mtr.view(page), index, &BytesOnly).expect("a valid page");
        assert_eq!(layout::n_recs(mtr.view(page)), 49);
        assert!(mtr.commit().0 > 0);
    }
}

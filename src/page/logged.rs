//! A page inside a mini-transaction: the only way by which a tree changes its pages.
//!
//! `on(mtr, page)` goes to the plain functions of `list`, `insert`, `delete` and `update`; what they do
//! to it is logged. The handle must be latched X (`update::raise_max_trx_id`: U is enough). An error
//! has changed and logged nothing.

use crate::format::redo_record::PageOp;
use crate::mtr::{Mtr, PageRef};
use crate::words::Result;

use super::apply;
use super::write::PageWrite;

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

    fn write_run(&mut self, offset: usize, bytes: &[u8]) {
        self.mtr.write_whole(self.page, offset, bytes);
    }

    fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        self.mtr.memset(self.page, offset, len, byte);
    }

    fn apply(&mut self, op: &PageOp<'_>) -> Result<()> {
        self.mtr
            .extended(self.page, op, |bytes| apply::apply(bytes, op))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::collation::BytesOnly;
    use crate::mtr::testing::TestPages;
    use crate::page::{Scratch, SearchMode, delete, insert, layout, list, search};
    use crate::page::{tests, update, validate};
    use crate::schema::Tuple;
    use crate::sync::Rank;

    #[test]
    fn records_go_through_a_mini_transaction_and_a_failed_change_leaves_no_trace() {
        let pages = TestPages::new(16384, 64, 64);
        let table = tests::table(true);
        let index = table.clustered();
        let mut scratch = Scratch::new();
        let mut mtr = pages.mtr();
        let page = mtr.create(pages.id(7), Rank::IndexPage).expect("a frame");
        list::create(&mut on(&mut mtr, page), index.id, 0, true).expect("an empty page");
        for id in 0..50u32 {
            let mut tuple = Tuple::new();
            tuple.push_bytes(&(id * 2).to_be_bytes());
            tuple.push_bytes(&[0; 6]);
            tuple.push_bytes(&[0; 7]);
            tuple.push_bytes(b"text");
            tuple.push_null();
            tuple.push_null();
            let view = mtr.view(page);
            let found = search::search(view, index, &tuple, SearchMode::LessOrEqual, &BytesOnly)
                .expect("sound");
            let mut logged = on(&mut mtr, page);
            let rec = insert::insert(&mut logged, index, found.rec, &tuple, &mut scratch);
            assert!(rec.expect("sound").is_some());
            tuple.truncate(3);
            let rec = insert::insert(&mut logged, index, found.rec, &tuple, &mut scratch);
            assert!(rec.is_err());
        }
        let first = layout::first(mtr.view(page)).expect("sound");
        let mut logged = on(&mut mtr, page);
        update::set_delete_mark(&mut logged, first, true);
        delete::delete(&mut logged, index, first, &mut scratch.offsets).expect("sound");
        validate::validate(mtr.view(page), index, &BytesOnly).expect("a valid page");
        assert_eq!(layout::n_recs(mtr.view(page)), 49);
        assert!(mtr.commit().0 > 0);
    }
}

//! Latching undo pages, with the checks that every use of one needs.

use crate::format::fil::{self, PageType};
use crate::format::list::{ListBase, ListNode};
use crate::format::undo_page;
use crate::mtr::{Mode, Mtr, PageRef};
use crate::sync::Rank;
use crate::words::{Error, PageId, PageNo, Result};

/// Latches an undo page; a missing one is read if no latch is held, else `WouldBlock`.
pub(super) fn undo_page(mtr: &mut Mtr<'_>, id: PageId, mode: Mode) -> Result<PageRef> {
    let page = mtr.get(id, mode, Rank::UndoPage)?;
    check(mtr, page)
}

/// The same, reading under latches: for those who hold a leaf that must not be let go.
pub(super) fn undo_page_reading(mtr: &mut Mtr<'_>, id: PageId, mode: Mode) -> Result<PageRef> {
    let page = mtr.get_reading(id, mode, Rank::UndoPage)?;
    check(mtr, page)
}

fn check(mtr: &Mtr<'_>, page: PageRef) -> Result<PageRef> {
    let found = fil::page_type(mtr.view(page));
    match found {
        PageType::UNDO_LOG => Ok(page),
        _ => Err(Error::corrupt(
            mtr.page_id(page),
            format!("an undo page has type {found:?}"),
        )),
    }
}

/// Latches a rollback segment's header page.
pub(super) fn header(mtr: &mut Mtr<'_>, id: PageId, mode: Mode) -> Result<PageRef> {
    mtr.get(id, mode, Rank::UndoPage)
}

/// Names the page of a parse error.
pub(super) fn at<T>(mtr: &Mtr<'_>, page: PageRef, parsed: Result<T>) -> Result<T> {
    parsed.map_err(|error| error.at_page(mtr.page_id(page)))
}

/// The list node of an undo page.
pub(super) fn node(mtr: &Mtr<'_>, page: PageRef) -> Result<ListNode> {
    at(
        mtr,
        page,
        ListNode::parse(mtr.view(page), undo_page::OFF_NODE),
    )
}

/// The page list of an undo segment; `page` is its first page.
pub(super) fn page_list(mtr: &Mtr<'_>, page: PageRef) -> Result<ListBase> {
    let list = at(
        mtr,
        page,
        ListBase::parse(mtr.view(page), undo_page::OFF_PAGE_LIST),
    )?;
    let first = mtr.page_id(page).page;
    let starts_here = list.first.page() == first && list.first.offset() == undo_page::OFF_NODE;
    if list.count() == 0 || !starts_here || (list.count() == 1) != (list.last == list.first) {
        return Err(Error::corrupt(
            mtr.page_id(page),
            format!("the page list of an undo segment is {list:?}"),
        ));
    }
    Ok(list)
}

/// The same tablespace's page `page`.
pub(super) fn beside(id: PageId, page: PageNo) -> PageId {
    PageId::new(id.space, page)
}

//! Named hook 1: what recovery does to a page on its way into the pool.

use crate::words::{Lsn, PageId, Result, SpaceId};

/// Called by the pool. Set once, before the first page is read.
///
/// All methods may be called by many threads at once, never twice at once for one page. They must
/// not read pages.
pub trait PageLoaded: Send + Sync {
    /// True if pending records rebuild the page from nothing (the first is INIT_PAGE): the file is
    /// then not read.
    fn rebuilds(&self, id: PageId) -> bool;

    /// A sound copy of a page whose place in the file is damaged: from the doublewrite blocks.
    /// `damaged` is what the file holds, for reading its LSN. The pool verifies the copy.
    fn repair(&self, id: PageId, damaged: &[u8]) -> Option<Box<[u8]>>;

    /// Brings the page up to date: it was just read and verified, or is zero with a FIL header.
    /// Returns the start LSN of the oldest record applied; the page is then dirty from there on.
    /// The hook stamps the page LSN.
    fn on_read(&self, id: PageId, page: &mut [u8]) -> Result<Option<Lsn>>;

    /// What `on_read` applied stands in the flush list now, which from here on holds the checkpoint
    /// back for it.
    fn listed(&self, id: PageId);

    /// The page is created anew by a running mini-transaction: records pending for it are void.
    fn on_create(&self, id: PageId);

    /// The page was freed by a running mini-transaction: records pending for it are void.
    fn on_free(&self, id: PageId);

    /// The tablespace is being deleted: records pending for its pages are void.
    fn on_drop(&self, space: SpaceId);
}

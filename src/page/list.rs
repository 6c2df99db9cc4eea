//! Whole pages and runs of records: create, empty, reorganise, copy and delete for splits and
//! merges.
//!
//! These work on a copy with the same functions that change single records, then write what
//! differs: the log gets few records, and nothing can fail half-way (invariant 2).

use crate::format::index_page as at;
use crate::format::redo_record::PageOp;
use crate::schema::Index;
use crate::words::{HeapNo, IndexId, Result};

use super::apply;
use super::insert::{Scratch, insert_image};
use super::layout::{self, RecOffset, corrupt};
use super::record::{self, RecordView};
use super::write::{PageWrite, write_difference};

/// A record that has a new place: what the lock table must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Heap number it had, on the page it came from.
    pub from: HeapNo,
    /// Heap number it has now, on the page it went to.
    pub to: HeapNo,
}

/// Makes a page that was just initialised an empty index page. Links to neighbours, and the segment
/// headers of a root, are the tree's.
pub fn create(
    page: &mut (impl PageWrite + ?Sized),
    index: IndexId,
    level: u16,
    compact: bool,
) -> Result<()> {
    page.apply(&PageOp::InitIndex { compact })?;
    let mut bytes = [0u8; 10];
    bytes[..2].copy_from_slice(&level.to_be_bytes());
    bytes[2..].copy_from_slice(&index.0.to_be_bytes());
    page.write(at::LEVEL, &bytes);
    Ok(())
}

/// Sets LEVEL, for a root that is raised or lifted. The page must be empty.
pub fn set_level(page: &mut (impl PageWrite + ?Sized), level: u16) {
    if layout::level(page.page()) != level {
        page.write(at::LEVEL, &level.to_be_bytes());
    }
}

/// Removes all records at once. What belongs to the page rather than to its records stays: type,
/// level, index, MAX_TRX_ID or AUTO_INCREMENT, the instant state.
pub fn empty(page: &mut (impl PageWrite + ?Sized), scratch: &mut Scratch) -> Result<()> {
    let mut copy = std::mem::take(&mut scratch.page);
    copy_page(&mut copy, page.page());
    let result = clear(&mut copy, page.page());
    if result.is_ok() {
        write_difference(page, &copy);
    }
    scratch.page = copy;
    result
}

/// Rebuilds the page in key order, so that all garbage becomes free space. `moved` gets one entry per
/// record, in key order.
pub fn reorganise(
    page: &mut (impl PageWrite + ?Sized),
    index: &Index,
    scratch: &mut Scratch,
    moved: &mut Vec<Moved>,
) -> Result<()> {
    moved.clear();
    let mut copy = std::mem::take(&mut scratch.page);
    copy_page(&mut copy, page.page());
    let result = rebuild(&mut copy, page.page(), index, scratch, moved);
    if result.is_ok() {
        write_difference(page, &copy);
    }
    scratch.page = copy;
    result
}

/// Copies the records of `source` from `from` up to, not including, `until` behind the record `after`
/// of this page. Returns the last copied one; `None`, with nothing changed, if they do not fit
/// as the page is. `moved` gets one entry per record.
///
/// Both pages are of the same index and level. The caller takes care of MAX_TRX_ID.
#[expect(
    clippy::too_many_arguments,
    reason = "two places in two pages, and memory to work in"
)]
pub fn copy_range(
    page: &mut (impl PageWrite + ?Sized),
    after: RecOffset,
    source: &[u8],
    from: RecOffset,
    until: RecOffset,
    index: &Index,
    scratch: &mut Scratch,
    moved: &mut Vec<Moved>,
) -> Result<Option<RecOffset>> {
    let copied = prepare_copy(
        page.page(),
        after,
        source,
        from,
        until,
        index,
        scratch,
        moved,
    )?;
    if copied.is_some() {
        finish_copy(page, scratch);
    }
    Ok(copied)
}

/// The first half of `copy_range`, for pages that can't be borrowed together: changes nothing but
/// `scratch`, which `finish_copy` then writes.
#[expect(
    clippy::too_many_arguments,
    reason = "two places in two pages, and memory to work in"
)]
pub fn prepare_copy(
    page: &[u8],
    after: RecOffset,
    source: &[u8],
    from: RecOffset,
    until: RecOffset,
    index: &Index,
    scratch: &mut Scratch,
    moved: &mut Vec<Moved>,
) -> Result<Option<RecOffset>> {
    moved.clear();
    let mut copy = std::mem::take(&mut scratch.page);
    copy_page(&mut copy, page);
    let result = append(&mut copy, after, source, from, until, index, scratch, moved);
    scratch.page = copy;
    result
}

/// The second half of `copy_range`.
pub fn finish_copy(page: &mut (impl PageWrite + ?Sized), scratch: &mut Scratch) {
    let copy = std::mem::take(&mut scratch.page);
    write_difference(page, &copy);
    scratch.page = copy;
}

/// Removes the records from `from` up to, not including, `until`. If that is all of them the page
/// becomes as `empty` makes it.
pub fn delete_range(
    page: &mut (impl PageWrite + ?Sized),
    from: RecOffset,
    until: RecOffset,
    index: &Index,
    scratch: &mut Scratch,
) -> Result<()> {
    let bytes = page.page();
    if from == layout::first(bytes)? && until == layout::supremum(bytes) {
        return empty(page, scratch);
    }
    let mut copy = std::mem::take(&mut scratch.page);
    copy_page(&mut copy, page.page());
    let result = delete_backwards(&mut copy, from, until, index, scratch);
    if result.is_ok() {
        write_difference(page, &copy);
    }
    scratch.page = copy;
    result
}

fn copy_page(copy: &mut Vec<u8>, page: &[u8]) {
    copy.clear();
    copy.extend_from_slice(page);
}

/// Empties `copy`, which holds the bytes of `old`.
fn clear(copy: &mut [u8], old: &[u8]) -> Result<()> {
    layout::check_frame(old)?;
    let frame = layout::frame(old);
    apply::init_index(copy, layout::is_compact(old))?;
    let keep = |copy: &mut [u8], from: usize, len: usize| {
        copy[from..from + len].copy_from_slice(&old[from..from + len]);
    };
    keep(copy, at::TYPE, 2);
    keep(copy, at::MAX_TRX_ID, 8);
    copy[at::INSTANT] = old[at::INSTANT];
    copy[at::DIRECTION] = old[at::DIRECTION] & !7 | at::DIRECTION_NONE;
    // Instant ALTER keeps its state in the texts of the system records.
    keep(copy, frame.infimum as usize, 8);
    keep(copy, frame.supremum as usize, 8);
    Ok(())
}

fn rebuild(
    copy: &mut [u8],
    old: &[u8],
    index: &Index,
    scratch: &mut Scratch,
    moved: &mut Vec<Moved>,
) -> Result<()> {
    layout::check(old, index)?;
    clear(copy, old)?;
    let (from, until) = (layout::first(old)?, layout::supremum(old));
    let start = layout::infimum(old);
    if append(copy, start, old, from, until, index, scratch, moved)?.is_none() {
        return Err(corrupt(old, "the records do not fit on their own page"));
    }
    if moved.len() != layout::n_recs(old) {
        let why = format!(
            "{} records, the header says {}",
            moved.len(),
            layout::n_recs(old)
        );
        return Err(corrupt(old, why));
    }
    forget_inserts(copy);
    Ok(())
}

/// The next insert starts a new run.
fn forget_inserts(copy: &mut [u8]) {
    copy[at::LAST_INSERT..at::LAST_INSERT + 2].fill(0);
    copy[at::N_DIRECTION..at::N_DIRECTION + 2].fill(0);
    copy[at::DIRECTION] = copy[at::DIRECTION] & !7 | at::DIRECTION_NONE;
}

#[expect(
    clippy::too_many_arguments,
    reason = "two places in two pages, and memory to work in"
)]
fn append(
    copy: &mut [u8],
    after: RecOffset,
    source: &[u8],
    from: RecOffset,
    until: RecOffset,
    index: &Index,
    scratch: &mut Scratch,
    moved: &mut Vec<Moved>,
) -> Result<Option<RecOffset>> {
    layout::check(copy, index)?;
    layout::check(source, index)?;
    let (mut prev, mut current) = (after, from);
    let most = layout::n_heap(source);
    while current != until {
        if moved.len() >= most {
            return Err(corrupt(source, "the record list is circular"));
        }
        let view = RecordView::new(source, current, index, &mut scratch.offsets)?;
        scratch.image.copy_record(&view);
        let Some(rec) = insert_image(copy, index, prev, scratch)? else {
            return Ok(None);
        };
        let heap_no = record::heap_no(source, current);
        moved.push(Moved {
            from: heap_no,
            to: record::heap_no(copy, rec),
        });
        prev = rec;
        current = layout::next(source, current)?;
    }
    Ok(Some(prev))
}

/// Last first, so that records at the heap's top give their space back.
fn delete_backwards(
    copy: &mut [u8],
    from: RecOffset,
    until: RecOffset,
    index: &Index,
    scratch: &mut Scratch,
) -> Result<()> {
    layout::check(copy, index)?;
    if from == until {
        return Ok(());
    }
    let mut rec = layout::previous(copy, until)?;
    for _ in 0..layout::n_heap(copy) {
        let before = super::delete::delete(copy, index, rec, &mut scratch.offsets)?;
        if rec == from {
            forget_inserts(copy);
            return Ok(());
        }
        rec = before;
    }
    Err(corrupt(copy, "the records to delete are not in the list"))
}

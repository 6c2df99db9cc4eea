//! What the redo log's page operations do to an index page (format-redo.md section 7).
//!
//! Live changes and recovery both end here. Every function checks all it relies on before it
//! changes the first byte, so that an error leaves the page as it was.

use crate::format::index_page::{self as at, OWNED_MAX, OWNED_MIN};
use crate::format::record::{self, COMPACT_EXTRA, HEAP_NO_MAX, REDUNDANT_EXTRA};
use crate::format::redo_record::{InsertDynamic, InsertRedundant, PageOp};
use crate::words::{Error, Result, be};

use super::layout::{self, RecOffset, corrupt};

/// Applies one operation on an index page: `InitIndex`, an insert or a delete. Others are not this
/// module's: `Error::Internal`.
pub fn apply(page: &mut [u8], op: &PageOp<'_>) -> Result<()> {
    match op {
        PageOp::InitIndex { compact } => init_index(page, *compact),
        PageOp::InsertDynamic(insert) => insert_dynamic(page, insert),
        PageOp::InsertRedundant(insert) => insert_redundant(page, insert),
        PageOp::DeleteDynamic {
            prev,
            header_bytes,
            data_bytes,
        } => {
            let extra = *header_bytes as usize + COMPACT_EXTRA;
            delete_dynamic(page, *prev as usize, extra, *data_bytes as usize)
        }
        PageOp::DeleteRedundant { prev } => delete_redundant(page, *prev as usize),
        _ => Err(Error::internal("not an operation on index pages")),
    }
}

/// Makes an empty index page. LEVEL and INDEX_ID keep what they have, as the log record means it.
pub fn init_index(page: &mut [u8], compact: bool) -> Result<()> {
    if page.len() < 4096 {
        return Err(Error::corrupt_bytes(
            "an index page is shorter than 4096 bytes",
        ));
    }
    let frame = at::frame(compact);
    let end = page.len() - at::TRAILER_BYTES;
    be::put_u16(page, at::TYPE, at::TYPE_INDEX);
    page[at::HEADER..at::LEVEL].fill(0);
    be::put_u16(page, at::N_DIR_SLOTS, 2);
    be::put_u16(page, at::HEAP_TOP, frame.heap);
    be::put_u16(
        page,
        at::N_HEAP,
        if compact { at::COMPACT_BIT | 2 } else { 2 },
    );
    page[at::DIRECTION] = at::DIRECTION_NONE;
    page[at::DATA..frame.heap as usize].copy_from_slice(frame.system_records);
    page[frame.heap as usize..end].fill(0);
    be::put_u16(page, end - 2, frame.infimum);
    be::put_u16(page, end - 4, frame.supremum);
    Ok(())
}

/// Where a record goes, and what changes in the header for it.
struct Place {
    /// First byte of the record's header.
    start: usize,
    heap_no: u16,
    /// `None`: the heap's top.
    reuse: Option<Reuse>,
}

struct Reuse {
    free_next: usize,
}

/// The neighbourhood of an insert.
struct Link {
    prev: RecOffset,
    next: RecOffset,
    owner: RecOffset,
    slot: usize,
    n_owned: u8,
    /// The record that a new slot gets when the group is full.
    split_at: Option<RecOffset>,
}

/// Checks the predecessor and its group.
fn link(page: &[u8], prev: usize) -> Result<Link> {
    let prev = layout::check_origin(page, prev)?;
    if prev == layout::supremum(page) {
        return Err(corrupt(page, "an insert after the supremum"));
    }
    let next = layout::next(page, prev)?;
    let (owner, slot) = layout::owner(page, next)?;
    let n_owned = record::n_owned(page, owner.at(), layout::is_compact(page));
    if slot == 0 || n_owned == 0 || n_owned > OWNED_MAX {
        return Err(corrupt(
            page,
            format!("the record at {} owns {n_owned}", owner.0),
        ));
    }
    let split_at = if n_owned == OWNED_MAX {
        Some(split_record(page, slot, prev)?)
    } else {
        None
    };
    Ok(Link {
        prev,
        next,
        owner,
        slot,
        n_owned,
        split_at,
    })
}

/// In a group that will have nine records, the fourth: with the new record standing after `prev`.
/// `RecOffset(0)` stands for the new record itself.
fn split_record(page: &[u8], slot: usize, prev: RecOffset) -> Result<RecOffset> {
    let new = RecOffset(0);
    let mut current = layout::check_origin(page, layout::slot(page, slot - 1))?;
    let mut after_new = None;
    for _ in 0..OWNED_MIN {
        current = if current == new {
            after_new
                .take()
                .ok_or_else(|| corrupt(page, "a group without its records"))?
        } else if current == prev {
            after_new = Some(layout::next(page, prev)?);
            new
        } else {
            layout::next(page, current)?
        };
    }
    Ok(current)
}

/// Checks that `size` bytes fit at the heap's top, with the slot that the insert may need.
fn place_on_heap(page: &[u8], link: &Link, size: usize) -> Result<Place> {
    let start = layout::heap_top(page);
    if size + slot_bytes(link) > layout::gap(page) {
        return Err(corrupt(
            page,
            format!("a record of {size} bytes does not fit"),
        ));
    }
    let heap_no = layout::n_heap(page);
    if heap_no > HEAP_NO_MAX as usize {
        return Err(corrupt(page, "no heap number is left"));
    }
    Ok(Place {
        start,
        heap_no: heap_no as u16,
        reuse: None,
    })
}

fn slot_bytes(link: &Link) -> usize {
    if link.split_at.is_some() {
        at::SLOT_BYTES
    } else {
        0
    }
}

/// Checks that `size` bytes from `start` lie in the heap and are counted as garbage; the head of
/// the free list gives them up.
fn place_on_free(page: &[u8], link: &Link, start: usize, size: usize) -> Result<Place> {
    let compact = layout::is_compact(page);
    let free = free_origin(page)?;
    let heap = at::frame(compact).heap as usize;
    if start < heap || start + size > layout::heap_top(page) || layout::garbage(page) < size {
        return Err(corrupt(page, "an insert into free space that is not there"));
    }
    if slot_bytes(link) > layout::gap(page) {
        return Err(corrupt(page, "no room for another directory slot"));
    }
    let free_next = record::next(page, free.at(), compact);
    if free_next != 0 {
        user_origin(page, free_next)?;
    }
    let heap_no = record::heap_no(page, free.at(), compact);
    Ok(Place {
        start,
        heap_no,
        reuse: Some(Reuse { free_next }),
    })
}

fn free_origin(page: &[u8]) -> Result<RecOffset> {
    user_origin(page, layout::free_head(page))
}

fn user_origin(page: &[u8], origin: usize) -> Result<RecOffset> {
    let rec = layout::check_origin(page, origin)?;
    if layout::is_system(page, rec) {
        return Err(corrupt(
            page,
            "a system record where a user record should stand",
        ));
    }
    Ok(rec)
}

fn insert_dynamic(page: &mut [u8], insert: &InsertDynamic<'_>) -> Result<()> {
    layout::check_frame(page)?;
    if !layout::is_compact(page) {
        return Err(corrupt(page, "a compact record for a redundant page"));
    }
    let link = link(page, insert.prev as usize)?;
    let header_common = insert.header_common as usize;
    let data_common = insert.data_common as usize;
    let extra = COMPACT_EXTRA + insert.header.len() + header_common;
    let size = extra + data_common + insert.data.len();
    let place = match insert.reuse_shift {
        None => place_on_heap(page, &link, size)?,
        Some(shift) => {
            let start = free_origin(page)?.at() as i64 - extra as i64 + i64::from(shift);
            let start = usize::try_from(start)
                .map_err(|_| corrupt(page, "an insert before the page begins"))?;
            place_on_free(page, &link, start, size)?
        }
    };
    let header_from = common_range(page, link.prev.at() - COMPACT_EXTRA, header_common, 0)?;
    let data_from = common_range(page, link.prev.at(), 0, data_common)?;

    let (start, rec) = (place.start, place.start + extra);
    let fixed = rec - COMPACT_EXTRA;
    page.copy_within(data_from, rec);
    page.copy_within(header_from, start + insert.header.len());
    page[start..start + insert.header.len()].copy_from_slice(insert.header);
    page[rec + data_common..start + size].copy_from_slice(insert.data);
    let status = match (layout::is_leaf(page), insert.instant) {
        (false, _) => record::STATUS_NODE_PTR,
        (true, true) => record::STATUS_INSTANT,
        (true, false) => record::STATUS_ORDINARY,
    };
    page[fixed] = insert.info_bits & 0xF0;
    be::put_u16(page, fixed + 1, place.heap_no << 3 | u16::from(status));
    finish_insert(page, &link, &place, RecOffset(rec as u16), size);
    Ok(())
}

/// The bytes `back` before and `forth` after `from`, which must lie in the page.
fn common_range(
    page: &[u8],
    from: usize,
    back: usize,
    forth: usize,
) -> Result<std::ops::Range<usize>> {
    match from.checked_sub(back) {
        Some(start) if start >= at::HEADER && from + forth <= layout::heap_limit(page) => {
            Ok(start..from + forth)
        }
        _ => Err(corrupt(page, "an insert that copies from outside the heap")),
    }
}

fn insert_redundant(page: &mut [u8], insert: &InsertRedundant<'_>) -> Result<()> {
    layout::check_frame(page)?;
    if layout::is_compact(page) {
        return Err(corrupt(page, "a redundant record for a compact page"));
    }
    let link = link(page, insert.prev as usize)?;
    let n_fields = insert.n_fields as usize;
    if n_fields == 0 || n_fields > 1023 {
        return Err(corrupt(page, format!("a record of {n_fields} fields")));
    }
    let width = if insert.short { 1 } else { 2 };
    let extra = REDUNDANT_EXTRA + n_fields * width;
    let wrong_length = || corrupt(page, "an insert with too few or too many bytes");
    let header_common = REDUNDANT_EXTRA + insert.header_common as usize;
    let header_len = extra.checked_sub(header_common).ok_or_else(wrong_length)?;
    if header_len > insert.literal.len() {
        return Err(wrong_length());
    }
    let (header, data) = insert.literal.split_at(header_len);
    let header_from = common_range(page, link.prev.at(), header_common, 0)?;
    let last_end = last_field_end(page, header, &header_from, width);
    let data_common = insert.data_common as usize;
    if data_common + data.len() != last_end {
        return Err(wrong_length());
    }
    let size = extra + last_end;
    let place = if insert.reuse {
        let free = free_origin(page)?;
        let (free_extra, _) = redundant_sizes(page, free)?;
        place_on_free(page, &link, free.at() - free_extra, size)?
    } else {
        place_on_heap(page, &link, size)?
    };
    let data_from = common_range(page, link.prev.at(), 0, data_common)?;

    let (start, rec) = (place.start, place.start + extra);
    page.copy_within(data_from, rec);
    page.copy_within(header_from, start + header_len);
    page[start..start + header_len].copy_from_slice(header);
    page[rec + data_common..start + size].copy_from_slice(data);
    page[rec - 6] = insert.info_bits & 0xF0;
    let word = u32::from(place.heap_no) << 11 | (n_fields as u32) << 1 | u32::from(insert.short);
    be::put_u24(page, rec - 5, word);
    finish_insert(page, &link, &place, RecOffset(rec as u16), size);
    Ok(())
}

/// The end of the last field, which stands at the lowest address of the header: in the literal
/// bytes, in the common ones, or across both.
fn last_field_end(
    page: &[u8],
    header: &[u8],
    common: &std::ops::Range<usize>,
    width: usize,
) -> usize {
    let byte = |i: usize| match header.get(i) {
        Some(&byte) => usize::from(byte),
        None => usize::from(page[common.start + i - header.len()]),
    };
    if width == 1 {
        byte(0) & 0x7F
    } else {
        (byte(0) << 8 | byte(1)) & 0x3FFF
    }
}

/// Links the record, whose bytes stand, and brings header and directory up to date. Nothing here
/// can fail.
fn finish_insert(page: &mut [u8], link: &Link, place: &Place, rec: RecOffset, size: usize) {
    let compact = layout::is_compact(page);
    match &place.reuse {
        None => {
            let heap = be::u16_at(page, at::N_HEAP);
            be::put_u16(page, at::N_HEAP, heap + 1);
            be::put_u16(page, at::HEAP_TOP, (place.start + size) as u16);
        }
        Some(reuse) => {
            be::put_u16(page, at::FREE, reuse.free_next as u16);
            let garbage = layout::garbage(page) - size;
            be::put_u16(page, at::GARBAGE, garbage as u16);
        }
    }
    record::set_next(page, rec.at(), compact, link.next.at());
    record::set_next(page, link.prev.at(), compact, rec.at());
    record::set_n_owned(page, link.owner.at(), compact, link.n_owned + 1);
    note_insert(page, link, rec);
    if let Some(fourth) = link.split_at {
        let fourth = if fourth == RecOffset(0) { rec } else { fourth };
        split_slot(page, link, fourth);
    }
}

/// LAST_INSERT, the direction of inserts, N_RECS.
fn note_insert(page: &mut [u8], link: &Link, rec: RecOffset) {
    let last = layout::last_insert(page);
    be::put_u16(page, at::LAST_INSERT, rec.0);
    if layout::page_type(page) != at::TYPE_RTREE {
        let old = layout::direction(page);
        let (direction, count) = if last != 0 && last == link.prev.at() && old != at::DIRECTION_LEFT
        {
            (at::DIRECTION_RIGHT, layout::n_direction(page) as u16 + 1)
        } else if last != 0 && last == link.next.at() && old != at::DIRECTION_RIGHT {
            (at::DIRECTION_LEFT, layout::n_direction(page) as u16 + 1)
        } else {
            (at::DIRECTION_NONE, 0)
        };
        page[at::DIRECTION] = page[at::DIRECTION] & !7 | direction;
        be::put_u16(page, at::N_DIRECTION, count);
    }
    let n_recs = layout::n_recs(page) as u16 + 1;
    be::put_u16(page, at::N_RECS, n_recs);
}

/// Gives the first four of nine records a slot of their own.
fn split_slot(page: &mut [u8], link: &Link, fourth: RecOffset) {
    let compact = layout::is_compact(page);
    let slots = layout::n_dir_slots(page);
    let lowest = at::slot_offset(page.len(), slots);
    let here = at::slot_offset(page.len(), link.slot);
    page.copy_within(lowest + at::SLOT_BYTES..here + at::SLOT_BYTES, lowest);
    be::put_u16(page, here, fourth.0);
    be::put_u16(page, at::N_DIR_SLOTS, slots as u16 + 1);
    record::set_n_owned(page, fourth.at(), compact, OWNED_MIN);
    record::set_n_owned(page, link.owner.at(), compact, OWNED_MAX + 1 - OWNED_MIN);
}

/// Header and data bytes of a REDUNDANT record, from its own header.
fn redundant_sizes(page: &[u8], rec: RecOffset) -> Result<(usize, usize)> {
    let n_fields = record::redundant_n_fields(page, rec.at());
    let short = record::redundant_is_short(page, rec.at());
    let extra = REDUNDANT_EXTRA + n_fields * if short { 1 } else { 2 };
    if n_fields == 0 || rec.at() < at::REDUNDANT.heap as usize + extra {
        return Err(corrupt(
            page,
            format!("a record header before the heap at {}", rec.0),
        ));
    }
    let end = record::redundant_end(page, rec.at(), short, n_fields - 1);
    Ok((extra, usize::from(end & record::LONG_OFFSET)))
}

fn delete_redundant(page: &mut [u8], prev: usize) -> Result<()> {
    layout::check_frame(page)?;
    if layout::is_compact(page) {
        return Err(corrupt(page, "a redundant delete on a compact page"));
    }
    let rec = following(page, prev)?;
    let (extra, data) = redundant_sizes(page, rec)?;
    delete(page, RecOffset(prev as u16), rec, extra, data)
}

fn delete_dynamic(page: &mut [u8], prev: usize, extra: usize, data: usize) -> Result<()> {
    layout::check_frame(page)?;
    if !layout::is_compact(page) {
        return Err(corrupt(page, "a compact delete on a redundant page"));
    }
    let rec = following(page, prev)?;
    if rec.at() < at::COMPACT.heap as usize + extra {
        return Err(corrupt(
            page,
            "a deleted record that begins before the heap",
        ));
    }
    delete(page, RecOffset(prev as u16), rec, extra, data)
}

/// The user record after `prev`.
fn following(page: &[u8], prev: usize) -> Result<RecOffset> {
    let prev = layout::check_origin(page, prev)?;
    if prev == layout::supremum(page) {
        return Err(corrupt(page, "a delete after the supremum"));
    }
    let rec = layout::next(page, prev)?;
    if layout::is_system(page, rec) {
        return Err(corrupt(page, "a delete of a system record"));
    }
    Ok(rec)
}

/// How the directory is brought back to groups of four to eight.
enum Balance {
    None,
    /// The group joins the next one.
    Merge {
        upper: RecOffset,
    },
    /// The group takes the first record of the next one.
    Take {
        upper: RecOffset,
        taken: RecOffset,
    },
}

fn delete(
    page: &mut [u8],
    prev: RecOffset,
    rec: RecOffset,
    extra: usize,
    data: usize,
) -> Result<()> {
    let compact = layout::is_compact(page);
    let next = layout::next(page, rec)?;
    let (owner, slot) = layout::owner(page, rec)?;
    let left = record::n_owned(page, owner.at(), compact) - 1;
    if slot == 0 || left == 0 || rec.at() + data > layout::heap_top(page) {
        return Err(corrupt(
            page,
            format!("the record at {} can't be deleted", rec.0),
        ));
    }
    let new_owner = if owner == rec { prev } else { owner };
    let balance = balance_for(page, slot, left, new_owner, rec, next)?;
    let space = freed_space(page, rec, extra, data)?;

    record::set_next(page, prev.at(), compact, next.at());
    if owner == rec {
        let here = at::slot_offset(page.len(), slot);
        be::put_u16(page, here, prev.0);
    }
    record::set_n_owned(page, new_owner.at(), compact, left);
    be::put_u16(page, at::LAST_INSERT, 0);
    let n_recs = (layout::n_recs(page) as u16).saturating_sub(1);
    be::put_u16(page, at::N_RECS, n_recs);
    free_record(page, rec, extra, data, &space);
    rebalance(page, slot, left, new_owner, &balance);
    Ok(())
}

fn balance_for(
    page: &[u8],
    slot: usize,
    left: u8,
    owner: RecOffset,
    rec: RecOffset,
    next: RecOffset,
) -> Result<Balance> {
    if left >= OWNED_MIN || slot + 1 == layout::n_dir_slots(page) {
        return Ok(Balance::None);
    }
    let upper = layout::check_origin(page, layout::slot(page, slot + 1))?;
    let owned = record::n_owned(page, upper.at(), layout::is_compact(page));
    if owned == 0 || owned > OWNED_MAX {
        return Err(corrupt(
            page,
            format!("the record at {} owns {owned}", upper.0),
        ));
    }
    if owned <= OWNED_MIN {
        return Ok(Balance::Merge { upper });
    }
    // The owner's successor once `rec` is gone.
    let taken = match layout::next(page, owner)? {
        after if after == rec => next,
        after => after,
    };
    if taken == upper || layout::is_system(page, taken) {
        return Err(corrupt(page, "a group that is shorter than it says"));
    }
    Ok(Balance::Take { upper, taken })
}

fn rebalance(page: &mut [u8], slot: usize, left: u8, owner: RecOffset, balance: &Balance) {
    let compact = layout::is_compact(page);
    match *balance {
        Balance::None => {}
        Balance::Merge { upper } => {
            let owned = record::n_owned(page, upper.at(), compact);
            record::set_n_owned(page, owner.at(), compact, 0);
            record::set_n_owned(page, upper.at(), compact, owned + left);
            let slots = layout::n_dir_slots(page);
            let lowest = at::slot_offset(page.len(), slots - 1);
            let here = at::slot_offset(page.len(), slot);
            page.copy_within(lowest..here, lowest + at::SLOT_BYTES);
            be::put_u16(page, lowest, 0);
            be::put_u16(page, at::N_DIR_SLOTS, slots as u16 - 1);
        }
        Balance::Take { upper, taken } => {
            let owned = record::n_owned(page, upper.at(), compact);
            record::set_n_owned(page, owner.at(), compact, 0);
            record::set_n_owned(page, taken.at(), compact, left + 1);
            record::set_n_owned(page, upper.at(), compact, owned - 1);
            let here = at::slot_offset(page.len(), slot);
            be::put_u16(page, here, taken.0);
        }
    }
}

/// Where a freed record's bytes go.
enum Freed {
    /// Back to the heap; so many bytes behind it were garbage.
    Top { slack: usize },
    /// To the head of the free list.
    List { head: usize },
}

fn freed_space(page: &[u8], rec: RecOffset, extra: usize, data: usize) -> Result<Freed> {
    let compact = layout::is_compact(page);
    let heap_no = usize::from(record::heap_no(page, rec.at(), compact));
    if heap_no < 2 || heap_no >= layout::n_heap(page) {
        return Err(corrupt(
            page,
            format!("the record at {} has heap number {heap_no}", rec.0),
        ));
    }
    if heap_no + 1 == layout::n_heap(page) {
        let slack = layout::heap_top(page) - (rec.at() + data);
        if slack > layout::garbage(page) {
            return Err(corrupt(
                page,
                "free space at the heap's top that is not garbage",
            ));
        }
        return Ok(Freed::Top { slack });
    }
    let head = layout::free_head(page);
    if head != 0 {
        user_origin(page, head)?;
    }
    if layout::garbage(page) + extra + data > usize::from(u16::MAX) {
        return Err(corrupt(page, "more garbage than the page has bytes"));
    }
    Ok(Freed::List { head })
}

fn free_record(page: &mut [u8], rec: RecOffset, extra: usize, data: usize, space: &Freed) {
    let start = rec.at() - extra;
    match *space {
        Freed::Top { slack } => {
            be::put_u16(page, at::HEAP_TOP, start as u16);
            let n_heap = be::u16_at(page, at::N_HEAP);
            be::put_u16(page, at::N_HEAP, n_heap - 1);
            let garbage = layout::garbage(page) - slack;
            be::put_u16(page, at::GARBAGE, garbage as u16);
            page[start..rec.at() + data].fill(0);
        }
        Freed::List { head } => {
            be::put_u16(page, at::FREE, rec.0);
            let garbage = layout::garbage(page) + extra + data;
            be::put_u16(page, at::GARBAGE, garbage as u16);
            record::set_next(page, rec.at(), layout::is_compact(page), head);
            page[rec.at()..rec.at() + data].fill(0);
        }
    }
}

//! Header accessors of an index page, and walks along its record list that trust nothing.

use crate::format::index_page::{self as at, Frame};
use crate::format::record;
use crate::schema::Index;
use crate::words::{Error, IndexId, PageId, PageNo, Result, SpaceId, TrxId, be};

/// Origin of a record in its page: the offset of its first data byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct RecOffset(pub u16);

impl RecOffset {
    /// As an index into the page.
    #[inline]
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// The id that the page's envelope carries; it was checked when the page was read.
pub fn page_id(page: &[u8]) -> PageId {
    PageId::new(
        SpaceId(be::u32_at(page, at::SPACE_ID)),
        PageNo(be::u32_at(page, 4)),
    )
}

/// Damage on this page.
#[cold]
pub fn corrupt(page: &[u8], why: impl Into<Box<str>>) -> Error {
    Error::corrupt(page_id(page), why)
}

/// FIL_PAGE_TYPE.
pub fn page_type(page: &[u8]) -> u16 {
    be::u16_at(page, at::TYPE)
}

/// The left neighbour on the level.
pub fn prev_page(page: &[u8]) -> Option<PageNo> {
    PageNo(be::u32_at(page, at::PREV)).some()
}

/// The right neighbour on the level.
pub fn next_page(page: &[u8]) -> Option<PageNo> {
    PageNo(be::u32_at(page, at::NEXT)).some()
}

/// True for compact record headers.
#[inline]
pub fn is_compact(page: &[u8]) -> bool {
    page[at::N_HEAP] & 0x80 != 0
}

/// Where the fixed parts stand.
#[inline]
pub fn frame(page: &[u8]) -> &'static Frame {
    at::frame(is_compact(page))
}

/// Number of directory slots.
#[inline]
pub fn n_dir_slots(page: &[u8]) -> usize {
    be::u16_at(page, at::N_DIR_SLOTS) as usize
}

/// First unused byte of the heap.
#[inline]
pub fn heap_top(page: &[u8]) -> usize {
    be::u16_at(page, at::HEAP_TOP) as usize
}

/// Records in the heap, the system records and freed ones included.
#[inline]
pub fn n_heap(page: &[u8]) -> usize {
    (be::u16_at(page, at::N_HEAP) & !at::COMPACT_BIT) as usize
}

/// Origin of the first freed record, 0 = none.
#[inline]
pub fn free_head(page: &[u8]) -> usize {
    be::u16_at(page, at::FREE) as usize
}

/// Bytes in freed records.
#[inline]
pub fn garbage(page: &[u8]) -> usize {
    be::u16_at(page, at::GARBAGE) as usize
}

/// Origin of the record inserted last, 0 = none.
#[inline]
pub fn last_insert(page: &[u8]) -> usize {
    be::u16_at(page, at::LAST_INSERT) as usize
}

/// Direction of the last inserts.
#[inline]
pub fn direction(page: &[u8]) -> u8 {
    page[at::DIRECTION] & 7
}

/// Number of consecutive inserts in that direction.
#[inline]
pub fn n_direction(page: &[u8]) -> usize {
    be::u16_at(page, at::N_DIRECTION) as usize
}

/// The INSTANT field: core fields of an instant table, 0 if unused.
#[inline]
pub fn instant_n_core(page: &[u8]) -> u16 {
    be::u16_at(page, at::INSTANT) >> 3
}

/// User records in the list, delete-marked ones included.
#[inline]
pub fn n_recs(page: &[u8]) -> usize {
    be::u16_at(page, at::N_RECS) as usize
}

/// Highest transaction that changed this secondary leaf.
pub fn max_trx_id(page: &[u8]) -> TrxId {
    TrxId(be::u64_at(page, at::MAX_TRX_ID))
}

/// The last AUTO_INCREMENT value handed out, on a clustered root.
pub fn root_auto_inc(page: &[u8]) -> u64 {
    be::u64_at(page, at::ROOT_AUTO_INC)
}

/// Level in the tree, 0 = leaf.
#[inline]
pub fn level(page: &[u8]) -> u16 {
    be::u16_at(page, at::LEVEL)
}

/// True for leaves.
#[inline]
pub fn is_leaf(page: &[u8]) -> bool {
    level(page) == 0
}

/// The index that the page belongs to.
pub fn index_id(page: &[u8]) -> IndexId {
    IndexId(be::u64_at(page, at::INDEX_ID))
}

/// Origin in directory slot `slot`; `slot` must be below a checked `n_dir_slots`.
#[inline]
pub fn slot(page: &[u8], slot: usize) -> usize {
    be::u16_at(page, at::slot_offset(page.len(), slot)) as usize
}

/// The record before all others.
#[inline]
pub fn infimum(page: &[u8]) -> RecOffset {
    RecOffset(frame(page).infimum)
}

/// The record after all others.
#[inline]
pub fn supremum(page: &[u8]) -> RecOffset {
    RecOffset(frame(page).supremum)
}

/// True for the two system records.
#[inline]
pub fn is_system(page: &[u8], rec: RecOffset) -> bool {
    rec.0 < frame(page).heap
}

/// First byte that belongs to no record: HEAP_TOP, or less if HEAP_TOP lies.
#[inline]
pub fn heap_limit(page: &[u8]) -> usize {
    heap_top(page).min(page.len() - at::TRAILER_BYTES)
}

/// Bytes between the heap and the directory.
pub fn gap(page: &[u8]) -> usize {
    let directory = page.len() - at::TRAILER_BYTES - at::SLOT_BYTES * n_dir_slots(page);
    directory.saturating_sub(heap_top(page))
}

/// Checks what every use of a page relies on: size, type, index, row format, and that heap and
/// directory are in their places. What this accepts can be searched without a panic.
pub fn check(page: &[u8], index: &Index) -> Result<()> {
    check_frame(page)?;
    if is_compact(page) != index.compact {
        return Err(corrupt(page, "the row format bit is not the table's"));
    }
    if index_id(page) != index.id {
        return Err(corrupt(
            page,
            format!(
                "the page belongs to index {}, not {}",
                index_id(page),
                index.id
            ),
        ));
    }
    Ok(())
}

/// As `check`, for callers that know no index (recovery).
pub fn check_frame(page: &[u8]) -> Result<()> {
    if page.len() < 4096 {
        return Err(Error::corrupt_bytes(
            "an index page is shorter than 4096 bytes",
        ));
    }
    if !matches!(
        page_type(page),
        at::TYPE_INDEX | at::TYPE_RTREE | at::TYPE_INSTANT
    ) {
        return Err(corrupt(
            page,
            format!("page type {} is not an index page", page_type(page)),
        ));
    }
    let slots = n_dir_slots(page);
    if slots < 2 || slots > page.len() / 4 {
        return Err(corrupt(page, format!("{slots} directory slots")));
    }
    let directory = page.len() - at::TRAILER_BYTES - at::SLOT_BYTES * slots;
    let frame = frame(page);
    if heap_top(page) < frame.heap as usize || heap_top(page) > directory {
        return Err(corrupt(
            page,
            format!("the heap ends at {}", heap_top(page)),
        ));
    }
    if slot(page, 0) != frame.infimum as usize || slot(page, slots - 1) != frame.supremum as usize {
        return Err(corrupt(
            page,
            "the directory does not begin and end with the system records",
        ));
    }
    Ok(())
}

/// Accepts `origin` if a record can stand there: a system record, or inside the heap with room for
/// the fixed header before it.
#[inline]
pub fn check_origin(page: &[u8], origin: usize) -> Result<RecOffset> {
    let frame = frame(page);
    let lowest = frame.heap as usize + frame.info_back as usize;
    if (origin >= lowest && origin <= heap_limit(page))
        || origin == frame.supremum as usize
        || origin == frame.infimum as usize
    {
        return Ok(RecOffset(origin as u16));
    }
    Err(corrupt(
        page,
        format!("no record can stand at offset {origin}"),
    ))
}

/// The next record in key order. Not for the supremum.
#[inline]
pub fn next(page: &[u8], rec: RecOffset) -> Result<RecOffset> {
    check_origin(page, record::next(page, rec.at(), is_compact(page)))
}

/// The first user record, or the supremum.
pub fn first(page: &[u8]) -> Result<RecOffset> {
    next(page, infimum(page))
}

/// The record that owns `rec`'s group, and its directory slot.
pub fn owner(page: &[u8], rec: RecOffset) -> Result<(RecOffset, usize)> {
    let compact = is_compact(page);
    let mut owner = rec;
    let mut steps = 0;
    while record::n_owned(page, owner.at(), compact) == 0 {
        steps += 1;
        if steps > usize::from(at::OWNED_MAX) {
            return Err(corrupt(
                page,
                format!("no directory owner near offset {}", rec.0),
            ));
        }
        owner = next(page, owner)?;
    }
    let slots = n_dir_slots(page).min(page.len() / 4);
    match (0..slots).rev().find(|&i| slot(page, i) == owner.at()) {
        Some(i) => Ok((owner, i)),
        None => Err(corrupt(
            page,
            format!("no directory slot for the record at {}", owner.0),
        )),
    }
}

/// The record before `rec`. Not for the infimum.
pub fn previous(page: &[u8], rec: RecOffset) -> Result<RecOffset> {
    let (_, slot_index) = owner(page, rec)?;
    let Some(before) = slot_index.checked_sub(1) else {
        return Err(corrupt(page, "a record in the group of the infimum"));
    };
    let mut current = check_origin(page, slot(page, before))?;
    for _ in 0..=at::OWNED_MAX {
        let following = next(page, current)?;
        if following == rec {
            return Ok(current);
        }
        current = following;
    }
    Err(corrupt(
        page,
        format!("the record at {} is not in its group", rec.0),
    ))
}

/// The last user record, or the infimum.
pub fn last(page: &[u8]) -> Result<RecOffset> {
    previous(page, supremum(page))
}

/// All user records in key order; ends with an error where the list is damaged.
pub fn records(page: &[u8]) -> Records<'_> {
    Records {
        page,
        current: infimum(page),
        left: n_heap(page),
        ended: false,
    }
}

/// Checks that the record list ends, after as many records as the header says.
pub fn check_list(page: &[u8]) -> Result<()> {
    let mut count = 0;
    for rec in records(page) {
        rec?;
        count += 1;
    }
    match count == n_recs(page) {
        true => Ok(()),
        false => Err(corrupt(
            page,
            format!(
                "{count} records in the list, the header says {}",
                n_recs(page)
            ),
        )),
    }
}

/// Iterator of `records`.
pub struct Records<'a> {
    page: &'a [u8],
    current: RecOffset,
    left: usize,
    ended: bool,
}

impl Iterator for Records<'_> {
    type Item = Result<RecOffset>;

    fn next(&mut self) -> Option<Result<RecOffset>> {
        if self.ended {
            return None;
        }
        let step = next(self.page, self.current).and_then(|rec| {
            let wrong = rec == infimum(self.page) || self.left == 0;
            if wrong {
                Err(corrupt(self.page, "the record list is circular"))
            } else {
                Ok(rec)
            }
        });
        match step {
            Ok(rec) if rec == supremum(self.page) => {
                self.ended = true;
                None
            }
            Ok(rec) => {
                self.current = rec;
                self.left -= 1;
                Some(Ok(rec))
            }
            Err(e) => {
                self.ended = true;
                Some(Err(e))
            }
        }
    }
}

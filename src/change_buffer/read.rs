//! Reading the change buffer's tree.

use crate::format::fil::PageType;
use crate::format::ibuf::{self, Entry, Operation};
use crate::format::record::{self, LONG_EXTERNAL, LONG_NULL, LONG_OFFSET};
use crate::mtr::{Mode, PageCtx, retry};
use crate::page::layout::{self, RecOffset};
use crate::schema::Tuple;
use crate::sync::Rank;
use crate::words::limits::TREE_HEIGHT_MAX;
use crate::words::{Error, PageId, PageNo, Result, SpaceId, TrxId, be};

/// Fields of a record before those of the index entry.
const HEAD_FIELDS: usize = 4;

/// A change that was put off.
pub struct Buffered {
    /// The secondary leaf.
    pub page: PageId,
    /// What to do there.
    pub operation: Operation,
    /// The index entry.
    pub entry: Tuple,
    /// It was applied before.
    pub done: bool,
    /// Where the record stands on its page.
    pub(super) rec: RecOffset,
}

/// A leaf of the change buffer's tree.
pub struct Leaf {
    /// The page.
    pub page: PageNo,
    /// Upper bound of the transactions whose changes stand here.
    pub max_trx_id: TrxId,
    /// Changes, by page and then in the order in which they are to be applied.
    pub changes: Vec<Buffered>,
    /// The leaf to the right.
    pub next: Option<PageNo>,
}

pub(super) fn id(page: PageNo) -> PageId {
    PageId::new(SpaceId::SYSTEM, page)
}

pub(super) fn named(error: Error) -> Error {
    error.in_index("the change buffer", "CLUST_IND")
}

/// A copy of a page of the tree, checked.
pub(super) fn page_copy(ctx: &PageCtx, page: PageNo) -> Result<Vec<u8>> {
    let (copy, _) = retry(ctx, None, |mtr| {
        let held = mtr.get(id(page), Mode::S, Rank::IndexPage)?;
        Ok(mtr.view(held).to_vec())
    })?;
    let is_of_tree = layout::page_type(&copy) == PageType::INDEX.0
        && !layout::is_compact(&copy)
        && layout::index_id(&copy) == ibuf::INDEX_ID
        && usize::from(layout::level(&copy)) < TREE_HEIGHT_MAX;
    if !is_of_tree {
        let why = "this is no page of the change buffer's tree";
        return Err(named(Error::corrupt(id(page), why)));
    }
    layout::check_frame(&copy).map_err(named)?;
    Ok(copy)
}

/// True if no change is put off.
///
/// # Errors
/// Damage of the root; what reading gives.
pub fn is_empty(ctx: &PageCtx) -> Result<bool> {
    let root = page_copy(ctx, ibuf::ROOT_PAGE)?;
    Ok(layout::is_leaf(&root) && layout::n_recs(&root) == 0)
}

/// The leftmost page of `level` (0 = leaves).
pub(super) fn leftmost(ctx: &PageCtx, level: u16) -> Result<PageNo> {
    let mut page = ibuf::ROOT_PAGE;
    let mut above = None;
    loop {
        let copy = page_copy(ctx, page)?;
        let this = layout::level(&copy);
        if above.is_some_and(|above| this + 1 != above) {
            let why = "a page of the change buffer stands on a wrong level";
            return Err(named(Error::corrupt(id(page), why)));
        }
        if this <= level {
            return Ok(page);
        }
        above = Some(this);
        let first = layout::first(&copy).map_err(named)?;
        let fields = Fields::of(&copy, first)?;
        let child = fields.get(fields.count - 1)?;
        page = match child {
            Some(bytes) if bytes.len() == record::CHILD_BYTES => PageNo(be::u32_at(bytes, 0)),
            _ => return Err(fields.bad()),
        };
    }
}

/// The leftmost leaf.
///
/// # Errors
/// Damage of the tree; what reading gives.
pub fn first_leaf(ctx: &PageCtx) -> Result<PageNo> {
    leftmost(ctx, 0)
}

/// Reads a leaf.
///
/// # Errors
/// Damage of the page or of an entry; what reading gives.
pub fn leaf(ctx: &PageCtx, page: PageNo) -> Result<Leaf> {
    let copy = page_copy(ctx, page)?;
    let mut changes = Vec::with_capacity(layout::n_recs(&copy));
    for rec in layout::records(&copy) {
        changes.push(buffered(&copy, rec.map_err(named)?)?);
    }
    Ok(Leaf {
        page,
        max_trx_id: layout::max_trx_id(&copy),
        changes,
        next: layout::next_page(&copy),
    })
}

fn buffered(page: &[u8], rec: RecOffset) -> Result<Buffered> {
    let fields = Fields::of(page, rec)?;
    if fields.count <= HEAD_FIELDS {
        return Err(fields.bad());
    }
    let head = |i| fields.get(i)?.ok_or_else(|| fields.bad());
    let parsed = Entry::parse([head(0)?, head(1)?, head(2)?, head(3)?]);
    let parsed = parsed.map_err(|_| fields.bad())?;
    if parsed.types().len() != fields.count - HEAD_FIELDS {
        return Err(fields.bad());
    }
    let mut entry = Tuple::new();
    for i in HEAD_FIELDS..fields.count {
        match fields.get(i)? {
            Some(bytes) => entry.push_bytes(bytes),
            None => entry.push_null(),
        }
    }
    Ok(Buffered {
        page: parsed.page,
        operation: parsed.operation,
        entry,
        done: record::info_bits(page, rec.at(), false) & record::DELETED != 0,
        rec,
    })
}

/// The fields of a REDUNDANT record whose number no index tells.
struct Fields<'p> {
    page: &'p [u8],
    rec: RecOffset,
    count: usize,
    short: bool,
}

impl<'p> Fields<'p> {
    fn of(page: &'p [u8], rec: RecOffset) -> Result<Fields<'p>> {
        let origin = rec.at();
        let fields = Fields {
            page,
            rec,
            count: record::redundant_n_fields(page, origin),
            short: record::redundant_is_short(page, origin),
        };
        let end_bytes = if fields.short { 1 } else { 2 };
        let header = record::REDUNDANT_EXTRA + fields.count * end_bytes;
        let heap = usize::from(layout::frame(page).heap);
        match fields.count > 0 && !layout::is_system(page, rec) && origin >= heap + header {
            true => Ok(fields),
            false => Err(fields.bad()),
        }
    }

    /// Field `i`, `None` = NULL.
    fn get(&self, i: usize) -> Result<Option<&'p [u8]>> {
        let end = |i| record::redundant_end(self.page, self.rec.at(), self.short, i);
        let start = match i {
            0 => 0,
            _ => usize::from(end(i - 1) & LONG_OFFSET),
        };
        let raw = end(i);
        let bytes = start..usize::from(raw & LONG_OFFSET);
        let last = self.rec.at() + bytes.end;
        if bytes.end < bytes.start
            || last > layout::heap_limit(self.page)
            || raw & LONG_EXTERNAL != 0
        {
            return Err(self.bad());
        }
        match raw & LONG_NULL {
            0 => Ok(Some(&self.page[self.rec.at() + bytes.start..last])),
            _ => Ok(None),
        }
    }

    #[cold]
    fn bad(&self) -> Error {
        let why = format!(
            "the entry at {} is none of the change buffer",
            self.rec.at()
        );
        named(layout::corrupt(self.page, why))
    }
}

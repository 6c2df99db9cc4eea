//! All that can be checked on one index page (format-tablespace.md 26.2 item 5 and 26.5).
//!
//! Never panics and never loops, whatever the bytes: the first contradiction is the result.

use std::cmp::Ordering;

use crate::format::index_page::{self as at, OWNED_MAX, OWNED_MIN};
use crate::format::record as header;
use crate::host::collation::CollationSource;
use crate::schema::{Index, Tuple};
use crate::words::{Error, Result};

use super::layout::{self, RecOffset, corrupt};
use super::offsets::Offsets;
use super::record::RecordView;
use super::search::compare_record;

/// Checks header, directory, record list, free list, space accounting, flags, field lengths and
/// key order of a page of `index`.
pub fn validate(page: &[u8], index: &Index, collations: &dyn CollationSource) -> Result<()> {
    layout::check(page, index)?;
    check_header(page, index)?;
    let mut heap = Heap::new(page);
    let mut offsets = Offsets::new();
    let (count, bytes) = check_list(page, index, collations, &mut heap, &mut offsets)?;
    let freed = check_free_list(page, index, &mut heap, &mut offsets)?;
    if layout::n_recs(page) != count {
        let why = format!(
            "{count} records in the list, the header says {}",
            layout::n_recs(page)
        );
        return Err(corrupt(page, why));
    }
    if layout::n_heap(page) != count + freed + 2 {
        return Err(corrupt(
            page,
            format!(
                "{count} records and {freed} free ones, heap of {}",
                layout::n_heap(page)
            ),
        ));
    }
    let base = layout::frame(page).heap as usize;
    let accounted = base + bytes + layout::garbage(page);
    if layout::heap_top(page) != accounted {
        let why = format!(
            "records end at {}, accounted for {accounted}",
            layout::heap_top(page)
        );
        return Err(corrupt(page, why));
    }
    if layout::is_leaf(page)
        && !index.is_clustered()
        && count > 0
        && layout::max_trx_id(page).0 == 0
    {
        return Err(corrupt(page, "a secondary leaf without PAGE_MAX_TRX_ID"));
    }
    Ok(())
}

fn check_header(page: &[u8], index: &Index) -> Result<()> {
    let page_type = layout::page_type(page);
    if (page_type == at::TYPE_RTREE) != index.is_spatial() {
        return Err(corrupt(
            page,
            format!("page type {page_type} for this kind of index"),
        ));
    }
    let is_root = index.root.0 == layout::page_id(page).page.0;
    if page_type == at::TYPE_INSTANT && (index.instant.is_none() || !is_root) {
        return Err(corrupt(
            page,
            "an INSTANT page that is not the root of an instant table",
        ));
    }
    if page_type != at::TYPE_INSTANT && index.instant.is_some() && is_root {
        return Err(corrupt(page, "the root of an instant table is not INSTANT"));
    }
    if layout::n_recs(page) == 0 && !is_root && layout::level(page) > 0 {
        return Err(corrupt(page, "an inner page without records"));
    }
    if header::next(page, layout::supremum(page).at(), layout::is_compact(page)) != 0 {
        return Err(corrupt(page, "a record after the supremum"));
    }
    Ok(())
}

/// Which bytes and heap numbers are taken.
struct Heap {
    bytes: Vec<u64>,
    numbers: Vec<u64>,
    n_heap: usize,
}

impl Heap {
    fn new(page: &[u8]) -> Heap {
        let n_heap = layout::n_heap(page);
        let words = |bits: usize| vec![0u64; bits.div_ceil(64)];
        Heap {
            bytes: words(page.len()),
            numbers: words(n_heap),
            n_heap,
        }
    }

    fn take(&mut self, page: &[u8], rec: RecOffset, offsets: &Offsets) -> Result<()> {
        let start = rec.at() - offsets.extra_size();
        for byte in start..start + offsets.size() {
            if set_bit(&mut self.bytes, byte) {
                return Err(corrupt(
                    page,
                    format!("the record at {} overlaps another", rec.0),
                ));
            }
        }
        let number = usize::from(header::heap_no(page, rec.at(), layout::is_compact(page)));
        if number < 2 || number >= self.n_heap || set_bit(&mut self.numbers, number) {
            let why = format!(
                "the record at {} has heap number {number}, taken or too large",
                rec.0
            );
            return Err(corrupt(page, why));
        }
        Ok(())
    }
}

/// Sets a bit; true if it was set before.
fn set_bit(words: &mut [u64], bit: usize) -> bool {
    let (word, mask) = (&mut words[bit / 64], 1 << (bit % 64));
    let was = *word & mask != 0;
    *word |= mask;
    was
}

/// Walks the list with the directory beside it; returns the number of user records and their bytes.
fn check_list(
    page: &[u8],
    index: &Index,
    collations: &dyn CollationSource,
    heap: &mut Heap,
    offsets: &mut Offsets,
) -> Result<(usize, usize)> {
    let mut directory = Directory::new(page);
    directory.pass(layout::infimum(page))?;
    let mut before = Tuple::new();
    let (mut count, mut bytes) = (0, 0);
    for rec in layout::records(page) {
        let rec = rec?;
        if layout::is_system(page, rec) {
            return Err(corrupt(page, "a system record inside the list"));
        }
        directory.pass(rec)?;
        let view = RecordView::new(page, rec, index, offsets)?;
        heap.take(page, rec, view.offsets())?;
        check_flags(page, index, &view, count == 0)?;
        check_fields(page, &view)?;
        bytes += view.offsets().size();
        if count > 0 && !index.is_spatial() {
            let (order, _) = compare_record(page, rec, index, &before, collations)?;
            if order != Ordering::Less {
                return Err(corrupt(
                    page,
                    format!("the record at {} is out of order", rec.0),
                ));
            }
        }
        view.copy_key_to(&mut before, index.n_tree_unique().min(view.len()));
        before.info_bits = view.info_bits() & header::MIN_REC;
        count += 1;
    }
    directory.pass(layout::supremum(page))?;
    directory.finish()?;
    Ok((count, bytes))
}

/// Compares n_owned and directory slots with the list.
struct Directory<'a> {
    page: &'a [u8],
    slot: usize,
    group: u8,
}

impl<'a> Directory<'a> {
    fn new(page: &'a [u8]) -> Directory<'a> {
        Directory {
            page,
            slot: 0,
            group: 0,
        }
    }

    fn pass(&mut self, rec: RecOffset) -> Result<()> {
        let page = self.page;
        let slots = layout::n_dir_slots(page);
        self.group = self.group.saturating_add(1);
        let owned = header::n_owned(page, rec.at(), layout::is_compact(page));
        if owned == 0 {
            return Ok(());
        }
        if self.slot >= slots || layout::slot(page, self.slot) != rec.at() {
            return Err(corrupt(
                page,
                format!("the record at {} has no directory slot", rec.0),
            ));
        }
        let least = match self.slot {
            0 => 1..=1,
            last if last + 1 == slots => 1..=OWNED_MAX,
            _ => OWNED_MIN..=OWNED_MAX,
        };
        if owned != self.group || !least.contains(&owned) {
            let why = format!(
                "the record at {} owns {owned}, its group has {}",
                rec.0, self.group
            );
            return Err(corrupt(page, why));
        }
        self.slot += 1;
        self.group = 0;
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        if self.slot == layout::n_dir_slots(self.page) && self.group == 0 {
            return Ok(());
        }
        Err(corrupt(self.page, "directory slots that no record fills"))
    }
}

/// Info bits and status.
fn check_flags(page: &[u8], index: &Index, view: &RecordView<'_>, is_first: bool) -> Result<()> {
    let rec = view.rec();
    let info = view.info_bits();
    let wrong = |what: &str| Err(corrupt(page, format!("the record at {} {what}", rec.0)));
    if info & !(header::DELETED | header::MIN_REC) != 0 {
        return wrong("has unknown info bits");
    }
    let min_rec = info & header::MIN_REC != 0;
    let leftmost = is_first && layout::prev_page(page).is_none();
    if !layout::is_leaf(page) {
        // An R-tree has no leftmost path.
        if min_rec != leftmost && !index.is_spatial() {
            return wrong("has a min-rec mark, or lacks it");
        }
        return Ok(());
    }
    match &index.instant {
        None if min_rec => wrong("is a metadata record in a table without instant columns"),
        Some(_) if min_rec && !leftmost => wrong("is a metadata record that is not the first"),
        Some(instant) if min_rec && instant.is_alter != (info & header::DELETED != 0) => {
            wrong("is a metadata record of the other kind")
        }
        _ => Ok(()),
    }
}

/// Lengths against the index's definition. Fixed lengths of COMPACT records come from it anyway.
fn check_fields(page: &[u8], view: &RecordView<'_>) -> Result<()> {
    let index = view.index();
    let offsets = view.offsets();
    for (i, field) in index.fields[..offsets.len()].iter().enumerate() {
        if offsets.is_missing(i) {
            continue;
        }
        let wrong = |what: &str| {
            let at = view.rec().0;
            Err(corrupt(
                page,
                format!("field {i} of the record at {at} {what}"),
            ))
        };
        if offsets.is_null(i) {
            if !field.nullable && !view.is_metadata() {
                return wrong("is NULL");
            }
            continue;
        }
        let len = view.range(i).len();
        if offsets.is_external(i) {
            if !field.may_be_external() || offsets.is_node_pointer() {
                return wrong("is off the page");
            }
        } else if field.fixed_len != 0 && len != field.fixed_len as usize && !view.is_metadata() {
            return wrong("has a wrong length");
        } else if field.prefix_len != 0 && len > field.prefix_len as usize {
            return wrong("is longer than its prefix");
        }
    }
    Ok(())
}

/// Walks the free list; returns its length.
fn check_free_list(
    page: &[u8],
    index: &Index,
    heap: &mut Heap,
    offsets: &mut Offsets,
) -> Result<usize> {
    let mut origin = layout::free_head(page);
    let mut count = 0;
    while origin != 0 {
        let rec = layout::check_origin(page, origin)?;
        offsets.compute(page, rec, index).map_err(in_free_list)?;
        // A circle comes to a record whose bytes are taken.
        heap.take(page, rec, offsets)?;
        count += 1;
        origin = header::next(page, rec.at(), layout::is_compact(page));
    }
    Ok(count)
}

fn in_free_list(error: Error) -> Error {
    match error {
        Error::Corrupt(mut c) => {
            c.why = format!("{}, in the free list", c.why).into();
            Error::Corrupt(c)
        }
        other => other,
    }
}

//! Inserting a record into a page.

use crate::format::record::{COMPACT_EXTRA, REDUNDANT_EXTRA, STATUS_INSTANT};
use crate::format::redo_record::{InsertDynamic, InsertRedundant, PageOp};
use crate::schema::{Index, Tuple};
use crate::words::Result;

use super::image::RecordImage;
use super::layout::{self, RecOffset};
use super::offsets::Offsets;
use super::space;
use super::write::PageWrite;

/// Memory for page operations, reused from call to call.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// The record being inserted.
    pub image: RecordImage,
    /// Field positions of a neighbour.
    pub offsets: Offsets,
    literal: Vec<u8>,
    /// Copy of a page that is being rebuilt.
    pub(super) page: Vec<u8>,
}

impl Scratch {
    /// Empty; the first uses allocate.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

/// Inserts `tuple` after the record `prev`. `Ok(None)`: it does not fit as the page is (it may after
/// `reorganise`; `space::max_insert_size_after_reorganise` tells).
///
/// The caller has searched: the order is not checked here. Errors have changed nothing.
pub fn insert(
    page: &mut (impl PageWrite + ?Sized),
    index: &Index,
    prev: RecOffset,
    tuple: &Tuple,
    scratch: &mut Scratch,
) -> Result<Option<RecOffset>> {
    scratch.image.build(index, tuple)?;
    insert_image(page, index, prev, scratch)
}

/// As `insert`, for the record that stands ready in `scratch.image`.
pub fn insert_image(
    page: &mut (impl PageWrite + ?Sized),
    index: &Index,
    prev: RecOffset,
    scratch: &mut Scratch,
) -> Result<Option<RecOffset>> {
    let Some(place) = find_place(page.page(), index, scratch)? else {
        return Ok(None);
    };
    let common = Common::find(page.page(), index, prev, scratch)?;
    let image = &scratch.image;
    let rec = RecOffset((place.start + image.extra_size()) as u16);
    if index.compact {
        let header = &image.header()[..image.extra_size() - COMPACT_EXTRA - common.header];
        page.apply(&PageOp::InsertDynamic(InsertDynamic {
            reuse_shift: place
                .freed_extra
                .map(|freed| image.extra_size() as i32 - freed as i32),
            prev: prev.0.into(),
            info_bits: image.info_bits(true),
            instant: image.status() == STATUS_INSTANT,
            header_common: common.header as u32,
            data_common: common.data as u32,
            header,
            data: &image.data()[common.data..],
        }))?;
    } else {
        let header = &image.header()[..image.extra_size() - REDUNDANT_EXTRA - common.header];
        scratch.literal.clear();
        scratch.literal.extend_from_slice(header);
        scratch
            .literal
            .extend_from_slice(&image.data()[common.data..]);
        let origin = image.extra_size();
        page.apply(&PageOp::InsertRedundant(InsertRedundant {
            reuse: place.freed_extra.is_some(),
            prev: prev.0.into(),
            n_fields: crate::format::record::redundant_n_fields(image.bytes(), origin) as u32,
            short: crate::format::record::redundant_is_short(image.bytes(), origin),
            info_bits: image.info_bits(false),
            header_common: common.header as u32,
            data_common: common.data as u32,
            literal: &scratch.literal,
        }))?;
    }
    Ok(Some(rec))
}

/// True if the record in `scratch.image` goes in as the page is, without a reorganisation.
pub fn has_place(page: &[u8], index: &Index, scratch: &mut Scratch) -> Result<bool> {
    Ok(find_place(page, index, scratch)?.is_some())
}

struct Place {
    start: usize,
    /// Header bytes of the freed record whose space is taken; `None`: the heap's top.
    freed_extra: Option<usize>,
}

/// The head of the free list if it is large enough, else the top of the heap (invariant 4).
fn find_place(page: &[u8], index: &Index, scratch: &mut Scratch) -> Result<Option<Place>> {
    let size = scratch.image.size();
    let head = layout::free_head(page);
    // Two bytes for the slot that the directory may need: the free list gives none.
    if head != 0 && layout::gap(page) >= 2 {
        let free = layout::check_origin(page, head)?;
        // The freed record's header still stands; its data are zeros.
        scratch.offsets.compute(page, free, index)?;
        if scratch.offsets.size() >= size {
            let extra = scratch.offsets.extra_size();
            return Ok(Some(Place {
                start: free.at() - extra,
                freed_extra: Some(extra),
            }));
        }
    }
    let heap_no_left = layout::n_heap(page) <= crate::format::record::HEAP_NO_MAX as usize;
    if size > space::max_insert_size(page, 1) || !heap_no_left {
        return Ok(None);
    }
    Ok(Some(Place {
        start: layout::heap_top(page),
        freed_extra: None,
    }))
}

/// Bytes that the log need not repeat because the predecessor has them.
struct Common {
    header: usize,
    data: usize,
}

impl Common {
    /// Compares with the record at `prev`, no further than its own header and data: what lies
    /// beyond may change before the bytes are copied.
    fn find(page: &[u8], index: &Index, prev: RecOffset, scratch: &mut Scratch) -> Result<Common> {
        if layout::is_system(page, prev) {
            return Ok(Common { header: 0, data: 0 });
        }
        let image = &scratch.image;
        let offsets = &mut scratch.offsets;
        offsets.compute(page, prev, index)?;
        let fixed = if index.compact {
            COMPACT_EXTRA
        } else {
            REDUNDANT_EXTRA
        };
        let ours = &image.header()[..image.extra_size() - fixed];
        let theirs = &page[prev.at() - offsets.extra_size()..prev.at() - fixed];
        let header = ours
            .iter()
            .rev()
            .zip(theirs.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let theirs = &page[prev.at()..prev.at() + offsets.data_size()];
        let data = image
            .data()
            .iter()
            .zip(theirs)
            .take_while(|(a, b)| a == b)
            .count();
        // One literal byte at least, so that no record of the log is without data.
        Ok(Common {
            header,
            data: data.min(image.data_size().saturating_sub(1)),
        })
    }
}

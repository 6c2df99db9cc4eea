//! Where the fields of a record begin and end.
//!
//! `FieldWalk` steps through a record field by field and stops as early as its user likes (a
//! comparison); `Offsets` keeps the result for all fields. Both check every length against the
//! heap, so that a damaged record is an error and never a read outside the page.

use crate::format::index_page;
use crate::format::record::{self, COMPACT_EXTRA, REDUNDANT_EXTRA};
use crate::schema::{Field, Index, system};
use crate::words::limits::BLOB_REF_BYTES;
use crate::words::{Result, be};

use super::layout::{self, RecOffset, corrupt};

const NULL: u32 = 1 << 31;
const EXTERNAL: u32 = 1 << 30;
const MISSING: u32 = 1 << 29;
const END: u32 = (1 << 17) - 1;

/// One step of a walk: where the field's bytes stand in the page, and its flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub start: usize,
    pub end: usize,
    flags: u32,
}

impl Step {
    pub fn is_null(self) -> bool {
        self.flags & NULL != 0
    }

    pub fn is_external(self) -> bool {
        self.flags & EXTERNAL != 0
    }

    /// Not stored in this record: the instant default.
    pub fn is_missing(self) -> bool {
        self.flags & MISSING != 0
    }
}

/// A walk over the fields of one record, in order.
pub(super) struct FieldWalk<'a> {
    page: &'a [u8],
    fields: &'a [Field],
    origin: usize,
    limit: usize,
    compact: bool,
    /// Fields that the record stores.
    present: usize,
    i: usize,
    /// Where the next field's bytes begin.
    at: usize,
    /// COMPACT: the byte of the NULL bitmap that is nearest to the origin.
    nulls: usize,
    null_bit: usize,
    /// Bits of the bitmap; a node pointer's may be shorter than its (NOT NULL) fields would need.
    null_bits: usize,
    /// COMPACT: the next length byte. REDUNDANT: unused.
    lens: usize,
    /// REDUNDANT: one-byte ends.
    short: bool,
    /// Index field before which the metadata BLOB reference stands.
    blob_before: Option<usize>,
    /// Where that reference stands, once passed.
    pub blob_at: Option<usize>,
    /// A child page number follows the fields.
    pub is_node_pointer: bool,
}

impl<'a> FieldWalk<'a> {
    /// Begins at `rec`, which must be a checked origin of a user record.
    pub fn begin(page: &'a [u8], rec: RecOffset, index: &'a Index) -> Result<FieldWalk<'a>> {
        if layout::is_system(page, rec) {
            return Err(corrupt(
                page,
                "a system record stands where a user record should",
            ));
        }
        let compact = index.compact;
        let leaf = layout::is_leaf(page);
        let info = record::info_bits(page, rec.at(), compact);
        let alter = leaf && info == record::MIN_REC | record::DELETED && index.is_clustered();
        let mut walk = FieldWalk {
            page,
            fields: if leaf {
                &index.fields
            } else {
                &index.fields[..index.n_node_key_fields()]
            },
            origin: rec.at(),
            limit: layout::heap_limit(page),
            compact,
            present: 0,
            i: 0,
            at: rec.at(),
            nulls: 0,
            null_bit: 0,
            null_bits: 0,
            lens: 0,
            short: false,
            blob_before: if alter {
                index.trx_id_field.map(|i| i as usize + 2)
            } else {
                None
            },
            blob_at: None,
            is_node_pointer: !leaf,
        };
        if compact {
            walk.begin_compact(index)?
        } else {
            walk.begin_redundant(index)?
        }
        Ok(walk)
    }

    fn begin_compact(&mut self, index: &Index) -> Result<()> {
        let mut at = self.origin - COMPACT_EXTRA;
        let status = record::status(self.page, self.origin);
        let (present, null_bytes) = match (self.is_node_pointer, status) {
            (true, record::STATUS_NODE_PTR) => (self.fields.len(), index.core_null_bytes()),
            (false, record::STATUS_ORDINARY) if self.blob_before.is_none() => {
                (index.n_core_fields(), index.core_null_bytes())
            }
            (false, record::STATUS_INSTANT) if index.instant.is_some() => {
                at -= 1;
                let mut added = usize::from(self.page[at]);
                if added & 0x80 != 0 {
                    at -= 1;
                    added = added & 0x7F | usize::from(self.page[at]) << 7;
                }
                let blob = usize::from(self.blob_before.is_some());
                let present = index.n_core_fields() + added + 1 - blob;
                (present, index.null_bytes_of(present))
            }
            _ => return Err(self.wrong(format!("a record of status {status}"))),
        };
        if present > self.fields.len() {
            return Err(self.wrong("a record has more fields than its index"));
        }
        self.present = present;
        self.nulls = at - 1;
        self.null_bits = 8 * null_bytes;
        match self.nulls.checked_sub(null_bytes) {
            Some(lens) => self.lens = lens,
            None => return Err(self.wrong("a NULL bitmap before the page")),
        }
        self.check_header(self.lens + 1)
    }

    fn begin_redundant(&mut self, index: &Index) -> Result<()> {
        let stored = record::redundant_n_fields(self.page, self.origin);
        self.short = record::redundant_is_short(self.page, self.origin);
        let extra = usize::from(self.is_node_pointer || self.blob_before.is_some());
        let Some(present) = stored.checked_sub(extra) else {
            return Err(self.wrong("a record without fields"));
        };
        let least = match &index.instant {
            _ if self.is_node_pointer => self.fields.len(),
            Some(instant) => instant.n_core_fields as usize,
            // MERGE_THRESHOLD was added to SYS_INDEXES later.
            None if index.id.0 == system::SYS_INDEXES_ID => self.fields.len() - 1,
            None => self.fields.len(),
        };
        if present > self.fields.len() || present < least {
            return Err(self.wrong(format!("a record of {stored} fields")));
        }
        self.present = present;
        let width = if self.short { 1 } else { 2 };
        match self.origin.checked_sub(REDUNDANT_EXTRA + stored * width) {
            Some(start) => self.check_header(start),
            None => Err(self.wrong("a record header before the page")),
        }
    }

    #[inline]
    fn check_header(&self, start: usize) -> Result<()> {
        if start < index_page::frame(self.compact).heap as usize {
            return Err(self.wrong("a record header below the heap"));
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self, why: impl AsRef<str>) -> crate::words::Error {
        corrupt(
            self.page,
            format!("{} (record at {})", why.as_ref(), self.origin),
        )
    }

    /// Number of index fields to walk.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// The next field; must not be called more than `len` times.
    #[inline]
    pub fn step(&mut self) -> Result<Step> {
        let i = self.i;
        self.i += 1;
        if self.blob_before == Some(i) {
            self.pass_blob()?;
        }
        if i >= self.present {
            return Ok(Step {
                start: self.at,
                end: self.at,
                flags: NULL | MISSING,
            });
        }
        if self.compact {
            self.step_compact(i)
        } else {
            self.step_redundant(i)
        }
    }

    #[inline]
    fn step_compact(&mut self, i: usize) -> Result<Step> {
        let field = &self.fields[i];
        let start = self.at;
        if field.nullable {
            let bit = self.null_bit;
            self.null_bit += 1;
            if bit < self.null_bits && self.page[self.nulls - bit / 8] >> (bit % 8) & 1 == 1 {
                return Ok(Step {
                    start,
                    end: start,
                    flags: NULL,
                });
            }
        }
        let (len, flags) = match field.fixed_len {
            0 => self.compact_len(field.big)?,
            fixed => (fixed as usize, 0),
        };
        self.advance(start, len, flags)
    }

    #[inline]
    fn compact_len(&mut self, big: bool) -> Result<(usize, u32)> {
        let floor = index_page::COMPACT.heap as usize;
        if self.lens < floor {
            return Err(self.wrong("field lengths below the heap"));
        }
        let first = usize::from(self.page[self.lens]);
        self.lens -= 1;
        if !big || first & 0x80 == 0 {
            return Ok((first, 0));
        }
        if self.lens < floor {
            return Err(self.wrong("field lengths below the heap"));
        }
        let len = (first & 0x3F) << 8 | usize::from(self.page[self.lens]);
        self.lens -= 1;
        Ok((len, if first & 0x40 != 0 { EXTERNAL } else { 0 }))
    }

    fn step_redundant(&mut self, i: usize) -> Result<Step> {
        let blob = usize::from(self.blob_before.is_some_and(|at| at <= i));
        let start = self.at;
        let stored = record::redundant_end(self.page, self.origin, self.short, i + blob);
        let end = self.origin + usize::from(stored & record::LONG_OFFSET);
        let Some(len) = end.checked_sub(start) else {
            return Err(self.wrong("field ends that descend"));
        };
        let mut flags = 0;
        if stored & record::LONG_NULL != 0 {
            flags |= NULL;
        }
        if stored & record::LONG_EXTERNAL != 0 {
            flags |= EXTERNAL;
        }
        self.advance(start, len, flags)
    }

    #[inline]
    fn advance(&mut self, start: usize, len: usize, flags: u32) -> Result<Step> {
        let end = start + len;
        if end > self.limit {
            return Err(self.wrong("a record beyond the heap"));
        }
        if flags & EXTERNAL != 0 && len < BLOB_REF_BYTES {
            return Err(self.wrong("an off-page field without its reference"));
        }
        self.at = end;
        Ok(Step { start, end, flags })
    }

    /// Steps over the BLOB reference of an instant-ALTER metadata record.
    fn pass_blob(&mut self) -> Result<()> {
        let start = self.at;
        if !self.compact {
            let i = self.i - 1;
            let stored = record::redundant_end(self.page, self.origin, self.short, i);
            let end = self.origin + usize::from(stored & record::LONG_OFFSET);
            if stored & record::LONG_EXTERNAL == 0 || end != start + BLOB_REF_BYTES {
                return Err(self.wrong("a metadata record without its BLOB reference"));
            }
        }
        self.advance(start, BLOB_REF_BYTES, EXTERNAL)?;
        self.blob_at = Some(start);
        Ok(())
    }

    /// After the last field: start of the header and end of the data, the child page included.
    pub fn finish(mut self) -> Result<(usize, usize)> {
        if self.is_node_pointer {
            if !self.compact {
                let stored =
                    record::redundant_end(self.page, self.origin, self.short, self.fields.len());
                let end = self.origin + usize::from(stored & record::LONG_OFFSET);
                if end != self.at + record::CHILD_BYTES {
                    return Err(self.wrong("a node pointer without a child page"));
                }
            }
            let at = self.at;
            self.advance(at, record::CHILD_BYTES, 0)?;
        }
        let start = if self.compact {
            self.lens + 1
        } else {
            let stored = record::redundant_n_fields(self.page, self.origin);
            self.origin - REDUNDANT_EXTRA - stored * if self.short { 1 } else { 2 }
        };
        Ok((start, self.at))
    }
}

/// Field positions of one record, in memory that is reused from record to record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offsets {
    /// End of each field relative to the origin, with flags.
    ends: Vec<u32>,
    /// Start of each field's predecessor is its end, but for the field after the metadata BLOB.
    blob_before: Option<u16>,
    extra: u16,
    data: u16,
    n_stored: u16,
    is_node_pointer: bool,
    /// Of a record of an index with `fixed_ends`.
    is_fixed: bool,
}

impl Offsets {
    /// Empty; the first `compute` allocates.
    pub fn new() -> Offsets {
        Offsets::default()
    }

    /// Finds all fields of the user record at `rec` on a page that `layout::check` accepted.
    ///
    /// `rec` must come from `layout::next`, a directory slot that `layout::check_origin` accepted, or
    /// a search. Any contradiction in the record is `Error::Corrupt`.
    #[inline]
    pub fn compute(&mut self, page: &[u8], rec: RecOffset, index: &Index) -> Result<()> {
        if self.compute_plain(page, rec, index).is_some() {
            #[cfg(test)]
            self.check_plain(page, rec, index);
            return Ok(());
        }
        self.compute_any(page, rec, index)
    }

    /// In every test: the shortcut finds what the walk finds.
    #[cfg(test)]
    fn check_plain(&self, page: &[u8], rec: RecOffset, index: &Index) {
        let mut walked = Offsets::new();
        walked.compute_any(page, rec, index).expect("a record");
        walked.is_fixed = self.is_fixed;
        assert_eq!(*self, walked);
    }

    /// The usual record: of a leaf, COMPACT, without instant fields. `None` if it is another, or says
    /// something that cannot be.
    #[inline]
    fn compute_plain(&mut self, page: &[u8], rec: RecOffset, index: &Index) -> Option<()> {
        let (origin, heap) = (rec.at(), usize::from(index_page::COMPACT.heap));
        let usual = index.compact && index.instant.is_none() && layout::is_leaf(page);
        if !usual
            || origin < heap + COMPACT_EXTRA
            || record::status(page, origin) != record::STATUS_ORDINARY
            || record::info_bits(page, origin, true) & record::MIN_REC != 0
        {
            return None;
        }
        let header = match &index.fixed_ends {
            Some(ends) => {
                self.ends.clear();
                self.ends.extend_from_slice(ends);
                origin - COMPACT_EXTRA
            }
            None => self.walk_plain(page, origin, heap, index)?,
        };
        let data = (*self.ends.last()? & END) as usize;
        if origin + data > layout::heap_limit(page) {
            return None;
        }
        self.is_fixed = index.fixed_ends.is_some();
        self.n_stored = self.ends.len() as u16;
        self.is_node_pointer = false;
        self.blob_before = None;
        self.extra = (origin - header) as u16;
        self.data = data as u16;
        Some(())
    }

    /// Fills the ends of a usual record; yields where its header starts.
    #[inline]
    fn walk_plain(
        &mut self,
        page: &[u8],
        origin: usize,
        heap: usize,
        index: &Index,
    ) -> Option<usize> {
        let nulls = origin - COMPACT_EXTRA - 1;
        let null_bytes = usize::from(index.n_nullable).div_ceil(8);
        let mut lens = nulls.checked_sub(null_bytes)?;
        let (mut bit, mut end) = (0, 0);
        self.ends.clear();
        for field in &index.fields {
            if field.nullable {
                let byte = page[nulls - bit / 8];
                let is_null = byte >> (bit % 8) & 1 == 1;
                bit += 1;
                if is_null {
                    self.ends.push(end | NULL);
                    continue;
                }
            }
            let mut flags = 0;
            if field.fixed_len != 0 {
                end += u32::from(field.fixed_len);
            } else {
                let first = u32::from(page[lens]);
                lens = lens.checked_sub(1).filter(|&lens| lens >= heap - 1)?;
                let mut len = first;
                if field.big && first & 0x80 != 0 {
                    len = (first & 0x3F) << 8 | u32::from(page[lens]);
                    lens = lens.checked_sub(1).filter(|&lens| lens >= heap - 1)?;
                    if first & 0x40 != 0 {
                        flags = EXTERNAL;
                    }
                    if flags != 0 && (len as usize) < BLOB_REF_BYTES {
                        return None;
                    }
                }
                end += len;
            }
            self.ends.push(end | flags);
        }
        // The ends ascend: if the last one leaves the flags alone, all do.
        (end <= END && lens + 1 >= heap).then_some(lens + 1)
    }

    fn compute_any(&mut self, page: &[u8], rec: RecOffset, index: &Index) -> Result<()> {
        self.is_fixed = false;
        let mut walk = FieldWalk::begin(page, rec, index)?;
        self.ends.clear();
        self.n_stored = walk.present as u16;
        self.is_node_pointer = walk.is_node_pointer;
        self.blob_before = None;
        for _ in 0..walk.len() {
            let step = walk.step()?;
            self.ends.push((step.end - rec.at()) as u32 | step.flags);
        }
        if let (Some(before), true) = (walk.blob_before, walk.blob_at.is_none()) {
            if before != walk.len() {
                return Err(walk.wrong("a metadata record without its BLOB reference"));
            }
            walk.i = before + 1;
            walk.pass_blob()?;
        }
        self.blob_before = walk.blob_before.map(|i| i as u16);
        let (start, end) = walk.finish()?;
        self.extra = (rec.at() - start) as u16;
        self.data = (end - rec.at()) as u16;
        Ok(())
    }

    /// Number of index fields, missing ones included; the child page of a node pointer is not one.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True before the first `compute`.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Fields that the record itself stores; the others have their instant default.
    pub fn n_stored(&self) -> usize {
        self.n_stored as usize
    }

    /// Bytes of the header.
    pub fn extra_size(&self) -> usize {
        self.extra as usize
    }

    /// Bytes of the data.
    pub fn data_size(&self) -> usize {
        self.data as usize
    }

    /// Bytes of header and data.
    pub fn size(&self) -> usize {
        self.extra as usize + self.data as usize
    }

    /// True for a leaf record whose fields end where `Index::fixed_ends` says.
    #[inline]
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// True if the record is a node pointer.
    pub fn is_node_pointer(&self) -> bool {
        self.is_node_pointer
    }

    /// Field `i` relative to the origin: start and end. Empty for missing fields, and for NULL but
    /// in REDUNDANT records, where it spans the bytes that are kept for it.
    pub fn range(&self, i: usize) -> (usize, usize) {
        let end = (self.ends[i] & END) as usize;
        let before = match i {
            0 => 0,
            _ => (self.ends[i - 1] & END) as usize,
        };
        if self.blob_before == Some(i as u16) {
            return (before + BLOB_REF_BYTES, end);
        }
        (before, end)
    }

    /// Where the BLOB reference of an instant-ALTER metadata record stands, relative to the origin.
    pub fn metadata_blob(&self) -> Option<usize> {
        let i = self.blob_before? as usize;
        Some((self.ends[i - 1] & END) as usize)
    }

    /// True if field `i` is NULL; also for missing ones.
    pub fn is_null(&self, i: usize) -> bool {
        self.ends[i] & NULL != 0
    }

    /// True if field `i` continues off the page.
    pub fn is_external(&self, i: usize) -> bool {
        self.ends[i] & EXTERNAL != 0
    }

    /// True if the record does not store field `i`.
    pub fn is_missing(&self, i: usize) -> bool {
        self.ends[i] & MISSING != 0
    }

    /// The child page's number on a page; only for node pointers.
    pub(super) fn child(&self, page: &[u8], rec: RecOffset) -> u32 {
        be::u32_at(page, rec.at() + self.data_size() - record::CHILD_BYTES)
    }
}

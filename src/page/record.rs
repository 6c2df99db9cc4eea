//! A record as a view into its page.

use std::ops::Range;

use crate::format::record as header;
use crate::schema::value::TupleKind;
use crate::schema::{FieldRef, Index, Tuple};
use crate::words::limits::BLOB_REF_BYTES;
use crate::words::{HeapNo, PageNo, Result, RollPtr, TrxId, be};

use super::layout::{self, RecOffset, corrupt};
use super::offsets::{FieldWalk, Offsets};

/// Heap number of a record, system records included.
pub fn heap_no(page: &[u8], rec: RecOffset) -> HeapNo {
    HeapNo(header::heap_no(page, rec.at(), layout::is_compact(page)))
}

/// True if the record is delete-marked. The metadata record of an instant table may be, too.
pub fn is_deleted(page: &[u8], rec: RecOffset) -> bool {
    header::info_bits(page, rec.at(), layout::is_compact(page)) & header::DELETED != 0
}

/// True if the record is lower than every key: leftmost node pointer, or metadata record.
pub fn is_min_rec(page: &[u8], rec: RecOffset) -> bool {
    header::info_bits(page, rec.at(), layout::is_compact(page)) & header::MIN_REC != 0
}

/// True if the record is the hidden metadata record of an instant table: never a row.
pub fn is_metadata(page: &[u8], rec: RecOffset) -> bool {
    layout::is_leaf(page) && is_min_rec(page, rec)
}

/// A user record with its field positions.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    page: &'a [u8],
    rec: RecOffset,
    index: &'a Index,
    offsets: &'a Offsets,
}

impl<'a> RecordView<'a> {
    /// Computes the positions of the record at `rec` into `offsets`.
    pub fn new(
        page: &'a [u8],
        rec: RecOffset,
        index: &'a Index,
        offsets: &'a mut Offsets,
    ) -> Result<RecordView<'a>> {
        offsets.compute(page, rec, index)?;
        Ok(RecordView {
            page,
            rec,
            index,
            offsets,
        })
    }

    /// A view with positions that were computed for this very record before.
    pub fn with_offsets(
        page: &'a [u8],
        rec: RecOffset,
        index: &'a Index,
        offsets: &'a Offsets,
    ) -> RecordView<'a> {
        RecordView {
            page,
            rec,
            index,
            offsets,
        }
    }

    /// Where it stands.
    pub fn rec(&self) -> RecOffset {
        self.rec
    }

    /// Its field positions.
    pub fn offsets(&self) -> &'a Offsets {
        self.offsets
    }

    /// Its index.
    pub fn index(&self) -> &'a Index {
        self.index
    }

    /// Number of fields, those with instant defaults included.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// True if there are no fields; never the case for a record of a tree.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Field `i`, from the record or, where the record lacks it, from the instant default.
    #[inline]
    pub fn field(&self, i: usize) -> FieldRef<'a> {
        if self.offsets.is_missing(i) {
            return match &self.index.instant {
                Some(instant) => instant.default_of(i),
                None => FieldRef::Null,
            };
        }
        if self.offsets.is_null(i) {
            return FieldRef::Null;
        }
        let bytes = &self.page[self.range(i)];
        if self.offsets.is_external(i) {
            FieldRef::External(bytes)
        } else {
            FieldRef::Bytes(bytes)
        }
    }

    /// Where field `i` stands in the page.
    #[inline]
    pub fn range(&self, i: usize) -> Range<usize> {
        let (start, end) = self.offsets.range(i);
        self.rec.at() + start..self.rec.at() + end
    }

    /// All fields in order.
    pub fn fields(&self) -> impl Iterator<Item = FieldRef<'a>> + '_ {
        (0..self.len()).map(|i| self.field(i))
    }

    /// Info bits.
    pub fn info_bits(&self) -> u8 {
        header::info_bits(self.page, self.rec.at(), self.index.compact)
    }

    /// True if delete-marked.
    pub fn is_deleted(&self) -> bool {
        self.info_bits() & header::DELETED != 0
    }

    /// True for the metadata record of an instant table.
    pub fn is_metadata(&self) -> bool {
        is_metadata(self.page, self.rec)
    }

    /// Heap number.
    pub fn heap_no(&self) -> HeapNo {
        HeapNo(header::heap_no(
            self.page,
            self.rec.at(),
            self.index.compact,
        ))
    }

    /// Bytes of header and data together.
    pub fn bytes(&self) -> &'a [u8] {
        let start = self.rec.at() - self.offsets.extra_size();
        &self.page[start..start + self.offsets.size()]
    }

    /// The child page; `None` for leaf records.
    pub fn child(&self) -> Option<PageNo> {
        self.offsets
            .is_node_pointer()
            .then(|| PageNo(self.offsets.child(self.page, self.rec)))
    }

    /// Where the child page number stands in the page, for writes that must be logged.
    pub fn child_offset(&self) -> usize {
        self.rec.at() + self.offsets.data_size() - header::CHILD_BYTES
    }

    /// The data of a leaf record whose fields end where `Index::fixed_ends` says; `None` of others.
    #[inline]
    pub fn fixed_data(&self) -> Option<&'a [u8]> {
        let start = self.rec.at();
        let end = start + self.offsets.data_size();
        self.offsets.is_fixed().then(|| &self.page[start..end])
    }

    /// DB_TRX_ID of a clustered leaf record; `None` elsewhere, or if its length is not 6.
    pub fn trx_id(&self) -> Option<TrxId> {
        let range = self.system_field(self.index.trx_id_field)?;
        (range.len() == 6).then(|| TrxId(be::u48_at(self.page, range.start)))
    }

    /// DB_ROLL_PTR of a clustered leaf record; `None` elsewhere, or if its length is not 7.
    pub fn roll_ptr(&self) -> Option<RollPtr> {
        let range = self.system_field(self.index.roll_ptr_field())?;
        (range.len() == 7).then(|| RollPtr(be::u56_at(self.page, range.start)))
    }

    fn system_field(&self, i: Option<u16>) -> Option<Range<usize>> {
        let i = i? as usize;
        (i < self.len()).then(|| self.range(i))
    }

    /// The BLOB reference of an instant-ALTER metadata record.
    pub fn metadata_blob(&self) -> Option<[u8; BLOB_REF_BYTES]> {
        let start = self.rec.at() + self.offsets.metadata_blob()?;
        self.page[start..].first_chunk().copied()
    }

    /// Copies the record into an entry, its defaults resolved, with info bits and kind.
    pub fn copy_to(&self, tuple: &mut Tuple) {
        self.copy_key_to(tuple, self.len());
        tuple.info_bits = self.info_bits();
        tuple.kind = match self.child() {
            Some(child) => TupleKind::NodePointer(child),
            None if self.is_metadata() => TupleKind::Metadata(self.metadata_blob()),
            None => TupleKind::Leaf,
        };
    }

    /// Copies the first `n` fields into an entry, as a search key.
    pub fn copy_key_to(&self, tuple: &mut Tuple, n: usize) {
        tuple.clear();
        for i in 0..n {
            tuple.push(self.field(i));
        }
    }

    /// Makes the entry a node pointer to `child` with this record's key.
    pub fn copy_node_pointer_to(&self, tuple: &mut Tuple, child: PageNo) {
        self.copy_key_to(tuple, self.index.n_node_key_fields());
        tuple.kind = TupleKind::NodePointer(child);
    }
}

/// Reads the child page of the node pointer at `rec`.
pub fn child_of(page: &[u8], rec: RecOffset, index: &Index) -> Result<PageNo> {
    if layout::is_leaf(page) {
        return Err(corrupt(
            page,
            "a leaf record where a node pointer should stand",
        ));
    }
    let mut walk = FieldWalk::begin(page, rec, index)?;
    for _ in 0..walk.len() {
        walk.step()?;
    }
    let (_, end) = walk.finish()?;
    Ok(PageNo(be::u32_at(page, end - header::CHILD_BYTES)))
}

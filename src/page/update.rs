//! Changing a record where it stands: bytes of equal length, and flags.

use crate::format::index_page;
use crate::format::record as header;
use crate::schema::{FieldRef, Index};
use crate::words::{PageNo, Result, RollPtr, TrxId, be};

use super::layout::{self, RecOffset, corrupt};
use super::record::RecordView;
use super::write::PageWrite;

/// True if field `i` of the record can take `value` without moving a byte: stored here, as long,
/// and NULL or off-page exactly if it was before.
pub fn fits_in_place(view: &RecordView<'_>, i: usize, value: FieldRef<'_>) -> bool {
    let offsets = view.offsets();
    if offsets.is_missing(i) {
        return false;
    }
    match value {
        FieldRef::Null => offsets.is_null(i),
        FieldRef::Bytes(bytes) => {
            !offsets.is_null(i) && !offsets.is_external(i) && view.range(i).len() == bytes.len()
        }
        FieldRef::External(bytes) => offsets.is_external(i) && view.range(i).len() == bytes.len(),
    }
}

/// Writes one field that `fits_in_place`; only the bytes from the first to the last difference.
/// `range` is the view's range of the field.
pub fn field_in_place(
    page: &mut (impl PageWrite + ?Sized),
    range: std::ops::Range<usize>,
    value: FieldRef<'_>,
) {
    let Some(bytes) = value.bytes() else { return };
    assert_eq!(bytes.len(), range.len(), "the field does not fit in place");
    let now = &page.page()[range.clone()];
    let Some(first) = now.iter().zip(bytes).position(|(a, b)| a != b) else {
        return;
    };
    let last = now
        .iter()
        .zip(bytes)
        .rposition(|(a, b)| a != b)
        .unwrap_or(first);
    page.write(range.start + first, &bytes[first..=last]);
}

/// Writes several fields of one record; all must fit (`fits_in_place`), else nothing is changed and
/// the result is false. `offsets` must have been computed for `rec`.
pub fn update_in_place<'v>(
    page: &mut (impl PageWrite + ?Sized),
    index: &Index,
    rec: RecOffset,
    offsets: &super::Offsets,
    changes: impl Iterator<Item = (usize, FieldRef<'v>)> + Clone,
) -> bool {
    let view = RecordView::with_offsets(page.page(), rec, index, offsets);
    if !changes
        .clone()
        .all(|(i, value)| i < view.len() && fits_in_place(&view, i, value))
    {
        return false;
    }
    for (i, value) in changes {
        let (start, end) = offsets.range(i);
        field_in_place(page, rec.at() + start..rec.at() + end, value);
    }
    true
}

/// Sets or clears the delete mark.
pub fn set_delete_mark(page: &mut (impl PageWrite + ?Sized), rec: RecOffset, deleted: bool) {
    set_info_bit(page, rec, header::DELETED, deleted);
}

/// Sets or clears the mark of the leftmost node pointer of a level.
pub fn set_min_rec(page: &mut (impl PageWrite + ?Sized), rec: RecOffset, min_rec: bool) {
    set_info_bit(page, rec, header::MIN_REC, min_rec);
}

fn set_info_bit(page: &mut (impl PageWrite + ?Sized), rec: RecOffset, bit: u8, on: bool) {
    let at = header::info_offset(rec.at(), layout::is_compact(page.page()));
    let old = page.page()[at];
    let new = if on { old | bit } else { old & !bit };
    if new != old {
        page.write(at, &[new]);
    }
}

/// Stamps DB_TRX_ID and DB_ROLL_PTR of a clustered leaf record, whose `offsets` were computed.
pub fn set_trx_id(
    page: &mut (impl PageWrite + ?Sized),
    index: &Index,
    rec: RecOffset,
    offsets: &super::Offsets,
    trx_id: TrxId,
    roll_ptr: RollPtr,
) -> Result<()> {
    let Some(field) = index.trx_id_field else {
        return Err(crate::words::Error::internal("no DB_TRX_ID in this index"));
    };
    let (start, end) = offsets.range(field as usize);
    let (_, roll_end) = offsets.range(field as usize + 1);
    if (end - start, roll_end - end) != (6, 7) {
        return Err(corrupt(
            page.page(),
            "DB_TRX_ID or DB_ROLL_PTR of a wrong length",
        ));
    }
    let mut bytes = [0u8; 13];
    be::put_u48(&mut bytes, 0, trx_id.0);
    be::put_u56(&mut bytes, 6, roll_ptr.0);
    let range = rec.at() + start..rec.at() + roll_end;
    field_in_place(page, range, FieldRef::Bytes(&bytes));
    Ok(())
}

/// Points a node pointer to another child. `view.child_offset()` tells where it stands.
pub fn set_child(page: &mut (impl PageWrite + ?Sized), child_offset: usize, child: PageNo) {
    let range = child_offset..child_offset + header::CHILD_BYTES;
    field_in_place(page, range, FieldRef::Bytes(&child.0.to_be_bytes()));
}

/// Raises PAGE_MAX_TRX_ID of a secondary leaf to `trx_id` if it is lower.
pub fn raise_max_trx_id(page: &mut (impl PageWrite + ?Sized), trx_id: TrxId) {
    if layout::max_trx_id(page.page()) < trx_id {
        page.write(index_page::MAX_TRX_ID, &trx_id.0.to_be_bytes());
    }
}

//! Instant ALTER TABLE as pages show it: the clustered root, the metadata record, its BLOB
//! (format-tablespace.md section 15).

use crate::format::index_page as at;
use crate::format::record as header;
use crate::schema::{FieldMapEntry, FieldRef, Index};
use crate::words::limits::BLOB_REF_BYTES;
use crate::words::{Error, Result, be};

use super::layout::{self, RecOffset, corrupt};
use super::offsets::Offsets;
use super::record::RecordView;

/// What the clustered root says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RootState {
    /// Number of core fields.
    pub n_core_fields: u16,
    /// Size of the core NULL bitmap, if columns were dropped or reordered.
    pub core_null_bytes: Option<u8>,
}

/// The instant state of a clustered root; `None` if the table has none.
pub fn root_state(page: &[u8]) -> Option<RootState> {
    if layout::page_type(page) != at::TYPE_INSTANT {
        return None;
    }
    let frame = layout::frame(page);
    let infimum = &page[frame.infimum as usize..frame.infimum as usize + 8];
    let core_null_bytes = match infimum {
        b"infimum\0" => None,
        _ => Some(page[frame.supremum as usize + 7]),
    };
    Some(RootState {
        n_core_fields: layout::instant_n_core(page),
        core_null_bytes,
    })
}

/// The metadata record: the first one of the leftmost leaf, if it has the min-rec mark.
pub fn metadata_record(page: &[u8]) -> Result<Option<RecOffset>> {
    if !layout::is_leaf(page) || layout::prev_page(page).is_some() {
        return Ok(None);
    }
    let first = layout::first(page)?;
    let is_user = !layout::is_system(page, first);
    Ok((is_user && super::record::is_min_rec(page, first)).then_some(first))
}

/// The BLOB reference of an instant-ALTER metadata record, before the index's fields are in their
/// final order: only the key fields, which never change, are used. `None`: the ADD kind.
pub fn metadata_blob(
    page: &[u8],
    rec: RecOffset,
    index: &Index,
) -> Result<Option<[u8; BLOB_REF_BYTES]>> {
    let compact = index.compact;
    if header::info_bits(page, rec.at(), compact) != header::MIN_REC | header::DELETED {
        return Ok(None);
    }
    let Some(trx_id) = index.trx_id_field else {
        return Err(corrupt(
            page,
            "a metadata record outside the clustered index",
        ));
    };
    let key = trx_id as usize;
    // The metadata record has empty variable-length key fields and zeros in fixed ones.
    let key_len = if compact {
        index.fields[..key]
            .iter()
            .map(|f| f.fixed_len as usize)
            .sum()
    } else {
        let short = header::redundant_is_short(page, rec.at());
        let width = if short { 1 } else { 2 };
        let header_len =
            header::REDUNDANT_EXTRA + header::redundant_n_fields(page, rec.at()) * width;
        if header::redundant_n_fields(page, rec.at()) < key + 3
            || rec.at() < at::REDUNDANT.heap as usize + header_len
        {
            return Err(corrupt(page, "a metadata record with too few fields"));
        }
        let end = header::redundant_end(page, rec.at(), short, key - 1);
        usize::from(end & header::LONG_OFFSET)
    };
    let start = rec.at() + key_len + 13;
    if start + BLOB_REF_BYTES > layout::heap_limit(page) {
        return Err(corrupt(page, "a metadata record beyond the heap"));
    }
    Ok(page[start..].first_chunk().copied())
}

/// Parses the content of the metadata BLOB.
pub fn parse_field_map(blob: &[u8]) -> Result<Vec<FieldMapEntry>> {
    let wrong = || Error::corrupt_bytes("the instant metadata BLOB is too short");
    let n = be::try_u32_at(blob, 0).ok_or_else(wrong)? as usize;
    if n > 1024 {
        return Err(Error::corrupt_bytes(format!(
            "the instant metadata names {n} fields"
        )));
    }
    (0..n)
        .map(|i| {
            be::try_u16_at(blob, 4 + 2 * i)
                .map(FieldMapEntry::from_word)
                .ok_or_else(wrong)
        })
        .collect()
}

/// The default values in a metadata record, for `Table::set_instant_defaults`. `fetch` reads an
/// off-page value in full from its local part.
pub fn defaults(
    page: &[u8],
    rec: RecOffset,
    index: &Index,
    mut fetch: impl FnMut(FieldRef<'_>) -> Result<Box<[u8]>>,
) -> Result<Vec<Option<Box<[u8]>>>> {
    let mut offsets = Offsets::new();
    let view = RecordView::new(page, rec, index, &mut offsets)?;
    (index.n_core_fields()..view.len())
        .map(|i| match view.field(i) {
            FieldRef::Null => Ok(None),
            FieldRef::Bytes(bytes) => Ok(Some(bytes.into())),
            external => fetch(external).map(Some),
        })
        .collect()
}

//! Which columns of a row go off the page, and writing them once the record is there
//! (format-tablespace.md sections 12.3 and 14).

use crate::format::blob::BlobRef;
use crate::format::index_page;
use crate::mtr::{Mtr, PageCtx, PageRef};
use crate::page::{Offsets, RecordView, SearchMode};
use crate::schema::{FieldRef, Index, Tuple};
use crate::tree::{Intent, Seek, Tree};
use crate::words::limits::{BLOB_PREFIX_BYTES_ANTELOPE, BLOB_REF_BYTES};
use crate::words::{Error, Result, RollPtr};

/// Columns up to this length stay.
const SHORT_BYTES: usize = 40;

/// Values that go off the page: clustered field, and what follows the local prefix.
#[derive(Debug, Default)]
pub(super) struct BigValues(pub(super) Vec<(u16, Vec<u8>)>);

/// Size of the record that `entry` makes; header and data.
pub(super) fn record_size(index: &Index, entry: &Tuple) -> usize {
    let mut data = 0;
    let mut lengths = 0;
    for (field, value) in index.fields.iter().zip(entry.fields()) {
        match value.bytes() {
            Some(bytes) => {
                data += bytes.len();
                if field.fixed_len == 0 {
                    let external = matches!(value, FieldRef::External(_));
                    let long = external || field.big && bytes.len() > 127;
                    lengths += 1 + usize::from(long);
                }
            }
            None if !index.compact => data += field.redundant_null_len as usize,
            None => {}
        }
    }
    if !index.compact {
        let width = if data > 127 { 2 } else { 1 };
        return 6 + width * entry.len() + data;
    }
    let added = if index.instant.is_some() { 2 } else { 0 };
    5 + added + (index.n_nullable as usize).div_ceil(8) + lengths + data
}

/// The smallest size that is too large for a record on a page of `page_size` bytes.
fn size_limit(index: &Index, page_size: usize) -> usize {
    let heap = index_page::frame(index.compact).heap as usize;
    let format_max = if index.compact { 16384 } else { 16383 };
    ((page_size - 12 - heap) / 2).min(format_max)
}

/// Moves columns off the page until the record fits; `big` gets their values. `prefix_bytes` stay.
///
/// Errors: `RowTooLarge`.
pub(super) fn shorten(
    index: &Index,
    has_prefix: bool,
    page_size: usize,
    entry: &mut Tuple,
    big: &mut BigValues,
) -> Result<()> {
    big.0.clear();
    let limit = size_limit(index, page_size);
    let prefix = if has_prefix {
        BLOB_PREFIX_BYTES_ANTELOPE
    } else {
        0
    };
    let local = prefix + BLOB_REF_BYTES;
    loop {
        let size = record_size(index, entry);
        if size < limit {
            return Ok(());
        }
        let mut best: Option<(usize, usize)> = None;
        for (i, field) in index.fields.iter().enumerate().skip(index.n_uniq as usize) {
            let FieldRef::Bytes(bytes) = entry.field(i) else {
                continue;
            };
            let len = bytes.len();
            if !field.may_be_external() || len <= SHORT_BYTES || len <= local {
                continue;
            }
            if best.is_none_or(|(_, most)| len > most) {
                best = Some((i, len));
            }
        }
        let Some((field, _)) = best else {
            return Err(Error::RowTooLarge {
                size: size as u32,
                size_max: limit as u32 - 1,
            });
        };
        let bytes = entry.field(field).bytes().expect("only values were chosen");
        big.0.push((field as u16, bytes[prefix..].to_vec()));
        let mut kept = bytes[..prefix].to_vec();
        kept.extend_from_slice(&BlobRef::UNWRITTEN.to_bytes());
        entry.set(field, FieldRef::External(&kept));
    }
}

/// Finds the reference of an off-page field in the clustered record with `key`: the leaf is latched
/// X. `None` if it is not there, or is not the version of `roll_ptr`. `WouldBlock` restarts.
pub(super) fn find_reference<'a>(
    tree: &Tree,
    mtr: &mut Mtr<'a>,
    key: &Tuple,
    field: usize,
    roll_ptr: Option<RollPtr>,
    offsets: &mut Offsets,
) -> Result<Option<(PageRef, usize)>> {
    let seek = Seek::Key(key, SearchMode::LessOrEqual);
    let at = tree.seek(mtr, seek, Intent::Modify)?;
    if usize::from(at.low_match) != key.len() {
        return Ok(None);
    }
    let record = RecordView::new(mtr.view(at.page), at.rec, tree.index(), offsets)?;
    let changed = roll_ptr.is_some() && record.roll_ptr() != roll_ptr;
    if changed || !offsets.is_external(field) {
        return Ok(None);
    }
    let (_, end) = offsets.range(field);
    Ok(Some((at.page, at.rec.at() + end - BLOB_REF_BYTES)))
}

/// Writes the values of a record that was inserted or updated just now: one chain each.
///
/// Errors: `NoSpace` and what reading gives; what was written is linked from the record, so that the
/// statement's rollback frees it.
pub(super) fn write_all(
    ctx: &PageCtx,
    tree: &Tree,
    key: &Tuple,
    big: &BigValues,
    offsets: &mut Offsets,
) -> Result<()> {
    for (field, value) in &big.0 {
        tree.write_blob(ctx, value, &mut |mtr: &mut Mtr<'_>| {
            find_reference(tree, mtr, key, usize::from(*field), None, offsets)?
                .ok_or_else(|| Error::internal("a row lost its place while its BLOB was written"))
        })?;
    }
    Ok(())
}

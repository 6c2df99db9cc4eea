//! Building the bytes of a record from an entry (format-tablespace.md section 12), or taking them
//! from a record that stands on another page.

use crate::format::record::{
    self, CHILD_BYTES, COMPACT_EXTRA, LONG_EXTERNAL, LONG_NULL, REDUNDANT_EXTRA, SHORT_NULL,
};
use crate::schema::value::TupleKind;
use crate::schema::{Field, FieldRef, Index, Tuple};
use crate::words::limits::BLOB_REF_BYTES;
use crate::words::{Error, Result, be};

use super::record::RecordView;

/// A record as it will stand on a page, but for its link and heap number. Reused from record to
/// record.
#[derive(Clone, Debug, Default)]
pub struct RecordImage {
    bytes: Vec<u8>,
    extra: usize,
}

impl RecordImage {
    /// Empty.
    pub fn new() -> RecordImage {
        RecordImage::default()
    }

    /// Header and data.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the header.
    pub fn extra_size(&self) -> usize {
        self.extra
    }

    /// Bytes of the data.
    pub fn data_size(&self) -> usize {
        self.bytes.len() - self.extra
    }

    /// Bytes of header and data.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Header bytes, the fixed ones last.
    pub fn header(&self) -> &[u8] {
        &self.bytes[..self.extra]
    }

    /// Data bytes.
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.extra..]
    }

    /// Info bits.
    pub fn info_bits(&self, compact: bool) -> u8 {
        record::info_bits(&self.bytes, self.extra, compact)
    }

    /// Status of a COMPACT record.
    pub fn status(&self) -> u8 {
        record::status(&self.bytes, self.extra)
    }

    /// Takes a record from a page: of the same index, or of the level above or below it with the
    /// same layout.
    pub fn copy_record(&mut self, view: &RecordView<'_>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(view.bytes());
        self.extra = view.offsets().extra_size();
        record::set_n_owned(&mut self.bytes, self.extra, view.index().compact, 0);
    }

    /// Builds the record of an entry. `Error::Invalid` if the entry does not fit the index: a wrong
    /// number of fields, a wrong length, NULL where it is not allowed.
    pub fn build(&mut self, index: &Index, tuple: &Tuple) -> Result<()> {
        let shape = Shape::of(index, tuple)?;
        if index.compact {
            self.build_compact(index, tuple, &shape)
        } else {
            self.build_redundant(index, tuple, &shape)
        }
    }

    fn build_compact(&mut self, index: &Index, tuple: &Tuple, shape: &Shape) -> Result<()> {
        let mut lengths = 0;
        let mut data = shape.tail_bytes();
        for (field, value) in fields(index, tuple, shape.present) {
            let Some(bytes) = value.bytes() else {
                check_null(field)?;
                continue;
            };
            data += bytes.len();
            if field.fixed_len == 0 {
                lengths += compact_length_bytes(field, value)?;
            } else if bytes.len() != field.fixed_len as usize {
                return Err(wrong_length(field, bytes.len()));
            }
        }
        let null_bytes = shape.null_bytes(index);
        let extra = COMPACT_EXTRA + shape.count_bytes() + null_bytes + lengths;
        self.start(extra, data);
        let mut at = extra - COMPACT_EXTRA;
        self.bytes[at] = tuple.info_bits & 0xF0 | shape.info_bits;
        self.bytes[extra - 3] = shape.status;
        if let Some(count) = shape.added {
            if count >= 0x80 {
                self.bytes[at - 1] = 0x80 | (count & 0x7F) as u8;
                self.bytes[at - 2] = (count >> 7) as u8;
            } else {
                self.bytes[at - 1] = count as u8;
            }
            at -= shape.count_bytes();
        }
        let nulls_end = at;
        let mut lens = at - null_bytes;
        let mut bit = 0;
        for (i, (field, value)) in fields(index, tuple, shape.present).enumerate() {
            self.pass_blob(shape, i);
            if field.nullable {
                if value.is_null() {
                    self.bytes[nulls_end - 1 - bit / 8] |= 1 << (bit % 8);
                }
                bit += 1;
            }
            let Some(bytes) = value.bytes() else { continue };
            if field.fixed_len == 0 {
                lens = self.put_compact_length(lens, field, value);
            }
            self.bytes.extend_from_slice(bytes);
        }
        self.finish(shape);
        debug_assert_eq!(self.bytes.len(), extra + data);
        Ok(())
    }

    /// Writes a length below `lens`; returns the new lowest byte.
    fn put_compact_length(&mut self, lens: usize, field: &Field, value: FieldRef<'_>) -> usize {
        let len = value.len();
        let external = matches!(value, FieldRef::External(_));
        if !external && (len < 128 || !field.big) {
            self.bytes[lens - 1] = len as u8;
            return lens - 1;
        }
        let flags = if external { 0xC0 } else { 0x80 };
        self.bytes[lens - 1] = flags | (len >> 8) as u8;
        self.bytes[lens - 2] = len as u8;
        lens - 2
    }

    fn build_redundant(&mut self, index: &Index, tuple: &Tuple, shape: &Shape) -> Result<()> {
        let (data, short) = redundant_data(index, tuple, shape)?;
        let width = if short { 1 } else { 2 };
        let stored = shape.present + shape.extra_fields();
        let extra = REDUNDANT_EXTRA + stored * width;
        self.start(extra, data);
        self.bytes[extra - REDUNDANT_EXTRA] = tuple.info_bits & 0xF0 | shape.info_bits;
        be::put_u24(
            &mut self.bytes,
            extra - 5,
            (stored as u32) << 1 | u32::from(short),
        );
        let mut ends = Ends {
            extra,
            short,
            at: extra - REDUNDANT_EXTRA,
        };
        for (i, (field, value)) in fields(index, tuple, shape.present).enumerate() {
            if self.pass_blob(shape, i) {
                ends.put(&mut self.bytes, LONG_EXTERNAL);
            }
            match value {
                FieldRef::Null => {
                    let end = self.bytes.len() + field.redundant_null_len as usize;
                    self.bytes.resize(end, 0);
                    ends.put(&mut self.bytes, LONG_NULL);
                }
                FieldRef::Bytes(bytes) => {
                    self.bytes.extend_from_slice(bytes);
                    ends.put(&mut self.bytes, 0);
                }
                FieldRef::External(bytes) => {
                    self.bytes.extend_from_slice(bytes);
                    ends.put(&mut self.bytes, LONG_EXTERNAL);
                }
            }
        }
        if self.finish(shape) {
            let flags = if shape.child.is_none() {
                LONG_EXTERNAL
            } else {
                0
            };
            ends.put(&mut self.bytes, flags);
        }
        debug_assert_eq!(self.bytes.len(), extra + data);
        Ok(())
    }

    fn start(&mut self, extra: usize, data: usize) {
        self.extra = extra;
        self.bytes.clear();
        self.bytes.reserve(extra + data);
        self.bytes.resize(extra, 0);
    }

    /// Appends the metadata BLOB's reference if it stands before field `i`.
    fn pass_blob(&mut self, shape: &Shape, i: usize) -> bool {
        match shape.blob {
            Some((before, reference)) if before == i => {
                self.bytes.extend_from_slice(&reference);
                true
            }
            _ => false,
        }
    }

    /// Appends what follows the last field: a child page, or the metadata BLOB's reference.
    fn finish(&mut self, shape: &Shape) -> bool {
        if let Some(child) = shape.child {
            self.bytes.extend_from_slice(&child.to_be_bytes());
            return true;
        }
        self.pass_blob(shape, shape.present)
    }
}

/// The field ends of a REDUNDANT header, written downwards.
struct Ends {
    extra: usize,
    short: bool,
    at: usize,
}

impl Ends {
    fn put(&mut self, bytes: &mut [u8], flags: u16) {
        let end = (bytes.len() - self.extra) as u16;
        if self.short {
            self.at -= 1;
            bytes[self.at] = end as u8
                | if flags & LONG_NULL != 0 {
                    SHORT_NULL
                } else {
                    0
                };
        } else {
            self.at -= 2;
            be::put_u16(bytes, self.at, end | flags);
        }
    }
}

/// What sort of record an entry becomes.
struct Shape {
    /// Index fields that are stored.
    present: usize,
    status: u8,
    info_bits: u8,
    /// The count that a record of status 4 carries.
    added: Option<usize>,
    /// Field before which the metadata BLOB's reference stands, and the reference.
    blob: Option<(usize, [u8; BLOB_REF_BYTES])>,
    child: Option<u32>,
}

impl Shape {
    fn of(index: &Index, tuple: &Tuple) -> Result<Shape> {
        let mut shape = Shape {
            present: tuple.len(),
            status: record::STATUS_ORDINARY,
            info_bits: 0,
            added: None,
            blob: None,
            child: None,
        };
        let wanted = match tuple.kind {
            TupleKind::NodePointer(child) => {
                shape.child = Some(child.0);
                shape.status = record::STATUS_NODE_PTR;
                index.n_node_key_fields()
            }
            _ => index.fields.len(),
        };
        if tuple.len() != wanted {
            let why = format!(
                "an entry of {} fields for an index of {wanted}",
                tuple.len()
            );
            return Err(Error::invalid(why));
        }
        let Some(instant) = index.instant.as_ref().filter(|_| shape.child.is_none()) else {
            return Ok(shape);
        };
        let n_core = instant.n_core_fields as usize;
        if let TupleKind::Metadata(blob) = tuple.kind {
            shape.info_bits = record::MIN_REC;
            if let (Some(reference), Some(trx_id)) = (blob, index.trx_id_field) {
                shape.info_bits |= record::DELETED;
                shape.blob = Some((trx_id as usize + 2, reference));
            }
        } else {
            while shape.present > n_core
                && tuple.field(shape.present - 1) == instant.default_of(shape.present - 1)
            {
                shape.present -= 1;
            }
        }
        let counted = shape.present + usize::from(shape.blob.is_some());
        if counted > n_core {
            shape.status = record::STATUS_INSTANT;
            shape.added = Some(counted - n_core - 1);
        }
        Ok(shape)
    }

    fn count_bytes(&self) -> usize {
        match self.added {
            None => 0,
            Some(n) if n < 0x80 => 1,
            Some(_) => 2,
        }
    }

    fn null_bytes(&self, index: &Index) -> usize {
        match self.status {
            record::STATUS_INSTANT => index.null_bytes_of(self.present),
            _ => index.core_null_bytes(),
        }
    }

    fn tail_bytes(&self) -> usize {
        let child = if self.child.is_some() { CHILD_BYTES } else { 0 };
        child
            + if self.blob.is_some() {
                BLOB_REF_BYTES
            } else {
                0
            }
    }

    /// Fields of a REDUNDANT record that are not index fields.
    fn extra_fields(&self) -> usize {
        usize::from(self.child.is_some()) + usize::from(self.blob.is_some())
    }
}

fn fields<'a>(
    index: &'a Index,
    tuple: &'a Tuple,
    n: usize,
) -> impl Iterator<Item = (&'a Field, FieldRef<'a>)> {
    index.fields[..n].iter().zip(tuple.fields())
}

/// Bytes of the data, and whether field ends of one byte each will do.
fn redundant_data(index: &Index, tuple: &Tuple, shape: &Shape) -> Result<(usize, bool)> {
    let mut data = shape.tail_bytes();
    let mut short = shape.blob.is_none();
    for (field, value) in fields(index, tuple, shape.present) {
        match value {
            FieldRef::Null => {
                check_null(field)?;
                data += field.redundant_null_len as usize;
                continue;
            }
            FieldRef::External(_) => {
                check_external(field, value)?;
                short = false;
            }
            FieldRef::Bytes(bytes) => {
                if field.fixed_len != 0 && bytes.len() != field.fixed_len as usize {
                    return Err(wrong_length(field, bytes.len()));
                }
            }
        }
        data += value.len();
    }
    if data > usize::from(record::LONG_OFFSET) {
        return Err(too_long(data));
    }
    Ok((data, short && data <= 127))
}

fn compact_length_bytes(field: &Field, value: FieldRef<'_>) -> Result<usize> {
    if let FieldRef::External(_) = value {
        check_external(field, value)?;
        return Ok(2);
    }
    match value.len() {
        0..=127 => Ok(1),
        128..=255 if !field.big => Ok(1),
        len if !field.big => Err(wrong_length(field, len)),
        len if len > 0x3FFF => Err(too_long(len)),
        _ => Ok(2),
    }
}

fn check_external(field: &Field, value: FieldRef<'_>) -> Result<()> {
    if !field.big || value.len() < BLOB_REF_BYTES || value.len() > 0x3FFF {
        return Err(Error::invalid(
            "an off-page value in a field that can't have one",
        ));
    }
    Ok(())
}

fn check_null(field: &Field) -> Result<()> {
    if field.nullable {
        return Ok(());
    }
    Err(Error::invalid("NULL in a field that is NOT NULL"))
}

#[cold]
fn wrong_length(field: &Field, len: usize) -> Error {
    let wanted = if field.fixed_len != 0 {
        field.fixed_len
    } else {
        field.ty.len
    };
    Error::invalid(format!("a value of {len} bytes in a field of {wanted}"))
}

#[cold]
fn too_long(len: usize) -> Error {
    Error::RowTooLarge {
        size: len as u32,
        size_max: 0x3FFF,
    }
}

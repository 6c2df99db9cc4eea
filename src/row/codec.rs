//! The template of a handle: how its rows and keys become entries of the table's trees, and back.
//! Made once, when the handle is opened; nothing here allocates per row but what the entry keeps.

use std::sync::Arc;

use super::convert::Convert;
use crate::format::blob::BlobRef;
use crate::host::collation::CollationSource;
use crate::host::image::{BlobHeap, KeyKind, RowIn, TableImage};
use crate::mtr::Mtr;
use crate::page::RecordView;
use crate::schema::{FieldColumn, FieldRef, Index, Table, Tuple};
use crate::tree::Tree;
use crate::words::limits::BLOB_REF_BYTES;
use crate::words::{Error, Result};

use super::entry;
use super::fixed::FixedPlan;

/// What a handle's host calls a table, matched with the dictionary's table.
pub struct Template {
    image: Arc<TableImage>,
    /// By host column.
    pub(super) columns: Box<[ColumnCodec]>,
    /// How a clustered entry is filled, by field.
    clustered: Box<[Source]>,
    /// Position of each host key in `Table::indexes`.
    key_index: Box<[u16]>,
    /// For each index, the field that holds the whole of each host column.
    fields: Box<[Box<[Option<u16>]>]>,
    /// For each index whose records are all alike, how they are copied.
    fixed: Box<[Option<FixedPlan>]>,
}

/// One host column.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnCodec {
    /// Field of the clustered index that holds it whole; virtual columns have none.
    pub(super) field: Option<u16>,
    pub(super) convert: Convert,
}

/// Where a field of a clustered entry comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// A host column, cut to the field's prefix.
    Column(u16),
    /// DB_ROW_ID, DB_TRX_ID, DB_ROLL_PTR: filled later.
    System(u8),
    /// A dropped column: NULL, or zeros.
    Dropped,
}

/// A column whose value continues off the page.
#[derive(Clone, Debug)]
pub(super) struct PendingBlob {
    column: u16,
    reference: BlobRef,
    /// Where its local prefix stands in `BlobQueue::local`.
    local: (usize, usize),
}

/// Off-page columns of a row that is being handed out; read when the record is not looked at any
/// more.
#[derive(Debug, Default)]
pub struct BlobQueue {
    pending: Vec<PendingBlob>,
    local: Vec<u8>,
    value: Vec<u8>,
}

impl BlobQueue {
    /// True if no value of the row continues off the page.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.local.clear();
    }
}

impl Template {
    /// Matches the host's columns and keys with the dictionary's.
    ///
    /// Errors: `Invalid` naming what differs.
    pub fn new(image: Arc<TableImage>, table: &Table) -> Result<Template> {
        let differs = |what: &str| Err(Error::invalid(format!("table {}: {what}", table.name)));
        let stored = image.columns.iter().filter(|c| !c.is_virtual).count();
        if stored != table.n_stored() {
            return differs("the host's number of stored columns is another");
        }
        let mut columns = Vec::with_capacity(image.columns.len());
        let mut host_of_ordinal = Vec::with_capacity(stored);
        for (number, column) in image.columns.iter().enumerate() {
            if column.is_virtual {
                columns.push(ColumnCodec {
                    field: None,
                    convert: Convert::Fixed { pad: 0 },
                });
                continue;
            }
            let ordinal = host_of_ordinal.len();
            let stored = &table.columns[ordinal];
            if !stored.name.eq_ignore_ascii_case(&column.name) && column.name.is_ascii() {
                return differs(&format!("column {} has another name", column.name));
            }
            let field = table.clustered().field_of_column(ordinal as u16);
            columns.push(ColumnCodec {
                field: field.map(|f| f as u16),
                convert: Convert::of(column, stored.ty, table.is_compact())?,
            });
            host_of_ordinal.push(number as u16);
        }
        let clustered = table.clustered().fields.iter();
        let clustered = clustered
            .map(|f| source(table, &host_of_ordinal, f.column))
            .collect();
        let fields: Box<[_]> = table
            .indexes
            .iter()
            .map(|index| fields_of(&image, index))
            .collect();
        let fixed = table.indexes.iter().zip(&fields);
        let fixed = fixed
            .map(|(index, fields)| FixedPlan::new(&image, &columns, fields, index))
            .collect();
        let key_index = key_indexes(&image, table)?;
        Ok(Template {
            image,
            columns: columns.into(),
            clustered,
            key_index,
            fields,
            fixed,
        })
    }

    /// The host's side.
    pub fn image(&self) -> &Arc<TableImage> {
        &self.image
    }

    /// Position in `Table::indexes` of a host's key.
    pub fn index_of_key(&self, key: usize) -> usize {
        usize::from(self.key_index[key])
    }

    /// The host's number of the key at a position of `Table::indexes`; `None` for the hidden one.
    pub fn key_of_index(&self, index: usize) -> Option<usize> {
        self.key_index.iter().position(|&i| usize::from(i) == index)
    }

    /// True if every column of `columns` stands whole in the index.
    pub fn covers(&self, index: usize, columns: &[u16]) -> bool {
        let fields = &self.fields[index];
        columns.iter().all(|&c| {
            fields[usize::from(c)].is_some() || self.image.columns[usize::from(c)].is_virtual
        })
    }

    /// Fills a clustered entry from a row; the system columns are zeros. BLOBs come whole.
    pub(super) fn clustered_entry(
        &self,
        table: &Table,
        row: RowIn<'_>,
        collations: &dyn CollationSource,
        out: &mut Tuple,
    ) {
        out.clear();
        for (field, source) in table.clustered().fields.iter().zip(&self.clustered) {
            match *source {
                Source::System(len) => out.push_bytes(&[0; 8][..usize::from(len)]),
                Source::Dropped if field.nullable => out.push_null(),
                Source::Dropped => out.push_with(|data| {
                    data.resize(data.len() + usize::from(field.fixed_len), 0);
                }),
                Source::Column(number) => {
                    let number = usize::from(number);
                    let column = &self.image.columns[number];
                    self.columns[number].convert.store(column, row, out);
                    if field.prefix_len != 0 {
                        entry::cut_last(out, field, collations);
                    }
                }
            }
        }
    }

    /// Appends the row's value of a host column to an entry.
    pub(super) fn store_column(&self, number: usize, row: RowIn<'_>, out: &mut Tuple) {
        let column = &self.image.columns[number];
        self.columns[number].convert.store(column, row, out);
    }

    #[cfg(test)]
    pub(super) fn fixed_plan(&self, index: usize) -> Option<&FixedPlan> {
        self.fixed[index].as_ref()
    }

    /// Writes the columns of a key, the first fields of an entry of index `index`, into the host's row:
    /// prefixes, too.
    pub fn load_key(
        &self,
        table: &Table,
        index: usize,
        key: &Tuple,
        row: &mut [u8],
        heap: &mut BlobHeap,
    ) {
        let fields = &table.indexes[index].fields[..key.len()];
        for (codec, column) in self.columns.iter().zip(&self.image.columns) {
            let Some(whole) = codec.field else { continue };
            let of = table.clustered().fields[usize::from(whole)].column;
            let Some(at) = fields.iter().position(|field| field.column == of) else {
                continue;
            };
            column.set_null(row, key.field(at).is_null());
            match key.field(at).bytes() {
                None => column.bytes_mut(row).fill(0),
                Some(bytes) if codec.convert == Convert::Blob => {
                    column.set_blob(row, heap.store(&[bytes]));
                }
                Some(bytes) => codec.convert.load(bytes, column, row),
            }
        }
    }

    /// Writes columns of a record of index `index` into the host's row, as `load`.
    #[inline]
    pub(super) fn load_record(
        &self,
        index: usize,
        columns: &[u16],
        record: &RecordView<'_>,
        row: &mut [u8],
        heap: &mut BlobHeap,
        queue: &mut BlobQueue,
    ) -> Result<()> {
        if let (Some(plan), Some(data)) = (&self.fixed[index], record.fixed_data()) {
            queue.clear();
            plan.load(columns, data, row);
            return Ok(());
        }
        self.load(index, columns, |i| record.field(i), row, heap, queue)
    }

    /// Writes columns of a record into the host's row. `get` gives the record's fields in the order
    /// of index `index`. Off-page values are queued: `load_blobs` finishes the row.
    pub(super) fn load<'r>(
        &self,
        index: usize,
        columns: &[u16],
        get: impl Fn(usize) -> FieldRef<'r>,
        row: &mut [u8],
        heap: &mut BlobHeap,
        queue: &mut BlobQueue,
    ) -> Result<()> {
        queue.clear();
        let fields = &self.fields[index];
        for &number in columns {
            let column = &self.image.columns[usize::from(number)];
            let Some(field) = fields[usize::from(number)] else {
                continue;
            };
            let codec = &self.columns[usize::from(number)];
            match get(usize::from(field)) {
                FieldRef::Null => {
                    column.set_null(row, true);
                    column.bytes_mut(row).fill(0);
                }
                FieldRef::Bytes(bytes) if codec.convert == Convert::Blob => {
                    column.set_null(row, false);
                    column.set_blob(row, heap.store(&[bytes]));
                }
                FieldRef::Bytes(bytes) => {
                    column.set_null(row, false);
                    codec.convert.load(bytes, column, row);
                }
                FieldRef::External(local) => {
                    column.set_null(row, false);
                    let start = queue.local.len();
                    let prefix = local.len() - BLOB_REF_BYTES.min(local.len());
                    queue.local.extend_from_slice(&local[..prefix]);
                    queue.pending.push(PendingBlob {
                        column: number,
                        reference: BlobRef::of_local_part(local)?,
                        local: (start, start + prefix),
                    });
                }
            }
        }
        Ok(())
    }

    /// Reads the queued off-page values of the row that was `load`ed last. The mtr may hold the
    /// record's page.
    pub(super) fn load_blobs(
        &self,
        mtr: &mut Mtr<'_>,
        clustered: &Tree,
        row: &mut [u8],
        heap: &mut BlobHeap,
        queue: &mut BlobQueue,
    ) -> Result<()> {
        if queue.pending.is_empty() {
            return Ok(());
        }
        let BlobQueue {
            pending,
            local,
            value,
        } = queue;
        for blob in pending.drain(..) {
            value.clear();
            value.extend_from_slice(&local[blob.local.0..blob.local.1]);
            clustered.read_blob(mtr, blob.reference, value)?;
            let number = usize::from(blob.column);
            let column = &self.image.columns[number];
            if self.columns[number].convert == Convert::Blob {
                column.set_blob(row, heap.store(&[value]));
            } else {
                self.columns[number].convert.load(value, column, row);
            }
        }
        Ok(())
    }
}

fn source(table: &Table, host_of_ordinal: &[u16], column: FieldColumn) -> Source {
    match column {
        FieldColumn::Stored(ordinal) => match host_of_ordinal.get(usize::from(ordinal)) {
            Some(&number) => Source::Column(number),
            None => Source::System(table.columns[usize::from(ordinal)].ty.len as u8),
        },
        FieldColumn::Virtual(_) | FieldColumn::Dropped => Source::Dropped,
    }
}

fn fields_of(image: &TableImage, index: &Index) -> Box<[Option<u16>]> {
    let mut ordinal = 0;
    image
        .columns
        .iter()
        .map(|column| {
            if column.is_virtual {
                return None;
            }
            ordinal += 1;
            index.field_of_column(ordinal - 1).map(|field| field as u16)
        })
        .collect()
}

fn key_indexes(image: &TableImage, table: &Table) -> Result<Box<[u16]>> {
    let find = |key: &crate::host::image::ImageKey| {
        let position = table
            .indexes
            .iter()
            .position(|index| index.name.eq_ignore_ascii_case(&key.name));
        let Some(position) = position else {
            return Err(Error::invalid(format!(
                "table {}: there is no index {}",
                table.name, key.name
            )));
        };
        let index = &table.indexes[position];
        let parts = key.parts.len() == usize::from(index.n_user_fields);
        if !parts && !matches!(key.kind, KeyKind::FullText | KeyKind::Spatial) {
            return Err(Error::invalid(format!(
                "table {}: index {} has other parts",
                table.name, key.name
            )));
        }
        Ok(position as u16)
    };
    image.keys.iter().map(find).collect()
}

//! What a row's undo record says: written before the row changes, read by rollback, purge and
//! readers of older versions.

use crate::format::blob::REF_BYTES;
use crate::format::record::DELETED;
use crate::format::undo_build::UndoBuilder;
use crate::format::undo_record::{
    NO_ORDER_CHANGE, NO_SIZE_CHANGE, OldVersion, UndoExtern, UndoField, UndoKind, UndoUpdate,
    UndoValue,
};
use crate::schema::{FieldRef, Index, Table, Tuple};
use crate::sync::Arc;
use crate::words::{Error, Result, RollPtr, TableId, TrxId, UndoNo, be};

/// Columns that order some index, by clustered field. Kept from row to row.
#[derive(Default)]
pub(super) struct Ordering {
    table: Option<Arc<Table>>,
    fields: Vec<u16>,
}

impl Ordering {
    /// The list for `table`, in the table's column order.
    pub(super) fn of(&mut self, table: &Arc<Table>) -> &[u16] {
        if !self.table.as_ref().is_some_and(|t| Arc::ptr_eq(t, table)) {
            self.fields.clear();
            let clustered = table.clustered();
            for ordinal in 0..table.columns.len() as u16 {
                if table.is_ordering_column(ordinal) {
                    let field = clustered.field_of_column(ordinal);
                    self.fields.extend(field.map(|f| f as u16));
                }
            }
            self.table = Some(table.clone());
        }
        &self.fields
    }
}

/// Bytes that an insert's record takes at most.
pub(super) fn insert_bytes(key: &Tuple) -> usize {
    24 + key.fields().map(|f| f.len() + 5).sum::<usize>()
}

/// Writes the record of an insert.
pub(super) fn build_insert(out: &mut Vec<u8>, no: UndoNo, table: TableId, key: &Tuple) {
    let mut builder = UndoBuilder::begin(out, UndoKind::Insert, 0, no, table);
    for field in key.fields() {
        builder.value(&value(field));
    }
}

/// A change of a row that is there, as its undo record tells it.
pub(super) struct Change<'c> {
    pub(super) kind: UndoKind,
    pub(super) table: &'c Table,
    /// The record before the change, off-page references included.
    pub(super) old: &'c Tuple,
    /// Changed fields; the system columns are not among them.
    pub(super) fields: &'c [u16],
    /// Columns that order some index (`Ordering::of`).
    pub(super) ordering: &'c [u16],
    /// No changed field changes its length.
    pub(super) same_size: bool,
    /// Longer prefixes of off-page columns that order some index: field, bytes.
    pub(super) prefixes: &'c super::entry::Fetched,
}

impl Change<'_> {
    /// Bytes that the record takes at most.
    pub(super) fn bytes_max(&self) -> usize {
        let n_uniq = self.table.clustered().n_uniq as usize;
        let fields = self
            .fields
            .iter()
            .chain(self.ordering)
            .map(|&f| usize::from(f));
        let all = (0..n_uniq).chain(fields);
        let long = self.prefixes.bytes();
        64 + long + all.map(|f| self.old.field(f).len() + 10).sum::<usize>()
    }

    fn changes_order(&self) -> bool {
        self.fields.iter().any(|f| self.ordering.contains(f))
    }

    /// True if off-page columns are among the changed ones: purge has something to free.
    fn changes_external(&self) -> bool {
        let mut fields = self.fields.iter();
        fields.any(|&f| matches!(self.old.field(usize::from(f)), FieldRef::External(_)))
    }

    /// Writes the record.
    pub(super) fn build(&self, out: &mut Vec<u8>, no: UndoNo) {
        let mut info = 0;
        if self.kind != UndoKind::DeleteMark {
            info |= if self.changes_order() {
                0
            } else {
                NO_ORDER_CHANGE
            };
            info |= if self.same_size { NO_SIZE_CHANGE } else { 0 };
        }
        let mut builder = UndoBuilder::begin(out, self.kind, info, no, self.table.id);
        if self.changes_external() {
            builder.set_extern_updated();
        }
        let index = self.table.clustered();
        builder.old_version(&OldVersion {
            info_bits: self.old.info_bits & DELETED,
            trx_id: trx_id_of(index, self.old),
            roll_ptr: roll_ptr_of(index, self.old),
        });
        for i in 0..index.n_uniq as usize {
            builder.value(&value(self.old.field(i)));
        }
        let mut local = Vec::new();
        if self.kind != UndoKind::DeleteMark {
            builder.count(self.fields.len() as u32);
            for &field in self.fields {
                self.field(&mut builder, field, &mut local);
            }
        }
        if info & NO_ORDER_CHANGE == 0 {
            builder.begin_list();
            for &field in self.ordering.iter().filter(|f| !self.fields.contains(f)) {
                self.field(&mut builder, field, &mut local);
            }
            builder.end_list();
        }
    }

    fn field(&self, builder: &mut UndoBuilder<'_>, field: u16, local: &mut Vec<u8>) {
        let old = self.old.field(usize::from(field));
        let mut stored = value(old);
        if let (FieldRef::External(bytes), true) = (old, self.ordering.contains(&field)) {
            if let Some(prefix) = self.prefixes.get(usize::from(field)) {
                let cut = prefix.len().min(PREFIX_BYTES_MAX);
                if cut > bytes.len() - REF_BYTES {
                    local.clear();
                    local.extend_from_slice(&prefix[..cut]);
                    local.extend_from_slice(&bytes[bytes.len() - REF_BYTES..]);
                    stored = UndoValue::Extern(UndoExtern {
                        original_bytes: Some(bytes.len() as u32),
                        spatial: 0,
                        bytes: local,
                    });
                }
            }
        }
        builder.field(&UndoField::Stored {
            field: u32::from(field),
            value: stored,
        });
    }
}

/// The longest part of a column that an index holds.
const PREFIX_BYTES_MAX: usize = crate::words::limits::KEY_PART_BYTES_MAX;

fn value(field: FieldRef<'_>) -> UndoValue<'_> {
    match field {
        FieldRef::Null => UndoValue::Null,
        FieldRef::Bytes(bytes) => UndoValue::Bytes(bytes),
        FieldRef::External(bytes) => UndoValue::Extern(UndoExtern {
            original_bytes: None,
            spatial: 0,
            bytes,
        }),
    }
}

/// DB_TRX_ID of a clustered entry; 0 if it has none.
pub(super) fn trx_id_of(index: &Index, row: &Tuple) -> TrxId {
    let field = index.trx_id_field.map(|i| row.field(usize::from(i)));
    match field.and_then(FieldRef::bytes) {
        Some(bytes) if bytes.len() == 6 => TrxId(be::u48_at(bytes, 0)),
        _ => TrxId(0),
    }
}

/// DB_ROLL_PTR of a clustered entry; "no older version" if it has none.
pub(super) fn roll_ptr_of(index: &Index, row: &Tuple) -> RollPtr {
    let field = index.roll_ptr_field().map(|i| row.field(usize::from(i)));
    match field.and_then(FieldRef::bytes) {
        Some(bytes) if bytes.len() == 7 => RollPtr(be::u56_at(bytes, 0)),
        _ => RollPtr::NO_UNDO,
    }
}

/// Writes DB_TRX_ID and DB_ROLL_PTR into a clustered entry.
pub(super) fn stamp(index: &Index, row: &mut Tuple, trx_id: TrxId, roll_ptr: RollPtr) {
    let Some(field) = index.trx_id_field else {
        return;
    };
    let mut bytes = [0; 7];
    be::put_u48(&mut bytes, 0, trx_id.0);
    row.set(usize::from(field), FieldRef::Bytes(&bytes[..6]));
    be::put_u56(&mut bytes, 0, roll_ptr.0);
    row.set(usize::from(field) + 1, FieldRef::Bytes(&bytes));
}

/// Turns a row into the version before: the changed fields, system columns and delete mark that an
/// undo record keeps. Fields that the record has from another table's shape are damage.
pub(super) fn apply(index: &Index, update: &UndoUpdate<'_>, row: &mut Tuple) -> Result<()> {
    for change in update.changes.clone() {
        let UndoField::Stored { field, value } = change? else {
            continue;
        };
        let at = field as usize;
        if at >= row.len() {
            return Err(Error::corrupt_bytes(format!(
                "an undo record changes field {field} of {}",
                row.len()
            )));
        }
        set_value(row, at, &value);
    }
    row.info_bits = row.info_bits & !DELETED | update.old.info_bits & DELETED;
    stamp(index, row, update.old.trx_id, update.old.roll_ptr);
    Ok(())
}

/// Sets a field to what an undo record keeps of it; an off-page one as the record had it.
pub(super) fn set_value(row: &mut Tuple, at: usize, value: &UndoValue<'_>) {
    match value {
        UndoValue::Null => row.set(at, FieldRef::Null),
        UndoValue::Bytes(bytes) => row.set(at, FieldRef::Bytes(bytes)),
        UndoValue::Extern(part) => {
            let local = part.local();
            match part.original_bytes {
                Some(original) if (original as usize) < local.len() => {
                    let (prefix, reference) = local.split_at(local.len() - REF_BYTES);
                    let kept = (original as usize).saturating_sub(REF_BYTES);
                    let mut bytes = prefix[..kept].to_vec();
                    bytes.extend_from_slice(reference);
                    row.set(at, FieldRef::External(&bytes));
                }
                _ => row.set(at, FieldRef::External(local)),
            }
        }
    }
}

/// Copies the clustered key of an undo record into a search entry.
pub(super) fn key_of(
    values: crate::format::undo_record::UndoValues<'_>,
    out: &mut Tuple,
) -> Result<()> {
    out.clear();
    for value in values {
        match value? {
            UndoValue::Null => out.push_null(),
            UndoValue::Bytes(bytes) => out.push_bytes(bytes),
            UndoValue::Extern(_) => {
                return Err(Error::corrupt_bytes("an undo record with an off-page key"));
            }
        }
    }
    Ok(())
}

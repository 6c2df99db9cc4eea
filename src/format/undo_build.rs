//! Undo records: building (format-tablespace.md 17.4); the reverse of undo_record.rs.
//!
//! ```text
//! Insert:      begin, value * n_uniq [, begin_list, field.., end_list: indexed virtual columns]
//! Update..:    begin, old_version, value * n_uniq, count, field.. [, begin_list, field.., end_list]
//! DeleteMark:  begin, old_version, value * n_uniq, begin_list, field.., end_list
//! RenameTable: begin, name
//! ```

use crate::words::{IndexId, TableId, UndoNo, be};

use super::undo_record::{
    EXTERN_BASE, NULL_LEN, OldVersion, UndoField, UndoKind, UndoValue, VIRTUAL_BASE, VIRTUAL_MARKER,
};

/// Appends one record's body to a buffer that the caller reuses.
#[derive(Debug)]
pub struct UndoBuilder<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    list_at: Option<usize>,
    /// The marker before the first virtual column of the list was written.
    marked: bool,
}

impl<'o> UndoBuilder<'o> {
    /// Starts a body at the end of `out`.
    pub fn begin(
        out: &'o mut Vec<u8>,
        kind: UndoKind,
        update_info: u8,
        undo_no: UndoNo,
        table_id: TableId,
    ) -> UndoBuilder<'o> {
        debug_assert!(update_info < 8);
        let start = out.len();
        out.push(kind as u8 | update_info << 4);
        put_much(out, undo_no.0);
        put_much(out, table_id.0);
        UndoBuilder {
            out,
            start,
            list_at: None,
            marked: false,
        }
    }

    /// Notes that off-page columns are updated, which purge must know.
    pub fn set_extern_updated(&mut self) {
        self.out[self.start] |= 0x80;
    }

    /// Appends the system columns of the version before.
    pub fn old_version(&mut self, old: &OldVersion) {
        self.out.push(old.info_bits);
        put_u64(self.out, old.trx_id.0);
        put_u64(self.out, old.roll_ptr.0);
    }

    /// Appends a key value.
    pub fn value(&mut self, value: &UndoValue<'_>) {
        match *value {
            UndoValue::Null => put_int(self.out, NULL_LEN),
            UndoValue::Bytes(bytes) => {
                put_int(self.out, bytes.len() as u32);
                self.out.extend_from_slice(bytes);
            }
            UndoValue::Extern(ref part) => {
                assert!(
                    part.bytes.len() < 4096,
                    "the local part of an off-page column"
                );
                let coded = part.bytes.len() as u32 | u32::from(part.spatial) << 12;
                match part.original_bytes {
                    None => put_int(self.out, EXTERN_BASE + coded),
                    Some(original) => {
                        put_int(self.out, EXTERN_BASE);
                        put_int(self.out, original);
                        put_int(self.out, coded);
                    }
                }
                self.out.extend_from_slice(part.bytes);
            }
        }
    }

    /// Appends the number of changed fields; exactly as many `field`s follow.
    pub fn count(&mut self, count: u32) {
        put_int(self.out, count);
        self.marked = false;
    }

    /// Appends a field of the list of changes, or of the list begun with `begin_list`.
    pub fn field(&mut self, field: &UndoField<'_>) {
        match *field {
            UndoField::Stored { field, ref value } => {
                debug_assert!(field < VIRTUAL_BASE);
                put_int(self.out, field);
                self.value(value);
            }
            UndoField::Virtual {
                column,
                indexes,
                ref value,
                ref new_value,
            } => {
                put_int(self.out, VIRTUAL_BASE + column);
                if !self.marked {
                    self.out.push(VIRTUAL_MARKER);
                    self.marked = true;
                }
                let len = indexes.coded.len() as u16 + 2;
                self.out.extend_from_slice(&len.to_be_bytes());
                self.out.extend_from_slice(indexes.coded);
                self.value(value);
                if let Some(value) = new_value {
                    self.value(value);
                }
            }
        }
    }

    /// Starts the list of ordering columns, or of virtual columns of an insert.
    pub fn begin_list(&mut self) {
        self.list_at = Some(self.out.len());
        self.out.extend_from_slice(&[0, 0]);
        self.marked = false;
    }

    /// Ends that list: notes its length.
    pub fn end_list(&mut self) {
        let at = self.list_at.take().expect("begin_list was called");
        let len = self.out.len() - at;
        // A list beyond 64 KiB is in a record that fits in no page; the caller finds that out.
        be::put_u16(self.out, at, len.min(u16::MAX as usize) as u16);
    }

    /// Appends the old name of a renamed table.
    pub fn name(&mut self, name: &str) {
        self.out.extend_from_slice(name.as_bytes());
    }

    /// Bytes of the body so far.
    pub fn body_bytes(&self) -> usize {
        self.out.len() - self.start
    }
}

/// Appends what `IndexList::parse` reads.
pub fn put_index_list(out: &mut Vec<u8>, indexes: &[(IndexId, u32)]) {
    put_int(out, indexes.len() as u32);
    for &(index, position) in indexes {
        put_much(out, index.0);
        put_int(out, position);
    }
}

/// *c*.
fn put_int(out: &mut Vec<u8>, n: u32) {
    match n {
        0..0x80 => out.push(n as u8),
        0x80..0x4000 => out.extend_from_slice(&(n as u16 | 0x8000).to_be_bytes()),
        0x4000..0x20_0000 => out.extend_from_slice(&(n | 0xC0_0000).to_be_bytes()[1..]),
        0x20_0000..0x1000_0000 => out.extend_from_slice(&(n | 0xE000_0000).to_be_bytes()),
        _ => {
            out.push(0xF0);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

/// *m*.
fn put_much(out: &mut Vec<u8>, n: u64) {
    if n >> 32 != 0 {
        out.push(0xFF);
        put_int(out, (n >> 32) as u32);
    }
    put_int(out, n as u32);
}

/// *u64*.
fn put_u64(out: &mut Vec<u8>, n: u64) {
    put_int(out, (n >> 32) as u32);
    out.extend_from_slice(&(n as u32).to_be_bytes());
}

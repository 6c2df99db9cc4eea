//! One column's value between the host's row and a record (format-tablespace.md section 9).

use crate::format::column::{ColumnType, Mtype};
use crate::host::image::{ColumnKind, ImageColumn, RowIn};
use crate::schema::{FieldRef, Tuple};
use crate::words::{Error, Result};

/// How a column's bytes are turned; decided once, when a handle is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Convert {
    /// Little-endian in the row, big-endian in the record; `flip`: signed, the top bit inverted.
    Int { len: u8, flip: bool },
    /// The same bytes on both sides. `pad` fills what an older, shorter value lacks.
    Fixed { pad: u8 },
    /// CHAR of a variable-width character set outside REDUNDANT: trailing spaces are taken off down
    /// to `min` bytes.
    Char { min: u16 },
    /// Length bytes and data.
    VarChar,
    /// Length and pointer.
    Blob,
}

impl Convert {
    /// Chooses by the host's column and the dictionary's type.
    ///
    /// Errors: `Invalid` if the two do not go together.
    pub(super) fn of(column: &ImageColumn, ty: ColumnType, compact: bool) -> Result<Convert> {
        let differs = || {
            Error::invalid(format!(
                "column {}: type {:?} of the host does not fit {ty:?} of the table",
                column.name, column.kind
            ))
        };
        let same_length = column.length == u32::from(ty.len);
        Ok(match ty.mtype {
            Mtype::Int if column.kind.is_blob() || column.kind == ColumnKind::VarChar => {
                return Err(differs());
            }
            Mtype::Int if same_length && (1..=8).contains(&ty.len) => Convert::Int {
                len: ty.len as u8,
                flip: !ty.prtype.is_unsigned(),
            },
            Mtype::Varchar | Mtype::VarMysql | Mtype::Binary
                if column.kind == ColumnKind::VarChar && column.octets <= u32::from(ty.len) =>
            {
                Convert::VarChar
            }
            Mtype::Blob | Mtype::Geometry if column.kind.is_blob() => Convert::Blob,
            Mtype::Mysql if same_length => {
                let width = ty.char_width();
                if compact && width.min == 1 && width.max > 1 {
                    Convert::Char {
                        min: ty.len / u16::from(width.max),
                    }
                } else {
                    Convert::Fixed { pad: b' ' }
                }
            }
            Mtype::Char if same_length => Convert::Fixed { pad: b' ' },
            Mtype::FixBinary | Mtype::Float | Mtype::Double if same_length => {
                Convert::Fixed { pad: 0 }
            }
            _ => return Err(differs()),
        })
    }

    /// Appends the row's value of `column` to an entry. BLOBs come whole.
    pub(super) fn store(self, column: &ImageColumn, row: RowIn<'_>, out: &mut Tuple) {
        if column.is_null(row.image) {
            out.push_null();
            return;
        }
        match self {
            Convert::VarChar => out.push_bytes(column.varchar(row.image)),
            Convert::Blob => out.push_bytes(row.blobs[column.blob_no as usize]),
            _ => self.store_fixed(column.bytes(row.image), out),
        }
    }

    /// Appends a value that stands whole in the row, or in a key image; not VARCHAR and BLOB.
    pub(super) fn store_fixed(self, bytes: &[u8], out: &mut Tuple) {
        match self {
            Convert::Int { len, flip } => {
                let mut value = [0; 8];
                let len = usize::from(len);
                for (to, from) in value[..len].iter_mut().zip(bytes[..len].iter().rev()) {
                    *to = *from;
                }
                if flip {
                    value[0] ^= 0x80;
                }
                out.push_bytes(&value[..len]);
            }
            Convert::Char { min } => out.push_bytes(without_spaces(bytes, usize::from(min))),
            _ => out.push_bytes(bytes),
        }
    }

    /// Writes a record's value into the row; not BLOBs. `bytes` come from disk: whatever their
    /// length, nothing is written outside the column.
    pub(super) fn load(self, bytes: &[u8], column: &ImageColumn, row: &mut [u8]) {
        let target = column.bytes_mut(row);
        if self == Convert::VarChar {
            let head = usize::from(column.length_bytes);
            let len = bytes.len().min(target.len() - head);
            target[..head].copy_from_slice(&(len as u64).to_le_bytes()[..head]);
            target[head..head + len].copy_from_slice(&bytes[..len]);
            return;
        }
        self.load_fixed(bytes, target);
    }

    /// Writes a value of fixed place, as `load`.
    pub(super) fn load_fixed(self, bytes: &[u8], target: &mut [u8]) {
        match self {
            Convert::Int { flip, .. } => {
                target.fill(0);
                for (to, from) in target.iter_mut().zip(bytes.iter().rev()) {
                    *to = *from;
                }
                if let (true, Some(top)) = (flip, target.last_mut()) {
                    *top ^= 0x80;
                }
            }
            Convert::Char { .. } => copy_padded(bytes, target, b' '),
            Convert::Fixed { pad } => copy_padded(bytes, target, pad),
            Convert::VarChar | Convert::Blob => copy_padded(bytes, target, 0),
        }
    }
}

fn without_spaces(text: &[u8], min: usize) -> &[u8] {
    let used = text.iter().rposition(|&b| b != b' ').map_or(0, |i| i + 1);
    &text[..used.max(min.min(text.len()))]
}

fn copy_padded(bytes: &[u8], target: &mut [u8], pad: u8) {
    let len = bytes.len().min(target.len());
    target[..len].copy_from_slice(&bytes[..len]);
    target[len..].fill(pad);
}

/// True if a stored field equals what the host's row gives, byte by byte; off-page ones never do.
pub(super) fn is_same(old: FieldRef<'_>, new: FieldRef<'_>) -> bool {
    match (old, new) {
        (FieldRef::Null, FieldRef::Null) => true,
        (FieldRef::Bytes(a), FieldRef::Bytes(b)) => a == b,
        _ => false,
    }
}

//! A table as the host would lay it out, for tables without an SQL definition: columns, keys, and a row
//! image made up here.
//!
//! The dictionary lacks what only the SQL definition has: DECIMAL's scale (described as bytes), the
//! members of ENUM and SET (described as numbers), UUID and INET (bytes), generated columns.

use crate::format::column::{ColumnType, Mtype, Prtype};
use crate::host::image::{ColumnKind, ImageColumn, ImageKey, ImageKeyPart, KeyKind, TableImage};
use crate::schema::build::PRIMARY;
use crate::schema::{Column, FieldColumn, Index, IndexType, Table};
use crate::words::Result;

/// Collation number of bytes.
const BINARY: u16 = 63;
/// Types of columns made before collations were in PRTYPE.
const LATIN1_SWEDISH_CI: u16 = 8;

/// Columns and keys of a table. Virtual columns, and keys on them, are left out.
///
/// # Errors
/// `Invalid` if the dictionary's types cannot be laid out: damage that no check found.
pub fn describe(table: &Table) -> Result<TableImage> {
    let nullable = table.stored_columns().iter().filter(|c| c.is_nullable());
    let null_bytes = nullable.count().div_ceil(8) as u32;
    let mut offset = null_bytes;
    let mut null_bit = 0;
    let mut columns = Vec::with_capacity(table.n_stored());
    for column in table.stored_columns() {
        let mut image = plain(column);
        image.offset = offset;
        offset += image.length;
        if column.is_nullable() {
            image.null_offset = null_bit / 8;
            image.null_mask = 1 << (null_bit % 8);
            null_bit += 1;
        }
        columns.push(image);
    }
    let keys = table
        .indexes
        .iter()
        .filter_map(|index| key(index, &columns))
        .collect();
    TableImage::new(columns, keys, offset.max(1), null_bytes)
}

/// Kind and bytes in the row of a column's type.
fn kind(ty: ColumnType) -> (ColumnKind, u32) {
    use ColumnKind::*;
    let len = u32::from(ty.len);
    let number = match ty.len {
        1 => Tiny,
        2 => Short,
        3 => Int24,
        4 => Long,
        _ => LongLong,
    };
    let kind = match (ty.mtype, ty.prtype.sql_type()) {
        (Mtype::Varchar | Mtype::VarMysql | Mtype::Binary, _) => VarChar,
        (Mtype::Blob, _) => Blob,
        (Mtype::Geometry, _) => Geometry,
        (Mtype::Float, _) => Float,
        (Mtype::Double, _) => Double,
        (Mtype::Int, 7) if len == 4 => Timestamp,
        (Mtype::Int, 10) if len == 3 => NewDate,
        (Mtype::Int, 11) if len == 3 => Time,
        (Mtype::Int, 12) if len == 8 => DateTime,
        (Mtype::Int, 13) if len == 1 => Year,
        (Mtype::Int, _) if matches!(len, 1..=4 | 8) => number,
        (Mtype::FixBinary, 7) if (4..=7).contains(&len) => Timestamp2,
        (Mtype::FixBinary, 11) if (3..=6).contains(&len) => Time2,
        (Mtype::FixBinary, 12) if (5..=8).contains(&len) => DateTime2,
        (Mtype::FixBinary, 16) if (1..=8).contains(&len) => Bit,
        _ => String,
    };
    (kind, len)
}

/// A column without its place in the row.
fn plain(column: &Column) -> ImageColumn {
    let ty = column.ty;
    let (kind, len) = kind(ty);
    use ColumnKind::*;
    let length_bytes = match kind {
        VarChar if ty.prtype.0 & Prtype::LONG_TRUE_VARCHAR != 0 || len > 255 => 2,
        VarChar => 1,
        Blob => (len.saturating_sub(8)).clamp(1, 4),
        Geometry => 4,
        _ => 0,
    };
    let fraction = match kind {
        Timestamp2 => len - 4,
        Time2 => len - 3,
        DateTime2 => len - 5,
        _ => 0,
    };
    let is_text = match ty.mtype {
        Mtype::Varchar | Mtype::Char | Mtype::VarMysql | Mtype::Mysql => true,
        Mtype::Blob => !ty.prtype.is_binary_type(),
        _ => false,
    };
    let collation = match (is_text, ty.prtype.collation()) {
        (false, _) => BINARY,
        (true, 0) => LATIN1_SWEDISH_CI,
        (true, collation) => collation,
    };
    // Bytes that a server flags as unsigned: UUID, INET4, INET6.
    let is_flagged = kind == String && ty.mtype == Mtype::FixBinary;
    let is_number = matches!(
        kind,
        Tiny | Short | Int24 | Long | LongLong | Float | Double
    );
    let length = match kind {
        VarChar => length_bytes + len,
        Blob | Geometry => length_bytes + 8,
        _ => len,
    };
    ImageColumn {
        octets: if kind.is_blob() { 0 } else { len },
        collation,
        length_bytes: length_bytes as u8,
        decimals: (fraction * 2) as u8,
        precision: if kind == Bit { len * 8 } else { 0 },
        unsigned: ty.prtype.is_unsigned() && (is_number || is_flagged),
        not_null: !column.is_nullable(),
        ..ImageColumn::plain(&column.name, kind, 0, length)
    }
}

/// `None` for the generated clustered index, and for keys on virtual columns.
fn key(index: &Index, columns: &[ImageColumn]) -> Option<ImageKey> {
    let parts: Option<Vec<ImageKeyPart>> = index.fields[..index.n_user_fields as usize]
        .iter()
        .map(|field| {
            let FieldColumn::Stored(column) = field.column else {
                return None;
            };
            let whole = match &columns[column as usize] {
                c if c.kind.is_blob() => u32::from(field.ty.len),
                c => c.octets,
            };
            Some(ImageKeyPart {
                column: u32::from(column),
                length: match field.prefix_len {
                    0 => whole,
                    prefix => u32::from(prefix),
                },
                descending: field.desc,
            })
        })
        .collect();
    let parts = parts.filter(|parts| !parts.is_empty())?;
    let kind = match () {
        _ if index.ty.has(IndexType::FULLTEXT) => KeyKind::FullText,
        _ if index.ty.has(IndexType::SPATIAL) => KeyKind::Spatial,
        _ if &*index.name == PRIMARY => KeyKind::Primary,
        _ if index.is_unique() => KeyKind::Unique,
        () => KeyKind::Plain,
    };
    Some(ImageKey {
        name: index.name.clone(),
        kind,
        parts: parts.into(),
    })
}

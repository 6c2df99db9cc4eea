//! From the host's columns and keys to a definition (format-tablespace.md sections 8 and 10), with all
//! checks that CREATE TABLE makes.

use crate::format::column::{ColumnType, Mtype, Prtype};
use crate::host::image::{ColumnKind, ImageColumn, ImageKey, ImageKeyPart, KeyKind, TableImage};
use crate::schema::build::{GENERATED_CLUSTERED, IndexDef, KeyPart, MERGE_THRESHOLD, TableDef};
use crate::schema::column::SYSTEM_COLUMNS;
use crate::schema::table::mix_len;
use crate::schema::{Column, FieldColumn, Index, IndexType, RowFormat, Table, TableFlags};
use crate::words::limits::{
    BLOB_PREFIX_BYTES_ANTELOPE, BLOB_REF_BYTES, COLUMNS_MAX, INDEX_COLUMNS_MAX,
    SECONDARY_INDEXES_MAX,
};
use crate::words::{Error, IndexId, PageNo, Result, SpaceId, TableId};

/// Collation number of bytes.
const BINARY: u16 = 63;
/// latin1_swedish_ci, which has types of its own.
const LATIN1_SWEDISH_CI: u16 = 8;
/// Off-page columns of DYNAMIC tables leave so much in the record, counted as InnoDB counts.
const LOCAL_BYTES_DYNAMIC: usize = 40;

/// A table to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewTable<'a> {
    /// "database/table".
    pub name: &'a str,
    /// Columns and keys.
    pub image: &'a TableImage,
    /// ROW_FORMAT; COMPRESSED is refused.
    pub format: RowFormat,
}

/// What the page size allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// innodb_page_size.
    pub page_size: usize,
    /// Bytes of a whole key.
    pub key_bytes_max: u32,
    /// Tables whose rows may become too large are refused (innodb_strict_mode).
    pub strict: bool,
}

/// The definition of a new table: ids and places are not set.
///
/// # Errors
/// `Invalid`: names that are taken, reserved or wrong, too many columns or keys; `KeyTooLong`;
/// `RowTooLarge`; `Unsupported`: COMPRESSED, FULLTEXT, SPATIAL, virtual columns, versioning.
pub fn define(new: &NewTable<'_>, limits: Limits) -> Result<TableDef> {
    super::check_name(new.name)?;
    if new.format == RowFormat::Compressed {
        return Err(Error::unsupported("ROW_FORMAT=COMPRESSED"));
    }
    let image = new.image;
    if image.columns.is_empty() || image.columns.len() > COLUMNS_MAX {
        return Err(Error::invalid(format!(
            "a table has 1 to {COLUMNS_MAX} columns, not {}",
            image.columns.len()
        )));
    }
    check_columns(image)?;
    check_keys(image)?;
    let columns: Result<Vec<Column>> = (0..)
        .zip(&image.columns)
        .map(|(i, column)| Ok(Column::new(&column.name, column_type(column)?, i)))
        .collect();
    let indexes: Result<Vec<IndexDef>> = image
        .keys
        .iter()
        .map(|key| index(image, key, new.format, limits))
        .collect();
    let mut def = TableDef {
        id: TableId(0),
        name: new.name.into(),
        space: SpaceId(0),
        flags: TableFlags::new(new.format, None),
        compact: new.format.is_compact(),
        mix_len: mix_len::FTS_AUX_HEX | mix_len::FILE_PER_TABLE,
        path: None,
        columns: columns?,
        virtual_columns: Vec::new(),
        indexes: indexes?,
    };
    def.add_clustered();
    let table = def.clone().build()?;
    for index in &table.indexes {
        check_record_size(&table, index, limits)?;
    }
    Ok(def)
}

fn same(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

fn check_columns(image: &TableImage) -> Result<()> {
    for (i, column) in image.columns.iter().enumerate() {
        let name = &*column.name;
        if name.is_empty() || name.len() > 64 * 3 || name.contains('\0') {
            return Err(Error::invalid(format!("column name {name:?}")));
        }
        if SYSTEM_COLUMNS.iter().any(|(system, _)| same(system, name)) || same(name, "FTS_DOC_ID") {
            return Err(Error::invalid(format!("column name {name} is reserved")));
        }
        if image.columns[..i]
            .iter()
            .any(|other| same(&other.name, name))
        {
            return Err(Error::invalid(format!("duplicate column name {name}")));
        }
    }
    Ok(())
}

/// Number and names of the keys.
pub(super) fn check_keys(image: &TableImage) -> Result<()> {
    if image.keys.len() > SECONDARY_INDEXES_MAX {
        return Err(Error::invalid(format!(
            "a table has at most {SECONDARY_INDEXES_MAX} keys, not {}",
            image.keys.len()
        )));
    }
    for (i, key) in image.keys.iter().enumerate() {
        let name = &*key.name;
        if name.is_empty() || name.len() > 64 * 3 || name.contains('\0') {
            return Err(Error::invalid(format!("key name {name:?}")));
        }
        if same(name, GENERATED_CLUSTERED) {
            return Err(Error::invalid(format!("key name {name} is reserved")));
        }
        if image.keys[..i].iter().any(|other| same(&other.name, name)) {
            return Err(Error::invalid(format!("duplicate key name {name}")));
        }
    }
    Ok(())
}

/// mtype, prtype and len of a column (section 8).
///
/// # Errors
/// `Unsupported`: virtual columns, versioning.
pub fn column_type(column: &ImageColumn) -> Result<ColumnType> {
    if column.is_virtual {
        return Err(Error::unsupported(format!(
            "virtual column {}",
            column.name
        )));
    }
    if column.is_row_start || column.is_row_end {
        return Err(Error::unsupported("system-versioned tables"));
    }
    let (mtype, prtype, len) = plain_type(column);
    let not_null = if column.not_null { Prtype::NOT_NULL } else { 0 };
    let unsigned = if column.unsigned { Prtype::UNSIGNED } else { 0 };
    ColumnType::parse(mtype as u32, prtype | not_null | unsigned, len)
}

/// The row of section 8's table, NOT NULL and UNSIGNED left out where they are the user's.
fn plain_type(column: &ImageColumn) -> (Mtype, u32, u32) {
    use ColumnKind::*;
    let collation = u32::from(column.collation) << 16;
    let long_varchar = match column.length_bytes {
        2 => Prtype::LONG_TRUE_VARCHAR,
        _ => 0,
    };
    let fraction = u32::from(column.decimals).div_ceil(2);
    let octets = column.octets;
    match column.kind {
        Tiny => (Mtype::Int, 0x401, 1),
        Short => (Mtype::Int, 0x402, 2),
        Int24 => (Mtype::Int, 0x409, 3),
        Long => (Mtype::Int, 0x403, 4),
        LongLong => (Mtype::Int, 0x408, 8),
        Float => (Mtype::Float, 0x404, 4),
        Double => (Mtype::Double, 0x405, 8),
        NewDecimal => (Mtype::FixBinary, 0x08_04F6, column.length),
        Bit => (
            Mtype::FixBinary,
            0x3F_0610,
            column.precision.div_ceil(8).max(1),
        ),
        Year => (Mtype::Int, 0x60D, 1),
        Date | NewDate => (Mtype::Int, 0x40A, 3),
        Time => (Mtype::Int, 0x40B, 3),
        DateTime => (Mtype::Int, 0x40C, 8),
        Timestamp => (Mtype::Int, 0x607, 4),
        Time2 => (Mtype::FixBinary, 0x08_040B, 3 + fraction),
        DateTime2 => (Mtype::FixBinary, 0x08_040C, 5 + fraction),
        Timestamp2 => (Mtype::FixBinary, 0x08_0607, 4 + fraction),
        Enum | Set => (Mtype::Int, 0x2FE, column.length),
        VarChar => match column.collation {
            BINARY => (Mtype::Binary, 0x3F_040F | long_varchar, octets),
            LATIN1_SWEDISH_CI => (Mtype::Varchar, 0x08_000F | long_varchar, octets),
            _ => (Mtype::VarMysql, collation | 0x0F | long_varchar, octets),
        },
        // UUID and INET are bytes that a server flags as unsigned.
        String if column.collation == BINARY && column.unsigned => {
            (Mtype::FixBinary, 0x08_02FE, octets)
        }
        String => match column.collation {
            BINARY => (Mtype::FixBinary, 0x3F_04FE, octets),
            LATIN1_SWEDISH_CI => (Mtype::Char, 0x08_00FE, octets),
            _ => (Mtype::Mysql, collation | 0xFE, octets),
        },
        TinyBlob | MediumBlob | LongBlob | Blob => {
            let binary = match column.collation {
                BINARY => Prtype::BINARY_TYPE,
                _ => 0,
            };
            let len = 8 + u32::from(column.length_bytes);
            (Mtype::Blob, collation | binary | 0xFC, len)
        }
        Geometry => (Mtype::Geometry, 0x4FF, 12),
    }
}

/// The definition of one index, without id and root.
///
/// # Errors
/// As `define`.
pub fn index(
    image: &TableImage,
    key: &ImageKey,
    format: RowFormat,
    limits: Limits,
) -> Result<IndexDef> {
    let ty = match key.kind {
        KeyKind::Primary => IndexType::CLUSTERED | IndexType::UNIQUE,
        KeyKind::Unique => IndexType::UNIQUE,
        KeyKind::Plain => 0,
        KeyKind::FullText => return Err(Error::unsupported("FULLTEXT indexes")),
        KeyKind::Spatial => return Err(Error::unsupported("SPATIAL indexes")),
    };
    if key.parts.len() > INDEX_COLUMNS_MAX {
        return Err(Error::invalid(format!(
            "key {} has {} parts, more than {INDEX_COLUMNS_MAX}",
            key.name,
            key.parts.len()
        )));
    }
    let part_max = (format.key_part_bytes_max() as u32).min(limits.key_bytes_max);
    let mut total = 0;
    let mut parts = Vec::with_capacity(key.parts.len());
    for (i, part) in key.parts.iter().enumerate() {
        let column = &image.columns[part.column as usize];
        if key.parts[..i]
            .iter()
            .any(|other| other.column == part.column)
        {
            return Err(Error::invalid(format!(
                "key {} has column {} twice",
                key.name, column.name
            )));
        }
        if part.length > part_max {
            return Err(Error::KeyTooLong { size_max: part_max });
        }
        if key.kind == KeyKind::Primary && !column.not_null {
            return Err(Error::invalid(format!(
                "column {} of the primary key may be NULL",
                column.name
            )));
        }
        total += part.length;
        parts.push(KeyPart {
            column: FieldColumn::Stored(stored_number(image, part.column)?),
            prefix_len: prefix_bytes(column, part),
            desc: part.descending,
        });
    }
    if total > limits.key_bytes_max {
        let size_max = limits.key_bytes_max;
        return Err(Error::KeyTooLong { size_max });
    }
    Ok(IndexDef {
        id: IndexId(0),
        name: key.name.clone(),
        ty: IndexType(ty),
        root: PageNo::NONE,
        parts,
        merge_threshold: MERGE_THRESHOLD,
    })
}

/// The number of a column among those that are stored.
fn stored_number(image: &TableImage, column: u32) -> Result<u16> {
    let column = column as usize;
    if image.columns[column].is_virtual {
        let name = &image.columns[column].name;
        return Err(Error::unsupported(format!(
            "a key on virtual column {name}"
        )));
    }
    let before = image.columns[..column].iter();
    Ok(before.filter(|column| !column.is_virtual).count() as u16)
}

/// Bytes of a prefix, 0 for the whole column. A key on a BLOB is always one on a prefix.
fn prefix_bytes(column: &ImageColumn, part: &ImageKeyPart) -> u16 {
    let is_text = matches!(column.kind, ColumnKind::VarChar | ColumnKind::String);
    let cut = column.kind.is_blob() || is_text && part.length < column.octets;
    if cut { part.length as u16 } else { 0 }
}

/// Refuses a table whose rows, or node pointers, may not fit in half a page however much is stored
/// apart (section 12.3).
pub(super) fn check_record_size(table: &Table, index: &Index, limits: Limits) -> Result<()> {
    let compact = index.compact;
    let overhead = if compact { 12 + 120 } else { 12 + 125 };
    let half = (limits.page_size - overhead) / 2;
    let format_max = if compact { 16383 } else { 16382 };
    let size_max = half.min(format_max);
    let n_key = match index.is_clustered() {
        true => index.n_uniq as usize,
        false => index.fields.len(),
    };
    let header = match compact {
        true => 5 + index.null_bytes_of(index.fields.len()),
        false => 6 + 2 * index.fields.len(),
    };
    let size_of = |i: usize| {
        let field = &index.fields[i];
        if field.fixed_len != 0 {
            return field.fixed_len as usize;
        }
        let length_bytes = match (compact, field.big) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        };
        let whole = match field.prefix_len {
            0 if table_type_is_blob(field.ty) => usize::MAX,
            0 => field.ty.len as usize,
            prefix => prefix as usize,
        };
        let apart = index.is_clustered() && i >= n_key && field.may_be_external();
        let local = match (apart, table.format) {
            (false, _) => whole,
            (true, RowFormat::Redundant | RowFormat::Compact) => {
                whole.min(BLOB_PREFIX_BYTES_ANTELOPE + BLOB_REF_BYTES)
            }
            (true, _) => whole.min(LOCAL_BYTES_DYNAMIC),
        };
        local.saturating_add(length_bytes)
    };
    let leaf = (0..index.fields.len()).fold(header, |sum, i| sum.saturating_add(size_of(i)));
    let pointer = (0..n_key).fold(header + 4, |sum, i| sum.saturating_add(size_of(i)));
    // A node pointer that does not fit stops the tree from growing: never tolerated.
    if pointer >= size_max || limits.strict && leaf >= size_max {
        return Err(Error::RowTooLarge {
            size: u32::try_from(leaf.max(pointer)).unwrap_or(u32::MAX),
            size_max: size_max as u32,
        });
    }
    Ok(())
}

fn table_type_is_blob(ty: ColumnType) -> bool {
    matches!(ty.mtype, Mtype::Blob | Mtype::Geometry)
}

//! Templates: the host's `xt_table_def` as a checked `TableImage`, and back.

use std::ffi::CString;

use super::arguments::{array, read_struct, text};
use super::c;
use super::edge::{Fault, Outcome};
use crate::engine::TableDescription;
use crate::host::image::{ColumnKind, ImageColumn, ImageKey, ImageKeyPart, KeyKind, TableImage};

/// Columns and keys that are looked at; more is an error before anything is read.
const COLUMNS_MAX: u32 = 4096;
const KEYS_MAX: u32 = 128;
const PARTS_MAX: u32 = 32;

/// # Safety
/// `def` is NULL or valid, with all that it points to.
pub(super) unsafe fn read(def: *const c::xt_table_def) -> Outcome<TableImage> {
    // SAFETY: the caller's promise.
    let def = unsafe { read_struct(def)? };
    if def.columns_count > COLUMNS_MAX || def.keys_count > KEYS_MAX || def.row_length > 1 << 26 {
        return Err(Fault::invalid(
            "the template has too many columns or keys, or too long rows",
        ));
    }
    // SAFETY: the caller's promise.
    let (columns, keys) = unsafe {
        (
            array(def.columns, def.columns_count as usize, "columns")?,
            array(def.keys, def.keys_count as usize, "keys")?,
        )
    };
    // SAFETY: the same.
    let columns = columns.iter().map(|column| unsafe { read_column(column) });
    // SAFETY: the same.
    let keys = keys.iter().map(|key| unsafe { read_key(key) });
    Ok(TableImage::new(
        columns.collect::<Outcome<Vec<_>>>()?,
        keys.collect::<Outcome<Vec<_>>>()?,
        def.row_length,
        def.null_bytes,
    )?)
}

/// # Safety
/// The column's name is NULL or a string.
unsafe fn read_column(column: &c::xt_column) -> Outcome<ImageColumn> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(column.name, "a column's name")? };
    let bad = |why: String| Fault::invalid(format!("column {name}: {why}"));
    let has = |flag| column.flags & flag != 0;
    Ok(ImageColumn {
        name: name.into(),
        kind: ColumnKind::from_number(column.type_)
            .ok_or_else(|| bad(format!("{} is not a type", column.type_)))?,
        offset: column.offset,
        length: column.length,
        octets: column.octets,
        collation: column
            .collation
            .try_into()
            .map_err(|_| bad(format!("{} is not a collation", column.collation)))?,
        null_offset: column.null_offset,
        null_mask: column.null_mask,
        length_bytes: column.length_bytes,
        decimals: column.decimals,
        precision: column.precision,
        unsigned: has(c::XT_COLUMN_UNSIGNED),
        not_null: has(c::XT_COLUMN_NOT_NULL),
        auto_increment: has(c::XT_COLUMN_AUTO_INCREMENT),
        is_virtual: has(c::XT_COLUMN_VIRTUAL),
        is_generated_stored: has(c::XT_COLUMN_GENERATED_STORED),
        is_row_start: has(c::XT_COLUMN_ROW_START),
        is_row_end: has(c::XT_COLUMN_ROW_END),
        blob_no: 0,
    })
}

/// # Safety
/// Name and parts of the key are NULL or valid.
unsafe fn read_key(key: &c::xt_key) -> Outcome<ImageKey> {
    // SAFETY: the caller's promise.
    let name = unsafe { text(key.name, "a key's name")? };
    if key.parts_count > PARTS_MAX {
        return Err(Fault::invalid(format!(
            "key {name} has {} parts",
            key.parts_count
        )));
    }
    let kind = match key.flags {
        flags if flags & c::XT_KEY_PRIMARY != 0 => KeyKind::Primary,
        flags if flags & c::XT_KEY_FULLTEXT != 0 => KeyKind::FullText,
        flags if flags & c::XT_KEY_SPATIAL != 0 => KeyKind::Spatial,
        flags if flags & c::XT_KEY_UNIQUE != 0 => KeyKind::Unique,
        _ => KeyKind::Plain,
    };
    // SAFETY: the caller's promise.
    let parts = unsafe { array(key.parts, key.parts_count as usize, "a key's parts")? };
    let part = |part: &c::xt_key_part| ImageKeyPart {
        column: part.column,
        length: part.length,
        descending: part.flags & c::XT_PART_DESC != 0,
    };
    Ok(ImageKey {
        name: name.into(),
        kind,
        parts: parts.iter().map(part).collect(),
    })
}

/// A description with all that it points to. The public part comes first, so that its address is the
/// whole's.
#[repr(C)]
pub(super) struct Described {
    public: c::xt_description,
    columns: Box<[c::xt_column]>,
    keys: Box<[c::xt_key]>,
    parts: Box<[Box<[c::xt_key_part]>]>,
    names: Box<[CString]>,
}

// SAFETY: the pointers inside lead to the struct's own boxes, which nobody changes.
unsafe impl Send for Described {}

impl Described {
    /// Lays a description out for the host.
    pub(super) fn new(table: &TableDescription) -> Box<Described> {
        let image = &table.image;
        let columns = image.columns.iter().map(|column| &column.name);
        let names: Box<[CString]> = columns
            .chain(image.keys.iter().map(|key| &key.name))
            .map(|name| CString::new(name.replace('\0', "?")).unwrap_or_default())
            .collect();
        let parts: Box<[Box<[c::xt_key_part]>]> = image.keys.iter().map(key_parts).collect();
        let columns: Box<[c::xt_column]> = image
            .columns
            .iter()
            .zip(&names)
            .map(|(column, name)| write_column(column, name))
            .collect();
        let key_names = &names[image.columns.len()..];
        let keys: Box<[c::xt_key]> = image
            .keys
            .iter()
            .zip(&parts)
            .zip(key_names)
            .map(|((key, parts), name)| c::xt_key {
                name: name.as_ptr(),
                parts: parts.as_ptr(),
                parts_count: parts.len() as u32,
                flags: key_flags(key.kind),
            })
            .collect();
        let def = c::xt_table_def {
            struct_size: size_of::<c::xt_table_def>() as u32,
            reserved: 0,
            columns: columns.as_ptr(),
            keys: keys.as_ptr(),
            columns_count: columns.len() as u32,
            keys_count: keys.len() as u32,
            row_length: image.row_length,
            null_bytes: image.null_bytes,
        };
        let public = c::xt_description {
            struct_size: size_of::<c::xt_description>() as u32,
            row_format: table.row_format as u32,
            def,
            table_id: table.table_id.0,
        };
        Box::new(Described {
            public,
            columns,
            keys,
            parts,
            names,
        })
    }
}

fn key_parts(key: &ImageKey) -> Box<[c::xt_key_part]> {
    let part = |part: &ImageKeyPart| c::xt_key_part {
        column: part.column,
        length: part.length,
        flags: if part.descending { c::XT_PART_DESC } else { 0 },
    };
    key.parts.iter().map(part).collect()
}

fn key_flags(kind: KeyKind) -> u32 {
    match kind {
        KeyKind::Primary => c::XT_KEY_PRIMARY | c::XT_KEY_UNIQUE,
        KeyKind::Unique => c::XT_KEY_UNIQUE,
        KeyKind::Plain => 0,
        KeyKind::FullText => c::XT_KEY_FULLTEXT,
        KeyKind::Spatial => c::XT_KEY_SPATIAL,
    }
}

fn write_column(column: &ImageColumn, name: &CString) -> c::xt_column {
    let bits = [
        (column.unsigned, c::XT_COLUMN_UNSIGNED),
        (column.not_null, c::XT_COLUMN_NOT_NULL),
        (column.auto_increment, c::XT_COLUMN_AUTO_INCREMENT),
        (column.is_virtual, c::XT_COLUMN_VIRTUAL),
        (column.is_generated_stored, c::XT_COLUMN_GENERATED_STORED),
        (column.is_row_start, c::XT_COLUMN_ROW_START),
        (column.is_row_end, c::XT_COLUMN_ROW_END),
    ];
    c::xt_column {
        name: name.as_ptr(),
        offset: column.offset,
        length: column.length,
        octets: column.octets,
        collation: column.collation as u32,
        flags: bits
            .iter()
            .filter(|(on, _)| *on)
            .fold(0, |flags, (_, bit)| flags | bit),
        null_offset: column.null_offset,
        null_mask: column.null_mask,
        type_: column.kind as u8,
        length_bytes: column.length_bytes,
        decimals: column.decimals,
        precision: column.precision,
    }
}

//! Tables.

use crate::host::collation::CollationSource;
use crate::words::{Error, PageNo, Result, SpaceId, TableId};

use super::column::{Column, VirtualColumn};
use super::index::{FieldColumn, Index, IndexType};

/// ROW_FORMAT of a table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RowFormat {
    /// The oldest: field ends in the header, 768-byte prefixes of off-page columns.
    Redundant,
    /// Compact headers, 768-byte prefixes of off-page columns.
    Compact,
    /// Compact headers, off-page columns leave only a reference.
    Dynamic,
    /// As DYNAMIC, pages compressed with zlib.
    Compressed,
}

impl RowFormat {
    /// True for all formats with compact record headers.
    pub fn is_compact(self) -> bool {
        self != RowFormat::Redundant
    }

    /// Largest number of bytes of an index part.
    pub fn key_part_bytes_max(self) -> usize {
        match self {
            RowFormat::Redundant | RowFormat::Compact => {
                crate::words::limits::KEY_PART_BYTES_MAX_ANTELOPE
            }
            RowFormat::Dynamic | RowFormat::Compressed => crate::words::limits::KEY_PART_BYTES_MAX,
        }
    }
}

/// SYS_TABLES.TYPE (format-tablespace.md section 7).
///
/// | bits  | meaning                                        |
/// |-------|------------------------------------------------|
/// | 0     | always 1 on disk                               |
/// | 1-4   | zip ssize: compressed page = 512 << n, 0 = none |
/// | 5     | ATOMIC_BLOBS: DYNAMIC or COMPRESSED            |
/// | 6     | DATA DIRECTORY                                 |
/// | 7     | PAGE_COMPRESSED                                |
/// | 8-11  | its level                                      |
/// | 12-13 | 3 = no rollback (sequences)                    |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TableFlags(pub u32);

impl TableFlags {
    /// The only bit that every table has.
    pub const BASE: u32 = 1;
    /// DYNAMIC or COMPRESSED.
    pub const ATOMIC_BLOBS: u32 = 1 << 5;
    /// The file stands elsewhere.
    pub const DATA_DIR: u32 = 1 << 6;
    /// Page compression.
    pub const PAGE_COMPRESSED: u32 = 1 << 7;
    /// Changes are not rolled back.
    pub const NO_ROLLBACK: u32 = 3 << 12;
    const KNOWN: u32 = (1 << 14) - 1;

    /// The flags of a new table in `format`; `zip_bytes` is the compressed page size.
    pub fn new(format: RowFormat, zip_bytes: Option<u32>) -> TableFlags {
        let mut bits = TableFlags::BASE;
        if matches!(format, RowFormat::Dynamic | RowFormat::Compressed) {
            bits |= TableFlags::ATOMIC_BLOBS;
        }
        if let (RowFormat::Compressed, Some(bytes)) = (format, zip_bytes) {
            bits |= (bytes / 512).ilog2() << 1;
        }
        TableFlags(bits)
    }

    /// Bytes of a compressed page, 0 if the table is not ROW_FORMAT=COMPRESSED.
    pub fn zip_bytes(self) -> usize {
        match self.0 >> 1 & 15 {
            0 => 0,
            n => 512 << n,
        }
    }

    /// The row format. `compact` is bit 31 of SYS_TABLES.N_COLS.
    pub fn row_format(self, compact: bool) -> Result<RowFormat> {
        let atomic = self.0 & TableFlags::ATOMIC_BLOBS != 0;
        match (compact, atomic, self.zip_bytes()) {
            _ if self.0 & TableFlags::BASE == 0 || self.0 & !TableFlags::KNOWN != 0 => {}
            (false, false, 0) => return Ok(RowFormat::Redundant),
            (true, false, 0) => return Ok(RowFormat::Compact),
            (true, true, 0) => return Ok(RowFormat::Dynamic),
            (true, true, 1024..=16384) => return Ok(RowFormat::Compressed),
            _ => {}
        }
        Err(Error::corrupt_bytes(format!(
            "table flags {:#x} are not valid",
            self.0
        )))
    }
}

/// SYS_TABLES.MIX_LEN bits.
pub mod mix_len {
    /// A temporary table.
    pub const TEMPORARY: u32 = 1;
    /// A hidden FTS_DOC_ID column is there.
    pub const FTS_HAS_DOC_ID: u32 = 2;
    /// FULLTEXT indexes are there.
    pub const FTS: u32 = 4;
    /// The table has a file of its own.
    pub const FILE_PER_TABLE: u32 = 16;
    /// The tablespace was discarded.
    pub const DISCARDED: u32 = 32;
    /// Auxiliary full-text tables have hexadecimal names; set on all new tables.
    pub const FTS_AUX_HEX: u32 = 64;
}

/// A table: definition and place. Immutable once shared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// SYS_TABLES.ID.
    pub id: TableId,
    /// "db/table" in filename encoding.
    pub name: Box<str>,
    /// The tablespace.
    pub space: SpaceId,
    /// SYS_TABLES.TYPE.
    pub flags: TableFlags,
    /// Row format, from `flags` and the compact bit.
    pub format: RowFormat,
    /// SYS_TABLES.MIX_LEN.
    pub mix_len: u32,
    /// File path of a table with DATA DIRECTORY, else `None`: the default place.
    pub path: Option<Box<str>>,
    /// Stored columns by ordinal, then DB_ROW_ID, DB_TRX_ID, DB_ROLL_PTR.
    pub columns: Box<[Column]>,
    /// Virtual columns by their own ordinal.
    pub virtual_columns: Box<[VirtualColumn]>,
    /// The clustered index first.
    pub indexes: Box<[Index]>,
}

impl Table {
    /// Number of stored columns, the system columns left out.
    pub fn n_stored(&self) -> usize {
        self.columns.len() - super::column::SYSTEM_COLUMNS.len()
    }

    /// The stored columns that the user made.
    pub fn stored_columns(&self) -> &[Column] {
        &self.columns[..self.n_stored()]
    }

    /// True for every row format but REDUNDANT.
    pub fn is_compact(&self) -> bool {
        self.format.is_compact()
    }

    /// SYS_TABLES.N_COLS: stored columns, virtual columns, the compact bit.
    pub fn n_cols_field(&self) -> u32 {
        self.n_stored() as u32
            | (self.virtual_columns.len() as u32) << 16
            | u32::from(self.is_compact()) << 31
    }

    /// The index that holds the rows.
    pub fn clustered(&self) -> &Index {
        &self.indexes[0]
    }

    /// The other indexes.
    pub fn secondary(&self) -> &[Index] {
        &self.indexes[1..]
    }

    /// True if the clustered key is the hidden DB_ROW_ID.
    pub fn has_generated_key(&self) -> bool {
        self.clustered().n_user_fields == 0
    }

    /// Name of the column that a field holds; empty for a dropped one.
    pub fn field_name(&self, column: FieldColumn) -> &str {
        match column {
            FieldColumn::Stored(i) => &self.columns[i as usize].name,
            FieldColumn::Virtual(i) => &self.virtual_columns[i as usize].column.name,
            FieldColumn::Dropped => "",
        }
    }

    /// True if stored column `ordinal` is part of some index's key, as undo records need to know.
    pub fn is_ordering_column(&self, ordinal: u16) -> bool {
        self.indexes.iter().any(|index| {
            let key = if index.is_clustered() {
                index.n_uniq as usize
            } else {
                index.n_user_fields as usize
            };
            index.fields[..key.min(index.fields.len())]
                .iter()
                .any(|f| f.column == FieldColumn::Stored(ordinal))
        })
    }

    /// For each index, the first of its collations that the host does not know: nobody can find a place
    /// in its order.
    pub fn unknown_collations(&self, collations: &dyn CollationSource) -> Box<[Option<u16>]> {
        let unknown = |index: &Index| {
            let has_order = !index.ty.has(IndexType::FULLTEXT | IndexType::SPATIAL);
            let key = if index.is_clustered() {
                index.n_uniq as usize
            } else {
                index.fields.len()
            };
            let mut used = index.fields[..key]
                .iter()
                .filter_map(|field| field.kind.collation());
            used.find(|&id| has_order && !collations.knows(id))
        };
        self.indexes.iter().map(unknown).collect()
    }

    /// True if an index of words belongs to it.
    pub fn has_full_text(&self) -> bool {
        let is_full_text = |index: &Index| index.ty.has(IndexType::FULLTEXT);
        self.secondary().iter().any(is_full_text)
    }

    /// True if the tablespace was discarded or an index has no tree where it should have one.
    pub fn is_discarded(&self) -> bool {
        self.mix_len & mix_len::DISCARDED != 0
            || self
                .indexes
                .iter()
                .any(|i| i.root == PageNo::NONE && !i.ty.has(IndexType::FULLTEXT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_the_row_format() {
        assert_eq!(TableFlags(1).row_format(false), Ok(RowFormat::Redundant));
        assert_eq!(TableFlags(1).row_format(true), Ok(RowFormat::Compact));
        assert_eq!(TableFlags(33).row_format(true), Ok(RowFormat::Dynamic));
        assert_eq!(TableFlags(41).row_format(true), Ok(RowFormat::Compressed));
        assert_eq!(TableFlags(41).zip_bytes(), 8192);
        assert!(TableFlags(32).row_format(true).is_err());
        assert!(TableFlags(33).row_format(false).is_err());
        assert_eq!(
            TableFlags::new(RowFormat::Compressed, Some(8192)),
            TableFlags(41)
        );
        assert_eq!(TableFlags::new(RowFormat::Dynamic, None), TableFlags(33));
    }
}

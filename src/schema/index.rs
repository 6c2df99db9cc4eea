//! Indexes: the physical fields of their records, and what the tree needs to know of them.

use crate::format::column::{ColumnType, MBR_BYTES, Mtype, Prtype};
use crate::words::{IndexId, PageNo};

use super::compare::KeyKind;
use super::instant::InstantState;

/// SYS_INDEXES.TYPE.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct IndexType(pub u32);

impl IndexType {
    /// The rows themselves live in this tree.
    pub const CLUSTERED: u32 = 1;
    /// No two live entries have equal key parts, NULLs apart.
    pub const UNIQUE: u32 = 2;
    /// The change buffer's own tree.
    pub const IBUF: u32 = 8;
    /// Flagged as damaged.
    pub const CORRUPTED: u32 = 16;
    /// FULLTEXT: no tree.
    pub const FULLTEXT: u32 = 32;
    /// An R-tree.
    pub const SPATIAL: u32 = 64;
    /// Some part is a virtual column.
    pub const HAS_VIRTUAL: u32 = 128;

    /// True if any of `bits` is set.
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }
}

/// The column that an index field holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldColumn {
    /// `Table::columns[ordinal]`; the three system columns follow the stored ones.
    Stored(u16),
    /// `Table::virtual_columns[ordinal]`.
    Virtual(u16),
    /// A column dropped by instant ALTER; its bytes are still in the records.
    Dropped,
}

/// One field of an index record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Whose value it holds.
    pub column: FieldColumn,
    /// The column's type.
    pub ty: ColumnType,
    /// Bytes of the prefix that is stored, 0 = the whole value.
    pub prefix_len: u16,
    /// Bytes of every non-NULL value, 0 if they vary.
    pub fixed_len: u16,
    /// Zero bytes that stand for NULL in a REDUNDANT record.
    pub redundant_null_len: u16,
    /// Sorted descending.
    pub desc: bool,
    /// May be NULL.
    pub nullable: bool,
    /// The length takes two bytes in a COMPACT header from 128 on.
    pub big: bool,
    /// How values compare.
    pub kind: KeyKind,
}

impl Field {
    /// A field on a column of type `ty`.
    pub fn new(
        column: FieldColumn,
        ty: ColumnType,
        prefix_len: u16,
        desc: bool,
        compact: bool,
    ) -> Field {
        Field {
            column,
            ty,
            prefix_len,
            fixed_len: ty.field_fixed_len(prefix_len, compact),
            redundant_null_len: ty.redundant_null_len(),
            desc,
            nullable: ty.prtype.is_nullable(),
            big: ty.is_big(),
            kind: KeyKind::of(ty),
        }
    }

    /// The first field of a SPATIAL index: the bounding box of a geometry column.
    pub fn bounding_box(column: FieldColumn, ty: ColumnType) -> Field {
        let ty = ColumnType {
            prtype: Prtype(ty.prtype.0 | Prtype::GIS_MBR),
            ..ty
        };
        Field {
            fixed_len: MBR_BYTES,
            ..Field::new(column, ty, 0, false, true)
        }
    }

    /// True if two fields hold the same whole column.
    pub(crate) fn is_whole(&self, column: FieldColumn) -> bool {
        self.prefix_len == 0 && self.column == column && self.ty.prtype.0 & Prtype::GIS_MBR == 0
    }

    /// True if a value may continue off the page.
    pub fn may_be_external(&self) -> bool {
        self.prefix_len == 0
            && self.fixed_len == 0
            && (self.big || self.column == FieldColumn::Dropped)
            && self.ty.mtype != Mtype::Sys
    }
}

/// An index: definition, place, and the physical layout of its records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Index {
    /// PAGE_INDEX_ID of its pages.
    pub id: IndexId,
    /// Name; GEN_CLUST_INDEX for the generated one.
    pub name: Box<str>,
    /// Type bits.
    pub ty: IndexType,
    /// Root page, `PageNo::NONE` if there is no tree (FULLTEXT, discarded).
    pub root: PageNo,
    /// True for every row format but REDUNDANT.
    pub compact: bool,
    /// Physical fields of a leaf record, in order.
    pub fields: Box<[Field]>,
    /// The key parts that the user named; 0 for GEN_CLUST_INDEX.
    pub n_user_fields: u16,
    /// Fields that make an entry unique, as the .cfg file counts them: the key parts of clustered
    /// (with DB_ROW_ID) and unique indexes, else all fields.
    pub n_uniq: u16,
    /// Number of nullable fields among `fields`.
    pub n_nullable: u16,
    /// Percentage below which a page is merged with a neighbour.
    pub merge_threshold: u8,
    /// Position of DB_TRX_ID, DB_ROLL_PTR follows; clustered indexes only.
    pub trx_id_field: Option<u16>,
    /// Instant ALTER state of a clustered index.
    pub instant: Option<InstantState>,
    /// End of each field relative to the origin where all leaf records are alike: COMPACT, and every
    /// field NOT NULL and of fixed length. Of records without instant fields.
    pub fixed_ends: Option<Box<[u32]>>,
}

/// `Index::fixed_ends` of these fields.
pub(super) fn fixed_ends(fields: &[Field], compact: bool) -> Option<Box<[u32]>> {
    let mut end = 0;
    let ends = fields.iter().map(|field| {
        end += u32::from(field.fixed_len);
        (compact && !field.nullable && field.fixed_len != 0).then_some(end)
    });
    ends.collect()
}

impl Index {
    /// True for the clustered index.
    pub fn is_clustered(&self) -> bool {
        self.ty.has(IndexType::CLUSTERED)
    }

    /// True if live entries are unique in `n_user_fields` parts (NULLs apart).
    pub fn is_unique(&self) -> bool {
        self.ty.has(IndexType::UNIQUE | IndexType::CLUSTERED)
    }

    /// True for an R-tree.
    pub fn is_spatial(&self) -> bool {
        self.ty.has(IndexType::SPATIAL)
    }

    /// True if it has a tree.
    pub fn has_tree(&self) -> bool {
        !self.ty.has(IndexType::FULLTEXT) && self.root != PageNo::NONE
    }

    /// Key fields of a node pointer: n_uniq in the clustered index, all fields in a secondary one,
    /// the bounding box in an R-tree.
    pub fn n_node_key_fields(&self) -> usize {
        if self.is_spatial() {
            1
        } else {
            self.n_tree_unique()
        }
    }

    /// Fields in which no two records of the tree are equal.
    pub fn n_tree_unique(&self) -> usize {
        if self.is_clustered() {
            self.n_uniq as usize
        } else {
            self.fields.len()
        }
    }

    /// Fields that records had when the table was last rebuilt.
    pub fn n_core_fields(&self) -> usize {
        self.instant
            .as_ref()
            .map_or(self.fields.len(), |i| i.n_core_fields as usize)
    }

    /// Bytes of the NULL bitmap of ordinary leaf records and of node pointers.
    pub fn core_null_bytes(&self) -> usize {
        match &self.instant {
            Some(instant) => instant.core_null_bytes as usize,
            None => (self.n_nullable as usize).div_ceil(8),
        }
    }

    /// Bytes of the NULL bitmap that covers the first `n` fields.
    pub fn null_bytes_of(&self, n: usize) -> usize {
        let n = n.min(self.fields.len());
        self.fields[..n]
            .iter()
            .filter(|f| f.nullable)
            .count()
            .div_ceil(8)
    }

    /// Position of the field that holds the whole of stored column `ordinal`.
    pub fn field_of_column(&self, ordinal: u16) -> Option<usize> {
        self.fields
            .iter()
            .position(|f| f.is_whole(FieldColumn::Stored(ordinal)))
    }

    /// Position of DB_ROLL_PTR; clustered indexes only.
    pub fn roll_ptr_field(&self) -> Option<u16> {
        self.trx_id_field.map(|i| i + 1)
    }

    /// Bytes before DB_TRX_ID if all fields before it are fixed and whole, else 0: the .cfg file's
    /// trx_id_offset.
    pub fn trx_id_offset(&self) -> usize {
        let Some(n) = self.trx_id_field else { return 0 };
        let key = &self.fields[..n as usize];
        if key.iter().any(|f| f.fixed_len == 0 || f.prefix_len != 0) {
            return 0;
        }
        key.iter().map(|f| f.fixed_len as usize).sum()
    }
}

//! From the logical definition (columns, key parts) to the physical one (format-tablespace.md
//! section 10).

use crate::words::{Error, IndexId, PageNo, Result, SpaceId, TableId};

use super::column::{Column, SYSTEM_COLUMNS, VirtualColumn};
use super::index::{Field, FieldColumn, Index, IndexType};
use super::table::{RowFormat, Table, TableFlags};

/// Name of the clustered index that a table without a usable key gets.
pub const GENERATED_CLUSTERED: &str = "GEN_CLUST_INDEX";
/// Name of the primary key.
pub const PRIMARY: &str = "PRIMARY";
/// Default merge threshold in percent.
pub const MERGE_THRESHOLD: u8 = 50;

/// One part of a key as the user names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// A stored or virtual column.
    pub column: FieldColumn,
    /// Prefix in bytes, 0 = the whole column.
    pub prefix_len: u16,
    /// Sorted descending.
    pub desc: bool,
}

/// An index as the user, or SYS_INDEXES and SYS_FIELDS, define it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDef {
    /// SYS_INDEXES.ID.
    pub id: IndexId,
    /// Name.
    pub name: Box<str>,
    /// SYS_INDEXES.TYPE.
    pub ty: IndexType,
    /// Root page, `PageNo::NONE` before it is made.
    pub root: PageNo,
    /// Key parts; none for GEN_CLUST_INDEX.
    pub parts: Vec<KeyPart>,
    /// Merge threshold in percent.
    pub merge_threshold: u8,
}

/// A table as the user, or SYS_TABLES and SYS_COLUMNS, define it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDef {
    /// SYS_TABLES.ID.
    pub id: TableId,
    /// "db/table" in filename encoding.
    pub name: Box<str>,
    /// The tablespace.
    pub space: SpaceId,
    /// SYS_TABLES.TYPE.
    pub flags: TableFlags,
    /// The compact bit of SYS_TABLES.N_COLS.
    pub compact: bool,
    /// SYS_TABLES.MIX_LEN.
    pub mix_len: u32,
    /// File path of a table with DATA DIRECTORY.
    pub path: Option<Box<str>>,
    /// Stored columns by ordinal.
    pub columns: Vec<Column>,
    /// Virtual columns.
    pub virtual_columns: Vec<VirtualColumn>,
    /// Indexes in any order; exactly one clustered (see `add_clustered`).
    pub indexes: Vec<IndexDef>,
}

impl TableDef {
    /// Makes one index the clustered one and puts the indexes into the order of creation: the
    /// clustered one, then unique ones, then others.
    ///
    /// PRIMARY; else the first unique index whose parts are NOT NULL whole stored columns; else
    /// GEN_CLUST_INDEX is added. Ids are left for the caller to assign in this order.
    pub fn add_clustered(&mut self) {
        let chosen = self
            .indexes
            .iter()
            .position(|i| &*i.name == PRIMARY)
            .or_else(|| self.indexes.iter().position(|i| self.can_be_clustered(i)));
        let clustered = match chosen {
            Some(i) => {
                let mut index = self.indexes.remove(i);
                index.ty.0 |= IndexType::CLUSTERED | IndexType::UNIQUE;
                index
            }
            None => IndexDef {
                id: IndexId(0),
                name: GENERATED_CLUSTERED.into(),
                ty: IndexType(IndexType::CLUSTERED),
                root: PageNo::NONE,
                parts: Vec::new(),
                merge_threshold: MERGE_THRESHOLD,
            },
        };
        self.indexes.sort_by_key(|i| !i.ty.has(IndexType::UNIQUE));
        self.indexes.insert(0, clustered);
    }

    /// True if a server would take the key for the primary one of a table that has none: unique, of whole
    /// columns that are NOT NULL.
    pub fn can_be_clustered(&self, index: &IndexDef) -> bool {
        index.ty.has(IndexType::UNIQUE)
            && !index.ty.has(IndexType::FULLTEXT | IndexType::SPATIAL)
            && index.parts.iter().all(|part| match part.column {
                FieldColumn::Stored(i) => {
                    part.prefix_len == 0
                        && self
                            .columns
                            .get(i as usize)
                            .is_some_and(|c| !c.is_nullable())
                }
                _ => false,
            })
    }

    /// The physical table. Fails if the definition contradicts itself.
    pub fn build(self) -> Result<Table> {
        let format = self
            .flags
            .row_format(self.compact)
            .map_err(|e| e.in_index(&self.name, ""))?;
        let wrong = |why: String| Error::corrupt_bytes(why).in_index(&self.name, "");
        let n = self.columns.len();
        if let Some(i) = (0..n).find(|&i| self.columns[i].ordinal as usize != i) {
            return Err(wrong(format!("column {i} has another ordinal")));
        }
        let mut columns = self.columns.clone();
        for (i, (name, ty)) in SYSTEM_COLUMNS.iter().enumerate() {
            columns.push(Column::new(name, *ty, (n + i) as u16));
        }
        let mut defs: Vec<&IndexDef> = self.indexes.iter().collect();
        defs.sort_by_key(|i| !i.ty.has(IndexType::CLUSTERED));
        let builder = Builder {
            format,
            columns: &columns,
            virtual_columns: &self.virtual_columns,
            n_stored: n as u16,
        };
        let mut indexes: Vec<Index> = Vec::with_capacity(defs.len());
        for def in defs {
            let clustered = def.ty.has(IndexType::CLUSTERED);
            if clustered != indexes.is_empty() {
                return Err(wrong("there is not exactly one clustered index".into()));
            }
            let index = match indexes.first() {
                None => builder.clustered(def),
                Some(clustered) => builder.secondary(def, clustered),
            };
            indexes.push(index.map_err(|e| e.in_index(&self.name, &def.name))?);
        }
        if indexes.is_empty() {
            return Err(wrong("there is no clustered index".into()));
        }
        Ok(Table {
            id: self.id,
            name: self.name,
            space: self.space,
            flags: self.flags,
            format,
            mix_len: self.mix_len,
            path: self.path,
            columns: columns.into(),
            virtual_columns: self.virtual_columns.into(),
            indexes: indexes.into(),
        })
    }
}

struct Builder<'a> {
    format: RowFormat,
    columns: &'a [Column],
    virtual_columns: &'a [VirtualColumn],
    n_stored: u16,
}

impl Builder<'_> {
    fn field(&self, part: &KeyPart) -> Result<Field> {
        let column = match part.column {
            FieldColumn::Stored(i) => self.columns.get(i as usize),
            FieldColumn::Virtual(i) => self.virtual_columns.get(i as usize).map(|v| &v.column),
            FieldColumn::Dropped => None,
        };
        let Some(column) = column else {
            return Err(Error::corrupt_bytes(
                "an index names a column that is not there",
            ));
        };
        let compact = self.format.is_compact();
        Ok(Field::new(
            part.column,
            column.ty,
            part.prefix_len,
            part.desc,
            compact,
        ))
    }

    fn stored(&self, ordinal: u16) -> Field {
        let ty = self.columns[ordinal as usize].ty;
        Field::new(
            FieldColumn::Stored(ordinal),
            ty,
            0,
            false,
            self.format.is_compact(),
        )
    }

    /// Key parts, DB_ROW_ID if they are not unique, DB_TRX_ID, DB_ROLL_PTR, the remaining columns.
    fn clustered(&self, def: &IndexDef) -> Result<Index> {
        let mut fields = self.key_fields(def)?;
        if fields
            .iter()
            .any(|f| matches!(f.column, FieldColumn::Virtual(_)))
        {
            return Err(Error::corrupt_bytes(
                "a virtual column in the clustered index",
            ));
        }
        if !def.ty.has(IndexType::UNIQUE) {
            fields.push(self.stored(self.n_stored));
        }
        let n_uniq = fields.len();
        fields.push(self.stored(self.n_stored + 1));
        fields.push(self.stored(self.n_stored + 2));
        for ordinal in 0..self.n_stored {
            let whole = FieldColumn::Stored(ordinal);
            if !fields[..n_uniq].iter().any(|f| f.is_whole(whole)) {
                fields.push(self.stored(ordinal));
            }
        }
        Ok(self.index(def, fields, n_uniq, Some(n_uniq as u16)))
    }

    /// Key parts, then what is missing of the clustered key.
    fn secondary(&self, def: &IndexDef, clustered: &Index) -> Result<Index> {
        let mut fields = self.key_fields(def)?;
        let n_user = fields.len();
        if def.ty.has(IndexType::SPATIAL) {
            if let Some(first) = fields.first_mut() {
                *first = Field::bounding_box(first.column, first.ty);
            }
        }
        for key in &clustered.fields[..clustered.n_uniq as usize] {
            if !fields[..n_user].iter().any(|f| f.is_whole(key.column)) {
                fields.push(key.clone());
            }
        }
        let n_uniq = if def.ty.has(IndexType::UNIQUE) {
            n_user
        } else {
            fields.len()
        };
        Ok(self.index(def, fields, n_uniq, None))
    }

    fn key_fields(&self, def: &IndexDef) -> Result<Vec<Field>> {
        def.parts.iter().map(|part| self.field(part)).collect()
    }

    fn index(
        &self,
        def: &IndexDef,
        fields: Vec<Field>,
        n_uniq: usize,
        trx_id_field: Option<u16>,
    ) -> Index {
        Index {
            id: def.id,
            name: def.name.clone(),
            ty: def.ty,
            root: def.root,
            compact: self.format.is_compact(),
            n_user_fields: def.parts.len() as u16,
            n_uniq: n_uniq as u16,
            n_nullable: fields.iter().filter(|f| f.nullable).count() as u16,
            merge_threshold: def.merge_threshold,
            trx_id_field,
            instant: None,
            fixed_ends: super::index::fixed_ends(&fields, self.format.is_compact()),
            fields: fields.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::column::ColumnType;

    fn column(name: &str, ordinal: u16, nullable: bool) -> Column {
        let prtype = if nullable { 0x403 } else { 0x503 };
        Column::new(name, ColumnType::parse(6, prtype, 4).expect("INT"), ordinal)
    }

    fn part(ordinal: u16) -> KeyPart {
        KeyPart {
            column: FieldColumn::Stored(ordinal),
            prefix_len: 0,
            desc: false,
        }
    }

    fn index(name: &str, ty: u32, parts: Vec<KeyPart>) -> IndexDef {
        IndexDef {
            id: IndexId(1),
            name: name.into(),
            ty: IndexType(ty),
            root: PageNo(3),
            parts,
            merge_threshold: MERGE_THRESHOLD,
        }
    }

    fn table(indexes: Vec<IndexDef>) -> TableDef {
        TableDef {
            id: TableId(1),
            name: "d/t".into(),
            space: SpaceId(1),
            flags: TableFlags(33),
            compact: true,
            mix_len: 80,
            path: None,
            columns: vec![
                column("a", 0, false),
                column("b", 1, true),
                column("c", 2, false),
            ],
            virtual_columns: Vec::new(),
            indexes,
        }
    }

    #[test]
    fn the_first_unique_key_without_nulls_becomes_the_clustered_one() {
        let mut def = table(vec![
            index("k", 0, vec![part(1)]),
            index("u_null", 2, vec![part(1)]),
            index("u", 2, vec![part(2)]),
        ]);
        def.add_clustered();
        let t = def.build().expect("a valid table");
        let names: Vec<&str> = t.indexes.iter().map(|i| &*i.name).collect();
        assert_eq!(names, ["u", "u_null", "k"]);
        let fields: Vec<&str> = t
            .clustered()
            .fields
            .iter()
            .map(|f| t.field_name(f.column))
            .collect();
        assert_eq!(fields, ["c", "DB_TRX_ID", "DB_ROLL_PTR", "a", "b"]);
        let k: Vec<&str> = t.indexes[2]
            .fields
            .iter()
            .map(|f| t.field_name(f.column))
            .collect();
        assert_eq!(k, ["b", "c"]);
        assert_eq!((t.indexes[1].n_uniq, t.indexes[2].n_uniq), (1, 2));
    }

    #[test]
    fn a_table_without_a_key_is_clustered_on_the_row_id() {
        let mut def = table(vec![index("k", 0, vec![part(1)])]);
        def.add_clustered();
        let t = def.build().expect("a valid table");
        assert!(t.has_generated_key());
        assert_eq!(t.clustered().n_uniq, 1);
        assert_eq!(t.clustered().trx_id_offset(), 6);
        assert_eq!(t.field_name(t.indexes[1].fields[1].column), "DB_ROW_ID");
    }

    #[test]
    fn a_prefix_key_column_appears_twice() {
        let prefix = KeyPart {
            prefix_len: 2,
            ..part(0)
        };
        let mut def = table(vec![
            index(PRIMARY, 3, vec![prefix]),
            index("k", 0, vec![part(2)]),
        ]);
        def.add_clustered();
        let t = def.build().expect("a valid table");
        let names: Vec<&str> = t
            .clustered()
            .fields
            .iter()
            .map(|f| t.field_name(f.column))
            .collect();
        assert_eq!(names, ["a", "DB_TRX_ID", "DB_ROLL_PTR", "a", "b", "c"]);
        assert_eq!(t.clustered().fields[0].fixed_len, 2);
        assert_eq!(t.clustered().trx_id_offset(), 0);
        assert_eq!(t.indexes[1].fields[1].prefix_len, 2);
    }

    #[test]
    fn contradictions_are_errors() {
        assert!(table(vec![]).build().is_err());
        assert!(table(vec![index("k", 0, vec![part(0)])]).build().is_err());
        assert!(
            table(vec![index(PRIMARY, 3, vec![part(9)])])
                .build()
                .is_err()
        );
        let two = vec![
            index(PRIMARY, 3, vec![part(0)]),
            index("x", 3, vec![part(0)]),
        ];
        assert!(table(two).build().is_err());
    }
}

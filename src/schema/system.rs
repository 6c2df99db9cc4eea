//! The dictionary tables (format-tablespace.md section 7). All stand in the system tablespace in
//! ROW_FORMAT=REDUNDANT; their integers are plain big-endian.
//!
//! The first four are hard-wired: no row describes them. The other three are ordinary tables with
//! rows in the first four; their definitions here serve a new data directory.

use crate::format::column::{ColumnType, Mtype, Prtype};
use crate::words::{IndexId, PageNo, Result, SpaceId, TableId};

use super::build::{IndexDef, KeyPart, MERGE_THRESHOLD, TableDef};
use super::column::Column;
use super::index::{FieldColumn, IndexType};
use super::table::{Table, TableFlags, mix_len};

/// Root pages of the bootstrap indexes, as the dictionary header page names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BootRoots {
    /// SYS_TABLES, clustered on NAME.
    pub tables: PageNo,
    /// SYS_TABLES, by ID.
    pub table_ids: PageNo,
    /// SYS_COLUMNS.
    pub columns: PageNo,
    /// SYS_INDEXES.
    pub indexes: PageNo,
    /// SYS_FIELDS.
    pub fields: PageNo,
}

/// The four hard-wired tables.
#[derive(Clone, Debug)]
pub struct BootTables {
    /// SYS_TABLES.
    pub tables: Table,
    /// SYS_COLUMNS.
    pub columns: Table,
    /// SYS_INDEXES.
    pub indexes: Table,
    /// SYS_FIELDS.
    pub fields: Table,
}

/// Id of SYS_TABLES, as table and as index.
pub const SYS_TABLES_ID: u64 = 1;
/// Id of SYS_COLUMNS, as table and as index.
pub const SYS_COLUMNS_ID: u64 = 2;
/// Id of SYS_INDEXES, as table and as index.
pub const SYS_INDEXES_ID: u64 = 3;
/// Id of SYS_FIELDS, as table and as index.
pub const SYS_FIELDS_ID: u64 = 4;
/// Index id of SYS_TABLES.ID_IND.
pub const SYS_TABLES_ID_IND_ID: u64 = 5;

/// SYS_TABLES.NAME is declared with this length.
const NAME_LEN: u16 = 192;

const BYTES: (Mtype, u32) = (Mtype::Binary, 0);
const INT: (Mtype, u32) = (Mtype::Int, 0);
const TEXT: (Mtype, u32) = (Mtype::Varchar, 4);

type ColumnSpec = (&'static str, (Mtype, u32), u16);

struct IndexSpec {
    name: &'static str,
    id: u64,
    ty: u32,
    root: PageNo,
    parts: &'static [u16],
}

impl IndexSpec {
    fn clustered(name: &'static str, id: u64, root: PageNo, parts: &'static [u16]) -> IndexSpec {
        IndexSpec {
            name,
            id,
            ty: IndexType::CLUSTERED | IndexType::UNIQUE,
            root,
            parts,
        }
    }
}

fn table(name: &str, id: u64, columns: &[ColumnSpec], indexes: &[IndexSpec]) -> TableDef {
    let columns = columns
        .iter()
        .enumerate()
        .map(|(i, &(name, (mtype, prtype), len))| {
            Column::new(
                name,
                ColumnType {
                    mtype,
                    prtype: Prtype(prtype),
                    len,
                },
                i as u16,
            )
        });
    let indexes = indexes.iter().map(|spec| IndexDef {
        id: IndexId(spec.id),
        name: spec.name.into(),
        ty: IndexType(spec.ty),
        root: spec.root,
        parts: spec
            .parts
            .iter()
            .map(|&i| KeyPart {
                column: FieldColumn::Stored(i),
                prefix_len: 0,
                desc: false,
            })
            .collect(),
        merge_threshold: MERGE_THRESHOLD,
    });
    TableDef {
        id: TableId(id),
        name: name.into(),
        space: SpaceId::SYSTEM,
        flags: TableFlags(TableFlags::BASE),
        compact: false,
        mix_len: mix_len::FTS_AUX_HEX,
        path: None,
        columns: columns.collect(),
        virtual_columns: Vec::new(),
        indexes: indexes.collect(),
    }
}

/// The hard-wired tables with their roots.
pub fn boot_tables(roots: &BootRoots) -> Result<BootTables> {
    Ok(BootTables {
        tables: sys_tables(roots).build()?,
        columns: sys_columns(roots).build()?,
        indexes: sys_indexes(roots).build()?,
        fields: sys_fields(roots).build()?,
    })
}

/// SYS_TABLES.
fn sys_tables(roots: &BootRoots) -> TableDef {
    let id_ind = IndexSpec {
        name: "ID_IND",
        id: SYS_TABLES_ID_IND_ID,
        ty: IndexType::UNIQUE,
        root: roots.table_ids,
        parts: &[1],
    };
    table(
        "SYS_TABLES",
        SYS_TABLES_ID,
        &[
            ("NAME", BYTES, NAME_LEN),
            ("ID", BYTES, 8),
            ("N_COLS", INT, 4),
            ("TYPE", INT, 4),
            ("MIX_ID", BYTES, 0),
            ("MIX_LEN", INT, 4),
            ("CLUSTER_NAME", BYTES, 0),
            ("SPACE", INT, 4),
        ],
        &[
            IndexSpec::clustered("CLUST_IND", SYS_TABLES_ID, roots.tables, &[0]),
            id_ind,
        ],
    )
}

/// SYS_COLUMNS.
fn sys_columns(roots: &BootRoots) -> TableDef {
    table(
        "SYS_COLUMNS",
        SYS_COLUMNS_ID,
        &[
            ("TABLE_ID", BYTES, 8),
            ("POS", INT, 4),
            ("NAME", BYTES, 0),
            ("MTYPE", INT, 4),
            ("PRTYPE", INT, 4),
            ("LEN", INT, 4),
            ("PREC", INT, 4),
        ],
        &[IndexSpec::clustered(
            "CLUST_IND",
            SYS_COLUMNS_ID,
            roots.columns,
            &[0, 1],
        )],
    )
}

/// SYS_INDEXES.
fn sys_indexes(roots: &BootRoots) -> TableDef {
    table(
        "SYS_INDEXES",
        SYS_INDEXES_ID,
        &[
            ("TABLE_ID", BYTES, 8),
            ("ID", BYTES, 8),
            ("NAME", BYTES, 0),
            ("N_FIELDS", INT, 4),
            ("TYPE", INT, 4),
            ("SPACE", INT, 4),
            ("PAGE_NO", INT, 4),
            ("MERGE_THRESHOLD", INT, 4),
        ],
        &[IndexSpec::clustered(
            "CLUST_IND",
            SYS_INDEXES_ID,
            roots.indexes,
            &[0, 1],
        )],
    )
}

/// SYS_FIELDS.
fn sys_fields(roots: &BootRoots) -> TableDef {
    table(
        "SYS_FIELDS",
        SYS_FIELDS_ID,
        &[
            ("INDEX_ID", BYTES, 8),
            ("POS", INT, 4),
            ("COL_NAME", BYTES, 0),
        ],
        &[IndexSpec::clustered(
            "CLUST_IND",
            SYS_FIELDS_ID,
            roots.fields,
            &[0, 1],
        )],
    )
}

/// Definition of SYS_FOREIGN for a new data directory. Ids and roots are the caller's:
/// `index_ids` and `roots` of ID_IND, FOR_IND, REF_IND.
pub fn sys_foreign(id: u64, index_ids: [u64; 3], roots: [PageNo; 3]) -> TableDef {
    let secondary = |name, i: usize, parts| IndexSpec {
        name,
        id: index_ids[i],
        ty: 0,
        root: roots[i],
        parts,
    };
    table(
        "SYS_FOREIGN",
        id,
        &[
            ("ID", TEXT, 0),
            ("FOR_NAME", TEXT, 0),
            ("REF_NAME", TEXT, 0),
            ("N_COLS", INT, 4),
        ],
        &[
            IndexSpec::clustered("ID_IND", index_ids[0], roots[0], &[0]),
            secondary("FOR_IND", 1, &[1]),
            secondary("REF_IND", 2, &[2]),
        ],
    )
}

/// Definition of SYS_FOREIGN_COLS for a new data directory.
pub fn sys_foreign_cols(id: u64, index_id: u64, root: PageNo) -> TableDef {
    table(
        "SYS_FOREIGN_COLS",
        id,
        &[
            ("ID", TEXT, 0),
            ("POS", INT, 4),
            ("FOR_COL_NAME", TEXT, 0),
            ("REF_COL_NAME", TEXT, 0),
        ],
        &[IndexSpec::clustered("ID_IND", index_id, root, &[0, 1])],
    )
}

/// Definition of SYS_VIRTUAL for a new data directory.
pub fn sys_virtual(id: u64, index_id: u64, root: PageNo) -> TableDef {
    table(
        "SYS_VIRTUAL",
        id,
        &[("TABLE_ID", INT, 8), ("POS", INT, 4), ("BASE_POS", INT, 4)],
        &[IndexSpec::clustered("BASE_IDX", index_id, root, &[0, 1, 2])],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bootstrap_tables_have_their_physical_fields() {
        let roots = BootRoots {
            tables: PageNo(8),
            table_ids: PageNo(9),
            columns: PageNo(10),
            indexes: PageNo(11),
            fields: PageNo(12),
        };
        let boot = boot_tables(&roots).expect("fixed definitions");
        assert_eq!(boot.tables.clustered().fields.len(), 10);
        assert_eq!(boot.tables.indexes[1].fields.len(), 2);
        assert_eq!(boot.columns.clustered().fields.len(), 9);
        assert_eq!(boot.indexes.clustered().fields.len(), 10);
        assert_eq!(boot.fields.clustered().fields.len(), 5);
        assert_eq!(boot.columns.clustered().trx_id_field, Some(2));
        let foreign = sys_foreign(11, [11, 12, 13], [PageNo(45), PageNo(46), PageNo(47)]);
        let foreign = foreign.build().expect("fixed definition");
        assert_eq!(
            foreign.field_name(foreign.indexes[2].fields[1].column),
            "ID"
        );
    }
}

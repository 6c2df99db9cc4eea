//! Tables from and to export metadata files (format-tablespace.md section 24).

use crate::format::cfg::{Cfg, CfgColumn, CfgField, CfgIndex};
use crate::format::column::ColumnType;
use crate::words::{Error, Result, SpaceId, TableId};

use super::build::{IndexDef, KeyPart, MERGE_THRESHOLD, TableDef};
use super::column::{Column, SYSTEM_COLUMNS};
use super::index::{Field, FieldColumn, Index, IndexType};
use super::table::{Table, TableFlags, mix_len};

/// Bit of a .cfg field's fixed length: sorted descending.
const DESC: u32 = 1 << 31;

/// The table that a .cfg file describes, without the instant state: that comes from the pages.
///
/// The physical fields are derived from the key parts and compared with those of the file.
pub fn from_cfg(cfg: &Cfg) -> Result<Table> {
    let Some(n) = cfg.columns.len().checked_sub(SYSTEM_COLUMNS.len()) else {
        return Err(Error::corrupt_bytes(
            "a .cfg file without the system columns",
        ));
    };
    let columns: Vec<Column> = cfg.columns[..n]
        .iter()
        .enumerate()
        .map(|(i, c)| {
            Ok(Column::new(
                &c.name,
                ColumnType::parse(c.mtype, c.prtype, c.len)?,
                i as u16,
            ))
        })
        .collect::<Result<_>>()?;
    let indexes = cfg
        .indexes
        .iter()
        .map(|index| index_def(index, &columns))
        .collect::<Result<_>>()?;
    let space = cfg.indexes.first().map_or(SpaceId(0), |i| i.space);
    let table = TableDef {
        id: TableId(0),
        name: cfg.table.as_str().into(),
        space,
        flags: TableFlags(cfg.table_flags | TableFlags::BASE),
        compact: cfg.table_flags & 1 != 0,
        mix_len: mix_len::FILE_PER_TABLE | mix_len::FTS_AUX_HEX,
        path: None,
        columns,
        virtual_columns: Vec::new(),
        indexes,
    }
    .build()?;
    for (index, written) in table.indexes.iter().zip(&cfg.indexes) {
        check_index(&table, index, written).map_err(|e| e.in_index(&table.name, &index.name))?;
    }
    Ok(table)
}

fn index_def(index: &CfgIndex, columns: &[Column]) -> Result<IndexDef> {
    let n = index.n_user as usize;
    let Some(parts) = index.fields.get(..n) else {
        return Err(Error::corrupt_bytes(
            "a .cfg index with fewer fields than key parts",
        ));
    };
    let parts = parts
        .iter()
        .map(|f| {
            let ordinal = columns.iter().position(|c| *c.name == *f.name);
            let prefix_len = u16::try_from(f.prefix_len);
            match (ordinal, prefix_len) {
                (Some(i), Ok(prefix_len)) => Ok(KeyPart {
                    column: FieldColumn::Stored(i as u16),
                    prefix_len,
                    desc: f.fixed_len & DESC != 0,
                }),
                _ => Err(Error::unsupported(format!(
                    "key part {} of index {} of a .cfg file",
                    f.name, index.name
                ))),
            }
        })
        .collect::<Result<_>>()?;
    Ok(IndexDef {
        id: index.id,
        name: index.name.as_str().into(),
        ty: IndexType(index.kind),
        root: index.root,
        parts,
        merge_threshold: MERGE_THRESHOLD,
    })
}

/// Compares the derived fields with those of the file. A clustered index with dropped columns has
/// its final order only in the metadata record.
fn check_index(table: &Table, index: &Index, written: &CfgIndex) -> Result<()> {
    if written.fields.iter().any(|f| f.name.is_empty()) || index.is_spatial() {
        return Ok(());
    }
    let mut derived: Vec<CfgField> = index.fields.iter().map(|f| cfg_field(table, f)).collect();
    let mut fields = written.fields.clone();
    if index.is_clustered() {
        // Instant ALTER may have reordered what follows the system columns.
        let fixed = index.n_uniq as usize + 2;
        derived[fixed..].sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(rest) = fields.get_mut(fixed..) {
            rest.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
    if derived != fields || u32::from(index.n_uniq) != written.n_uniq {
        return Err(Error::corrupt_bytes(
            "the fields of a .cfg index contradict its key parts",
        ));
    }
    Ok(())
}

fn cfg_field(table: &Table, field: &Field) -> CfgField {
    CfgField {
        prefix_len: field.prefix_len.into(),
        fixed_len: u32::from(field.fixed_len) | if field.desc { DESC } else { 0 },
        name: table.field_name(field.column).into(),
    }
}

/// The .cfg file of a table; `autoinc` is the next value to be handed out.
pub fn to_cfg(table: &Table, host: &str, autoinc: u64, page_size: u32) -> Cfg {
    let compact = u32::from(table.is_compact());
    Cfg {
        host: host.into(),
        table: table.name.to_string(),
        autoinc,
        page_size,
        table_flags: table.flags.0 & !TableFlags::BASE | compact,
        columns: table.columns.iter().map(|c| cfg_column(table, c)).collect(),
        indexes: table.indexes.iter().map(|i| cfg_index(table, i)).collect(),
    }
}

fn cfg_column(table: &Table, column: &Column) -> CfgColumn {
    let width = column.ty.char_width();
    let stored = FieldColumn::Stored(column.ordinal);
    let parts = table
        .indexes
        .iter()
        .flat_map(|index| &index.fields[..key_parts(index)])
        .filter(|f| f.column == stored);
    let (mut ord_part, mut max_prefix, mut whole) = (0, 0, false);
    for part in parts {
        ord_part = 1;
        whole |= part.prefix_len == 0;
        max_prefix = max_prefix.max(part.prefix_len);
    }
    CfgColumn {
        prtype: column.ty.prtype.0,
        mtype: column.ty.mtype as u32,
        len: column.ty.len.into(),
        mb_len: u32::from(width.max) * 5 + u32::from(width.min),
        ordinal: column.ordinal.into(),
        ord_part,
        max_prefix: if whole { 0 } else { max_prefix.into() },
        name: column.name.to_string(),
    }
}

/// Fields whose columns order the index: those the user named, or the generated row id.
fn key_parts(index: &Index) -> usize {
    let n = if index.is_clustered() {
        index.n_uniq
    } else {
        index.n_user_fields
    };
    n as usize
}

fn cfg_index(table: &Table, index: &Index) -> CfgIndex {
    CfgIndex {
        id: index.id,
        space: table.space,
        root: index.root,
        kind: index.ty.0,
        trx_id_offset: index.trx_id_offset() as u32,
        n_user: index.n_user_fields.into(),
        n_uniq: index.n_uniq.into(),
        n_nullable: index.n_nullable.into(),
        name: index.name.to_string(),
        fields: index.fields.iter().map(|f| cfg_field(table, f)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cfg_files_of_a_stock_server_come_back() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/samples/");
        let names = [
            "s_compact",
            "s_dynamic",
            "s_redundant",
            "s_compressed",
            "s_noprimary",
            "s_types",
            "s_blob_compact",
            "s_blob_dynamic",
            "s_blob_redundant",
            "s_instant",
            "s_instant_redundant",
        ];
        for name in names {
            let bytes = std::fs::read(format!("{folder}{name}.cfg")).expect("a fixture");
            let cfg = Cfg::parse(&bytes).expect("a stock file");
            let table = from_cfg(&cfg).expect("a consistent file");
            let again = to_cfg(&table, &cfg.host, cfg.autoinc, cfg.page_size);
            assert_eq!(again, cfg, "{name}");
            assert_eq!(again.to_bytes(), bytes, "{name}");
        }
    }
}

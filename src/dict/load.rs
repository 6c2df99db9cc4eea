//! From rows of SYS_* to a `schema::Table`, with the checks of format-tablespace.md 26.3.

use std::ops::ControlFlow;

use super::cache::SystemTrees;
use super::system_tables::{self, ColumnRow, FieldRow, IndexRow, TableRow, key};
use crate::format::column::ColumnType;
use crate::mtr::PageCtx;
use crate::schema::build::{IndexDef, KeyPart, TableDef};
use crate::schema::table::mix_len;
use crate::schema::{Column, FieldColumn, IndexType, Table, TableFlags, VirtualColumn};
use crate::words::{Error, IndexId, PageNo, Result, SpaceId, TableId};

/// Bit 31 of SYS_TABLES.N_COLS.
const COMPACT: u32 = 1 << 31;
/// SYS_FIELDS.POS: the part is sorted descending.
const DESC: u32 = 0x8000;

/// The row of the table named `name`, if there is one that is not delete-marked.
pub(super) fn table_row(ctx: &PageCtx, sys: &SystemTrees, name: &str) -> Result<Option<TableRow>> {
    let mut found = None;
    let key = key(&[name.as_bytes()]);
    system_tables::scan(ctx, sys.tables.clustered(), &key, &mut |view| {
        let row = TableRow::parse(view)?;
        // The order of names pads with spaces; "a" and "a " are two tables all the same.
        if !row.deleted && &*row.name == name {
            found = Some(row);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Name of the table with `id`. `deleted`: also of one whose rows are delete-marked.
pub(super) fn name_of(
    ctx: &PageCtx,
    sys: &SystemTrees,
    id: TableId,
    deleted: bool,
) -> Result<Option<Box<str>>> {
    let mut found = None;
    let key = key(&[&id.0.to_be_bytes()]);
    system_tables::scan(ctx, &sys.tables.trees()[1], &key, &mut |view| {
        if deleted || !view.is_deleted() {
            found = Some(system_tables::parse_id_entry(view)?);
        }
        Ok(match view.is_deleted() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok(found)
}

/// The rows of `tree` whose key begins with `id`, parsed, delete-marked ones left out.
fn rows<T>(
    ctx: &PageCtx,
    tree: &crate::tree::Tree,
    id: u64,
    parse: impl Fn(&crate::page::RecordView<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    let key = key(&[&id.to_be_bytes()]);
    system_tables::scan(ctx, tree, &key, &mut |view| {
        if !view.is_deleted() {
            rows.push(parse(view)?);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// The rows of SYS_INDEXES of a table.
pub(super) fn index_rows(ctx: &PageCtx, sys: &SystemTrees, id: TableId) -> Result<Vec<IndexRow>> {
    rows(ctx, sys.indexes.clustered(), id.0, IndexRow::parse)
}

/// The definition that the rows under `row` make up; nothing of the table's own file is looked at.
pub(super) fn definition(ctx: &PageCtx, sys: &SystemTrees, row: &TableRow) -> Result<Table> {
    define(ctx, sys, row).map_err(|e| e.in_index(&row.name, ""))
}

fn define(ctx: &PageCtx, sys: &SystemTrees, row: &TableRow) -> Result<Table> {
    if row.space >= SpaceId::UPPER_BOUND {
        return Err(Error::corrupt_bytes(format!("tablespace {}", row.space)));
    }
    let (columns, virtual_columns) = columns(ctx, sys, row)?;
    let mut def = TableDef {
        id: row.id,
        name: row.name.clone(),
        space: row.space,
        flags: TableFlags(row.flags),
        compact: row.n_cols & COMPACT != 0,
        mix_len: row.mix_len,
        path: None,
        columns,
        virtual_columns,
        indexes: Vec::new(),
    };
    for index in index_rows(ctx, sys, row.id)? {
        // Under construction: garbage of an unfinished DDL.
        if !index.unfinished {
            let parts = parts(ctx, sys, &def, &index)?;
            def.indexes.push(index_def(row, index, parts)?);
        }
    }
    def.build()
}

type Columns = (Vec<Column>, Vec<VirtualColumn>);

fn columns(ctx: &PageCtx, sys: &SystemTrees, row: &TableRow) -> Result<Columns> {
    let mut stored = Vec::new();
    let mut virtuals: Vec<VirtualColumn> = Vec::new();
    for c in rows(ctx, sys.columns.clustered(), row.id.0, ColumnRow::parse)? {
        let ty = ColumnType::parse(c.mtype, c.prtype, c.len)?;
        if c.pos >> 16 == 0 {
            if c.pos as usize != stored.len() || ty.prtype.is_virtual() {
                return Err(Error::corrupt_bytes(format!(
                    "column {} has POS {}",
                    c.name, c.pos
                )));
            }
            stored.push(Column::new(&c.name, ty, c.pos as u16));
            continue;
        }
        let ordinal = (c.pos >> 16) - 1;
        if ordinal as usize != virtuals.len() {
            return Err(Error::corrupt_bytes(format!(
                "column {} has POS {}",
                c.name, c.pos
            )));
        }
        let base_columns = base_columns(ctx, sys, row.id, c.pos)?;
        if base_columns.len() != c.prec as usize {
            return Err(Error::corrupt_bytes(format!(
                "column {} has {} base columns, not {}",
                c.name,
                base_columns.len(),
                c.prec
            )));
        }
        virtuals.push(VirtualColumn {
            column: Column::new(&c.name, ty, ordinal as u16),
            sql_ordinal: c.pos as u16,
            base_columns,
        });
    }
    let (n_stored, n_virtual) = (row.n_cols & 0xFFFF, row.n_cols >> 16 & 0x7FFF);
    if stored.len() != n_stored as usize || virtuals.len() != n_virtual as usize {
        return Err(Error::corrupt_bytes(format!(
            "{} stored and {} virtual columns, N_COLS says {n_stored} and {n_virtual}",
            stored.len(),
            virtuals.len()
        )));
    }
    let unknown = |v: &VirtualColumn| v.base_columns.iter().any(|&b| u32::from(b) >= n_stored);
    match virtuals.iter().find(|v| unknown(v)) {
        Some(v) => Err(Error::corrupt_bytes(format!(
            "column {} depends on a column that is not there",
            v.column.name
        ))),
        None => Ok((stored, virtuals)),
    }
}

fn base_columns(ctx: &PageCtx, sys: &SystemTrees, id: TableId, pos: u32) -> Result<Box<[u16]>> {
    let Some(table) = sys.virtual_columns.get() else {
        return Ok(Box::default());
    };
    let mut bases = Vec::new();
    let key = key(&[&id.0.to_be_bytes(), &pos.to_be_bytes()]);
    system_tables::scan(ctx, table.clustered(), &key, &mut |view| {
        if !view.is_deleted() {
            bases.push(system_tables::parse_virtual(view)?.1 as u16);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(bases.into())
}

/// The key parts of an index (section 7, SYS_FIELDS.POS).
fn parts(
    ctx: &PageCtx,
    sys: &SystemTrees,
    def: &TableDef,
    index: &IndexRow,
) -> Result<Vec<KeyPart>> {
    let wrong = |why: String| Error::corrupt_bytes(why).in_index(&def.name, &index.name);
    let fields = rows(ctx, sys.fields.clustered(), index.id.0, FieldRow::parse)?;
    if fields.len() != index.n_fields as usize {
        return Err(wrong(format!(
            "{} fields, N_FIELDS says {}",
            fields.len(),
            index.n_fields
        )));
    }
    let mut parts = Vec::with_capacity(fields.len());
    for (i, field) in (0u32..).zip(&fields) {
        let detail = match field.pos {
            pos if pos >> 16 == i && (i != 0 || pos != 0) => pos & 0xFFFF,
            pos if pos == i => 0,
            pos => return Err(wrong(format!("part {i} has POS {pos}"))),
        };
        let column = column_named(def, &field.column)
            .ok_or_else(|| wrong(format!("there is no column {}", field.column)))?;
        parts.push(KeyPart {
            column,
            prefix_len: (detail & !DESC) as u16,
            desc: detail & DESC != 0,
        });
    }
    Ok(parts)
}

fn column_named(def: &TableDef, name: &str) -> Option<FieldColumn> {
    let is = |c: &Column| *c.name == *name || c.name.eq_ignore_ascii_case(name);
    let stored = def.columns.iter().position(is);
    stored.map(|i| FieldColumn::Stored(i as u16)).or_else(|| {
        let found = def.virtual_columns.iter().position(|v| is(&v.column));
        found.map(|i| FieldColumn::Virtual(i as u16))
    })
}

fn index_def(table: &TableRow, row: IndexRow, parts: Vec<KeyPart>) -> Result<IndexDef> {
    let known = IndexType::CLUSTERED
        | IndexType::UNIQUE
        | IndexType::CORRUPTED
        | IndexType::FULLTEXT
        | IndexType::SPATIAL
        | IndexType::HAS_VIRTUAL;
    let ty = IndexType(row.ty);
    let in_place = row.space == table.space || table.mix_len & mix_len::DISCARDED != 0;
    let wrong = match () {
        _ if row.ty & !known != 0 => format!("index type {:#x}", row.ty),
        _ if !in_place => format!("the index is in tablespace {}", row.space),
        _ if !(1..=50).contains(&row.merge_threshold) => {
            format!("merge threshold {}", row.merge_threshold)
        }
        _ if row.n_fields == 0 && ty.has(IndexType::UNIQUE) => "a unique key without parts".into(),
        _ if row.root != PageNo::NONE && row.root.0 < 3 => format!("root page {}", row.root),
        () => String::new(),
    };
    if !wrong.is_empty() {
        return Err(Error::corrupt_bytes(wrong).in_index(&table.name, &row.name));
    }
    Ok(IndexDef {
        id: IndexId(row.id.0),
        name: row.name,
        ty,
        root: row.root,
        parts,
        merge_threshold: row.merge_threshold as u8,
    })
}

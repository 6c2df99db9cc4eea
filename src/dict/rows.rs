//! From a definition to rows of SYS_*, and away with them: the reverse of `load`.

use super::cache::Dict;
use super::system_tables::{TableRow, key};
use super::write::{self, Writer};
use crate::mtr::{Budget, PageCtx, retry};
use crate::page::{Offsets, RecordView, SearchMode};
use crate::schema::{FieldColumn, FieldRef, IndexDef, TableDef, VirtualColumn};
use crate::tree::{Intent, Seek};
use crate::words::{Error, IndexId, PageNo, Result, TableId, TrxId};

/// Bit 31 of SYS_TABLES.N_COLS.
const COMPACT: u32 = 1 << 31;
/// Column of SYS_TABLES that is always NULL.
const CLUSTER_NAME: usize = 6;

/// Inserts all rows of a table whose trees exist.
///
/// # Errors
/// `DuplicateKey` if the name is taken; what reading and undo give.
pub fn insert(ctx: &PageCtx, dict: &Dict, def: &TableDef, writer: &mut Writer<'_>) -> Result<()> {
    insert_table(ctx, dict, def, writer)?;
    insert_columns(ctx, dict, def, writer)?;
    for index in &def.indexes {
        insert_index(ctx, dict, def, index, writer)?;
        insert_fields(ctx, dict, def, index, writer)?;
    }
    Ok(())
}

/// The row of SYS_TABLES.
///
/// # Errors
/// As `insert`.
pub fn insert_table(
    ctx: &PageCtx,
    dict: &Dict,
    def: &TableDef,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let row = TableRow {
        name: def.name.clone(),
        trx_id: TrxId(0),
        id: def.id,
        n_cols: def.columns.len() as u32
            | (def.virtual_columns.len() as u32) << 16
            | if def.compact { COMPACT } else { 0 },
        flags: def.flags.0,
        mix_len: def.mix_len,
        space: def.space,
        deleted: false,
    };
    insert_table_row(ctx, dict, &row, writer)
}

/// A row of SYS_TABLES as it is; DB_TRX_ID becomes the writer's.
///
/// # Errors
/// As `insert`.
pub fn insert_table_row(
    ctx: &PageCtx,
    dict: &Dict,
    row: &TableRow,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let mut values = key(&[
        row.name.as_bytes(),
        &row.id.0.to_be_bytes(),
        &row.n_cols.to_be_bytes(),
        &row.flags.to_be_bytes(),
        &[0; 8],
        &row.mix_len.to_be_bytes(),
        &[],
        &row.space.0.to_be_bytes(),
    ]);
    values.set(CLUSTER_NAME, FieldRef::Null);
    write::insert(ctx, &dict.system().tables, &values, writer)
}

/// The rows of SYS_COLUMNS, and of SYS_VIRTUAL.
///
/// # Errors
/// As `insert`.
pub fn insert_columns(
    ctx: &PageCtx,
    dict: &Dict,
    def: &TableDef,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let mut insert = |pos: u32, column: &crate::schema::Column, prec: u32| {
        let row = key(&[
            &def.id.0.to_be_bytes(),
            &pos.to_be_bytes(),
            column.name.as_bytes(),
            &(column.ty.mtype as u32).to_be_bytes(),
            &column.ty.prtype.0.to_be_bytes(),
            &u32::from(column.ty.len).to_be_bytes(),
            &prec.to_be_bytes(),
        ]);
        write::insert(ctx, &dict.system().columns, &row, writer)
    };
    for (pos, column) in (0..).zip(&def.columns) {
        insert(pos, column, 0)?;
    }
    for v in &def.virtual_columns {
        insert(v.position(), &v.column, v.base_columns.len() as u32)?;
    }
    for v in &def.virtual_columns {
        insert_bases(ctx, dict, def.id, v, writer)?;
    }
    Ok(())
}

fn insert_bases(
    ctx: &PageCtx,
    dict: &Dict,
    table: TableId,
    column: &VirtualColumn,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let bases = dict.system().virtual_columns.get();
    let bases = bases.ok_or_else(|| Error::unsupported("virtual columns without SYS_VIRTUAL"))?;
    for &base in &column.base_columns {
        let row = key(&[
            &table.0.to_be_bytes(),
            &column.position().to_be_bytes(),
            &u32::from(base).to_be_bytes(),
        ]);
        write::insert(ctx, bases, &row, writer)?;
    }
    Ok(())
}

/// The row of SYS_INDEXES.
///
/// # Errors
/// As `insert`.
pub fn insert_index(
    ctx: &PageCtx,
    dict: &Dict,
    def: &TableDef,
    index: &IndexDef,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let row = key(&[
        &def.id.0.to_be_bytes(),
        &index.id.0.to_be_bytes(),
        index.name.as_bytes(),
        &(index.parts.len() as u32).to_be_bytes(),
        &index.ty.0.to_be_bytes(),
        &def.space.0.to_be_bytes(),
        &index.root.0.to_be_bytes(),
        &u32::from(index.merge_threshold).to_be_bytes(),
    ]);
    write::insert(ctx, &dict.system().indexes, &row, writer)
}

/// Position of PAGE_NO in a record of SYS_INDEXES.
const PAGE_NO: usize = 8;
/// Redo of making a tree, and of PAGE_NO.
const TREE_LOG_BYTES: usize = 64 << 10;

/// Makes the tree of an index whose row is there without one; tree and row are one mini-transaction, so
/// that whoever undoes the row finds the tree. The root.
///
/// # Errors
/// `NoSpace`; damage; what reading gives.
pub fn create_tree(ctx: &PageCtx, dict: &Dict, def: &TableDef, index: IndexId) -> Result<PageNo> {
    let tree = dict.system().indexes.clustered();
    let row = key(&[&def.id.0.to_be_bytes(), &index.0.to_be_bytes()]);
    let budget = Budget::statement(TREE_LOG_BYTES).with_frames(8);
    let mut offsets = Offsets::new();
    let (root, _) = retry(ctx, Some(budget), |mtr| {
        let seek = Seek::Key(&row, SearchMode::LessOrEqual);
        let at = tree.seek(mtr, seek, Intent::Modify)?;
        if usize::from(at.low_match) != row.len() {
            return Err(Error::internal("a row of SYS_INDEXES is gone"));
        }
        let record = RecordView::new(mtr.view(at.page), at.rec, tree.index(), &mut offsets)?;
        let place = record.range(PAGE_NO);
        let root = crate::tree::create(mtr, def.space, index, def.compact)?;
        mtr.write(at.page, place.start, &root.0.to_be_bytes());
        Ok(root)
    })?;
    Ok(root)
}

/// Delete-marks the rows of an index: its fields first, for purge frees the tree with the row of SYS_INDEXES.
///
/// # Errors
/// What reading and undo give.
pub fn delete_index(
    ctx: &PageCtx,
    dict: &Dict,
    table: TableId,
    index: IndexId,
    writer: &mut Writer<'_>,
) -> Result<()> {
    delete_all(ctx, dict, Of::Fields(index), writer)?;
    let row = key(&[&table.0.to_be_bytes(), &index.0.to_be_bytes()]);
    match write::delete(ctx, &dict.system().indexes, &row, writer)? {
        true => Ok(()),
        false => Err(Error::internal("a row of SYS_INDEXES is gone")),
    }
}

/// The rows of SYS_FIELDS of an index.
///
/// # Errors
/// As `insert`.
pub fn insert_fields(
    ctx: &PageCtx,
    dict: &Dict,
    def: &TableDef,
    index: &IndexDef,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let detailed = index.parts.iter().any(|p| p.prefix_len != 0 || p.desc);
    for (i, part) in (0u32..).zip(&index.parts) {
        let pos = match detailed {
            true => i << 16 | u32::from(part.desc) << 15 | u32::from(part.prefix_len),
            false => i,
        };
        let name = match part.column {
            FieldColumn::Stored(c) => &def.columns[c as usize].name,
            FieldColumn::Virtual(c) => &def.virtual_columns[c as usize].column.name,
            FieldColumn::Dropped => return Err(Error::internal("a key on a dropped column")),
        };
        let row = key(&[
            &index.id.0.to_be_bytes(),
            &pos.to_be_bytes(),
            name.as_bytes(),
        ]);
        write::insert(ctx, &dict.system().fields, &row, writer)?;
    }
    Ok(())
}

/// Delete-marks all rows of a table. SYS_TABLES comes last: purge, which follows this order, may look
/// the name up when it frees trees.
///
/// # Errors
/// What reading and undo give.
pub fn delete(
    ctx: &PageCtx,
    dict: &Dict,
    name: &str,
    id: TableId,
    writer: &mut Writer<'_>,
) -> Result<()> {
    for index in dict.index_rows(ctx, id)? {
        delete_all(ctx, dict, Of::Fields(index.id), writer)?;
    }
    delete_all(ctx, dict, Of::Columns(id), writer)?;
    delete_all(ctx, dict, Of::Virtual(id), writer)?;
    delete_all(ctx, dict, Of::Indexes(id), writer)?;
    delete_table(ctx, dict, name, writer)
}

/// Delete-marks the row of SYS_TABLES.
///
/// # Errors
/// `NoSuchTable`; what reading and undo give.
pub fn delete_table(ctx: &PageCtx, dict: &Dict, name: &str, writer: &mut Writer<'_>) -> Result<()> {
    let key = key(&[name.as_bytes()]);
    match write::delete(ctx, &dict.system().tables, &key, writer)? {
        true => Ok(()),
        false => Err(Error::NoSuchTable(name.into())),
    }
}

/// A group of rows whose keys begin alike.
#[derive(Clone, Copy)]
enum Of {
    Fields(IndexId),
    Columns(TableId),
    Indexes(TableId),
    Virtual(TableId),
}

fn delete_all(ctx: &PageCtx, dict: &Dict, which: Of, writer: &mut Writer<'_>) -> Result<()> {
    let sys = dict.system();
    let (table, id) = match which {
        Of::Fields(id) => (&sys.fields, id.0),
        Of::Columns(id) => (&sys.columns, id.0),
        Of::Indexes(id) => (&sys.indexes, id.0),
        Of::Virtual(id) => match sys.virtual_columns.get() {
            Some(table) => (table, id.0),
            None => return Ok(()),
        },
    };
    let tree = table.clustered();
    let n_key = tree.index().n_uniq as usize;
    let mut keys = Vec::new();
    super::system_tables::scan(ctx, tree, &key(&[&id.to_be_bytes()]), &mut |view| {
        if !view.is_deleted() {
            let mut key = crate::schema::Tuple::new();
            view.copy_key_to(&mut key, n_key);
            keys.push(key);
        }
        Ok(std::ops::ControlFlow::Continue(()))
    })?;
    for key in &keys {
        write::delete(ctx, table, key, writer)?;
    }
    Ok(())
}

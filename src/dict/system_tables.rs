//! The rows of SYS_TABLES, SYS_COLUMNS, SYS_INDEXES, SYS_FIELDS and SYS_VIRTUAL as values
//! (format-tablespace.md section 7), and scans over them.
//!
//! The stock server never shortens these rows but for SYS_INDEXES.MERGE_THRESHOLD, so number and
//! length of the fields are checked exactly (26.3).

use std::ops::ControlFlow;

use crate::mtr::{Mtr, PageCtx};
use crate::page::{Offsets, RecordView, SearchMode};
use crate::schema::build::MERGE_THRESHOLD;
use crate::schema::{FieldRef, Tuple};
use crate::tree::{Intent, Seek, StoredPosition, Tree};
use crate::words::{Error, IndexId, PageNo, Result, SpaceId, TableId, TrxId, be};

/// A row of SYS_TABLES.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableRow {
    /// NAME.
    pub name: Box<str>,
    /// DB_TRX_ID.
    pub trx_id: TrxId,
    /// ID.
    pub id: TableId,
    /// N_COLS: columns, virtual columns, the compact bit.
    pub n_cols: u32,
    /// TYPE.
    pub flags: u32,
    /// MIX_LEN.
    pub mix_len: u32,
    /// SPACE.
    pub space: SpaceId,
    /// The row is delete-marked.
    pub deleted: bool,
}

/// A row of SYS_COLUMNS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnRow {
    /// POS.
    pub pos: u32,
    /// NAME.
    pub name: Box<str>,
    /// MTYPE.
    pub mtype: u32,
    /// PRTYPE.
    pub prtype: u32,
    /// LEN.
    pub len: u32,
    /// PREC: base columns of a virtual column.
    pub prec: u32,
}

/// A row of SYS_INDEXES.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexRow {
    /// TABLE_ID.
    pub table: TableId,
    /// ID.
    pub id: IndexId,
    /// NAME; begins with the byte FF, shown as `?`, while the index is under construction.
    pub name: Box<str>,
    /// The index is under construction.
    pub unfinished: bool,
    /// DB_TRX_ID: who made the index.
    pub created: TrxId,
    /// N_FIELDS.
    pub n_fields: u32,
    /// TYPE.
    pub ty: u32,
    /// SPACE.
    pub space: SpaceId,
    /// PAGE_NO.
    pub root: PageNo,
    /// MERGE_THRESHOLD.
    pub merge_threshold: u32,
}

/// A row of SYS_FIELDS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldRow {
    /// POS.
    pub pos: u32,
    /// COL_NAME.
    pub column: Box<str>,
}

/// Reads the fields of one row, checking their lengths.
struct Fields<'v, 'p> {
    view: &'v RecordView<'p>,
    table: &'static str,
}

impl Fields<'_, '_> {
    fn of<'v, 'p>(
        view: &'v RecordView<'p>,
        table: &'static str,
        count: std::ops::RangeInclusive<usize>,
    ) -> Result<Fields<'v, 'p>> {
        let stored = view.offsets().n_stored();
        if !count.contains(&stored) {
            return Err(Error::corrupt_bytes(format!(
                "a row of {table} has {stored} fields"
            )));
        }
        Ok(Fields { view, table })
    }

    fn wrong(&self, i: usize) -> Error {
        Error::corrupt_bytes(format!("field {i} of a row of {} is not valid", self.table))
    }

    fn bytes(&self, i: usize) -> Result<&[u8]> {
        match self.view.field(i) {
            FieldRef::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong(i)),
        }
    }

    fn u32(&self, i: usize) -> Result<u32> {
        match self.bytes(i)? {
            bytes if bytes.len() == 4 => Ok(be::u32_at(bytes, 0)),
            _ => Err(self.wrong(i)),
        }
    }

    fn u64(&self, i: usize) -> Result<u64> {
        match self.bytes(i)? {
            bytes if bytes.len() == 8 => Ok(be::u64_at(bytes, 0)),
            _ => Err(self.wrong(i)),
        }
    }

    fn text(&self, i: usize) -> Result<Box<str>> {
        let text = std::str::from_utf8(self.bytes(i)?).map_err(|_| self.wrong(i))?;
        if text.is_empty() || text.contains('\0') {
            return Err(self.wrong(i));
        }
        Ok(text.into())
    }
}

impl TableRow {
    /// Reads a clustered record of SYS_TABLES.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn parse(view: &RecordView<'_>) -> Result<TableRow> {
        let f = Fields::of(view, "SYS_TABLES", 10..=10)?;
        if !view.field(8).is_null() {
            return Err(f.wrong(8));
        }
        Ok(TableRow {
            name: f.text(0)?,
            trx_id: view.trx_id().ok_or_else(|| f.wrong(1))?,
            id: TableId(f.u64(3)?),
            n_cols: f.u32(4)?,
            flags: f.u32(5)?,
            mix_len: f.u32(7)?,
            space: SpaceId(f.u32(9)?),
            deleted: view.is_deleted(),
        })
    }
}

impl ColumnRow {
    /// Reads a record of SYS_COLUMNS.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn parse(view: &RecordView<'_>) -> Result<ColumnRow> {
        let f = Fields::of(view, "SYS_COLUMNS", 9..=9)?;
        Ok(ColumnRow {
            pos: f.u32(1)?,
            name: f.text(4)?,
            mtype: f.u32(5)?,
            prtype: f.u32(6)?,
            len: f.u32(7)?,
            prec: f.u32(8)?,
        })
    }
}

impl IndexRow {
    /// Reads a record of SYS_INDEXES.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn parse(view: &RecordView<'_>) -> Result<IndexRow> {
        let f = Fields::of(view, "SYS_INDEXES", 9..=10)?;
        let name = f.bytes(4)?;
        let unfinished = name.first() == Some(&0xFF);
        Ok(IndexRow {
            table: TableId(f.u64(0)?),
            id: IndexId(f.u64(1)?),
            name: match unfinished {
                true => format!("?{}", String::from_utf8_lossy(&name[1..])).into(),
                false => f.text(4)?,
            },
            unfinished,
            created: view.trx_id().unwrap_or_default(),
            n_fields: f.u32(5)?,
            ty: f.u32(6)?,
            space: SpaceId(f.u32(7)?),
            root: PageNo(f.u32(8)?),
            merge_threshold: match view.offsets().n_stored() {
                10 => f.u32(9)?,
                _ => u32::from(MERGE_THRESHOLD),
            },
        })
    }
}

impl FieldRow {
    /// Reads a record of SYS_FIELDS.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn parse(view: &RecordView<'_>) -> Result<FieldRow> {
        let f = Fields::of(view, "SYS_FIELDS", 5..=5)?;
        Ok(FieldRow {
            pos: f.u32(1)?,
            column: f.text(4)?,
        })
    }
}

/// POS and BASE_POS of a record of SYS_VIRTUAL.
pub(super) fn parse_virtual(view: &RecordView<'_>) -> Result<(u32, u32)> {
    let f = Fields::of(view, "SYS_VIRTUAL", 5..=5)?;
    Ok((f.u32(1)?, f.u32(2)?))
}

/// NAME of a record of SYS_TABLES.ID_IND.
pub(super) fn parse_id_entry(view: &RecordView<'_>) -> Result<Box<str>> {
    Fields::of(view, "SYS_TABLES", 2..=2)?.text(1)
}

/// Visits the records of `tree` that begin with the fields of `key` (all, if it has none) in key
/// order, delete-marked ones too. `see` runs under the leaf's latch and must not wait.
///
/// # Errors
/// What reading pages gives, with the tree's names; what `see` returns.
pub fn scan(
    ctx: &PageCtx,
    tree: &Tree,
    key: &Tuple,
    see: &mut dyn FnMut(&RecordView<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut mtr = Mtr::reader(ctx);
    let mut place = StoredPosition::new();
    loop {
        match scan_some(&mut mtr, tree, key, &mut place, see) {
            Err(Error::WouldBlock) => mtr.restart()?,
            Err(error) => return Err(error.in_index(&tree.table().name, &tree.index().name)),
            Ok(()) => return Ok(()),
        }
    }
}

/// Goes on behind `place`, where the last record seen is remembered.
fn scan_some(
    mtr: &mut Mtr<'_>,
    tree: &Tree,
    key: &Tuple,
    place: &mut StoredPosition,
    see: &mut dyn FnMut(&RecordView<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut offsets = Offsets::new();
    let mut at = match (place.is_stored(), key.is_empty()) {
        (true, _) => place.restore(tree, mtr, Intent::Read)?.0,
        (false, true) => tree.seek(mtr, Seek::First, Intent::Read)?,
        (false, false) => tree.seek(mtr, Seek::Key(key, SearchMode::Less), Intent::Read)?,
    };
    while tree.next(mtr, &mut at)? {
        let view = RecordView::new(mtr.view(at.page), at.rec, tree.index(), &mut offsets)?;
        let begins = key
            .fields()
            .enumerate()
            .all(|(i, field)| equal(tree, i, view.field(i), field));
        if !begins || see(&view)?.is_break() {
            return Ok(());
        }
        place.store(tree, mtr, &at, &mut offsets)?;
    }
    Ok(())
}

/// Equality in the order of the index.
fn equal(tree: &Tree, i: usize, a: FieldRef<'_>, b: FieldRef<'_>) -> bool {
    let field = &tree.index().fields[i];
    crate::schema::compare::compare_fields(field, a, b, tree.collations()).is_eq()
}

/// A search key.
pub fn key(fields: &[&[u8]]) -> Tuple {
    let mut key = Tuple::new();
    for field in fields {
        key.push_bytes(field);
    }
    key
}

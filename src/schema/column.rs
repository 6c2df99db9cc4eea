//! Columns of a table.

use crate::format::column::{self as types, ColumnType};

/// A stored column, or one of the three system columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Name as the dictionary has it (utf8mb3, case kept).
    pub name: Box<str>,
    /// What decides storage and order.
    pub ty: ColumnType,
    /// Position among the stored columns; system columns follow the last one.
    pub ordinal: u16,
}

impl Column {
    /// A stored column at `ordinal`.
    pub fn new(name: &str, ty: ColumnType, ordinal: u16) -> Column {
        Column {
            name: name.into(),
            ty,
            ordinal,
        }
    }

    /// True if values may be NULL.
    pub fn is_nullable(&self) -> bool {
        self.ty.prtype.is_nullable()
    }
}

/// A virtual column: computed by the host, stored only in secondary indexes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VirtualColumn {
    /// Name, type; `ordinal` counts among the virtual columns.
    pub column: Column,
    /// Its ordinal among all columns of the SQL table.
    pub sql_ordinal: u16,
    /// Ordinals of the stored columns that it is computed from (SYS_VIRTUAL).
    pub base_columns: Box<[u16]>,
}

impl VirtualColumn {
    /// SYS_COLUMNS.POS of a virtual column (format-tablespace.md section 7).
    pub fn position(&self) -> u32 {
        (u32::from(self.column.ordinal) + 1) << 16 | u32::from(self.sql_ordinal)
    }
}

/// Names and types of the hidden columns, in the order in which they follow the stored ones.
pub const SYSTEM_COLUMNS: [(&str, ColumnType); 3] = [
    ("DB_ROW_ID", types::DB_ROW_ID),
    ("DB_TRX_ID", types::DB_TRX_ID),
    ("DB_ROLL_PTR", types::DB_ROLL_PTR),
];

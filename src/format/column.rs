//! Column types as the dictionary stores them: mtype, prtype, len (format-tablespace.md section 8).

use crate::host::collation::{self, CharWidth};
use crate::words::limits::FIXED_FIELD_BYTES_MAX;
use crate::words::{Error, Result};

/// SYS_COLUMNS.MTYPE: how InnoDB classes a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Mtype {
    /// VARCHAR of latin1_swedish_ci.
    Varchar = 1,
    /// CHAR of latin1_swedish_ci.
    Char = 2,
    /// Fixed-length bytes: BINARY, DECIMAL, temporal types, BIT, UUID.
    FixBinary = 3,
    /// VARBINARY.
    Binary = 4,
    /// BLOB and TEXT.
    Blob = 5,
    /// Integers, YEAR, DATE, ENUM, SET.
    Int = 6,
    /// The child page number of a node pointer.
    SysChild = 7,
    /// DB_ROW_ID, DB_TRX_ID, DB_ROLL_PTR.
    Sys = 8,
    /// FLOAT.
    Float = 9,
    /// DOUBLE.
    Double = 10,
    /// DECIMAL as text, from before MySQL 5.0.
    DecimalText = 11,
    /// VARCHAR of another character set.
    VarMysql = 12,
    /// CHAR of another character set.
    Mysql = 13,
    /// Spatial types.
    Geometry = 14,
}

impl TryFrom<u32> for Mtype {
    type Error = Error;

    fn try_from(code: u32) -> Result<Mtype> {
        Ok(match code {
            1 => Mtype::Varchar,
            2 => Mtype::Char,
            3 => Mtype::FixBinary,
            4 => Mtype::Binary,
            5 => Mtype::Blob,
            6 => Mtype::Int,
            7 => Mtype::SysChild,
            8 => Mtype::Sys,
            9 => Mtype::Float,
            10 => Mtype::Double,
            11 => Mtype::DecimalText,
            12 => Mtype::VarMysql,
            13 => Mtype::Mysql,
            14 => Mtype::Geometry,
            _ => return Err(Error::corrupt_bytes(format!("unknown column type {code}"))),
        })
    }
}

/// SYS_COLUMNS.PRTYPE: SQL type code, flags and collation in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Prtype(pub u32);

impl Prtype {
    /// The column is NOT NULL.
    pub const NOT_NULL: u32 = 0x100;
    /// The number is unsigned.
    pub const UNSIGNED: u32 = 0x200;
    /// The type has no collation of its own.
    pub const BINARY_TYPE: u32 = 0x400;
    /// The key part is a geometry's bounding box; only in memory.
    pub const GIS_MBR: u32 = 0x800;
    /// A VARCHAR with two length bytes in MariaDB's row image.
    pub const LONG_TRUE_VARCHAR: u32 = 0x1000;
    /// A virtual column: no stored value in the clustered index.
    pub const VIRTUAL: u32 = 0x2000;
    /// System versioning: the row's start column.
    pub const VERS_START: u32 = 0x4000;
    /// System versioning: the row's end column.
    pub const VERS_END: u32 = 0x8000;

    /// The server's code of the type (MYSQL_TYPE_*).
    pub fn sql_type(self) -> u8 {
        self.0 as u8
    }

    /// True if the column may be NULL.
    pub fn is_nullable(self) -> bool {
        self.0 & Prtype::NOT_NULL == 0
    }

    /// True for unsigned numbers.
    pub fn is_unsigned(self) -> bool {
        self.0 & Prtype::UNSIGNED != 0
    }

    /// True for types without a collation.
    pub fn is_binary_type(self) -> bool {
        self.0 & Prtype::BINARY_TYPE != 0
    }

    /// True for virtual columns.
    pub fn is_virtual(self) -> bool {
        self.0 & Prtype::VIRTUAL != 0
    }

    /// The collation id; 0 where the type has none.
    pub fn collation(self) -> u16 {
        (self.0 >> 16 & 0x7FFF) as u16
    }
}

/// A column's type, all that decides how its values are stored and compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ColumnType {
    /// The class of the type.
    pub mtype: Mtype,
    /// SQL type, flags, collation.
    pub prtype: Prtype,
    /// Length in bytes: exact for fixed types, largest for variable ones; 9..12 for BLOBs.
    pub len: u16,
}

impl ColumnType {
    /// Checks the three numbers of a SYS_COLUMNS row or a .cfg column.
    pub fn parse(mtype: u32, prtype: u32, len: u32) -> Result<ColumnType> {
        let mtype = Mtype::try_from(mtype)?;
        let len = u16::try_from(len)
            .map_err(|_| Error::corrupt_bytes(format!("column length {len} is too large")))?;
        Ok(ColumnType {
            mtype,
            prtype: Prtype(prtype),
            len,
        })
    }

    /// True for types that carry a collation id.
    pub fn is_string(self) -> bool {
        matches!(
            self.mtype,
            Mtype::Varchar
                | Mtype::Char
                | Mtype::FixBinary
                | Mtype::Binary
                | Mtype::Blob
                | Mtype::VarMysql
                | Mtype::Mysql
        )
    }

    /// Bytes per character; 0..0 for types without characters, as the .cfg file writes it.
    pub fn char_width(self) -> CharWidth {
        if self.is_string() {
            collation::char_width(self.prtype.collation())
        } else {
            CharWidth { min: 0, max: 0 }
        }
    }

    /// True if a field's length may need two bytes in a COMPACT record header.
    pub fn is_big(self) -> bool {
        self.len > 255 || matches!(self.mtype, Mtype::Blob | Mtype::Geometry)
    }

    /// True if values can be moved off the page.
    pub fn may_be_external(self) -> bool {
        self.is_big() && self.fixed_size(true) == 0
    }

    /// Bytes that every value takes, 0 if they vary. `compact`: any format but REDUNDANT.
    pub fn fixed_size(self, compact: bool) -> u16 {
        match self.mtype {
            Mtype::Char
            | Mtype::FixBinary
            | Mtype::Int
            | Mtype::SysChild
            | Mtype::Sys
            | Mtype::Float
            | Mtype::Double => self.len,
            Mtype::Mysql => {
                let width = self.char_width();
                if !compact || self.prtype.is_binary_type() || width.min == width.max {
                    self.len
                } else {
                    0
                }
            }
            Mtype::Geometry if self.prtype.0 & Prtype::GIS_MBR != 0 => MBR_BYTES,
            _ => 0,
        }
    }

    /// The fixed length of an index field on this column, 0 if it varies: cut to the prefix, and
    /// very long fields count as variable (section 10).
    pub fn field_fixed_len(self, prefix_len: u16, compact: bool) -> u16 {
        let mut fixed = self.fixed_size(compact);
        if prefix_len != 0 && fixed > prefix_len {
            fixed = prefix_len;
        }
        if fixed as usize > FIXED_FIELD_BYTES_MAX {
            0
        } else {
            fixed
        }
    }

    /// Zero bytes that a NULL takes in a REDUNDANT record: the full length of fixed types, also
    /// where the field is only a prefix.
    pub fn redundant_null_len(self) -> u16 {
        self.fixed_size(false)
    }
}

/// Bytes of a minimum bounding rectangle: four doubles.
pub const MBR_BYTES: u16 = 32;

/// DB_ROW_ID.
pub const DB_ROW_ID: ColumnType = ColumnType {
    mtype: Mtype::Sys,
    prtype: Prtype(0x100),
    len: 6,
};
/// DB_TRX_ID.
pub const DB_TRX_ID: ColumnType = ColumnType {
    mtype: Mtype::Sys,
    prtype: Prtype(0x101),
    len: 6,
};
/// DB_ROLL_PTR.
pub const DB_ROLL_PTR: ColumnType = ColumnType {
    mtype: Mtype::Sys,
    prtype: Prtype(0x102),
    len: 7,
};

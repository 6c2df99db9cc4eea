//! Tables, indexes, columns, values and key comparison, in memory only.
//!
//! Knows how a logical definition becomes the physical one (which fields an index has, in which
//! order); knows nothing of pages. `dict` loads and caches these values.
//!
//! Invariants
//!  1. A `Table` is immutable once shared; DDL makes a new one.
//!  2. `Table::indexes[0]` is the clustered index.
//!  3. `Table::columns` holds the stored columns by ordinal, then DB_ROW_ID, DB_TRX_ID and
//!     DB_ROLL_PTR.
//!  4. A `Field` carries all that parsing and comparing need: no look-up of its column there.
//!
//! Latches: none.
//! Crash:   nothing here is on disk.
//! Read:    column.rs, index.rs, table.rs, build.rs, instant.rs, value.rs, compare.rs.

#![forbid(unsafe_code)]

pub mod build;
pub mod cfg;
pub mod column;
pub mod compare;
pub mod index;
pub mod instant;
pub mod system;
pub mod table;
pub mod value;

pub use build::{IndexDef, KeyPart, TableDef};
pub use column::{Column, VirtualColumn};
pub use compare::KeyKind;
pub use index::{Field, FieldColumn, Index, IndexType};
pub use instant::{FieldMapEntry, InstantState};
pub use table::{RowFormat, Table, TableFlags};
pub use value::{FieldRef, Tuple};

//! Undo records: parsing (format-tablespace.md 17.4).
//!
//! On the page a record is `next (2) | body | start (2)`. The body is what the log's UNDO_APPEND
//! carries and what this file reads: a type byte, undo number, table id, and by type the old
//! version's ids, the key, the changed columns and the ordering columns. Nothing is copied;
//! values are slices of the page. How many key fields there are is known to the dictionary alone.
//!
//! A record may be trusted as far as the page's checksum goes. It may name a table that is gone,
//! and after purge its page may hold another log: callers check table id and undo number.

use crate::words::{Error, IndexId, Result, RollPtr, TableId, TrxId, UndoNo, be};

use super::undo_page;

/// Types of undo records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum UndoKind {
    /// RENAME TABLE; the name as it was.
    RenameTable = 9,
    /// The hidden metadata record of an instant ALTER was inserted.
    InsertMetadata = 10,
    /// A row was inserted.
    Insert = 11,
    /// A row was updated.
    UpdateExisting = 12,
    /// A delete-marked row was updated: the key was inserted again.
    UpdateDeleted = 13,
    /// A row was delete-marked.
    DeleteMark = 14,
    /// Bulk insert into an empty table: rollback empties it.
    Empty = 15,
}

impl UndoKind {
    fn parse(nibble: u8) -> Result<UndoKind> {
        Ok(match nibble {
            9 => UndoKind::RenameTable,
            10 => UndoKind::InsertMetadata,
            11 => UndoKind::Insert,
            12 => UndoKind::UpdateExisting,
            13 => UndoKind::UpdateDeleted,
            14 => UndoKind::DeleteMark,
            15 => UndoKind::Empty,
            other => return Err(bad(&format!("type {other}"))),
        })
    }

    /// True if the record holds an older version: `UpdateExisting`, `UpdateDeleted`, `DeleteMark`.
    pub fn has_old_version(self) -> bool {
        matches!(
            self,
            UndoKind::UpdateExisting | UndoKind::UpdateDeleted | UndoKind::DeleteMark
        )
    }
}

/// Update info: no ordering field of any index changes (no list of ordering columns follows).
pub const NO_ORDER_CHANGE: u8 = 1;
/// Update info: no field changes its size.
pub const NO_SIZE_CHANGE: u8 = 2;

/// Field positions from this one on name virtual columns.
pub const VIRTUAL_BASE: u32 = 1023;
/// Stands before the first virtual column of a list.
pub(super) const VIRTUAL_MARKER: u8 = 0xF1;
/// Coded length of an SQL NULL.
pub(super) const NULL_LEN: u32 = u32::MAX;
/// Coded lengths from this one on are of off-page columns.
pub(super) const EXTERN_BASE: u32 = u32::MAX - 16384;
const MBR_BYTES: usize = 32;

/// The head of an undo record and its undecoded rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndoRecord<'a> {
    /// What was done.
    pub kind: UndoKind,
    /// `NO_ORDER_CHANGE`, `NO_SIZE_CHANGE`.
    pub update_info: u8,
    /// Off-page columns were updated: purge has BLOBs to free.
    pub extern_updated: bool,
    /// Number within the transaction.
    pub undo_no: UndoNo,
    /// The table.
    pub table_id: TableId,
    rest: &'a [u8],
}

/// The body of the record at `at` of an undo page, and where the next record starts. `end` = where
/// the log ends on this page.
pub fn body_at(page: &[u8], at: usize, end: usize) -> Result<(&[u8], usize)> {
    let next = be::try_u16_at(page, at).ok_or_else(|| bad("offset outside the page"))? as usize;
    if at < undo_page::RECORDS || next > end || end > page.len() || next < at + 5 {
        return Err(bad(&format!("at {at} ends at {next}, the log at {end}")));
    }
    if be::u16_at(page, next - 2) as usize != at {
        return Err(bad(&format!("at {at} does not point back to itself")));
    }
    Ok((&page[at + 2..next - 2], next))
}

/// Where the record that ends at `end` starts; `start` = where the log starts on this page. `None`
/// if no record precedes.
pub fn previous(page: &[u8], start: usize, end: usize) -> Result<Option<usize>> {
    if end <= start {
        return Ok(None);
    }
    let raw = end.checked_sub(2).and_then(|at| be::try_u16_at(page, at));
    match raw.map(usize::from) {
        Some(at) if at >= start && at + 5 <= end => Ok(Some(at)),
        _ => Err(bad(&format!("before {end} is not linked"))),
    }
}

/// The bodies from `start` to `end` of an undo page, each with its offset, oldest first. Ends after
/// the first error.
pub fn bodies(
    page: &[u8],
    start: usize,
    end: usize,
) -> impl Iterator<Item = Result<(usize, &[u8])>> {
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        Some(match body_at(page, at, end) {
            Ok((body, next)) => {
                let found = (at, body);
                at = next;
                Ok(found)
            }
            Err(e) => {
                at = end;
                Err(e)
            }
        })
    })
}

impl<'a> UndoRecord<'a> {
    /// Reads the head of a record's body.
    pub fn parse(body: &'a [u8]) -> Result<UndoRecord<'a>> {
        let mut cursor = UndoCursor {
            bytes: body,
            at: 0,
            marked: false,
        };
        let lead = cursor.byte()?;
        Ok(UndoRecord {
            kind: UndoKind::parse(lead & 15)?,
            update_info: lead >> 4 & 7,
            extern_updated: lead & 0x80 != 0,
            undo_no: UndoNo(cursor.much()?),
            table_id: TableId(cursor.much()?),
            rest: &body[cursor.at..],
        })
    }

    /// `RenameTable`: the old name, "db/table" in filename encoding.
    pub fn old_name(&self) -> Result<&'a str> {
        match std::str::from_utf8(self.rest) {
            Ok(name) if self.kind == UndoKind::RenameTable && name.contains('/') => Ok(name),
            _ => Err(bad("has no table name")),
        }
    }

    /// `Insert`: the key, of `n_uniq` values, and the virtual columns that are indexed.
    pub fn insert(&self, n_uniq: usize) -> Result<UndoInsert<'a>> {
        if self.kind != UndoKind::Insert {
            return Err(bad("is no insert"));
        }
        let mut cursor = self.cursor();
        let key = cursor.values(n_uniq)?;
        let virtuals = cursor.list()?.unwrap_or(UndoFields::NONE);
        Ok(UndoInsert { key, virtuals })
    }

    /// `UpdateExisting`, `UpdateDeleted`, `DeleteMark`: everything. The whole record is checked
    /// here; the iterators of the result still yield `Result`s, which then are `Ok`.
    pub fn update(&self, n_uniq: usize) -> Result<UndoUpdate<'a>> {
        if !self.kind.has_old_version() {
            return Err(bad("has no old version"));
        }
        let mut cursor = self.cursor();
        let old = OldVersion {
            info_bits: cursor.byte()?,
            trx_id: TrxId(cursor.u64()?),
            roll_ptr: RollPtr(cursor.u64()?),
        };
        let key = cursor.values(n_uniq)?;
        let changes = match self.kind {
            UndoKind::DeleteMark => UndoFields::NONE,
            _ => cursor.changes()?,
        };
        let ordering = cursor.list()?;
        let listed = self.kind == UndoKind::DeleteMark || self.update_info & NO_ORDER_CHANGE == 0;
        if ordering.is_none() == listed {
            return Err(bad("lacks its ordering columns, or should have none"));
        }
        let ordering = ordering.unwrap_or(UndoFields::NONE);
        Ok(UndoUpdate {
            old,
            key,
            changes,
            ordering,
        })
    }

    fn cursor(&self) -> UndoCursor<'a> {
        UndoCursor {
            bytes: self.rest,
            at: 0,
            marked: false,
        }
    }
}

/// An inserted row.
#[derive(Clone, Debug)]
pub struct UndoInsert<'a> {
    /// Key of the clustered index.
    pub key: UndoValues<'a>,
    /// Values of indexed virtual columns.
    pub virtuals: UndoFields<'a>,
}

/// An updated or delete-marked row.
#[derive(Clone, Debug)]
pub struct UndoUpdate<'a> {
    /// System columns of the version before.
    pub old: OldVersion,
    /// Key of the clustered index.
    pub key: UndoValues<'a>,
    /// Changed fields with the values before.
    pub changes: UndoFields<'a>,
    /// Columns that order some index and did not change; empty with `NO_ORDER_CHANGE`. This is
    /// how purge finds secondary entries.
    pub ordering: UndoFields<'a>,
}

/// System columns of the version before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OldVersion {
    /// Info bits of the record.
    pub info_bits: u8,
    /// DB_TRX_ID.
    pub trx_id: TrxId,
    /// DB_ROLL_PTR.
    pub roll_ptr: RollPtr,
}

/// A column's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndoValue<'a> {
    /// SQL NULL.
    Null,
    /// Stored in the record.
    Bytes(&'a [u8]),
    /// Stored on other pages.
    Extern(UndoExtern<'a>),
}

/// An off-page column's local part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UndoExtern<'a> {
    /// `Some(n)`: the record holds n local bytes; here stands a longer prefix, for an index on it.
    pub original_bytes: Option<u32>,
    /// 0 unknown, 1 no spatial index, 2 some indexes are spatial, 3 only spatial ones.
    pub spatial: u8,
    /// Prefix, reference, and the bounding box if `spatial` is 2 or 3. With 3 the box alone.
    pub bytes: &'a [u8],
}

impl<'a> UndoExtern<'a> {
    /// Prefix and 20-byte reference.
    pub fn local(&self) -> &'a [u8] {
        &self.bytes[..self.bytes.len() - self.box_bytes()]
    }

    /// Bounding box of a geometry: 4 doubles.
    pub fn mbr(&self) -> Option<&'a [u8]> {
        (self.box_bytes() != 0).then(|| &self.bytes[self.bytes.len() - MBR_BYTES..])
    }

    fn box_bytes(&self) -> usize {
        if self.spatial >= 2 { MBR_BYTES } else { 0 }
    }
}

/// A field of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UndoField<'a> {
    /// A stored column.
    Stored {
        /// Position in the clustered index.
        field: u32,
        /// In a list of changes the value before, else the value.
        value: UndoValue<'a>,
    },
    /// A virtual column.
    Virtual {
        /// Position among the table's virtual columns.
        column: u32,
        /// The indexes that hold it.
        indexes: IndexList<'a>,
        /// In a list of changes the value before, else the value.
        value: UndoValue<'a>,
        /// In a list of changes the value after.
        new_value: Option<UndoValue<'a>>,
    },
}

/// Which indexes hold a virtual column, and where. Names index ids, since the column may be
/// dropped and another added before the record is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexList<'a> {
    count: u32,
    /// The coded list, count included.
    pub(super) coded: &'a [u8],
    entries_at: usize,
}

impl<'a> IndexList<'a> {
    /// Reads a coded list: c(count), count * { m(index id), c(position) }.
    pub fn parse(coded: &'a [u8]) -> Result<IndexList<'a>> {
        let mut cursor = UndoCursor {
            bytes: coded,
            at: 0,
            marked: false,
        };
        let count = cursor.int()?;
        let entries_at = cursor.at;
        for _ in 0..count {
            cursor.much()?;
            cursor.int()?;
        }
        if cursor.at != coded.len() {
            return Err(bad("has a wrong list of indexes"));
        }
        Ok(IndexList {
            count,
            coded,
            entries_at,
        })
    }

    /// The indexes, and the column's position in each.
    pub fn iter(&self) -> impl Iterator<Item = (IndexId, u32)> + 'a {
        let mut cursor = UndoCursor {
            bytes: self.coded,
            at: self.entries_at,
            marked: false,
        };
        let next = move |_| Some((IndexId(cursor.much().ok()?), cursor.int().ok()?));
        (0..self.count).map_while(next)
    }
}

/// A run of values.
#[derive(Clone, Debug)]
pub struct UndoValues<'a> {
    cursor: UndoCursor<'a>,
    left: usize,
}

impl<'a> Iterator for UndoValues<'a> {
    type Item = Result<UndoValue<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.cursor.value())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// A list of fields.
#[derive(Clone, Debug)]
pub struct UndoFields<'a> {
    cursor: UndoCursor<'a>,
    /// In a list of changes virtual columns have two values.
    changes: bool,
}

impl UndoFields<'_> {
    const NONE: UndoFields<'static> = UndoFields {
        cursor: UndoCursor {
            bytes: &[],
            at: 0,
            marked: false,
        },
        changes: false,
    };

    /// True if there is no (further) field.
    pub fn is_empty(&self) -> bool {
        self.cursor.at >= self.cursor.bytes.len()
    }
}

impl<'a> Iterator for UndoFields<'a> {
    type Item = Result<UndoField<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_empty() {
            return None;
        }
        let field = self.cursor.field(self.changes);
        if field.is_err() {
            self.cursor.at = self.cursor.bytes.len();
        }
        Some(field)
    }
}

#[derive(Clone, Debug)]
struct UndoCursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The marker before the first virtual column of the list was seen.
    marked: bool,
}

impl<'a> UndoCursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = self.at.saturating_add(n);
        let bytes = self
            .bytes
            .get(self.at..end)
            .ok_or_else(|| bad("is too short"))?;
        self.at = end;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// *c*: 1 to 5 bytes.
    #[inline]
    fn int(&mut self) -> Result<u32> {
        let lead = *self.bytes.get(self.at).ok_or_else(|| bad("is too short"))?;
        Ok(match lead {
            0..0x80 => {
                self.at += 1;
                u32::from(lead)
            }
            0x80..0xC0 => u32::from(be::u16_at(self.take(2)?, 0) & 0x3FFF),
            0xC0..0xE0 => be::u24_at(self.take(3)?, 0) & 0x1F_FFFF,
            0xE0..0xF0 => be::u32_at(self.take(4)?, 0) & 0x0FFF_FFFF,
            0xF0 => be::u32_at(self.take(5)?, 1),
            _ => return Err(bad("has an unknown coding of an integer")),
        })
    }

    /// *m*: as c below 2^32, else FF, c(high), c(low).
    fn much(&mut self) -> Result<u64> {
        if self.bytes.get(self.at) != Some(&0xFF) {
            return Ok(u64::from(self.int()?));
        }
        self.at += 1;
        Ok(u64::from(self.int()?) << 32 | u64::from(self.int()?))
    }

    /// *u64*: c(high), 4 bytes low.
    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from(self.int()?) << 32 | u64::from(be::u32_at(self.take(4)?, 0)))
    }

    #[inline]
    fn value(&mut self) -> Result<UndoValue<'a>> {
        let len = self.int()?;
        if len < EXTERN_BASE {
            return Ok(UndoValue::Bytes(self.take(len as usize)?));
        }
        if len == NULL_LEN {
            return Ok(UndoValue::Null);
        }
        let (original_bytes, coded) = match len - EXTERN_BASE {
            0 => (Some(self.int()?), self.int()?),
            coded => (None, coded),
        };
        let spatial = (coded >> 12 & 3) as u8;
        let bytes = self.take((coded & 0xFFF) as usize)?;
        let value = UndoExtern {
            original_bytes,
            spatial,
            bytes,
        };
        let least = value.box_bytes()
            + if spatial == 3 {
                0
            } else {
                super::blob::REF_BYTES
            };
        if bytes.len() < least || coded >> 14 != 0 {
            return Err(bad("has an off-page column without a reference"));
        }
        Ok(UndoValue::Extern(value))
    }

    fn field(&mut self, changes: bool) -> Result<UndoField<'a>> {
        let position = self.int()?;
        if position < VIRTUAL_BASE {
            return Ok(UndoField::Stored {
                field: position,
                value: self.value()?,
            });
        }
        if !self.marked {
            if self.byte()? != VIRTUAL_MARKER {
                return Err(bad("has a virtual column without the marker"));
            }
            self.marked = true;
        }
        let len = be::u16_at(self.take(2)?, 0) as usize;
        let coded = self.take(
            len.checked_sub(2)
                .ok_or_else(|| bad("has a wrong list of indexes"))?,
        )?;
        let indexes = IndexList::parse(coded)?;
        let value = self.value()?;
        let new_value = if changes { Some(self.value()?) } else { None };
        Ok(UndoField::Virtual {
            column: position - VIRTUAL_BASE,
            indexes,
            value,
            new_value,
        })
    }

    /// Checks `n` values and yields them.
    fn values(&mut self, n: usize) -> Result<UndoValues<'a>> {
        let values = UndoValues {
            cursor: self.clone(),
            left: n,
        };
        for _ in 0..n {
            self.value()?;
        }
        Ok(values)
    }

    /// c(count) and the changed fields.
    fn changes(&mut self) -> Result<UndoFields<'a>> {
        let count = self.int()?;
        let mut cursor = UndoCursor {
            bytes: self.bytes,
            at: self.at,
            marked: false,
        };
        for _ in 0..count {
            cursor.field(true)?;
        }
        let bytes = &self.bytes[self.at..cursor.at];
        self.at = cursor.at;
        Ok(UndoFields {
            cursor: UndoCursor {
                bytes,
                at: 0,
                marked: false,
            },
            changes: true,
        })
    }

    /// The last part of a record: nothing (`None`), or 2 bytes length and that many bytes of fields.
    fn list(&mut self) -> Result<Option<UndoFields<'a>>> {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        if rest.is_empty() {
            return Ok(None);
        }
        if be::try_u16_at(rest, 0) != Some(rest.len() as u16) || rest.len() > u16::MAX as usize {
            return Err(bad("has a list of columns of another length"));
        }
        let cursor = UndoCursor {
            bytes: &rest[2..],
            at: 0,
            marked: false,
        };
        let fields = UndoFields {
            cursor,
            changes: false,
        };
        for field in fields.clone() {
            field?;
        }
        Ok(Some(fields))
    }
}

#[cold]
fn bad(what: &str) -> Error {
    Error::corrupt_bytes(format!("undo record: {what}"))
}

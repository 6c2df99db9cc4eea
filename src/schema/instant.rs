//! Instant ALTER TABLE: what the clustered index root and the metadata record say
//! (format-tablespace.md section 15).

use crate::format::column::{ColumnType, Mtype, Prtype};
use crate::words::{Error, Result};

use super::index::{Field, FieldColumn, Index};
use super::table::Table;
use super::value::FieldRef;

/// State of a clustered index after instant ALTER.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstantState {
    /// Fields of a record as of the last rebuild, key and system columns included.
    pub n_core_fields: u16,
    /// Bytes of the NULL bitmap of records with exactly the core fields, and of node pointers.
    pub core_null_bytes: u8,
    /// True if columns were dropped or reordered: the metadata record has a BLOB.
    pub is_alter: bool,
    /// Values of fields `n_core_fields..` that a record lacks; NULL = `None`. Off-page ones are
    /// fetched in full.
    pub defaults: Vec<Option<Box<[u8]>>>,
}

impl InstantState {
    /// The value of field `i` where the record does not store it; NULL if none is known.
    pub fn default_of(&self, i: usize) -> FieldRef<'_> {
        let at = i.checked_sub(self.n_core_fields as usize);
        match at.and_then(|at| self.defaults.get(at)) {
            Some(Some(bytes)) => FieldRef::Bytes(bytes),
            _ => FieldRef::Null,
        }
    }
}

/// One entry of the metadata BLOB: the field that follows the system columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldMapEntry {
    /// A column of the present table, by ordinal.
    Column(u16),
    /// A dropped column.
    Dropped {
        /// It was NOT NULL.
        not_null: bool,
        /// Its bytes if it was fixed.
        fixed_len: Option<u16>,
        /// It was variable and longer than 255 bytes.
        big: bool,
    },
}

impl FieldMapEntry {
    /// Decodes the two bytes.
    pub fn from_word(word: u16) -> FieldMapEntry {
        let low = word & 0x3FF;
        if word & 0x8000 == 0 {
            return FieldMapEntry::Column(low);
        }
        FieldMapEntry::Dropped {
            not_null: word & 0x4000 != 0,
            fixed_len: low.checked_sub(1).filter(|&len| len > 0),
            big: low == 1,
        }
    }

    /// The two bytes.
    pub fn to_word(self) -> u16 {
        match self {
            FieldMapEntry::Column(ordinal) => ordinal,
            FieldMapEntry::Dropped {
                not_null,
                fixed_len,
                big,
            } => {
                0x8000
                    | if not_null { 0x4000 } else { 0 }
                    | fixed_len.map_or(u16::from(big), |len| len + 1)
            }
        }
    }

    fn dropped_type(not_null: bool, fixed_len: Option<u16>, big: bool) -> ColumnType {
        let prtype = Prtype(Prtype::BINARY_TYPE | if not_null { Prtype::NOT_NULL } else { 0 });
        match fixed_len {
            Some(len) => ColumnType {
                mtype: Mtype::FixBinary,
                prtype,
                len,
            },
            None if big => ColumnType {
                mtype: Mtype::Binary,
                prtype,
                len: u16::MAX,
            },
            None => ColumnType {
                mtype: Mtype::Binary,
                prtype,
                len: 255,
            },
        }
    }
}

impl Table {
    /// Notes that the clustered root says "instant": records may have `n_core_fields` fields.
    ///
    /// `core_null_bytes` is stored in the root by the ALTER kind; `field_map` is the content of its
    /// metadata BLOB and puts the fields into their physical order. Defaults follow by
    /// `set_instant_defaults`, once the metadata record can be parsed.
    pub fn set_instant(
        &mut self,
        n_core_fields: u16,
        core_null_bytes: Option<u8>,
        field_map: Option<&[FieldMapEntry]>,
    ) -> Result<()> {
        let compact = self.is_compact();
        let index = &mut self.indexes[0];
        let base = match index.trx_id_field {
            Some(i) => i as usize + 2,
            None => return Err(Error::internal("the clustered index has no DB_TRX_ID")),
        };
        if let Some(map) = field_map {
            index.fields = mapped_fields(index, base, map, compact)?;
            index.n_nullable = index.fields.iter().filter(|f| f.nullable).count() as u16;
            index.fixed_ends = None;
        }
        let n = n_core_fields as usize;
        if n < base || n > index.fields.len() {
            return Err(Error::corrupt_bytes(format!(
                "the root says {n} core fields, the index has {}",
                index.fields.len()
            )));
        }
        let derived = index.null_bytes_of(n);
        let core_null_bytes = core_null_bytes.map_or(derived, usize::from);
        if core_null_bytes > 128 {
            return Err(Error::corrupt_bytes("the core NULL bitmap is too long"));
        }
        index.instant = Some(InstantState {
            n_core_fields,
            core_null_bytes: core_null_bytes as u8,
            is_alter: field_map.is_some(),
            defaults: Vec::new(),
        });
        Ok(())
    }

    /// Sets the values of fields that older records lack, in field order from the first added one.
    pub fn set_instant_defaults(&mut self, defaults: Vec<Option<Box<[u8]>>>) {
        if let Some(instant) = &mut self.indexes[0].instant {
            instant.defaults = defaults;
        }
    }
}

/// The first `base` fields, then those of the map. Every column must occur once.
fn mapped_fields(
    index: &Index,
    base: usize,
    map: &[FieldMapEntry],
    compact: bool,
) -> Result<Box<[Field]>> {
    let live = &index.fields[base..];
    let mut used = vec![false; live.len()];
    let mut fields = index.fields[..base].to_vec();
    for entry in map {
        match *entry {
            FieldMapEntry::Column(ordinal) => {
                let at = live
                    .iter()
                    .position(|f| f.column == FieldColumn::Stored(ordinal));
                let at = at.filter(|&at| !std::mem::replace(&mut used[at], true));
                let Some(at) = at else {
                    return Err(Error::corrupt_bytes(format!(
                        "the instant metadata names column {ordinal}, which is not there or twice"
                    )));
                };
                fields.push(live[at].clone());
            }
            FieldMapEntry::Dropped {
                not_null,
                fixed_len,
                big,
            } => {
                let ty = FieldMapEntry::dropped_type(not_null, fixed_len, big);
                fields.push(Field::new(FieldColumn::Dropped, ty, 0, false, compact));
            }
        }
    }
    if used.iter().any(|&seen| !seen) {
        return Err(Error::corrupt_bytes(
            "the instant metadata lacks a column of the table",
        ));
    }
    Ok(fields.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_entries_keep_their_words() {
        for word in [0x0002, 0xC005, 0x0003, 0x0001, 0x8000, 0x8001, 0xC001] {
            assert_eq!(FieldMapEntry::from_word(word).to_word(), word, "{word:#x}");
        }
        assert_eq!(
            FieldMapEntry::from_word(0xC005),
            FieldMapEntry::Dropped {
                not_null: true,
                fixed_len: Some(4),
                big: false
            }
        );
    }
}

//! Search inside one page: binary in the directory, then linear in a group of at most eight.
//!
//! Every step is bounded: a damaged list or directory ends in `Error::Corrupt`.

use std::cmp::Ordering;

use crate::format::index_page::OWNED_MAX;
use crate::format::record as header;
use crate::host::collation::CollationSource;
use crate::schema::compare::{KeyKind, compare_fields};
use crate::schema::{Field, FieldRef, Index, Tuple};
use crate::sync::prefetch;
use crate::words::{Result, difference};

use super::layout::{self, RecOffset, corrupt};
use super::offsets::FieldWalk;
use super::record;

/// What to look for. In inner pages a descent uses `Less` for the goals `Less` and
/// `GreaterOrEqual`, and `LessOrEqual` for the other two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchMode {
    /// The last record below the key.
    Less,
    /// The last record below or equal to the key: where an equal or lower record ends.
    LessOrEqual,
    /// The first record equal to or above the key.
    GreaterOrEqual,
    /// The first record above the key.
    Greater,
}

/// Two neighbouring records with the key between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The record that the mode asked for: `low` or `up`. May be a system record.
    pub rec: RecOffset,
    /// The last record that is below the key (or equal, for `LessOrEqual` and `Greater`).
    pub low: RecOffset,
    /// The record after `low`.
    pub up: RecOffset,
    /// Leading key fields in which `low` equals the key.
    pub low_match: u16,
    /// Leading key fields in which `up` equals the key.
    pub up_match: u16,
}

/// Finds `key` among the records of a page that `layout::check` accepted.
///
/// The key may have fewer fields than the index; then all records that begin with it count as equal.
pub fn search(
    page: &[u8],
    index: &Index,
    key: &Tuple,
    mode: SearchMode,
    collations: &dyn CollationSource,
) -> Result<Found> {
    let equal_is_low = matches!(mode, SearchMode::LessOrEqual | SearchMode::Greater);
    let mut search = Search {
        page,
        index,
        key,
        plain: Plain::of(page, index, key),
        equal_is_low,
        collations,
        low: layout::infimum(page),
        up: layout::supremum(page),
        low_match: 0,
        up_match: 0,
    };
    search.directory()?;
    search.group()?;
    let Search {
        low,
        up,
        low_match,
        up_match,
        ..
    } = search;
    let rec = match mode {
        SearchMode::Less | SearchMode::LessOrEqual => low,
        SearchMode::GreaterOrEqual | SearchMode::Greater => up,
    };
    Ok(Found {
        rec,
        low,
        up,
        low_match,
        up_match,
    })
}

struct Search<'a> {
    page: &'a [u8],
    index: &'a Index,
    key: &'a Tuple,
    plain: Plain<'a>,
    equal_is_low: bool,
    collations: &'a dyn CollationSource,
    low: RecOffset,
    up: RecOffset,
    low_match: u16,
    up_match: u16,
}

impl Search<'_> {
    /// Narrows to one directory group.
    fn directory(&mut self) -> Result<()> {
        let (mut low_slot, mut up_slot) = (0, layout::n_dir_slots(self.page) - 1);
        while up_slot - low_slot > 1 {
            let middle = (low_slot + up_slot) / 2;
            // Whichever way it goes, the record that decides next is on its way from memory.
            for next in [(low_slot + middle) / 2, (middle + up_slot) / 2] {
                prefetch(self.page, layout::slot(self.page, next));
            }
            let rec = layout::check_origin(self.page, layout::slot(self.page, middle))?;
            if self.step(rec)? {
                low_slot = middle
            } else {
                up_slot = middle
            }
        }
        Ok(())
    }

    /// Narrows to two neighbours.
    fn group(&mut self) -> Result<()> {
        for _ in 0..=OWNED_MAX {
            let rec = layout::next(self.page, self.low)?;
            if rec == self.up {
                return Ok(());
            }
            if !self.step(rec)? {
                return Ok(());
            }
        }
        Err(corrupt(
            self.page,
            format!("a group of too many records at {}", self.low.0),
        ))
    }

    /// Moves `low` or `up` to `rec`; true if it was `low`.
    #[inline]
    fn step(&mut self, rec: RecOffset) -> Result<bool> {
        let (order, matched) = match self.plain.compare(self.page, rec) {
            Some(decided) => decided,
            None => {
                let matched = self.low_match.min(self.up_match);
                let (page, index, key) = (self.page, self.index, self.key);
                compare_from(page, rec, index, key, matched, self.collations)?
            }
        };
        let is_low = match order {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => self.equal_is_low,
        };
        if is_low {
            (self.low, self.low_match) = (rec, matched);
        } else {
            (self.up, self.up_match) = (rec, matched);
        }
        Ok(is_low)
    }
}

/// The leading fields of a key that lie side by side in every record, at its origin: NOT NULL, of
/// fixed length, ascending, ordered by their bytes, in a COMPACT page. Most keys are integers, so
/// that one comparison of a few bytes decides, and no field's place has to be computed.
pub(super) struct Plain<'a> {
    bytes: &'a [u8],
    fields: &'a [Field],
    /// The key has no more fields: equal bytes are equal keys.
    is_whole_key: bool,
}

impl<'a> Plain<'a> {
    pub(super) fn of(page: &[u8], index: &'a Index, key: &'a Tuple) -> Plain<'a> {
        let in_record = if layout::is_leaf(page) {
            index.fields.len()
        } else {
            index.n_node_key_fields()
        };
        // The key of the lowest node pointer is an order of its own.
        let usable = index.compact && key.info_bits & header::MIN_REC == 0;
        let lens = index.fields[..if usable { in_record } else { 0 }]
            .iter()
            .take_while(|field| {
                field.fixed_len != 0
                    && !field.nullable
                    && !field.desc
                    && field.kind == KeyKind::Bytes
            })
            .map(|field| field.fixed_len as usize);
        let (count, bytes) = key.leading_run(lens);
        Plain {
            bytes,
            fields: &index.fields[..count],
            is_whole_key: count == key.len().min(in_record),
        }
    }

    /// As `compare_record` where these fields decide; `None` where they do not, or where the record
    /// is not one that they can be read from (the long way says what is wrong with it).
    #[inline]
    pub(super) fn compare(&self, page: &[u8], rec: RecOffset) -> Option<(Ordering, u16)> {
        let end = rec.at() + self.bytes.len();
        if self.fields.is_empty()
            || end > layout::heap_limit(page)
            || layout::is_system(page, rec)
            || record::is_min_rec(page, rec)
        {
            return None;
        }
        let in_page = &page[rec.at()..end];
        match difference::first(self.bytes, in_page) {
            Some(at) => Some((self.bytes[at].cmp(&in_page[at]), self.fields_before(at))),
            None if self.is_whole_key => Some((Ordering::Equal, self.fields.len() as u16)),
            None => None,
        }
    }

    /// Whole fields before a byte.
    fn fields_before(&self, at: usize) -> u16 {
        let (mut end, mut count) = (0, 0);
        for field in self.fields {
            end += field.fixed_len as usize;
            if end > at {
                break;
            }
            count += 1;
        }
        count
    }
}

/// Order of `key` relative to the record at `rec` (`Greater`: the key is above), and the number of
/// leading fields in which they are equal. `rec` is a user record.
pub fn compare_record(
    page: &[u8],
    rec: RecOffset,
    index: &Index,
    key: &Tuple,
    collations: &dyn CollationSource,
) -> Result<(Ordering, u16)> {
    compare_from(page, rec, index, key, 0, collations)
}

/// As `compare_record`; the caller knows that the first `matched` fields are equal.
fn compare_from(
    page: &[u8],
    rec: RecOffset,
    index: &Index,
    key: &Tuple,
    matched: u16,
    collations: &dyn CollationSource,
) -> Result<(Ordering, u16)> {
    if record::is_min_rec(page, rec) {
        let both = key.info_bits & header::MIN_REC != 0;
        return Ok((
            if both {
                Ordering::Equal
            } else {
                Ordering::Greater
            },
            0,
        ));
    }
    if key.info_bits & header::MIN_REC != 0 {
        return Ok((Ordering::Less, 0));
    }
    let mut walk = FieldWalk::begin(page, rec, index)?;
    let n = key.len().min(walk.len());
    for i in 0..n {
        let step = walk.step()?;
        if i < matched as usize {
            continue;
        }
        let value = if step.is_missing() {
            index
                .instant
                .as_ref()
                .map_or(FieldRef::Null, |instant| instant.default_of(i))
        } else if step.is_null() {
            FieldRef::Null
        } else {
            let bytes = &page[step.start..step.end];
            if step.is_external() {
                FieldRef::External(bytes)
            } else {
                FieldRef::Bytes(bytes)
            }
        };
        match compare_fields(&index.fields[i], key.field(i), value, collations) {
            Ordering::Equal => {}
            decided => return Ok((decided, i as u16)),
        }
    }
    Ok((Ordering::Equal, n as u16))
}

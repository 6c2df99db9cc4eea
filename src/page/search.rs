//! Search inside one page: binary in the directory, then linear in a group of at most eight.
//!
//! Every step is bounded: a damaged list or directory ends in `Error::Corrupt`.

use std::cmp::Ordering;

use crate::format::index_page::{COMPACT, OWNED_MAX, SLOT_BYTES, TRAILER_BYTES};
use crate::format::record as header;
use crate::host::collation::CollationSource;
use crate::schema::compare::{KeyKind, compare_fields};
use crate::schema::{Field, FieldRef, Index, Tuple};
use crate::sync::prefetch;
use crate::words::{Result, be, difference};

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
    let plain = Plain::of(page, index, key);
    if let Some((low, up)) = plain.between(page, equal_is_low) {
        return Ok(Found {
            rec: match mode {
                SearchMode::Less | SearchMode::LessOrEqual => low,
                SearchMode::GreaterOrEqual | SearchMode::Greater => up,
            },
            low,
            up,
            low_match: plain.matched(page, low),
            up_match: plain.matched(page, up),
        });
    }
    let mut search = Search {
        page,
        index,
        key,
        plain,
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
        let (count, bytes) = leading_plain(index, in_record, key);
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

    /// The neighbours between which a whole key belongs: the search that most searches are. `None` if
    /// one of the records on the way is not one that only these bytes order, or cannot be: the long
    /// way says which.
    #[inline]
    fn between(&self, page: &[u8], equal_is_low: bool) -> Option<(RecOffset, RecOffset)> {
        if !self.is_whole_key {
            return None;
        }
        let run = Run::of(page, self.bytes.len(), equal_is_low)?;
        match self.bytes.len() {
            8 => {
                let key = be::u64_at(self.bytes, 0);
                run.between(|at| key.cmp(&be::u64_at(page, at)))
            }
            4 => {
                let key = be::u32_at(self.bytes, 0);
                run.between(|at| key.cmp(&be::u32_at(page, at)))
            }
            0 => None,
            len => run.between(|at| self.bytes.cmp(&page[at..at + len])),
        }
    }

    /// Leading fields in which a record that `between` found equals the key.
    fn matched(&self, page: &[u8], rec: RecOffset) -> u16 {
        if layout::is_system(page, rec) {
            return 0;
        }
        match difference::first(self.bytes, &page[rec.at()..rec.at() + self.bytes.len()]) {
            Some(at) => self.fields_before(at),
            None => self.fields.len() as u16,
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

/// Slots of a directory of which all records are asked for at once; they come at the same time.
const SLOTS_ASKED_FOR: usize = 16;

/// A COMPACT page, for a search that looks at keys of one length and nothing else.
struct Run<'p> {
    page: &'p [u8],
    /// Where a record with such a key may stand, first and last.
    lowest: usize,
    highest: usize,
    slots: usize,
    equal_is_low: bool,
}

impl<'p> Run<'p> {
    fn of(page: &'p [u8], key_bytes: usize, equal_is_low: bool) -> Option<Run<'p>> {
        let slots = layout::n_dir_slots(page);
        if slots <= SLOTS_ASKED_FOR {
            let end = page.len().checked_sub(TRAILER_BYTES)?;
            let directory = page.get(end.checked_sub(SLOT_BYTES * slots)?..end)?;
            for slot in directory.chunks_exact(SLOT_BYTES) {
                prefetch(page, usize::from(be::u16_at(slot, 0)));
            }
        }
        Some(Run {
            page,
            lowest: usize::from(COMPACT.heap + COMPACT.info_back),
            highest: layout::heap_limit(page).checked_sub(key_bytes)?,
            slots,
            equal_is_low,
        })
    }

    /// True if the record at `at` belongs below the key. `order`: the key against the bytes there.
    #[inline(always)]
    fn is_low(&self, at: usize, order: &impl Fn(usize) -> Ordering) -> Option<bool> {
        if at < self.lowest || at > self.highest {
            return None;
        }
        if header::info_bits(self.page, at, true) & header::MIN_REC != 0 {
            return None;
        }
        Some(match order(at) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => self.equal_is_low,
        })
    }

    #[inline(always)]
    fn between(&self, order: impl Fn(usize) -> Ordering) -> Option<(RecOffset, RecOffset)> {
        let page = self.page;
        let (mut low_slot, mut up_slot) = (0, self.slots.checked_sub(1)?);
        let (mut low, mut up) = (COMPACT.infimum as usize, COMPACT.supremum as usize);
        while up_slot - low_slot > 1 {
            let middle = (low_slot + up_slot) / 2;
            if self.slots > SLOTS_ASKED_FOR {
                // Whichever way it goes, the record that decides next is on its way from memory.
                prefetch(page, layout::slot(page, (low_slot + middle) / 2));
                prefetch(page, layout::slot(page, (middle + up_slot) / 2));
            }
            let at = layout::slot(page, middle);
            match self.is_low(at, &order)? {
                true => (low_slot, low) = (middle, at),
                false => (up_slot, up) = (middle, at),
            }
        }
        for _ in 0..=OWNED_MAX {
            let at = header::next(page, low, true);
            if at == up {
                return Some((RecOffset(low as u16), RecOffset(up as u16)));
            }
            match self.is_low(at, &order)? {
                true => low = at,
                false => return Some((RecOffset(low as u16), RecOffset(at as u16))),
            }
        }
        None
    }
}

/// Lengths of the leading fields of records that have `in_record` fields, as `Plain` says.
fn plain_lens(index: &Index, in_record: usize) -> impl Iterator<Item = usize> {
    let fields = &index.fields[..if index.compact { in_record } else { 0 }];
    let is_plain = |field: &&Field| {
        field.fixed_len != 0 && !field.nullable && !field.desc && field.kind == KeyKind::Bytes
    };
    let plain = fields.iter().take_while(is_plain);
    plain.map(|field| field.fixed_len as usize)
}

/// The key's part of `Plain`: how many fields, and their bytes.
#[inline]
pub fn leading_plain<'k>(index: &Index, in_record: usize, key: &'k Tuple) -> (usize, &'k [u8]) {
    // The key of the lowest node pointer is an order of its own.
    if key.info_bits & header::MIN_REC != 0 {
        return (0, &[]);
    }
    key.leading_run(plain_lens(index, in_record))
}

/// Bytes at the origin of every record that has `in_record` fields, which order as the records do.
pub fn plain_bytes(index: &Index, in_record: usize) -> usize {
    plain_lens(index, in_record).sum()
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

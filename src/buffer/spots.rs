//! Spots: where records stand on a leaf, by a hash of their keys.
//!
//! A search in a leaf waits for memory again and again: for the directory, for records that it names, for
//! one record of a group after the other. A leaf that is often visited while nobody changes it gets spots:
//! some cache lines that belong to its frame, of which the hash of a key chooses one. That line says where
//! records with such a hash stand, so that line and record are all that is waited for.
//!
//! Spots belong to one version of a frame's bytes. They are written and believed under the frame's latch
//! alone: one holder of S writes them, and ends before it gives the latch back, so whoever holds the latch
//! and finds them complete for the version that he sees has what was written of these very bytes. A version
//! never comes twice. A line has room for some records; those that find none are found by the search.

use super::guide::big_endian;
use super::region::Array;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::words::Result;

/// Lines of a frame.
const LINES: usize = 4;
const WORDS: usize = 8;
/// In a line: the stamp, a byte of the hash for each record, two bytes for where it stands; 0: nowhere.
const STAMP: usize = 0;
const PRINTS: usize = 1;
const PLACES: usize = 3;
const RECORDS_OF_LINE: usize = 16;

/// Records of a page that has spots: of more, too few would be found.
pub const RECORDS_MAX: usize = 2 * LINES * RECORDS_OF_LINE;
/// Visits of a leaf in one version before it gets spots: about as many as writing them costs.
const VISITS: u64 = 8;
/// What a stamp says of its version, beside visits.
const WRITING: u64 = 0xFE;
const COMPLETE: u64 = 0xFF;

const EACH_BYTE: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The hash of a record's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash(u64);

impl KeyHash {
    /// Of a key's bytes.
    #[inline]
    pub fn of(key: &[u8]) -> KeyHash {
        let mut hash = key.len() as u64;
        for chunk in key.chunks(8) {
            let mixed = (hash ^ big_endian(chunk)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash = mixed ^ (mixed >> 32);
        }
        // Whatever bits of the key are different, those at the top are.
        KeyHash(hash.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    fn line(self) -> usize {
        (self.0 >> 32) as usize % LINES
    }

    fn print(self) -> u64 {
        self.0 >> 56
    }
}

/// The spots of all frames.
pub(super) struct Spots {
    words: Array<AtomicU64>,
}

impl Spots {
    /// For at most so many frames; `commit` says for how many.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn reserve(frame_count_max: usize) -> Result<Spots> {
        let words = Array::reserve(frame_count_max * LINES * WORDS)?;
        Ok(Spots { words })
    }

    /// There is room for so many frames from here on. For one thread at a time.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn commit(&self, frame_count: usize) -> Result<()> {
        self.words.commit(frame_count * LINES * WORDS)
    }

    #[inline]
    fn line(&self, frame: u32, line: usize) -> Option<&[AtomicU64; WORDS]> {
        let at = (frame as usize * LINES + line) * WORDS;
        self.words.get(at..at + WORDS)?.first_chunk()
    }

    /// A place on the page of `frame`, in its bytes of `version`, that `is_it` accepts. To be believed by
    /// who holds the frame's latch and sees this version; a hint for others.
    #[inline]
    pub(super) fn find(
        &self,
        frame: u32,
        version: u64,
        hash: KeyHash,
        mut is_it: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let line = self.line(frame, hash.line())?;
        // Acquire: with the stamp comes the line.
        if line[STAMP].load(Ordering::Acquire) != stamp(version, COMPLETE) {
            return None;
        }
        for (half, prints) in line[PRINTS..PLACES].iter().enumerate() {
            let different = prints.load(Ordering::Relaxed) ^ (hash.print() * EACH_BYTE);
            // The high bit of each byte that is 0, and perhaps of some above it.
            let mut same = different.wrapping_sub(EACH_BYTE) & !different & HIGH_BITS;
            while same != 0 {
                let number = 8 * half + same.trailing_zeros() as usize / 8;
                same &= same - 1;
                let places = line[PLACES + number / 4].load(Ordering::Relaxed);
                let place = (places >> (16 * (number % 4))) as u16;
                if place != 0 && is_it(usize::from(place)) {
                    return Some(usize::from(place));
                }
            }
        }
        None
    }

    /// A visit of a leaf that is latched S and was searched. True if the caller is to write its spots.
    pub(super) fn is_wanted(&self, frame: u32, version: u64) -> bool {
        let Some(line) = self.line(frame, 0) else {
            return false;
        };
        let seen = line[STAMP].load(Ordering::Relaxed);
        let visits = match (seen >> 8 == version << 8 >> 8, seen & 0xFF) {
            (true, WRITING | COMPLETE) => return false,
            (true, visits) => visits + 1,
            (false, _) => 1,
        };
        let is_enough = visits >= VISITS;
        let now = stamp(version, if is_enough { WRITING } else { visits });
        let order = Ordering::Relaxed;
        let is_mine = line[STAMP].compare_exchange(seen, now, order, order);
        is_mine.is_ok() && is_enough
    }

    /// Writes the spots that `is_wanted` asked for, under the same latch.
    pub(super) fn write(
        &self,
        frame: u32,
        version: u64,
        records: impl Iterator<Item = (KeyHash, usize)>,
    ) {
        let mut drawn = [[0u64; WORDS]; LINES];
        let mut counts = [0; LINES];
        for (hash, place) in records {
            let (line, number) = (&mut drawn[hash.line()], counts[hash.line()]);
            if number == RECORDS_OF_LINE {
                continue;
            }
            counts[hash.line()] += 1;
            line[PRINTS + number / 8] |= hash.print() << (8 * (number % 8));
            line[PLACES + number / 4] |= (place as u64 & 0xFFFF) << (16 * (number % 4));
        }
        // The first line's stamp, by which others know that somebody writes, comes last.
        for (number, words) in drawn.iter().enumerate().rev() {
            let Some(line) = self.line(frame, number) else {
                return;
            };
            for (to, word) in line.iter().zip(words).skip(1) {
                to.store(*word, Ordering::Relaxed);
            }
            line[STAMP].store(stamp(version, COMPLETE), Ordering::Release);
        }
    }

    /// Where the line is in which `hash` is looked up.
    #[inline]
    pub(super) fn address(&self, frame: u32, hash: KeyHash) -> *const u8 {
        let line = self.line(frame, hash.line());
        line.map_or(std::ptr::null(), |line| line.as_ptr().cast())
    }
}

fn stamp(version: u64, says: u64) -> u64 {
    version << 8 | says
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spots() -> Spots {
        let spots = Spots::reserve(4).expect("addresses");
        spots.commit(4).expect("memory");
        spots
    }

    fn records(count: u64) -> Vec<(KeyHash, usize)> {
        let record = |i: u64| (KeyHash::of(&i.to_be_bytes()), 120 + 30 * i as usize);
        (0..count).map(record).collect()
    }

    fn visited(spots: &Spots, frame: u32, version: u64) -> u64 {
        (1..)
            .find(|_| spots.is_wanted(frame, version))
            .expect("after some visits")
    }

    #[test]
    fn records_are_found_where_they_stand() {
        let spots = spots();
        assert_eq!(visited(&spots, 2, 6), VISITS);
        assert!(!spots.is_wanted(2, 6), "one writes");
        let all = records(48);
        spots.write(2, 6, all.iter().copied());
        assert!(!spots.is_wanted(2, 6), "they are there");
        let found =
            |&(hash, place): &(KeyHash, usize)| spots.find(2, 6, hash, |at| at == place).is_some();
        let count = all.iter().filter(|record| found(record)).count();
        assert!(count >= 44, "{count} of 48");
        // Other versions, other frames.
        for (frame, version) in [(2, 4), (2, 8), (1, 6), (3, 6), (9, 6)] {
            let any = all
                .iter()
                .find_map(|(hash, _)| spots.find(frame, version, *hash, |_| true));
            assert_eq!(any, None);
        }
    }

    #[test]
    fn a_changed_leaf_begins_anew() {
        let spots = spots();
        visited(&spots, 1, 4);
        spots.write(1, 4, records(20).into_iter());
        assert_eq!(visited(&spots, 1, 6), VISITS);
        // Half-way somebody changes it again; who was to write gave up.
        assert!((1..VISITS).all(|_| !spots.is_wanted(1, 8)));
        assert_eq!(visited(&spots, 1, 10), VISITS);
        spots.write(1, 10, records(1).into_iter());
        let first = records(20)[0];
        assert_eq!(spots.find(1, 10, first.0, |_| true), Some(first.1));
        let others = records(20).into_iter().skip(1);
        assert!(
            others
                .filter(|record| spots.find(1, 10, record.0, |at| at == record.1).is_some())
                .count()
                == 0
        );
    }

    #[test]
    fn records_without_room_are_left_out() {
        let spots = spots();
        visited(&spots, 0, 2);
        let all = records(RECORDS_MAX as u64);
        spots.write(0, 2, all.iter().copied());
        let found =
            |record: &&(KeyHash, usize)| spots.find(0, 2, record.0, |at| at == record.1).is_some();
        assert_eq!(all.iter().filter(found).count(), LINES * RECORDS_OF_LINE);
    }
}

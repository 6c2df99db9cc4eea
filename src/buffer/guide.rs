//! Guides: what an inner page of a tree says, as two arrays that are read without a latch.
//!
//! Page bytes are read under a latch only, since a holder of X changes them as plain memory. A descent
//! that latches every inner page writes to cache lines that all others write to as well, and its binary
//! search touches another line with every record. A guide is made from an inner page under S: the first
//! bytes of its keys, and beside them the children with the frames in which they stood last. Its words
//! are atomics in memory that is never given back, so a reader may always look, and finds out afterwards
//! whether what it saw holds: the guide was not rewritten meanwhile (a sequence number), and the frame
//! still has the page with the version from which the guide was made (`Pool::still`).

use super::frame::{Frame, NO_FRAME};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::sync::{Mutex, Once, Rank};
use crate::words::PageNo;

/// Frames for each guide: inner pages are far fewer than one in a hundred.
const FRAMES_PER_GUIDE: usize = 256;
const GUIDES_MIN: usize = 8;
/// Visits of an inner page without a guide before one is made.
const VISITS: u8 = 16;
/// Guides that are looked at for one that nobody used lately.
const LOOKED_AT: usize = 4;

/// Odd while the guide is being written.
const SEQUENCE: usize = 0;
const PAGE: usize = 1;
const VERSION: usize = 2;
const TREE: usize = 3;
/// Number of children; the page's level; bytes that all keys begin with; bytes of a key that count.
const SHAPE: usize = 4;
const SHARED: usize = 5;
const SHARED_WORDS: usize = 4;
pub(super) const HEAD: usize = SHARED + SHARED_WORDS;

/// Bytes that all keys of a page may begin with, at most.
pub const SHARED_MAX: usize = 8 * SHARED_WORDS;
/// Bytes of a key in one word.
pub const WINDOW: usize = 8;

/// A page as it was seen, not kept: `Pool::still` tells whether it is what it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sight {
    pub(super) frame: u32,
    pub(super) page: u64,
    pub(super) version: u64,
}

/// What to look for in guides.
#[derive(Clone, Copy, Debug)]
pub struct Want<'k> {
    /// The tree's id.
    pub tree: u64,
    /// The leading bytes of the key.
    pub key: &'k [u8],
    /// There is no more of the key: what begins with these bytes equals it.
    pub is_whole: bool,
    /// The last child whose key is below the key or equal to it, else the last one below it.
    pub equal_is_low: bool,
}

/// What a guide said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    /// The child to go to.
    pub child: PageNo,
    /// Level of the page whose guide this was; the child is one level below.
    pub level: u16,
    /// Where the child stood last.
    pub(super) hint: u32,
    /// Which word said so.
    guide: u32,
    word: u32,
}

/// An inner page, for its guide. The first child has no key: it is gone to when no other one is.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The tree's id.
    pub tree: u64,
    /// The page's level.
    pub level: u16,
    /// Leading bytes that all keys have, at most `SHARED_MAX`.
    pub shared: Vec<u8>,
    /// Bytes of a key that count, those included.
    pub key_bytes: usize,
    /// The `WINDOW` bytes behind, as one big-endian number, padded with zeros; ascending.
    pub windows: Vec<u64>,
    /// The children.
    pub children: Vec<u32>,
}

pub(super) struct Guide {
    /// Made for the first page that needs it.
    pub(super) words: Once<Box<[AtomicU64]>>,
    used: AtomicBool,
}

/// All guides of a pool.
pub(super) struct Guides {
    pub(super) guides: Box<[Guide]>,
    /// Children that a guide may have.
    pub(super) children_max: usize,
    /// Held by who writes a guide: the one to look at next.
    hand: Mutex<usize>,
}

impl Guides {
    /// Room for the guides of a pool of at most so many frames; memory is taken when a guide is made.
    pub(super) fn new(frame_count_max: usize, page_size: usize) -> Guides {
        Guides {
            guides: (0..guides_of(frame_count_max))
                .map(|_| Guide {
                    words: Once::new(),
                    used: AtomicBool::new(false),
                })
                .collect(),
            // A node pointer of a four-byte key takes 13 bytes.
            children_max: page_size / 12,
            hand: Mutex::new(Rank::Leaf, 0),
        }
    }

    /// A guide by the number that a frame has: from 1 on, 0 is none.
    #[inline]
    fn guide(&self, number: u32) -> Option<&Guide> {
        self.guides.get((number as usize).wrapping_sub(1))
    }

    #[inline]
    fn words(&self, number: u32) -> Option<&[AtomicU64]> {
        self.guide(number)?.words.get().map(|words| &words[..])
    }

    /// What the guide of a page says. To be believed once the page is `still` what it was.
    #[inline]
    pub(super) fn ask(&self, frame: &Frame, at: &Sight, want: &Want<'_>) -> Option<Told> {
        let number = frame.guide.load(Ordering::Acquire);
        let guide = self.guide(number)?;
        let words = &guide.words.get()?[..];
        let sequence = words[SEQUENCE].load(Ordering::Acquire);
        let read = |at: usize| words[at].load(Ordering::Relaxed);
        if sequence & 1 != 0
            || read(PAGE) != at.page
            || read(VERSION) != at.version
            || read(TREE) != want.tree
        {
            return None;
        }
        let shape = Shape::of_word(read(SHAPE));
        // A guide that is being rewritten may say anything.
        let count = shape.count.min(self.children_max);
        let keys = words.get(HEAD..HEAD + count)?;
        let place = find(&shape, &words[SHARED..HEAD], keys, want)?;
        let word = HEAD + self.children_max + place;
        let said = words.get(word)?.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if words[SEQUENCE].load(Ordering::Relaxed) != sequence {
            return None;
        }
        if !guide.used.load(Ordering::Relaxed) {
            guide.used.store(true, Ordering::Relaxed);
        }
        Some(Told {
            child: PageNo((said >> 32) as u32),
            level: shape.level,
            hint: said as u32,
            guide: number,
            word: word as u32,
        })
    }

    /// The child stood in `frame`, and not where the guide said. If the word says something else by
    /// now, it stays: then it is about another child, or somebody was faster.
    pub(super) fn correct(&self, told: &Told, frame: u32) {
        let word = self
            .words(told.guide)
            .and_then(|words| words.get(told.word as usize));
        if let Some(word) = word {
            let child = u64::from(told.child.0) << 32;
            let (was, is) = (child | u64::from(told.hint), child | u64::from(frame));
            let _lost = word.compare_exchange(was, is, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// True if the latched page should get a guide: it has none of its version, and was visited often.
    pub(super) fn is_wanted(&self, frame: &Frame, at: &Sight) -> bool {
        let guide = frame.guide.load(Ordering::Acquire);
        let has = self.words(guide).is_some_and(|words| {
            let read = |at: usize| words[at].load(Ordering::Relaxed);
            read(PAGE) == at.page && read(VERSION) == at.version
        });
        if has {
            return false;
        }
        // Visits at the same time may count as one.
        let visits = frame.visits.load(Ordering::Relaxed) + 1;
        frame.visits.store(visits % VISITS, Ordering::Relaxed);
        visits >= VISITS
    }

    /// Writes the guide of a page that is latched S, if a pool of so many frames has room for one.
    pub(super) fn write(&self, frame: &Frame, at: &Sight, draft: &Draft, frame_count: usize) {
        let count = draft.children.len();
        if count == 0 || count > self.children_max || count != draft.windows.len() {
            return;
        }
        let Some(mut hand) = self.hand.try_lock() else {
            return;
        };
        let limit = guides_of(frame_count).min(self.guides.len());
        let Some(guide) = self.place_for(frame, at, limit, &mut hand) else {
            return;
        };
        let room = HEAD + 2 * self.children_max;
        let words = self.guides[guide]
            .words
            .get_or_init(|| (0..room).map(|_| AtomicU64::new(0)).collect());
        let sequence = words[SEQUENCE].load(Ordering::Relaxed);
        words[SEQUENCE].store(sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.fill(words, at, draft);
        words[SEQUENCE].store(sequence + 2, Ordering::Release);
        self.guides[guide].used.store(true, Ordering::Relaxed);
        frame.guide.store(guide as u32 + 1, Ordering::Release);
    }

    /// The page's own guide, else one that was not used since the hand came by.
    fn place_for(
        &self,
        frame: &Frame,
        at: &Sight,
        limit: usize,
        hand: &mut usize,
    ) -> Option<usize> {
        let own = frame.guide.load(Ordering::Relaxed);
        let is_own = |words: &[AtomicU64]| words[PAGE].load(Ordering::Relaxed) == at.page;
        if self.words(own).is_some_and(is_own) {
            return Some(own as usize - 1);
        }
        for _ in 0..LOOKED_AT {
            let next = *hand % limit;
            *hand = next + 1;
            if !self.guides[next].used.swap(false, Ordering::Relaxed) {
                return Some(next);
            }
        }
        None
    }

    fn fill(&self, words: &[AtomicU64], at: &Sight, draft: &Draft) {
        let write = |at: usize, word: u64| words[at].store(word, Ordering::Relaxed);
        let (old_page, old_shape) = (
            words[PAGE].load(Ordering::Relaxed),
            Shape::of_word(words[SHAPE].load(Ordering::Relaxed)),
        );
        write(PAGE, at.page);
        write(VERSION, at.version);
        write(TREE, draft.tree);
        let shape = Shape {
            count: draft.children.len(),
            level: draft.level,
            shared: draft.shared.len(),
            key_bytes: draft.key_bytes,
        };
        write(SHAPE, shape.to_word());
        for (i, chunk) in draft.shared.chunks(8).enumerate() {
            write(SHARED + i, big_endian(chunk));
        }
        for (i, window) in draft.windows.iter().enumerate() {
            write(HEAD + i, *window);
        }
        let base = HEAD + self.children_max;
        let old_count = match old_page == at.page {
            true => old_shape.count.min(self.children_max),
            false => 0,
        };
        let old: Vec<u64> = words[base..base + old_count]
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect();
        let mut hints = Hints { old: &old };
        for (i, child) in draft.children.iter().enumerate() {
            let hint = hints.of(*child);
            write(base + i, u64::from(*child) << 32 | u64::from(hint));
        }
    }
}

/// How many guides a pool of so many frames has.
pub(super) fn guides_of(frame_count: usize) -> usize {
    (frame_count / FRAMES_PER_GUIDE).max(GUIDES_MIN)
}

/// The children that a guide had before, in their order: few come or go at a time.
struct Hints<'o> {
    old: &'o [u64],
}

impl Hints<'_> {
    fn of(&mut self, child: u32) -> u32 {
        let near = &self.old[..self.old.len().min(3)];
        let Some(at) = near.iter().position(|word| (word >> 32) as u32 == child) else {
            return NO_FRAME;
        };
        let hint = self.old[at] as u32;
        self.old = &self.old[at + 1..];
        hint
    }
}

#[derive(Clone, Copy)]
struct Shape {
    count: usize,
    level: u16,
    shared: usize,
    key_bytes: usize,
}

impl Shape {
    fn to_word(self) -> u64 {
        (self.count as u64) << 32
            | u64::from(self.level) << 24
            | (self.shared as u64) << 16
            | (self.key_bytes as u64).min(0xFFFF)
    }

    fn of_word(word: u64) -> Shape {
        Shape {
            count: (word >> 32) as usize,
            level: (word >> 24) as u8 as u16,
            shared: (word >> 16) as u8 as usize,
            key_bytes: word as u16 as usize,
        }
    }
}

/// Up to eight bytes as a number that orders as they do.
pub fn big_endian(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => bytes
            .iter()
            .enumerate()
            .fold(0, |word, (i, byte)| word | u64::from(*byte) << (56 - 8 * i)),
    }
}

/// Which child to go to; `None` if these bytes do not decide it. The number of steps depends on the
/// length of `keys` alone, whatever they say.
#[inline]
fn find(shape: &Shape, shared: &[AtomicU64], keys: &[AtomicU64], want: &Want<'_>) -> Option<usize> {
    let last = keys.len().checked_sub(1)?;
    let key = &want.key[..want.key.len().min(shape.key_bytes)];
    let is_whole = want.is_whole && key.len() == want.key.len();
    let head = &key[..key.len().min(shape.shared).min(SHARED_MAX)];
    for (chunk, word) in head.chunks(8).zip(shared) {
        let mask = u64::MAX << (64 - 8 * chunk.len());
        let (wanted, here) = (big_endian(chunk), word.load(Ordering::Relaxed) & mask);
        if wanted != here {
            return Some(if wanted < here { 0 } else { last });
        }
    }
    let rest = &key[head.len()..];
    if rest.is_empty() {
        return match (is_whole, want.equal_is_low) {
            (false, _) => None,
            (true, true) => Some(last),
            (true, false) => Some(0),
        };
    }
    let rest = &rest[..rest.len().min(WINDOW)];
    let mask = u64::MAX << (64 - 8 * rest.len());
    let wanted = big_endian(rest);
    // The first child has no key.
    let keys = &keys[1..];
    let below = count(keys, |word| word & mask < wanted);
    let equal = |i: usize| {
        keys.get(i)
            .is_some_and(|word| word.load(Ordering::Relaxed) & mask == wanted)
    };
    if !equal(below) {
        return Some(below);
    }
    if !is_whole || head.len() + rest.len() < key.len() {
        return None;
    }
    match want.equal_is_low {
        true => Some(count(keys, |word| word & mask <= wanted)),
        false => Some(below),
    }
}

/// How many of the ascending `keys` are low: all before the first one that is not.
#[inline]
fn count(keys: &[AtomicU64], is_low: impl Fn(u64) -> bool) -> usize {
    let (mut base, mut len) = (0, keys.len());
    while len > 0 {
        let half = len / 2;
        let low = is_low(keys[base + half].load(Ordering::Relaxed));
        base = if low { base + half + 1 } else { base };
        len = if low { len - half - 1 } else { half };
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: u64 = 77;

    struct Bed {
        guides: Guides,
        frame: Frame,
        at: Sight,
    }

    impl Bed {
        fn new() -> Bed {
            let at = Sight {
                frame: 0,
                page: 5,
                version: 8,
            };
            Bed {
                guides: Guides::new(64, 16384),
                frame: Frame::default(),
                at,
            }
        }

        fn write(&self, keys: &[Vec<u8>], shared: usize) {
            let draft = Draft {
                tree: TREE,
                level: 1,
                shared: keys.get(1).map_or(Vec::new(), |key| key[..shared].to_vec()),
                key_bytes: keys[0].len(),
                windows: keys.iter().map(|key| big_endian(&key[shared..])).collect(),
                children: (0..keys.len() as u32).map(|i| i + 10).collect(),
            };
            self.guides.write(&self.frame, &self.at, &draft, 64);
        }

        fn ask(&self, key: &[u8], is_whole: bool, equal_is_low: bool) -> Option<u32> {
            let want = Want {
                tree: TREE,
                key,
                is_whole,
                equal_is_low,
            };
            let told = self.guides.ask(&self.frame, &self.at, &want)?;
            assert_eq!(told.level, 1);
            Some(told.child.0 - 10)
        }
    }

    fn dice(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *seed >> 33
    }

    #[test]
    fn the_child_is_the_one_that_all_keys_side_by_side_give() {
        let mut seed = 3;
        let mut undecided = 0;
        for round in 0..600 {
            let bed = Bed::new();
            let len = 1 + dice(&mut seed) as usize % 14;
            let shared = dice(&mut seed) as usize % len;
            let n = 1 + dice(&mut seed) as usize % 40;
            let letters = 2 + dice(&mut seed) % 3;
            let mut keys: Vec<Vec<u8>> = (0..n)
                .map(|_| {
                    let tail = (shared..len).map(|_| (dice(&mut seed) % letters) as u8 * 85);
                    std::iter::repeat_n(7, shared).chain(tail).collect()
                })
                .collect();
            keys.sort();
            keys.dedup();
            bed.write(&keys, shared);
            for _ in 0..60 {
                let own = 1 + dice(&mut seed) as usize % len;
                let mut key: Vec<u8> = (0..own)
                    .map(|i| match i < shared && dice(&mut seed) % 8 > 0 {
                        true => 7,
                        false => (dice(&mut seed) % letters) as u8 * 85,
                    })
                    .collect();
                if dice(&mut seed) % 4 == 0 {
                    key = keys[dice(&mut seed) as usize % keys.len()][..own].to_vec();
                }
                for equal_is_low in [false, true] {
                    let low = |other: &Vec<u8>| match other[..own].cmp(&key) {
                        std::cmp::Ordering::Less => true,
                        std::cmp::Ordering::Equal => equal_is_low,
                        std::cmp::Ordering::Greater => false,
                    };
                    let child = keys[1..].iter().filter(|key| low(key)).count() as u32;
                    let said = bed.ask(&key, true, equal_is_low);
                    match said {
                        Some(said) => assert_eq!(said, child, "round {round}: {key:?} in {keys:?}"),
                        None => {
                            undecided += 1;
                            assert!(own > shared + WINDOW, "round {round}: {key:?} in {keys:?}");
                        }
                    }
                    // Of a key that goes on: what is said at all is said of every continuation.
                    if let Some(said) = bed.ask(&key, false, equal_is_low) {
                        assert_eq!(said, child);
                        assert!(!keys[1..].iter().any(|other| other[..own] == key[..]));
                    }
                }
            }
        }
        assert!(undecided > 0);
    }

    #[test]
    fn a_guide_of_another_version_or_page_or_tree_says_nothing() {
        let mut bed = Bed::new();
        bed.write(&[vec![0; 4], vec![1; 4]], 0);
        assert_eq!(bed.ask(&[2; 4], true, true), Some(1));
        bed.at.version += 2;
        assert_eq!(bed.ask(&[2; 4], true, true), None);
        bed.at = Sight { page: 6, ..bed.at };
        bed.at.version -= 2;
        assert_eq!(bed.ask(&[2; 4], true, true), None);
        bed.at.page = 5;
        let other = Want {
            tree: TREE + 1,
            key: &[2; 4],
            is_whole: true,
            equal_is_low: true,
        };
        assert_eq!(bed.guides.ask(&bed.frame, &bed.at, &other), None);
        assert_eq!(bed.ask(&[2; 4], true, true), Some(1));
    }

    #[test]
    fn a_place_is_kept_when_the_guide_is_written_anew() {
        let mut bed = Bed::new();
        let key = |i: u8| vec![i; 4];
        bed.write(&[key(0), key(2), key(4)], 0);
        let want = Want {
            tree: TREE,
            key: &[4; 4],
            is_whole: true,
            equal_is_low: true,
        };
        let told = bed.guides.ask(&bed.frame, &bed.at, &want).expect("told");
        assert_eq!(told.hint, NO_FRAME);
        bed.guides.correct(&told, 41);
        // Of what is not there any more nothing is noted.
        bed.guides.correct(&told, 42);
        let told = bed.guides.ask(&bed.frame, &bed.at, &want).expect("told");
        assert_eq!((told.child.0, told.hint), (12, 41));
        bed.at.version += 2;
        bed.write(&[key(0), key(2), key(4), key(6)], 0);
        let told = bed.guides.ask(&bed.frame, &bed.at, &want).expect("told");
        assert_eq!((told.child.0, told.hint), (12, 41));
    }

    #[test]
    fn a_guide_that_is_used_is_not_taken_away_at_once() {
        let bed = Bed::new();
        let frames: Vec<Frame> = (0..3 * GUIDES_MIN).map(|_| Frame::default()).collect();
        let draft = Draft {
            tree: TREE,
            level: 1,
            key_bytes: 4,
            windows: vec![0],
            children: vec![9],
            ..Draft::default()
        };
        let at = |i: usize| Sight {
            page: i as u64,
            ..bed.at
        };
        for (i, frame) in frames.iter().enumerate().take(GUIDES_MIN) {
            bed.guides.write(frame, &at(i), &draft, 64);
        }
        let want = Want {
            tree: TREE,
            key: &[1; 4],
            is_whole: true,
            equal_is_low: true,
        };
        let has = |i: usize| bed.guides.ask(&frames[i], &at(i), &want).is_some();
        assert!((0..GUIDES_MIN).all(has));
        let write = |i: usize| bed.guides.write(&frames[i], &at(i), &draft, 64);
        write(GUIDES_MIN);
        assert!(!has(GUIDES_MIN), "all are in use");
        assert!((0..GUIDES_MIN).all(has));
        (GUIDES_MIN..frames.len()).for_each(write);
        assert!((GUIDES_MIN..frames.len()).any(has), "others go in the end");
    }
}

//! Collations belong to the host; what the engine must know of them by itself stands here.
//!
//! The engine knows each collation's character widths (they shape record headers, so files could
//! not be read without them) and settles binary, integer and plain ASCII comparisons itself. All
//! other comparisons go through [`CollationSource`].

use std::cmp::Ordering;

/// latin1_swedish_ci: the collation of mtype 1 and 2, and of SYS_FOREIGN's names.
pub const LATIN1_SWEDISH_CI: u16 = 8;
/// The binary collation.
pub const BINARY: u16 = 63;

/// Comparison of text, given by the host. A *leaf* callback: pure, non-blocking, any thread, called
/// under page latches.
pub trait CollationSource: Send + Sync {
    /// True if the host can compare by this collation. An index that uses another one is opened
    /// for reading in clustered order only.
    fn knows(&self, collation: u16) -> bool;

    /// Orders two texts as the collation's "compare with padding" does: PAD SPACE collations treat
    /// the shorter text as if spaces followed, NO PAD ones do not.
    fn compare(&self, collation: u16, a: &[u8], b: &[u8]) -> Ordering;

    /// Smallest and largest number of bytes of a character.
    fn char_width(&self, collation: u16) -> CharWidth {
        char_width(collation)
    }

    /// The number of bytes of `text`'s first `chars` characters, at most `text.len()`.
    fn prefix_len(&self, collation: u16, text: &[u8], chars: usize) -> usize {
        prefix_len(collation, text, chars)
    }
}

/// A host that knows no collation but those the engine settles itself. Text that needs more is
/// ordered by bytes with padding: good enough for the dictionary, and for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct BytesOnly;

impl CollationSource for BytesOnly {
    fn knows(&self, collation: u16) -> bool {
        collation == BINARY || is_byte_order(collation)
    }

    fn compare(&self, collation: u16, a: &[u8], b: &[u8]) -> Ordering {
        compare_padded(a, b, |byte| byte, is_pad_space(collation))
    }
}

/// Bytes per character of a collation's character set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CharWidth {
    /// mbminlen.
    pub min: u8,
    /// mbmaxlen.
    pub max: u8,
}

/// mbminlen and mbmaxlen by collation id (format-tablespace.md section 8).
pub fn char_width(collation: u16) -> CharWidth {
    let (min, max) = match base_id(collation) {
        33 | 83 | 223 | 192..=215 | 576..=578 | 2048..=2303 => (1, 3),
        45 | 46 | 224..=247 | 608..=610 | 2304..=2559 => (1, 4),
        35 | 90 | 159 | 128..=151 | 640..=642 | 2560..=2815 => (2, 2),
        54..=56 | 62 | 101..=124 | 672..=674 | 2816..=3071 => (2, 4),
        60 | 61 | 160..=183 | 736..=738 | 3072..=3327 => (4, 4),
        // big5, sjis, cp932, euckr, gb2312, gbk
        1 | 84 | 13 | 88 | 95 | 96 | 19 | 85 | 24 | 86 | 28 | 87 => (1, 2),
        // ujis, eucjpms
        12 | 91 | 97 | 98 => (1, 3),
        _ => (1, 1),
    };
    CharWidth { min, max }
}

/// NO PAD variants of collations below 1024 have the id plus 1024.
fn base_id(collation: u16) -> u16 {
    if (1024..2048).contains(&collation) {
        collation - 1024
    } else {
        collation
    }
}

/// True if the shorter of two texts is compared as if spaces followed it.
pub fn is_pad_space(collation: u16) -> bool {
    collation < 1024
}

/// Collations that order by bytes alone, whatever the bytes.
fn is_byte_order(collation: u16) -> bool {
    // latin1_bin, ascii_bin
    matches!(base_id(collation), 47 | 65)
}

/// Collations whose ASCII characters order by their upper-case codes, one byte at a time, with no
/// contractions: latin1_swedish_ci, ascii_general_ci, utf8mb3_general_ci, utf8mb4_general_ci.
fn folds_ascii(collation: u16) -> bool {
    matches!(base_id(collation), 8 | 11 | 33 | 45)
}

/// Collations whose ASCII characters order by their codes: utf8mb4_bin, utf8mb3_bin.
fn keeps_ascii(collation: u16) -> bool {
    matches!(base_id(collation), 46 | 83)
}

/// Compares without the host where the result is certain; `None` sends the caller to the host.
///
/// For the collations above the first differing character decides, so that a run of ASCII up to and
/// including it is enough; text beyond it is never looked at.
pub fn compare_fast(collation: u16, a: &[u8], b: &[u8]) -> Option<Ordering> {
    if collation == BINARY {
        return Some(a.cmp(b));
    }
    let pad = is_pad_space(collation);
    if is_byte_order(collation) {
        return Some(compare_padded(a, b, |byte| byte, pad));
    }
    if folds_ascii(collation) {
        return compare_ascii(a, b, |byte| byte.to_ascii_uppercase(), pad);
    }
    if keeps_ascii(collation) {
        return compare_ascii(a, b, |byte| byte, pad);
    }
    None
}

fn compare_ascii(a: &[u8], b: &[u8], weight: fn(u8) -> u8, pad: bool) -> Option<Ordering> {
    for (&x, &y) in a.iter().zip(b) {
        if !x.is_ascii() || !y.is_ascii() {
            return None;
        }
        match weight(x).cmp(&weight(y)) {
            Ordering::Equal => {}
            decided => return Some(decided),
        }
    }
    let common = a.len().min(b.len());
    let (rest, longer) = rest_of_longer(a, b, common);
    if !rest.is_ascii() {
        return None;
    }
    Some(tail_order(rest, longer, weight, pad))
}

/// Byte-wise order; with `pad` the shorter one is treated as if 0x20 followed.
pub fn compare_padded(a: &[u8], b: &[u8], weight: fn(u8) -> u8, pad: bool) -> Ordering {
    let common = a.len().min(b.len());
    for (&x, &y) in a.iter().zip(b) {
        match weight(x).cmp(&weight(y)) {
            Ordering::Equal => {}
            decided => return decided,
        }
    }
    let (rest, longer) = rest_of_longer(a, b, common);
    tail_order(rest, longer, weight, pad)
}

/// What the longer text has beyond the other, and the result if that makes it greater.
fn rest_of_longer<'t>(a: &'t [u8], b: &'t [u8], common: usize) -> (&'t [u8], Ordering) {
    if a.len() > b.len() {
        (&a[common..], Ordering::Greater)
    } else {
        (&b[common..], Ordering::Less)
    }
}

fn tail_order(rest: &[u8], longer: Ordering, weight: fn(u8) -> u8, pad: bool) -> Ordering {
    if !pad {
        return if rest.is_empty() {
            Ordering::Equal
        } else {
            longer
        };
    }
    match rest.iter().find(|&&byte| byte != b' ') {
        None => Ordering::Equal,
        Some(&byte) if weight(byte) < b' ' => longer.reverse(),
        Some(_) => longer,
    }
}

/// The number of bytes of `text`'s first `chars` characters for the character sets whose structure
/// the engine knows (fixed width, utf8, utf16); others count `mbmaxlen` bytes per character.
pub fn prefix_len(collation: u16, text: &[u8], chars: usize) -> usize {
    let width = char_width(collation);
    if width.min == width.max {
        return text.len().min(chars.saturating_mul(width.min as usize));
    }
    let little_endian = matches!(base_id(collation), 56 | 62);
    let mut at = 0;
    for _ in 0..chars {
        if at >= text.len() {
            break;
        }
        at += match (width.min, width.max) {
            (1, 3 | 4) if !matches!(base_id(collation), 12 | 91 | 97 | 98) => utf8_width(text[at]),
            (2, 4) => utf16_width(&text[at..], little_endian),
            _ => width.max as usize,
        };
    }
    at.min(text.len())
}

fn utf8_width(lead: u8) -> usize {
    match lead {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    }
}

fn utf16_width(text: &[u8], little_endian: bool) -> usize {
    let high = text.get(usize::from(little_endian)).copied().unwrap_or(0);
    if (0xD8..0xDC).contains(&high) { 4 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_text_is_ordered_without_the_host() {
        assert_eq!(compare_fast(45, b"Abc", b"aBD"), Some(Ordering::Less));
        assert_eq!(compare_fast(45, b"abc  ", b"ABC"), Some(Ordering::Equal));
        assert_eq!(compare_fast(1069, b"abc ", b"ABC"), Some(Ordering::Greater));
        assert_eq!(compare_fast(8, b"a\t", b"a"), Some(Ordering::Less));
        assert_eq!(compare_fast(46, b"a", b"A"), Some(Ordering::Greater));
        // The first differing character decides before the accent is reached.
        assert_eq!(
            compare_fast(45, "ab\u{e9}".as_bytes(), b"ac"),
            Some(Ordering::Less)
        );
        assert_eq!(compare_fast(45, "a\u{e9}".as_bytes(), b"ae"), None);
        assert_eq!(compare_fast(224, b"a", b"b"), None);
    }

    #[test]
    fn widths_follow_the_collation() {
        assert_eq!(char_width(45), CharWidth { min: 1, max: 4 });
        assert_eq!(char_width(1024 + 33), CharWidth { min: 1, max: 3 });
        assert_eq!(char_width(35), CharWidth { min: 2, max: 2 });
        assert_eq!(char_width(8), CharWidth { min: 1, max: 1 });
        assert_eq!(char_width(2400), CharWidth { min: 1, max: 4 });
    }

    #[test]
    fn prefixes_are_cut_between_characters() {
        assert_eq!(prefix_len(45, "a\u{e9}\u{4e2d}b".as_bytes(), 3), 6);
        assert_eq!(prefix_len(8, b"abc", 2), 2);
        assert_eq!(prefix_len(35, b"\0a\0b", 1), 2);
        assert_eq!(prefix_len(45, b"abc", 9), 3);
    }
}

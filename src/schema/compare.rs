//! Order of field values: NULL lowest, DESC inverted, by type and collation
//! (format-tablespace.md section 8).
//!
//! Binary, integer, floating and plain ASCII comparisons never leave the engine; other text goes to
//! the host's [`CollationSource`].

use std::cmp::Ordering;

use crate::format::column::{ColumnType, Mtype};
use crate::host::collation::{self, CollationSource};

use super::index::Field;
use super::value::FieldRef;

/// How values of a type compare, decided once per field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyKind {
    /// By bytes, a shorter value before its extensions: integers, system columns, binary types.
    Bytes,
    /// By bytes, as if 0x20 followed the shorter value.
    PaddedBytes,
    /// Little-endian IEEE single.
    Float,
    /// Little-endian IEEE double.
    Double,
    /// A decimal number as text.
    DecimalText,
    /// By collation.
    Text(u16),
    /// By collation, trailing pad characters left out first (CHAR).
    TextTrimmed(u16),
}

impl KeyKind {
    /// The order of a type.
    pub fn of(ty: ColumnType) -> KeyKind {
        let collation = ty.prtype.collation();
        match ty.mtype {
            Mtype::Int | Mtype::SysChild | Mtype::Sys | Mtype::Geometry => KeyKind::Bytes,
            Mtype::FixBinary | Mtype::Binary if collation == collation::BINARY => KeyKind::Bytes,
            Mtype::FixBinary | Mtype::Binary => KeyKind::PaddedBytes,
            Mtype::Float => KeyKind::Float,
            Mtype::Double => KeyKind::Double,
            Mtype::DecimalText => KeyKind::DecimalText,
            Mtype::Varchar | Mtype::Char => KeyKind::Text(collation::LATIN1_SWEDISH_CI),
            Mtype::Blob if ty.prtype.is_binary_type() => KeyKind::Bytes,
            Mtype::Blob | Mtype::VarMysql => KeyKind::Text(collation),
            Mtype::Mysql => KeyKind::TextTrimmed(collation),
        }
    }

    /// The collation that the host must know, if any.
    pub fn collation(self) -> Option<u16> {
        match self {
            KeyKind::Text(id) | KeyKind::TextTrimmed(id) => Some(id),
            _ => None,
        }
    }
}

/// Orders two non-NULL values, ascending.
#[inline]
pub fn compare_values(
    kind: KeyKind,
    a: &[u8],
    b: &[u8],
    collations: &dyn CollationSource,
) -> Ordering {
    match kind {
        KeyKind::Bytes => a.cmp(b),
        KeyKind::PaddedBytes if a.len() == b.len() => a.cmp(b),
        KeyKind::PaddedBytes => collation::compare_padded(a, b, |byte| byte, true),
        KeyKind::Float => compare_numbers(float_of(a), float_of(b)),
        KeyKind::Double => compare_numbers(double_of(a), double_of(b)),
        KeyKind::DecimalText => compare_decimal_text(a, b),
        KeyKind::Text(id) => compare_text(id, a, b, collations),
        KeyKind::TextTrimmed(id) => compare_text(id, trimmed(id, a), trimmed(id, b), collations),
    }
}

fn compare_text(id: u16, a: &[u8], b: &[u8], collations: &dyn CollationSource) -> Ordering {
    collation::compare_fast(id, a, b).unwrap_or_else(|| collations.compare(id, a, b))
}

/// `text` without its trailing pad characters.
fn trimmed(id: u16, text: &[u8]) -> &[u8] {
    let width = collation::char_width(id).min as usize;
    let little_endian = matches!(id, 56 | 62);
    let mut end = text.len() - text.len() % width;
    if end != text.len() {
        return text;
    }
    while end > 0 {
        let unit = &text[end - width..end];
        let (zeros, space) = if little_endian {
            (&unit[1..], unit[0])
        } else {
            (&unit[..width - 1], unit[width - 1])
        };
        if space != b' ' || zeros.iter().any(|&byte| byte != 0) {
            break;
        }
        end -= width;
    }
    &text[..end]
}

fn float_of(bytes: &[u8]) -> f64 {
    bytes
        .first_chunk::<4>()
        .map_or(0.0, |raw| f32::from_le_bytes(*raw).into())
}

fn double_of(bytes: &[u8]) -> f64 {
    bytes
        .first_chunk::<8>()
        .map_or(0.0, |raw| f64::from_le_bytes(*raw))
}

/// Neither below nor above counts as equal, so that -0 equals 0 (SQL stores no NaN).
fn compare_numbers(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Numbers as text: spaces, sign, digits, point, digits.
fn compare_decimal_text(a: &[u8], b: &[u8]) -> Ordering {
    let (a_negative, a_whole, a_part) = decimal_parts(a);
    let (b_negative, b_whole, b_part) = decimal_parts(b);
    match (a_negative, b_negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (negative, _) => {
            let magnitude = a_whole
                .len()
                .cmp(&b_whole.len())
                .then_with(|| a_whole.cmp(b_whole))
                .then_with(|| a_part.cmp(b_part));
            if negative {
                magnitude.reverse()
            } else {
                magnitude
            }
        }
    }
}

/// Sign, integer digits without leading zeros, fraction digits without trailing zeros.
fn decimal_parts(text: &[u8]) -> (bool, &[u8], &[u8]) {
    let text = text.trim_ascii();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let point = digits
        .iter()
        .position(|&c| c == b'.')
        .unwrap_or(digits.len());
    let whole = &digits[..point];
    let zeros = whole.iter().take_while(|&&c| c == b'0').count();
    let part = digits.get(point + 1..).unwrap_or(&[]);
    let end = part
        .iter()
        .rposition(|&c| c != b'0')
        .map_or(0, |last| last + 1);
    let (whole, part) = (&whole[zeros..], &part[..end]);
    (
        negative && !(whole.is_empty() && part.is_empty()),
        whole,
        part,
    )
}

/// Orders two values of one index field: NULL lowest, DESC inverted.
///
/// For an external value only the local prefix would be compared; key fields are never external.
#[inline]
pub fn compare_fields(
    field: &Field,
    a: FieldRef<'_>,
    b: FieldRef<'_>,
    collations: &dyn CollationSource,
) -> Ordering {
    let ascending = match (a.bytes(), b.bytes()) {
        (None, None) => return Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a), Some(b)) => compare_values(field.kind, a, b, collations),
    };
    if field.desc {
        ascending.reverse()
    } else {
        ascending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::collation::BytesOnly;
    use crate::schema::index::FieldColumn;

    fn order(mtype: u32, prtype: u32, a: &[u8], b: &[u8]) -> Ordering {
        let ty = ColumnType::parse(mtype, prtype, 8).expect("known type");
        compare_values(KeyKind::of(ty), a, b, &BytesOnly)
    }

    #[test]
    fn each_type_has_its_order() {
        // INT: sign bit inverted, so bytes decide.
        assert_eq!(
            order(6, 0x403, &[0x7F, 255, 255, 252], &[0x80, 0, 0, 1]),
            Ordering::Less
        );
        // VARBINARY of collation 63: the shorter first; of another one: padded with spaces.
        assert_eq!(order(4, 0x3F040F, b"a", b"a "), Ordering::Less);
        assert_eq!(order(4, 0, b"a", b"a "), Ordering::Equal);
        assert_eq!(order(4, 0, b"a", b"a\0"), Ordering::Greater);
        assert_eq!(
            order(9, 0x404, &1.5f32.to_le_bytes(), &(-2f32).to_le_bytes()),
            Ordering::Greater
        );
        assert_eq!(
            order(10, 0x405, &0f64.to_le_bytes(), &(-0f64).to_le_bytes()),
            Ordering::Equal
        );
        assert_eq!(order(1, 0x08000F, b"ABC", b"abd"), Ordering::Less);
        // CHAR with a NO PAD collation: trailing spaces do not count.
        assert_eq!(
            order(13, (1069 << 16) | 0xFE, b"ab  ", b"AB"),
            Ordering::Equal
        );
        assert_eq!(
            order(12, (1069 << 16) | 0x0F, b"ab  ", b"AB"),
            Ordering::Greater
        );
        assert_eq!(order(11, 0, b"-1.50", b" -1.5"), Ordering::Equal);
        assert_eq!(order(11, 0, b"10", b"9.99"), Ordering::Greater);
    }

    #[test]
    fn null_is_lowest_and_desc_inverts() {
        let ty = ColumnType::parse(6, 0x403, 4).expect("known type");
        let up = Field::new(FieldColumn::Stored(0), ty, 0, false, true);
        let down = Field {
            desc: true,
            ..up.clone()
        };
        let one = FieldRef::Bytes(&[0x80, 0, 0, 1]);
        assert_eq!(
            compare_fields(&up, FieldRef::Null, one, &BytesOnly),
            Ordering::Less
        );
        assert_eq!(
            compare_fields(&down, FieldRef::Null, one, &BytesOnly),
            Ordering::Greater
        );
        assert_eq!(compare_fields(&down, one, one, &BytesOnly), Ordering::Equal);
    }
}

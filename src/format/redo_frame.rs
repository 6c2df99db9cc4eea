//! Cutting mini-transactions out of the log (format-redo.md sections 4 and 5).

use crate::words::be;
use crate::words::limits::MTR_BYTES_MAX;

/// Bytes that follow the records of a mini-transaction: sequence bit and CRC.
pub const MTR_TRAILER_BYTES: usize = 5;

/// One mini-transaction cut out of the log, or why there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing<'a> {
    /// A whole one.
    Mtr {
        /// The records, for [`super::redo_record::Records::new`].
        records: &'a [u8],
        /// Bytes with sequence bit and CRC: the next one starts that much further.
        total: usize,
    },
    /// It goes on after the given bytes: ask again with more.
    Incomplete,
    /// The log ends here.
    End(EndOfLog),
}

/// Why the log ends. None is an error in itself (format-redo.md section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndOfLog {
    /// A byte 0 or 1 where a record should start: what the writer leaves after the last one.
    Empty,
    /// Left from the previous lap of the circular area.
    SequenceBit,
    /// Torn, or never completely written.
    Checksum,
    /// Longer than a mini-transaction can be.
    TooLong,
    /// A reserved length encoding.
    Encoding,
}

/// Cuts the mini-transaction at the start of `bytes`. `seq_bit_at(n)` is the sequence bit that the
/// log position `n` bytes further must carry.
pub fn frame(bytes: &[u8], seq_bit_at: impl FnOnce(usize) -> u8) -> Framing<'_> {
    match frame_unchecked(bytes, seq_bit_at) {
        Framing::Mtr { total, .. } if sound_records(&bytes[..total]).is_none() => {
            Framing::End(EndOfLog::Checksum)
        }
        other => other,
    }
}

/// The same without a look at the checksum: for `sound_records`, later.
pub fn frame_unchecked(bytes: &[u8], seq_bit_at: impl FnOnce(usize) -> u8) -> Framing<'_> {
    match bytes.first() {
        None => return Framing::Incomplete,
        Some(0 | 1) => return Framing::End(EndOfLog::Empty),
        Some(_) => {}
    }
    let mut at = 0;
    loop {
        if at + MTR_TRAILER_BYTES > MTR_BYTES_MAX {
            return Framing::End(EndOfLog::TooLong);
        }
        match record_end(bytes, at) {
            Next::End(end) => at = end,
            Next::Terminator => break,
            Next::Incomplete => return Framing::Incomplete,
            Next::Invalid => return Framing::End(EndOfLog::Encoding),
        }
    }
    if at + MTR_TRAILER_BYTES > bytes.len() {
        return Framing::Incomplete;
    }
    if bytes[at] != seq_bit_at(at) {
        return Framing::End(EndOfLog::SequenceBit);
    }
    Framing::Mtr {
        records: &bytes[..at],
        total: at + MTR_TRAILER_BYTES,
    }
}

/// The records of a whole mini-transaction; `None` if its checksum does not match: it is torn, or was
/// never completely written.
pub fn sound_records(mtr: &[u8]) -> Option<&[u8]> {
    let at = mtr.len() - MTR_TRAILER_BYTES;
    let records = &mtr[..at];
    (crc32c::crc32c(records) == be::u32_at(mtr, at + 1)).then_some(records)
}

/// Outcome of [`record_end`].
pub(super) enum Next {
    End(usize),
    Terminator,
    Incomplete,
    Invalid,
}

/// Where the record at `at` ends, by its length alone; that may lie beyond `bytes`.
pub(super) fn record_end(bytes: &[u8], at: usize) -> Next {
    let Some(&first) = bytes.get(at) else {
        return Next::Incomplete;
    };
    if first <= 1 {
        return Next::Terminator;
    }
    match first & 15 {
        0 => match bytes.get(at + 1) {
            None => Next::Incomplete,
            // Lengths take at most 3 bytes.
            Some(&lead) if lead >= 0xE0 => Next::Invalid,
            Some(_) => {
                let mut body = at + 1;
                match read_varint(bytes, &mut body) {
                    None => Next::Incomplete,
                    Some(v) => Next::End(at + 16 + v as usize),
                }
            }
        },
        n => Next::End(at + 1 + n as usize),
    }
}

/// Reads a variable-length integer and advances `at`. `None` if the bytes end or the encoding is
/// reserved.
#[inline]
pub fn read_varint(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let lead = *bytes.get(*at)?;
    let (len, value) = match lead {
        0..0x80 => (1, u32::from(lead)),
        0x80..0xC0 => (2, 0x80 + (u32::from(be::try_u16_at(bytes, *at)?) & 0x3FFF)),
        0xC0..0xE0 => (3, 0x4080 + (be::try_u24_at(bytes, *at)? & 0x1F_FFFF)),
        0xE0..0xF0 => (4, 0x20_4080 + (be::try_u32_at(bytes, *at)? & 0x0FFF_FFFF)),
        0xF0 => (5, be::try_u32_at(bytes, *at + 1)?.checked_add(0x1020_4080)?),
        _ => return None,
    };
    *at += len;
    Some(value)
}

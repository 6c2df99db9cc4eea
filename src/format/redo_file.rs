//! The log file ib_logfile0: header, checkpoints, positions, capacity (format-redo.md sections 1,
//! 2, 3 and 11).

use crate::words::limits::MTR_BYTES_MAX;
use crate::words::{Error, Lsn, Result, be};

/// File offset of the first checkpoint block.
pub const OFF_CHECKPOINT_1: u64 = 0x1000;
/// File offset of the second checkpoint block.
pub const OFF_CHECKPOINT_2: u64 = 0x2000;
/// File offset of the circular record area.
pub const OFF_RECORDS: u64 = 0x3000;
/// The smallest first LSN; that of a new database.
pub const FIRST_LSN: Lsn = Lsn(0x3000);
/// Bytes of the header block that count.
pub const HEADER_BYTES: usize = 512;
/// Bytes of a checkpoint block that count.
pub const CHECKPOINT_BYTES: usize = 64;

const FORMAT_10_8: u32 = 0x5068_7973;
const FORMAT_10_5: u32 = 0x5048_5953;
const FORMAT_ENCRYPTED: u32 = 0xF09F_979D;

/// Header block, the first 512 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogHeader {
    /// The LSN that stands at file offset 0x3000.
    pub first_lsn: Lsn,
    /// Who created the file: NUL-padded text of at most 32 bytes. Shown in errors only.
    pub creator: [u8; 32],
}

impl LogHeader {
    /// A header with `creator` cut to 31 bytes.
    pub fn new(first_lsn: Lsn, creator: &str) -> LogHeader {
        let mut field = [0; 32];
        let n = creator.len().min(31);
        field[..n].copy_from_slice(&creator.as_bytes()[..n]);
        LogHeader {
            first_lsn,
            creator: field,
        }
    }

    /// The creator as text.
    pub fn creator_text(&self) -> String {
        let end = self
            .creator
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(32);
        String::from_utf8_lossy(&self.creator[..end]).into_owned()
    }

    /// Reads the header. Errors: `Unsupported` for another format, `Corrupt` for damage.
    pub fn parse(block: &[u8]) -> Result<LogHeader> {
        let block = block
            .get(..HEADER_BYTES)
            .ok_or_else(|| bad("the log file is too short"))?;
        let format = be::u32_at(block, 0);
        let mut creator = [0; 32];
        creator.copy_from_slice(&block[16..48]);
        let header = LogHeader {
            first_lsn: Lsn(be::u64_at(block, 8)),
            creator,
        };
        if crc32c::crc32c(&block[..508]) != be::u32_at(block, 508) {
            return Err(bad(match format {
                0 => "the log header is empty, or of a server before 5.7",
                _ => "the log header's checksum does not match",
            }));
        }
        if format != FORMAT_10_8 {
            return Err(other_format(format, &header.creator_text()));
        }
        if be::u32_at(block, 48) != 0 {
            return Err(Error::unsupported("an encrypted redo log"));
        }
        if be::u32_at(block, 4) != 0 || header.first_lsn < FIRST_LSN {
            return Err(bad("the log header has a wrong first LSN"));
        }
        Ok(header)
    }

    /// The header block as bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut block = [0; HEADER_BYTES];
        be::put_u32(&mut block, 0, FORMAT_10_8);
        be::put_u64(&mut block, 8, self.first_lsn.0);
        block[16..48].copy_from_slice(&self.creator);
        let crc = crc32c::crc32c(&block[..508]);
        be::put_u32(&mut block, 508, crc);
        block
    }
}

#[cold]
fn other_format(format: u32, creator: &str) -> Error {
    let kind = match format & 0x7FFF_FFFF {
        _ if format == FORMAT_ENCRYPTED => "is encrypted",
        0..=104 => "is of a server before 10.5; shut that server down cleanly first",
        FORMAT_10_5 => "is of MariaDB 10.5 to 10.7; shut that server down cleanly first",
        _ => "has an unknown format",
    };
    Error::unsupported(format!(
        "redo log: the file {kind} (created by {creator:?})"
    ))
}

/// One checkpoint block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Start of a mini-transaction; all changes below are in the page files.
    pub lsn: Lsn,
    /// Start of the mini-transactions that carry FILE_MODIFY and FILE_CHECKPOINT(`lsn`).
    pub end_lsn: Lsn,
}

impl Checkpoint {
    /// Reads a block; `None` if it is not valid for a log that starts at `first_lsn`. A block may be
    /// torn: then the other one counts.
    pub fn parse(block: &[u8], first_lsn: Lsn) -> Option<Checkpoint> {
        let block = block.get(..CHECKPOINT_BYTES)?;
        let checkpoint = Checkpoint {
            lsn: Lsn(be::u64_at(block, 0)),
            end_lsn: Lsn(be::u64_at(block, 8)),
        };
        (checkpoint.lsn >= first_lsn
            && checkpoint.end_lsn >= checkpoint.lsn
            && block[16..60].iter().all(|&byte| byte == 0)
            && crc32c::crc32c(&block[..60]) == be::u32_at(block, 60))
        .then_some(checkpoint)
    }

    /// The block as bytes; the writer pads it with zeros to its write size.
    pub fn to_bytes(self) -> [u8; CHECKPOINT_BYTES] {
        let mut block = [0; CHECKPOINT_BYTES];
        be::put_u64(&mut block, 0, self.lsn.0);
        be::put_u64(&mut block, 8, self.end_lsn.0);
        let crc = crc32c::crc32c(&block[..60]);
        be::put_u32(&mut block, 60, crc);
        block
    }

    /// The block that counts: the larger LSN, the second if both are equal. Yields it with its
    /// slot, 0 or 1; the next checkpoint goes into the other slot.
    pub fn choose(
        first: Option<Checkpoint>,
        second: Option<Checkpoint>,
    ) -> Option<(Checkpoint, usize)> {
        match (first, second) {
            (Some(a), Some(b)) if a.lsn > b.lsn => Some((a, 0)),
            (_, Some(b)) => Some((b, 1)),
            (Some(a), None) => Some((a, 0)),
            (None, None) => None,
        }
    }
}

/// File offset of checkpoint slot 0 or 1.
pub fn checkpoint_offset(slot: usize) -> u64 {
    if slot == 0 {
        OFF_CHECKPOINT_1
    } else {
        OFF_CHECKPOINT_2
    }
}

/// Where LSNs stand in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogGeometry {
    first_lsn: Lsn,
    file_size: u64,
}

impl LogGeometry {
    /// A file of `file_size` bytes whose record area starts with `first_lsn`. `None` if the file
    /// is too short to hold a record.
    pub fn new(first_lsn: Lsn, file_size: u64) -> Option<LogGeometry> {
        (file_size >= OFF_RECORDS + 16).then_some(LogGeometry {
            first_lsn,
            file_size,
        })
    }

    /// The LSN at the start of the record area, in its first lap.
    pub fn first_lsn(&self) -> Lsn {
        self.first_lsn
    }

    /// Bytes of the file.
    pub fn file_size(&self) -> u64 {
        self.file_size
    }

    /// Bytes of the circular record area.
    pub fn capacity(&self) -> u64 {
        self.file_size - OFF_RECORDS
    }

    /// File offset of `lsn`, which must not be below the first.
    pub fn offset(&self, lsn: Lsn) -> u64 {
        OFF_RECORDS + (lsn.0 - self.first_lsn.0) % self.capacity()
    }

    /// Bytes from `lsn` to the end of the file, where the area wraps.
    pub fn bytes_to_wrap(&self, lsn: Lsn) -> u64 {
        self.file_size - self.offset(lsn)
    }

    /// The sequence bit of a byte at `lsn`: 1 in the first lap, then 0, 1, …
    pub fn seq_bit(&self, lsn: Lsn) -> u8 {
        1 - ((lsn.0 - self.first_lsn.0) / self.capacity() % 2) as u8
    }
}

/// How much log may be in use (format-redo.md section 11). All in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogCapacity {
    /// Beyond this age the log would overwrite what recovery needs.
    pub log_capacity: u64,
    /// Beyond this age operations wait for a checkpoint before they start.
    pub max_checkpoint_age: u64,
    /// Beyond this age the page cleaner is asked to flush.
    pub max_modified_age_async: u64,
}

impl LogCapacity {
    /// Beyond this age statements wait for a checkpoint: InnoDB's limit. With the smallest logs and the
    /// largest pages that is less than a single mini-transaction may need; then it is as much as two need,
    /// as far as rollback finds the room of one behind it.
    pub fn statement_age(&self) -> u64 {
        const MTR: u64 = MTR_BYTES_MAX as u64;
        let before_rollback = self.log_capacity.saturating_sub(MTR + MTR / 4);
        self.max_checkpoint_age.max(before_rollback.min(2 * MTR))
    }

    /// The limits of a log file of `file_size` bytes with pages of `page_size` bytes. `None` if the
    /// file is too small to work with.
    pub fn new(file_size: u64, page_size: usize) -> Option<LogCapacity> {
        let area = file_size.checked_sub(OFF_RECORDS)?;
        let log_capacity = area - area / 10;
        let margin = log_capacity.checked_sub(48 * page_size as u64)?;
        let max_checkpoint_age = margin - margin / 10;
        (max_checkpoint_age > 0).then_some(LogCapacity {
            log_capacity,
            max_checkpoint_age,
            max_modified_age_async: max_checkpoint_age - max_checkpoint_age / 8,
        })
    }
}

#[cold]
fn bad(why: &str) -> Error {
    Error::corrupt_bytes(format!("redo log: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_those_of_the_reference() {
        let of = |mib: u64| {
            let c = LogCapacity::new(mib << 20, 16384).unwrap();
            (
                c.log_capacity,
                c.max_checkpoint_age,
                c.max_modified_age_async,
            )
        };
        assert_eq!(of(8), (7_538_688, 6_077_031, 5_317_403));
        assert_eq!(of(96), (90_585_908, 80_819_529, 70_717_088));
        assert_eq!(of(1024), (966_356_583, 869_013_136, 760_386_494));
        assert_eq!(LogCapacity::new(12304, 16384), None);
    }

    #[test]
    fn positions_wrap_as_in_the_reference() {
        let log = LogGeometry::new(Lsn(12288), 8 << 20).unwrap();
        assert_eq!(log.offset(Lsn(46_577_725)), 0x47_A83D);
        assert_eq!(log.seq_bit(Lsn(46_577_725)), 0);
        assert_eq!(log.offset(Lsn(50_266_828)), 0x7F_F2CC);
        assert_eq!(log.offset(Lsn(50_270_404)), 0x30C4);
        assert_eq!(log.seq_bit(Lsn(50_270_399)), 1);
        assert_eq!(log.bytes_to_wrap(Lsn(50_266_828)), (8 << 20) - 0x7F_F2CC);
    }

    #[test]
    fn the_real_checkpoint_block_comes_back_and_the_newer_one_counts() {
        let checkpoint = Checkpoint {
            lsn: Lsn(0xAF4E),
            end_lsn: Lsn(0xAF4E),
        };
        let block = checkpoint.to_bytes();
        assert_eq!(block[60..], [0xD2, 0x92, 0x68, 0x7E]);
        assert_eq!(Checkpoint::parse(&block, FIRST_LSN), Some(checkpoint));
        assert_eq!(Checkpoint::parse(&block, Lsn(0xAF4F)), None);
        let older = Checkpoint {
            lsn: Lsn(0xAF00),
            end_lsn: Lsn(0xBF00),
        };
        assert_eq!(
            Checkpoint::choose(Some(checkpoint), Some(older)),
            Some((checkpoint, 0))
        );
        assert_eq!(
            Checkpoint::choose(Some(checkpoint), Some(checkpoint)),
            Some((checkpoint, 1))
        );
        assert_eq!(Checkpoint::choose(Some(older), None), Some((older, 0)));
    }
}

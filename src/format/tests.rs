//! Golden tests: bytes that a stock server wrote, parsed and built again.

use std::path::PathBuf;
use std::process::Command;

use super::redo_encode::{self, Encoder};
use super::redo_file::{Checkpoint, LogGeometry, LogHeader};
use super::redo_frame::{EndOfLog, Framing, MTR_TRAILER_BYTES, frame, read_varint};
use super::redo_record::{FileOp, Record, Records};
use crate::words::Lsn;

/// A sample file, unpacked.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/samples")
        .join(name);
    if path.exists() {
        return std::fs::read(&path).expect("a readable sample");
    }
    let packed = format!("{}.xz", path.display());
    let output = Command::new("xz")
        .args(["-dc", &packed])
        .output()
        .expect("xz is installed");
    assert!(
        output.status.success(),
        "{packed}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// The same bytes for the same seed: xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.max(1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.next() as u8);
    }
}

/// Codes the records again; `out` holds the records alone.
fn encode_again(records: &[u8]) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(), Vec::new());
    for parsed in Records::new(records) {
        match parsed.expect("a record of a stock log").record {
            Record::Page(page, op) => encoder.page_op(&mut out, page, &op),
            Record::File(op) => encoder.file_op(&mut out, &op),
        }
    }
    out
}

#[test]
fn every_mini_transaction_of_the_sample_logs_is_coded_as_the_same_bytes() {
    for name in ["fresh/ib_logfile0", "mini/ib_logfile0"] {
        let log = sample(name);
        let header = LogHeader::parse(&log).unwrap();
        assert_eq!(header.to_bytes()[..], log[..512]);
        let geometry = LogGeometry::new(header.first_lsn, log.len() as u64).unwrap();
        let blocks = [0x1000, 0x2000].map(|at| Checkpoint::parse(&log[at..], header.first_lsn));
        for (block, at) in blocks.iter().zip([0x1000, 0x2000]) {
            if let Some(block) = block {
                assert_eq!(block.to_bytes()[..], log[at..at + 64]);
            }
        }
        let (checkpoint, _) = Checkpoint::choose(blocks[0], blocks[1]).unwrap();
        // The sample logs never wrapped: the whole history since bootstrap is there.
        let (mut lsn, mut count, mut checkpoints) = (header.first_lsn, 0, 0);
        loop {
            let at = geometry.offset(lsn) as usize;
            match frame(&log[at..], |n| geometry.seq_bit(Lsn(lsn.0 + n as u64))) {
                Framing::Mtr { records, total } => {
                    let mut again = encode_again(records);
                    assert_eq!(again, records, "{name} at {lsn}");
                    redo_encode::finish(&mut again, 0, 1);
                    assert_eq!(again, log[at..at + total]);
                    let last = Records::new(records).last().unwrap().unwrap().record;
                    checkpoints += matches!(last, Record::File(FileOp::Checkpoint(_))) as u32;
                    lsn.0 += total as u64;
                    count += 1;
                }
                end => {
                    assert_eq!(end, Framing::End(EndOfLog::Empty), "{name} at {lsn}");
                    break;
                }
            }
        }
        println!("{name}: {count} mini-transactions up to {lsn}");
        assert_eq!(lsn.0, checkpoint.end_lsn.0 + 16, "{name}: a clean log");
        assert!(count > 100 && checkpoints > 1);
    }
}

#[test]
fn examples_of_the_reference_are_read_and_coded() {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        digits
            .chunks(2)
            .map(|d| u8::from_str_radix(std::str::from_utf8(d).unwrap(), 16).unwrap())
            .collect()
    };
    for text in [
        "34 00 00 75 a2",
        "35 00 80 ad 19 06 b3 2a 2a f2 c3 1e 04 ff d3 02 06 0b",
        "20 0c 05 03 06 1c 10 00 03 03 00 02 00 00 00 00 00 13 84 00 00 01 2d 01 10 74 77 6f",
        "bc 06 00 2e 2f 74 2f 64 64 2e 69 62 64",
        "a0 09 06 00 2e2f742f64642e696264 00 2e2f742f65652e696264",
        "fa 00 00 00 00 00 00 03 1d f3 28",
    ] {
        let bytes = hex(text);
        assert_eq!(encode_again(&bytes), bytes, "{text}");
    }
    let whole = hex("fa 00 00 00 00 00 00 03 1d f3 28 01 94 f5 a4 e7");
    let expected = Framing::Mtr {
        records: &whole[..11],
        total: 16,
    };
    assert_eq!(frame(&whole, |_| 1), expected);
    assert_eq!(frame(&whole, |_| 0), Framing::End(EndOfLog::SequenceBit));
    for n in 0..whole.len() {
        assert_eq!(frame(&whole[..n], |_| 1), Framing::Incomplete);
    }
}

#[test]
fn integers_of_every_width_are_coded_and_read() {
    for value in [
        0,
        1,
        0x7F,
        0x80,
        0x407F,
        0x4080,
        0x20_407F,
        0x20_4080,
        0x1020_407F,
        0x1020_4080,
        u32::MAX,
    ] {
        let mut out = Vec::new();
        redo_encode::put_varint(&mut out, value);
        assert_eq!(out.len(), redo_encode::varint_bytes(value));
        let mut at = 0;
        assert_eq!(read_varint(&out, &mut at), Some(value));
        assert_eq!(at, out.len());
        for cut in 0..out.len() {
            assert_eq!(read_varint(&out[..cut], &mut 0), None);
        }
    }
    assert_eq!(read_varint(&[0xF0, 0xFF, 0xFF, 0xFF, 0xFF], &mut 0), None);
    assert_eq!(read_varint(&[0xF1, 0, 0, 0, 0, 0], &mut 0), None);
}

#[test]
fn a_flipped_bit_in_a_mini_transaction_ends_the_log() {
    let log = sample("fresh/ib_logfile0");
    let Framing::Mtr { total, .. } = frame(&log[0x3000..], |_| 1) else {
        panic!()
    };
    let mut bytes = log[0x3000..0x3000 + total.max(64)].to_vec();
    for bit in 0..total * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!matches!(frame(&bytes, |_| 1), Framing::Mtr { total: t, .. } if t == total));
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(total > MTR_TRAILER_BYTES);
}

#[test]
fn records_of_every_length_round_trip() {
    let page = crate::words::PageId::new(crate::words::SpaceId(300), crate::words::PageNo(70000));
    for len in (1..400).chain(16_300..16_700).chain([65_528]) {
        let data = vec![7u8; len];
        let (mut encoder, mut out) = (Encoder::new(), Vec::new());
        encoder.write(&mut out, page, 8, &data);
        let parsed = Records::new(&out).next().unwrap().unwrap();
        assert_eq!(parsed.raw.len(), out.len());
        let expected = super::redo_record::PageOp::Write {
            offset: 8,
            data: &data,
        };
        assert_eq!(parsed.record, Record::Page(page, expected));
    }
}

#[test]
fn random_bytes_never_panic_the_log_parsers() {
    let seed = 0x7265_646F;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let log = sample("fresh/ib_logfile0");
    let mut bytes = vec![0u8; 600];
    for round in 0..200_000 {
        match round % 2 {
            0 => random.fill(&mut bytes),
            _ => {
                let at = 0x3000 + random.below(30_000);
                bytes.copy_from_slice(&log[at..at + 600]);
                for _ in 0..3 {
                    let at = random.below(600);
                    bytes[at] = random.next() as u8;
                }
            }
        }
        let _ = frame(&bytes, |_| 0);
        let _ = Records::new(&bytes).count();
        let _ = LogHeader::parse(&bytes);
        let _ = Checkpoint::parse(&bytes, Lsn(12288));
    }
}

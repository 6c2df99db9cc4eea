//! The pass over the log by several threads finds what one finds.

use super::index::RedoIndex;
use super::pipeline::ScanOptions;
use super::scan::{LogBytes, LogScan, scan, scan_into as scan_with};
use super::tests::{Log, indexed, random_log, small_chunks};
use crate::format::redo_file::{Checkpoint, LogGeometry};
use crate::format::tests::Random;
use crate::words::{Error, Lsn, Result};

/// All that a scan finds, or the text of its error.
fn found(log: &Log, result: Result<LogScan>) -> std::result::Result<String, String> {
    let scan = result.map_err(|error| error.to_string())?;
    let head = (scan.checkpoint, scan.end, scan.clean, scan.mtr_count);
    let files = scan.index.files();
    let unnamed: Vec<_> = scan.index.unnamed().collect();
    Ok(format!(
        "{head:?} {files:?} {unnamed:?} {:?}",
        indexed(log, &scan)
    ))
}

/// Scans with several threads and with one, with chunks of several sizes; all find the same.
fn same_however_it_is_read(log: &Log) {
    let expected = found(log, scan(log));
    for (threads, chunk_bytes) in [(1, 700), (2, 300), (3, 1000), (4, 4096), (8, 20)] {
        let options = ScanOptions {
            threads,
            chunk_bytes,
            alone_bytes: 500,
        };
        let limit = RedoIndex::with_limit(usize::MAX, None);
        let other = found(log, scan_with(log, limit, options));
        assert_eq!(
            other, expected,
            "{threads} threads, chunks of {chunk_bytes}"
        );
    }
}

#[test]
fn threads_and_chunks_do_not_change_what_a_log_says() {
    for seed in 1..15 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let whole = random_log(seed, 1 + seed % 4);
        same_however_it_is_read(&whole);
        let checkpoint = whole.checkpoint.unwrap().lsn;
        let used = (whole.lsn.0 - checkpoint.0) as usize;
        for _ in 0..6 {
            let mut log = random_log(seed, 1 + seed % 4);
            let at = Lsn(checkpoint.0 + random.below(used) as u64);
            let torn = (log.lsn.0 - at.0).min(1 + random.below(600) as u64);
            // A flipped bit, a tail that was never written, one that holds anything.
            let how = random.below(3);
            let len = if how == 0 { 1 } else { torn };
            for n in 0..len {
                let offset = log.geometry.offset(Lsn(at.0 + n)) as usize;
                log.bytes[offset] = match how {
                    0 => log.bytes[offset] ^ 1 << random.below(8),
                    1 => 0,
                    _ => random.below(256) as u8,
                };
            }
            same_however_it_is_read(&log);
        }
    }
}

#[test]
fn every_cut_of_a_log_is_read_alike_by_one_thread_and_by_several() {
    let whole = random_log(3, 1);
    let checkpoint = whole.checkpoint.unwrap();
    let last = whole.lsn.0.min(checkpoint.end_lsn.0 + 400);
    for end in checkpoint.end_lsn.0..=last {
        let mut log = random_log(3, 1);
        for lsn in end..whole.lsn.0 {
            let offset = log.geometry.offset(Lsn(lsn)) as usize;
            log.bytes[offset] = 0;
        }
        let alone = found(&log, scan(&log));
        let several = found(&log, scan_with(&log, RedoIndex::default(), small_chunks(3)));
        assert_eq!(alone, several, "cut at {end}");
    }
}

/// A log that cannot be read from an LSN on.
struct Unreadable(Log, Lsn);

impl LogBytes for Unreadable {
    fn geometry(&self) -> LogGeometry {
        self.0.geometry
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        self.0.checkpoint
    }

    fn read(&self, lsn: Lsn, buf: &mut [u8]) -> Result<()> {
        match lsn.0 + buf.len() as u64 > self.1.0 {
            true => Err(Error::io("read", "d/ib_logfile0", libc::EIO)),
            false => self.0.read(lsn, buf),
        }
    }
}

#[test]
fn what_cannot_be_read_is_an_error_unless_the_log_ends_before() {
    for seed in 1..20 {
        println!("seed {seed}");
        for threads in [1, 4] {
            let log = random_log(seed, 1);
            let (from, end) = (log.checkpoint.unwrap().lsn, log.lsn);
            for bad in [from.0 + 1, from.0 + (end.0 - from.0) / 2, end.0] {
                let log = Unreadable(random_log(seed, 1), Lsn(bad));
                let result = scan_with(&log, RedoIndex::default(), small_chunks(threads));
                let error = result.expect_err("the log goes on there").to_string();
                assert!(error.contains("d/ib_logfile0"), "{error}");
            }
            // Far enough behind the end that no chunk with log has it.
            let log = Unreadable(log, Lsn(end.0 + 1000));
            let scan = scan_with(&log, RedoIndex::default(), small_chunks(threads)).unwrap();
            assert_eq!(scan.end, end);
        }
    }
}

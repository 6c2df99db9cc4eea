//! The scan on logs of a stock server, on logs that wrap, and on damaged ones.

use std::collections::BTreeMap;

use super::index::RedoIndex;
use super::pipeline::ScanOptions;
use super::readback::{Buffers, Excerpt, add_spans, bring_up, visit_records};
use super::scan::{LogBytes, LogScan, scan, scan_into as scan_with};
use super::spill::SpillPlace;
use crate::format::redo_encode::{Encoder, finish};
use crate::format::redo_file::{Checkpoint, FIRST_LSN, LogGeometry, LogHeader, OFF_RECORDS};
use crate::format::redo_frame::{Framing, frame};
use crate::format::redo_record::{FileOp, PageOp, Record, Records};
use crate::format::tests::{Random, sample};
use crate::os::sim::{Call, SimVfs};
use crate::os::{OpenMode, Vfs};
use crate::sync::Arc;
use crate::words::{Error, Lsn, PageId, PageNo, Result, SpaceId};

/// A log in memory; with the means to write one.
pub(super) struct Log {
    pub(super) bytes: Vec<u8>,
    pub(super) geometry: LogGeometry,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) lsn: Lsn,
}

impl LogBytes for Log {
    fn geometry(&self) -> LogGeometry {
        self.geometry
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoint
    }

    fn read(&self, lsn: Lsn, buf: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let at = Lsn(lsn.0 + done as u64);
            let piece = (self.geometry.bytes_to_wrap(at) as usize).min(buf.len() - done);
            let offset = self.geometry.offset(at) as usize;
            buf[done..done + piece].copy_from_slice(&self.bytes[offset..offset + piece]);
            done += piece;
        }
        Ok(())
    }
}

impl Log {
    fn stock(name: &str) -> Log {
        let bytes = sample(name);
        let header = LogHeader::parse(&bytes).unwrap();
        let geometry = LogGeometry::new(header.first_lsn, bytes.len() as u64).unwrap();
        let block = |at: usize| Checkpoint::parse(&bytes[at..], header.first_lsn);
        let checkpoint = Checkpoint::choose(block(0x1000), block(0x2000)).map(|(c, _)| c);
        Log {
            bytes,
            geometry,
            checkpoint,
            lsn: header.first_lsn,
        }
    }

    fn new(file_size: u64) -> Log {
        let geometry = LogGeometry::new(FIRST_LSN, file_size).unwrap();
        let bytes = vec![0; file_size as usize];
        Log {
            bytes,
            geometry,
            checkpoint: None,
            lsn: FIRST_LSN,
        }
    }

    /// Appends a mini-transaction; yields where it starts and ends.
    fn append(&mut self, code: impl FnOnce(&mut Encoder, &mut Vec<u8>)) -> (Lsn, Lsn) {
        let (mut encoder, mut out) = (Encoder::new(), Vec::new());
        code(&mut encoder, &mut out);
        let terminator = Lsn(self.lsn.0 + out.len() as u64);
        finish(&mut out, 0, self.geometry.seq_bit(terminator));
        let start = self.lsn;
        out.push(0);
        for (n, byte) in out.iter().enumerate() {
            let at = self.geometry.offset(Lsn(start.0 + n as u64)) as usize;
            self.bytes[at] = *byte;
        }
        self.lsn = Lsn(start.0 + out.len() as u64 - 1);
        (start, self.lsn)
    }

    fn write(&mut self, id: PageId, offset: usize, data: &[u8]) -> (Lsn, Lsn) {
        self.append(|encoder, out| encoder.write(out, id, offset, data))
    }

    fn file(&mut self, op: FileOp<'_>) {
        self.append(|encoder, out| encoder.file_op(out, &op));
    }

    /// A checkpoint that holds up to `lsn`; `names` are the modified spaces.
    fn checkpoint_at(&mut self, lsn: Lsn, names: &[(u32, &str)]) {
        self.checkpoint = Some(Checkpoint {
            lsn,
            end_lsn: self.lsn,
        });
        self.append(|encoder, out| {
            for &(space, name) in names {
                let name = name.as_bytes();
                encoder.file_op(
                    out,
                    &FileOp::Modify {
                        space: SpaceId(space),
                        name,
                    },
                );
            }
            encoder.file_op(out, &FileOp::Checkpoint(lsn));
        });
    }
}

/// Chunks so small that there are many of them.
pub(super) fn small_chunks(threads: usize) -> ScanOptions {
    ScanOptions {
        threads,
        chunk_bytes: 1000,
        alone_bytes: 3000,
    }
}

fn scan_into(log: &Log, index: RedoIndex) -> Result<LogScan> {
    scan_with(log, index, small_chunks(1))
}

fn page(space: u32, number: u32) -> PageId {
    PageId::new(SpaceId(space), PageNo(number))
}

/// What the index must hold, found the plain way: per page the mini-transactions, each with the
/// records' text.
type Plain = BTreeMap<PageId, Vec<(Lsn, Lsn, Vec<String>)>>;

fn plain(log: &Log, from: Lsn) -> (Plain, Lsn) {
    let (mut pages, mut lsn) = (Plain::new(), from);
    loop {
        let mut bytes = vec![0; (log.geometry.capacity() as usize).min(1 << 16)];
        log.read(lsn, &mut bytes).unwrap();
        let bit = |n: usize| log.geometry.seq_bit(Lsn(lsn.0 + n as u64));
        let Framing::Mtr { records, total } = frame(&bytes, bit) else {
            return (pages, lsn);
        };
        let end = Lsn(lsn.0 + total as u64);
        for parsed in Records::new(records) {
            let Record::Page(id, op) = parsed.unwrap().record else {
                continue;
            };
            let list = pages.entry(id).or_default();
            match op {
                PageOp::Free | PageOp::Init => list.clear(),
                _ => {}
            }
            if list.last().is_none_or(|(start, ..)| *start != lsn) {
                list.push((lsn, end, Vec::new()));
            }
            list.last_mut().unwrap().2.push(format!("{op:?}"));
            if op == PageOp::Free {
                list.clear();
            }
        }
        pages.retain(|_, list| !list.is_empty());
        lsn = end;
    }
}

/// The same as the index has it, what stayed in the log read from there: page by page, or ahead for
/// several pages.
pub(super) fn indexed(log: &dyn LogBytes, scan: &LogScan) -> Plain {
    let index = &scan.index;
    let pages = index.pages_sorted();
    let buffers = Arc::new(Buffers::new());
    let mut spans = Vec::new();
    for &id in pages.iter().step_by(2) {
        add_spans(index, id, Lsn(0), &mut spans).unwrap();
    }
    spans.sort_unstable();
    let ahead = Excerpt::read(log, &spans, &buffers).unwrap().0;
    let of_page = |id: PageId, ahead: Option<&Excerpt>| -> Vec<(Lsn, Lsn, Vec<String>)> {
        let mut mtrs = Vec::new();
        let mut each = |start, end, records: &[u8]| {
            let ops = Records::new(records).filter_map(|parsed| match parsed.unwrap().record {
                Record::Page(found, op) if found == id => Some(format!("{op:?}")),
                _ => None,
            });
            mtrs.push((start, end, ops.collect()));
            Ok(())
        };
        visit_records((index, log), id, Lsn(0), (ahead, &buffers), &mut each).unwrap();
        mtrs
    };
    for &id in &pages {
        let mtrs = of_page(id, Some(&ahead));
        assert_eq!(mtrs, of_page(id, None));
        assert_eq!(index.oldest(id), Some(mtrs[0].0));
        assert_eq!(index.newest(id), Some(mtrs.last().unwrap().1));
        assert_eq!(index.rebuilds(id), mtrs[0].2[0] == "Init");
    }
    pages
        .into_iter()
        .map(|id| (id, of_page(id, None)))
        .collect()
}

#[test]
fn logs_of_a_clean_shutdown_are_clean() {
    for name in ["fresh/ib_logfile0", "mini/ib_logfile0"] {
        let log = Log::stock(name);
        let scan = scan(&log).unwrap();
        let checkpoint = log.checkpoint.unwrap();
        assert!(scan.clean && scan.index.is_empty() && scan.mtr_count == 1);
        assert_eq!(scan.end, Lsn(checkpoint.lsn.0 + 16));
        scan.check_names(|_| false).unwrap();
    }
}

#[test]
fn a_stock_log_read_from_any_of_its_checkpoints_yields_the_records_by_page() {
    let mut log = Log::stock("mini/ib_logfile0");
    let mut checkpoints = Vec::new();
    let mut lsn = log.geometry.first_lsn();
    let bytes = log.bytes.clone();
    while let Framing::Mtr { records, total } = frame(&bytes[lsn.0 as usize..], |_| 1) {
        if let Record::File(FileOp::Checkpoint(at)) =
            Records::new(records).last().unwrap().unwrap().record
        {
            checkpoints.push(Checkpoint {
                lsn: at,
                end_lsn: lsn,
            });
        }
        lsn.0 += total as u64;
    }
    assert!(checkpoints.len() > 3);
    println!("{} checkpoints", checkpoints.len());
    let mut sizes = 0;
    for checkpoint in checkpoints {
        log.checkpoint = Some(checkpoint);
        let scan = scan(&log).unwrap();
        let (expected, end) = plain(&log, checkpoint.lsn);
        assert_eq!(scan.end, end);
        // Tables were dropped by the sample's statements: their records are void.
        let deleted = |id: &PageId| scan.index.files().get(&id.space).is_some_and(|f| f.deleted);
        let expected: Plain = expected
            .into_iter()
            .filter(|(id, _)| !deleted(id))
            .collect();
        assert_eq!(indexed(&log, &scan), expected);
        scan.check_names(|space| space.0 == 1 || space.0 == 2)
            .unwrap();
        sizes += scan
            .index
            .files()
            .values()
            .filter(|file| file.size.is_some())
            .count();
        assert!(
            scan.index
                .files()
                .values()
                .all(|f| f.flags.is_none_or(|flags| flags != 0))
        );
    }
    assert!(sizes > 0);
}

/// Random mini-transactions over several laps of a small log.
pub(super) fn random_log(seed: u64, laps: u64) -> Log {
    let mut random = Random::new(seed);
    let mut log = Log::new(OFF_RECORDS + 20_000 + random.below(50_000) as u64);
    let capacity = log.geometry.capacity();
    let mut starts = Vec::new();
    log.checkpoint_at(log.lsn, &[]);
    while log.lsn.0 < FIRST_LSN.0 + laps * capacity {
        let id = page(random.below(3) as u32, random.below(5) as u32);
        let mut data = vec![0; 1 + random.below(300)];
        random.fill(&mut data);
        let (start, _) = log.append(|encoder, out| match random.below(10) {
            0 => encoder.init_page(out, id),
            1 => encoder.free_page(out, id),
            2 => {
                encoder.write(out, id, 40, &data);
                encoder.init_page(out, id);
                encoder.write(out, id, 50, &data);
            }
            _ => {
                encoder.write(out, id, 100, &data);
                encoder.write(out, page(0, 9), 38, &data);
                encoder.memset(out, id, 60, 8, &[1, 2]);
            }
        });
        starts.push(start);
        let used = log.lsn.0 - log.checkpoint.unwrap().lsn.0;
        if used > capacity / 2 || random.below(40) == 0 {
            let held_back = random.below(used as usize / 2 + 1) as u64;
            // A checkpoint stands at the start of a mini-transaction.
            let old = starts.iter().find(|start| start.0 >= log.lsn.0 - held_back);
            let lsn = old.copied().unwrap_or(log.lsn);
            starts.retain(|start| *start >= lsn);
            log.checkpoint_at(lsn, &[(1, "./t/a.ibd"), (2, "./t/b.ibd")]);
        }
    }
    log
}

#[test]
fn a_log_that_wrapped_is_read_to_its_logical_end() {
    for seed in 1..40 {
        println!("seed {seed}");
        let log = random_log(seed, 1 + seed % 7);
        let scan = scan(&log).unwrap();
        assert_eq!(scan.end, log.lsn);
        let (expected, _) = plain(&log, scan.checkpoint.lsn);
        assert_eq!(indexed(&log, &scan), expected);
        scan.check_names(|_| false).unwrap();
        assert!(scan.index.bytes() > 0);
    }
}

/// A place for spilled records, and the file system it is on.
fn spill_place() -> (SimVfs, SpillPlace) {
    let sim = SimVfs::new();
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    (sim, SpillPlace::new(&vfs, "."))
}

#[test]
fn records_that_memory_does_not_hold_are_found_in_the_file() {
    let mut spilled_pages = 0;
    for seed in 1..40 {
        println!("seed {seed}");
        let log = random_log(seed, 1 + seed % 7);
        let (sim, place) = spill_place();
        let limit = 1000 + 200 * seed as usize;
        let scan = scan_into(&log, RedoIndex::with_limit(limit, Some(place))).unwrap();
        let (expected, _) = plain(&log, scan.checkpoint.lsn);
        assert_eq!(indexed(&log, &scan), expected);
        let spilled = |&id: &PageId| scan.index.is_spilled(id);
        let count = scan
            .index
            .pages_sorted()
            .iter()
            .filter(|id| spilled(id))
            .count();
        spilled_pages += count;
        let is_there = sim.exists("./ib_redo_index.tmp").unwrap();
        assert!(is_there || count == 0);
        drop(scan);
        assert!(
            sim.list_dir(".").unwrap().is_empty(),
            "the file goes with the index"
        );
    }
    assert!(spilled_pages > 50, "{spilled_pages}");
}

/// Bytes of the file were taken apart without a look at them: other ones were a panic.
#[test]
fn spilled_records_that_changed_are_an_error() {
    let log = random_log(5, 2);
    let (sim, place) = spill_place();
    let scan = scan_into(&log, RedoIndex::with_limit(1000, Some(place))).unwrap();
    let path = "./ib_redo_index.tmp";
    let file = sim.open(path, OpenMode::WRITE).unwrap();
    let zeros = vec![0; file.size().unwrap() as usize];
    file.write_at(&zeros, 0).unwrap();
    let mut pages = 0;
    for id in scan.index.pages().filter(|id| scan.index.is_spilled(*id)) {
        let error = scan.index.visit(id, &mut |_| Ok(())).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
        assert!(error.to_string().contains(path), "{error}");
        pages += 1;
    }
    assert!(pages > 3, "{pages} pages are in the file");
}

#[test]
fn records_that_changed_in_the_log_are_an_error() {
    let mut log = random_log(5, 2);
    let scan = scan(&log).unwrap();
    let mut spans = Vec::new();
    for id in scan.index.pages_sorted() {
        add_spans(&scan.index, id, Lsn(0), &mut spans).unwrap();
    }
    spans.sort_unstable();
    spans.dedup();
    assert!(spans.len() > 5, "{} of them stay in the log", spans.len());
    for &(start, _) in &spans {
        let offset = log.geometry.offset(Lsn(start.0 + 3)) as usize;
        log.bytes[offset] ^= 1;
    }
    let mut pages = 0;
    for id in scan.index.pages_sorted() {
        let mut own = Vec::new();
        add_spans(&scan.index, id, Lsn(0), &mut own).unwrap();
        if own.is_empty() {
            continue;
        }
        let error = bring_up(&scan.index, &log, id, &mut vec![0; 16384]).unwrap_err();
        assert!(error.to_string().contains("other bytes"), "{error}");
        pages += 1;
    }
    assert!(pages > 3, "{pages} pages have records there");
}

#[test]
fn a_recovery_that_has_no_room_for_records_says_so() {
    let log = random_log(5, 2);
    let (sim, place) = spill_place();
    sim.fail(Call::Write, "ib_redo_index.tmp", 0, libc::ENOSPC, false);
    let error = scan_into(&log, RedoIndex::with_limit(2000, Some(place))).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("ib_redo_index.tmp") && text.contains("innodb_buffer_pool_size"),
        "{text}"
    );
    assert!(sim.list_dir(".").unwrap().is_empty());
    let error = scan_into(&log, RedoIndex::with_limit(2000, None)).unwrap_err();
    assert!(error.to_string().contains("2000 bytes"), "{error}");
}

#[test]
fn a_damaged_tail_ends_the_log_earlier_and_never_panics() {
    for seed in 1..200 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let mut log = random_log(1 + seed % 10, 1 + seed % 3);
        let checkpoint = log.checkpoint.unwrap();
        let (used, end) = ((log.lsn.0 - checkpoint.lsn.0) as usize, log.lsn);
        let at = Lsn(checkpoint.lsn.0 + random.below(used) as u64);
        let offset = log.geometry.offset(at) as usize;
        log.bytes[offset] ^= 1 << random.below(8);
        match scan(&log) {
            Ok(scan) => {
                assert!(scan.end <= at && scan.end < end);
                let (expected, _) = plain(&log, checkpoint.lsn);
                assert_eq!(indexed(&log, &scan), expected);
            }
            Err(Error::Corrupt(_)) => assert!(at < Lsn(checkpoint.end_lsn.0 + 200)),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn without_its_file_checkpoint_a_checkpoint_is_refused() {
    let why = |log: &Log| scan(log).unwrap_err().to_string();
    let mut log = Log::new(1 << 20);
    assert!(why(&log).contains("no valid checkpoint"));
    let start = log.lsn;
    log.write(page(0, 5), 40, b"x");
    log.checkpoint = Some(Checkpoint {
        lsn: start,
        end_lsn: log.lsn,
    });
    assert!(why(&log).contains("missing FILE_CHECKPOINT(12288)"));
    // A record of another checkpoint is skipped, a change is not.
    log.file(FileOp::Checkpoint(Lsn(12289)));
    log.file(FileOp::Modify {
        space: SpaceId(7),
        name: b"./t/a.ibd",
    });
    assert!(why(&log).contains("missing"));
    log.file(FileOp::Checkpoint(start));
    assert_eq!(scan(&log).unwrap().end, log.lsn);
    let mut log = Log::new(1 << 20);
    log.checkpoint = Some(Checkpoint {
        lsn: log.lsn,
        end_lsn: log.lsn,
    });
    log.write(page(0, 5), 40, b"x");
    log.file(FileOp::Checkpoint(FIRST_LSN));
    assert!(why(&log).contains("missing"));
    // The end LSN must be where a mini-transaction starts.
    let mut log = Log::new(1 << 20);
    log.write(page(0, 5), 40, b"x");
    log.checkpoint_at(FIRST_LSN, &[]);
    log.checkpoint.as_mut().unwrap().end_lsn.0 -= 1;
    assert!(why(&log).contains("inside"));
}

/// Whether all tablespaces but those of `undo` are named.
fn named(log: &Log, undo: &[u32]) -> Result<()> {
    scan(log)
        .unwrap()
        .check_names(|space| undo.contains(&space.0))
}

#[test]
fn files_are_created_renamed_deleted_and_sized_by_the_log() {
    let mut log = Log::new(1 << 20);
    log.checkpoint_at(log.lsn, &[]);
    log.append(|encoder, out| {
        encoder.file_op(
            out,
            &FileOp::Create {
                space: SpaceId(4),
                name: b"./t/a.ibd",
            },
        );
        encoder.init_page(out, page(4, 0));
        encoder.write(out, page(4, 0), 46, &7u32.to_be_bytes());
        encoder.write(out, page(4, 0), 54, &0x15u32.to_be_bytes());
    });
    log.write(page(4, 0), 48, &[0, 9]);
    log.write(page(4, 3), 40, b"x");
    log.file(FileOp::Rename {
        space: SpaceId(4),
        old: b"./t/a.ibd",
        new: b"./t/b.ibd",
    });
    log.write(page(0, 0), 40, &[0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0]);
    let scan1 = scan(&log).unwrap();
    assert!(!scan1.clean);
    let file = &scan1.index.files()[&SpaceId(4)];
    assert_eq!(file.name.as_deref(), Some("./t/b.ibd"));
    assert_eq!(
        (file.size, file.flags),
        (Some(7), Some(0x15)),
        "half a size is none"
    );
    assert!(file.created && !file.deleted && file.renames.len() == 1);
    assert_eq!(scan1.index.files()[&SpaceId(0)].size, Some(768));
    assert!(scan1.index.has(page(4, 3)));
    named(&log, &[]).unwrap();

    log.file(FileOp::Delete {
        space: SpaceId(4),
        name: b"./t/b.ibd",
    });
    log.write(page(4, 3), 40, b"late");
    let scan2 = scan(&log).unwrap();
    assert!(scan2.index.files()[&SpaceId(4)].deleted);
    assert!(!scan2.index.has(page(4, 3)) && !scan2.index.has(page(4, 0)));
}

#[test]
fn an_undo_tablespace_needs_no_name_and_others_do_in_time() {
    let mut log = Log::new(1 << 20);
    log.checkpoint_at(log.lsn, &[]);
    log.write(page(1, 3), 40, b"u");
    assert!(named(&log, &[]).is_err());
    named(&log, &[1]).unwrap();
    log.write(page(6, 3), 40, b"t");
    log.file(FileOp::Modify {
        space: SpaceId(6),
        name: b"./t/c.ibd",
    });
    assert!(
        named(&log, &[1])
            .unwrap_err()
            .to_string()
            .contains("tablespace 6")
    );
    // Before FILE_CHECKPOINT the name may follow.
    let mut log = Log::new(1 << 20);
    log.write(page(6, 3), 40, b"t");
    log.checkpoint_at(FIRST_LSN, &[(6, "./t/c.ibd")]);
    named(&log, &[]).unwrap();
}

#[test]
fn a_truncated_undo_tablespace_forgets_its_records() {
    let mut log = Log::new(1 << 20);
    log.checkpoint_at(log.lsn, &[]);
    log.write(page(1, 3), 40, b"old");
    log.write(page(2, 3), 40, b"kept");
    let (start, _) = log.append(|encoder, out| {
        encoder.write(out, page(1, 4), 40, b"old");
        encoder.page_op(out, page(1, 640), &PageOp::TrimPages);
        encoder.init_page(out, page(1, 0));
        encoder.write(out, page(1, 0), 46, &640u32.to_be_bytes());
    });
    let scan = scan(&log).unwrap();
    assert_eq!(scan.index.pages_sorted(), [page(1, 0), page(2, 3)]);
    let file = &scan.index.files()[&SpaceId(1)];
    assert_eq!((file.trimmed, file.size), (Some(start), Some(640)));
    assert_eq!(scan.index.page_count(), 2);
}

//! Tests of the log: laps, its end, power cuts; helpers of the others.

use std::time::Duration;

use super::file::{self, BLOCK};
use super::*;
use crate::format::redo_encode::Encoder;
use crate::format::redo_file::{Checkpoint, FIRST_LSN};
use crate::format::redo_frame::{Framing, frame};
use crate::format::redo_record::FileOp;
use crate::os::sim::{Random, SimVfs};
use crate::os::{CrashPoints, OpenMode, Vfs};
use crate::space::{Places, Registry};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Event};
use crate::words::{Lsn, PageId, PageNo, Result, SpaceId};

pub(super) fn options(dir: &str, file_size: u64) -> LogOptions {
    LogOptions {
        dir: dir.into(),
        file_size,
        buffer_size: 2 << 20,
        page_size: 4096,
        creator: "xtradb test".into(),
        direct: true,
        sync: true,
    }
}

pub(super) fn registry(vfs: &Arc<dyn Vfs>) -> Registry {
    let places = Places {
        data_dir: ".".into(),
        system_dir: ".".into(),
        undo_dir: ".".into(),
        page_size: 16384,
        direct: true,
        read_only: false,
    };
    Registry::new(vfs.clone(), places)
}

pub(super) struct Setup {
    pub(super) sim: SimVfs,
    pub(super) log: Log,
    pub(super) spaces: Registry,
}

pub(super) fn setup(file_size: u64) -> Setup {
    let sim = SimVfs::new();
    let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
    let points = Arc::new(CrashPoints::new());
    let log = Log::create(&sim, options(".", file_size), points, FIRST_LSN).unwrap();
    Setup {
        sim,
        log,
        spaces: registry(&vfs),
    }
}

/// A finished mini-transaction: page 7:`number` gets `len` bytes that repeat `number`.
pub(super) fn mtr(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let page = PageId::new(SpaceId(0), PageNo(number));
    let data: Vec<u8> = number
        .to_be_bytes()
        .into_iter()
        .cycle()
        .take(len.max(4))
        .collect();
    Encoder::new().write(&mut bytes, page, 100, &data);
    Log::finish(&mut bytes);
    bytes
}

pub(super) fn append(log: &Log, number: u32, len: usize) -> Result<LogRange> {
    let _credit = log.admit(len as u64 + 64, Class::Statement)?;
    let gate = log.enter();
    let range = log.append(&gate, &mut mtr(number, len))?;
    log.registered(range);
    Ok(range)
}

pub(super) struct Found {
    /// Start and records of each mini-transaction from the checkpoint on.
    pub(super) mtrs: Vec<(Lsn, Vec<u8>)>,
    pub(super) end: Lsn,
    pub(super) checkpoint: Checkpoint,
}

/// Reads the log as recovery does.
pub(super) fn scan(file: &LogFile) -> Found {
    let (checkpoint, _) = file.checkpoint().expect("a valid checkpoint");
    let geometry = file.geometry();
    let mut found = Found {
        mtrs: Vec::new(),
        end: checkpoint.lsn,
        checkpoint,
    };
    let mut named = false;
    loop {
        let mut len = 1 << 12;
        let total = loop {
            let mut bytes = vec![0; len.min(geometry.capacity() as usize)];
            file.read(found.end, &mut bytes).unwrap();
            let bit = |n: usize| geometry.seq_bit(Lsn(found.end.0 + n as u64));
            match frame(&bytes, bit) {
                Framing::Mtr { records, total } => {
                    found.mtrs.push((found.end, records.to_vec()));
                    break total;
                }
                Framing::Incomplete if len < 1 << 20 => len *= 4,
                _ => break 0,
            }
        };
        if total == 0 {
            break;
        }
        let mut expected = Vec::new();
        Encoder::new().file_op(&mut expected, &FileOp::Checkpoint(checkpoint.lsn));
        named |= found.end >= checkpoint.end_lsn && found.mtrs.last().unwrap().1 == expected;
        found.end.0 += total as u64;
    }
    assert!(
        named,
        "no FILE_CHECKPOINT({}) from {}",
        checkpoint.lsn, checkpoint.end_lsn
    );
    found
}

pub(super) fn open(sim: &SimVfs) -> LogFile {
    LogFile::open(sim, ".", OpenMode::DIRECT).unwrap()
}

#[test]
fn a_new_log_is_clean_and_goes_on_after_a_clean_shutdown() {
    let Setup { sim, log, spaces } = setup(4 << 20);
    assert_eq!(log.lsn(), Lsn(FIRST_LSN.0 + 16));
    let range = append(&log, 1, 5000).unwrap();
    log.write_up_to(range.end, true).unwrap();
    assert!(log.flushed_lsn() >= range.end);
    let end = log.make_clean(&spaces).unwrap();
    assert_eq!(log.checkpoint(&spaces, || None).unwrap(), Made::Unneeded);
    drop(log);
    let file = open(&sim.after_kill());
    let found = scan(&file);
    assert_eq!((found.end, found.mtrs.len()), (end, 1));
    assert_eq!(
        found.checkpoint,
        Checkpoint {
            lsn: Lsn(end.0 - 16),
            end_lsn: Lsn(end.0 - 16)
        }
    );
    let sim = sim.after_kill();
    let points = Arc::new(CrashPoints::new());
    let log = Log::open(options(".", 4 << 20), points, open(&sim), end).unwrap();
    let range = append(&log, 2, 10).unwrap();
    assert_eq!(range.start, end);
    log.flush_all().unwrap();
    assert_eq!(scan(&open(&sim.after_kill())).mtrs.len(), 2);
}

#[test]
fn a_new_file_of_another_size_takes_over_at_the_same_lsn() {
    let Setup { sim, log, spaces } = setup(4 << 20);
    append(&log, 1, 70_000).unwrap();
    let end = log.make_clean(&spaces).unwrap();
    drop(log);
    let file = open(&sim);
    assert!(Log::wants_new_file(&file, &options(".", 8 << 20)));
    drop(file);
    let points = Arc::new(CrashPoints::new());
    sim.put("./ib_logfile101", b"left over");
    let log = Log::create(&sim, options(".", 8 << 20), points, end).unwrap();
    let range = append(&log, 2, 100).unwrap();
    assert_eq!(range.start, Lsn(end.0 + 16));
    log.flush_all().unwrap();
    let found = scan(&open(&sim.after_power_cut(1)));
    assert_eq!(found.mtrs.len(), 2);
    assert_eq!(found.mtrs[1].0, range.start);
    file::remove_leftovers(&sim, ".").unwrap();
    assert_eq!(sim.list_dir(".").unwrap(), ["ib_logfile0"]);
}

/// Checkpoints on request, in a thread of its own, as the cleaner does.
struct Cleaner {
    wake: Event,
    stop: AtomicBool,
}

impl CheckpointNeeded for Cleaner {
    fn checkpoint_needed(&self, _target: Lsn, _urgent: bool) {
        self.wake.set();
    }
}

#[test]
fn concurrent_appenders_go_round_the_file_many_times() {
    let Setup { sim, log, spaces } = setup(4 << 20);
    let cleaner = Arc::new(Cleaner {
        wake: Event::new(),
        stop: AtomicBool::new(false),
    });
    log.set_hook(cleaner.clone());
    let (appended, commits) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (log, spaces, cleaner) = (&log, &spaces, &cleaner);
        let checkpoints = scope.spawn(move || {
            while !cleaner.stop.load(Ordering::SeqCst) {
                cleaner.wake.wait(Duration::from_millis(20));
                log.checkpoint(spaces, || None).unwrap();
            }
        });
        let threads: Vec<_> = (0..4u64)
            .map(|seed| {
                let (appended, commits) = (&appended, &commits);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    while appended.load(Ordering::Relaxed) < 30 << 20 {
                        let len = match random.below(50) {
                            0 => 200_000,
                            1..=5 => 9_000,
                            _ => 20 + random.below(300) as usize,
                        };
                        let number = 1 + random.below(1 << 20) as u32;
                        let range = append(log, number, len).unwrap();
                        appended.fetch_add(range.end.0 - range.start.0, Ordering::Relaxed);
                        if random.below(4) == 0 {
                            log.write_up_to(range.end, true).unwrap();
                            assert!(log.flushed_lsn() >= range.end);
                            commits.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        cleaner.stop.store(true, Ordering::SeqCst);
        cleaner.wake.set();
        checkpoints.join().unwrap();
    });
    for number in 1..=50 {
        append(&log, number, 1000).unwrap();
    }
    log.flush_all().unwrap();
    assert_eq!(log.registered_lsn(), log.lsn());
    let (writes, _) = log.write_counts();
    println!(
        "{writes} writes, {} commits, {} waits",
        commits.into_inner(),
        log.log_waits()
    );
    let found = scan(&open(&sim.after_kill()));
    assert_eq!(found.end, log.lsn());
    assert!(found.end.0 > 7 * (4 << 20));
    assert!(found.mtrs.len() >= 50);
}

#[test]
fn the_end_is_found_wherever_it_falls_in_a_block() {
    let Setup { sim, log, .. } = setup(4 << 20);
    // All of one length, so that whatever is left over from elsewhere would fit on: 64 divides a
    // block, and the log starts with 16 bytes.
    let overhead = mtr(1000, 48).len() - 48;
    append(&log, 1000, 48 - overhead).unwrap();
    assert_eq!(log.lsn().0 % 64, 0);
    for number in 1001..1300 {
        let range = append(&log, number, 64 - overhead).unwrap();
        assert_eq!(range.end.0 - range.start.0, 64);
        log.write_up_to(range.end, true).unwrap();
        let found = scan(&open(&sim.after_kill()));
        assert_eq!(found.end, range.end, "mini-transaction {number}");
    }
}

#[test]
fn what_a_torn_write_left_behind_the_end_does_not_come_back() {
    let Setup { sim, log, .. } = setup(4 << 20);
    let overhead = mtr(1000, 4096).len() - 4096;
    append(&log, 1000, 4096 - 16 - overhead).unwrap();
    for number in 1001..1020 {
        append(&log, number, 4096 - overhead).unwrap();
    }
    log.flush_all().unwrap();
    drop(log);
    // Block 5 never reached the device, the ones behind did.
    let mut bytes = sim.content("./ib_logfile0").unwrap();
    bytes[0x3000 + 5 * BLOCK..0x3000 + 6 * BLOCK].fill(0);
    sim.put("./ib_logfile0", &bytes);
    let file = open(&sim.after_kill());
    let found = scan(&file);
    assert_eq!(found.end, Lsn(FIRST_LSN.0 + 5 * BLOCK as u64));
    drop(file);
    let points = Arc::new(CrashPoints::new());
    let log = Log::open(options(".", 4 << 20), points, open(&sim), found.end).unwrap();
    for number in 2000..2010 {
        append(&log, number, 4096 - overhead).unwrap();
        log.flush_all().unwrap();
        assert_eq!(scan(&open(&sim.after_kill())).end, log.lsn(), "{number}");
    }
}

/// Appends until the power goes; yields the highest LSN acknowledged as durable.
fn run_until_power_goes(log: &Log, spaces: &Registry, seed: u64) -> (Lsn, Vec<(Lsn, Vec<u8>)>) {
    let acknowledged = AtomicU64::new(0);
    let all = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (acknowledged, all) = (&acknowledged, &all);
            scope.spawn(move || {
                let mut random = Random(seed * 8 + thread);
                for round in 0..2000u32 {
                    let number = 1 + random.below(1 << 24) as u32;
                    let len = if random.below(9) == 0 {
                        30_000
                    } else {
                        10 + random.below(500)
                    };
                    let Ok(range) = append(log, number, len as usize) else {
                        return;
                    };
                    let mut bytes = mtr(number, len as usize);
                    bytes.truncate(bytes.len() - 5);
                    all.lock().unwrap().push((range.start, bytes));
                    if random.below(3) == 0 {
                        if log.write_up_to(range.end, true).is_err() {
                            return;
                        }
                        acknowledged.fetch_max(range.end.0, Ordering::SeqCst);
                    }
                    if thread == 0 && round % 40 == 39 {
                        let oldest = log.flushed_lsn();
                        if log.checkpoint(spaces, || Some(oldest)).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    all.sort();
    (Lsn(acknowledged.into_inner()), all)
}

#[test]
fn whatever_was_acknowledged_is_found_after_a_power_cut() {
    let mut crashes = 0;
    for seed in 0..25u64 {
        let Setup {
            mut sim, mut log, ..
        } = setup(4 << 20);
        let mut random = Random(seed ^ 0xABCD);
        for crash in 0..3 {
            let vfs: Arc<dyn Vfs> = Arc::new(sim.clone());
            let spaces = registry(&vfs);
            sim.cut_power_after(20 + random.below(200));
            let (acknowledged, all) = run_until_power_goes(&log, &spaces, seed * 10 + crash);
            crashes += u32::from(sim.is_off());
            drop(log);
            sim = sim.after_power_cut(random.next_u64());
            let file = open(&sim);
            let found = scan(&file);
            assert!(
                found.end >= acknowledged,
                "seed {seed}: {} < {acknowledged}",
                found.end
            );
            let known: std::collections::BTreeMap<Lsn, &Vec<u8>> =
                all.iter().map(|(lsn, bytes)| (*lsn, bytes)).collect();
            let first_here = all.first().map_or(Lsn(u64::MAX), |(lsn, _)| *lsn);
            for (lsn, records) in &found.mtrs {
                // What a file record starts with is not ours.
                if *lsn >= first_here && records[0] < 0x80 {
                    assert_eq!(known.get(lsn), Some(&records), "seed {seed} at {lsn}");
                }
            }
            let points = Arc::new(CrashPoints::new());
            log = Log::open(options(".", 4 << 20), points, file, found.end).unwrap();
        }
    }
    assert!(crashes > 35, "{crashes} power cuts");
}

/// Blocks of a new file are written before their first commit comes, and what was written so is no log.
#[test]
fn a_new_file_is_written_ahead_of_its_commits() {
    let dir = std::env::temp_dir().join(format!("xtradb-ahead-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let path = dir.to_str().expect("UTF-8").to_string();
    let vfs = crate::os::RealVfs;
    let points = Arc::new(CrashPoints::new());
    let log = Log::create(&vfs, options(&path, 4 << 20), points, FIRST_LSN).expect("a log");
    let unwritten = |log: &Log| log.file().unwritten_from(log.lsn());
    let first = unwritten(&log);
    let mut appended = 0;
    // Some have many blocks, so that the file's end is passed.
    for n in 0..500u32 {
        let len = if n < 100 { 300 } else { 12_000 };
        let range = append(&log, n, len).expect("appended");
        log.write_up_to(range.end, true).expect("durable");
        appended += 1;
        if n == 99 && first.is_some() {
            let ahead = unwritten(&log).expect("the file is not full");
            assert!(
                ahead.0 - FIRST_LSN.0 >= 1 << 20,
                "only up to {ahead} it is written"
            );
        }
        if n == 250 {
            assert!(log.lsn().0 - FIRST_LSN.0 < 3 << 20, "the first lap");
            let file = LogFile::open(&vfs, &path, OpenMode::READ).expect("opened");
            let found = scan(&file);
            assert_eq!((found.mtrs.len(), found.end), (appended + 1, log.lsn()));
        }
        if n > 250 {
            let spaces = registry(&(Arc::new(crate::os::RealVfs) as Arc<dyn Vfs>));
            log.checkpoint(&spaces, || None).expect("a checkpoint");
        }
    }
    assert!(log.lsn().0 - FIRST_LSN.0 > 4 << 20, "a second lap");
    drop(log);
    std::fs::remove_dir_all(&dir).expect("removed");
}

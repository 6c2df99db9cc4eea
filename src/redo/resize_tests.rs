//! A log that changes its size again and again: nothing of it is lost, whenever the power goes and
//! whichever call fails.

use super::tests::{Setup, append, open, options, scan, setup};
use super::*;
use crate::os::sim::{Blow, Random, SimVfs};
use crate::os::{CrashPoints, File, OpenMode, Vfs};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::words::{Error, Lsn};

const SIZES: [u64; 4] = [4 << 20, 5 << 20, 12 << 20, (4 << 20) + 4096];

/// Appends, commits, makes checkpoints that leave some log behind them, and resizes.
struct Run {
    appended: Vec<LogRange>,
    size: u64,
}

impl Run {
    fn step(&mut self, s: &Setup, random: &mut Random) -> Result<(), Error> {
        match random.below(12) {
            0 => {
                let back = random.below(20) as usize;
                let at = self.appended.len().saturating_sub(back + 1);
                // No checkpoint goes back.
                let oldest = self.appended.get(at).map(|range| range.start);
                let oldest = oldest.map(|lsn| lsn.max(s.log.checkpoint_lsn()));
                s.log.checkpoint(&s.spaces, || oldest)?;
            }
            1 => {
                let size = SIZES[random.below(SIZES.len() as u64) as usize];
                if s.log.resize(&s.sim, size)? == Resized::Done {
                    self.size = size;
                }
            }
            2..=4 => {
                s.log.flush_all()?;
                s.sim.mark(s.log.lsn().0);
            }
            _ => {
                let len = match random.below(8) {
                    0 => 30_000,
                    1 => 4_000,
                    _ => 10 + random.below(300) as usize,
                };
                let number = self.appended.len() as u32 + 1;
                self.appended.push(append(&s.log, number, len)?);
            }
        }
        Ok(())
    }
}

/// Every mini-transaction from the checkpoint on is there, in order, up to `acknowledged` at least.
fn assert_whole(disk: &crate::os::sim::SimVfs, appended: &[LogRange], acknowledged: Lsn) {
    let file = open(disk);
    let found = scan(&file);
    assert!(found.end >= acknowledged, "{} < {acknowledged}", found.end);
    let behind = appended
        .iter()
        .filter(|range| range.start >= found.checkpoint.lsn && range.end <= found.end);
    for range in behind {
        let at = found.mtrs.binary_search_by_key(&range.start, |mtr| mtr.0);
        let (_, records) = &found.mtrs[at.unwrap_or_else(|_| panic!("no {range:?}"))];
        assert_eq!(records.len() as u64 + 5, range.end.0 - range.start.0);
    }
}

#[test]
fn a_log_of_changing_size_survives_power_cuts_at_every_write() {
    let (mut done, mut states) = (0, 0);
    for seed in 1..6 {
        println!("seed {seed}");
        let mut random = Random(seed);
        let s = setup(4 << 20);
        s.sim.start_recording();
        s.sim.mark(s.log.flushed_lsn().0);
        let mut run = Run {
            appended: Vec::new(),
            size: 4 << 20,
        };
        for _ in 0..120 {
            let before = run.size;
            run.step(&s, &mut random).expect("a healthy disk");
            assert_eq!(s.log.file_size(), run.size);
            done += u32::from(before != run.size);
        }
        let recording = s.sim.take_recording();
        let marks = recording.marks();
        let mut replay = recording.replay();
        for moment in recording.moments() {
            replay.advance_to(moment);
            let marked = marks.iter().rev().find(|(at, _)| *at <= moment);
            let acknowledged = Lsn(marked.map_or(0, |(_, lsn)| *lsn));
            assert_whole(&replay.kill(), &run.appended, acknowledged);
            assert_whole(
                &replay.cut(seed * 1000 + moment as u64),
                &run.appended,
                acknowledged,
            );
            states += 2;
        }
    }
    println!("{done} resizes, {states} states");
    assert!(done > 15 && states > 500, "{done} resizes, {states} states");
}

#[test]
fn a_resize_that_fails_leaves_the_log_whole_and_usable_or_stopped() {
    let (mut stopped, mut went_on) = (0, 0);
    for blow in [Blow::Eio, Blow::Enospc, Blow::Short, Blow::Fsync] {
        for at in 0.. {
            let s = setup(4 << 20);
            let mut appended: Vec<LogRange> =
                (1..30).map(|n| append(&s.log, n, 500).unwrap()).collect();
            s.log.flush_all().unwrap();
            s.sim.strike(blow, at);
            let result = s.log.resize(&s.sim, 8 << 20);
            if s.sim.struck().is_none() {
                assert_eq!(result, Ok(Resized::Done));
                break;
            }
            s.sim.heal();
            let mut acknowledged = appended.last().unwrap().end;
            match append(&s.log, 77, 500).and_then(|range| {
                s.log.write_up_to(range.end, true)?;
                Ok(range)
            }) {
                Ok(range) => {
                    went_on += 1;
                    acknowledged = range.end;
                    appended.push(range);
                }
                Err(Error::Stopped(_)) => stopped += 1,
                Err(other) => panic!("{blow:?} at {at}: {other}"),
            }
            assert_eq!(s.sim.syncs_retried(), Vec::<String>::new());
            for seed in 0..4 {
                assert_whole(&s.sim.after_power_cut(seed), &appended, acknowledged);
            }
            assert_whole(&s.sim.after_kill(), &appended, acknowledged);
        }
    }
    println!("{stopped} stopped, {went_on} went on");
    assert!(stopped > 0 && went_on > 3);
}

/// Files whose renaming fails; notes what size the log counts with then.
#[derive(Debug)]
struct NoRename<'s> {
    sim: &'s SimVfs,
    log: &'s Log,
    counted: AtomicU64,
}

impl Vfs for NoRename<'_> {
    fn open(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>, Error> {
        self.sim.open(path, mode)
    }

    fn create(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>, Error> {
        self.sim.create(path, mode)
    }

    fn exists(&self, path: &str) -> Result<bool, Error> {
        self.sim.exists(path)
    }

    fn rename(&self, from: &str, _to: &str) -> Result<(), Error> {
        self.counted.store(self.log.file_size(), Ordering::Relaxed);
        Err(Error::io("rename", from, libc::EIO))
    }

    fn remove(&self, path: &str) -> Result<(), Error> {
        self.sim.remove(path)
    }

    fn list_dir(&self, path: &str) -> Result<Vec<String>, Error> {
        self.sim.list_dir(path)
    }

    fn create_dir(&self, path: &str) -> Result<(), Error> {
        self.sim.create_dir(path)
    }

    fn remove_dir(&self, path: &str) -> Result<(), Error> {
        self.sim.remove_dir(path)
    }

    fn sync_dir(&self, path: &str) -> Result<(), Error> {
        self.sim.sync_dir(path)
    }
}

/// Who is admitted meanwhile may go on in the old file: the smaller of the two sizes counts.
#[test]
fn room_is_counted_by_the_smaller_file_until_the_new_one_is_there() {
    for (from, to) in [(4 << 20, 16 << 20), (16 << 20, 4 << 20)] {
        let s = setup(from);
        append(&s.log, 1, 500).expect("appended");
        let vfs = NoRename {
            sim: &s.sim,
            log: &s.log,
            counted: AtomicU64::new(0),
        };
        let failed = s.log.resize(&vfs, to);
        assert!(matches!(failed, Err(Error::Io(_))), "{failed:?}");
        let counted = vfs.counted.load(Ordering::Relaxed);
        assert_eq!(counted, 4 << 20, "from {from} to {to}");
        assert_eq!(s.log.file_size(), from);
        assert_eq!(s.log.resize(&s.sim, to), Ok(Resized::Done));
        assert_eq!(s.log.file_size(), to);
    }
}

#[test]
fn a_log_with_too_much_behind_its_checkpoint_is_resized_later() {
    let s = setup(16 << 20);
    for number in 1..100 {
        append(&s.log, number, 100_000).unwrap();
    }
    assert_eq!(s.log.resize(&s.sim, 4 << 20), Ok(Resized::Later));
    assert_eq!(s.log.file_size(), 16 << 20);
    s.log.checkpoint(&s.spaces, || None).unwrap();
    assert_eq!(s.log.resize(&s.sim, 4 << 20), Ok(Resized::Done));
    assert_eq!(s.sim.list_dir(".").unwrap(), ["ib_logfile0"]);
    for number in 1..200 {
        append(&s.log, number, 100_000).unwrap();
        if number % 5 == 0 {
            s.log.checkpoint(&s.spaces, || None).unwrap();
        }
    }
    s.log.flush_all().unwrap();
    let end = s.log.lsn();
    drop(s.log);
    let found = scan(&open(&s.sim));
    assert_eq!(found.end, end);
    let points = Arc::new(CrashPoints::new());
    let log = Log::open(options(".", 4 << 20), points, open(&s.sim), end).unwrap();
    append(&log, 5, 100).unwrap();
    let bad = log.resize(&s.sim, 8192).unwrap_err();
    assert!(matches!(bad, Error::Invalid(_)), "{bad}");
}

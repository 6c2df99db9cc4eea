//! Tests of the log: failures, waits for room, names of files, other readers, damage.

use std::time::Duration;

use super::file::BLOCK;
use super::tests::*;
use super::*;
use crate::format::fsp::SpaceFlags;
use crate::format::redo_encode::Encoder;
use crate::format::redo_file::FIRST_LSN;
use crate::format::redo_record::FileOp;
use crate::os::sim::Call;
use crate::os::{CrashPoints, OpenMode, RealVfs, Vfs};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::words::{Error, Lsn, SpaceId};

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_and_every_waiter_hears_it() {
    let Setup { sim, log, spaces } = setup(4 << 20);
    let range = append(&log, 1, 100).unwrap();
    log.write_up_to(range.end, true).unwrap();
    sim.fail(Call::Sync, "ib_logfile0", 0, libc::EIO, true);
    let stopped = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 2..8 {
            let (log, stopped) = (&log, &stopped);
            scope.spawn(move || {
                let result = append(log, number, 100).and_then(|r| log.write_up_to(r.end, true));
                assert!(matches!(result, Err(Error::Stopped(_))), "{result:?}");
                stopped.fetch_add(1, Ordering::SeqCst);
            });
        }
    });
    assert_eq!(stopped.into_inner(), 6);
    assert!(log.is_frozen());
    // What has begun ends in the buffer, and is acknowledged as little.
    let unheard = append(&log, 9, 100).unwrap();
    let result = log.write_up_to(unheard.end, true);
    assert!(matches!(result, Err(Error::Stopped(_))), "{result:?}");
    assert!(matches!(
        log.checkpoint(&spaces, || None),
        Err(Error::Stopped(_))
    ));
    // What was acknowledged before stays so.
    log.write_up_to(range.end, true).unwrap();
}

#[test]
fn a_full_log_makes_statements_wait_for_a_checkpoint_and_lets_rollback_pass() {
    let Setup { log, spaces, .. } = setup(4 << 20);
    let limit = log.capacity().max_checkpoint_age;
    while log.age() + 200_000 < limit {
        append(&log, 1, 100_000).unwrap();
    }
    let waiting = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let credit = log.admit(250_000, Class::Statement).unwrap();
            waiting.store(false, Ordering::SeqCst);
            assert!(credit.bytes() >= 250_000);
        });
        std::thread::sleep(Duration::from_millis(50));
        assert!(waiting.load(Ordering::SeqCst));
        drop(log.admit(200_000, Class::System).unwrap());
        log.checkpoint(&spaces, || None).unwrap();
        waiter.join().unwrap();
    });
    assert!(log.log_waits() > 0);
    assert!(matches!(
        log.admit(4 << 20, Class::Statement),
        Err(Error::LogRoom)
    ));
    std::thread::scope(|scope| {
        while log.age() + 400_000 < limit {
            append(&log, 1, 100_000).unwrap();
        }
        let waiter = scope.spawn(|| log.admit(500_000, Class::Statement).map(drop));
        std::thread::sleep(Duration::from_millis(20));
        log.freeze("a test says so");
        let result = waiter.join().unwrap();
        assert_eq!(result, Err(Error::Stopped("a test says so".into())));
    });
}

#[test]
fn a_log_that_is_kept_has_an_end_for_statements_and_a_rest_for_the_others() {
    let Setup { log, spaces, .. } = setup(4 << 20);
    append(&log, 1, 1000).unwrap();
    let kept = log.lsn();
    log.hold_back(Some((kept, "./t/w.ibd")));
    let mut room = 0;
    let held = loop {
        match append(&log, 1, 100_000) {
            Ok(_) => room += 100_000,
            Err(error) => break error,
        }
        log.checkpoint(&spaces, || Some(kept)).unwrap();
    };
    assert!(
        matches!(&held, Error::LogHeld(file) if &**file == "./t/w.ibd"),
        "{held:?}"
    );
    assert!(room > 1_000_000, "{room} bytes were enough");
    // What was done can be undone.
    for _ in 0..room / 100_000 {
        let _credit = log.admit(100_064, Class::System).unwrap();
        let gate = log.enter();
        log.registered(log.append(&gate, &mut mtr(1, 100_000)).unwrap());
    }
    assert_eq!(log.admit(900_000, Class::System).map(drop), Err(held));
    drop(log.admit(300_000, Class::Dictionary).unwrap());
    // Nobody waits for it any more.
    log.hold_back(None);
    log.checkpoint(&spaces, || None).unwrap();
    drop(log.admit(1_500_000, Class::Statement).unwrap());
}

#[test]
fn a_panic_of_the_writing_leader_stops_its_followers() {
    let Setup { log, .. } = setup(4 << 20);
    log.crash_points()
        .arm_all("redo.before_write:panic")
        .unwrap();
    let range = append(&log, 1, 100).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        log.write_up_to(range.end, true)
    }));
    assert!(panicked.is_err());
    assert!(log.is_frozen());
    assert!(matches!(
        log.write_up_to(range.end, true),
        Err(Error::Stopped(_))
    ));
    crate::sync::order::assert_nothing_held();
}

#[test]
fn a_tablespace_is_named_before_its_first_change_and_at_each_checkpoint_until_it_rests() {
    let Setup { sim, log, spaces } = setup(4 << 20);
    let flags = SpaceFlags::full_crc32(16384);
    let table = spaces.create_table(SpaceId(5), "t/w", flags, 4).unwrap();
    let name = |found: &Found| -> Vec<Lsn> {
        let mut expected = Vec::new();
        let op = FileOp::Modify {
            space: SpaceId(5),
            name: b"./t/w.ibd",
        };
        Encoder::new().file_op(&mut expected, &op);
        let named = found
            .mtrs
            .iter()
            .filter(|(_, records)| *records == expected);
        named.map(|(lsn, _)| *lsn).collect()
    };
    {
        let gate = log.enter_exclusive();
        log.append_modify(&gate, &spaces, &table).unwrap();
        log.append_modify(&gate, &spaces, &table).unwrap();
        let range = log.append(&gate, &mut mtr(3, 50)).unwrap();
        log.registered(range);
    }
    let first = table.modified_lsn();
    assert_ne!(first, Lsn(0));
    log.flush_all().unwrap();
    assert_eq!(name(&scan(&open(&sim.after_kill()))).len(), 1);
    // A checkpoint below the FILE_MODIFY: named again, stays in the list.
    append(&log, 1, 10).unwrap();
    let below = Lsn(FIRST_LSN.0 + 16);
    assert_eq!(
        log.checkpoint(&spaces, || Some(below)).unwrap(),
        Made::At(below)
    );
    assert_eq!(table.modified_lsn(), first);
    assert_eq!(name(&scan(&open(&sim.after_kill()))).len(), 2);
    // One above: named once more, leaves.
    assert!(matches!(
        log.checkpoint(&spaces, || None).unwrap(),
        Made::At(_)
    ));
    assert_eq!(table.modified_lsn(), Lsn(0));
    assert_eq!(name(&scan(&open(&sim.after_kill()))).len(), 1);
    let end = log.make_clean(&spaces).unwrap();
    let found = scan(&open(&sim.after_kill()));
    assert_eq!((found.end, found.mtrs.len()), (end, 1));
}

#[test]
fn a_file_operation_that_was_written_out_is_durable_and_a_hold_keeps_checkpoints_off() {
    let Setup { sim, log, spaces } = setup(4 << 20);
    let hold = log.hold_checkpoints();
    let op = FileOp::Rename {
        space: SpaceId(6),
        old: b"./t/a.ibd",
        new: b"./t/b.ibd",
    };
    let end = log.append_file_ops(&log.enter(), &[op]).unwrap().end;
    log.write_up_to(end, true).unwrap();
    assert_eq!(scan(&open(&sim.after_power_cut(7))).end, end);
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| log.checkpoint(&spaces, || None).unwrap());
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(log.checkpoint_lsn(), FIRST_LSN);
        drop(hold);
        assert_eq!(checkpoint.join().unwrap(), Made::At(end));
    });
}

#[test]
fn an_independent_reader_understands_the_file() {
    let dir = std::env::temp_dir().join(format!("xtradb-redo-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let dir_name = dir.to_str().unwrap().to_string();
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs);
    let points = Arc::new(CrashPoints::new());
    let log = Log::create(&RealVfs, options(&dir_name, 4 << 20), points, FIRST_LSN).unwrap();
    let spaces = registry(&vfs);
    for number in 1..=300 {
        append(&log, number, 20_000).unwrap();
        if log.age() > 1 << 20 {
            log.checkpoint(&spaces, || None).unwrap();
        }
    }
    log.flush_all().unwrap();
    let found = scan(&LogFile::open(&RealVfs, &dir_name, OpenMode::READ).unwrap());
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/redodump.py");
    let python = |args: &[&str]| {
        let out = std::process::Command::new("python3")
            .arg(tool)
            .args(args)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(
            out.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&out.stderr)
        );
        text
    };
    let header = python(&["header", &dir_name]);
    assert!(header.contains("xtradb test"), "{header}");
    let dump = python(&["dump", &dir_name]);
    let (start, end) = (found.checkpoint.lsn, found.end);
    assert!(
        dump.contains(&start.to_string()) && dump.contains(&end.to_string()),
        "{dump}"
    );
    let writes = dump.lines().filter(|line| line.contains("WRITE")).count();
    let ours = found
        .mtrs
        .iter()
        .filter(|(_, records)| records[0] < 0x80)
        .count();
    assert_eq!(writes, ours, "{dump}");
    drop(log);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn damage_of_the_header_or_of_both_checkpoints_is_an_error() {
    let Setup { sim, log, .. } = setup(4 << 20);
    drop(log);
    let good = sim.content("./ib_logfile0").unwrap();
    for at in [0, 9, 300, 510] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        sim.put("./ib_logfile0", &bad);
        assert!(
            LogFile::open(&sim, ".", OpenMode::READ).is_err(),
            "byte {at}"
        );
    }
    let mut bad = good.clone();
    bad[0x1003] ^= 1;
    sim.put("./ib_logfile0", &bad);
    assert_eq!(open(&sim).checkpoint().unwrap().1, 1);
    bad[0x2003] ^= 1;
    sim.put("./ib_logfile0", &bad);
    let file = open(&sim);
    assert!(file.checkpoint().is_none());
    let points = Arc::new(CrashPoints::new());
    let opened = Log::open(options(".", 4 << 20), points, file, Lsn(FIRST_LSN.0 + 16));
    assert!(matches!(opened, Err(Error::Corrupt(_))));
    sim.put("./ib_logfile0", &good[..BLOCK]);
    assert!(LogFile::open(&sim, ".", OpenMode::READ).is_err());
}

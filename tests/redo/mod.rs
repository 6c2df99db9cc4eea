//! The log against the stock server: it takes over what we wrote, clean or crashed, and the reverse.

use crate::support::scratch::Scratch;
use crate::support::stock::Stock;
use std::path::Path;
use std::sync::Arc;
use xtradb::format::redo_encode::Encoder;
use xtradb::format::redo_frame::{Framing, frame};
use xtradb::os::{CrashPoints, OpenMode, RealVfs};
use xtradb::redo::{Class, Log, LogFile, LogOptions};
use xtradb::space::{DataFilePath, Places, Registry, open};
use xtradb::words::{Lsn, PageId, PageNo};

fn options(datadir: &Path, file_size: u64) -> LogOptions {
    LogOptions {
        dir: text(datadir),
        file_size,
        buffer_size: 2 << 20,
        page_size: 16384,
        creator: "xtradb 0.1.0".into(),
        direct: true,
        sync: true,
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("scratch paths are text").to_string()
}

fn registry(datadir: &Path) -> Registry {
    let places = Places {
        data_dir: text(datadir),
        system_dir: text(datadir),
        undo_dir: text(datadir),
        page_size: 16384,
        direct: true,
        read_only: false,
    };
    Registry::new(Arc::new(RealVfs), places)
}

fn open_log(datadir: &Path) -> LogFile {
    LogFile::open(&RealVfs, &text(datadir), OpenMode::DIRECT).expect("a valid log")
}

/// Walks the log from its checkpoint; yields where it ends.
fn end_of(file: &LogFile) -> Lsn {
    let (checkpoint, _) = file.checkpoint().expect("a checkpoint");
    let geometry = file.geometry();
    let mut bytes = vec![0; geometry.capacity() as usize];
    file.read(checkpoint.lsn, &mut bytes)
        .expect("the log can be read");
    let mut at = 0;
    loop {
        let bit = |n: usize| geometry.seq_bit(Lsn(checkpoint.lsn.0 + (at + n) as u64));
        match frame(&bytes[at..], bit) {
            Framing::Mtr { total, .. } => at += total,
            _ => return Lsn(checkpoint.lsn.0 + at as u64),
        }
    }
}

#[test]
fn the_stock_server_goes_on_with_our_clean_log_and_recovers_our_crashed_one() {
    let scratch = Scratch::new("redo");
    let datadir = scratch.dir("data");
    let stock = Stock::start(&datadir, &[]);
    stock.sql("", "CREATE DATABASE d");
    stock.sql(
        "d",
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB",
    );
    stock.sql("d", "INSERT INTO t (v) VALUES (1), (2), (3)");
    stock.shutdown(false);

    // A new file of ours in the place of the clean one.
    let old = open_log(&datadir);
    let end = end_of(&old);
    let (checkpoint, _) = old.checkpoint().expect("a checkpoint");
    assert_eq!(
        (checkpoint.end_lsn, end.0),
        (checkpoint.lsn, checkpoint.lsn.0 + 16)
    );
    drop(old);
    let points = Arc::new(CrashPoints::new());
    let log = Log::create(&RealVfs, options(&datadir, 5 << 20), points.clone(), end).expect("made");
    log.make_clean(&registry(&datadir)).expect("clean");
    drop(log);
    let stock = Stock::start(&datadir, &["--innodb-log-file-size=5M"]);
    stock.sql("d", "INSERT INTO t (v) VALUES (4)");
    assert_eq!(stock.tsv("d", "t").lines().count(), 5);
    stock.shutdown(false);

    // Changes of ours in the log only: the last AUTO_INCREMENT value in the root page.
    let file = open_log(&datadir);
    assert_eq!(file.geometry().file_size(), 5 << 20);
    let end = end_of(&file);
    let log = Log::open(options(&datadir, 5 << 20), points, file, end).expect("opened");
    let spaces = registry(&datadir);
    let path = text(&datadir.join("d/t.ibd"));
    let id = open::probe(&RealVfs, &path, 16384).expect("a table").space;
    let space = spaces.open_table(id, "d/t", &|_| None).expect("opened");
    for value in [500u64, 999] {
        let credit = log.admit(1000, Class::Statement).expect("room");
        let mut mtr = Vec::new();
        let root = PageId::new(id, PageNo(3));
        Encoder::new().write(&mut mtr, root, 56, &value.to_be_bytes());
        Log::finish(&mut mtr);
        let gate = log.enter_exclusive();
        log.append_modify(&gate, &spaces, &space).expect("appended");
        let range = log.append(&gate, &mut mtr).expect("appended");
        log.registered(range);
        drop((gate, credit));
        log.write_up_to(range.end, true).expect("durable");
    }
    drop((log, space, spaces));
    let stock = Stock::start(&datadir, &["--innodb-log-file-size=5M"]);
    assert!(
        stock.log().contains("Starting crash recovery"),
        "{}",
        stock.log()
    );
    stock.sql("d", "INSERT INTO t (v) VALUES (5)");
    let newest = stock.sql("d", "SELECT MAX(id) FROM t");
    assert_eq!(newest, "MAX(id)\n1000\n");
    assert_eq!(stock.check_tables("d"), 1);
    stock.kill();

    // And what a killed stock server left is walked to its end by us.
    let end = end_of(&open_log(&datadir));
    let (checkpoint, _) = open_log(&datadir).checkpoint().expect("a checkpoint");
    assert!(
        end.0 > checkpoint.end_lsn.0 + 16,
        "{end} behind {checkpoint:?}"
    );
}

#[test]
fn a_running_stock_server_keeps_us_out() {
    let scratch = Scratch::new("redo-lock");
    let datadir = scratch.dir("data");
    let stock = Stock::start(&datadir, &[]);
    // It holds the lock of ibdata1 alone: those of its log and undo files fall at its start.
    let files = DataFilePath::parse("ibdata1:12M:autoextend").expect("the default");
    let opened = registry(&datadir).open_system(&files, &|_| None);
    assert!(
        matches!(opened, Err(xtradb::words::Error::Busy(_))),
        "{opened:?}"
    );
    stock.shutdown(false);
    let ours = registry(&datadir);
    ours.open_system(&files, &|_| None)
        .expect("nobody else has it");
    let log = Stock::try_start(&datadir, &[])
        .err()
        .expect("the stock server is kept out");
    assert!(log.contains("Unable to lock"), "{log}");
    drop(ours);
    Stock::start(&datadir, &[]).shutdown(false);
}

//! Stops that do not wait for what a crash left: its rollback, its pages; and starts that finish what a
//! crash cut short.

use super::rows::{Row, all, directory, image, insert, session, stock_recovers, stock_sees, table};
use super::{host, open, settings};
use crate::support::scratch::{Scratch, copy_dir};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use xtradb::engine::{CreateOptions, Engine, EngineConfig, Isolation, TrxFlags, Under};
use xtradb::os::crash_point::Action;
use xtradb::settings::Counters;

/// No stop takes longer, whatever is under way; on a machine at rest none takes a second.
const STOPPED_WITHIN: Duration = Duration::from_secs(5);
/// Rows of the transaction that a crash leaves: far more than are undone in that time.
const UNFINISHED: i32 = 12_000;

fn open_armed(datadir: &Path) -> (Arc<Engine>, Under) {
    let under = Under::default();
    let config = EngineConfig {
        datadir: datadir.into(),
        may_create: true,
    };
    let counters = Arc::new(Counters::default());
    let engine = Engine::open_on(under.clone(), config, settings(&[]), counters, host())
        .unwrap_or_else(|error| panic!("open: {error}"));
    // Purge waits for the host's word, which it does not get: what is left to it stays.
    (engine, under)
}

/// The engine stops where `point` is passed next, as if killed.
fn die_at(engine: Arc<Engine>, under: &Under, point: &str, last: impl FnOnce()) {
    under.points.arm(point, Action::Panic, 0);
    let _panicked = catch_unwind(AssertUnwindSafe(last));
    assert!(engine.stopped().is_some(), "{point} was not reached");
    let _ = engine.close();
}

/// A directory with `rows`, and a transaction that was killed before it ended.
fn killed_in_a_transaction(datadir: &Path) -> BTreeMap<i32, Row> {
    let rows = directory(datadir);
    let (engine, under) = open_armed(datadir);
    let mut writer = session(&engine, Isolation::RepeatableRead);
    let mut handle = table(&engine);
    writer.begin(TrxFlags::default()).expect("a transaction");
    let row = |id| Row {
        id,
        n: Some(id % 1000),
        v: vec![b'u'; 150],
    };
    for id in 1000..1000 + UNFINISHED {
        insert(&mut writer, &mut handle, &row(id)).expect("a row");
    }
    engine.flush_log(true).expect("flushed");
    die_at(engine, &under, "undo.append", || {
        let _ = insert(&mut writer, &mut handle, &row(999));
    });
    rows
}

/// A directory with many rows that were committed right before the kill.
fn killed_behind_a_commit(datadir: &Path) -> BTreeMap<i32, Row> {
    let mut rows = directory(datadir);
    let (engine, under) = open_armed(datadir);
    let mut writer = session(&engine, Isolation::RepeatableRead);
    let mut handle = table(&engine);
    writer.begin(TrxFlags::default()).expect("a transaction");
    for id in (1000..1000 + UNFINISHED).map(|id| id * 7919 % 100_003 + 1000) {
        let v = vec![b'c'; 150];
        let row = Row {
            id,
            n: Some(id % 1000),
            v,
        };
        insert(&mut writer, &mut handle, &row).expect("a row");
        rows.insert(id, row);
    }
    writer.commit().expect("committed");
    engine.flush_log(true).expect("flushed");
    die_at(engine, &under, "undo.append", || {
        writer.begin(TrxFlags::default()).expect("a transaction");
        let row = Row {
            id: 999,
            n: None,
            v: Vec::new(),
        };
        let _ = insert(&mut writer, &mut handle, &row);
    });
    rows
}

/// A directory in which `d/gone` was dropped, but for its file, when it was killed; `d/other` is there.
fn killed_in_a_drop(datadir: &Path) {
    directory(datadir);
    let (engine, under) = open_armed(datadir);
    let mut ddl = session(&engine, Isolation::RepeatableRead);
    let options = CreateOptions::default();
    for name in ["d/gone", "d/other"] {
        engine
            .create_table(&mut ddl, name, &image(), &options)
            .expect("a table");
    }
    under.points.arm("ddl.drop_file", Action::Panic, 0);
    let dropped = catch_unwind(AssertUnwindSafe(|| engine.drop_table(&mut ddl, "d/gone")));
    assert!(dropped.is_err(), "committed, and cut short");
    die_at(engine.clone(), &under, "undo.append", || {
        let _ = engine.create_table(&mut ddl, "d/never", &image(), &options);
    });
}

fn count(datadir: &Path, options: &[&str]) -> usize {
    let engine = open(datadir, options).unwrap_or_else(|error| panic!("open: {error}"));
    let mut reader = session(&engine, Isolation::ReadUncommitted);
    let count = all(&mut reader, &mut table(&engine), None).len();
    reader.close();
    engine.close().expect("close");
    count
}

fn close_in_time(engine: &Engine) {
    let since = Instant::now();
    engine.close().expect("close");
    let took = since.elapsed();
    assert!(took < STOPPED_WITHIN, "the stop took {took:?}");
}

#[test]
fn a_stop_does_not_wait_for_the_rollback_of_what_a_crash_left() {
    let scratch = Scratch::new("stop-rollback");
    let datadir = scratch.dir("data");
    let rows = killed_in_a_transaction(&datadir);
    for fast in ["fast_shutdown=1", "fast_shutdown=2"] {
        let engine = open(&datadir, &[fast]).unwrap_or_else(|error| panic!("open: {error}"));
        engine.recovery_done();
        std::thread::sleep(Duration::from_millis(100));
        close_in_time(&engine);
    }
    // Without rollback one sees what is left to be undone.
    let left = count(&datadir, &["force_recovery=3"]) - rows.len();
    assert!(left > 0, "all was undone: the stop was not put to the test");
    let for_stock = scratch.path().join("stock");
    copy_dir(&datadir, &for_stock);
    stock_recovers(&for_stock, &rows);
    // A slow stop waits.
    let engine = open(&datadir, &["fast_shutdown=0"]).expect("open");
    engine.recovery_done();
    engine.close().expect("close");
    drop(engine);
    assert_eq!(count(&datadir, &["force_recovery=3"]), rows.len());
    stock_sees(&datadir, &rows);
}

#[test]
fn a_stop_does_not_wait_for_the_pages_that_recovery_has_not_brought_up() {
    let scratch = Scratch::new("stop-sweep");
    let datadir = scratch.dir("data");
    let rows = killed_behind_a_commit(&datadir);
    for fast in ["fast_shutdown=1", "fast_shutdown=2", "fast_shutdown=1"] {
        let engine = open(&datadir, &[fast, "read_io_threads=1"]).expect("open");
        close_in_time(&engine);
        let report = engine.recovery_report();
        println!("{} of {} pages wait", report.pages_pending, report.pages);
    }
    let for_stock = scratch.path().join("stock");
    copy_dir(&datadir, &for_stock);
    stock_recovers(&for_stock, &rows);
    let engine = open(&datadir, &["fast_shutdown=0"]).expect("open");
    let mut reader = session(&engine, Isolation::ReadCommitted);
    assert_eq!(
        all(&mut reader, &mut table(&engine), None).len(),
        rows.len()
    );
    reader.close();
    engine.close().expect("close");
    assert_eq!(engine.recovery_report().pages_pending, 0);
    drop(engine);
    stock_sees(&datadir, &rows);
}

/// A DROP is committed before its file goes; a crash in between left the file to purge, and until that came
/// to it nobody could make a table of that name.
#[test]
fn the_name_of_a_table_that_was_dropped_right_before_a_crash_is_free() {
    let scratch = Scratch::new("stop-drop");
    let datadir = scratch.dir("data");
    let options = CreateOptions::default();
    killed_in_a_drop(&datadir);
    let killed = scratch.path().join("killed");
    copy_dir(&datadir, &killed);
    assert!(killed.join("d/gone.ibd").exists());
    // Purge waits for the host, which has not decided on its prepared transactions yet.
    let engine = open(&datadir, &[]).expect("open");
    assert!(!datadir.join("d/gone.ibd").exists(), "gone with the start");
    let mut ddl = session(&engine, Isolation::RepeatableRead);
    engine
        .rename_table(&mut ddl, "d/other", "d/gone")
        .expect("the name is free");
    engine
        .create_table(&mut ddl, "d/other", &image(), &options)
        .expect("a table");
    engine.recovery_done();
    ddl.close();
    engine.close().expect("close");
    drop(engine);
    let names = |datadir: &Path| {
        let engine = open(datadir, &["fast_shutdown=0"]).expect("open");
        engine.recovery_done();
        let names = engine.table_names(Some("d")).expect("names");
        engine.close().expect("close");
        names
            .iter()
            .map(|name| name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&datadir), ["d/gone", "d/other", "d/t"]);
    assert_eq!(names(&killed), ["d/other", "d/t"]);
    assert!(!killed.join("d/gone.ibd").exists());
}

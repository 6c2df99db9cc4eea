//! The engine as a whole on data directories: the stock server's, whole and crashed, and back.

mod check;
mod kill;
mod rows;
mod sessions;
mod stops;

use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::Stock;
use crate::support::{checkers, samples};
use std::path::Path;
use std::sync::Arc;
use xtradb::engine::{Engine, EngineConfig, HostServices};
use xtradb::host::callbacks::NoCallbacks;
use xtradb::host::collation::BytesOnly;
use xtradb::settings::{Counters, Settings};
use xtradb::words::{Error, Result};

/// Settings as an option file has them.
fn settings(options: &[&str]) -> Arc<Settings> {
    let settings = Settings::default();
    let small = ["buffer_pool_size=24M", "log_file_size=8M"];
    for option in small.iter().chain(options) {
        settings.apply_option(option).expect("a valid option");
    }
    Arc::new(settings)
}

/// A host that compares bytes.
fn host() -> HostServices {
    HostServices {
        collations: Arc::new(BytesOnly),
        callbacks: Arc::new(NoCallbacks),
    }
}

/// Opens `datadir`, or makes an instance there.
pub fn open(datadir: &Path, options: &[&str]) -> Result<Arc<Engine>> {
    let config = EngineConfig {
        datadir: datadir.into(),
        may_create: true,
    };
    let counters = Arc::new(Counters::default());
    Engine::open(config, settings(options), counters, host())
}

fn open_and_close(datadir: &Path, options: &[&str]) {
    let engine = open(datadir, options).unwrap_or_else(|error| panic!("open: {error}"));
    engine.close().expect("close");
}

const MINI: [&str; 2] = ["undo_tablespaces=2", "log_file_size=4M"];

#[test]
fn a_stock_directory_is_opened_closed_and_given_back() {
    let scratch = Scratch::new("engine-mini");
    let datadir = scratch.dir("data");
    samples::lay_out_mini(&datadir);
    for _ in 0..2 {
        open_and_close(&datadir, &MINI);
    }
    assert!(checkers::check_data_dir(&datadir).expect("no checker complains") > 30);
    let stock = Stock::start(
        &datadir,
        &["--innodb-undo-tablespaces=2", "--innodb-log-file-size=4M"],
    );
    assert_eq!(stock.check_tables("smp"), 23);
    assert_eq!(stock.sql("", "XA RECOVER").lines().count(), 3);
    stock.shutdown(false);
}

#[test]
fn a_new_instance_is_one_for_the_stock_server() {
    for (name, options, stock_options) in [
        ("engine-new", vec![], vec![]),
        (
            "engine-new-undo",
            vec!["undo_tablespaces=3"],
            vec!["--innodb-undo-tablespaces=3"],
        ),
    ] {
        let scratch = Scratch::new(name);
        let datadir = scratch.dir("data");
        for _ in 0..2 {
            open_and_close(&datadir, &options);
        }
        checkers::check_data_dir(&datadir).expect("no checker complains");
        let stock = Stock::start(&datadir, &stock_options);
        stock.sql(
            "",
            "CREATE DATABASE d; USE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(9), KEY (v)) ENGINE=InnoDB;
             INSERT INTO d.t SELECT seq, seq FROM seq_1_to_999",
        );
        assert_eq!(stock.check_tables("d"), 1);
        stock.shutdown(true);
        open_and_close(&datadir, &options);
    }
}

#[test]
fn a_log_of_another_size_is_made_and_both_sides_take_it() {
    let scratch = Scratch::new("engine-log-size");
    let datadir = scratch.dir("data");
    samples::lay_out_fresh(&datadir);
    open_and_close(&datadir, &["undo_tablespaces=2", "log_file_size=16M"]);
    let size = |dir: &Path| {
        std::fs::metadata(dir.join("ib_logfile0"))
            .expect("a log")
            .len()
    };
    assert_eq!(size(&datadir), 16 << 20);
    Stock::start(
        &datadir,
        &["--innodb-undo-tablespaces=2", "--innodb-log-file-size=12M"],
    )
    .shutdown(false);
    assert_eq!(size(&datadir), 12 << 20);
    open_and_close(&datadir, &["undo_tablespaces=2", "log_file_size=12M"]);
}

/// Rows of all kinds, unfinished transactions, renamed, dropped and truncated tables; then a kill.
fn crashed_by_stock(datadir: &Path) {
    Stock::create(datadir, &[]);
    let stock = Stock::start(datadir, &["--innodb-flush-log-at-trx-commit=1"]);
    stock.sql(
        "",
        "CREATE DATABASE d; USE d;
         CREATE TABLE t (id INT PRIMARY KEY, v BLOB, n VARCHAR(40), KEY (v(10)), KEY (n)) ENGINE=InnoDB;
         CREATE TABLE gone (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;
         CREATE TABLE old (id INT PRIMARY KEY, n INT) ENGINE=InnoDB ROW_FORMAT=REDUNDANT;
         CREATE TABLE zip (id INT PRIMARY KEY, n TEXT) ENGINE=InnoDB ROW_FORMAT=COMPRESSED;
         INSERT INTO t SELECT seq, REPEAT(CHAR(seq % 256), seq * 7), CONCAT('n', seq % 97) FROM seq_1_to_1500;
         INSERT INTO gone SELECT seq, seq FROM seq_1_to_3000;
         INSERT INTO old SELECT seq, seq FROM seq_1_to_3000;
         INSERT INTO zip SELECT seq, REPEAT('z', seq) FROM seq_1_to_500;
         UPDATE t SET n = CONCAT(n, 'x'), v = REPEAT('y', id * 11) WHERE id % 3 = 0;
         DELETE FROM t WHERE id % 5 = 0;
         DROP TABLE gone;
         RENAME TABLE old TO new;
         TRUNCATE TABLE zip;
         INSERT INTO zip SELECT seq, REPEAT('z', seq) FROM seq_1_to_100;
         XA START 'kept'; INSERT INTO new VALUES (-1, -1); XA END 'kept'; XA PREPARE 'kept';",
    );
    stock.kill();
}

#[test]
fn a_crashed_stock_directory_is_recovered_as_the_stock_server_does() {
    let scratch = Scratch::new("engine-crash");
    let datadir = scratch.dir("data");
    crashed_by_stock(&datadir);
    let copy = scratch.path().join("copy");
    copy_dir(&datadir, &copy);
    let engine = open(&copy, &[]).unwrap_or_else(|error| panic!("open: {error}"));
    let prepared = engine.prepared();
    assert_eq!(prepared.len(), 1);
    assert_eq!(&prepared[0].data[..4], b"kept");
    engine.close().expect("close");
    drop(engine);
    let ours = Stock::start(&copy, &[]);
    let theirs = Stock::start(&datadir, &[]);
    assert_eq!(ours.tables("d"), theirs.tables("d"));
    for table in theirs.tables("d") {
        assert_eq!(ours.tsv("d", &table), theirs.tsv("d", &table), "{table}");
    }
    assert_eq!(ours.check_tables("d"), 3);
    assert_eq!(ours.sql("", "XA RECOVER"), theirs.sql("", "XA RECOVER"));
}

#[test]
fn a_second_engine_is_refused_and_so_are_bad_directories() {
    let scratch = Scratch::new("engine-refused");
    let datadir = scratch.dir("data");
    samples::lay_out_fresh(&datadir);
    let options = ["undo_tablespaces=2", "log_file_size=4M"];
    let first = open(&datadir, &options).expect("open");
    let second = open(&datadir, &options).err();
    assert!(matches!(second, Some(Error::Busy(_))), "{second:?}");
    first.close().expect("close");
    drop(first);
    let text = |options: &[&str]| match open(&datadir, options) {
        Ok(_) => panic!("opened with {options:?}"),
        Err(error) => error.to_string(),
    };
    let wrong = text(&["undo_tablespaces=2", "log_file_size=4M", "page_size=4096"]);
    assert!(wrong.contains("innodb_page_size"), "{wrong}");
    std::fs::rename(datadir.join("ib_logfile0"), datadir.join("away")).expect("renamed");
    let wrong = text(&options);
    assert!(wrong.contains("ib_logfile0"), "{wrong}");
    std::fs::rename(datadir.join("away"), datadir.join("ib_logfile0")).expect("renamed");
    std::fs::rename(datadir.join("ibdata1"), datadir.join("away")).expect("renamed");
    let wrong = text(&options);
    assert!(wrong.contains("ibdata1"), "{wrong}");
    std::fs::rename(datadir.join("away"), datadir.join("ibdata1")).expect("renamed");
    open_and_close(&datadir, &options);
}

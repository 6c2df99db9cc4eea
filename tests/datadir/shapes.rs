//! Instances of other shapes than the usual one – page size, undo tablespaces, files of the system
//! tablespace, checksums, size of the log – go from one engine to the other and back, killed on the way.

use super::{assert_all_same, host_rows, stock_rows};
use crate::support::checkers;
use crate::support::host::{self, Host};
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::{self, Stock};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const DEFINITIONS: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(200), b LONGBLOB, KEY (a), \
     UNIQUE KEY (v)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE old (id INT PRIMARY KEY, v VARCHAR(300), KEY (v)) ENGINE=InnoDB DEFAULT CHARSET=latin1 \
     ROW_FORMAT=REDUNDANT;
";

/// Rows of both tables: enough for trees of two levels at any page size, and for BLOB chains.
fn rows(first: usize, count: usize) -> String {
    let (mut t, mut old) = (Vec::new(), Vec::new());
    for id in first..first + count {
        let spread = id * 7919 % 10_007;
        let blob = match id % 40 {
            0 => 150_000,
            n => n * 10,
        };
        let (a, text, digit) = (spread % 50, "t".repeat(id % 180), id % 10);
        t.push(format!(
            "({id}, {a}, '{spread}-{text}', REPEAT('{digit}', {blob}))"
        ));
        old.push(format!("({spread}, '{id} {text}')"));
    }
    let (t, old) = (t.join(", "), old.join(", "));
    format!("INSERT INTO t VALUES {t};\nINSERT INTO old VALUES {old};\n")
}

const CHANGES: &str = "UPDATE t SET a = a + 100, v = CONCAT(v, '!') WHERE id % 3 = 0;\n\
     DELETE FROM t WHERE id % 7 = 1;\nUPDATE old SET v = CONCAT('0', v) WHERE id % 5 = 0;\n";
const QUERIES: [&str; 3] = [
    "SELECT id, a, v, LENGTH(b), SUBSTR(b, 1, 30) FROM t ORDER BY id",
    "SELECT a, id FROM t WHERE a BETWEEN 10 AND 130 ORDER BY a, id",
    "SELECT * FROM old ORDER BY id",
];

/// Opens the directory with the stock server, compares, changes; the rows then.
fn through_stock(
    datadir: &Path,
    options: &[&str],
    expected: &[Vec<u8>],
    id: usize,
) -> Vec<Vec<u8>> {
    let stock = Stock::start(datadir, options);
    assert_all_same(&QUERIES, &stock_rows(&stock, &QUERIES), expected);
    assert_eq!(stock.check_tables("d"), 2);
    stock.sql("d", &(rows(id, 60) + CHANGES));
    let rows = stock_rows(&stock, &QUERIES);
    match id % 2 {
        0 => stock.kill(),
        _ => stock.shutdown(false),
    }
    rows
}

/// The same with the host.
fn through_host(datadir: &Path, options: &[&str], expected: &[Vec<u8>], id: usize) -> Vec<Vec<u8>> {
    let mut host = Host::start(datadir, options);
    assert_all_same(&QUERIES, &host_rows(&mut host, &QUERIES), expected);
    for table in ["t", "old"] {
        let said = host.run(format!("USE d; CHECK TABLE {table} EXTENDED;").as_bytes());
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.ends_with("check\tstatus\tOK\n"), "{said}");
    }
    host.run(format!("USE d;\n{}{CHANGES}", rows(id, 60)).as_bytes());
    let rows = host_rows(&mut host, &QUERIES);
    match id % 2 {
        0 => host.kill(),
        _ => host.quit(),
    }
    rows
}

/// Lays the stock server's definitions, made once, into the directory.
fn lay_stock_definitions(datadir: &Path) {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shapes");
        stock::lay_definitions("d", DEFINITIONS, &folder);
        folder
    });
    copy_dir(made, &datadir.join("d"));
}

/// From the host to the stock server and back, each once killed and once not; the options of each
/// time in order.
fn made_by_the_host(shapes: [&[&str]; 5]) {
    let scratch = Scratch::new("shape");
    let datadir = scratch.dir("data");
    let mut host = Host::start(&datadir, shapes[0]);
    host.run(format!("CREATE DATABASE d; USE d;\n{DEFINITIONS}{}", rows(0, 300)).as_bytes());
    let mut expected = host_rows(&mut host, &QUERIES);
    host.quit();
    checkers::check_data_dir(&datadir).expect("no checker complains of what the host left");
    lay_stock_definitions(&datadir);
    expected = through_stock(&datadir, shapes[1], &expected, 1000);
    expected = through_host(&datadir, shapes[2], &expected, 2000);
    expected = through_stock(&datadir, shapes[3], &expected, 3001);
    through_host(&datadir, shapes[4], &expected, 4001);
    checkers::check_data_dir(&datadir).expect("no checker complains in the end");
}

/// The same from a directory that the stock server made.
fn made_by_the_stock_server(options: &[&str]) {
    let scratch = Scratch::new("shape");
    let datadir = scratch.dir("data");
    Stock::create(&datadir, options);
    let stock = Stock::start(&datadir, options);
    stock.sql("", "CREATE DATABASE d");
    stock.sql_input("d", format!("{DEFINITIONS}{}", rows(0, 300)).as_bytes());
    let mut expected = stock_rows(&stock, &QUERIES);
    stock.kill();
    host::lay_definitions("d", DEFINITIONS, &datadir.join("d"));
    expected = through_host(&datadir, options, &expected, 1000);
    expected = through_stock(&datadir, options, &expected, 2001);
    expected = through_host(&datadir, options, &expected, 3001);
    through_stock(&datadir, options, &expected, 4001);
}

#[test]
fn pages_of_4k() {
    made_by_the_host([&["--innodb-page-size=4k", "--innodb-use-native-aio=0"]; 5]);
}

#[test]
fn pages_of_32k() {
    made_by_the_host([&["--innodb-page-size=32k"]; 5]);
}

#[test]
fn pages_of_64k() {
    made_by_the_host([&["--innodb-page-size=64k"]; 5]);
}

#[test]
fn undo_tablespaces_of_the_host_and_pages_of_8k() {
    made_by_the_host([&["--innodb-undo-tablespaces=3", "--innodb-page-size=8k"]; 5]);
}

#[test]
fn undo_tablespaces_of_the_stock_server() {
    made_by_the_stock_server(&["--innodb-undo-tablespaces=2"]);
}

#[test]
fn several_files_of_the_system_tablespace() {
    let path = "--innodb-data-file-path=ibdata1:12M;ibdata2:5M;ibdata3:6M:autoextend:max:600M";
    let options = [
        path,
        "--innodb-file-per-table=0",
        "--innodb-autoextend-increment=3",
    ];
    made_by_the_host([&options; 5]);
}

#[test]
fn checksums_of_both_kinds_in_one_directory() {
    let old: &[&str] = &["--innodb-checksum-algorithm=crc32"];
    let new: &[&str] = &["--innodb-checksum-algorithm=full_crc32"];
    made_by_the_host([old, new, new, old, old]);
}

#[test]
fn another_size_of_the_log_at_each_start() {
    made_by_the_host([
        &["--innodb-log-file-size=4M"],
        &["--innodb-log-file-size=12M"],
        &["--innodb-log-file-size=6M"],
        &["--innodb-log-file-size=20M"],
        &["--innodb-log-file-size=5M"],
    ]);
}

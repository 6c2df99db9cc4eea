//! Loads of empty tables and builds of indexes, whole and cut short, from one engine to the other.

use super::{assert_all_same, assert_sound, host_rows, stock_rows};
use crate::support::checkers;
use crate::support::host::{self, Host, command};
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::{self, Stock};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(100), b LONGTEXT, KEY a (a), \
     UNIQUE KEY v (v)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE old (id INT, v VARCHAR(60)) ENGINE=InnoDB DEFAULT CHARSET=latin1 ROW_FORMAT=REDUNDANT;
CREATE TABLE auto (id INT AUTO_INCREMENT PRIMARY KEY, v CHAR(20)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
";
const INDEXES: [&str; 4] = [
    "CREATE INDEX av ON t (a, v)",
    "CREATE INDEX bp ON t (b(30))",
    "ALTER TABLE old ADD KEY down (v DESC), ADD KEY id (id)",
    "CREATE UNIQUE INDEX v ON auto (v, id)",
];
const UNCHECKED: &str = "SET foreign_key_checks = 0; SET unique_checks = 0;\n";
const QUERIES: [&str; 5] = [
    "SELECT id, a, v, LENGTH(b), SUBSTR(b, 1, 40) FROM t ORDER BY id",
    "SELECT a, id FROM t WHERE a BETWEEN 10 AND 60 ORDER BY a, id",
    "SELECT id, v FROM old ORDER BY id",
    "SELECT COUNT(*) FROM old WHERE v = 'z17'",
    "SELECT COUNT(*), MIN(id), MAX(id) FROM auto",
];

/// Rows of all three tables, in no order.
fn rows(count: usize) -> String {
    let spread = |i: usize| i * 7919 % count;
    let t = (0..count).map(spread).map(|id| {
        let length = if id % 211 == 0 { 40_000 } else { id % 30 };
        let (a, pad) = (id % 97, "p".repeat(id % 70));
        format!("({id}, {a}, '{id}-{pad}', REPEAT('{}', {length}))", id % 10)
    });
    let t: Vec<_> = t.collect();
    let old: Vec<_> = (0..count)
        .map(spread)
        .map(|id| format!("({id}, 'z{}')", id % 23))
        .collect();
    let auto: Vec<_> = (0..count)
        .map(|i| format!("('{}')", i * 31 % 1009))
        .collect();
    format!(
        "INSERT INTO t VALUES {};\nINSERT INTO old VALUES {};\nINSERT INTO auto (v) VALUES {};\n",
        t.join(","),
        old.join(","),
        auto.join(",")
    )
}

fn indexes() -> String {
    INDEXES.map(|sql| format!("{sql};\n")).concat()
}

/// Lays the stock server's definitions, with the added indexes or without them, into the directory.
fn lay_stock_definitions(datadir: &Path, indexed: bool) {
    static MADE: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    let made = MADE[usize::from(indexed)].get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bulk-{indexed}"));
        let added = if indexed { indexes() } else { String::new() };
        stock::lay_definitions("d", &format!("{TABLE}{added}"), &folder);
        folder
    });
    copy_dir(made, &datadir.join("d"));
}

fn lay_host_definitions(datadir: &Path) {
    host::lay_definitions("d", TABLE, &datadir.join("d"));
}

#[test]
fn the_stock_server_reads_what_was_loaded_and_indexed() {
    let scratch = Scratch::new("bulk");
    let (datadir, twin) = (scratch.dir("data"), scratch.dir("twin"));
    let script = rows(2500);
    // What the stock server makes of the same statements.
    Stock::create(&twin, &[]);
    let theirs = Stock::start(&twin, &[]);
    theirs.sql("", "CREATE DATABASE d");
    theirs.sql_input("d", format!("{TABLE}{script}{}", indexes()).as_bytes());
    let expected = stock_rows(&theirs, &QUERIES);
    theirs.kill();
    // The smallest sort buffer: entries go to runs in a file.
    let options = [
        "--innodb-sort-buffer-size=64K",
        "--innodb-buffer-pool-size=16M",
    ];
    let mut host = Host::start(&datadir, &options);
    host.run(
        format!(
            "CREATE DATABASE d; USE d;\n{TABLE}{UNCHECKED}{script}{}",
            indexes()
        )
        .as_bytes(),
    );
    assert_all_same(&QUERIES, &host_rows(&mut host, &QUERIES), &expected);
    for table in ["t", "old", "auto"] {
        assert_sound(&mut host, table);
    }
    host.run(
        b"USE d; INSERT INTO t VALUES (100000, 5, 'later', 'x'); DELETE FROM t WHERE id = 100000;",
    );
    host.kill();
    lay_stock_definitions(&datadir, true);
    let stock = Stock::start(&datadir, &[]);
    let found = stock_rows(&stock, &QUERIES);
    assert_all_same(&QUERIES, &found, &expected);
    assert_eq!(stock.check_tables("d"), 3);
    stock.sql("d", "UPDATE t SET a = a + 1; INSERT INTO auto (v) VALUES ('new'); DELETE FROM old WHERE id % 3 = 0");
    assert_eq!(stock.check_tables("d"), 3);
    stock.shutdown(false);
    checkers::check_data_dir(&datadir).expect("no checker complains");
}

/// The host, killed at a crash point while it runs `script`.
fn killed_host(datadir: &Path, point: &str, script: &str) {
    let options = [
        "--innodb-sort-buffer-size=64K",
        "--innodb-flush-log-at-trx-commit=1",
    ];
    let mut limited = command(datadir);
    limited.args(options).env("XTRADB_CRASH_POINTS", point);
    let mut host = Host::start_command(&mut limited);
    let status = host.try_run(script.as_bytes()).expect_err("it is killed");
    assert!(!status.success());
}

/// One row in each tree's place: nothing is left of what was cut short, and no page is lost.
fn assert_unloaded(datadir: &Path, by_stock: bool) {
    match by_stock {
        true => {
            lay_stock_definitions(datadir, false);
            let stock = Stock::start(datadir, &[]);
            let count = |table: &str| {
                let wanted = Instant::now() + Duration::from_secs(30);
                loop {
                    let said = stock.sql("d", &format!("SELECT COUNT(*) FROM {table}"));
                    if said.ends_with("\n0\n") || Instant::now() > wanted {
                        return said;
                    }
                }
            };
            assert_eq!(
                count("t"),
                "COUNT(*)\n0\n",
                "the load is undone, now or soon"
            );
            stock.sql("d", "INSERT INTO t VALUES (1, 2, 'v', 'b')");
            assert_eq!(stock.check_tables("d"), 3);
            stock.shutdown(false);
        }
        false => {
            let mut host = Host::start(datadir, &[]);
            host.run(b"USE d; INSERT INTO t VALUES (1, 2, 'v', 'b');");
            let said = host.run(b"USE d; SELECT * FROM t;");
            assert!(
                said.ends_with(b"\n1\t2\tv\tb\n"),
                "{}",
                String::from_utf8_lossy(&said)
            );
            assert_sound(&mut host, "t");
            host.run(b"USE d; SET foreign_key_checks = 0; SET unique_checks = 0; DELETE FROM t;");
            host.quit();
        }
    }
    checkers::check_data_dir(datadir).expect("no checker complains");
}

#[test]
fn a_load_that_is_cut_short_leaves_the_table_empty() {
    let scratch = Scratch::new("bulk");
    let made = scratch.dir("made");
    Host::start(&made, &[]).quit();
    let mut host = Host::start(&made, &[]);
    host.run(format!("CREATE DATABASE d; USE d;\n{TABLE}").as_bytes());
    host.quit();
    let script = format!("USE d;\n{UNCHECKED}{}", rows(900));
    let emptied = format!("USE d;\n{UNCHECKED}BEGIN;\n{}ROLLBACK;\n", rows(900));
    for (point, script) in [
        ("bulk.begun:kill", &script),
        ("bulk.page:kill:4", &script),
        ("bulk.root:kill:2", &script),
        ("bulk.emptied:kill:3", &emptied),
    ] {
        let datadir = scratch.dir(&point.replace([':', '.'], "-"));
        copy_dir(&made, &datadir);
        killed_host(&datadir, point, script);
        let theirs = scratch.dir(&format!("{}-stock", point.replace([':', '.'], "-")));
        copy_dir(&datadir, &theirs);
        assert_unloaded(&datadir, false);
        if point != "bulk.begun:kill" {
            assert_unloaded(&theirs, true);
        }
    }
}

#[test]
fn an_index_that_is_not_finished_goes_with_its_tree() {
    let scratch = Scratch::new("bulk");
    let made = scratch.dir("made");
    let mut host = Host::start(&made, &[]);
    host.run(format!("CREATE DATABASE d; USE d;\n{TABLE}{UNCHECKED}{}", rows(900)).as_bytes());
    let expected = host_rows(&mut host, &QUERIES);
    host.quit();
    for point in [
        "ddl.index_made:kill",
        "bulk.page:kill:1",
        "ddl.index_built:kill",
    ] {
        let datadir = scratch.dir(&point.replace([':', '.'], "-"));
        copy_dir(&made, &datadir);
        killed_host(&datadir, point, "USE d; CREATE INDEX av ON t (a, v);");
        let theirs = scratch.dir(&format!("{}-stock", point.replace([':', '.'], "-")));
        copy_dir(&datadir, &theirs);
        let mut host = Host::start(&datadir, &[]);
        assert_all_same(&QUERIES, &host_rows(&mut host, &QUERIES), &expected);
        assert_sound(&mut host, "t");
        host.run(b"USE d; CREATE INDEX av ON t (a, v);");
        assert_sound(&mut host, "t");
        host.quit();
        checkers::check_data_dir(&datadir).expect("no checker complains");
        lay_stock_definitions(&theirs, false);
        let stock = Stock::start(&theirs, &[]);
        let found = stock_rows(&stock, &QUERIES);
        assert_all_same(&QUERIES, &found, &expected);
        assert_eq!(stock.check_tables("d"), 3);
        stock.shutdown(false);
        checkers::check_data_dir(&theirs).expect("no checker complains");
    }
}

#[test]
fn the_host_undoes_a_load_that_the_stock_server_did_not_finish() {
    let scratch = Scratch::new("bulk");
    let datadir = scratch.dir("data");
    Stock::create(&datadir, &[]);
    let stock = Stock::start(&datadir, &[]);
    stock.sql("", "CREATE DATABASE d");
    stock.sql("d", TABLE);
    let mut client = stock
        .client_command("d")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the client starts");
    let mut input = client.stdin.take().expect("it is piped");
    // The second statement has the rows that were collected put into the table.
    let script = format!(
        "{UNCHECKED}BEGIN;\n{}SELECT COUNT(*) FROM t;\nSELECT SLEEP(100);\n",
        rows(900)
    );
    input.write_all(script.as_bytes()).expect("it reads");
    input.flush().expect("it reads");
    let wanted = Instant::now() + Duration::from_secs(60);
    while !stock.sql("", "SHOW PROCESSLIST").contains("SLEEP") {
        assert!(Instant::now() < wanted, "the load does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    stock.sql("", "SET GLOBAL innodb_flush_log_at_trx_commit = 1; CREATE DATABASE flushed; CREATE TABLE flushed.t (a INT) ENGINE=InnoDB; INSERT INTO flushed.t VALUES (1)");
    stock.kill();
    drop(input);
    client.wait().expect("the client ends");
    lay_host_definitions(&datadir);
    assert_unloaded(&datadir, false);
}

/// The hidden record of instant columns can be all that the first leaf has: with a default value of some KiB
/// it goes to no other page.
#[test]
fn an_index_has_the_rows_behind_a_leaf_without_rows() {
    let scratch = Scratch::new("bulk");
    let datadir = scratch.dir("data");
    Stock::create(&datadir, &[]);
    let stock = Stock::start(&datadir, &[]);
    stock.sql("", "CREATE DATABASE d");
    stock.sql(
        "d",
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(6000)) ENGINE=InnoDB DEFAULT CHARSET=latin1;
         INSERT INTO t VALUES (0, 'first');",
    );
    let default = "d".repeat(7000);
    stock.sql(
        "d",
        &format!("ALTER TABLE t ADD COLUMN c VARCHAR(7500) NOT NULL DEFAULT '{default}', ALGORITHM=INSTANT"),
    );
    stock.sql(
        "d",
        "INSERT INTO t SELECT seq, REPEAT('v', 4800), 'given' FROM seq_1_to_300; DELETE FROM t WHERE id < 2",
    );
    stock.shutdown(true);
    let mut host = Host::start(&datadir, &[]);
    host.run(b"USE d; CREATE INDEX c ON t (c(20)); CREATE UNIQUE INDEX ci ON t (c(4), id);");
    let said =
        host.run(b"USE d; SELECT COUNT(*) FROM t; SELECT COUNT(*) FROM t WHERE c = 'given';");
    assert_eq!(
        String::from_utf8_lossy(&said),
        "COUNT(*)\n299\nCOUNT(*)\n299\n"
    );
    assert_sound(&mut host, "t");
    host.quit();
}

//! A crashed log whose records need more memory than a small pool allows: they go to a file, and the
//! directory opens.

use super::{assert_same, assert_sound};
use crate::support::host::Host;
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::Stock;
use std::path::Path;

/// The server writes no page that the log does not force it to.
const STOCK: [&str; 6] = [
    "--innodb-log-file-size=256M",
    "--innodb-buffer-pool-size=256M",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-max-dirty-pages-pct=99",
    "--innodb-adaptive-flushing=OFF",
    "--innodb-flush-method=nosync",
];

/// 16 MiB of records stay in memory.
const HOST: [&str; 3] = [
    "--log-warnings=3",
    "--innodb-log-file-size=256M",
    "--innodb-buffer-pool-size=8M",
];

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, k INT, v VARCHAR(200), KEY k (k), KEY v (v, k)) \
                     ENGINE=InnoDB";

const CHANGES: &str = "
INSERT INTO t SELECT seq, (seq * 7919) % 1000003, REPEAT(MD5(seq), 3) FROM seq_1_to_45000;
UPDATE t SET k = k + 1, v = CONCAT(MD5(k), MD5(v)) WHERE id % 3 = 1;
DELETE FROM t WHERE id % 11 = 5;";

const ROWS: &str = "SELECT id, k, v FROM t ORDER BY id";

/// Bytes of log that no checkpoint has passed.
fn crashed(dir: &Path) -> (u64, Vec<u8>) {
    Stock::create(dir, &STOCK);
    let stock = Stock::start(dir, &STOCK);
    stock.sql("", "CREATE DATABASE d");
    stock.sql("d", TABLE);
    stock.sql("", "SET GLOBAL innodb_log_checkpoint_now = ON");
    stock.sql("d", CHANGES);
    let age = stock.sql("", "SHOW GLOBAL STATUS LIKE 'Innodb_checkpoint_age'");
    let rows = stock.sql_bytes("d", ROWS);
    stock.kill();
    let age = age
        .split_whitespace()
        .last()
        .and_then(|age| age.parse().ok());
    (age.expect("a number"), rows)
}

#[test]
fn records_that_a_small_pool_cannot_hold_go_to_a_file() {
    let scratch = Scratch::new("long-log");
    let (made, dir) = (scratch.dir("made"), scratch.path().join("data"));
    let (age, rows) = crashed(&made);
    assert!(age > 20 << 20, "only {age} bytes of log");
    copy_dir(&made, &dir);
    let spilled = dir.join("ib_redo_index.tmp");
    // Killed in its recovery, the first one leaves the file behind.
    let mut host = Host::start(&dir, &HOST);
    host.run(b"USE d; SELECT COUNT(*) FROM t;");
    let said = host.errors();
    assert!(said.contains("they go to"), "{said}");
    host.kill();
    let mut host = Host::start(&dir, &HOST);
    let found = host.run(format!("USE d; {ROWS};").as_bytes());
    assert_same("t", &found, &rows);
    assert_sound(&mut host, "t");
    host.quit();
    assert!(!spilled.exists(), "the file is left behind");
    let stock = Stock::start(&dir, &STOCK);
    assert_same("t in the stock server", &stock.sql_bytes("d", ROWS), &rows);
    assert_eq!(stock.check_tables("d"), 1);
    stock.shutdown(false);
}

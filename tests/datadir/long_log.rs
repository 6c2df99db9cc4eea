//! A crashed log whose index needs more memory than a small pool allows: it goes to a file, and the
//! directory opens. How far recovery is can be watched; a log that is to get another size gets it behind
//! that.

use super::{assert_same, assert_sound};
use crate::support::host::Host;
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::Stock;
use std::path::Path;
use std::time::{Duration, Instant};

/// The server writes no page that the log does not force it to.
const STOCK: [&str; 6] = [
    "--innodb-log-file-size=256M",
    "--innodb-buffer-pool-size=256M",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-max-dirty-pages-pct=99",
    "--innodb-adaptive-flushing=OFF",
    "--innodb-flush-method=nosync",
];

/// 16 MiB of the index stay in memory.
const HOST: [&str; 3] = [
    "--log-warnings=3",
    "--innodb-log-file-size=256M",
    "--innodb-buffer-pool-size=8M",
];

/// The same with a log of another size.
const RESIZING: [&str; 4] = [
    "--log-warnings=3",
    "--innodb-log-file-size=48M",
    "--innodb-buffer-pool-size=8M",
    "--plugin-load-add=xtradb_recovery=libxtradb.so",
];

const PROGRESS: &[u8] =
    b"SELECT recovery_state, pages_total, pages_pending, bytes_total, bytes_pending, \
                          percent_done, seconds_left FROM INFORMATION_SCHEMA.XTRADB_RECOVERY;";

/// Looks at the table until recovery is done: what is pending shrinks, the percentage grows.
fn watch(host: &mut Host) {
    let until = Instant::now() + Duration::from_secs(120);
    let (mut pending, mut bytes, mut percent) = (u64::MAX, u64::MAX, 0);
    loop {
        let row = host.run(PROGRESS);
        let row = String::from_utf8_lossy(&row).into_owned();
        // Behind the names of the columns.
        let row = row.lines().last().expect("a row");
        let columns: Vec<&str> = row.split('\t').collect();
        let number = |at: usize| {
            columns[at]
                .parse::<u64>()
                .unwrap_or_else(|_| panic!("{row}"))
        };
        assert!(number(1) > 500 && number(3) > 10 << 20, "{row}");
        assert!(
            number(2) <= pending && number(4) <= bytes && number(5) >= percent,
            "{row}"
        );
        assert!(number(5) <= 100, "{row}");
        (pending, bytes, percent) = (number(2), number(4), number(5));
        if columns[0] == "DONE" {
            assert_eq!(
                (pending, bytes, percent, columns[6]),
                (0, 0, 100, "0"),
                "{row}"
            );
            break;
        }
        assert_eq!(columns[0], "RUNNING", "{row}");
        assert!(Instant::now() < until, "{row}");
        std::thread::sleep(Duration::from_millis(2));
    }
    let status = host.run(b"SHOW GLOBAL STATUS LIKE 'Innodb_recovery_p%';");
    let status = String::from_utf8_lossy(&status).into_owned();
    for line in [
        "Innodb_recovery_pages_pending\t0",
        "Innodb_recovery_percent\t100",
    ] {
        assert!(status.contains(line), "{status}");
    }
}

fn wait_for_size(path: &Path, bytes: u64) {
    let until = Instant::now() + Duration::from_secs(120);
    let size = || std::fs::metadata(path).expect("the log is there").len();
    while size() != bytes {
        assert!(Instant::now() < until, "the log has {} bytes", size());
        std::thread::sleep(Duration::from_millis(20));
    }
}

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, k INT, v VARCHAR(200), w VARCHAR(700), KEY k (k), \
                     KEY v (v, k)) ENGINE=InnoDB";

/// Records short enough for the index, and some that stay in the log.
const CHANGES: &str = "
INSERT INTO t SELECT seq, (seq * 7919) % 1000003, REPEAT(MD5(seq), 3), REPEAT(MD5(seq), IF(seq % 9 = 1, 20, 0))
  FROM seq_1_to_60000;
UPDATE t SET k = k + 1, v = CONCAT(MD5(k), MD5(v)) WHERE id % 3 = 1;
DELETE FROM t WHERE id % 11 = 5;";

const ROWS: &str = "SELECT id, k, v, w FROM t ORDER BY id";

/// Entries that memory does not hold.
const SPILLED: &str = "ib_redo_index.tmp";

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

/// A start finds all rows, and its end leaves no file behind.
fn is_whole(dir: &Path, options: &[&str], rows: &[u8]) {
    let mut host = Host::start(dir, options);
    let found = host.run(format!("USE d; {ROWS};").as_bytes());
    assert_same("t", &found, rows);
    assert_sound(&mut host, "t");
    host.quit();
    assert!(!dir.join(SPILLED).exists(), "the file is left behind");
}

#[test]
fn an_index_that_a_small_pool_cannot_hold_goes_to_a_file() {
    let scratch = Scratch::new("long-log");
    let (made, dir) = (scratch.dir("made"), scratch.path().join("data"));
    let (age, rows) = crashed(&made);
    assert!(age > 20 << 20, "only {age} bytes of log");
    copy_dir(&made, &dir);
    let mut host = Host::start(&dir, &HOST);
    host.run(b"USE d; SELECT COUNT(*) FROM t;");
    let said = host.errors();
    assert!(said.contains("it goes to"), "{said}");
    // How far it got, nobody knows: all, perhaps.
    host.kill();
    is_whole(&dir, &HOST, &rows);

    // Again from the start, where a recovery that was killed left its file.
    let dir = scratch.path().join("again");
    copy_dir(&made, &dir);
    std::fs::write(dir.join(SPILLED), "what another recovery wrote").expect("it can be written");
    let mut host = Host::start(&dir, &RESIZING);
    watch(&mut host);
    wait_for_size(&dir.join("ib_logfile0"), 48 << 20);
    host.run(b"USE d; UPDATE t SET k = k + 7 WHERE id = 1; UPDATE t SET k = k - 7 WHERE id = 1;");
    // The new log is all there is of these.
    host.kill();
    is_whole(&dir, &RESIZING, &rows);
    let stock = Stock::start(&dir, &STOCK);
    assert_same("t in the stock server", &stock.sql_bytes("d", ROWS), &rows);
    assert_eq!(stock.check_tables("d"), 1);
    stock.shutdown(false);
}

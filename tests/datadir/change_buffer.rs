//! Changes that a stock server put off are in their indexes when the engine has opened.

use crate::support::checkers;
use crate::support::host::{self, Host};
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::seed::Rng;
use crate::support::stock::Stock;
use std::path::Path;
use std::time::Duration;

/// Leaves that are not in the pool are what changes are put off for: it is the smallest one.
const STOCK: [&str; 5] = [
    "--innodb-buffer-pool-size=6M",
    "--innodb-change-buffering=all",
    "--innodb-change-buffer-max-size=50",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
];

const TABLES: &str = "
CREATE TABLE compact (id INT PRIMARY KEY AUTO_INCREMENT, k INT, v VARCHAR(100),
    w CHAR(20) CHARACTER SET utf8mb4, KEY k (k), KEY v (v, k), KEY w (w)) ENGINE=InnoDB;
CREATE TABLE redundant (id INT PRIMARY KEY AUTO_INCREMENT, k INT, v VARCHAR(100),
    w CHAR(20) CHARACTER SET utf8mb4, KEY k (k), KEY v (v, k), KEY w (w))
    ENGINE=InnoDB ROW_FORMAT=REDUNDANT;
CREATE TABLE dropped LIKE compact;
";

/// Inserts, updates and deletes all over the secondary indexes.
fn changes(table: &str) -> String {
    let values = "(seq * 7919) % 1000003, IF(seq % 7 = 0, NULL, CONCAT(MD5(seq), MD5(seq + 1))), \
                  LEFT(MD5(seq * 3), 12)";
    format!(
        "INSERT INTO {table} (k, v, w) SELECT {values} FROM seq_1_to_16000;
         DELETE FROM {table} WHERE id % 11 = 3;
         UPDATE {table} SET k = k + 1 WHERE id % 97 = 5;
         INSERT INTO {table} (k, v, w) SELECT {values} FROM seq_16001_to_17000;
         UPDATE {table} SET v = UPPER(v) WHERE id % 41 = 1;\n"
    )
}

/// Every index, in its order, with what belongs to it.
const QUERIES: [&str; 3] = [
    "SELECT k, id FROM {} WHERE k >= 0 ORDER BY k, id",
    "SELECT v, k, id FROM {} WHERE v >= '' ORDER BY v, k, id",
    "SELECT w, id FROM {} WHERE w >= '' ORDER BY w, id",
];

fn queries() -> String {
    let each = |table: &&str| {
        QUERIES
            .map(|query| query.replace("{}", table) + ";\n")
            .concat()
    };
    ["compact", "redundant"].iter().map(each).collect()
}

fn make(dir: &Path) -> u64 {
    Stock::create(dir, &STOCK);
    let stock = Stock::start(dir, &STOCK);
    stock.sql("", "CREATE DATABASE t");
    stock.sql("t", TABLES);
    for table in ["compact", "redundant", "dropped"] {
        stock.sql("t", &changes(table));
    }
    // Its changes stay in the buffer, for nobody.
    stock.sql("t", "DROP TABLE dropped");
    let held = "SELECT variable_value FROM information_schema.global_status \
                WHERE variable_name = 'INNODB_IBUF_SIZE'";
    let pages: u64 = stock
        .sql("", held)
        .trim()
        .lines()
        .last()
        .unwrap_or_default()
        .parse()
        .expect("a number");
    stock.kill();
    // The low half is what matters: the counter is printed wider than it is.
    pages & 0xFFFF_FFFF
}

#[test]
fn what_the_stock_server_put_off_is_merged_at_start() {
    let scratch = Scratch::new("change_buffer");
    let made = scratch.dir("made");
    let pages = make(&made);
    assert!(pages > 10, "only {pages} pages of changes were put off");

    let expected = {
        let twin = scratch.dir("twin");
        copy_dir(&made, &twin);
        let stock = Stock::start(&twin, &[]);
        let rows = stock.sql("t", &queries());
        stock.shutdown(false);
        rows
    };
    changes_of_a_missing_file_stay(&scratch, &made, &expected);
    let ours = scratch.dir("ours");
    copy_dir(&made, &ours);
    host::lay_definitions("t", TABLES, &ours.join("t"));
    killed_while_merging(&ours);
    let rows = host::script_ok(&ours, &[], format!("USE t;\n{}", queries()).as_bytes());
    let rows = String::from_utf8(rows).expect("text");
    assert!(
        rows == expected,
        "the indexes differ from the stock server's"
    );
    let checked = host::script_ok(
        &ours,
        &[],
        b"CHECK TABLE t.compact EXTENDED; CHECK TABLE t.redundant EXTENDED;",
    );
    assert_eq!(String::from_utf8_lossy(&checked).matches("OK").count(), 2);
    checkers::check_data_dir(&ours).expect("every file is sound");
    let stock = Stock::start(&ours, &STOCK);
    stock.check_tables("t");
    assert_eq!(stock.sql("t", &queries()), expected);
    stock.shutdown(true);
}

/// A merge that is cut short goes on at the next start.
fn killed_while_merging(dir: &Path) {
    let mut rng = Rng::announced("change_buffer");
    for _ in 0..6 {
        let host = Host::start(dir, &[]);
        std::thread::sleep(Duration::from_millis(rng.below(700)));
        host.kill();
    }
}

/// A table whose file is away keeps its changes until it is back; the others have theirs meanwhile.
fn changes_of_a_missing_file_stay(scratch: &Scratch, made: &Path, expected: &str) {
    let dir = scratch.dir("away");
    copy_dir(made, &dir);
    Stock::start(&dir, &STOCK).shutdown(false);
    host::lay_definitions("t", TABLES, &dir.join("t"));
    let (file, away) = (dir.join("t/redundant.ibd"), dir.join("away.ibd"));
    std::fs::rename(&file, &away).expect("the file can be moved");
    let checked = host::script_ok(&dir, &[], b"CHECK TABLE t.compact EXTENDED;");
    assert!(String::from_utf8_lossy(&checked).contains("OK"));
    std::fs::rename(&away, &file).expect("the file can be moved back");
    let rows = host::script_ok(&dir, &[], format!("USE t;\n{}", queries()).as_bytes());
    assert!(
        String::from_utf8_lossy(&rows) == expected,
        "a change was lost while its file was away"
    );
}

//! Single files of the host taken into a running stock server: ALTER TABLE … IMPORT TABLESPACE. Without a .cfg
//! the server wants the secondary indexes dropped before, and makes them again.

use super::{HOST, assert_same, query};
use crate::support::host::script_ok;
use crate::support::scratch::Scratch;
use crate::support::stock::Stock;
use crate::support::workload;
use std::fs;

/// Tables, the order of their rows, their secondary keys: dropped, and added again.
const TABLES: [(&str, &str, &str, &str); 5] = [
    (
        "big",
        "id",
        "DROP KEY k, DROP KEY c",
        "ADD KEY k (k), ADD UNIQUE KEY c (c)",
    ),
    (
        "scattered",
        "a, b",
        "DROP KEY v_down, DROP KEY t_prefix",
        "ADD KEY v_down (v DESC), ADD KEY t_prefix (t(8), v)",
    ),
    ("hidden", "n, w", "DROP KEY n", "ADD KEY n (n)"),
    ("blobs", "id", "DROP KEY t", "ADD KEY t (t(40))"),
    ("old_blobs", "id", "DROP KEY t", "ADD KEY t (t(40))"),
];

#[test]
fn the_stock_server_imports_files_that_the_host_wrote() {
    let scratch = Scratch::new("import");
    let grown = workload::grown(3000, 42);
    let datadir = scratch.dir("host");
    script_ok(&datadir, &HOST, grown.script().as_bytes());
    let stock_dir = scratch.dir("stock");
    let stock = Stock::start(&stock_dir, &["--innodb-flush-log-at-trx-commit=0"]);
    stock.sql("", &grown.script());
    stock.sql(
        "",
        "CREATE DATABASE taken CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    );
    stock.sql("taken", &grown.definitions);
    for (table, order, drop_keys, add_keys) in TABLES {
        stock.sql(
            "taken",
            &format!("ALTER TABLE {table} {drop_keys}; ALTER TABLE {table} DISCARD TABLESPACE"),
        );
        let file = format!("{table}.ibd");
        fs::copy(
            datadir.join("grown").join(&file),
            stock_dir.join("taken").join(&file),
        )
        .expect("the file can be copied");
        stock.sql(
            "taken",
            &format!("ALTER TABLE {table} IMPORT TABLESPACE; ALTER TABLE {table} {add_keys}"),
        );
        let query = query(table, order);
        assert_same(
            table,
            &stock.sql_bytes("taken", &query),
            &stock.sql_bytes("grown", &query),
        );
    }
    assert_eq!(stock.check_tables("taken"), TABLES.len());
    // It goes on writing there.
    stock.sql("taken", "UPDATE big SET k = k + 1; DELETE FROM scattered WHERE a % 2; INSERT INTO hidden VALUES (1, 'x')");
    assert_eq!(stock.check_tables("taken"), TABLES.len());
    stock.shutdown(true);
}

//! A data directory goes from the stock server to the host and back, cleanly shut down and killed.
//!
//! The expected rows are those of a stock server that ran the same SQL.

mod bare;
mod bulk;
mod change_buffer;
mod check;
mod import;
mod long_log;
mod missing;
mod pool_list;
mod shapes;

use crate::support::host::{self, Host};
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::{self, Stock};
use crate::support::tsv::{self, Kind};
use crate::support::workload::{self, Workload};
use crate::support::{checkers, samples};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const ROWS: u64 = 100_000;
const SEED: u64 = 10_11;
/// For the stock server: the workload's log is larger than the default of the tests.
const STOCK: [&str; 2] = [
    "--innodb-log-file-size=32M",
    "--innodb-flush-log-at-trx-commit=2",
];
/// For the host: a pool that is smaller than the data.
const HOST: [&str; 3] = [
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=32M",
    "--innodb-flush-log-at-trx-commit=2",
];

/// Tables by database, with the order in which their rows are compared ("" is the clustered order).
const TABLES: [(&str, &str, &str); 13] = [
    ("grown", "big", "id"),
    ("grown", "scattered", "a, b"),
    ("grown", "hidden", ""),
    ("grown", "blobs", "id"),
    ("grown", "old_blobs", "id"),
    ("shop", "customers", "id"),
    ("shop", "products", "sku"),
    ("shop", "orders", "id"),
    ("shop", "order_lines", "order_id, line"),
    ("shop", "visits", ""),
    ("shop", "documents-2", "id"),
    ("shop", "every_type", "id"),
    ("shop", "empty_table", "id"),
];

/// What a stock server makes of the workload: its directory after a clean shutdown, the same after a kill,
/// and the rows of every table.
struct Twin {
    clean: PathBuf,
    killed: PathBuf,
    rows: Vec<Vec<u8>>,
}

fn workload() -> Workload {
    workload::grown(ROWS, SEED)
}

fn query(table: &str, order: &str) -> String {
    let order = if order.is_empty() {
        String::new()
    } else {
        format!(" ORDER BY {order}")
    };
    format!("SELECT * FROM `{table}`{order}")
}

/// Made once for all tests of this file.
fn twin() -> &'static Twin {
    static TWIN: OnceLock<Twin> = OnceLock::new();
    TWIN.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("twin");
        let _ = fs::remove_dir_all(&root);
        let (clean, killed) = (root.join("clean"), root.join("killed"));
        fs::create_dir_all(&killed).expect("the directory can be made");
        Stock::create(&killed, &STOCK);
        let stock = Stock::start(&killed, &STOCK);
        stock.sql("", &workload().script());
        stock.sql_input("", &workload::shop_dump());
        let rows = TABLES
            .iter()
            .map(|(database, table, order)| stock.sql_bytes(database, &query(table, order)))
            .collect();
        // A transaction of which nothing may be seen after recovery.
        stock.sql("", "SET GLOBAL innodb_flush_log_at_trx_commit = 1; INSERT INTO shop.empty_table VALUES (1, 'x'); DELETE FROM shop.empty_table");
        stock.kill();
        copy_dir(&killed, &clean);
        Stock::start(&clean, &STOCK).shutdown(false);
        Twin { clean, killed, rows }
    })
}

/// Runs the workload in a new directory under the host, which goes on running.
fn grown_by_the_host(datadir: &Path) -> Host {
    let mut host = Host::start(datadir, &HOST);
    host.run(workload().script().as_bytes());
    let mut dump = workload::shop_dump();
    dump.push(b'\n');
    host.run(&dump);
    host
}

fn assert_stock_reads(datadir: &Path) {
    stock::lay_definitions("grown", &workload().definitions, &datadir.join("grown"));
    stock::lay_definitions("shop", &workload::shop_definitions(), &datadir.join("shop"));
    let stock = Stock::start(datadir, &STOCK);
    for ((database, table, order), expected) in TABLES.iter().zip(&twin().rows) {
        let rows = stock.sql_bytes(database, &query(table, order));
        assert_same(&format!("{database}.{table}"), &rows, expected);
    }
    assert_eq!(stock.check_tables("grown"), 5);
    assert_eq!(stock.check_tables("shop"), 8);
    // It goes on writing there.
    stock.sql(
        "grown",
        "UPDATE big SET k = k + 1 WHERE id % 3 = 0; DELETE FROM scattered WHERE a % 5 = 1",
    );
    stock.sql(
        "shop",
        "INSERT INTO customers (email, name) VALUES ('new@example.org', 'New')",
    );
    assert_eq!(stock.check_tables("grown"), 5);
    stock.shutdown(false);
    checkers::check_data_dir(datadir).expect("no checker complains of what the stock server left");
}

fn assert_host_reads(datadir: &Path) {
    host::lay_definitions("grown", &workload().definitions, &datadir.join("grown"));
    host::lay_definitions("shop", &workload::shop_definitions(), &datadir.join("shop"));
    let mut host = Host::start(datadir, &HOST);
    for ((database, table, order), expected) in TABLES.iter().zip(&twin().rows) {
        let rows = host.run(format!("USE {database}; {};", query(table, order)).as_bytes());
        assert_same(&format!("{database}.{table}"), &rows, expected);
        assert_sound(&mut host, table);
    }
    // It goes on writing there, and the stock server takes it back.
    host.run(b"USE grown; UPDATE big SET k = 5 WHERE id < 2000; DELETE FROM blobs WHERE id < 20;");
    host.run(b"USE shop; INSERT INTO customers (email, name) VALUES ('new@example.org', 'New');");
    host.quit();
    checkers::check_data_dir(datadir).expect("no checker complains of what the host left");
    let stock = Stock::start(datadir, &STOCK);
    assert_eq!(stock.check_tables("grown"), 5);
    assert_eq!(stock.check_tables("shop"), 8);
    assert_eq!(
        stock.sql("shop", "SELECT name FROM customers WHERE id = 601"),
        "name\nNew\n"
    );
}

/// CHECK TABLE with every row looked up in every index.
fn assert_sound(host: &mut Host, table: &str) {
    let said = host.run(format!("CHECK TABLE `{table}` EXTENDED;").as_bytes());
    assert!(
        said.ends_with(b"check\tstatus\tOK\n"),
        "{}",
        String::from_utf8_lossy(&said)
    );
}

/// What the host answers to each query in database d.
fn host_rows(host: &mut Host, queries: &[&str]) -> Vec<Vec<u8>> {
    let ask = |sql: &&str| host.run(format!("USE d; {sql};").as_bytes());
    queries.iter().map(ask).collect()
}

/// What the stock server answers.
fn stock_rows(stock: &Stock, queries: &[&str]) -> Vec<Vec<u8>> {
    let ask = |sql: &&str| stock.sql_bytes("d", sql);
    queries.iter().map(ask).collect()
}

fn assert_all_same(queries: &[&str], found: &[Vec<u8>], expected: &[Vec<u8>]) {
    for ((query, found), expected) in queries.iter().zip(found).zip(expected) {
        assert_same(query, found, expected);
    }
}

/// Says where two results part, instead of printing megabytes.
fn assert_same(what: &str, rows: &[u8], expected: &[u8]) {
    if rows == expected {
        return;
    }
    let (mut ours, mut theirs) = (rows.split(|&b| b == b'\n'), expected.split(|&b| b == b'\n'));
    for line in 0.. {
        let (our, their) = (ours.next(), theirs.next());
        if our != their {
            let show = |text: Option<&[u8]>| match text {
                Some(text) => format!("{:.400}", String::from_utf8_lossy(text)),
                None => "(the end)".into(),
            };
            panic!(
                "{what}, line {line}:\n  found    {}\n  expected {}",
                show(our),
                show(their)
            );
        }
    }
}

#[test]
fn the_stock_server_reads_what_the_host_wrote() {
    let scratch = Scratch::new("clean");
    let datadir = scratch.dir("data");
    grown_by_the_host(&datadir).quit();
    checkers::check_data_dir(&datadir).expect("no checker complains of what the host left");
    assert_stock_reads(&datadir);
}

#[test]
fn the_stock_server_recovers_what_a_killed_host_left() {
    let scratch = Scratch::new("killed");
    let datadir = scratch.dir("data");
    let mut host = grown_by_the_host(&datadir);
    host.run(b"USE grown; BEGIN; DELETE FROM big WHERE id < 5000; UPDATE blobs SET b = 'never committed' WHERE id < 50;");
    host.kill();
    assert_stock_reads(&datadir);
}

#[test]
fn the_host_reads_what_the_stock_server_wrote() {
    let scratch = Scratch::new("stockclean");
    let datadir = scratch.path().join("data");
    copy_dir(&twin().clean, &datadir);
    assert_host_reads(&datadir);
}

#[test]
fn the_host_recovers_what_a_killed_stock_server_left() {
    let scratch = Scratch::new("stockkilled");
    let datadir = scratch.path().join("data");
    copy_dir(&twin().killed, &datadir);
    assert_host_reads(&datadir);
}

#[test]
fn the_host_recovers_what_it_left_when_killed() {
    let scratch = Scratch::new("own");
    let datadir = scratch.dir("data");
    let mut host = grown_by_the_host(&datadir);
    host.run(b"USE grown; BEGIN; DELETE FROM big WHERE id < 5000;");
    host.kill();
    let mut host = Host::start(&datadir, &HOST);
    for ((database, table, order), expected) in TABLES.iter().zip(&twin().rows) {
        let rows = host.run(format!("USE {database}; {};", query(table, order)).as_bytes());
        assert_same(&format!("{database}.{table}"), &rows, expected);
    }
    host.quit();
}

/// The definition of a table of the samples as it is after all its ALTERs, without what the host refuses.
fn definition(stock: &Stock, table: &str) -> String {
    let shown = stock.sql_bytes("smp", &format!("SHOW CREATE TABLE `{table}`"));
    let line = shown
        .split(|&byte| byte == b'\n')
        .nth(1)
        .expect("the statement has a row");
    let fields = tsv::values(line);
    let text = fields[1].as_ref().expect("the definition is not NULL");
    String::from_utf8(text.clone()).expect("the definition is text") + ";\n"
}

#[test]
fn the_host_prints_every_sample_table_as_its_tsv_says() {
    let scratch = Scratch::new("samples");
    let stock = stock::start_on_mini(&scratch.dir("stock"));
    let definitions: Vec<String> = samples::TABLES
        .iter()
        .map(|table| definition(&stock, table))
        .collect();
    drop(stock);
    let datadir = scratch.dir("data");
    samples::lay_out_mini(&datadir);
    for (table, definition) in samples::TABLES.iter().zip(&definitions) {
        if is_supported(table) {
            host::lay_definitions("smp", definition, &datadir.join("smp"));
        }
    }
    let mut host = Host::start(&datadir, &["--innodb-undo-tablespaces=2", "--force"]);
    host.run(b"USE smp;");
    for (table, definition) in samples::TABLES.iter().zip(&definitions) {
        let order = if *table == "s_noprimary" {
            ""
        } else {
            " ORDER BY id"
        };
        let rows = host.run(format!("SELECT * FROM {table}{order};").as_bytes());
        if is_supported(table) {
            let found = tsv::sample_tsv(&rows, &tsv::kinds_of(definition));
            assert_eq!(found, samples::text(&format!("{table}.tsv")), "{table}");
            assert_sound(&mut host, table);
        } else if table.ends_with("_compressed") {
            assert!(
                rows.is_empty(),
                "{table}: {}",
                String::from_utf8_lossy(&rows)
            );
            assert!(
                host.errors().contains(table),
                "the error names {table}: {}",
                host.errors()
            );
        }
    }
    // What two prepared transactions changed is not seen, and they stay.
    let rows = host.run(b"SELECT id, a, b, t FROM s_undo ORDER BY id;");
    let kinds = [Kind::Plain, Kind::Plain, Kind::Text, Kind::Text];
    assert_eq!(
        tsv::sample_tsv(&rows, &kinds),
        samples::text("mini/s_undo.committed.tsv")
    );
    assert_sound(&mut host, "s_undo");
    host.quit();
    let stock = Stock::start(
        &datadir,
        &["--innodb-undo-tablespaces=2", "--innodb-log-file-size=4M"],
    );
    assert_eq!(
        stock.sql("", "XA RECOVER").lines().count(),
        3,
        "both transactions are still prepared"
    );
    stock.check_tables("smp");
}

/// ROW_FORMAT=COMPRESSED and R-trees come later.
fn is_supported(table: &str) -> bool {
    !table.ends_with("_compressed") && table != "s_spatial"
}

#[test]
fn the_twin_directories_hold_the_expected_rows() {
    let scratch = Scratch::new("twin");
    let twin = twin();
    for (name, from) in [("clean", &twin.clean), ("killed", &twin.killed)] {
        let datadir = scratch.path().join(name);
        copy_dir(from, &datadir);
        if name == "clean" {
            checkers::check_data_dir(&datadir).expect("no checker complains");
        }
        let stock = Stock::start(&datadir, &STOCK);
        for ((database, table, order), expected) in TABLES.iter().zip(&twin.rows) {
            assert_same(
                table,
                &stock.sql_bytes(database, &query(table, order)),
                expected,
            );
        }
    }
}

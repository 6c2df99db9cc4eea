//! Dumps of `mariadb-dump` load in the host, and then both have the same rows and definitions.

use super::sql::difference;
use crate::support::host::{self, script_ok};
use crate::support::scratch::Scratch;
use crate::support::stock::{self, Stock};
use crate::support::{checkers, samples};
use std::fs;

const DATABASES: [&str; 2] = ["varied", "odd-name; db"];

/// Ways to dump: other statements, other quoting, other order.
const WAYS: [&[&str]; 5] = [
    &[],
    &["--skip-extended-insert", "--complete-insert"],
    &[
        "--hex-blob",
        "--skip-opt",
        "--create-options",
        "--single-transaction",
    ],
    &["--compact", "--insert-ignore"],
    &["--replace", "--add-drop-database", "--order-by-primary"],
];

/// Every row of every table, its definition and the verdict of CHECK TABLE.
fn questions(stock: &Stock) -> Vec<u8> {
    let mut script = String::from("SET NAMES utf8mb4; SET time_zone = '+00:00';\n");
    for database in DATABASES {
        script += &format!("USE `{database}`;\n");
        for table in stock.tables(database) {
            let columns = stock.sql(
                "",
                &format!(
                    "SELECT GROUP_CONCAT(ordinal_position ORDER BY ordinal_position) FROM \
                     information_schema.columns WHERE table_schema = '{database}' AND table_name = '{table}'"
                ),
            );
            let order = columns.lines().nth(1).expect("a table has columns");
            script += &format!(
                "SELECT * FROM `{table}` ORDER BY {order}; SHOW CREATE TABLE `{table}`; \
                 CHECK TABLE `{table}` EXTENDED;\n"
            );
        }
    }
    script.into_bytes()
}

#[test]
fn dumps_of_varied_schemas_load_and_give_the_same_rows() {
    let scratch = Scratch::new("dump");
    let stock = Stock::start(
        &scratch.dir("stock"),
        &["--innodb-flush-log-at-trx-commit=0"],
    );
    let setup = fs::read(samples::fixture("dump/varied.sql")).expect("the fixture is there");
    stock.sql_input("", &setup);
    let questions = questions(&stock);
    let expected = stock.sql_bytes("", &String::from_utf8_lossy(&questions));
    for (number, way) in WAYS.iter().enumerate() {
        let mut script = stock.dump(way, &DATABASES);
        script.push(b'\n');
        let datadir = scratch.dir(&format!("host{number}"));
        script_ok(&datadir, &[], &script);
        let found = script_ok(&datadir, &[], &questions);
        if let Some(difference) = difference(&found, &expected) {
            panic!("dumped with {way:?}: {difference}");
        }
    }
    // The stock server takes what the last load made: its CHECK knows the order of every collation.
    let datadir = scratch.path().join("host4");
    checkers::check_data_dir(&datadir).expect("no checker complains of what the host left");
    let definitions = stock.dump(&["--no-data", "--no-create-db"], &DATABASES[..1]);
    let definitions = String::from_utf8(definitions).expect("definitions are text");
    stock.shutdown(false);
    stock::lay_definitions("varied", &definitions, &datadir.join("varied"));
    let stock = Stock::start(&datadir, &[]);
    assert_eq!(stock.check_tables("varied"), 11);
    drop(stock);
    // And the other way: the host on what the stock server left, with definitions of its own.
    let datadir = scratch.path().join("stock");
    let in_varied = String::from_utf8_lossy(&questions);
    let end = in_varied.find("USE `odd-name");
    let in_varied = &in_varied[..end.expect("the second database")];
    // Asked again: a restart forgets AUTO_INCREMENT values that were drawn for nothing.
    let stock = Stock::start(&datadir, &[]);
    let expected = stock.sql_bytes("", in_varied);
    stock.shutdown(false);
    host::lay_definitions("varied", &definitions, &datadir.join("varied"));
    let found = script_ok(&datadir, &[], in_varied.as_bytes());
    if let Some(difference) = difference(&found, &expected) {
        panic!("of the stock server's directory: {difference}");
    }
}

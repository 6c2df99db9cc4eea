//! The samples without a definition of ours, and their prepared transactions afterwards.

use super::is_supported;
use crate::support::host::Host;
use crate::support::samples;
use crate::support::scratch::Scratch;
use crate::support::stock::{Stock, start_on_mini};
use crate::support::tsv;
use std::collections::BTreeSet;

/// Columns of which the dictionary does not tell all: DECIMAL, ENUM, SET, UUID and INET are bytes or numbers
/// there, and fractions of seconds have no number of digits.
const UNTOLD: [&str; 12] = [
    "d", "e", "d1", "d2", "d3", "en", "st", "ui", "i4", "i6", "t3", "ts3",
];

const MINI: [&str; 2] = ["--innodb-undo-tablespaces=2", "--force"];

/// Names of the columns in which two TSV texts differ.
fn different_columns(found: &str, expected: &str) -> BTreeSet<String> {
    let mut different = BTreeSet::new();
    let names: Vec<&str> = expected
        .lines()
        .next()
        .unwrap_or_default()
        .split('\t')
        .collect();
    assert_eq!(found.lines().count(), expected.lines().count());
    for (ours, theirs) in found.lines().zip(expected.lines()) {
        let (ours, theirs) = (ours.split('\t'), theirs.split('\t'));
        for ((our, their), name) in ours.zip(theirs).zip(&names) {
            if our != their {
                different.insert((*name).to_string());
            }
        }
    }
    different
}

#[test]
fn tables_without_a_definition_are_readable_as_far_as_the_dictionary_tells() {
    let scratch = Scratch::new("bare");
    let datadir = scratch.dir("data");
    samples::lay_out_mini(&datadir);
    let mut host = Host::start(&datadir, &MINI);
    host.run(b"USE smp;");
    for table in samples::TABLES.iter().filter(|table| is_supported(table)) {
        let shown = host.run(format!("SHOW CREATE TABLE {table};").as_bytes());
        let definition = String::from_utf8_lossy(&shown).replace("\\n", "\n");
        let order = match *table {
            "s_noprimary" => "",
            _ => " ORDER BY id",
        };
        let rows = host.run(format!("SELECT * FROM {table}{order};").as_bytes());
        let found = tsv::sample_tsv(&rows, &tsv::kinds_of(&definition.replace('`', "")));
        let expected = samples::text(&format!("{table}.tsv"));
        let different = different_columns(&found, &expected);
        let unexpected: Vec<_> = different
            .iter()
            .filter(|name| !UNTOLD.contains(&name.as_str()))
            .collect();
        assert!(unexpected.is_empty(), "{table}: {unexpected:?}\n{found}");
    }
    // The others: full text, geometry, virtual columns, partitions, odd names, nothing at all.
    let mut count = |table: &str| {
        let rows = host.run(format!("SELECT COUNT(*) FROM `{table}`;").as_bytes());
        let text = String::from_utf8_lossy(&rows).into_owned();
        let number = text.lines().nth(1).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("{table}: {text}{}", host.errors()))
    };
    let counts: Vec<u32> = OTHERS.iter().map(|(table, _)| count(table)).collect();
    let expected: Vec<u32> = OTHERS.iter().map(|(_, rows)| *rows).collect();
    assert_eq!(counts, expected);
    for table in ["s_compressed", "s_blob_compressed"] {
        let rows = host.run(format!("SELECT * FROM {table};").as_bytes());
        assert!(rows.is_empty());
        let named = host.errors().lines().any(|line| line.contains(table));
        assert!(named, "the error names {table}: {}", host.errors());
    }
    host.quit();
}

/// Tables of t_dict.sql and t_undo.sql, with their rows.
const OTHERS: [(&str, u32); 11] = [
    ("d_fts", 2),
    ("d_index", 3),
    ("d_parent", 0),
    ("d_child", 0),
    ("d_virtual", 3),
    ("#mysql50#d_part#P#p0", 1),
    ("#mysql50#d_part#P#pMax", 1),
    ("d na-mé", 0),
    ("s_spatial", 20),
    ("s_undo", 10),
    ("s_undo2", 5),
];

/// Ends both prepared transactions and prints what is left.
fn after_xa(stock: &Stock) -> String {
    let prepared = stock.sql("", "XA RECOVER FORMAT='SQL'");
    let xids: Vec<&str> = prepared
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').nth(3))
        .collect();
    assert_eq!(xids.len(), 2, "{prepared}");
    stock.sql(
        "",
        &format!("XA COMMIT {}; XA ROLLBACK {}", xids[0], xids[1]),
    );
    stock.check_tables("smp");
    stock.tsv("smp", "s_undo") + &stock.tsv("smp", "s_undo2")
}

#[test]
fn prepared_transactions_come_through_the_host_untouched() {
    let scratch = Scratch::new("xa");
    let datadir = scratch.dir("data");
    samples::lay_out_mini(&datadir);
    let mut host = Host::start(&datadir, &MINI);
    // Work beside them, and a crash of ours on top.
    host.run(b"CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY (v)); INSERT INTO t VALUES (1, 1), (2, 2);");
    host.kill();
    let mut host = Host::start(&datadir, &MINI);
    host.run(b"USE d; UPDATE t SET v = 3 WHERE id = 2;");
    host.quit();
    let mini = ["--innodb-undo-tablespaces=2", "--innodb-log-file-size=4M"];
    let stock = Stock::start(&datadir, &mini);
    let found = after_xa(&stock);
    stock.shutdown(false);
    let twin = start_on_mini(&scratch.dir("twin"));
    assert_eq!(found, after_xa(&twin));
}

//! The oracle itself: the stock server reads the samples as their TSV files say.
//!
//! When these fail, no other comparison with the stock server means anything.

mod ddl;
mod dump;
mod keys;
mod page_ops;
mod sql;

use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::{Stock, lay_definitions, start_on_mini};
use crate::support::{checkers, samples, tsv, workload};
use std::fs;

#[test]
fn the_stock_server_opens_the_sample_directory_and_prints_the_expected_rows() {
    let scratch = Scratch::new("mini");
    let datadir = scratch.dir("data");
    let stock = start_on_mini(&datadir);
    for table in samples::TABLES {
        // Its TSV holds the values in another convention; see the README of the samples.
        if table != "s_spatial" {
            assert_eq!(
                stock.tsv("smp", table),
                samples::text(&format!("{table}.tsv")),
                "{table}"
            );
        }
    }
    let prepared = stock.sql("", "XA RECOVER");
    assert_eq!(
        prepared.lines().count(),
        3,
        "two prepared transactions: {prepared}"
    );
    let committed = stock.sql("smp", "SELECT COUNT(*) FROM s_undo");
    assert_eq!(committed, "COUNT(*)\n10\n");
    assert_eq!(stock.check_tables("smp"), 23);
    stock.shutdown(false);
    assert!(checkers::check_data_dir(&datadir).expect("no checker complains") > 30);
}

#[test]
fn a_killed_stock_server_recovers_what_it_acknowledged() {
    let scratch = Scratch::new("kill");
    let datadir = scratch.dir("data");
    Stock::create(&datadir, &[]);
    let stock = Stock::start(&datadir, &[]);
    stock.sql("", "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v BLOB, KEY (v(10))) ENGINE=InnoDB");
    stock.sql(
        "d",
        "INSERT INTO t SELECT seq, REPEAT(CHAR(seq % 256), seq) FROM seq_1_to_500",
    );
    let before = stock.tsv("d", "t");
    stock.kill();
    let copy = scratch.path().join("copy");
    copy_dir(&datadir, &copy);
    let stock = Stock::start(&copy, &[]);
    assert_eq!(stock.tsv("d", "t"), before);
    assert_eq!(stock.check_tables("d"), 1);
}

#[test]
fn the_client_and_the_tsv_conventions_agree() {
    let scratch = Scratch::new("tsv");
    let datadir = scratch.dir("data");
    let stock = start_on_mini(&datadir);
    for table in ["s_blob_dynamic", "s_dynamic", "s_instant"] {
        let definition = samples::text(&format!("{table}.sql"));
        let batch = stock.sql_bytes("smp", &format!("SELECT * FROM {table} ORDER BY id"));
        let kinds = tsv::kinds_of(&definition);
        let kinds = if table == "s_instant" {
            vec![tsv::Kind::Text; 4]
        } else {
            kinds
        };
        assert_eq!(
            tsv::sample_tsv(&batch, &kinds),
            samples::text(&format!("{table}.tsv")),
            "{table}"
        );
    }
}

#[test]
fn definitions_of_a_scratch_server_fit_files_of_another() {
    let scratch = Scratch::new("frm");
    let datadir = scratch.dir("data");
    let definition =
        "CREATE TABLE t (a INT NOT NULL, b VARCHAR(20), PRIMARY KEY (a), KEY (b)) ENGINE=InnoDB";
    let stock = Stock::start(&datadir, &[]);
    stock.sql("", "CREATE DATABASE d");
    stock.sql(
        "d",
        &format!("{definition}; INSERT INTO t VALUES (1, 'one'), (2, NULL)"),
    );
    stock.shutdown(false);
    fs::remove_file(datadir.join("d/t.frm")).expect("the definition was there");
    lay_definitions("d", definition, &datadir.join("d"));
    let stock = Stock::start(&datadir, &[]);
    assert_eq!(stock.tsv("d", "t"), "a\tb\n1\tone\n2\tNULL\n");
}

#[test]
fn a_flipped_bit_is_seen_by_every_checker() {
    let scratch = Scratch::new("flip");
    let file = scratch.path().join("s_dynamic.ibd");
    let mut bytes = samples::bytes("s_dynamic.ibd");
    fs::write(&file, &bytes).expect("the file can be written");
    let cfg = samples::path("s_dynamic.cfg");
    let schema = ["--cfg", cfg.to_str().expect("the path is text")];
    checkers::innochecksum(&file).expect("the sample is sound");
    checkers::ibdump_check(&file, &schema).expect("the sample is sound");
    bytes[4 * 16384 + 200] ^= 4;
    fs::write(&file, &bytes).expect("the file can be written");
    assert!(checkers::innochecksum(&file).is_err());
    assert!(checkers::ibdump_check(&file, &schema).is_err());
}

#[test]
fn the_stock_server_runs_the_workload_and_loads_the_dump() {
    let scratch = Scratch::new("work");
    let datadir = scratch.dir("data");
    let stock = Stock::start(&datadir, &["--innodb-flush-log-at-trx-commit=0"]);
    let grown = workload::grown(4000, 1);
    stock.sql("", &grown.script());
    assert_eq!(stock.check_tables("grown"), 5);
    stock.sql_input("", &workload::shop_dump());
    assert_eq!(stock.check_tables("shop"), 8);
    assert_eq!(
        stock.sql("shop", "SELECT COUNT(*) FROM order_lines"),
        "COUNT(*)\n2970\n"
    );
    stock.shutdown(true);
    checkers::check_data_dir(&datadir).expect("no checker complains");
}

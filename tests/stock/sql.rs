//! The host and the stock server answer the same statements with the same bytes.

use crate::support::host::{Host, plain_command};
use crate::support::run;
use crate::support::samples;
use crate::support::scratch::Scratch;
use crate::support::stock::Stock;
use crate::support::workload;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The first line in which two results part.
pub fn difference(found: &[u8], expected: &[u8]) -> Option<String> {
    let show = |line: Option<&[u8]>| {
        line.map_or("(the end)".into(), |line| {
            format!("{:.300}", String::from_utf8_lossy(line))
        })
    };
    let (mut ours, mut theirs) = (
        found.split(|&b| b == b'\n'),
        expected.split(|&b| b == b'\n'),
    );
    for number in 1.. {
        match (ours.next(), theirs.next()) {
            (None, None) => break,
            (our, their) if our == their => {}
            (our, their) => {
                return Some(format!(
                    "line {number}:\n  host  {}\n  stock {}",
                    show(our),
                    show(their)
                ));
            }
        }
    }
    None
}

/// Each statement of queries.sql on the sample schema, one after the other on both.
fn assert_same_answers(host: &mut Host) {
    let scratch = Scratch::new("answers");
    let stock = Stock::start(
        &scratch.dir("stock"),
        &["--innodb-flush-log-at-trx-commit=0"],
    );
    let mut client =
        Host::start_command(stock.client_command("").arg("--unbuffered").arg("--force"));
    let mut dump = workload::shop_dump();
    dump.extend_from_slice(b"\nUSE shop;");
    client.run(&dump);
    host.run(&dump);
    assert!(
        !host.errors().contains("ERROR"),
        "the dump loads without an error: {}",
        host.errors()
    );
    let queries =
        fs::read_to_string(samples::fixture("dump/queries.sql")).expect("the queries are there");
    let mut differences = Vec::new();
    for query in queries.lines() {
        let statement = format!("{query};");
        let found = host.run(statement.as_bytes());
        if let Some(difference) = difference(&found, &client.run(statement.as_bytes())) {
            differences.push(format!("{query}\n{difference}"));
        }
    }
    assert_eq!(
        client.errors(),
        "",
        "the stock server accepts every statement"
    );
    assert!(
        differences.is_empty(),
        "{} answers differ\n{}\n{}",
        differences.len(),
        differences.join("\n"),
        host.errors()
    );
}

#[test]
fn the_host_with_its_builtin_engine_answers_as_the_stock_server() {
    let scratch = Scratch::new("heap");
    let mut host = Host::start_command(plain_command(&scratch.dir("data")).arg("--force"));
    assert_same_answers(&mut host);
    host.quit();
}

/// Statements of tests/tools/sql_fuzz.py: random columns, keys and conditions.
fn assert_same_random_answers(host: &mut Host, seeds: std::ops::RangeInclusive<u32>) {
    let scratch = Scratch::new("fuzz");
    let stock = Stock::start(
        &scratch.dir("stock"),
        &["--innodb-flush-log-at-trx-commit=0"],
    );
    let mut client =
        Host::start_command(stock.client_command("").arg("--unbuffered").arg("--force"));
    for seed in seeds {
        let output = run(Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/sql_fuzz.py"))
            .arg(seed.to_string()));
        // Said in each script, since the two have different defaults.
        let mode = match seed % 2 {
            0 => "NO_ENGINE_SUBSTITUTION",
            _ => "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO",
        };
        let mut script = format!(
            "SET NAMES utf8mb4; SET time_zone = '+00:00'; SET sql_mode = '{mode}'; \
             CREATE DATABASE f{seed} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE f{seed};\n"
        )
        .into_bytes();
        script.extend_from_slice(&output.stdout);
        let expected = client.run(&script);
        if let Some(difference) = difference(&host.run(&script), &expected) {
            panic!("seed {seed}: {difference}");
        }
    }
}

#[test]
fn random_statements_are_answered_as_by_the_stock_server() {
    let scratch = Scratch::new("heap");
    let mut host = Host::start_command(plain_command(&scratch.dir("data")).arg("--force"));
    assert_same_random_answers(&mut host, 1..=12);
    host.quit();
}

#[test]
fn our_engine_answers_random_statements_as_the_stock_server() {
    let scratch = Scratch::new("engine");
    let mut host = Host::start(&scratch.dir("data"), &["--force"]);
    assert_same_random_answers(&mut host, 13..=24);
    host.quit();
}

#[test]
fn the_host_with_our_engine_answers_as_the_stock_server() {
    let scratch = Scratch::new("engine");
    let mut host = Host::start(&scratch.dir("data"), &["--force"]);
    assert_same_answers(&mut host);
    host.quit();
}

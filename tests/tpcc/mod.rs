//! `xtradb-tpcc`: a short run, a run that is killed, and what the stock server says of the directory.

use crate::support::cc::{artifact, build};
use crate::support::scratch::Scratch;
use crate::support::stock::{Stock, lay_definitions};
use crate::support::{run, run_ok};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// Far smaller than TPC-C asks: what is tested is the consistency, not the speed.
const SMALL: [&str; 3] = ["--warehouses=2", "--items=500", "--customers=40"];
/// Eviction, flushing and checkpoints all the time.
const TIGHT: [&str; 2] = ["--innodb-buffer-pool-size=8M", "--innodb-log-file-size=4M"];

fn tpcc(datadir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(artifact("xtradb-tpcc"));
    let mut option = std::ffi::OsString::from("--datadir=");
    option.push(datadir);
    command.arg(option).args(TIGHT).args(arguments);
    command
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn assert_consistent(output: &Output) {
    let said = text(output);
    assert!(output.status.success(), "{}:\n{said}", output.status);
    assert!(said.contains("All conditions hold"), "{said}");
}

/// Dice with neighbouring seeds, as threads have them, once gave the same numbers one draw apart: all
/// threads did the same transactions, waited for each other's rows and found each other's pages.
#[test]
fn threads_draw_different_numbers() {
    let scratch = Scratch::new("tpcc-draw");
    let program = build("tests/tpcc/draw.c", scratch.path(), "-std=c11");
    run_ok(&mut Command::new(program));
}

#[test]
fn a_short_run_is_consistent_and_draws_its_picture() {
    let scratch = Scratch::new("tpcc");
    let datadir = scratch.dir("data");
    let (plot, json) = (scratch.path().join("a.svg"), scratch.path().join("a.json"));
    run_ok(tpcc(&datadir, &SMALL).arg("--prepare-only"));
    let mut command = tpcc(&datadir, &["--threads=6", "--seconds=4", "--warmup=1"]);
    command
        .arg(format!("--plot={}", plot.display()))
        .arg(format!("--json={}", json.display()));
    let output = run(&mut command);
    assert_consistent(&output);
    let said = text(&output);
    assert!(said.contains("Found 2 warehouses"), "{said}");
    assert_eq!(said.matches(" tx/s ").count(), 5, "a line a second: {said}");
    let drawn = std::fs::read_to_string(plot).expect("the picture is there");
    assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"));
    let figures = std::fs::read_to_string(json).expect("the figures are there");
    assert!(figures.contains("\"consistent\": true"), "{figures}");
}

#[test]
fn transactions_that_are_one_statement_at_read_committed_are_consistent() {
    let scratch = Scratch::new("tpcc-rc");
    let datadir = scratch.dir("data");
    let mut command = tpcc(&datadir, &SMALL);
    command.args([
        "--threads=6",
        "--seconds=2",
        "--warmup=0",
        "--one-statement",
    ]);
    assert_consistent(&run(command.arg("--isolation=read-committed")));
}

/// A run that is under way: it has printed two of its seconds.
fn start_run(datadir: &Path) -> Child {
    let mut child = tpcc(datadir, &["--threads=8", "--seconds=600", "--warmup=0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the run can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("the output is piped")).lines();
    let mut seconds = 0;
    while seconds < 2 {
        let line = lines.next().expect("the run goes on").expect("it is text");
        seconds += usize::from(line.contains(" tx/s "));
    }
    std::thread::spawn(move || lines.count());
    child
}

#[test]
fn a_killed_run_is_consistent_after_recovery_and_for_the_stock_server() {
    let scratch = Scratch::new("tpcc-kill");
    let datadir = scratch.dir("data");
    run_ok(tpcc(&datadir, &SMALL).arg("--prepare-only"));
    for _ in 0..3 {
        let mut child = start_run(&datadir);
        child.kill().expect("the run can be killed");
        child.wait().expect("the run is our child");
        assert_consistent(&run(&mut tpcc(&datadir, &["--check-only"])));
    }
    let schema = run_ok(Command::new(artifact("xtradb-tpcc")).arg("--print-schema"));
    let schema = String::from_utf8(schema).expect("the schema is text");
    lay_definitions("tpcc", &schema, &datadir.join("tpcc"));
    let stock = Stock::start(&datadir, &["--innodb-log-file-size=4M"]);
    assert_eq!(stock.check_tables("tpcc"), 10);
    let carriers = stock.sql(
        "tpcc",
        "SELECT COUNT(*) FROM orders WHERE o_carrier_id IS NULL; SELECT COUNT(*) FROM new_orders",
    );
    let counts: Vec<&str> = carriers
        .lines()
        .filter(|line| !line.starts_with('C'))
        .collect();
    assert_eq!(counts[0], counts[1], "{carriers}");
}

#[test]
fn wrong_options_and_an_empty_directory_are_told() {
    let scratch = Scratch::new("tpcc-options");
    let datadir = scratch.dir("data");
    let status = |arguments: &[&str]| run(&mut tpcc(&datadir, arguments)).status.code();
    assert_eq!(status(&["--threads=0"]), Some(2));
    assert_eq!(status(&["--no-such-option"]), Some(2));
    assert_eq!(status(&["--innodb-no-such-setting=1"]), Some(1));
    assert_eq!(status(&["--plugin-load=InnoDB=missing.so"]), Some(1));
    assert_eq!(status(&["--check-only"]), Some(1));
}

//! The SQL half of the host: values and parser alone, and its answers on the builtin engine against those that
//! a stock server gave to the same statements.

use crate::support::cc::artifact;
use crate::support::run;
use std::path::Path;
use std::process::Command;

#[test]
fn values_statements_and_answers_are_those_of_the_stock_server() {
    let host = artifact("xtradb-host");
    let objects = Path::new(env!("OUT_DIR")).join("c/host");
    let output = run(Command::new(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host/run_unit.sh"),
    )
    .arg(&host)
    .env("OBJECTS", objects));
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

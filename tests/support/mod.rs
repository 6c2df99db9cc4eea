//! What tests need beside the engine: scratch directories, seeds, samples, the stock server, the host.

pub mod cc;
pub mod checkers;
pub mod host;
pub mod samples;
pub mod scratch;
pub mod seed;
pub mod stock;
pub mod tsv;
pub mod workload;

use std::process::{Command, Output, Stdio};

/// Runs a command to its end, standard input closed; panics when the program cannot be started.
pub fn run(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| {
            panic!("{command:?} cannot be started: {error}; `make setup` installs it")
        })
}

/// Like [`run`], but panics with the command's own words when it fails. Returns its standard output.
pub fn run_ok(command: &mut Command) -> Vec<u8> {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?} failed with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

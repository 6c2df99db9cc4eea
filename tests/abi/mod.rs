//! The C interface from C: every function's good and bad use, the examples, the layout of the structs, and
//! the same under valgrind. The programs are compiled with plain `cc` and only `include/`.

mod layout;

use crate::support::cc;
use crate::support::scratch::Scratch;
use crate::support::{run, run_ok};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs a program of tests/abi on a fresh directory.
fn program(name: &str) {
    let scratch = Scratch::new(name);
    let built = cc::build(&format!("tests/abi/{name}.c"), scratch.path(), "-std=gnu99");
    run_ok(&mut on_fresh_directory(Command::new(built), scratch.path()));
}

/// The same under valgrind: no bad access, nothing lost.
fn program_under_valgrind(name: &str) {
    let scratch = Scratch::new(name);
    let built = cc::build(&format!("tests/abi/{name}.c"), scratch.path(), "-std=gnu99");
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args([
            "-q",
            "--error-exitcode=99",
            "--leak-check=full",
            "--num-callers=30",
        ])
        .args([
            "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite",
        ])
        .arg(built);
    run_ok(&mut on_fresh_directory(valgrind, scratch.path()));
}

fn on_fresh_directory(mut command: Command, scratch: &Path) -> Command {
    command.arg(cc::library()).arg(data_directory(scratch));
    command
}

fn data_directory(scratch: &Path) -> PathBuf {
    let datadir = scratch.join("data");
    std::fs::create_dir_all(&datadir).expect("a scratch directory can be made");
    datadir
}

#[test]
fn all_that_needs_no_running_engine() {
    program("api");
}

#[test]
fn no_bad_argument_makes_a_bad_access() {
    program_under_valgrind("api");
}

#[test]
fn the_library_leaves_memory_while_threads_that_used_it_live_on() {
    program("unload");
}

#[test]

fn an_engine_lives_dies_and_lives_again() {
    program("engine");
    program_under_valgrind("engine");
}

#[test]

fn statements_transactions_and_savepoints() {
    program("session");
    program_under_valgrind("session");
}

#[test]

fn rows_go_in_and_come_out() {
    program("table");
    program_under_valgrind("table");
}

#[test]

fn every_find_flag() {
    program("index");
    program_under_valgrind("index");
}

#[test]
fn a_collation_that_the_host_lacks() {
    program("collation");
    program_under_valgrind("collation");
}

#[test]

fn tables_by_name() {
    program("ddl");
    program_under_valgrind("ddl");
}

#[test]

fn threads_right_and_wrong() {
    program("threads");
}

/// Compiles an example as its first comment says and runs it.
fn example(name: &str, arguments: &[&str]) -> Output {
    let scratch = Scratch::new(name);
    let built = cc::build(&format!("examples/{name}.c"), scratch.path(), "-std=gnu99");
    run(on_fresh_directory(Command::new(built), scratch.path()).args(arguments))
}

fn assert_prints(output: &Output, wanted: &str) {
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}:\n{printed}{errors}",
        output.status
    );
    assert!(printed.contains(wanted), "printed:\n{printed}{errors}");
}

#[test]
fn examples_are_short() {
    for name in ["smallest_host", "information_schema", "hot_swap", "bank"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{name}.c"));
        let lines = std::fs::read_to_string(&path)
            .expect("the example is there")
            .lines()
            .count();
        assert!(lines <= 190, "{name} has {lines} lines");
    }
}

#[test]

fn the_smallest_host_reads_what_it_wrote() {
    assert_prints(&example("smallest_host", &[]), "2 two\n3 NULL\n");
}

#[test]

fn the_information_schema_reader_prints_rows_and_cancels() {
    assert_prints(
        &example("information_schema", &["innodb_cmp"]),
        "16384\t0\t0\t0\t0\t0\n",
    );
    assert_prints(
        &example("information_schema", &["innodb_cmp", "2"]),
        "... and more\n",
    );
}

#[test]

fn the_engine_is_swapped_fifty_times_under_a_living_thread() {
    assert_prints(
        &example("hot_swap", &["50"]),
        "50 rounds, no build left behind\n",
    );
}

#[test]
fn the_bank_keeps_its_total_while_threads_move_money() {
    assert_prints(&example("bank", &["100"]), "the total is still 20000\n");
}

//! The bundled host from outside: options, plugin-load strings, INSTALL and UNINSTALL, output, the prompt,
//! scripts with several sessions. Most of it runs on the builtin heap engine and dummy libraries.

mod bad_input;
mod limits;
mod log_size;
mod memory;
mod open_files;
mod smallest;
mod sql;
mod swap;

use crate::support::cc::artifact;
use crate::support::host;
use crate::support::scratch::Scratch;
use crate::support::{run, run_ok};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Replays a file of tests/host/golden. `XTRADB_RECORD=1` writes what is printed today instead.
fn replay(name: &str) {
    let scratch = Scratch::new("host");
    let mut command = Command::new("python3");
    command
        .arg(root().join("tests/tools/transcript.py"))
        .arg("--host")
        .arg(artifact("xtradb-host"))
        .arg("--scratch")
        .arg(scratch.path().join("t"));
    if std::env::var_os("XTRADB_RECORD").is_some() {
        command.arg("--record");
    }
    let output = run(command.arg(root().join("tests/host/golden").join(name)));
    assert!(
        output.status.success(),
        "{name} is different today:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn options_are_spelt_as_mysqld_spells_them_and_mistakes_are_named() {
    replay("options.txt");
}

#[test]
fn a_plugin_load_string_follows_the_grammar_and_its_first_failure_ends_it() {
    replay("plugin_load.txt");
}

#[test]
fn install_and_uninstall_swap_a_library_for_the_build_that_lies_there_now() {
    replay("install.txt");
}

#[test]
fn the_library_is_found_beside_the_program_and_where_install_puts_it() {
    for (programs, libraries) in [("target", "target"), ("usr/bin", "usr/lib/xtradb")] {
        let scratch = Scratch::new("found");
        let copy = |name: &str, folder: &str| {
            let to = scratch.dir(folder).join(name);
            std::fs::copy(artifact(name), &to).expect("it can be copied");
            to
        };
        let program = copy("xtradb-host", programs);
        copy("libxtradb.so", libraries);
        let output = run_ok(
            Command::new(program)
                .args(["--no-defaults", "--ignore-builtin-innodb", "--batch"])
                .arg("--plugin-load=innodb=libxtradb.so")
                .arg(format!("--datadir={}", scratch.dir("data").display()))
                .args(["-e", "SELECT @@plugin_dir"]),
        );
        let folder = scratch.path().join(libraries);
        assert!(String::from_utf8_lossy(&output).contains(&*folder.to_string_lossy()));
    }
}

#[test]
fn results_are_printed_as_the_mariadb_client_prints_them() {
    replay("output.txt");
}

#[test]
fn the_builtin_heap_engine_keeps_its_promises() {
    replay("heap.txt");
}

/// The sources of the host without main.c.
fn host_sources() -> Vec<PathBuf> {
    ["c_shim/common", "c_shim/host"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root().join(folder)).expect("the folder can be read"))
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "c") && !path.ends_with("main.c"))
        .collect()
}

/// Compiles a program of this folder with the host's sources.
fn program(scratch: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = scratch.join(name);
    run_ok(
        Command::new("cc")
            .args(["-std=gnu11", "-g", "-D_GNU_SOURCE"])
            .args(flags)
            .args(
                ["include", "c_shim/common", "c_shim/host"]
                    .map(|folder| format!("-I{}", root().join(folder).display())),
            )
            .arg(root().join("tests/host").join(name).with_extension("c"))
            .args(host_sources())
            .arg("-o")
            .arg(&program)
            .args(["-rdynamic", "-ldl", "-lpthread", "-lm"]),
    );
    program
}

#[test]
fn random_statements_and_rollbacks_leave_the_heap_as_a_model_has_it() {
    let scratch = Scratch::new("heap-fuzz");
    let sanitized = ["-O0", "-fsanitize=address,undefined"];
    let program = program(scratch.path(), "heap_fuzz", &sanitized);
    for seed in 1..=5 {
        let output = run_ok(Command::new(&program).args([&seed.to_string(), "2000"]));
        assert_eq!(String::from_utf8_lossy(&output), "ok\n");
    }
}

#[test]
fn a_person_at_the_prompt_sees_continuations_history_and_errors() {
    let scratch = Scratch::new("prompt");
    let output = run(Command::new("python3")
        .arg(root().join("tests/tools/prompt.py"))
        .arg("--host")
        .arg(artifact("xtradb-host"))
        .arg("--scratch")
        .arg(scratch.path()));
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn show_engines_promises_what_there_is() {
    let scratch = Scratch::new("engines");
    let mut host = host::Host::start(&scratch.dir("data"), &["--force"]);
    let said = host.run(b"SELECT TRANSACTIONS, XA, SAVEPOINTS FROM information_schema.ENGINES WHERE ENGINE = 'InnoDB';");
    assert_eq!(
        String::from_utf8_lossy(&said),
        "TRANSACTIONS\tXA\tSAVEPOINTS\nYES\tNO\tYES\n"
    );
    host.run(b"XA START 'a';");
    assert!(host.errors().contains("1235"), "{}", host.errors());
    host.quit();
}

/// The scripts of a folder, by name.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "{} has no scripts", folder.display());
    scripts
}

/// Runs every script of a folder, each in a database of its own; a script that passes prints itself.
fn run_scripts(folder: &Path, mut host: impl FnMut() -> Command) {
    let scripts = scripts(folder);
    let stem = |path: &PathBuf| {
        path.file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    let create: String = scripts
        .iter()
        .map(|s| format!("CREATE DATABASE `{}`;", stem(s)))
        .collect();
    let output = run(host().arg("-e").arg(create));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut different = String::new();
    for script in &scripts {
        let output = run(host()
            .arg("-D")
            .arg(stem(script))
            .arg(format!("--sessions={}", script.display())));
        let today = String::from_utf8_lossy(&output.stdout).into_owned();
        if std::env::var_os("XTRADB_RECORD").is_some() {
            std::fs::write(script, &today).expect("the script can be written");
        } else if today != std::fs::read_to_string(script).expect("the script can be read")
            || !output.status.success()
        {
            different += &format!(
                "==== {}: {}\n{today}{}",
                script.display(),
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    assert!(
        different.is_empty(),
        "these scripts are different today:\n{different}"
    );
}

#[test]
fn sessions_of_a_script_block_and_resume_where_the_builtin_engine_makes_them() {
    let scratch = Scratch::new("heap-scripts");
    run_scripts(&root().join("tests/host/scripts"), || {
        let mut command = Command::new(artifact("xtradb-host"));
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", scratch.path().display()));
        command
    });
}

#[test]
fn read_committed_shows_the_anomalies_that_stock_innodb_shows_and_no_others() {
    let scratch = Scratch::new("rc-scripts");
    run_scripts(&root().join("tests/scripts/read_committed"), || {
        host::command(scratch.path())
    });
}

#[test]
fn read_uncommitted_shows_the_anomalies_that_stock_innodb_shows_and_no_others() {
    let scratch = Scratch::new("ru-scripts");
    run_scripts(&root().join("tests/scripts/read_uncommitted"), || {
        host::command(scratch.path())
    });
}

#[test]
fn serializable_shows_the_anomalies_that_stock_innodb_shows_and_no_others() {
    let scratch = Scratch::new("ser-scripts");
    run_scripts(&root().join("tests/scripts/serializable"), || {
        host::command(scratch.path())
    });
}

#[test]
fn repeatable_read_shows_the_anomalies_that_stock_innodb_shows_and_no_others() {
    let scratch = Scratch::new("rr-scripts");
    run_scripts(&root().join("tests/scripts/repeatable_read"), || {
        host::command(scratch.path())
    });
}

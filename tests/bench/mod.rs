//! `make bench` is a package of its own (benches/peers) that `make test` does not compile. What can
//! be known without the other engines is checked here, so that it does not rot unseen.

use crate::support::run_ok;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The package's source files.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("benches/peers/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 10, "{found:?}");
    found
}

/// The words of `text` that follow `before`.
fn words_after<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.split(before)
        .skip(1)
        .map(|rest| &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())])
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn the_package_of_peers_is_one_of_its_own_and_parses() {
    let manifest = root().join("benches/peers/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version=1",
            "--manifest-path",
        ])
        .arg(&manifest)
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        text.contains("\"workspace_root\":\"") && text.contains("benches/peers\""),
        "{text}"
    );
    assert!(
        !text.contains("\"name\":\"xtradb\""),
        "it is a workspace of its own"
    );
    // It parses every module that main.rs names.
    run_ok(
        Command::new("rustfmt")
            .args(["--check", "--edition=2024"])
            .arg(root().join("benches/peers/src/main.rs")),
    );
    let (manifest, lock) = (
        read("benches/peers/Cargo.toml"),
        read("benches/peers/Cargo.lock"),
    );
    for peer in ["fjall", "heed", "redb", "rusqlite"] {
        assert!(
            manifest.contains(&format!("\n{peer} = ")),
            "{peer} is a dependency"
        );
        assert!(
            lock.contains(&format!("name = \"{peer}\"\n")),
            "{peer} is locked"
        );
    }
}

#[test]
fn the_peers_know_the_interface_as_it_is() {
    let interface: String = fs::read_dir(root().join("include/xtradb"))
        .expect("the headers are there")
        .map(|entry| fs::read_to_string(entry.expect("a header").path()).expect("a text"))
        .collect();
    let glue = read("benches/peers/src/abi/xt.rs");
    let slots =
        words_after(&glue, "call!(api, ").len() + words_after(&glue, "call!(self.api, ").len();
    assert!(slots > 15, "{slots} calls");
    for slot in words_after(&glue, "call!(api, ")
        .into_iter()
        .chain(words_after(&glue, "call!(self.api, "))
    {
        assert!(
            interface.contains(&format!(" *{slot};")),
            "no slot {slot} in api.h"
        );
    }
    for constant in words_after(&glue, "c::XT_") {
        assert!(
            interface.contains(&format!("#define XT_{constant} ")),
            "no XT_{constant}"
        );
    }
    for name in words_after(&glue, "size_of::<c::") {
        assert!(
            interface.contains(&format!("}} {name};")),
            "no struct {name}"
        );
    }
}

#[test]
fn the_script_and_the_program_agree_on_parameters() {
    let (script, options) = (read("tools/bench.sh"), read("benches/peers/src/options.rs"));
    let measure = script.split("measure() {").nth(1).expect("the function");
    let measure = &measure[..measure.find("\n}").expect("its end")];
    let parameters: Vec<&str> = words_after(measure, " \"")
        .into_iter()
        .filter(|name| measure.contains(&format!("\"{name}=")))
        .collect();
    assert!(parameters.len() > 10, "{parameters:?}");
    for name in parameters {
        assert!(
            options.contains(&format!("\"{name}\" =>")),
            "the program knows no {name}="
        );
    }
}

#[test]
fn the_peers_keep_the_shape_of_the_rest() {
    for path in sources() {
        let text = fs::read_to_string(&path).expect("a text");
        let lines = text.lines().count();
        assert!(lines <= 600, "{}: {lines} lines", path.display());
        assert!(
            text.starts_with("//! "),
            "{}: a header says what it is",
            path.display()
        );
        let in_abi = path
            .parent()
            .is_some_and(|folder| folder.ends_with("src/abi"));
        let is_unsafe =
            text.contains("unsafe {") || text.contains("unsafe impl") || text.contains("unsafe fn");
        assert!(
            in_abi || !is_unsafe,
            "{}: unsafe outside abi",
            path.display()
        );
    }
}

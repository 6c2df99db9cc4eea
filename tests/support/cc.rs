//! C programs built by the tests with plain `cc` and only `include/`.

use super::run_ok;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles one C file of the repository (path from its root) into `into`; warnings are errors.
pub fn build(source: &str, into: &Path, standard: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = Path::new(source).file_stem().expect("a C file has a name");
    let program = into.join(name);
    run_ok(
        Command::new("cc")
            .args([
                standard, "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I",
            ])
            .arg(root.join("include"))
            .arg(root.join(source))
            .arg("-o")
            .arg(&program)
            .args(["-ldl", "-lpthread"]),
    );
    program
}

/// `libxtradb.so` of this build: beside the test binary's folder.
pub fn library() -> PathBuf {
    artifact("libxtradb.so")
}

/// A file that the build put into target/<profile>; the test fails when it is not there.
pub fn artifact(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("tests lie in target/<profile>/deps");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is missing: run `cargo build` (or `make test`)",
        path.display()
    );
    path
}

//! The engine is replaced under a running host, fifty times, while threads of the host live on.

use crate::support::cc::artifact;
use crate::support::run;
use crate::support::scratch::Scratch;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 50;

/// The version string of the engine's plugin, as `INFORMATION_SCHEMA.PLUGINS` shows it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A second build that differs from the first in the version its plugins report: the same bytes with the
/// last digit of every such string changed. (A string, not code: it ends with NUL and stands alone.)
fn other_build(library: &[u8], version: &str) -> (Vec<u8>, String) {
    let mut other = version.to_owned();
    let last = other.pop().expect("a version has digits");
    other.push(if last == '9' { '8' } else { '9' });
    let wanted = [version.as_bytes(), b"\0"].concat();
    let mut bytes = library.to_vec();
    let mut found = 0;
    for at in 0..bytes.len() - wanted.len() {
        if bytes[at..].starts_with(&wanted) {
            bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "the library has no version string {version:?}");
    (bytes, other)
}

/// One round: the build of the round is used by three sessions, taken out, and the next one is put in.
fn round(script: &mut String, number: usize, version: &str, next: &Path, plugins: &Path) {
    let mut line = |text: String| {
        script.push_str(&text);
        script.push('\n');
    };
    line(
        "a: SELECT PLUGIN_VERSION FROM INFORMATION_SCHEMA.PLUGINS WHERE PLUGIN_NAME = 'InnoDB'"
            .into(),
    );
    line(format!("    {version}"));
    if number == 0 {
        line("a: CREATE TABLE t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB\n    ok".into());
    }
    line(format!(
        "b: INSERT INTO t VALUES ({number}, {})\n    ok, 1 row",
        number * 2
    ));
    line("b: BEGIN\n    ok\nc: BEGIN\n    ok".into());
    line(format!(
        "b: UPDATE t SET v = v + 1 WHERE id = {number}\n    ok, 1 row"
    ));
    line(format!(
        "c: UPDATE t SET v = v + 1 WHERE id = {number}\n    c blocks"
    ));
    // In use: the error says by whom, the plugin stays, and the statement may be repeated.
    line("a: UNINSTALL SONAME 'libxtradb.so'".into());
    line(
        "    ERROR 1620 (HY000): Plugin 'InnoDB' is busy: session 2 uses it. It stays active; try \
         again when that session's transaction has ended"
            .into(),
    );
    line("b: COMMIT\n    ok\n    c resumes\n        ok, 1 row\nc: ROLLBACK\n    ok".into());
    line(format!(
        "c: SELECT COUNT(*), MAX(id), SUM(v) FROM t\n    {} | {number} | {}",
        number + 1,
        {
            let n = number as u64 + 1;
            n * (n - 1) + n
        }
    ));
    line("a: UNINSTALL SONAME 'libxtradb.so'\n    ok".into());
    line("c: SELECT * FROM t".into());
    line("    ERROR 1286 (42000): Unknown storage engine 'InnoDB'".into());
    line(format!(
        "system cp {} {p}/.new && mv {p}/.new {p}/libxtradb.so",
        next.display(),
        p = plugins.display()
    ));
    line("a: INSTALL SONAME 'libxtradb.so'\n    ok".into());
}

#[test]
#[ignore = "needs the whole engine"]
fn fifty_swaps_in_a_row_keep_the_data_and_run_the_build_that_lies_there() {
    let scratch = Scratch::new("swap");
    let (plugins, data) = (scratch.dir("plugins"), scratch.dir("data"));
    let library = fs::read(artifact("libxtradb.so")).expect("the library can be read");
    let (other, other_version) = other_build(&library, VERSION);
    let builds: [(PathBuf, &str); 2] = [
        (scratch.path().join("first.so"), VERSION),
        (scratch.path().join("second.so"), &other_version),
    ];
    fs::write(&builds[0].0, &library).expect("the first build can be written");
    fs::write(&builds[1].0, &other).expect("the second build can be written");
    fs::copy(&builds[0].0, plugins.join("libxtradb.so")).expect("it can be put in place");
    let mut script = String::from("# Swaps of the engine under sessions that live on.\n");
    for number in 0..ROUNDS {
        let (version, next) = (builds[number % 2].1, &builds[(number + 1) % 2].0);
        round(&mut script, number, version, next, &plugins);
    }
    let path = scratch.path().join("swap.txt");
    fs::write(&path, &script).expect("the script can be written");

    let host = || {
        let mut command = Command::new(artifact("xtradb-host"));
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--plugin-dir={}", plugins.display()))
            .arg("--ignore-builtin-innodb")
            .arg("--plugin-load=libxtradb.so");
        command
    };
    let created = run(host().args(["-e", "CREATE DATABASE d"]));
    assert!(
        created.status.success(),
        "{}",
        String::from_utf8_lossy(&created.stderr)
    );
    let output = run(host()
        .arg("--database=d")
        .arg(format!("--sessions={}", path.display())));
    let today = String::from_utf8_lossy(&output.stdout);
    let mut why = String::new();
    for (number, (today, expected)) in today.lines().zip(script.lines()).enumerate() {
        if today != expected {
            write!(
                why,
                "line {}: expected {expected:?}, got {today:?}",
                number + 1
            )
            .expect("a string takes everything");
            break;
        }
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        today == script && output.status.success() && stderr.is_empty(),
        "{}: {why}\n{stderr}",
        output.status
    );
}

//! The engine is replaced under a running host, fifty times, while threads of the host live on.

use crate::support::cc::artifact;
use crate::support::scratch::Scratch;
use crate::support::{run, run_ok};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 50;

/// The version string of the engine's plugin, as `INFORMATION_SCHEMA.PLUGINS` shows it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A second build that differs from the first in the version its plugins report: the same bytes with the
/// last digit of the version changed wherever it stands by itself (not as a part of a longer number).
fn other_build(library: &[u8], version: &str) -> (Vec<u8>, String) {
    let mut other = version.to_owned();
    let last = other.pop().expect("a version has digits");
    other.push(if last == '9' { '8' } else { '9' });
    let in_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let mut bytes = library.to_vec();
    let mut found = 0;
    for at in 1..bytes.len() - version.len() {
        let end = at + version.len();
        if bytes[at..end] == *version.as_bytes()
            && !in_number(bytes[at - 1])
            && !in_number(bytes[end])
        {
            bytes[at..end].copy_from_slice(other.as_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "the library has no version string {version:?}");
    (bytes, other)
}

/// Two builds in a scratch directory, the first one in place, and a host that finds them there.
struct Stage {
    scratch: Scratch,
    builds: [(PathBuf, String); 2],
    plugins: PathBuf,
    data: PathBuf,
}

impl Stage {
    fn new(name: &str) -> Stage {
        let scratch = Scratch::new(name);
        let (plugins, data) = (scratch.dir("plugins"), scratch.dir("data"));
        let library = fs::read(artifact("libxtradb.so")).expect("the library can be read");
        let (other, other_version) = other_build(&library, VERSION);
        let builds = [
            (scratch.path().join("first.so"), VERSION.to_owned()),
            (scratch.path().join("second.so"), other_version),
        ];
        fs::write(&builds[0].0, &library).expect("the first build can be written");
        fs::write(&builds[1].0, &other).expect("the second build can be written");
        fs::copy(&builds[0].0, plugins.join("libxtradb.so")).expect("it can be put in place");
        Stage {
            scratch,
            builds,
            plugins,
            data,
        }
    }

    fn host(&self) -> Command {
        let mut command = Command::new(artifact("xtradb-host"));
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", self.data.display()))
            .arg(format!("--plugin-dir={}", self.plugins.display()));
        command
    }

    /// A step of a script that puts a build in place, by rename.
    fn put(&self, build: &Path) -> String {
        let folder = self.plugins.display();
        format!(
            "system cp {} {folder}/.new && mv {folder}/.new {folder}/libxtradb.so\n",
            build.display()
        )
    }

    /// Runs a script that must print itself, without a word in the log (a library that stays in memory
    /// is reported there).
    fn run(&self, host: &mut Command, script: &str) {
        let path = self.scratch.path().join("swap.txt");
        fs::write(&path, script).expect("the script can be written");
        let output = run(host.arg(format!("--sessions={}", path.display())));
        let today = String::from_utf8_lossy(&output.stdout);
        let different = today.lines().zip(script.lines()).position(|(a, b)| a != b);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            today == script && output.status.success() && stderr.is_empty(),
            "{}, first difference at {:?}: {:?}\n{stderr}",
            output.status,
            different.map(|line| line + 1),
            different.and_then(|line| today.lines().nth(line))
        );
    }
}

const SHOW_VERSION: &str =
    "SELECT PLUGIN_NAME, PLUGIN_VERSION FROM INFORMATION_SCHEMA.PLUGINS WHERE PLUGIN_NAME =";

/// One round: the build of the round is used by three sessions, taken out, and the next one is put in.
fn round(script: &mut String, number: u64, version: &str) {
    let sum = (number + 1) * number + number + 1;
    *script += &format!(
        "a: {SHOW_VERSION} 'InnoDB'\n    InnoDB | {version}\n\
         b: INSERT INTO t VALUES ({number}, {v})\n    ok, 1 row\n\
         b: BEGIN\n    ok\n\
         c: BEGIN\n    ok\n\
         b: UPDATE t SET v = v + 1 WHERE id = {number}\n    ok, 1 row\n\
         c: UPDATE t SET v = v + 1 WHERE id = {number}\n    c blocks\n\
         # In use: the error says by whom, the plugin stays, and the statement may be repeated.\n\
         a: UNINSTALL SONAME 'libxtradb.so'\n    \
         ERROR 1620 (HY000): Plugin 'InnoDB' is busy: session 3 uses it. It stays active; try again \
         when that session's transaction has ended\n\
         b: COMMIT\n    ok\n    c resumes\n        ok, 1 row\n\
         c: ROLLBACK\n    ok\n\
         c: SELECT COUNT(*), MAX(id), SUM(v) FROM t\n    {rows} | {number} | {sum}\n\
         a: UNINSTALL SONAME 'libxtradb.so'\n    ok\n\
         c: SELECT * FROM t\n    ERROR 1286 (42000): Unknown storage engine 'InnoDB'\n",
        v = number * 2,
        rows = number + 1,
    );
}

#[test]
fn fifty_swaps_in_a_row_keep_the_data_and_run_the_build_that_lies_there() {
    let stage = Stage::new("swap");
    let mut host = stage.host();
    host.args([
        "--ignore-builtin-innodb",
        "--plugin-load=libxtradb.so",
        "--database=d",
    ]);
    let created = run(stage
        .host()
        .args(["--ignore-builtin-innodb", "--plugin-load=libxtradb.so"])
        .args([
            "-e",
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
        ]));
    assert!(
        created.status.success(),
        "{}",
        String::from_utf8_lossy(&created.stderr)
    );
    let mut script = String::from("# Swaps of the engine under sessions that live on.\n");
    for number in 0..ROUNDS {
        round(&mut script, number as u64, &stage.builds[number % 2].1);
        script += &stage.put(&stage.builds[(number + 1) % 2].0);
        script += "a: INSTALL SONAME 'libxtradb.so'\n    ok\n";
    }
    stage.run(&mut host, &script);
}

/// Eight sessions at work all the time; the memory that stays while the engine is out is measured.
#[test]
fn two_hundred_swaps_under_load_keep_the_sums_and_leave_no_memory_behind() {
    let stage = Stage::new("swap-load");
    let builds = stage.scratch.dir("builds");
    for (number, (build, _)) in stage.builds.iter().enumerate() {
        fs::copy(build, builds.join(format!("{number}.so"))).expect("a build can be copied");
    }
    let program = super::program(stage.scratch.path(), "stress", &["-O1"]);
    let output = run_ok(
        Command::new(program)
            .arg(format!("swaps=200:{}", builds.display()))
            .args(["8", "1"])
            .arg(format!("--datadir={}", stage.data.display()))
            .arg(format!("--plugin-dir={}", stage.plugins.display()))
            .args(["--ignore-builtin-innodb", "--plugin-load=libxtradb.so"]),
    );
    println!("{}", String::from_utf8_lossy(&output));
}

#[test]
fn a_library_of_which_only_tables_are_used_leaves_memory_fifty_times_in_a_row() {
    let stage = Stage::new("swap-tables");
    let mut script =
        String::from("# The builtin engine stays; tables of the library come and go.\n");
    script += "b: DO 1\n    ok\nc: DO 1\n    ok\n";
    for number in 0..ROUNDS {
        let (build, version) = &stage.builds[number % 2];
        script += &stage.put(build);
        script += &format!(
            "a: INSTALL PLUGIN innodb_trx SONAME 'libxtradb'\n    ok\n\
             b: INSTALL PLUGIN innodb_cmp SONAME 'libxtradb'\n    ok\n\
             c: {SHOW_VERSION} 'INNODB_CMP'\n    INNODB_CMP | {version}\n\
             c: SELECT COUNT(*) FROM INFORMATION_SCHEMA.INNODB_TRX\n    0\n\
             b: UNINSTALL PLUGIN innodb_trx\n    ok\n\
             a: {SHOW_VERSION} 'INNODB_CMP'\n    INNODB_CMP | {version}\n\
             a: UNINSTALL PLUGIN innodb_cmp\n    ok\n"
        );
    }
    stage.run(&mut stage.host(), &script);
}

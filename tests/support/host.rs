//! The bundled host as a process.

use super::cc::artifact;
use super::scratch::Scratch;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};

/// The classic plugin-load string: the engine and its first seven INFORMATION_SCHEMA tables.
pub const PLUGIN_LOAD: &str = "innodb=libxtradb.so;innodb_trx=libxtradb.so;innodb_locks=libxtradb.so;\
     innodb_lock_waits=libxtradb.so;innodb_cmp=libxtradb.so;innodb_cmp_reset=libxtradb.so;\
     innodb_cmpmem=libxtradb.so;innodb_cmpmem_reset=libxtradb.so";

/// A command that runs the host with our engine on a data directory, results as with `--batch`. The test
/// fails when the host or the library was not built.
pub fn command(datadir: &Path) -> Command {
    let library = artifact("libxtradb.so");
    let mut command = Command::new(artifact("xtradb-host"));
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", datadir.display()))
        .arg(format!(
            "--plugin-dir={}",
            library.parent().expect("it lies in a folder").display()
        ))
        .arg("--ignore-builtin-innodb")
        .arg(format!("--plugin-load={PLUGIN_LOAD}"))
        .arg("--batch");
    command
}

/// The host with nothing but its own heap engine.
pub fn plain_command(datadir: &Path) -> Command {
    let mut command = Command::new(artifact("xtradb-host"));
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", datadir.display()))
        .arg("--batch");
    command
}

/// Runs a script that the command reads from its standard input, to the end of both.
pub fn run_script(command: &mut Command, script: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the host can be started");
    let mut input = child.stdin.take().expect("the input is piped");
    let script = script.to_vec();
    let feeder = std::thread::spawn(move || {
        // The host may end before it has read everything: that shows in its status.
        let _ = input.write_all(&script);
    });
    let output = child.wait_with_output().expect("the host is our child");
    feeder.join().expect("the feeder does not panic");
    output
}

/// Like [`run_script`] on a data directory; panics when the host does not end well. Its output.
pub fn script_ok(datadir: &Path, options: &[&str], script: &[u8]) -> Vec<u8> {
    let output = run_script(command(datadir).args(options), script);
    assert!(
        output.status.success(),
        "the host ended with {}:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// A host that lives: statements go in, results come out, and it can be killed in between.
pub struct Host {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: PathBuf,
    _scratch: Scratch,
    marks: u64,
}

impl Host {
    pub fn start(datadir: &Path, options: &[&str]) -> Host {
        Host::start_command(command(datadir).args(options))
    }

    /// Any command that reads statements from its standard input and prints as with `--batch`.
    pub fn start_command(command: &mut Command) -> Host {
        let scratch = Scratch::new("host");
        let errors = scratch.path().join("stderr");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).expect("the file can be made"))
            .spawn()
            .expect("the host can be started");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("the output is piped"));
        Host {
            child,
            input,
            output,
            errors,
            _scratch: scratch,
            marks: 0,
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the host wrote to standard error so far.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.errors).unwrap_or_default()).into_owned()
    }

    /// Runs statements (each with its semicolon) and waits until the last has answered. Panics when the
    /// host ends instead. Returns what it printed.
    pub fn run(&mut self, statements: &[u8]) -> Vec<u8> {
        self.try_run(statements)
            .unwrap_or_else(|status| panic!("the host ended: {status}\n{}", self.errors()))
    }

    /// Like [`Host::run`]; how the host ended, if it did.
    pub fn try_run(&mut self, statements: &[u8]) -> Result<Vec<u8>, ExitStatus> {
        self.marks += 1;
        let mark = format!("mark-{}", self.marks);
        let mut text = statements.to_vec();
        text.extend_from_slice(format!("\nSELECT '{mark}' AS mark;\n").as_bytes());
        let mut input = self.input.take().expect("the host was not told to quit");
        let feeder = std::thread::spawn(move || {
            let _ = input.write_all(&text).and_then(|()| input.flush());
            input
        });
        let printed = self.read_to_mark(&mark);
        self.input = Some(feeder.join().expect("the feeder does not panic"));
        match printed {
            Some(printed) => Ok(printed),
            None => Err(self.child.wait().expect("the host is our child")),
        }
    }

    /// What was printed before the mark's own result; `None` when the pipe ended.
    fn read_to_mark(&mut self, mark: &str) -> Option<Vec<u8>> {
        let mut printed = Vec::new();
        loop {
            let start = printed.len();
            let read = self
                .output
                .read_until(b'\n', &mut printed)
                .expect("the pipe can be read");
            if read == 0 {
                return None;
            }
            if printed[start..] == *format!("{mark}\n").as_bytes() {
                printed.truncate(start);
                assert!(printed.ends_with(b"mark\n"), "the mark has a heading");
                printed.truncate(start - b"mark\n".len());
                return Some(printed);
            }
        }
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("the host can be killed");
        self.child.wait().expect("the host is our child");
    }

    /// Ends the input and waits: a clean shutdown. Panics when the host does not end well.
    pub fn quit(self) {
        let (status, errors) = self.end();
        assert!(status.success(), "the host ended with {status}:\n{errors}");
    }

    /// Ends the input and waits; how the host ended, and what it wrote to standard error.
    pub fn end(mut self) -> (ExitStatus, String) {
        drop(self.input.take());
        let mut rest = Vec::new();
        self.output
            .read_to_end(&mut rest)
            .expect("the pipe can be read");
        let status = self.child.wait().expect("the host is our child");
        (status, self.errors())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The host's definitions of tables, made by a scratch host, laid into the folder of a database whose files
/// a stock server wrote.
pub fn lay_definitions(database: &str, definitions: &str, into: &Path) {
    let scratch = Scratch::new("xtd");
    let datadir = scratch.dir("data");
    let script =
        format!("CREATE DATABASE IF NOT EXISTS `{database}`; USE `{database}`;\n{definitions}");
    script_ok(&datadir, &[], script.as_bytes());
    let mut laid = 0;
    for entry in fs::read_dir(datadir.join(database)).expect("the host made the folder") {
        let path = entry.expect("the entry can be read").path();
        if path.extension().is_some_and(|extension| extension == "xtd") {
            fs::copy(
                &path,
                into.join(path.file_name().expect("a file has a name")),
            )
            .expect("it can be copied");
            laid += 1;
        }
    }
    assert!(
        laid > 0,
        "the host made no definition from: {definitions:.300}"
    );
}

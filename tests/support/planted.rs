//! Runs the tests that catch the planted bugs, each in a process of its own. Used by the unit tests, too.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A catcher that needs longer has hung.
const PATIENCE: Duration = Duration::from_secs(180);

/// What came of a test.
#[derive(Debug)]
enum Outcome {
    Passed,
    Failed,
    /// There is no such test, it hung, the process died: the text says.
    Other(String),
}

/// Runs each of `(bug, test)` in this test program, the bug planted by `variable`, and demands that the
/// test fails. That it passes without the bug, the test program shows.
pub fn each_is_caught(bugs: &[(&str, &str)], variable: &str, settings: &[(&str, &str)]) {
    // What a failing test leaves goes with it.
    let scratch = std::env::temp_dir().join(format!("xtradb-planted-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("a directory");
    let (next, complaints) = (Mutex::new(bugs.iter()), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let run = next.lock().expect("no panic").next();
            let Some(&(bug, test)) = run else { return };
            let since = Instant::now();
            let planted = (variable, bug);
            let outcome = run_test(test, &scratch, std::iter::once(&planted).chain(settings));
            println!("{bug} {test}: {outcome:?} in {:?}", since.elapsed());
            let complaint = match outcome {
                Outcome::Failed => continue,
                Outcome::Passed => format!("{bug} is not caught by {test}"),
                Outcome::Other(why) => format!("{bug}: {test}: {why}"),
            };
            complaints.lock().expect("no panic").push(complaint);
        }
    };
    let workers = std::thread::available_parallelism().map_or(2, |n| n.get());
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
    std::fs::remove_dir_all(&scratch).expect("the directory is there");
    let complaints = complaints.into_inner().expect("no panic");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn run_test<'a>(
    test: &str,
    scratch: &Path,
    variables: impl Iterator<Item = &'a (&'a str, &'a str)>,
) -> Outcome {
    let program = std::env::current_exe().expect("the test program knows where it is");
    let mut child = Command::new(program)
        .args([test, "--exact", "--test-threads=1"])
        .envs(variables.copied())
        .env("TMPDIR", scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test program starts");
    let since = Instant::now();
    let mut out = child.stdout.take().expect("piped");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut out, &mut bytes).map(|_| bytes)
    });
    let status = loop {
        match child.try_wait().expect("a child") {
            Some(status) => break Some(status),
            None if since.elapsed() > PATIENCE => {
                child.kill().expect("a child");
                child.wait().expect("a child");
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let bytes = reader.join().expect("no panic").expect("the output");
    let text = String::from_utf8_lossy(&bytes);
    let ran = text.contains("running 1 test");
    match status.and_then(|status| status.code()) {
        Some(0) if ran => Outcome::Passed,
        Some(101) if ran && text.contains("0 passed; 1 failed") => Outcome::Failed,
        code => Outcome::Other(format!("exit {code:?}, {text}")),
    }
}

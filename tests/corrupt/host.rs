//! The host under a time limit: a hang is a failure like a crash.

use crate::support::host::{Host, command};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// More than any round takes on a loaded machine.
const SECONDS_MAX: &str = "120";

pub const OPTIONS: [&str; 6] = [
    "--force",
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=4M",
    // No power cut is played here, and one session waits for nobody but a transaction that damage
    // keeps from being rolled back.
    "--innodb-flush-method=nosync",
    "--innodb-lock-wait-timeout=0",
    "--log-warnings=1",
];

/// The host of a directory; `timeout` kills it when it hangs.
pub fn start(datadir: &Path, options: &[&str]) -> Host {
    start_with(datadir, options, &[])
}

/// The same with environment variables.
pub fn start_with(datadir: &Path, options: &[&str], variables: &[(&str, &str)]) -> Host {
    let plain = command(datadir);
    let mut limited = Command::new("timeout");
    limited.args(["-s", "KILL", SECONDS_MAX]);
    limited.arg(plain.get_program()).args(plain.get_args());
    limited.envs(variables.iter().copied());
    Host::start_command(limited.args(options))
}

/// What is wrong with the way the host ended; `None` if it ended by itself.
pub fn crash(status: ExitStatus) -> Option<String> {
    match (status.signal(), status.code()) {
        (Some(9), _) | (_, Some(137)) => Some("the host hung".into()),
        (Some(_), _) | (_, Some(128..)) => Some(format!("the host crashed with {status}")),
        _ => None,
    }
}

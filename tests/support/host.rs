//! The bundled host as a process.

use super::cc::artifact;
use super::run;
use std::path::Path;
use std::process::{Command, Output};

/// The classic plugin-load string: the engine and its first seven INFORMATION_SCHEMA tables.
pub const PLUGIN_LOAD: &str = "innodb=libxtradb.so;innodb_trx=libxtradb.so;innodb_locks=libxtradb.so;\
     innodb_lock_waits=libxtradb.so;innodb_cmp=libxtradb.so;innodb_cmp_reset=libxtradb.so;\
     innodb_cmpmem=libxtradb.so;innodb_cmpmem_reset=libxtradb.so";

/// A command that runs the host with our engine on a data directory. The test fails when the host or the
/// library was not built.
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
        .arg(format!("--plugin-load={PLUGIN_LOAD}"));
    command
}

/// Runs statements in one process, results as with `--batch`; the client's error text when one fails.
pub fn sql(datadir: &Path, options: &[&str], sql: &str) -> Result<String, String> {
    let output: Output = run(command(datadir)
        .args(options)
        .arg("--batch")
        .arg("-e")
        .arg(sql));
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!(
        "{}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    ))
}

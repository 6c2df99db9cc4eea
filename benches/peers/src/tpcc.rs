//! TPC-C by xtradb-tpcc: in memory, and with a pool of a tenth of the data.

use crate::engine::Result;
use crate::options::Options;
use crate::store::Part;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const LOG: &str = "--innodb-log-file-size=1G";
const ROOMY_MIB: u64 = 4096;
const LEAST_POOL_MIB: u64 = 16;

pub fn run(options: &Options, part: &mut Part) -> Result<()> {
    let dir = options.work.join("data").join("tpcc");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    println!("tpcc      loading {} warehouses", options.warehouses);
    tpcc(options, &dir, ROOMY_MIB, &["--prepare-only".into()])?;
    let data_mib = size_of_tables(&dir)? >> 20;
    part.fact("warehouses", options.warehouses);
    part.fact("seconds", options.tpcc_seconds);
    part.fact("data", data_mib);
    let small_mib = (data_mib / 10).max(LEAST_POOL_MIB);
    part.fact("small pool", small_mib);
    for (name, pool_mib) in [("memory", ROOMY_MIB), ("tenth", small_mib)] {
        for &threads in &options.threads {
            if let Err(error) = one(options, &dir, name, pool_mib, threads, part) {
                println!("tpcc      {name}-{threads} failed: {error}");
                part.fail(&format!("{name}-{threads}"), error);
            }
        }
    }
    println!("tpcc      checking the database");
    let checked = tpcc(options, &dir, ROOMY_MIB, &["--check-only".into()]);
    part.fact("consistent", if checked.is_ok() { "yes" } else { "no" });
    let _ = fs::remove_dir_all(&dir);
    checked
}

fn one(
    options: &Options,
    dir: &Path,
    name: &str,
    pool_mib: u64,
    threads: u64,
    part: &mut Part,
) -> Result<()> {
    let json = options.work.join("tpcc.json");
    let arguments = [
        format!("--threads={threads}"),
        format!("--seconds={}", options.tpcc_seconds),
        "--warmup=3".into(),
        "--no-check".into(),
        format!("--json={}", json.display()),
    ];
    tpcc(options, dir, pool_mib, &arguments)?;
    let text = fs::read_to_string(&json)?;
    let rate = number(&text, "transactions_per_second")?;
    let worst = number(&text, "worst_second_of_mean")?;
    println!(
        "tpcc      {name:6} {threads:2} threads  {rate:8.0} tx/s, worst second {worst:.2} of the mean"
    );
    part.add(name, &format!("rate-{threads}"), rate);
    part.add(name, &format!("worst-{threads}"), worst);
    part.add(name, &format!("notpm-{threads}"), number(&text, "notpm")?);
    Ok(())
}

fn tpcc(options: &Options, dir: &Path, pool_mib: u64, arguments: &[String]) -> Result<()> {
    let program = options.programs.join("xtradb-tpcc");
    let settings = options.settings.iter().map(|one| format!("--innodb-{one}"));
    let output = Command::new(&program)
        .arg(format!("--datadir={}", dir.display()))
        .arg(format!("--warehouses={}", options.warehouses))
        .arg(format!("--innodb-buffer-pool-size={pool_mib}M"))
        .args([LOG, "--innodb-flush-log-at-trx-commit=2"])
        .args(settings)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    Err(format!("{}: {last}", output.status).into())
}

/// The number after `"name": `.
fn number(json: &str, name: &str) -> Result<f64> {
    let at = json
        .split_once(&format!("\"{name}\": "))
        .ok_or_else(|| format!("no {name} in the figures"))?;
    let text: String =
        at.1.chars()
            .take_while(|c| c.is_ascii_digit() || ".-".contains(*c))
            .collect();
    Ok(text.parse()?)
}

fn size_of_tables(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            for file in fs::read_dir(entry.path())? {
                bytes += file?.metadata()?.len();
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_in_the_figures() {
        let json = "{\n  \"notpm\": 1.5, \"worst_second_of_mean\": 0.25,\n}";
        assert_eq!(number(json, "worst_second_of_mean").ok(), Some(0.25));
        assert!(number(json, "p99").is_err());
    }
}

//! The rounds: a child process for each engine in each round, engines in turn first.

use crate::cells::CELLS;
use crate::cgroup::Limit;
use crate::engine::Result;
use crate::options::Options;
use crate::rows::VALUE_BYTES;
use crate::store::Part;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The log buffer of 16 MiB would be a fourth of the small memory.
const SMALL_LOG_BUFFER: &str = "log_buffer_size=4M";

/// Keys and values alone.
pub const ROW: u64 = 8 + VALUE_BYTES as u64;

pub fn points(options: &Options, part: &mut Part) -> Result<()> {
    part.fact("rows", options.rows);
    part.fact("cache", options.cache_mib);
    part.fact("seconds", options.seconds);
    for round in 0..options.rounds {
        for engine in rotated(&options.engines, round) {
            let label = format!("{engine:9} round {}/{}", round + 1, options.rounds);
            let dir = directory(options, engine)?;
            let arguments = [
                format!("rows={}", options.rows),
                format!("cache={}", options.cache_mib),
                format!("cells={}", options.cells.join(",")),
                format!("dir={}", dir.display()),
            ];
            if let Err(error) = child("child-points", engine, &label, options, &arguments, part) {
                println!("{label}  failed: {error}");
                part.fail(engine, error);
            }
            let _ = fs::remove_dir_all(dir);
        }
    }
    Ok(())
}

/// The tenth; said when a machine cannot do it.
pub fn memory(options: &Options, part: &mut Part) -> Result<()> {
    let limit_bytes = options.memory_rows * ROW / 10;
    part.fact("rows", options.memory_rows);
    part.fact("limit", limit_bytes >> 20);
    part.fact("cache", (limit_bytes / 2) >> 20);
    let engines = options.engines.iter().filter(|name| *name != "btreemap");
    let engines: Vec<String> = engines.cloned().collect();
    if let Err(error) = Limit::new(limit_bytes) {
        println!("memory    not comparable: {error}");
        part.fact("not comparable", error);
        return Ok(());
    }
    for round in 0..options.memory_rounds {
        for engine in rotated(&engines, round) {
            let label = format!("{engine:9} limited {}/{}", round + 1, options.memory_rounds);
            if let Err(error) = limited(options, engine, &label, limit_bytes, part) {
                println!("{label}  failed: {error}");
                part.fail(engine, error);
            }
        }
    }
    Ok(())
}

fn limited(
    options: &Options,
    engine: &str,
    label: &str,
    limit_bytes: u64,
    part: &mut Part,
) -> Result<()> {
    let dir = directory(options, engine)?;
    let common = [
        format!("rows={}", options.memory_rows),
        format!("dir={}", dir.display()),
    ];
    let roomy = [&common[..], &[format!("cache={}", options.cache_mib)]].concat();
    let result = child("child-prepare", engine, label, options, &roomy, part).and_then(|()| {
        let limit = Limit::new(limit_bytes)?;
        let mine = [
            format!("cache={}", (limit_bytes / 2) >> 20),
            format!("cgroup={}", limit.dir().display()),
            format!("settings={SMALL_LOG_BUFFER},{}", options.settings.join(","))
                .trim_end_matches(',')
                .to_owned(),
        ];
        let arguments = [&common[..], &mine[..]].concat();
        child("child-limited", engine, label, options, &arguments, part)
    });
    let _ = fs::remove_dir_all(dir);
    result
}

/// The engines, beginning with another one in each round.
fn rotated(engines: &[String], round: u64) -> impl Iterator<Item = &String> {
    let first = round as usize % engines.len().max(1);
    engines[first..].iter().chain(&engines[..first])
}

fn directory(options: &Options, engine: &str) -> Result<PathBuf> {
    let dir = options.work.join("data").join(engine);
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    fs::create_dir_all(&dir)?;
    Ok(dir.canonicalize()?)
}

/// Runs this program as a child; takes its figures, prints them as they come.
fn child(
    command: &str,
    engine: &str,
    label: &str,
    options: &Options,
    arguments: &[String],
    part: &mut Part,
) -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(command)
        .arg(format!("engines={engine}"))
        .arg(format!("seconds={}", options.seconds))
        .arg(format!("library={}", options.library.display()))
        .arg(format!("settings={}", options.settings.join(",")))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = child.stdout.take().ok_or("no pipe")?;
    for line in BufReader::new(lines).lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let ["cell", name, rate, others, cost] = words[..] else {
            continue;
        };
        let (rate, others, cost) = (rate.parse()?, others.parse()?, cost.parse()?);
        println!(
            "{label}  {name:14} {:>10}  {cost:8.2} us of CPU",
            shown(name, rate)
        );
        part.add_measured(engine, name, [rate, others, cost]);
    }
    match child.wait()? {
        status if status.success() => Ok(()),
        status if status.signal() == Some(9) => {
            Err("killed: more memory than there is for it".into())
        }
        status => Err(format!("the process ended: {status}").into()),
    }
}

/// A rate as people read it.
pub fn shown(cell: &str, rate: f64) -> String {
    if CELLS.iter().any(|one| one.name == cell && one.as_time) {
        return format!("{:.2} us", 1e6 / rate);
    }
    match rate {
        _ if rate >= 10e6 => format!("{:.1} M/s", rate / 1e6),
        _ if rate >= 1e6 => format!("{:.2} M/s", rate / 1e6),
        _ if rate >= 100e3 => format!("{:.0} k/s", rate / 1e3),
        _ if rate >= 1e3 => format!("{:.1} k/s", rate / 1e3),
        _ => format!("{rate:.0} /s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_begins_with_another_engine() {
        let engines = ["a", "b", "c"].map(str::to_owned);
        let order = |round| rotated(&engines, round).cloned().collect::<String>();
        assert_eq!([order(0), order(1), order(4)], ["abc", "bca", "bca"]);
    }
}

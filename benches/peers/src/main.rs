//! xtradb beside other embedded engines, side by side in one run: see docs/benchmarks.md.

#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "see its header")]
mod abi;
mod cells;
mod cgroup;
mod chart;
mod device;
mod engine;
mod engines;
mod goals;
mod machine;
mod options;
mod report;
mod rounds;
mod rows;
mod store;
mod tpcc;

use engine::Result;
use options::Options;
use std::fs;
use std::process::ExitCode;
use store::Part;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtradb-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        print!("{}", options::HELP);
        return Ok(());
    };
    let options = Options::parse(rest)?;
    match command.as_str() {
        "points" => part(command, &options, rounds::points),
        "memory" => part(command, &options, rounds::memory),
        "device" => part(command, &options, device::run),
        "tpcc" => part(command, &options, tpcc::run),
        "report" => report::write(&options),
        "child-points" => cells::points(&options.plan()),
        "child-prepare" => cells::prepare(&options.plan()),
        "child-limited" => {
            let dir = options.cgroup.as_deref().ok_or("cgroup= is wanted")?;
            cgroup::enter(dir)?;
            cells::limited(&options.plan())
        }
        _ => Err(format!("{command}: no such command\n{}", options::HELP).into()),
    }
}

/// Measures one part; what there is of it is kept even if it breaks off.
fn part(name: &str, options: &Options, work: fn(&Options, &mut Part) -> Result<()>) -> Result<()> {
    fs::create_dir_all(&options.work)?;
    let mut part = Part::default();
    machine::describe(&mut part);
    let result = work(options, &mut part);
    part.save(&options.work.join(format!("{name}.txt")))?;
    result
}

//! The command line: `xtradb-peers COMMAND name=value ...`.

use crate::engine::{Config, Flush, Result};
use crate::{cells, engines};
use std::path::PathBuf;
use std::time::Duration;

pub const HELP: &str = "\
xtradb-peers COMMAND [name=value ...]

  points     every engine, every cell, with room for all rows
  memory     the same, a few cells, with memory for a tenth of the rows
  device     how often the device syncs
  tpcc       xtradb-tpcc at several numbers of threads
  report     writes the document and the picture from what was measured

  rows=1000000 rounds=3 seconds=1.5 cache=1024 (MiB) engines=xtradb,lmdb,... cells=get,scan,...
  memory-rows=3000000 memory-rounds=1 warehouses=4 tpcc-seconds=15 threads=1,2,16,64
  library=target/release/libxtradb.so programs=target/release work=target/bench
  settings=name=value,name=value (of xtradb) document=docs/benchmarks.md picture=docs/benchmarks.svg
";

pub struct Options {
    pub rows: u64,
    pub rounds: u64,
    pub seconds: f64,
    pub cache_mib: u64,
    pub engines: Vec<String>,
    pub cells: Vec<String>,
    pub memory_rows: u64,
    pub memory_rounds: u64,
    pub warehouses: u64,
    pub tpcc_seconds: u64,
    pub threads: Vec<u64>,
    pub library: PathBuf,
    pub programs: PathBuf,
    pub work: PathBuf,
    pub settings: Vec<String>,
    pub document: PathBuf,
    pub picture: PathBuf,
    /// For children: their directory and the control group to enter.
    pub dir: PathBuf,
    pub cgroup: Option<PathBuf>,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = Options {
            rows: 1_000_000,
            rounds: 3,
            seconds: 1.5,
            cache_mib: 1024,
            engines: engines::HOW.map(|(name, _)| name.to_owned()).to_vec(),
            cells: Vec::new(),
            memory_rows: 3_000_000,
            memory_rounds: 1,
            warehouses: 4,
            tpcc_seconds: 15,
            threads: vec![1, 2, 16, 64],
            library: "target/release/libxtradb.so".into(),
            programs: "target/release".into(),
            work: "target/bench".into(),
            settings: Vec::new(),
            document: "docs/benchmarks.md".into(),
            picture: "docs/benchmarks.svg".into(),
            dir: PathBuf::new(),
            cgroup: None,
        };
        for argument in arguments {
            let (name, value) = argument
                .split_once('=')
                .ok_or_else(|| format!("{argument}: name=value is wanted"))?;
            // A parameter that a caller hands on unset.
            if !value.is_empty() {
                options
                    .set(name, value)
                    .map_err(|error| format!("{argument}: {error}"))?;
            }
        }
        options.check()?;
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let list = || value.split(',').map(str::to_owned).collect();
        match name {
            "rows" => self.rows = value.parse()?,
            "rounds" => self.rounds = value.parse()?,
            "seconds" => self.seconds = value.parse()?,
            "cache" => self.cache_mib = value.parse()?,
            "engines" => self.engines = list(),
            "cells" => self.cells = list(),
            "memory-rows" => self.memory_rows = value.parse()?,
            "memory-rounds" => self.memory_rounds = value.parse()?,
            "warehouses" => self.warehouses = value.parse()?,
            "tpcc-seconds" => self.tpcc_seconds = value.parse()?,
            "threads" => {
                let numbers = value.split(',').map(str::parse);
                self.threads = numbers.collect::<std::result::Result<_, _>>()?;
            }
            "library" => self.library = value.into(),
            "programs" => self.programs = value.into(),
            "work" => self.work = value.into(),
            "settings" => self.settings = list(),
            "document" => self.document = value.into(),
            "picture" => self.picture = value.into(),
            "dir" => self.dir = value.into(),
            "cgroup" => self.cgroup = Some(value.into()),
            _ => return Err("no such parameter".into()),
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let known = |name: &String| engines::HOW.iter().any(|(known, _)| known == name);
        if let Some(name) = self.engines.iter().find(|name| !known(name)) {
            return Err(format!("no engine is called {name}").into());
        }
        let known = |name: &String| cells::CELLS.iter().any(|cell| cell.name == name);
        if let Some(name) = self.cells.iter().find(|name| !known(name)) {
            return Err(format!("no cell is called {name}").into());
        }
        if self.rows < cells::BATCH || self.memory_rows < cells::BATCH {
            return Err(format!("at least {} rows", cells::BATCH).into());
        }
        Ok(())
    }

    /// What a child does, whose command line this is: one engine, in `dir`.
    pub fn plan(&self) -> cells::Plan {
        let cache_bytes = self.cache_mib << 20;
        cells::Plan {
            engine: self.engines.first().cloned().unwrap_or_default(),
            rows: self.rows,
            time: Duration::from_secs_f64(self.seconds),
            only: self.cells.clone(),
            config: Config {
                dir: self.dir.clone(),
                cache_bytes,
                write_buffer_bytes: (cache_bytes / 8).clamp(2 << 20, 64 << 20),
                flush: Flush::Written,
                library: self.library.clone(),
                log_bytes: 1 << 30,
                settings: self.settings.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        Options::parse(
            &arguments
                .iter()
                .map(|&one| one.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn parameters_are_taken_and_empty_ones_left() {
        let options =
            parse(&["rows=5000", "rounds=", "engines=lmdb,redb"]).expect("they are right");
        assert_eq!((options.rows, options.rounds), (5000, 3));
        assert_eq!(options.engines, ["lmdb", "redb"]);
    }

    #[test]
    fn wrong_parameters_are_refused() {
        for wrong in [
            "rows",
            "rows=many",
            "rows=1",
            "engines=oracle",
            "cells=gets",
            "colour=red",
        ] {
            assert!(parse(&[wrong]).is_err(), "{wrong}");
        }
    }
}

//! The child process: one engine, one round, all cells. Prints a line per cell as it is measured:
//! `cell NAME RATE OTHERS COST`: the rate per second, the processors that others kept busy, and the
//! microseconds of this process's processor time per operation (background threads included).

use crate::abi::system;
use crate::engine::{Config, Engine, Error, Flush, Result, Session};
use crate::engines;
use crate::rows::{self, Dice};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub const BATCH: u64 = 1000;
/// Each cell, in the order of the table: name, what it is, and how its figure is given.
pub const CELLS: [Cell; 14] = [
    Cell::time("get", "point get in a running transaction"),
    Cell::time("get-alone", "point get, own transaction each"),
    Cell::rate("get-2", "gets/s, 2 threads"),
    Cell::rate("scan", "scan, rows/s, 1 thread"),
    Cell::rate("load", "random load, rows/s, 1 000 per transaction"),
    Cell::rate("update", "update by key, flush=2"),
    Cell::rate("delete", "delete by key, flush=2"),
    Cell::rate("insert-1", "single inserts, flush=2, 1 thread"),
    Cell::rate("insert-2", "single inserts, flush=2, 2 threads"),
    Cell::rate("insert-16", "single inserts, flush=2, 16 threads"),
    Cell::rate("insert-sync-1", "single inserts, flush=1, 1 thread"),
    Cell::rate("insert-sync-2", "single inserts, flush=1, 2 threads"),
    Cell::rate("insert-sync-16", "single inserts, flush=1, 16 threads"),
    Cell::rate("update-sync-1", "update by key, flush=1, 1 thread"),
];

pub struct Cell {
    pub name: &'static str,
    pub what: &'static str,
    /// Shown as microseconds per operation instead of operations per second.
    pub as_time: bool,
}

impl Cell {
    const fn rate(name: &'static str, what: &'static str) -> Cell {
        Cell {
            name,
            what,
            as_time: false,
        }
    }

    const fn time(name: &'static str, what: &'static str) -> Cell {
        Cell {
            name,
            what,
            as_time: true,
        }
    }
}

/// What one child does.
#[derive(Clone)]
pub struct Plan {
    pub engine: String,
    pub rows: u64,
    /// For each cell.
    pub time: Duration,
    /// Only these cells; empty: all.
    pub only: Vec<String>,
    pub config: Config,
}

/// Runs while something is measured.
struct Stopwatch {
    started: Instant,
    cpu: f64,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch {
            started: Instant::now(),
            cpu: system::cpu_seconds(),
        }
    }

    fn stop(self, count: u64) -> Measured {
        let count = count as f64;
        Measured {
            rate: count / self.started.elapsed().as_secs_f64(),
            cost: (system::cpu_seconds() - self.cpu) * 1e6 / count,
        }
    }
}

struct Measured {
    /// Operations per second.
    rate: f64,
    /// Microseconds of processor time per operation.
    cost: f64,
}

#[derive(Clone, Copy)]
enum Work {
    Get,
    GetAlone,
    Insert,
    Update,
    Delete,
}

/// Everything that runs with room for all rows.
pub fn points(plan: &Plan) -> Result<()> {
    // The engine before this one may have left work to the kernel.
    system::write_page_cache();
    let bench = Bench::open(plan, Flush::Written)?;
    bench.measure("load", || bench.load())?;
    if plan.engine == "btreemap" {
        return bench.reads();
    }
    // What the load left to background threads is not the next cell's burden.
    thread::sleep(2 * plan.time);
    bench.reads()?;
    bench.cell("update", 1, Work::Update)?;
    bench.cell("delete", 1, Work::Delete)?;
    for threads in [1, 2, 16] {
        bench.cell(&format!("insert-{threads}"), threads, Work::Insert)?;
    }
    let next = bench.next.load(Ordering::Relaxed);
    drop(bench);
    let bench = Bench::open(plan, Flush::Synced)?;
    bench.next.store(next, Ordering::Relaxed);
    bench.settle()?;
    for threads in [1, 2, 16] {
        bench.cell(&format!("insert-sync-{threads}"), threads, Work::Insert)?;
    }
    bench.gone.store(plan.rows / 2, Ordering::Relaxed);
    bench.cell("update-sync-1", 1, Work::Update)
}

/// Fills the directory for `limited`, and lets the kernel forget what it holds of it.
pub fn prepare(plan: &Plan) -> Result<()> {
    let bench = Bench::open(plan, Flush::Written)?;
    bench.load()?;
    drop(bench);
    forget(&plan.config.dir)
}

fn forget(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            forget(&path)?;
        } else {
            let file = fs::File::open(path)?;
            file.sync_all()?;
            system::forget_cached(&file)?;
        }
    }
    Ok(())
}

/// What runs with memory for a tenth of the rows; the caller has put this process into its limit.
pub fn limited(plan: &Plan) -> Result<()> {
    let bench = Bench::open(plan, Flush::Written)?;
    bench.next.store(plan.rows, Ordering::Relaxed);
    bench.cell("get", 1, Work::Get)?;
    bench.cell("get-2", 2, Work::Get)?;
    bench.cell("update", 1, Work::Update)?;
    bench.measure("load", || bench.load_more())
}

struct Bench<'p> {
    plan: &'p Plan,
    engine: Box<dyn Engine>,
    /// The number of the next new row.
    next: AtomicU64,
    /// Rows from 0 to here are deleted.
    gone: AtomicU64,
}

impl Bench<'_> {
    fn open(plan: &Plan, flush: Flush) -> Result<Bench<'_>> {
        let config = Config {
            flush,
            ..plan.config.clone()
        };
        Ok(Bench {
            plan,
            engine: engines::open(&plan.engine, &config)?,
            next: AtomicU64::new(0),
            gone: AtomicU64::new(0),
        })
    }

    /// Commits are measured, not reads of a cold cache and not what was left in the page cache.
    fn settle(&self) -> Result<()> {
        system::write_page_cache();
        self.engine.with_session(&mut |session| {
            session.read_begin()?;
            session.scan()?;
            session.read_end()
        })
    }

    fn reads(&self) -> Result<()> {
        self.verify()?;
        self.cell("get", 1, Work::Get)?;
        self.cell("get-alone", 1, Work::GetAlone)?;
        self.cell("get-2", 2, Work::Get)?;
        self.measure("scan", || self.scan())
    }

    /// Measures, unless the cell is not wanted; prints.
    fn measure(&self, name: &str, work: impl FnOnce() -> Result<Measured>) -> Result<()> {
        let only = &self.plan.only;
        // Without the load there is nothing to measure.
        if name != "load" && !only.is_empty() && !only.iter().any(|one| one == name) {
            return Ok(());
        }
        let (started, busy, own) = (Instant::now(), busy_seconds(), system::cpu_seconds());
        let Measured { rate, cost } = work()?;
        let seconds = started.elapsed().as_secs_f64();
        let own = system::cpu_seconds() - own;
        let others = ((busy_seconds() - busy - own) / seconds).max(0.0);
        println!("cell {name} {rate} {others:.3} {cost:.3}");
        Ok(std::io::stdout().flush()?)
    }

    fn cell(&self, name: &str, threads: u64, work: Work) -> Result<()> {
        self.measure(name, || self.run(threads, work))
    }

    fn load(&self) -> Result<Measured> {
        let rows = self.plan.rows;
        let watch = Stopwatch::start();
        self.engine.with_session(&mut |session| {
            let mut keys = Vec::new();
            for first in (0..rows).step_by(BATCH as usize) {
                keys.clear();
                keys.extend((first..rows.min(first + BATCH)).map(rows::key));
                session.load(&keys)?;
            }
            Ok(())
        })?;
        self.next.store(rows, Ordering::Relaxed);
        Ok(watch.stop(rows))
    }

    /// The load goes on for the time of a cell.
    fn load_more(&self) -> Result<Measured> {
        let (first, watch) = (self.next.load(Ordering::Relaxed), Stopwatch::start());
        self.engine.with_session(&mut |session| {
            while watch.started.elapsed() < self.plan.time {
                let first = self.next.fetch_add(BATCH, Ordering::Relaxed);
                let keys: Vec<u64> = (first..first + BATCH).map(rows::key).collect();
                session.load(&keys)?;
            }
            Ok(())
        })?;
        let rows = self.next.load(Ordering::Relaxed) - first;
        Ok(watch.stop(rows))
    }

    /// Whole scans, until the time is over.
    fn scan(&self) -> Result<Measured> {
        let mut measured = None;
        self.engine.with_session(&mut |session| {
            session.read_begin()?;
            session.scan()?;
            let (watch, mut rows) = (Stopwatch::start(), 0);
            while rows == 0 || watch.started.elapsed() < self.plan.time {
                let (found, _) = session.scan()?;
                if found != self.plan.rows {
                    return Err(format!("a scan found {found} rows").into());
                }
                rows += found;
            }
            measured = Some(watch.stop(rows));
            session.read_end()
        })?;
        measured.ok_or_else(|| "no scan ran".into())
    }

    /// Are the rows there, with the right values?
    fn verify(&self) -> Result<()> {
        let mut dice = Dice::new(99);
        self.engine.with_session(&mut |session| {
            session.read_begin()?;
            for _ in 0..1000 {
                let key = rows::key(dice.below(self.plan.rows));
                if session.get(key)? != Some(rows::digest_of(key, 0)) {
                    return Err(format!("the row of key {key} is wrong").into());
                }
            }
            if session.get(rows::key(self.plan.rows))?.is_some() {
                return Err("a row is there that nobody inserted".into());
            }
            session.read_end()
        })
    }

    /// All threads together, from the moment that every one has its session.
    fn run(&self, threads: u64, work: Work) -> Result<Measured> {
        let barrier = Barrier::new(threads as usize + 1);
        thread::scope(|scope| {
            let barrier = &barrier;
            let workers: Vec<_> = (0..threads)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut count = 0;
                        self.engine.with_session(&mut |session| {
                            barrier.wait();
                            count = self.work(session, work, thread)?;
                            Ok(())
                        })?;
                        Ok::<u64, Error>(count)
                    })
                })
                .collect();
            barrier.wait();
            let watch = Stopwatch::start();
            let mut count = 0;
            for worker in workers {
                count += worker.join().map_err(|_| "a thread panicked")??;
            }
            Ok(watch.stop(count))
        })
    }

    /// One thread's part: how many operations.
    fn work(&self, session: &mut dyn Session, work: Work, thread: u64) -> Result<u64> {
        let mut dice = Dice::new(thread);
        let rows = self.plan.rows;
        let gone = self.gone.load(Ordering::Relaxed);
        let look_at_clock = if matches!(work, Work::Get) { 64 } else { 4 };
        if matches!(work, Work::Get) {
            session.read_begin()?;
        }
        let (started, mut count) = (Instant::now(), 0);
        while count % look_at_clock != 0 || started.elapsed() < self.plan.time {
            let found = match work {
                Work::Get => session.get(rows::key(dice.below(rows)))?.is_some(),
                Work::GetAlone => session.get_alone(rows::key(dice.below(rows)))?.is_some(),
                Work::Update => {
                    let key = rows::key(gone + dice.below(rows - gone));
                    session.update(key, count + 1).map(|()| true)?
                }
                Work::Insert => {
                    let new = self.next.fetch_add(1, Ordering::Relaxed);
                    session.insert(rows::key(new)).map(|()| true)?
                }
                Work::Delete => {
                    let old = self.gone.fetch_add(1, Ordering::Relaxed);
                    if old >= rows / 2 {
                        break;
                    }
                    session.delete(rows::key(old)).map(|()| true)?
                }
            };
            if !found {
                return Err("a row is missing".into());
            }
            count += 1;
        }
        if matches!(work, Work::Get) {
            session.read_end()?;
        }
        Ok(count)
    }
}

/// Processor seconds that were not idle, of the whole machine since it started.
fn busy_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks: Vec<f64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    // user nice system (idle iowait) irq softirq steal
    let busy = [0, 1, 2, 5, 6, 7];
    busy.iter().filter_map(|&at| ticks.get(at)).sum::<f64>() / 100.0
}

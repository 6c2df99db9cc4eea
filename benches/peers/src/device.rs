//! How often the device syncs: fdatasync after overwriting 4 KiB of a file that has its blocks, with
//! one thread and with two, each on a file of its own. No commit can be quicker.

use crate::abi::system;
use crate::engine::Result;
use crate::options::Options;
use crate::store::Part;
use std::fs::{self, File};
use std::thread;
use std::time::{Duration, Instant};

const PAGES: u64 = 4096;

pub fn run(options: &Options, part: &mut Part) -> Result<()> {
    fs::create_dir_all(&options.work)?;
    for round in 1..=options.rounds {
        for threads in [1, 2] {
            let rate = syncs(options, threads)?;
            println!(
                "device    round {round}/{}  {threads} threads  {rate:.0} syncs/s",
                options.rounds
            );
            part.add("device", &format!("sync-{threads}"), rate);
        }
    }
    Ok(())
}

fn syncs(options: &Options, threads: u64) -> Result<f64> {
    let time = Duration::from_secs_f64(options.seconds.max(1.0));
    let counts: Vec<Result<u64>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || one_thread(options, thread, time)))
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Result<u64>>| {
            worker
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".into()))
        };
        workers.into_iter().map(join).collect()
    });
    let counts = counts.into_iter().collect::<Result<Vec<u64>>>()?;
    Ok(counts.iter().sum::<u64>() as f64 / time.as_secs_f64())
}

fn one_thread(options: &Options, thread: u64, time: Duration) -> Result<u64> {
    let path = options.work.join(format!("sync-{thread}"));
    fs::write(&path, vec![1; PAGES as usize * 4096])?;
    let file = File::options().write(true).open(&path)?;
    file.sync_all()?;
    let (started, mut count) = (Instant::now(), 0);
    while started.elapsed() < time {
        system::write_and_sync(&file, count % PAGES)?;
        count += 1;
    }
    fs::remove_file(path)?;
    Ok(count)
}

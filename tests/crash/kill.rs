//! Writers are killed, the directory is recovered, and a ledger outside the process says what must be there.
//!
//! Every start draws its settings anew: sizes of pool and log, when the log is flushed, doublewrite,
//! threads, pace. A generation is a fresh directory with a page size of its own.

use crate::support::cc;
use crate::support::run;
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::seed::Rng;
use crate::support::stock::{Stock, lay_definitions};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Rows of `counter`; at least half of the writers run.
const WRITERS: usize = 16;
/// Kills of one directory.
const GENERATION: u32 = 25;
/// What innodb_flush_log_at_trx_commit=0 may lose lies within so much of the kill: the second that it
/// says, and what a loaded machine adds.
const UNFLUSHED: Duration = Duration::from_secs(6);
const DEFINITIONS: &str = "\
CREATE TABLE counter (w INT NOT NULL, n INT NOT NULL, PRIMARY KEY (w)) ENGINE=InnoDB;
CREATE TABLE shared (w INT NOT NULL, n INT NOT NULL, PRIMARY KEY (w)) ENGINE=InnoDB;
CREATE TABLE log (w INT NOT NULL, n INT NOT NULL, part INT NOT NULL, tag INT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (w, n, part), KEY tag (tag, w), KEY body (body(30))) ENGINE=InnoDB;";

/// Settings of one start. Small ones, so that eviction, flushing and the log's wrap-around happen all
/// the time.
struct Settings {
    list: Vec<String>,
    log_mib: u64,
    /// Commits may be lost at a kill (innodb_flush_log_at_trx_commit=0).
    lossy: bool,
}

impl Settings {
    fn drawn(rng: &mut Rng, page_bytes: u64, may_tear: bool) -> Settings {
        let flush = *rng.pick(&[0, 1, 1, 1, 2, 2]);
        let log_mib = *rng.pick(&[4, 4, 4, 8]) << (page_bytes / 65536);
        // A page of a kill's last write is whole only if the device takes it at once.
        let doublewrite = may_tear || !rng.one_in(4);
        let pool_mib = (5 << (page_bytes / 32768)).max(rng.between(5, 24));
        let pairs = [
            ("page_size", page_bytes),
            ("buffer_pool_size", pool_mib << 20),
            ("log_file_size", log_mib << 20),
            // One structure change of the largest pages needs more than the least.
            (
                "log_buffer_size",
                rng.between(2, 4).max(page_bytes >> 13) << 20,
            ),
            ("flush_log_at_trx_commit", flush),
            ("doublewrite", u64::from(doublewrite)),
            ("read_io_threads", rng.between(1, 4)),
            ("write_io_threads", rng.between(2, 4)),
            ("purge_threads", rng.between(1, 4)),
            ("io_capacity", *rng.pick(&[100, 200, 1000, 5000])),
            ("adaptive_flushing", rng.below(2)),
            ("flush_neighbors", rng.below(3)),
            ("lru_scan_depth", *rng.pick(&[100, 1536])),
            ("max_dirty_pages_pct", *rng.pick(&[0, 10, 90])),
        ];
        let list = pairs.map(|(name, value)| format!("innodb_{name}={value}"));
        Settings {
            list: list.into(),
            log_mib,
            lossy: flush == 0,
        }
    }
}

struct Loop {
    program: PathBuf,
    scratch: Scratch,
    datadir: PathBuf,
    page_bytes: u64,
    /// True if writes of pages may be cut in two by a kill: the file system copies them.
    may_tear: bool,
    rng: Rng,
    /// The newest acknowledged transaction of each writer, and the newest that must be there.
    ledger: [u64; WRITERS],
    safe: [u64; WRITERS],
    acknowledged: u64,
    log_mib: u64,
}

impl Loop {
    fn new(rng: Rng, page_bytes: u64) -> Loop {
        let scratch = Scratch::new("killed");
        let datadir = scratch.dir("data");
        scratch.dir("data/k");
        Loop {
            program: cc::build("tests/crash/writers.c", scratch.path(), "-std=gnu11"),
            may_tear: !takes_direct(&scratch),
            scratch,
            datadir,
            page_bytes,
            rng,
            ledger: [0; WRITERS],
            safe: [0; WRITERS],
            acknowledged: 0,
            log_mib: 4,
        }
    }

    fn command(&self, what: &str, active: u64, settings: &Settings) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(cc::artifact("libxtradb.so"))
            .arg(&self.datadir)
            .arg(what)
            .arg(format!("{WRITERS}/{active}"))
            .args(&settings.list);
        command
    }

    fn settings(&mut self) -> Settings {
        let settings = Settings::drawn(&mut self.rng, self.page_bytes, self.may_tear);
        self.log_mib = settings.log_mib;
        settings
    }

    /// Lets the writers run for a while once they are ready, kills them, reads the pipe to its end.
    fn write_and_kill(&mut self, after: Duration) {
        let settings = self.settings();
        let active = self.rng.between(WRITERS as u64 / 2, WRITERS as u64);
        let mut child = self
            .command("write", active, &settings)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the writers can be started");
        let mut pipe = BufReader::new(child.stdout.take().expect("the output is piped"));
        let mut first = String::new();
        pipe.read_line(&mut first).expect("the pipe can be read");
        assert_eq!(first, "READY\n", "the writers did not come up");
        let reader = std::thread::spawn(move || {
            let lines = pipe.lines().map_while(Result::ok);
            lines.map(|line| (Instant::now(), line)).collect::<Vec<_>>()
        });
        std::thread::sleep(after);
        let early = child.try_wait().expect("the writers are our child");
        child.kill().expect("the writers can be killed");
        child.wait().expect("the writers are our child");
        let end = Instant::now();
        let lines = reader.join().expect("the reader does not panic");
        assert!(
            early.is_none(),
            "the writers ended by themselves: {early:?}, {:?}, {:?}",
            lines.last(),
            settings.list
        );
        for (when, line) in lines {
            let is_safe = !settings.lossy || end.duration_since(when) > UNFLUSHED;
            self.note(&line, is_safe);
        }
    }

    fn note(&mut self, line: &str, is_safe: bool) {
        let words: Vec<&str> = line.split(' ').collect();
        let ["A", w, n] = words[..] else {
            panic!("unexpected line from the writers: {line}");
        };
        let w: usize = w.parse().expect("a writer");
        let n: u64 = n.parse().expect("a number");
        let before = self.ledger[w];
        assert_eq!(n, before + 1, "writer {w} acknowledged {n} after {before}");
        self.ledger[w] = n;
        if is_safe {
            self.safe[w] = n;
        }
        self.acknowledged += 1;
    }

    /// Recovers, checks everything, and compares with the ledger.
    fn verify(&mut self) {
        let settings = self.settings();
        let output = run(&mut self.command("verify", WRITERS as u64, &settings));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "verify with {:?}: {}\n{text}{}",
            settings.list,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let counters = text.lines().filter_map(|line| line.strip_prefix("C "));
        let counters: Vec<u64> = counters
            .filter_map(|line| line.split(' ').nth(1))
            .map(|n| n.parse().expect("a number"))
            .collect();
        self.compare(&counters);
        self.ledger.copy_from_slice(&counters);
        self.safe.copy_from_slice(&counters);
    }

    fn compare(&self, counters: &[u64]) {
        assert_eq!(counters.len(), WRITERS);
        let known = self.safe.iter().zip(&self.ledger);
        for (w, (&found, (&safe, &acknowledged))) in counters.iter().zip(known).enumerate() {
            assert!(
                found >= safe,
                "writer {w}: {safe} was acknowledged, {found} is there"
            );
            // One transaction of each writer may have been committed without its line.
            assert!(
                found <= acknowledged + 1,
                "writer {w}: {found} is there, {acknowledged} was acknowledged"
            );
        }
    }

    /// A crash in the middle of recovery or of what follows.
    fn kill_recovery(&mut self) {
        let settings = self.settings();
        let mut child = self
            .command("verify", WRITERS as u64, &settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program can be started");
        std::thread::sleep(Duration::from_millis(self.rng.between(1, 200)));
        child.kill().expect("the program can be killed");
        child.wait().expect("the program is our child");
    }

    /// The stock server recovers a copy of what the kill left.
    fn verify_with_stock(&self) {
        let copy = self.scratch.path().join("stock");
        copy_dir(&self.datadir, &copy);
        lay_definitions("k", DEFINITIONS, &copy.join("k"));
        let options = [
            format!("--innodb-log-file-size={}M", self.log_mib),
            format!("--innodb-page-size={}", self.page_bytes),
            "--innodb-buffer-pool-size=24M".into(),
        ];
        let stock = Stock::start(&copy, &options.each_ref().map(String::as_str));
        let numbers = |sql: &str| -> Vec<u64> {
            stock
                .sql("k", sql)
                .lines()
                .skip(1)
                .map(|line| line.parse().expect("a number"))
                .collect()
        };
        let counters = numbers("SELECT n FROM counter ORDER BY w");
        self.compare(&counters);
        let wanted: u64 = counters.iter().map(|n| 3 * n.min(&50)).sum();
        for index in ["PRIMARY", "tag", "body"] {
            assert_eq!(
                numbers(&format!("SELECT COUNT(*) FROM log FORCE INDEX ({index})")),
                [wanted],
                "index {index}"
            );
        }
        assert_eq!(
            numbers("SELECT SUM(n) FROM shared"),
            [counters.iter().sum::<u64>()]
        );
        assert_eq!(stock.check_tables("k"), 3);
        stock.shutdown(false);
        std::fs::remove_dir_all(&copy).expect("the copy can be removed");
    }

    /// One kill with all that follows; `longest` in milliseconds.
    fn cycle(&mut self, number: u32, longest: u64) {
        let after = self.rng.between(50, longest);
        self.write_and_kill(Duration::from_millis(after));
        if number % 10 == 9 {
            self.verify_with_stock();
        }
        if self.rng.one_in(3) {
            self.kill_recovery();
        }
        self.verify();
    }
}

/// True if files of the scratch directory can be written past the system's cache.
fn takes_direct(scratch: &Scratch) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let path = scratch.path().join("direct");
    let opened = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path);
    let is_memory = Command::new("stat")
        .args(["-f", "-c", "%T"])
        .arg(scratch.path())
        .output();
    let is_memory = is_memory.is_ok_and(|o| o.stdout.starts_with(b"tmpfs"));
    let _ = std::fs::remove_file(path);
    opened.is_ok() && !is_memory
}

/// One directory, killed `GENERATION` times; yields the acknowledged commits.
fn generation(seed: u64, page_bytes: u64, longest: u64) -> u64 {
    let mut killed = Loop::new(Rng::new(seed), page_bytes);
    for number in 0..GENERATION {
        killed.cycle(number, longest);
    }
    println!(
        "{GENERATION} kills with pages of {page_bytes}, {} acknowledged commits",
        killed.acknowledged
    );
    killed.acknowledged
}

const PAGE_BYTES: [u64; 5] = [16384, 4096, 8192, 32768, 65536];

#[test]
fn nothing_acknowledged_is_lost_when_writers_are_killed() {
    let mut rng = Rng::announced("kill loop");
    let acknowledged = generation(rng.next(), 16384, 1000)
        + generation(rng.next(), *rng.clone().pick(&PAGE_BYTES), 1000);
    assert!(
        acknowledged > u64::from(2 * GENERATION),
        "the writers hardly wrote"
    );
}

/// Generations until so many cycles are done, over several runs if need be: seed and progress are kept
/// in a file.
#[test]
#[ignore = "takes an hour: make soak-kill"]
fn soak() {
    let wanted: u64 = match std::env::var("XTRADB_KILL_CYCLES") {
        Ok(text) => text.parse().expect("XTRADB_KILL_CYCLES is a number"),
        Err(_) => 1000,
    };
    let file = std::env::var("XTRADB_SOAK_FILE").expect("XTRADB_SOAK_FILE names a file");
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let numbers: Vec<u64> = kept
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let (seed, mut cycles, mut acknowledged) = match numbers[..] {
        [seed, cycles, acknowledged] => (seed, cycles, acknowledged),
        _ => (Rng::announced("soak-kill").next(), 0, 0),
    };
    println!("soak-kill: seed {seed}, {cycles} of {wanted} cycles done ({file})");
    let (since, before) = (Instant::now(), cycles);
    while cycles < wanted {
        let at = (cycles / u64::from(GENERATION)) as usize;
        // Every fifth lasts long enough for what innodb_flush_log_at_trx_commit=0 must keep.
        let longest = if at % 5 == 4 { 10_000 } else { 2500 };
        let page_bytes = PAGE_BYTES[at % PAGE_BYTES.len()];
        acknowledged += generation(seed.wrapping_add(cycles), page_bytes, longest);
        cycles += u64::from(GENERATION);
        std::fs::write(&file, format!("{seed} {cycles} {acknowledged}")).expect("it is written");
        let pace = since.elapsed().as_secs_f64() / (cycles - before) as f64;
        println!(
            "soak-kill: {cycles} of {wanted} cycles, {acknowledged} commits, {:.0} minutes left",
            wanted.saturating_sub(cycles) as f64 * pace / 60.0
        );
    }
    println!("soak-kill: {cycles} cycles, {acknowledged} commits, none lost, seed {seed}");
}

//! A planted panic in each critical section: the call gets an error, the host lives, the engine is stopped
//! or goes on, the host ends in order, and the next start has everything that was acknowledged.

use super::host::{crash, start, start_with};
use crate::support::host::Host;
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::seed::Rng;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use xtradb::os::crash_point::POINTS;

/// With a pool that the data does not fit in.
const OPTIONS: [&str; 3] = [
    "--force",
    "--innodb-buffer-pool-size=2M",
    "--innodb-log-file-size=4M",
];

const DEFINITIONS: &str = "CREATE DATABASE d; USE d;
CREATE TABLE ledger (id INT PRIMARY KEY, pad VARCHAR(50)) ENGINE=InnoDB;
CREATE TABLE tall (id INT PRIMARY KEY, pad CHAR(200) CHARACTER SET latin1, v INT, KEY pad (pad), KEY v (v)) ENGINE=InnoDB;
CREATE TABLE blobs (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB;
CREATE TABLE wide (id INT PRIMARY KEY, t VARCHAR(3000) CHARACTER SET latin1) ENGINE=InnoDB;
";

/// What is done besides the ledger: every point lies on its way.
fn statements() -> Vec<String> {
    let rows = |from: u32, count: u32, row: &dyn Fn(u32) -> String| {
        (from..from + count).map(row).collect::<Vec<_>>().join(",")
    };
    let mut all = Vec::new();
    for part in 0..3 {
        let values = rows(part * 150, 150, &|n| {
            format!("({n}, 'p{}', {})", n * 7919 % 1000, n % 10)
        });
        all.push(format!("INSERT INTO tall VALUES {values}"));
    }
    // Descending: pages split to the left.
    let falling = rows(0, 200, &|n| format!("({}, 'f', 0)", 5000 - n));
    all.push(format!("INSERT INTO tall VALUES {falling}"));
    for id in 0..30 {
        all.push(format!(
            "INSERT INTO blobs VALUES ({id}, REPEAT('b', 60000))"
        ));
    }
    all.push(format!(
        "INSERT INTO wide VALUES {}",
        rows(0, 40, &|n| format!("({n}, REPEAT('w', 50))"))
    ));
    all.push("UPDATE wide SET t = REPEAT('x', 700)".into());
    all.push("UPDATE wide SET t = REPEAT('y', 20) WHERE id < 30".into());
    all.push("UPDATE wide SET t = REPEAT('z', 900) WHERE id < 20".into());
    all.push("UPDATE blobs SET b = REPEAT('c', 40000) WHERE id < 4".into());
    all.push("DELETE FROM blobs WHERE id > 5".into());
    all.push("BEGIN; UPDATE tall SET v = v + 1, pad = 'gone'; DELETE FROM wide; ROLLBACK".into());
    all.push("CREATE TABLE made (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE=InnoDB".into());
    all.push("INSERT INTO made VALUES (1, 1), (2, 2)".into());
    all.push("RENAME TABLE made TO renamed".into());
    all.push("TRUNCATE TABLE renamed".into());
    all.push("INSERT INTO renamed VALUES (3, 3)".into());
    all.push("DROP TABLE renamed".into());
    let loaded = rows(0, 300, &|n| format!("({n}, 'p', {})", n % 7));
    all.push("SET foreign_key_checks = 0; SET unique_checks = 0".into());
    all.push("CREATE TABLE loaded (id INT PRIMARY KEY, pad CHAR(200) CHARACTER SET latin1, v INT) ENGINE=InnoDB".into());
    all.push(format!(
        "BEGIN; INSERT INTO loaded VALUES {loaded}; ROLLBACK"
    ));
    all.push(format!("INSERT INTO loaded VALUES {loaded}"));
    all.push("CREATE INDEX v ON loaded (v)".into());
    all.push("DROP INDEX v ON loaded".into());
    all.push("DELETE FROM tall WHERE id > 20".into());
    all.push("DELETE FROM wide WHERE id > 3".into());
    all.push("SET GLOBAL innodb_log_checkpoint_now = ON".into());
    all
}

/// Passes before the panic: the start reads pages, too.
fn first(name: &str) -> u64 {
    match name {
        "pool.load" => 220,
        "pool.evict" => 120,
        _ => 0,
    }
}

/// One run with one point armed; what is wrong with it.
struct Run {
    name: &'static str,
    wrong: Vec<String>,
    /// Ledger rows whose insert was acknowledged.
    acknowledged: Vec<u32>,
}

impl Run {
    fn note(&mut self, text: impl Into<String>) {
        self.wrong.push(format!("{}: {}", self.name, text.into()));
    }

    /// Runs a statement; true if it succeeded. `None`: the host is gone.
    fn run(&mut self, host: &mut Host, statement: &str) -> Option<bool> {
        let before = host.errors().len();
        match host.try_run(format!("{statement};").as_bytes()) {
            Ok(_) => Some(!host.errors()[before..].contains("ERROR")),
            Err(status) => {
                let how = crash(status).unwrap_or_else(|| format!("the host ended: {status}"));
                self.note(format!("{statement:.100}: {how}\n{}", host.errors()));
                None
            }
        }
    }

    /// The work, with a row of the ledger after each statement.
    fn work(&mut self, host: &mut Host) -> Option<()> {
        self.run(host, "USE d")?;
        for (number, statement) in (0..).zip(statements()) {
            self.run(host, &statement)?;
            let insert = format!("INSERT INTO ledger VALUES ({number}, 'step {number}')");
            if self.run(host, &insert)? {
                self.acknowledged.push(number);
            }
        }
        // Purge has its time.
        for number in 1000..1010 {
            if host.errors().contains("planted panic") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            if self.run(
                host,
                &format!("INSERT INTO ledger VALUES ({number}, 'late')"),
            )? {
                self.acknowledged.push(number);
            }
        }
        self.run(host, "SELECT 1")?;
        Some(())
    }

    /// The next start: everything acknowledged is there, every table is sound and can be changed.
    fn recover(&mut self, datadir: &Path) {
        let mut host = start(datadir, &OPTIONS);
        let ask = "USE d; SELECT id FROM ledger ORDER BY id";
        let Ok(printed) = host.try_run(format!("{ask};").as_bytes()) else {
            return self.note(format!("the next start failed\n{}", host.errors()));
        };
        let text = String::from_utf8_lossy(&printed).into_owned();
        let found: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let lost: Vec<&u32> = self
            .acknowledged
            .iter()
            .filter(|id| !found.contains(id))
            .collect();
        if !lost.is_empty() {
            self.note(format!("acknowledged rows {lost:?} are lost"));
        }
        let check = "CHECK TABLE ledger, tall, blobs, wide EXTENDED; SELECT COUNT(*) FROM tall; SELECT SUM(LENGTH(b)) FROM blobs;
            INSERT INTO tall VALUES (100000, 'after', 1); DELETE FROM tall; DELETE FROM wide; DELETE FROM blobs;
            DROP TABLE IF EXISTS made; DROP TABLE IF EXISTS renamed; CREATE TABLE made (id INT PRIMARY KEY); DROP TABLE made";
        match host.try_run(format!("{check};").as_bytes()) {
            Ok(printed) => {
                let printed = String::from_utf8_lossy(&printed).into_owned();
                if printed.matches("\tOK").count() != 4 {
                    self.note(format!("CHECK TABLE says {printed}"));
                }
            }
            Err(status) => self.note(format!("after recovery the host ended: {status}")),
        }
        let (status, errors) = host.end();
        if !status.success() || errors.contains("ERROR ") {
            self.note(format!("after recovery: {status}\n{errors:.3000}"));
        }
    }
}

fn play(name: &'static str, passes: u64, clean: &Path, scratch: &Scratch) -> Run {
    let mut run = Run {
        name,
        wrong: Vec::new(),
        acknowledged: Vec::new(),
    };
    let datadir = scratch.path().join(name);
    copy_dir(clean, &datadir);
    let armed = format!("{name}:panic:{passes}");
    let mut host = start_with(&datadir, &OPTIONS, &[("XTRADB_CRASH_POINTS", &armed)]);
    if run.work(&mut host).is_some() {
        let (status, errors) = host.end();
        if let Some(how) = crash(status) {
            run.note(format!("at shutdown {how}\n{errors:.3000}"));
        }
        if !errors.contains(&format!("planted panic at {name}")) {
            run.note(format!(
                "the point was not reached ({passes} passes before)\n{errors:.2000}"
            ));
        }
    }
    run.recover(&datadir);
    run
}

#[test]
fn a_panic_planted_in_any_critical_section_stops_the_engine_alone() {
    let mut rng = Rng::announced("planted panics");
    let scratch = Scratch::new("panics");
    let clean = scratch.dir("clean");
    crate::support::host::script_ok(&clean, &OPTIONS[1..], DEFINITIONS.as_bytes());
    // Each at its first pass, and most once more somewhat later.
    let often = [
        "mtr.changed",
        "mtr.appended",
        "mtr.committed",
        "undo.append",
        "redo.before_write",
        "trx.before_publish",
    ];
    let only = std::env::var("XTRADB_POINT").ok();
    let mut plays: Vec<(&'static str, u64)> =
        POINTS.iter().map(|&name| (name, first(name))).collect();
    plays.extend(often.iter().map(|&name| (name, rng.between(5, 60))));
    plays.retain(|(name, _)| only.as_deref().is_none_or(|only| only == *name));
    let next = AtomicUsize::new(0);
    let wrong: Mutex<Vec<String>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(&(name, passes)) = plays.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = play(name, passes, &clean, &scratch);
                    for text in &run.wrong {
                        println!("{text}\n");
                    }
                    wrong.lock().expect("nobody panics").extend(run.wrong);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics");
    assert!(
        wrong.is_empty(),
        "{} failures, the first: {}",
        wrong.len(),
        wrong[0]
    );
}

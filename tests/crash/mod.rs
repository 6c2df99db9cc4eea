//! Writers are killed, the directory is recovered, and a ledger outside the process says what must be there.

use crate::support::cc;
use crate::support::host::Host;
use crate::support::run;
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::seed::Rng;
use crate::support::stock::{Stock, lay_definitions};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const WRITERS: usize = 4;
const CYCLES: u32 = 30;
/// Small, so that eviction, flushing and the log's wrap-around happen all the time.
const SETTINGS: [&str; 2] = ["innodb_buffer_pool_size=8M", "innodb_log_file_size=4M"];
const DEFINITIONS: &str = "\
CREATE TABLE counter (w INT NOT NULL, n INT NOT NULL, PRIMARY KEY (w)) ENGINE=InnoDB;
CREATE TABLE shared (w INT NOT NULL, n INT NOT NULL, PRIMARY KEY (w)) ENGINE=InnoDB;
CREATE TABLE log (w INT NOT NULL, n INT NOT NULL, part INT NOT NULL, tag INT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (w, n, part), KEY tag (tag, w), KEY body (body(30))) ENGINE=InnoDB;";

struct Loop {
    program: PathBuf,
    datadir: PathBuf,
    /// The newest acknowledged transaction of each writer.
    ledger: [u64; WRITERS],
    acknowledged: u64,
}

impl Loop {
    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg(cc::artifact("libxtradb.so"))
            .arg(&self.datadir)
            .arg(what)
            .arg(WRITERS.to_string())
            .args(SETTINGS);
        command
    }

    /// Lets the writers run for a while once they are ready, kills them, reads the pipe to its end.
    fn write_and_kill(&mut self, after: Duration) {
        let mut child = self
            .command("write")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the writers can be started");
        let mut pipe = BufReader::new(child.stdout.take().expect("the output is piped"));
        let mut first = String::new();
        pipe.read_line(&mut first).expect("the pipe can be read");
        assert_eq!(first, "READY\n", "the writers did not come up");
        let reader =
            std::thread::spawn(move || pipe.lines().map_while(Result::ok).collect::<Vec<_>>());
        std::thread::sleep(after);
        let early = child.try_wait().expect("the writers are our child");
        child.kill().expect("the writers can be killed");
        child.wait().expect("the writers are our child");
        let lines = reader.join().expect("the reader does not panic");
        assert!(
            early.is_none(),
            "the writers ended by themselves: {early:?}, {:?}",
            lines.last()
        );
        for line in lines {
            self.note(&line);
        }
    }

    fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["A", w, n] => {
                let (w, n): (usize, u64) =
                    (w.parse().expect("a writer"), n.parse().expect("a number"));
                // The transaction that was under way at the last kill may have come through.
                let expected = self.ledger[w] + 1;
                assert_eq!(
                    n, expected,
                    "writer {w} acknowledged {n} after {}",
                    self.ledger[w]
                );
                self.ledger[w] = n;
                self.acknowledged += 1;
            }
            _ => panic!("unexpected line from the writers: {line}"),
        }
    }

    /// Recovers, checks everything, and compares with the ledger.
    fn verify(&mut self) {
        let output = run(&mut self.command("verify"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "verify: {}\n{text}{}",
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
    }

    fn compare(&self, counters: &[u64]) {
        assert_eq!(counters.len(), WRITERS);
        for (w, (&found, &acknowledged)) in counters.iter().zip(&self.ledger).enumerate() {
            assert!(
                found >= acknowledged,
                "writer {w}: {acknowledged} was acknowledged, {found} is there"
            );
            // One transaction of each writer may have been committed without its line.
            assert!(
                found <= acknowledged + 1,
                "writer {w}: {found} is there, {acknowledged} was acknowledged"
            );
        }
    }

    /// The stock server recovers a copy of what the kill left.
    fn verify_with_stock(&self, scratch: &Scratch, cycle: u32) {
        let copy = scratch.path().join(format!("stock{cycle}"));
        copy_dir(&self.datadir, &copy);
        lay_definitions("k", DEFINITIONS, &copy.join("k"));
        let stock = Stock::start(&copy, &["--innodb-log-file-size=4M"]);
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
}

#[test]
fn nothing_acknowledged_is_lost_when_writers_are_killed() {
    let mut rng = Rng::announced("kill loop");
    let scratch = Scratch::new("killed");
    let program = cc::build("tests/crash/writers.c", scratch.path(), "-std=gnu11");
    let datadir = scratch.dir("data");
    scratch.dir("data/k");
    let mut killed = Loop {
        program,
        datadir,
        ledger: [0; WRITERS],
        acknowledged: 0,
    };
    for cycle in 1..=CYCLES {
        killed.write_and_kill(Duration::from_millis(rng.between(300, 2500)));
        if cycle % 10 == 0 {
            killed.verify_with_stock(&scratch, cycle);
        }
        if cycle % 3 == 0 {
            // A second crash, in the middle of recovery or of what follows.
            let mut child = killed
                .command("verify")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .expect("the program can be started");
            std::thread::sleep(Duration::from_millis(rng.between(1, 200)));
            child.kill().expect("the program can be killed");
            child.wait().expect("the program is our child");
        }
        killed.verify();
    }
    println!(
        "{CYCLES} kills, {} acknowledged commits, ledger {:?}",
        killed.acknowledged, killed.ledger
    );
    assert!(
        killed.acknowledged > u64::from(CYCLES),
        "the writers hardly wrote"
    );
}

#[test]
fn statements_on_a_table_wait_for_the_rollback_of_what_a_kill_left() {
    let scratch = Scratch::new("rollback-ddl");
    let datadir = scratch.dir("data");
    for (n, statement) in ["DROP TABLE t", "TRUNCATE TABLE t", "RENAME TABLE t TO u"]
        .iter()
        .enumerate()
    {
        let mut host = Host::start(&datadir, &[]);
        host.run(
            b"CREATE DATABASE IF NOT EXISTS d; USE d; DROP TABLE IF EXISTS t;
            CREATE TABLE t (id INT PRIMARY KEY, k INT, s VARCHAR(100), KEY (k), KEY (s)) ENGINE=InnoDB;
            BEGIN; INSERT INTO t SELECT seq, seq * 7919 % 10007, REPEAT('s', seq % 90) FROM seq_1_to_8000;
            SET GLOBAL innodb_log_checkpoint_now = ON;",
        );
        host.kill();
        let mut host = Host::start(&datadir, &[]);
        let found = host.run(format!("USE d; {statement}; SHOW TABLES;").as_bytes());
        let found = String::from_utf8_lossy(&found).into_owned();
        assert_eq!(
            found,
            ["", "Tables_in_d\nt\n", "Tables_in_d\nu\n"][n],
            "{statement}: {}",
            host.errors()
        );
        host.quit();
    }
}

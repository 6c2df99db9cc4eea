//! The directories that are damaged, what is asked afterwards, and what must be answered.

use super::damage::{Damage, Place};
use super::host::{OPTIONS, crash, start};
use crate::support::host::{self, Host};
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::seed::Rng;
use crate::support::workload;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Mutex;

/// What is asked after each damage: database, table, query.
const QUERIES: [(&str, &str, &str); 19] = [
    ("grown", "big", "SELECT * FROM big ORDER BY id"),
    (
        "grown",
        "big",
        "SELECT k, id FROM big WHERE k BETWEEN 100 AND 400 ORDER BY k, id",
    ),
    ("grown", "big", "SELECT id FROM big WHERE c = 'c00015838'"),
    (
        "grown",
        "scattered",
        "SELECT * FROM scattered ORDER BY a, b",
    ),
    (
        "grown",
        "scattered",
        "SELECT v FROM scattered ORDER BY v DESC",
    ),
    ("grown", "hidden", "SELECT * FROM hidden"),
    ("grown", "hidden", "SELECT w FROM hidden WHERE n = 7"),
    ("grown", "blobs", "SELECT * FROM blobs ORDER BY id"),
    ("grown", "blobs", "SELECT id FROM blobs WHERE t LIKE 'a%'"),
    ("grown", "old_blobs", "SELECT * FROM old_blobs ORDER BY id"),
    ("little", "types", "SELECT * FROM types ORDER BY id"),
    ("little", "alone", "SELECT * FROM alone ORDER BY id"),
    ("little", "few", "SELECT * FROM few ORDER BY id"),
    (
        "little",
        "few",
        "SELECT name FROM few WHERE name > 'f3' ORDER BY name",
    ),
    ("little", "empty", "SELECT * FROM empty"),
    ("little", "pairs", "SELECT * FROM pairs ORDER BY a, b"),
    ("little", "texts-2", "SELECT * FROM `texts-2` ORDER BY id"),
    ("little", "ledger", "SELECT * FROM ledger ORDER BY id"),
    ("little", "counted", "SELECT * FROM counted ORDER BY id"),
];

const LITTLE: &str = "
CREATE DATABASE little CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE little;
CREATE TABLE types (id INT PRIMARY KEY, d DECIMAL(20,5), f DOUBLE, dt DATETIME(6), t TIME, y YEAR, e ENUM('a','b'), b BIT(9),
  v VARBINARY(300), u VARCHAR(90) CHARACTER SET utf8mb4, c CHAR(10), KEY (d), KEY (dt, e), KEY (u)) ENGINE=InnoDB;
CREATE TABLE alone (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=InnoDB;
CREATE TABLE few (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(40), UNIQUE KEY name (name)) ENGINE=InnoDB ROW_FORMAT=COMPACT;
CREATE TABLE empty (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE=InnoDB;
CREATE TABLE pairs (a INT, b INT, v INT, PRIMARY KEY (a, b), KEY (b, a), KEY (v)) ENGINE=InnoDB ROW_FORMAT=REDUNDANT;
CREATE TABLE `texts-2` (id INT PRIMARY KEY, t TEXT, m MEDIUMTEXT) ENGINE=InnoDB;
CREATE TABLE ledger (id INT PRIMARY KEY, step INT, pad CHAR(100)) ENGINE=InnoDB;
CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB;
";

fn little() -> String {
    let mut script = LITTLE.to_string();
    let mut rows = |table: &str, count: u32, row: &dyn Fn(u32) -> String| {
        let rows: Vec<String> = (1..=count).map(row).collect();
        let _ = writeln!(script, "INSERT INTO {table} VALUES {};", rows.join(","));
    };
    rows("types", 150, &|n| {
        format!(
            "({n}, {n}.{n}, {n}e-3, '2024-01-01 10:00:00.{n:06}', '{}:10:20', 2001, 'b', {n}, x'{n:08X}', 'ü{n}', 'c{n}')",
            n % 24
        )
    });
    rows("alone", 400, &|n| {
        format!("({n}, '{}')", "alone ".repeat(n as usize % 30))
    });
    rows("few", 60, &|n| format!("({n}, 'f{n}')"));
    rows("pairs", 900, &|n| {
        format!("({}, {n}, {})", n % 30, n * 7 % 100)
    });
    rows("`texts-2`", 30, &|n| {
        format!(
            "({n}, '{}', '{}')",
            "t".repeat(n as usize * 300),
            format!("{n} ").repeat(n as usize * 500)
        )
    });
    rows("counted", 300, &|n| format!("({n}, {})", n % 7));
    script
}

/// The steps of the session that `kill -9` ends: each commits once, and changes most tables.
const STEPS: i32 = 5;

fn step(n: i32) -> String {
    let mut text = format!(
        "BEGIN; USE grown; UPDATE big SET pad = 'step {n}' WHERE id BETWEEN {0} AND {0} + 60;
         UPDATE big SET k = k + 1 WHERE id BETWEEN 200 AND 240;
         UPDATE scattered SET t = 'step {n}' WHERE a < {n} * 50; UPDATE hidden SET w = 'step {n}' WHERE n = {n};
         UPDATE blobs SET b = REPEAT('{n}', 40000) WHERE id = {n}; UPDATE old_blobs SET b = REPEAT('{n}', 30000) WHERE id = {n};
         USE little; UPDATE types SET f = {n}, u = 'step {n}' WHERE id < 20; UPDATE alone SET v = 'step {n}' WHERE id < {n} * 40;
         DELETE FROM few WHERE id = {n}; INSERT INTO few VALUES ({n} + 1000, 'step {n}'); INSERT INTO empty VALUES ({n}, {n});
         UPDATE pairs SET v = {n} WHERE a = {n}; UPDATE `texts-2` SET m = REPEAT('s{n}', 9000) WHERE id = {n};
         INSERT INTO counted (v) VALUES ({n});",
        n * 100
    );
    for id in 0..40 {
        let _ = write!(
            text,
            "INSERT INTO ledger VALUES ({n} * 100 + {id}, {n}, 'pad');"
        );
    }
    text + "COMMIT;"
}

/// What an unfinished transaction does before the kill.
const UNFINISHED: &str = "BEGIN; USE grown; UPDATE big SET k = 0, pad = 'unfinished' WHERE id < 300;
    DELETE FROM scattered WHERE a < 500; UPDATE blobs SET b = REPEAT('u', 50000); DELETE FROM old_blobs WHERE id < 4;
    INSERT INTO hidden VALUES (1, 'unfinished'); USE little; DELETE FROM few; UPDATE pairs SET v = 5;
    UPDATE types SET d = 1; INSERT INTO ledger VALUES (1, 1, 'unfinished'); DELETE FROM alone WHERE id > 100;";

type Answers = Vec<Vec<u8>>;

/// The directories before the damage, and what they answer.
pub struct Stage {
    clean: PathBuf,
    crashed: PathBuf,
    clean_answers: Answers,
    /// After each step, the last one at the end.
    step_answers: Vec<Answers>,
}

fn answers(host: &mut Host) -> Answers {
    let ask = |(database, _, query): &(&str, &str, &str)| {
        host.run(format!("USE {database}; {query};").as_bytes())
    };
    QUERIES.iter().map(ask).collect()
}

impl Stage {
    pub fn new(scratch: &Scratch) -> Stage {
        let clean = scratch.dir("clean");
        let script = workload::grown(800, 3).script() + &little();
        host::script_ok(&clean, &OPTIONS[1..], script.as_bytes());
        let mut host = Host::start(&clean, &OPTIONS);
        let clean_answers = answers(&mut host);
        host.quit();
        let (crashed, played) = (
            scratch.path().join("crashed"),
            scratch.path().join("played"),
        );
        copy_dir(&clean, &crashed);
        copy_dir(&clean, &played);
        // Asked in one directory, killed in the other: questions give the cleaner time.
        let mut host = Host::start(&played, &OPTIONS);
        let step_answers = (0..=STEPS)
            .map(|n| {
                if n > 0 {
                    host.run(step(n).as_bytes());
                }
                answers(&mut host)
            })
            .collect();
        host.quit();
        let mut host = Host::start(&crashed, &OPTIONS);
        let steps: String = (1..=STEPS).map(step).collect();
        host.run((steps + UNFINISHED).as_bytes());
        let errors = host.errors();
        host.kill();
        assert!(!errors.contains("ERROR"), "{errors}");
        Stage {
            clean,
            crashed,
            clean_answers,
            step_answers,
        }
    }

    pub fn datadir(&self, place: Place) -> &Path {
        if place.is_of_a_crash() {
            &self.crashed
        } else {
            &self.clean
        }
    }

    fn expected(&self, place: Place) -> &Answers {
        match place.is_of_a_crash() {
            true => self.step_answers.last().expect("there are steps"),
            false => &self.clean_answers,
        }
    }

    /// Asks all there is to ask of a damaged directory. What is wrong.
    pub fn ask(
        &self,
        datadir: &Path,
        place: Place,
        damages: &[Damage],
        rng: &mut Rng,
        tally: &Mutex<Tally>,
    ) -> Vec<String> {
        let mut asking = Asking {
            place,
            damages,
            forged: damages
                .iter()
                .any(|d| d.kind == super::damage::Kind::Forged),
            expected: self.expected(place),
            wrong: Vec::new(),
            tally: Tally {
                damages: damages.len(),
                ..Tally::default()
            },
            steps: (0..self.step_answers.len()).collect(),
        };
        let mut host = start(datadir, &OPTIONS);
        let alive = asking.all(&mut host, &self.step_answers)
            && (!place.is_of_tables() || asking.change(&mut host, rng));
        asking.end(host, alive);
        if alive && place.is_of_tables() && rng.one_in(4) {
            let mut host = start(datadir, &OPTIONS);
            let alive = asking.others(&mut host);
            asking.end(host, alive);
        }
        tally.lock().expect("nobody panics").add(&asking.tally);
        asking.wrong
    }
}

/// How the damaged directories fared.
#[derive(Default)]
pub struct Tally {
    pub damages: usize,
    pub same: usize,
    pub errors: usize,
    pub refused: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.damages += other.damages;
        self.same += other.same;
        self.errors += other.errors;
        self.refused += other.refused;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            damages,
            same,
            errors,
            refused,
        } = self;
        write!(
            f,
            "{damages} damages: {same} answers the same, {errors} errors, {refused} starts refused"
        )
    }
}

struct Asking<'a> {
    place: Place,
    damages: &'a [Damage],
    /// No checksum shows the damage: other rows are no failure of the engine.
    forged: bool,
    expected: &'a Answers,
    wrong: Vec<String>,
    tally: Tally,
    /// After which steps the answers so far were given, for a damaged log.
    steps: Vec<usize>,
}

/// Words that only a bug writes, or an engine that has stopped for good.
const NEVER: [&str; 4] = [
    "internal error",
    "panicked",
    "engine is stopped",
    "Assertion",
];

impl Asking<'_> {
    fn is_damaged(&self, database: &str, table: &str) -> bool {
        let name = format!("{database}/{table}");
        !self.place.is_of_tables()
            || self
                .damages
                .iter()
                .any(|damage| damage.table().as_deref() == Some(&name))
    }

    /// The first few of a round tell it all.
    fn note(&mut self, text: impl Into<String>) {
        if self.wrong.len() < 3 {
            self.wrong.push(text.into());
        }
    }

    /// Runs statements; `None` if the host is gone, which is noted if it may not be.
    fn run(&mut self, host: &mut Host, statements: &str) -> Option<(Vec<u8>, String)> {
        let before = host.errors().len();
        let rows = match host.try_run(statements.as_bytes()) {
            Ok(rows) => rows,
            Err(status) => {
                self.ended(status, &host.errors());
                return None;
            }
        };
        let errors = host.errors()[before..].to_string();
        self.check_words(statements, &errors);
        Some((rows, errors))
    }

    fn check_words(&mut self, statements: &str, errors: &str) {
        let never = NEVER.iter().filter(|word| {
            errors.contains(*word) && (self.place.is_of_tables() || **word != NEVER[2])
        });
        for word in never.collect::<Vec<_>>() {
            self.note(format!("{statements:.200}: \"{word}\":\n{errors:.3000}"));
        }
    }

    /// The host ended before it was told to.
    fn ended(&mut self, status: ExitStatus, errors: &str) {
        self.check_words("at the end", errors);
        if let Some(how) = crash(status) {
            self.note(format!("{how}\n{errors:.3000}"));
        } else if self.place.is_of_tables() {
            self.note(format!(
                "a table's file ended the host: {status}\n{errors:.3000}"
            ));
        } else {
            let named = ["ibdata1", "ib_logfile0", "page ", "redo log", "table "];
            if !named.iter().any(|name| errors.contains(name)) {
                self.note(format!(
                    "the host did not start and does not say why: {errors:.3000}"
                ));
            }
            self.tally.refused += 1;
        }
    }

    fn all(&mut self, host: &mut Host, step_answers: &[Answers]) -> bool {
        for (number, &(database, table, query)) in QUERIES.iter().enumerate() {
            let Some((rows, errors)) = self.run(host, &format!("USE {database}; {query};")) else {
                return false;
            };
            if self.place == Place::Log && !errors.contains("ERROR") {
                self.one_of_the_steps(number, &rows, step_answers);
            } else {
                self.judge(number, table, &rows, &errors);
            }
        }
        true
    }

    /// A damaged log may end early: then the rows are those of an earlier commit, the same for all tables.
    fn one_of_the_steps(&mut self, number: usize, rows: &[u8], step_answers: &[Answers]) {
        let query = QUERIES[number].2;
        let before = self.steps.clone();
        self.steps
            .retain(|&step| step_answers[step][number] == rows);
        if self.steps.is_empty() {
            let alone: Vec<usize> = (0..step_answers.len())
                .filter(|&step| step_answers[step][number] == rows)
                .collect();
            self.note(format!(
                "{query}: rows as after steps {alone:?}, others as after {before:?}"
            ));
            self.steps = before;
        }
        self.tally.same += 1;
    }

    fn judge(&mut self, number: usize, table: &str, rows: &[u8], errors: &str) {
        let (database, _, query) = QUERIES[number];
        let expected = &self.expected[number];
        if rows == *expected {
            self.tally.same += 1;
            return;
        }
        if !self.is_damaged(database, table) {
            return self.note(format!(
                "{database}.{table} suffers from another table's damage\n{errors:.2000}"
            ));
        }
        if !errors.contains("ERROR") {
            if !self.forged {
                self.note(format!(
                    "{query} gave other rows and no error\n{errors:.2000}"
                ));
            }
            return;
        }
        self.tally.errors += 1;
        let is_beginning = expected.starts_with(rows) && (rows.is_empty() || rows.ends_with(b"\n"));
        if !is_beginning && !self.forged && self.place != Place::Log {
            self.note(format!(
                "{query} gave wrong rows before its error\n{errors:.2000}"
            ));
        }
        let names = [table.to_string(), table.replace('-', "@002d")];
        let system = ["ibdata1", "ib_logfile0", "page "];
        let named = names.iter().any(|name| errors.contains(name.as_str()))
            || (!self.place.is_of_tables() && system.iter().any(|name| errors.contains(name)));
        if !named {
            self.note(format!(
                "the error of {query} names no object\n{errors:.2000}"
            ));
        }
    }

    /// Writes to the damaged tables, checks and perhaps drops them; then the others once more.
    fn change(&mut self, host: &mut Host, rng: &mut Rng) -> bool {
        for damage in self.damages {
            let name = damage.table().expect("tables were damaged");
            let (database, table) = name.split_once('/').expect("database/table");
            let column = match table {
                "scattered" | "pairs" => "v = v + 1",
                "hidden" => "w = 'other'",
                "types" => "u = REPEAT('x', 80)",
                "few" => "name = REPEAT('x', 30)",
                "ledger" => "pad = 'x'",
                "big" => "k = 5, pad = REPEAT('y', 110)",
                "blobs" | "old_blobs" => "b = REPEAT('b', 30000)",
                "texts-2" => "t = REPEAT('b', 3000)",
                _ => "v = 7",
            };
            let mut text = format!(
                "USE {database}; UPDATE `{table}` SET {column}; DELETE FROM `{table}` LIMIT 50;
                 BEGIN; DELETE FROM `{table}` LIMIT 40; ROLLBACK; CHECK TABLE `{table}` EXTENDED;"
            );
            match rng.below(6) {
                0 => text += &format!("DROP TABLE `{table}`;"),
                1 => text += &format!("TRUNCATE TABLE `{table}`; CHECK TABLE `{table}`;"),
                2 => {
                    text += &format!(
                        "RENAME TABLE `{table}` TO renamed; RENAME TABLE renamed TO `{table}`;"
                    )
                }
                _ => {}
            }
            if self.run(host, &text).is_none() {
                return false;
            }
        }
        self.others(host)
    }

    /// The tables that were left alone answer as before.
    fn others(&mut self, host: &mut Host) -> bool {
        for (number, &(database, table, query)) in QUERIES.iter().enumerate() {
            if self.is_damaged(database, table) {
                continue;
            }
            let Some((rows, errors)) = self.run(host, &format!("USE {database}; {query};")) else {
                return false;
            };
            self.judge(number, table, &rows, &errors);
        }
        true
    }

    fn end(&mut self, host: Host, alive: bool) {
        if !alive {
            return;
        }
        let (status, errors) = host.end();
        self.check_words("shutdown", &errors);
        if let Some(how) = crash(status) {
            self.note(format!("at shutdown {how}\n{errors:.3000}"));
        }
    }
}

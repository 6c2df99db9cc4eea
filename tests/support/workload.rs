//! SQL that both the host and a stock server run, so that one can be held against the other.
//!
//! Only what the host's subset of SQL has: multi-row INSERT, UPDATE and DELETE with constants, BEGIN,
//! COMMIT, ROLLBACK. Every value follows from a seed.

use super::samples;
use super::seed::Rng;
use std::fmt::Write;

/// A database, its definitions, and what happens in it.
pub struct Workload {
    pub database: &'static str,
    /// CREATE TABLE statements, each with its semicolon; the database is made by the caller.
    pub definitions: String,
    /// Statements in order, without semicolons.
    pub statements: Vec<String>,
}

impl Workload {
    /// The whole as one script, from CREATE DATABASE on.
    pub fn script(&self) -> String {
        let mut script = self.head();
        for statement in &self.statements {
            script.push_str(statement);
            script.push_str(";\n");
        }
        script
    }

    /// CREATE DATABASE, USE, and the definitions.
    pub fn head(&self) -> String {
        format!(
            "CREATE DATABASE {0} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;\nUSE {0};\n{1}",
            self.database, self.definitions
        )
    }
}

const DEFINITIONS: &str = "\
CREATE TABLE big (
  id INT NOT NULL, k INT NOT NULL, c CHAR(30) CHARACTER SET latin1 NOT NULL, pad VARCHAR(120) DEFAULT NULL,
  PRIMARY KEY (id), KEY k (k), UNIQUE KEY c (c)) ENGINE=InnoDB;
CREATE TABLE scattered (
  a INT UNSIGNED NOT NULL, b VARCHAR(20) CHARACTER SET latin1 NOT NULL, v BIGINT NOT NULL, t VARCHAR(100) DEFAULT NULL,
  PRIMARY KEY (a, b), KEY v_down (v DESC), KEY t_prefix (t(8), v)) ENGINE=InnoDB ROW_FORMAT=COMPACT;
CREATE TABLE hidden (n INT DEFAULT NULL, w VARCHAR(50) CHARACTER SET latin1 DEFAULT NULL, KEY n (n)) ENGINE=InnoDB ROW_FORMAT=REDUNDANT;
CREATE TABLE blobs (
  id INT NOT NULL, b LONGBLOB DEFAULT NULL, t MEDIUMTEXT CHARACTER SET latin1 DEFAULT NULL,
  PRIMARY KEY (id), KEY t (t(40))) ENGINE=InnoDB;
CREATE TABLE old_blobs (
  id INT NOT NULL, b LONGBLOB DEFAULT NULL, t MEDIUMTEXT CHARACTER SET latin1 DEFAULT NULL,
  PRIMARY KEY (id), KEY t (t(40))) ENGINE=InnoDB ROW_FORMAT=REDUNDANT;
";

/// `rows` rows in `big` (100 000 make three levels of the secondary trees likely), a fifth of that in
/// random order in `scattered`, BLOBs of up to 200 KB, then updates, deletes and rolled-back transactions.
pub fn grown(rows: u64, seed: u64) -> Workload {
    let mut rng = Rng::new(seed);
    let mut statements = Vec::new();
    fill_big(rows, &mut rng, &mut statements);
    fill_scattered(rows / 5, &mut rng, &mut statements);
    fill_hidden(rows / 20, &mut rng, &mut statements);
    for table in ["blobs", "old_blobs"] {
        fill_blobs(table, (rows / 600).clamp(8, 120), &mut rng, &mut statements);
    }
    change(rows, &mut rng, &mut statements);
    Workload {
        database: "grown",
        definitions: DEFINITIONS.to_string(),
        statements,
    }
}

fn insert(
    table: &str,
    rows: impl Iterator<Item = String>,
    per_statement: usize,
    out: &mut Vec<String>,
) {
    let mut text = String::new();
    let mut count = 0;
    for row in rows {
        text.push_str(if count == 0 { "" } else { "," });
        text.push_str(&row);
        count += 1;
        if count == per_statement {
            out.push(format!("INSERT INTO {table} VALUES {text}"));
            text.clear();
            count = 0;
        }
    }
    if count > 0 {
        out.push(format!("INSERT INTO {table} VALUES {text}"));
    }
}

fn fill_big(rows: u64, rng: &mut Rng, out: &mut Vec<String>) {
    let values = (1..=rows).map(|id| {
        let pad = if rng.one_in(10) {
            "NULL".into()
        } else {
            format!("'é {}'", rng.text(id as usize % 90))
        };
        format!(
            "({id},{},'c{:08}',{pad})",
            rng.below(rows),
            id * 7919 % 99_999_989
        )
    });
    insert("big", values, 250, out);
}

fn fill_scattered(rows: u64, rng: &mut Rng, out: &mut Vec<String>) {
    // A permutation of 0..4·rows, by a step that has no factor in common with the modulus.
    let modulus = rows * 4 + 1;
    let step = (modulus / 3..)
        .find(|&step| gcd(step, modulus) == 1)
        .unwrap_or(1);
    let values = (0..rows).map(|i| {
        let a = i * step % modulus;
        let t = if rng.one_in(5) {
            "NULL".into()
        } else {
            format!("'{}'", rng.text(1 + a as usize % 60))
        };
        format!(
            "({a},'{}',{},{t})",
            rng.text(1 + i as usize % 18),
            i64::from(rng.next() as i32)
        )
    });
    insert("scattered", values, 100, out);
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn fill_hidden(rows: u64, rng: &mut Rng, out: &mut Vec<String>) {
    let values = (0..rows).map(|i| {
        if i % 17 == 0 {
            "(NULL,NULL)".into()
        } else {
            format!("({},'{}')", rng.below(50), rng.text(i as usize % 50))
        }
    });
    insert("hidden", values, 50, out);
}

/// Sizes around what matters: nothing, inline, just off-page, several pages.
fn blob_size(rng: &mut Rng) -> usize {
    let around = *rng.pick(&[
        0, 20, 700, 768, 4000, 8000, 16_300, 33_000, 100_000, 200_000,
    ]);
    around + rng.below(90) as usize
}

fn blob(size: usize, rng: &mut Rng) -> String {
    let mut text = String::with_capacity(2 * size + 3);
    text.push_str("x'");
    while text.len() < 2 * size + 2 {
        // Every byte value, with runs, so that a shifted copy is noticed.
        let _ = write!(text, "{:016X}", rng.next());
    }
    text.truncate(2 * size + 2);
    text.push('\'');
    text
}

fn fill_blobs(table: &str, rows: u64, rng: &mut Rng, out: &mut Vec<String>) {
    for id in 1..=rows {
        let b = if rng.one_in(8) {
            "NULL".into()
        } else {
            blob(blob_size(rng), rng)
        };
        let size = blob_size(rng).min(60_000);
        let t = if rng.one_in(8) {
            "NULL".into()
        } else {
            format!("'{}'", rng.text(size))
        };
        out.push(format!("INSERT INTO {table} VALUES ({id},{b},{t})"));
    }
}

/// Updates that stay, grow, shrink, move in a secondary index or change the key; deletes of runs and of
/// single rows; transactions that are rolled back.
fn change(rows: u64, rng: &mut Rng, out: &mut Vec<String>) {
    for round in 0..24 {
        let from = 1 + rng.below(rows);
        let to = from + rng.between(1, rows / 40 + 1);
        match round % 8 {
            0 => out.push(format!(
                "UPDATE big SET k = {} WHERE id BETWEEN {from} AND {to}",
                rng.below(rows)
            )),
            1 => out.push(format!(
                "UPDATE big SET pad = '{}' WHERE id BETWEEN {from} AND {to}",
                rng.text(110)
            )),
            2 => out.push(format!("DELETE FROM big WHERE id BETWEEN {from} AND {to}")),
            3 => out.push(format!(
                "UPDATE big SET pad = NULL WHERE k = {}",
                rng.below(rows)
            )),
            4 => {
                out.push("BEGIN".into());
                out.push(format!("DELETE FROM big WHERE id BETWEEN {from} AND {to}"));
                out.push(format!(
                    "INSERT INTO big VALUES ({},1,'rolled back',NULL)",
                    rows + 1 + round
                ));
                out.push(format!(
                    "UPDATE scattered SET v = {round} WHERE a BETWEEN {from} AND {to}"
                ));
                out.push("ROLLBACK".into());
            }
            5 => out.push(format!(
                "DELETE FROM scattered WHERE a BETWEEN {from} AND {to}"
            )),
            6 => out.push(format!(
                "UPDATE scattered SET t = '{}' WHERE a BETWEEN {from} AND {to}",
                rng.text(95)
            )),
            _ => {
                out.push("BEGIN".into());
                out.push(format!(
                    "UPDATE hidden SET w = 'changed {round}' WHERE n = {}",
                    rng.below(50)
                ));
                out.push(format!("DELETE FROM hidden WHERE n = {}", rng.below(50)));
                out.push("COMMIT".into());
            }
        }
    }
    let blobs = (rows / 600).clamp(8, 120);
    for table in ["blobs", "old_blobs"] {
        for _ in 0..blobs / 3 {
            let id = 1 + rng.below(blobs);
            let size = blob_size(rng);
            out.push(format!(
                "UPDATE {table} SET b = {} WHERE id = {id}",
                blob(size, rng)
            ));
            out.push(format!(
                "DELETE FROM {table} WHERE id = {}",
                1 + rng.below(blobs)
            ));
        }
    }
    out.push(format!(
        "UPDATE big SET id = {} WHERE id = {}",
        rows + 77,
        rows / 2
    ));
}

/// The sample schema's dump, as `mariadb-dump` wrote it.
pub fn shop_dump() -> Vec<u8> {
    samples::unpack(&samples::fixture("dump/shop.sql.xz"))
}

/// The CREATE TABLE statements of the sample schema, from the dump.
pub fn shop_definitions() -> String {
    let dump = shop_dump();
    let text = String::from_utf8_lossy(&dump);
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        inside |= line.starts_with("CREATE TABLE ");
        if inside {
            out.push_str(line);
            out.push('\n');
            inside = !line.ends_with(';');
        }
    }
    out
}

#[test]
fn a_workload_is_the_same_each_time_and_keeps_its_keys_apart() {
    let workload = grown(2000, 5);
    assert_eq!(workload.script(), grown(2000, 5).script());
    assert!(workload.statements.len() > 50);
    assert_eq!(shop_definitions().matches("CREATE TABLE").count(), 8);
}

//! Keys that are added to tables with rows, and dropped; loads of empty tables: the same answers, the same errors.

use super::sql::difference;
use crate::support::host::Host;
use crate::support::scratch::Scratch;
use crate::support::stock::Stock;

const SETUP: &str = "SET NAMES utf8mb4; SET time_zone = '+00:00'; \
    SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'; \
    CREATE DATABASE k CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE k;";

/// Each with what it changes, one a line.
const KEYS: &str = "
CREATE TABLE t (a INT, b VARCHAR(20), c TEXT, d DECIMAL(6,2), e DATETIME, UNIQUE KEY ua (a)) ENGINE=InnoDB;
INSERT INTO t VALUES (1, 'one', REPEAT('x', 9000), 1.5, '2020-01-01'), (2, 'two', 'short', NULL, NULL), (3, 'ONE ', NULL, -1.5, NULL), (NULL, NULL, 'xx', 1.5, NULL), (NULL, 'three', 'xxx', 2, '2020-01-01');
ALTER TABLE t ADD UNIQUE KEY ub (b);
ALTER TABLE t ADD UNIQUE KEY ub (b(2));
ALTER TABLE t ADD UNIQUE KEY ud (d);
ALTER TABLE t ADD UNIQUE KEY ue (e);
ALTER TABLE t ADD UNIQUE KEY ude (d, e);
ALTER TABLE t ADD UNIQUE KEY uc (c(1));
ALTER TABLE t ADD UNIQUE KEY uc (c(3));
ALTER TABLE t ADD KEY b (b), ADD KEY c (c(20)), ADD KEY d (d DESC, a);
ALTER TABLE t ADD KEY (b), ADD KEY (b, a);
ALTER TABLE t ADD KEY b (b);
ALTER TABLE t ADD KEY B (a);
ALTER TABLE t ADD KEY nope (nope);
ALTER TABLE t ADD KEY nope (b(0));
SET innodb_tmpdir = '/nonexistent';
ALTER TABLE t ADD KEY gen_clust_index (a);
CREATE INDEX e ON t (e);
CREATE UNIQUE INDEX e2 ON t (e, a);
CREATE INDEX e ON t (e);
SHOW CREATE TABLE t;
SELECT a, b, LENGTH(c), d, e FROM t WHERE d = 1.5 ORDER BY a, b;
SELECT a FROM t WHERE b = 'one' ORDER BY a;
SELECT a, d FROM t ORDER BY d DESC, a;
SELECT COUNT(*) FROM t WHERE c LIKE 'xxx%';
INSERT INTO t (a) VALUES (1);
INSERT INTO t (e, a) VALUES ('2020-01-01', 1);
DELETE FROM t WHERE a = 2;
UPDATE t SET b = 'four' WHERE a = 3;
SELECT a FROM t WHERE b = 'four';
DROP INDEX nope ON t;
DROP INDEX e ON t;
ALTER TABLE t DROP KEY d;
ALTER TABLE t DROP INDEX ua;
INSERT INTO t (a) VALUES (1);
ALTER TABLE t ADD UNIQUE KEY ua (a);
ALTER TABLE nowhere ADD KEY a (a);
DROP INDEX a ON nowhere;
SHOW CREATE TABLE t;
CHECK TABLE t EXTENDED;
CREATE TABLE i (id INT AUTO_INCREMENT, v INT NOT NULL, PRIMARY KEY (id), KEY v (v)) ENGINE=InnoDB;
INSERT INTO i (v) VALUES (3), (3), (1);
ALTER TABLE i ADD UNIQUE KEY v2 (v);
ALTER TABLE i ADD UNIQUE KEY v2 (v, id);
ALTER TABLE i DROP KEY v;
SELECT v, id FROM i ORDER BY v, id;
INSERT INTO i (v) VALUES (2);
SELECT LAST_INSERT_ID();
CHECK TABLE i EXTENDED;
CREATE TABLE l (a VARCHAR(800), b VARCHAR(3000) CHARACTER SET latin1) ENGINE=InnoDB;
ALTER TABLE l ADD KEY a (a);
ALTER TABLE l ADD KEY b (b);
SHOW CREATE TABLE l;
";

/// Rows with the same key are told by their number here, as error 1180 there.
const LOADS: &str = "
SET foreign_key_checks = 0, unique_checks = 0;
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20), n INT, b TEXT, UNIQUE KEY v (v), UNIQUE KEY n (n), KEY b (b(10))) ENGINE=InnoDB;
INSERT INTO t (v, n) VALUES ('a', NULL), (NULL, NULL), (NULL, 5), ('b', NULL);
SELECT v, n FROM t ORDER BY v, n;
INSERT INTO t (v) VALUES ('B');
DELETE FROM t;
INSERT INTO t (v) VALUES ('x'), ('y');
SELECT v FROM t ORDER BY v;
TRUNCATE TABLE t;
INSERT INTO t (id, v) VALUES (10, 'x'), (NULL, 'y'), (5, 'z');
SELECT * FROM t;
TRUNCATE TABLE t;
BEGIN;
INSERT INTO t (id, v) VALUES (10, 'x'), (11, 'y');
SAVEPOINT s;
INSERT INTO t (id, v) VALUES (12, 'z');
ROLLBACK TO s;
SELECT * FROM t;
ROLLBACK;
SELECT * FROM t;
INSERT INTO t (v, n) VALUES ('a', 1), ('b', 'nonsense');
SELECT COUNT(*) FROM t;
REPLACE INTO t (id, v) VALUES (1, 'x'), (1, 'y');
SELECT id, v FROM t;
TRUNCATE TABLE t;
INSERT INTO t (id, v) VALUES (1, 'x'), (1, 'y') ON DUPLICATE KEY UPDATE n = 7;
SELECT id, v, n FROM t;
CREATE TABLE s LIKE t;
INSERT INTO s SELECT * FROM t;
INSERT INTO s (v, b) SELECT b, v FROM s;
SELECT id, v, n, b FROM s ORDER BY id;
CHECK TABLE t EXTENDED;
CHECK TABLE s EXTENDED;
";

/// The latest error, without what only one of the clients says.
fn last_error(errors: &str) -> String {
    let line = errors.lines().rev().find(|line| line.starts_with("ERROR"));
    let line = line.unwrap_or_default();
    match line.split_once(" at line ") {
        Some((code, rest)) => format!("{code}{}", rest.trim_start_matches(char::is_numeric)),
        None => line.into(),
    }
}

fn assert_same_everywhere(statements: &str) {
    let scratch = Scratch::new("keys");
    let stock = Stock::start(&scratch.dir("stock"), &[]);
    let mut client =
        Host::start_command(stock.client_command("").arg("--unbuffered").arg("--force"));
    let mut host = Host::start(&scratch.dir("data"), &["--force"]);
    client.run(SETUP.as_bytes());
    host.run(SETUP.as_bytes());
    let mut differences = Vec::new();
    for statement in statements.lines().filter(|line| !line.is_empty()) {
        let (theirs, ours) = (client.errors().len(), host.errors().len());
        let expected = client.run(statement.as_bytes());
        let found = host.run(statement.as_bytes());
        let expected_error = last_error(&client.errors()[theirs..]);
        let found_error = last_error(&host.errors()[ours..]);
        if let Some(difference) = difference(&found, &expected) {
            differences.push(format!("{statement}\n{difference}"));
        }
        if found_error != expected_error {
            differences.push(format!("{statement}\n  {found_error}\n  {expected_error}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    host.quit();
}

#[test]
fn keys_come_and_go_as_on_the_stock_server() {
    assert_same_everywhere(KEYS);
}

#[test]
fn loads_end_as_on_the_stock_server() {
    assert_same_everywhere(LOADS);
}

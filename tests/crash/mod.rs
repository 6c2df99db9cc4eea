//! Processes that are killed.

mod kill;

use crate::support::host::Host;
use crate::support::scratch::Scratch;

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

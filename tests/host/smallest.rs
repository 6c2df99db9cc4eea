//! The smallest log, log buffer and pool, with pages of every size: every statement finds its room.

use crate::support::host::Host;
use crate::support::scratch::Scratch;

/// Rows and keys as large as a page of that size takes well, in trees that split, shrink and grow again.
fn statements(page_kib: usize) -> String {
    let row = (page_kib << 10) / 5;
    let row = row.min(12_000);
    let key = match page_kib {
        4 => 700,
        8 => 1400,
        _ => 3000,
    };
    let values = |from: usize, to: usize| -> String {
        let rows: Vec<String> = (from..to)
            .map(|id| {
                let id = id * 7919 % 10_007;
                let (k, v) = (key - 20, row / 2);
                format!(
                    "({id}, CONCAT('{id}-', REPEAT('k', {k})), REPEAT('v', {v}), REPEAT('b', {}))",
                    row * 3
                )
            })
            .collect();
        rows.join(", ")
    };
    format!(
        "CREATE DATABASE d; USE d;
        CREATE TABLE t (id INT PRIMARY KEY, k VARCHAR({key}), v VARCHAR({row}), b MEDIUMBLOB, KEY k (k), KEY v (v(700)))
            ENGINE=InnoDB DEFAULT CHARSET=latin1;
        INSERT INTO t VALUES {};
        BEGIN; INSERT INTO t VALUES {}; ROLLBACK;
        UPDATE t SET v = REPEAT('w', {row} - 40) WHERE id % 3 = 0;
        BEGIN; UPDATE t SET k = CONCAT('x', id), b = NULL; ROLLBACK;
        DELETE FROM t WHERE id % 2 = 1;
        INSERT INTO t VALUES {};
        CREATE INDEX kv ON t (v(300), id);
        DROP INDEX v ON t;
        TRUNCATE TABLE t; SET unique_checks = 0; SET foreign_key_checks = 0;
        INSERT INTO t VALUES {};
        UPDATE t SET v = REPEAT('z', {row} - 40);\n",
        values(0, 200),
        values(200, 300),
        values(300, 400),
        values(400, 600)
    )
}

#[test]
fn every_statement_finds_room_in_the_smallest_log_with_pages_of_every_size() {
    for page_kib in [4, 8, 16, 32, 64] {
        let scratch = Scratch::new("smallest");
        let page = format!("--innodb-page-size={page_kib}K");
        let pool = format!(
            "--innodb-buffer-pool-size={}M",
            if page_kib == 64 { 8 } else { 5 }
        );
        let options = [
            page.as_str(),
            pool.as_str(),
            "--innodb-log-file-size=4M",
            "--innodb-log-buffer-size=2M",
            "--innodb-flush-log-at-trx-commit=0",
        ];
        let datadir = scratch.dir("data");
        let mut host = Host::start(&datadir, &options);
        host.run(statements(page_kib).as_bytes());
        let errors = host.errors();
        assert!(!errors.contains("ERROR"), "{page_kib} KiB: {errors}");
        let sums = host.run(
            b"SELECT COUNT(*), SUM(LENGTH(v)) FROM d.t; SELECT COUNT(*) FROM d.t WHERE k > ''; CHECK TABLE d.t EXTENDED;",
        );
        let sums = String::from_utf8_lossy(&sums).into_owned();
        assert!(sums.contains("\n200\t"), "{page_kib} KiB: {sums}");
        assert!(sums.contains("status\tOK"), "{page_kib} KiB: {sums}");
        host.quit();
    }
}

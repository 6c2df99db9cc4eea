//! Memory: the pool changes its size under load, and what the process has stays within what was promised.

use crate::support::host::Host;
use crate::support::scratch::Scratch;
use std::fs;

/// Resident memory of a process.
fn resident_kib(pid: u32) -> u64 {
    status_kib(pid, "VmRSS:")
}

fn status_kib(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the host lives");
    let line = status.lines().find(|line| line.starts_with(name));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|text| text.parse().ok()).expect("a size")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Rows of 8000 bytes, `count` of them, from `first` on.
fn filler(first: u32, count: u32) -> String {
    let rows: Vec<String> = (first..first + count)
        .map(|id| format!("({id}, {}, REPEAT('{}', 7900))", id % 7, id % 10))
        .collect();
    format!("INSERT INTO d.t VALUES {};\n", rows.join(", "))
}

#[test]
fn a_pool_that_shrinks_gives_its_memory_back_and_one_that_grows_takes_it() {
    let scratch = Scratch::new("resize");
    let mut host = Host::start(
        &scratch.dir("data"),
        &[
            "--innodb-buffer-pool-size=40M",
            "--force",
            "--innodb-flush-log-at-trx-commit=2",
        ],
    );
    host.run(b"CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, k INT, v TEXT, KEY (k)) ENGINE=InnoDB;");
    for part in 0..14 {
        host.run(filler(part * 200, 200).as_bytes());
    }
    let sum = b"SELECT COUNT(*), SUM(id), SUM(LENGTH(v)) FROM d.t;";
    let rows = host.run(sum);
    let full = resident_kib(host.id());
    assert!(full > 30 << 10, "{full} KiB");
    host.run(b"SET GLOBAL innodb_buffer_pool_size = 8388608;");
    let small = resident_kib(host.id());
    assert!(small + (12 << 10) < full, "{full} KiB, then {small} KiB");
    let shown = text(&host.run(
        b"SHOW GLOBAL VARIABLES LIKE 'innodb_buffer_pool_size'; SHOW STATUS LIKE 'Innodb_buffer_pool_resize_status';
        SHOW STATUS LIKE 'Innodb_buffer_pool_pages_total';",
    ));
    assert!(
        shown.contains("innodb_buffer_pool_size\t8388608"),
        "{shown}"
    );
    assert!(
        shown.contains("Completed resizing buffer pool at "),
        "{shown}"
    );
    assert!(shown.contains("pages_total\t512"), "{shown}");
    assert_eq!(host.run(sum), rows);
    assert!(resident_kib(host.id()) < small + (16 << 10));
    // Rounded down to a whole number of megabytes; refused where the machine has no such memory.
    host.run(b"SET GLOBAL innodb_buffer_pool_size = 100000000;");
    assert_eq!(host.run(sum), rows);
    let refused = host.run(
        b"SET GLOBAL innodb_buffer_pool_size = 1000000000000000; SET GLOBAL innodb_buffer_pool_size = 1;
        SHOW GLOBAL VARIABLES LIKE 'innodb_buffer_pool_size';",
    );
    assert!(
        text(&refused).contains("innodb_buffer_pool_size\t99614720"),
        "{}",
        text(&refused)
    );
    assert!(
        host.errors().contains("innodb_buffer_pool_size_max"),
        "{}",
        host.errors()
    );
    host.quit();
}

/// Sum of a column of XTRADB_MEMORY, and the text.
fn memory(host: &mut Host) -> (u64, String) {
    let rows = text(&host.run(b"SELECT * FROM INFORMATION_SCHEMA.XTRADB_MEMORY;"));
    let limit = |line: &str| {
        line.split('\t')
            .nth(2)
            .and_then(|text| text.parse::<u64>().ok())
    };
    (rows.lines().filter_map(limit).sum(), rows)
}

/// Rows, BLOBs, rollbacks, many tables, one statement that changes and locks everything: what the process
/// ever had in memory is the budget, a tenth, and 64 MiB.
#[test]
fn memory_stays_within_the_budget_under_a_mixed_load_with_a_small_pool() {
    let scratch = Scratch::new("budget");
    let mut host = Host::start(
        &scratch.dir("data"),
        &[
            "--innodb-buffer-pool-size=5M",
            "--innodb-log-buffer-size=2M",
            "--innodb-flush-log-at-trx-commit=2",
        ],
    );
    host.run(
        b"INSTALL PLUGIN xtradb_memory SONAME 'libxtradb.so'; CREATE DATABASE d;
        CREATE TABLE d.t (id INT PRIMARY KEY, k INT, v TEXT, KEY (k)) ENGINE=InnoDB;
        CREATE TABLE d.s (id INT PRIMARY KEY, k INT, v VARCHAR(50), KEY (k)) ENGINE=InnoDB;",
    );
    let before = resident_kib(host.id());
    for part in 0..4 {
        host.run(filler(part * 200, 200).as_bytes());
        let rows: Vec<String> = (part * 2000..part * 2000 + 2000)
            .map(|id| format!("({id}, {}, 'row number {id}')", id % 1000))
            .collect();
        host.run(format!("INSERT INTO d.s VALUES {};", rows.join(", ")).as_bytes());
        let name = format!("d.n{part}");
        for table in 0..5 {
            host.run(format!("CREATE TABLE {name}_{table} (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE=InnoDB;").as_bytes());
        }
    }
    host.run(b"BEGIN; UPDATE d.s SET k = k + 1; SELECT COUNT(*) FROM d.t WHERE k < 5 FOR UPDATE; ROLLBACK;
        BEGIN; UPDATE d.t SET v = CONCAT(v, 'x'); COMMIT; UPDATE d.s SET v = 'another row'; DELETE FROM d.t WHERE k = 3;
        SELECT COUNT(*) FROM d.s WHERE k < 900;");
    let (limit, rows) = memory(&mut host);
    let peak = status_kib(host.id(), "VmHWM:");
    assert!(
        peak <= limit / 1024 / 10 * 11 + (64 << 10),
        "{peak} KiB, {before} KiB at first, of {limit} bytes:\n{rows}"
    );
    for name in [
        "buffer_pool",
        "guides",
        "log_buffer",
        "sort_buffers",
        "dictionary",
        "locks",
        "recovery",
    ] {
        assert!(rows.contains(name), "{rows}");
    }
    host.quit();
}

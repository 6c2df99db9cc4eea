//! What happens at limits: more locks than may be, a device that is full; and settings of a running host
//! beside a stock server's.

use crate::support::host::{self, Host, run_script};
use crate::support::run_ok;
use crate::support::scratch::Scratch;
use crate::support::stock::Stock;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Sessions that lock every page of the table, and so many that their locks do not find room.
const SESSIONS: usize = 40;
const PAGES: usize = 3000;

/// Each session writes a row before it locks. Who finds no room for another lock loses all of its
/// transaction: the row, too, and its locks.
#[test]
fn who_asks_for_more_locks_than_there_may_be_loses_the_transaction_and_nobody_else() {
    let scratch = Scratch::new("locks-full");
    let datadir = scratch.dir("data");
    let options = [
        "--innodb-page-size=4K",
        "--innodb-buffer-pool-size=20M",
        "--innodb-flush-log-at-trx-commit=2",
    ];
    let mut made = String::from(
        "CREATE DATABASE d; USE d; CREATE TABLE m (id INT PRIMARY KEY) ENGINE=InnoDB;
        CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(1900)) ENGINE=InnoDB DEFAULT CHARSET=latin1;",
    );
    for from in (0..2 * PAGES).step_by(500) {
        let rows: Vec<String> = (from..from + 500)
            .map(|id| format!("({id}, REPEAT('v', 1800))"))
            .collect();
        made += &format!("INSERT INTO t VALUES {};\n", rows.join(","));
    }
    host::script_ok(&datadir, &options, made.as_bytes());
    let names: Vec<String> = (0..SESSIONS).map(|session| format!("s{session}")).collect();
    let mut script = String::new();
    for (id, name) in names.iter().enumerate() {
        script += &format!("{name}: USE d\n{name}: BEGIN\n{name}: INSERT INTO m VALUES ({id})\n");
        script += &format!("{name}: SELECT COUNT(*) FROM t LOCK IN SHARE MODE\n");
    }
    // Locks went with the transactions that were undone: one that waits for nobody goes through.
    script += "s0: COMMIT\ns0: SELECT COUNT(*) FROM t LOCK IN SHARE MODE\n";
    for name in &names {
        script += &format!("{name}: COMMIT\n");
    }
    script += "s0: SELECT COUNT(*), SUM(id) FROM m\n";
    let path = scratch.path().join("script");
    fs::write(&path, script).expect("written");
    let mut command = host::command(&datadir);
    let output = run_script(
        command
            .args(options)
            .arg("--step-timeout=120")
            .arg(format!("--sessions={}", path.display())),
        b"",
    );
    let out = text(&output.stdout);
    let full = out.matches("ERROR 1206 (HY000)").count();
    assert!(
        (1..SESSIONS - 4).contains(&full),
        "{full} transactions were undone:\n{out}{}",
        text(&output.stderr)
    );
    let left = host::script_ok(
        &datadir,
        &options,
        b"SELECT COUNT(*) FROM d.m; CHECK TABLE d.m, d.t EXTENDED;",
    );
    let left = text(&left);
    assert!(
        left.contains(&format!("COUNT(*)\n{}\n", SESSIONS - full)),
        "{full} were undone:\n{left}"
    );
    assert_eq!(left.matches("status\tOK").count(), 2, "{left}");
}

fn build_no_room(into: &Path) -> PathBuf {
    let library = into.join("no_room.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/host/no_room.c");
    run_ok(
        Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"])
            .arg(source)
            .arg("-o")
            .arg(&library)
            .arg("-ldl"),
    );
    library
}

/// Pages of tables cannot be written for a while: changes fail with the file's name, reads go on, and when
/// there is room again everything does.
#[test]
fn a_full_device_stalls_changes_and_nothing_is_lost() {
    let scratch = Scratch::new("stall-host");
    let datadir = scratch.dir("data");
    let flag = scratch.path().join("no-room");
    let mut command = host::command(&datadir);
    command
        .args([
            "--force",
            "--innodb-use-native-aio=0",
            "--innodb-buffer-pool-size=8M",
            "--innodb-log-file-size=4M",
            "--innodb-flush-log-at-trx-commit=2",
        ])
        .env("LD_PRELOAD", build_no_room(scratch.path()))
        .env("NO_ROOM_FLAG", &flag);
    let mut host = Host::start_command(&mut command);
    host.run(
        b"CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000)) ENGINE=InnoDB;
        CREATE TABLE r (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO r VALUES (1), (2), (3);",
    );
    let rows = |from: u32| {
        let rows: Vec<String> = (from..from + 50)
            .map(|id| format!("({id}, REPEAT('v', 1900))"))
            .collect();
        format!("INSERT INTO d.t VALUES {};", rows.join(","))
    };
    host.run(rows(0).as_bytes());
    fs::write(&flag, "").expect("written");
    let (mut from, since) = (50, Instant::now());
    while !host.errors().contains("ERROR ") {
        assert!(since.elapsed() < Duration::from_secs(200), "never full");
        host.run(rows(from).as_bytes());
        from += 50;
    }
    let errors = host.errors();
    assert!(
        errors.contains("d/t.ibd") || errors.contains("'t' is full"),
        "{errors}"
    );
    let refused = from - 50;
    let read = text(&host.run(b"SELECT SUM(id) FROM d.r; SELECT COUNT(*) FROM d.t WHERE id < 40;"));
    assert!(
        read.contains("SUM(id)\n6\n") && read.contains("COUNT(*)\n40\n"),
        "{read}"
    );
    fs::remove_file(&flag).expect("it is there");
    let since = Instant::now();
    loop {
        let errors = host.errors().matches("ERROR ").count();
        host.run(rows(refused).as_bytes());
        if host.errors().matches("ERROR ").count() == errors {
            break;
        }
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "{}",
            host.errors()
        );
    }
    let count =
        text(&host.run(b"SELECT COUNT(*), SUM(LENGTH(v)) FROM d.t; CHECK TABLE d.t EXTENDED;"));
    assert!(
        count.contains(&format!("\n{from}\t{}\n", from * 1900)),
        "{count}"
    );
    assert!(count.contains("status\tOK"), "{count}");
    host.quit();
}

const SETTINGS: [&str; 12] = [
    "innodb_flush_method = 'O_DIRECT'",
    "innodb_io_capacity = 500",
    "innodb_io_capacity = 50",
    "innodb_io_capacity = 5000",
    "innodb_io_capacity_max = 3000",
    "innodb_io_capacity_max = 8000",
    "innodb_io_capacity_max = 10",
    "innodb_flush_neighbors = 2",
    "innodb_flush_neighbors = 0",
    "innodb_flush_neighbors = 7",
    "innodb_flush_neighbors = 1",
    "innodb_buffer_pool_filename = 'x'",
];
const SHOW: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_neighbors', 'innodb_io_capacity', \
     'innodb_io_capacity_max', 'innodb_buffer_pool_filename')";

#[test]
fn settings_of_writing_change_as_in_the_stock_server() {
    let scratch = Scratch::new("set-global");
    let (datadir, twin) = (scratch.dir("data"), scratch.dir("twin"));
    let max = "--innodb-io-capacity-max=2000";
    let theirs = Stock::start(&twin, &[max]);
    let mut host = Host::start(&datadir, &["--force", max]);
    let number = |errors: &str| {
        let at = errors.rfind("ERROR ").map(|at| &errors[at + 6..]);
        at.and_then(|rest| rest.split_whitespace().next().map(str::to_string))
    };
    for setting in SETTINGS {
        let statement = format!("SET GLOBAL {setting}");
        // The host is as strict as a server can be.
        let strict = format!("SET sql_mode = 'STRICT_ALL_TABLES'; {statement}");
        let expected = theirs.try_sql("", &strict).err();
        let expected = expected.as_deref().and_then(number);
        let before = host.errors().len();
        host.run(format!("{statement};").as_bytes());
        let found = number(&host.errors()[before..]);
        assert_eq!(found, expected, "{statement}");
        let found = text(&host.run(format!("{SHOW};").as_bytes()));
        assert_eq!(found, theirs.sql("", SHOW), "after {statement}");
    }
    theirs.kill();
    host.quit();
}

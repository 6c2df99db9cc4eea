//! innodb_open_files: many tables, few open files.

use crate::support::host::Host;
use crate::support::scratch::Scratch;
use std::fs;

const TABLES: usize = 300;
const LIMIT: usize = 20;

/// Files of tables that the process has open.
fn open_tables(host: &Host) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", host.id())).expect("the host lives");
    let is_table = |entry: std::io::Result<fs::DirEntry>| {
        let target = entry.and_then(|entry| fs::read_link(entry.path()));
        // One that was closed meanwhile has no target.
        target.is_ok_and(|path| path.to_string_lossy().contains(".ibd"))
    };
    descriptors.map(is_table).filter(|is| *is).count()
}

fn status(host: &mut Host) -> usize {
    let shown = host.run(b"SHOW STATUS LIKE 'Innodb_num_open_files';");
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let number = shown.trim().rsplit('\t').next().map(str::parse);
    number.and_then(Result::ok).expect("a number")
}

fn check(host: &mut Host) {
    let (open, shown) = (open_tables(host), status(host));
    assert!(open <= LIMIT, "{open} files of tables are open");
    assert!(open > 3, "{open} files of tables are open");
    // ibdata1 counts, too.
    assert!(
        shown > open && shown <= LIMIT + 1,
        "{shown} are shown, {open} are open"
    );
}

fn each(statement: &str) -> String {
    (0..TABLES)
        .map(|table| statement.replace('#', &table.to_string()) + ";\n")
        .collect()
}

#[test]
fn three_hundred_tables_are_used_with_twenty_open_files() {
    let scratch = Scratch::new("open-files");
    let datadir = scratch.dir("data");
    let options = [
        "--innodb-open-files=20",
        "--innodb-flush-log-at-trx-commit=2",
        "--innodb-buffer-pool-size=5M",
    ];
    let mut host = Host::start(&datadir, &options);
    host.run(b"CREATE DATABASE d; USE d;");
    host.run(
        each("CREATE TABLE t# (id INT PRIMARY KEY, v VARCHAR(3000)) ENGINE=InnoDB").as_bytes(),
    );
    check(&mut host);
    // Each grows: what is allocated must be synced before the file is closed.
    let rows: Vec<String> = (0..20)
        .map(|id| format!("({id}, REPEAT('v', 2900))"))
        .collect();
    host.run(each(&format!("INSERT INTO t# VALUES {}", rows.join(","))).as_bytes());
    check(&mut host);
    let sums = host.run(each("SELECT COUNT(*), SUM(LENGTH(v)) FROM t#").as_bytes());
    assert_eq!(
        String::from_utf8_lossy(&sums)
            .matches("20\t58000\n")
            .count(),
        TABLES
    );
    check(&mut host);
    host.run(each("RENAME TABLE t# TO u#").as_bytes());
    host.run(each("UPDATE u# SET v = CONCAT(v, 'x') WHERE id = #").as_bytes());
    check(&mut host);
    host.kill();
    // After a crash the log names all of them.
    let mut host = Host::start(&datadir, &options);
    host.run(b"USE d;");
    let sums = host.run(each("SELECT COUNT(*) FROM u#").as_bytes());
    assert_eq!(
        String::from_utf8_lossy(&sums).matches("20\n").count(),
        TABLES
    );
    check(&mut host);
    host.run(each("DROP TABLE u#").as_bytes());
    assert_eq!(open_tables(&host), 0);
    assert!(status(&mut host) <= 4);
    host.quit();
}

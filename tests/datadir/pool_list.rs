//! The list of cached pages: each server loads what the other wrote, and what nobody wrote.

use crate::support::host::Host;
use crate::support::scratch::Scratch;
use crate::support::stock::{self, Stock};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const TABLES: &str = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000), KEY v (v(20))) ENGINE=InnoDB DEFAULT CHARSET=latin1;
CREATE TABLE cold (id INT PRIMARY KEY) ENGINE=InnoDB;";
const ROWS: u32 = 2000;
const SUM: &str = "SELECT COUNT(*), SUM(LENGTH(v)) FROM d.t;";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn status(host: &mut Host, name: &str) -> String {
    let shown = text(&host.run(format!("SHOW STATUS LIKE '{name}';").as_bytes()));
    let value = shown.lines().nth(1).and_then(|line| line.split_once('\t'));
    value.map(|(_, value)| value.to_string()).expect(name)
}

fn number(host: &mut Host, name: &str) -> u64 {
    status(host, name).parse().expect("a number")
}

fn wait_for(what: &str, mut status: impl FnMut() -> String) {
    let since = Instant::now();
    loop {
        let now = status();
        if now.contains(what) {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{now}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Pages that the list names.
fn listed(datadir: &Path) -> usize {
    let list = fs::read_to_string(datadir.join("ib_buffer_pool")).expect("a list");
    let is_page = |line: &str| {
        line.split_once(',').is_some_and(|(space, page)| {
            space.parse::<u32>().is_ok() && page.parse::<u32>().is_ok()
        })
    };
    assert!(list.lines().all(is_page), "{list:.200}");
    list.lines().count()
}

/// The table is read: all of it stands in the pool, or in the file.
fn reads_of_a_scan(host: &mut Host) -> u64 {
    let before = number(host, "Innodb_pages_read");
    let sum = text(&host.run(SUM.as_bytes()));
    assert!(sum.contains(&format!("{ROWS}\t")), "{sum}");
    number(host, "Innodb_pages_read") - before
}

#[test]
fn each_server_loads_the_list_of_the_other() {
    let scratch = Scratch::new("pool-list");
    let datadir = scratch.dir("data");
    let mut host = Host::start(&datadir, &["--innodb-buffer-pool-dump-pct=100"]);
    host.run(format!("CREATE DATABASE d; USE d; {TABLES}").as_bytes());
    let rows: Vec<String> = (0..ROWS)
        .map(|id| format!("({id}, REPEAT('{}', 1500))", id % 10))
        .collect();
    host.run(format!("INSERT INTO d.t VALUES {};", rows.join(",")).as_bytes());
    assert_eq!(
        status(&mut host, "Innodb_buffer_pool_dump_status"),
        "Dumping of buffer pool not started"
    );
    host.run(b"SET GLOBAL innodb_buffer_pool_dump_now = ON;");
    wait_for("dump completed at ", || {
        status(&mut host, "Innodb_buffer_pool_dump_status")
    });
    assert!(listed(&datadir) > 200);
    fs::remove_file(datadir.join("ib_buffer_pool")).expect("it is there");
    host.quit();
    let ours = listed(&datadir);
    assert!(ours > 200, "{ours} pages");
    assert!(!datadir.join("ib_buffer_pool.incomplete").exists());

    stock::lay_definitions("d", TABLES, &datadir.join("d"));
    let theirs = Stock::start(&datadir, &["--innodb-buffer-pool-dump-pct=100"]);
    wait_for("load completed at ", || {
        theirs.sql("", "SHOW STATUS LIKE 'Innodb_buffer_pool_load_status'")
    });
    assert_eq!(theirs.check_tables("d"), 2);
    theirs.sql("d", SUM);
    theirs.sql("", "SET GLOBAL innodb_buffer_pool_dump_at_shutdown = ON");
    theirs.shutdown(false);
    assert!(listed(&datadir) > 200);

    let mut host = Host::start(&datadir, &[]);
    wait_for("load completed at ", || {
        status(&mut host, "Innodb_buffer_pool_load_status")
    });
    assert_eq!(
        status(&mut host, "Innodb_buffer_pool_load_incomplete"),
        "OFF"
    );
    assert!(number(&mut host, "Innodb_buffer_pool_pages_data") > 200);
    assert_eq!(reads_of_a_scan(&mut host), 0, "all of it was loaded");
    host.quit();
    let mut host = Host::start(&datadir, &["--innodb-buffer-pool-load-at-startup=0"]);
    assert!(reads_of_a_scan(&mut host) > 100, "none of it was loaded");
    host.run(b"SET GLOBAL innodb_buffer_pool_load_now = ON;");
    wait_for("load completed at ", || {
        status(&mut host, "Innodb_buffer_pool_load_status")
    });
    host.run(b"SET GLOBAL innodb_buffer_pool_load_abort = ON;");
    let shown = text(&host.run(b"SHOW VARIABLES LIKE 'innodb_buffer_pool_load_abort';"));
    assert!(shown.contains("\tOFF"), "{shown}");
    host.quit();
}

/// Noise, pages of tablespaces that are not there, behind the end of a file, or free: none of it is harm;
/// and a pool that is full takes no more.
#[test]
fn a_list_of_nonsense_does_no_harm() {
    let scratch = Scratch::new("pool-list-nonsense");
    let datadir = scratch.dir("data");
    let small = ["--innodb-buffer-pool-size=5M"];
    let mut host = Host::start(&datadir, &small);
    host.run(format!("CREATE DATABASE d; USE d; {TABLES}").as_bytes());
    let rows: Vec<String> = (0..ROWS)
        .map(|id| format!("({id}, REPEAT('x', 1900))"))
        .collect();
    host.run(format!("INSERT INTO d.t VALUES {};", rows.join(",")).as_bytes());
    host.quit();
    let dumped = listed(&datadir);
    assert!(
        (40..=80).contains(&dumped),
        "a quarter of the pool: {dumped}"
    );
    let mut list = b"\xff\xfe\0nonsense\n,\n1\n77777,3\n0,4294967294\n5,999999\n".to_vec();
    for page in 0..1000 {
        for space in 0..9 {
            list.extend_from_slice(format!("{space},{page}\n").as_bytes());
        }
    }
    list.extend_from_slice(&[b'7'; 200_000]);
    fs::write(datadir.join("ib_buffer_pool"), &list).expect("written");
    fs::write(datadir.join("ib_buffer_pool.incomplete"), "1,").expect("written");
    let mut host = Host::start(&datadir, &small);
    wait_for("load completed at ", || {
        status(&mut host, "Innodb_buffer_pool_load_status")
    });
    assert!(number(&mut host, "Innodb_buffer_pool_pages_free") > 0);
    assert!(
        host.errors().contains("lines name no page"),
        "{}",
        host.errors()
    );
    let sum = text(&host.run(SUM.as_bytes()));
    assert!(sum.contains(&format!("{ROWS}\t{}", ROWS * 1900)), "{sum}");
    host.quit();
    assert!(listed(&datadir) >= 40);
    // A file that cannot be written is no reason not to stop.
    fs::remove_file(datadir.join("ib_buffer_pool")).expect("it is there");
    fs::create_dir_all(datadir.join("ib_buffer_pool/x")).expect("a directory");
    let mut host = Host::start(&datadir, &small);
    wait_for("Cannot read ", || {
        status(&mut host, "Innodb_buffer_pool_load_status")
    });
    host.quit();
}

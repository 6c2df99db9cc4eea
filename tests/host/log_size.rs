//! The redo log changes its size while sessions write, as SET GLOBAL says.

use crate::support::host::Host;
use crate::support::scratch::Scratch;
use std::fmt::Write;

#[test]
fn the_log_gets_another_size_while_it_is_used_and_a_kill_loses_nothing() {
    let scratch = Scratch::new("log-size");
    let datadir = scratch.dir("data");
    let log = datadir.join("ib_logfile0");
    let size = || std::fs::metadata(&log).expect("the log is there").len();
    let options = ["--innodb-log-file-size=8M", "--innodb-log-buffer-size=2M"];
    let mut host = Host::start(&datadir, &[&options[..], &["--force"]].concat());
    host.run(
        b"CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(1000)) ENGINE=InnoDB;",
    );
    let mut next = 0;
    for bytes in [24 << 20, 4 << 20, 9 << 20] {
        let mut script = String::new();
        for id in next..next + 500 {
            let value = format!("INSERT INTO d.t VALUES ({id}, REPEAT('{}', 900));", id % 10);
            script += &value;
        }
        next += 500;
        write!(script, "SET GLOBAL innodb_log_file_size = {bytes};").expect("a string takes it");
        host.run(script.as_bytes());
        assert_eq!(size(), bytes, "{}", host.errors());
    }
    let shown = host.run(
        b"SET GLOBAL innodb_log_file_size = 4194304;
        SELECT @@global.innodb_log_file_size;",
    );
    assert!(shown.ends_with(b"\n4194304\n"), "{shown:?}");
    assert_eq!(size(), 4 << 20);
    host.kill();
    let mut host = Host::start(&datadir, &["--innodb-log-file-size=4M"]);
    let said = host.run(b"SELECT COUNT(*), SUM(LENGTH(v)) FROM d.t; CHECK TABLE d.t EXTENDED;");
    let said = String::from_utf8_lossy(&said).into_owned();
    let expected = format!("\n{next}\t{}\n", next * 900);
    assert!(said.contains(&expected) && said.contains("OK"), "{said}");
    host.quit();
}

#[test]
fn a_log_smaller_than_its_buffer_is_refused() {
    let scratch = Scratch::new("log-size");
    let datadir = scratch.dir("data");
    let options = [
        "--innodb-log-file-size=32M",
        "--innodb-log-buffer-size=16M",
        "--force",
    ];
    let mut host = Host::start(&datadir, &options);
    let shown = host
        .run(b"SET GLOBAL innodb_log_file_size = 8388608; SELECT @@global.innodb_log_file_size;");
    assert!(shown.ends_with(b"\n33554432\n"), "{shown:?}");
    assert!(host.errors().contains("ERROR"), "{}", host.errors());
    host.quit();
}

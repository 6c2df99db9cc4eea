//! Bad input on our engine, each answered with an error that names the object: no room, no right to write,
//! rows and keys that do not fit, values and variables out of range, broken statements. Options, plugin-load
//! strings and libraries that do not fit stand in golden/options.txt, plugin_load.txt and install.txt.

use crate::support::host::{self, run_script};
use crate::support::scratch::{Scratch, copy_dir};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

/// Runs a script on a host that goes on after errors.
fn forced(command: &mut Command, script: &str) -> (String, String, Output) {
    let output = run_script(command.arg("--force"), script.as_bytes());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output)
}

/// The same command through a shell that runs `before` first.
fn through_shell(before: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("{before}; exec \"$@\""))
        .arg("sh");
    shell.arg(command.get_program()).args(command.get_args());
    shell
}

#[test]
fn a_full_disk_fails_statements_and_nothing_else() {
    let scratch = Scratch::new("full");
    let made = "CREATE DATABASE d; USE d; CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB;
        CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO t VALUES (1);";
    let small_log = ["--innodb-log-file-size=4M"];
    host::script_ok(scratch.path(), &small_log, made.as_bytes());
    // No file may pass 13 MB: for the engine that is a device without room.
    let mut plain = host::command(scratch.path());
    plain.args(small_log);
    let mut limited = through_shell("trap '' XFSZ; ulimit -f 26000", &plain);
    let mut script = String::from("USE d;");
    for _ in 0..40 {
        script += "INSERT INTO a (b) VALUES (REPEAT('x', 400000));";
    }
    script += "SELECT 'rows', COUNT(*), SUM(LENGTH(b)) = COUNT(*) * 400000 FROM a; INSERT INTO t VALUES (2);
        BEGIN; INSERT INTO t VALUES (3); INSERT INTO a (b) VALUES (REPEAT('y', 9000000)); ROLLBACK;
        CHECK TABLE a EXTENDED; DELETE FROM a WHERE id < 5; DROP TABLE a;
        CREATE TABLE n (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO n VALUES (7);";
    let (out, errors, output) = forced(&mut limited, &script);
    assert!(
        output.status.code().is_some(),
        "{}: {errors}",
        output.status
    );
    let full = errors.matches("ERROR 1114 (HY000)").count();
    assert!(errors.contains("The table 'a' is full"), "{errors}");
    assert_eq!(
        errors.matches("ERROR ").count(),
        full,
        "only the table is full:\n{errors}"
    );
    assert!(
        out.contains(&format!("rows\t{}\t1", 41 - full)),
        "{out}{errors}"
    );
    assert!(out.contains("d.a\tcheck\tstatus\tOK"), "{out}");
    let after = host::script_ok(
        scratch.path(),
        &small_log,
        b"USE d; SELECT id FROM t; SELECT id FROM n; CHECK TABLE t, n EXTENDED;",
    );
    let after = String::from_utf8_lossy(&after).into_owned();
    assert!(after.starts_with("id\n1\n2\nid\n7\n"), "{after}");
    assert_eq!(after.matches("\tOK").count(), 2, "{after}");
}

fn set_modes(dir: &Path, directory: u32, file: u32) {
    for entry in std::fs::read_dir(dir).expect("the folder can be listed") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            set_modes(&path, directory, file);
        } else {
            let mode = std::fs::Permissions::from_mode(file);
            std::fs::set_permissions(&path, mode).expect("the mode can be set");
        }
    }
    let mode = std::fs::Permissions::from_mode(directory);
    std::fs::set_permissions(dir, mode).expect("the mode can be set");
}

#[test]
fn a_directory_that_may_not_be_written_is_refused_by_name() {
    let scratch = Scratch::new("readonly");
    let data = scratch.dir("data");
    host::script_ok(
        &data,
        &[],
        b"CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO t VALUES (1);",
    );
    set_modes(&data, 0o555, 0o444);
    let mut plain = host::command(&data);
    if data.metadata().expect("it is there").uid() == 0 {
        // Root may write anywhere: another user it must be, who can reach the programs.
        let folder = scratch.dir("bin");
        for name in ["xtradb-host", "libxtradb.so"] {
            let from = crate::support::cc::artifact(name);
            std::fs::copy(from, folder.join(name)).expect("it can be copied");
        }
        let options: Vec<_> = plain
            .get_args()
            .map(|arg| arg.to_string_lossy().into_owned())
            .filter(|arg| !arg.starts_with("--plugin-dir"))
            .collect();
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        other.arg(folder.join("xtradb-host"));
        // The first option stays the first; of two plugin directories the last counts.
        other
            .args(options)
            .arg(format!("--plugin-dir={}", folder.display()));
        plain = other;
    }
    let output = run_script(plain.arg("--force"), b"SELECT * FROM d.t;");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("ibdata1") || errors.contains("ib_logfile0"),
        "{errors}"
    );
    set_modes(&data, 0o755, 0o644);
    let again = scratch.dir("again");
    copy_dir(&data, &again);
    assert_eq!(
        host::script_ok(&again, &[], b"SELECT * FROM d.t;"),
        b"id\n1\n"
    );
}

#[test]
fn rows_keys_values_and_variables_that_do_not_fit_are_refused_by_name() {
    let scratch = Scratch::new("unfit");
    let columns: Vec<String> = (0..40)
        .map(|n| format!("c{n} CHAR(250) CHARACTER SET latin1"))
        .collect();
    let script = format!(
        "CREATE DATABASE d; USE d;
        CREATE TABLE wide ({}) ENGINE=InnoDB;
        CREATE TABLE keyed (a VARCHAR(4000) CHARACTER SET latin1, UNIQUE KEY long_key (a)) ENGINE=InnoDB;
        CREATE TABLE t (id TINYINT PRIMARY KEY, v VARCHAR(5) NOT NULL, d DATE) ENGINE=InnoDB;
        INSERT INTO t VALUES (1, 'one', '2024-02-29');
        INSERT INTO t VALUES (200, 'two', NULL);
        INSERT INTO t VALUES (2, 'too long', NULL);
        INSERT INTO t VALUES (3, NULL, NULL);
        INSERT INTO t VALUES (4, 'x', '2023-02-30');
        INSERT INTO t VALUES (1, 'again', NULL);
        SET GLOBAL innodb_no_such = 1;
        SET GLOBAL innodb_default_row_format = 'many';
        SET GLOBAL innodb_page_size = 8192;
        SET GLOBAL innodb_io_capacity = 'many';
        SET GLOBAL innodb_io_capacity = 250.5;
        SET GLOBAL innodb_adaptive_hash_index = NULL;
        SET innodb_tmpdir = '/nonexistent';
        SET GLOBAL innodb_tmpdir = '/etc/passwd';
        SET innodb_tmpdir = '/tmp';
        SET GLOBAL innodb_io_capacity = 250;
        SELECT FROM t WHERE;
        SELECT * FROM nowhere;
        SELECT nothing FROM t;
        SELECT * FROM t;",
        columns.join(",")
    );
    let (out, errors, output) = forced(&mut host::command(scratch.path()), &script);
    let expected = [
        ("ERROR 1118 (42000)", "Row size too large"),
        ("ERROR 1071 (42000)", "Specified key was too long"),
        ("ERROR 1264 (22003)", "'id'"),
        ("ERROR 1406 (22001)", "'v'"),
        ("ERROR 1048 (23000)", "'v'"),
        ("ERROR 1292 (22007)", "'2023-02-30'"),
        ("ERROR 1062 (23000)", "'PRIMARY'"),
        ("ERROR 1193 (HY000)", "'innodb_no_such'"),
        ("ERROR 1231 (42000)", "'innodb_default_row_format'"),
        ("ERROR 1238 (HY000)", "'innodb_page_size'"),
        ("ERROR 1232 (42000)", "'innodb_io_capacity'"),
        ("ERROR 1232 (42000)", "'innodb_io_capacity'"),
        ("ERROR 1231 (42000)", "'NULL'"),
        ("ERROR 1231 (42000)", "'/nonexistent'"),
        ("ERROR 1231 (42000)", "'/etc/passwd'"),
        ("ERROR 1064 (42000)", "WHERE"),
        ("ERROR 1146 (42S02)", "d.nowhere"),
        ("ERROR 1054 (42S22)", "'nothing'"),
    ];
    let lines: Vec<&str> = errors
        .lines()
        .filter(|line| line.starts_with("ERROR"))
        .collect();
    assert_eq!(lines.len(), expected.len(), "{errors}");
    for (line, (code, object)) in lines.iter().zip(expected) {
        assert!(
            line.starts_with(code) && line.contains(object),
            "{code} {object}: {line}\n{errors}"
        );
    }
    assert_eq!(out, "id\tv\td\n1\tone\t2024-02-29\n");
    assert_eq!(output.status.code(), Some(0), "--force goes on");
    // Start values: out of range, and unknown, end the start with the variable's name.
    for (option, named) in [
        ("--innodb-page-size=5000", "innodb_page_size"),
        ("--innodb-no-such=1", "innodb-no-such"),
    ] {
        let output = run_script(host::command(scratch.path()).arg(option), b"SELECT 1;");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_named = errors.contains(named) || errors.contains(&named.replace('-', "_"));
        assert!(
            !output.status.success() && is_named,
            "{option}: {}\n{errors}",
            output.status
        );
    }
}

#[test]
fn more_tables_than_the_soft_limit_of_open_files_can_be_used() {
    let scratch = Scratch::new("files");
    let mut limited = through_shell("ulimit -S -n 64", &host::command(scratch.path()));
    let mut script = String::from("CREATE DATABASE d; USE d;");
    for n in 0..80 {
        script += &format!(
            "CREATE TABLE t{n} (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO t{n} VALUES ({n});"
        );
    }
    script += "SELECT id FROM t0; SELECT id FROM t79;";
    let (out, errors, output) = forced(&mut limited, &script);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(errors.matches("ERROR ").count(), 0, "{errors}");
    assert_eq!(out, "id\n0\nid\n79\n");
}

#[test]
fn chains_of_any_length_and_the_largest_enum_end_in_an_answer() {
    let scratch = Scratch::new("chains");
    let mut script = String::new();
    let links = ["+ 1", "AND 1", "OR 0", "IS NULL", "= 1", "+ INTERVAL 1 DAY"];
    for link in links {
        script += &format!("SELECT 1 {};", format!("{link} ").repeat(300_000));
    }
    // A long one that everybody may write.
    script += &format!("SELECT 1 {};", "+ 1 ".repeat(4999));
    script += "SELECT REPLACE(REPEAT('a', 1000000), 'a', REPEAT('b', 1000)) IS NULL;";
    let members: Vec<String> = (0..65535).map(|n| format!("'m{n}'")).collect();
    script += &format!(
        "CREATE DATABASE d; USE d; CREATE TABLE e (a ENUM({})) ENGINE=InnoDB;
        INSERT INTO e VALUES ('m65534'); SELECT a + 0 FROM e;
        CREATE TABLE twice (a ENUM({}, 'M7')) ENGINE=InnoDB;",
        members.join(","),
        members[..65000].join(","),
    );
    let mut command = host::command(scratch.path());
    let (out, errors, output) = forced(command.arg("--skip-column-names"), &script);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert_eq!(
        errors.matches("ERROR 1436").count(),
        links.len(),
        "{errors}"
    );
    assert!(errors.contains("duplicated value 'M7' in ENUM"), "{errors}");
    assert_eq!(out, "5000\n1\n65535\n");
}

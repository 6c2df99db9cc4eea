//! A file of a table is away after a crash: the start goes on, the others are served, and the log keeps what
//! was acknowledged of it until the file is back or the table is dropped.

use super::assert_sound;
use crate::corrupt::host as limited;
use crate::support::host::{Host, command, run_script, script_ok};
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::{self, Stock};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Errors end no script. Pages are written when the log asks for it, hardly before.
const OPTIONS: [&str; 5] = [
    "--force",
    "--innodb-log-file-size=4M",
    "--innodb-io-capacity=100",
    "--log-warnings=3",
    "--innodb-adaptive-flushing-lwm=70",
];

const DEFINITIONS: &str = "
CREATE TABLE first (id INT PRIMARY KEY, v INT, s VARCHAR(200), KEY (v)) ENGINE=InnoDB;
CREATE TABLE gone (id INT PRIMARY KEY, v INT, s VARCHAR(200), b MEDIUMBLOB, KEY (v)) ENGINE=InnoDB;
CREATE TABLE last (id INT PRIMARY KEY, v INT, s VARCHAR(200), b MEDIUMBLOB, KEY (s)) ENGINE=InnoDB;
";

/// Changes of all tables that are acknowledged, and behind the checkpoint.
const ACKNOWLEDGED: &str = "
SET GLOBAL innodb_log_checkpoint_now = ON;
UPDATE first SET v = v + 1 WHERE id % 3 = 0;
UPDATE gone SET v = v + 1000, s = REPEAT('g', id % 150) WHERE id % 2 = 0;
UPDATE gone SET b = REPEAT('blob', 9000) WHERE id < 4;
DELETE FROM gone WHERE id % 10 = 7;
INSERT INTO gone SELECT seq, seq, REPEAT('new', 30), NULL FROM seq_1001_to_2000;
DELETE FROM last WHERE id % 7 = 0;
";

/// A transaction that nobody sees: longer than the log buffer, so that the log has most of it.
const UNFINISHED: &str = "
BEGIN; UPDATE first SET s = 'unfinished' WHERE id < 300; DELETE FROM gone WHERE id % 3 = 1;
UPDATE gone SET v = 5, s = REPEAT('unfinished', 15); UPDATE last SET s = 'unfinished' WHERE id < 400;
";

const SELECTS: [(&str, &str); 3] = [
    ("first", "SELECT * FROM first ORDER BY id;"),
    ("gone", "SELECT id, v, s, MD5(b) FROM gone ORDER BY id;"),
    ("last", "SELECT * FROM last ORDER BY id;"),
];

struct Crashed {
    dir: PathBuf,
    rows: [Vec<u8>; 3],
}

fn rows(host: &mut Host, table: &str) -> Vec<u8> {
    let (_, select) = SELECTS
        .iter()
        .find(|(name, _)| *name == table)
        .expect("one of them");
    host.run(format!("USE d; {select}").as_bytes())
}

/// The directory that a kill left, and what was acknowledged. Made once.
fn crashed() -> &'static Crashed {
    static CRASHED: OnceLock<Crashed> = OnceLock::new();
    CRASHED.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("missing");
        let _ = fs::remove_dir_all(&root);
        let (played, dir) = (root.join("played"), root.join("crashed"));
        let fill = "INSERT INTO first SELECT seq, seq % 97, REPEAT('f', seq % 100) FROM seq_1_to_1000;
            INSERT INTO gone SELECT seq, seq % 89, REPEAT('g', seq % 100), REPEAT('b', 100) FROM seq_1_to_1000;
            INSERT INTO last SELECT seq, seq, REPEAT('l', seq % 100), NULL FROM seq_1_to_1000;";
        let script = format!("CREATE DATABASE d; USE d; {DEFINITIONS} {fill} {ACKNOWLEDGED}");
        // Asked in one directory, killed in the other: questions give the cleaner time.
        let [mut host, mut killed] = [&played, &dir].map(|dir| {
            fs::create_dir_all(dir).expect("the directory can be made");
            Host::start(dir, &OPTIONS)
        });
        host.run(script.as_bytes());
        let rows = SELECTS.map(|(table, _)| rows(&mut host, table));
        host.quit();
        killed.run((script + UNFINISHED).as_bytes());
        let errors = killed.errors();
        killed.kill();
        assert!(!errors.contains("ERROR "), "{errors}");
        Crashed { dir, rows }
    })
}

/// A copy without the file of `gone`, which is put aside.
fn without_the_file(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let dir = scratch.path().join("data");
    copy_dir(&crashed().dir, &dir);
    let aside = scratch.path().join("gone.ibd");
    fs::rename(dir.join("d/gone.ibd"), &aside).expect("the file can be moved");
    (dir, aside)
}

fn start(dir: &Path) -> Host {
    limited::start(dir, &OPTIONS)
}

/// The statements fail, each with an error that has the words.
fn refused(host: &mut Host, statements: &[&str], words: &[&str]) {
    for statement in statements {
        let before = host.errors().len();
        host.run(format!("USE d; {statement};").as_bytes());
        let said = host.errors()[before..].to_string();
        assert!(said.contains("ERROR "), "{statement} succeeded");
        for word in words {
            assert!(said.contains(word), "{statement}: no {word} in {said}");
        }
    }
}

fn accepted(host: &mut Host, statements: &str) -> String {
    let before = host.errors().len();
    let printed = host.run(format!("USE d; {statements}").as_bytes());
    let said = host.errors()[before..].to_string();
    assert!(!said.contains("ERROR "), "{statements:.200}: {said}");
    String::from_utf8_lossy(&printed).into_owned()
}

fn assert_rows(host: &mut Host, table: &str) {
    let at = SELECTS
        .iter()
        .position(|(name, _)| *name == table)
        .expect("one of them");
    super::assert_same(table, &rows(host, table), &crashed().rows[at]);
}

#[test]
fn nothing_of_a_missing_file_is_lost_and_the_others_go_on() {
    let scratch = Scratch::new("missing");
    let (dir, aside) = without_the_file(&scratch);
    let mut host = Host::start(&dir, &OPTIONS);
    for table in ["first", "last"] {
        assert_rows(&mut host, table);
        accepted(&mut host, &format!("CHECK TABLE {table} EXTENDED;"));
    }
    let said = host.errors();
    assert!(
        said.contains("d/gone.ibd") && said.contains("Put the file back"),
        "{said}"
    );
    refused(
        &mut host,
        &[
            "SELECT * FROM gone",
            "INSERT INTO gone (id) VALUES (1)",
            "TRUNCATE TABLE gone",
            "RENAME TABLE gone TO elsewhere",
        ],
        &["gone.ibd", "missing"],
    );
    accepted(&mut host, "UPDATE last SET v = 1; CREATE TABLE young (a INT PRIMARY KEY) ENGINE=InnoDB;
        INSERT INTO young VALUES (1); CREATE TABLE short (a INT PRIMARY KEY) ENGINE=InnoDB; DROP TABLE short;");
    // A second crash, with the file still away.
    host.kill();
    let mut host = start(&dir);
    assert_rows(&mut host, "first");
    accepted(
        &mut host,
        "UPDATE last SET v = v + 1; INSERT INTO young VALUES (2); RENAME TABLE young TO grown;",
    );
    host.quit();
    // Clean restarts, the second with a log of another size.
    for size in ["--innodb-log-file-size=4M", "--innodb-log-file-size=6M"] {
        let options = [OPTIONS[0], size, OPTIONS[3]];
        let mut host = limited::start(&dir, &options);
        accepted(&mut host, "UPDATE last SET v = v + 1;");
        refused(&mut host, &["SELECT * FROM gone"], &["gone.ibd"]);
        let (status, said) = host.end();
        assert!(status.success(), "{said}");
        assert!(said.contains("the redo log is kept for"), "{said}");
        assert!(!said.contains("ib_logfile0"), "{said}");
    }
    fs::rename(&aside, dir.join("d/gone.ibd")).expect("the file can be moved back");
    let mut host = start(&dir);
    for table in ["first", "gone"] {
        assert_rows(&mut host, table);
        assert_sound(&mut host, table);
    }
    assert_eq!(
        accepted(
            &mut host,
            "SELECT COUNT(*), MIN(v), MAX(v) FROM last; SELECT * FROM grown;"
        ),
        "COUNT(*)\tMIN(v)\tMAX(v)\n858\t4\t4\na\n1\n2\n"
    );
    accepted(
        &mut host,
        "UPDATE gone SET v = v + 1; DELETE FROM gone WHERE id > 1500;",
    );
    assert_sound(&mut host, "gone");
    let (status, said) = host.end();
    assert!(
        status.success() && !said.contains("the redo log is kept for"),
        "{said}"
    );
    stock_is_content(&dir, 1400);
}

/// The stock server takes the directory.
fn stock_is_content(dir: &Path, rows_of_gone: u32) {
    stock::lay_definitions("d", DEFINITIONS, &dir.join("d"));
    let stock = Stock::start(dir, &["--innodb-log-file-size=4M"]);
    let count = stock.sql("d", "SELECT COUNT(*) FROM gone");
    assert_eq!(count, format!("COUNT(*)\n{rows_of_gone}\n"));
    assert_eq!(stock.check_tables("d"), 3);
    stock.shutdown(false);
}

#[test]
fn the_stock_server_recovers_a_log_that_was_kept_for_a_missing_file() {
    let scratch = Scratch::new("missing-stock");
    let (dir, aside) = without_the_file(&scratch);
    for round in 1..3 {
        let mut host = Host::start(&dir, &OPTIONS);
        accepted(
            &mut host,
            &format!("UPDATE first SET v = {round} WHERE id = 1;"),
        );
        match round {
            1 => host.quit(),
            _ => host.kill(),
        }
    }
    fs::rename(&aside, dir.join("d/gone.ibd")).expect("the file can be moved back");
    stock_is_content(&dir, 1900);
}

#[test]
fn a_table_whose_file_is_missing_can_be_dropped() {
    let scratch = Scratch::new("drop-without-file");
    let (dir, aside) = without_the_file(&scratch);
    let mut host = Host::start(&dir, &OPTIONS);
    accepted(&mut host, "DROP TABLE gone;");
    // The deletion is in the log: the next start does not ask for the file, and nobody wants it back.
    host.kill();
    fs::copy(&aside, dir.join("d/gone.ibd")).expect("the file can be copied");
    let mut host = start(&dir);
    accepted(
        &mut host,
        "CREATE TABLE gone (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO gone VALUES (1);",
    );
    assert_rows(&mut host, "first");
    assert_rows(&mut host, "last");
    let (status, said) = host.end();
    assert!(
        status.success() && !said.contains("the redo log is kept for"),
        "{said}"
    );
    let mut host = start(&dir);
    assert_eq!(accepted(&mut host, "SELECT * FROM gone;"), "id\n1\n");
    let (_, said) = host.end();
    assert!(!said.contains("missing"), "{said}");
}

#[test]
fn forced_recovery_gives_the_changes_of_a_missing_file_up() {
    let scratch = Scratch::new("missing-force");
    let (dir, _) = without_the_file(&scratch);
    let force = [
        OPTIONS[0],
        OPTIONS[1],
        OPTIONS[3],
        "--innodb-force-recovery=1",
    ];
    let mut host = limited::start(&dir, &force);
    assert_rows(&mut host, "first");
    refused(&mut host, &["SELECT * FROM gone"], &["gone.ibd"]);
    let (status, said) = host.end();
    assert!(status.success() && said.contains("given up"), "{said}");
    let mut host = start(&dir);
    assert_rows(&mut host, "last");
    let (_, said) = host.end();
    assert!(!said.contains("Put the file back"), "{said}");
}

/// Changes of one statement: some 250 KB of log.
const CHANGE: &str =
    "UPDATE last SET b = REPEAT(CHAR(97 + RAND() * 20), 60000) WHERE id IN (1, 2, 3, 4)";
/// The same in many small pieces.
const ROWS: &str = "UPDATE last SET s = REPEAT(CHAR(97 + RAND() * 20), 190) WHERE id <= 400";

/// Runs statements, large ones and then small ones, until there is no room for them. How many large ones
/// there were.
fn fill(host: &mut Host) -> u32 {
    let small = "UPDATE last SET v = v + 1 WHERE id < 150";
    let (mut statements, mut large) = (0, 0);
    for change in [CHANGE, small] {
        let before = host.errors().len();
        while !host.errors()[before..].contains("ERROR ") {
            host.run(format!("USE d; {change};").as_bytes());
            statements += 1;
            large += u32::from(change == CHANGE);
            assert!(statements < 400, "the log does not fill: {}", host.errors());
        }
    }
    large
}

#[test]
fn a_log_that_is_full_for_a_missing_file_says_so_and_a_drop_helps() {
    let scratch = Scratch::new("missing-full");
    let (dir, aside) = without_the_file(&scratch);
    let mut host = start(&dir);
    let large = fill(&mut host);
    let words = [
        "ERROR 1114 (HY000)",
        "redo log",
        "d/gone.ibd",
        "drop its table",
    ];
    refused(
        &mut host,
        &[
            CHANGE,
            "INSERT INTO first VALUES (5000, 1, 'x')",
            "DELETE FROM first",
        ],
        &words,
    );
    // Reads go on, and what failed left nothing.
    assert_rows(&mut host, "first");
    accepted(
        &mut host,
        "BEGIN; SELECT COUNT(*) FROM last; ROLLBACK; CHECK TABLE first; CHECK TABLE last EXTENDED;",
    );
    host.quit();
    // Hardly more room after a restart, and nothing lost.
    let mut host = start(&dir);
    fill(&mut host);
    refused(&mut host, &[CHANGE], &words);
    host.quit();
    let other = scratch.path().join("other");
    copy_dir(&dir, &other);
    let mut host = start(&dir);
    accepted(&mut host, "DROP TABLE gone;");
    // More than fits without a checkpoint.
    for _ in 0..2 * large + 2 {
        accepted(&mut host, &format!("{CHANGE};"));
    }
    assert_rows(&mut host, "first");
    assert_sound(&mut host, "last");
    let (status, said) = host.end();
    assert!(
        status.success() && !said.contains("the redo log is kept for"),
        "{said}"
    );
    fs::rename(&aside, other.join("d/gone.ibd")).expect("the file can be moved back");
    let mut host = start(&other);
    for table in ["first", "gone"] {
        assert_rows(&mut host, table);
        assert_sound(&mut host, table);
    }
    accepted(&mut host, &format!("{CHANGE};"));
    host.quit();
}

#[test]
fn a_transaction_that_fills_the_log_can_be_rolled_back() {
    let scratch = Scratch::new("missing-rollback");
    let (dir, _) = without_the_file(&scratch);
    let mut host = start(&dir);
    let mut script = String::from(
        "USE d; BEGIN; INSERT INTO first SELECT seq, 1, REPEAT('x', 190) FROM seq_2001_to_2500;",
    );
    for _ in 0..25 {
        script += ROWS;
        script += "; ";
    }
    host.run(script.as_bytes());
    assert!(host.errors().contains("ERROR 1114"), "{}", host.errors());
    accepted(&mut host, "ROLLBACK;");
    for table in ["first", "last"] {
        assert_rows(&mut host, table);
        assert_sound(&mut host, table);
    }
    host.quit();
}

/// The start ends, and says which file it is.
fn does_not_start(datadir: &Path, word: &str) {
    let output = run_script(&mut command(datadir), b"SELECT 1;");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "started:\n{errors}");
    assert!(errors.contains(word), "{word}:\n{errors}");
}

#[test]
fn an_undo_tablespace_that_is_away_or_no_file_is_named() {
    let scratch = Scratch::new("missing-undo");
    let datadir = scratch.dir("d");
    script_ok(&datadir, &["--innodb-undo-tablespaces=2"], b"SELECT 1;");
    let (undo, away) = (datadir.join("undo002"), scratch.path().join("undo002"));
    fs::rename(&undo, &away).expect("the file is there");
    does_not_start(&datadir, "undo001 and so on");
    // A FIFO without a writer: whoever opens it as a file waits.
    let made = Command::new("mkfifo").arg(&undo).status();
    assert!(made.expect("mkfifo runs").success());
    does_not_start(&datadir, "undo002");
    fs::remove_file(&undo).expect("it is there");
    fs::rename(&away, &undo).expect("the file is there");
    script_ok(&datadir, &[], b"SELECT 1;");
}

//! Damage: whatever happens to the bytes of a data directory, the host answers with the same rows or with an
//! error, goes on with the other tables, and never crashes.

use crate::support::host::{self, Host};
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::seed::Rng;
use crate::support::workload;
use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

const DAMAGES: u32 = 500;
const PAGE: usize = 16384;
const HOST: [&str; 3] = [
    "--force",
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=4M",
];

/// What is asked after each damage: database, table, query.
const QUERIES: [(&str, &str, &str); 14] = [
    ("grown", "big", "SELECT * FROM big ORDER BY id"),
    (
        "grown",
        "big",
        "SELECT k, id FROM big WHERE k BETWEEN 100 AND 400 ORDER BY k, id",
    ),
    (
        "grown",
        "scattered",
        "SELECT * FROM scattered ORDER BY a, b",
    ),
    ("grown", "hidden", "SELECT * FROM hidden"),
    ("grown", "blobs", "SELECT * FROM blobs ORDER BY id"),
    ("grown", "old_blobs", "SELECT * FROM old_blobs ORDER BY id"),
    ("shop", "customers", "SELECT * FROM customers ORDER BY id"),
    (
        "shop",
        "customers",
        "SELECT id FROM customers WHERE email = 'customer77@example.org'",
    ),
    ("shop", "products", "SELECT * FROM products ORDER BY sku"),
    ("shop", "orders", "SELECT * FROM orders ORDER BY id"),
    (
        "shop",
        "order_lines",
        "SELECT * FROM order_lines ORDER BY order_id, line",
    ),
    ("shop", "visits", "SELECT * FROM visits"),
    (
        "shop",
        "documents-2",
        "SELECT * FROM `documents-2` ORDER BY id",
    ),
    ("shop", "every_type", "SELECT * FROM every_type ORDER BY id"),
];

#[derive(Clone, Copy, Debug)]
enum Kind {
    FlipBit,
    ZeroPage,
    RandomBytes,
    SwapPages,
    PageOfAnotherFile,
    RepeatPage,
    Truncate,
    CutInPage,
    Empty,
    Remove,
    AnotherFile,
    Append,
}

/// Most damages hit one page; the rest hit the file as a whole.
const PAGE_KINDS: [Kind; 8] = [
    Kind::FlipBit,
    Kind::FlipBit,
    Kind::FlipBit,
    Kind::ZeroPage,
    Kind::RandomBytes,
    Kind::SwapPages,
    Kind::PageOfAnotherFile,
    Kind::RepeatPage,
];
const FILE_KINDS: [Kind; 6] = [
    Kind::Truncate,
    Kind::CutInPage,
    Kind::Empty,
    Kind::Remove,
    Kind::AnotherFile,
    Kind::Append,
];

struct Damage {
    kind: Kind,
    /// Relative to the data directory.
    file: PathBuf,
    page: usize,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} of {} page {}",
            self.kind,
            self.file.display(),
            self.page
        )
    }
}

impl Damage {
    /// Whether it hit the file of one table alone.
    fn is_of_a_table(&self) -> bool {
        self.file
            .extension()
            .is_some_and(|extension| extension == "ibd")
    }

    fn table(&self) -> String {
        let stem = self
            .file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        stem.replace("@002d", "-")
    }
}

fn table_files(datadir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for database in ["grown", "shop"] {
        for entry in fs::read_dir(datadir.join(database)).expect("the folder can be listed") {
            let name =
                PathBuf::from(database).join(entry.expect("the entry can be read").file_name());
            if name.extension().is_some_and(|extension| extension == "ibd") {
                files.push(name);
            }
        }
    }
    files.sort();
    files
}

fn damage(datadir: &Path, rng: &mut Rng) -> Damage {
    let tables = table_files(datadir);
    let file = match rng.below(20) {
        0 => PathBuf::from("ibdata1"),
        1 => PathBuf::from("ib_logfile0"),
        _ => rng.pick(&tables).clone(),
    };
    let path = datadir.join(&file);
    let mut bytes = fs::read(&path).expect("the file can be read");
    let pages = bytes.len() / PAGE;
    let page = rng.below(pages as u64) as usize;
    let at = page * PAGE;
    let kind = *if rng.below(5) < 4 {
        rng.pick(&PAGE_KINDS)
    } else {
        rng.pick(&FILE_KINDS)
    };
    match kind {
        Kind::FlipBit => bytes[at + rng.below(PAGE as u64) as usize] ^= 1 << rng.below(8),
        Kind::ZeroPage => bytes[at..at + PAGE].fill(0),
        Kind::RandomBytes => {
            let from = at + rng.below(PAGE as u64 - 16) as usize;
            let length = (rng.between(1, 512) as usize).min(at + PAGE - from);
            bytes[from..from + length].fill_with(|| rng.next() as u8);
        }
        Kind::SwapPages => {
            let other = rng.below(pages as u64) as usize * PAGE;
            let copy = bytes[at..at + PAGE].to_vec();
            bytes.copy_within(other..other + PAGE, at);
            bytes[other..other + PAGE].copy_from_slice(&copy);
        }
        Kind::PageOfAnotherFile => {
            let other = fs::read(datadir.join(rng.pick(&tables))).expect("the file can be read");
            let from = rng.below((other.len() / PAGE) as u64) as usize * PAGE;
            bytes[at..at + PAGE].copy_from_slice(&other[from..from + PAGE]);
        }
        Kind::RepeatPage => {
            let from = rng.below(pages as u64) as usize * PAGE;
            bytes.copy_within(from..from + PAGE, at);
        }
        Kind::Truncate => bytes.truncate(at),
        Kind::CutInPage => bytes.truncate(at + rng.below(PAGE as u64) as usize),
        Kind::Empty => bytes.clear(),
        Kind::Remove | Kind::AnotherFile => {}
        Kind::Append => bytes.extend((0..rng.between(1, 40_000)).map(|_| rng.next() as u8)),
    }
    match kind {
        Kind::Remove => fs::remove_file(&path).expect("the file can be removed"),
        Kind::AnotherFile => {
            fs::copy(datadir.join(rng.pick(&tables)), &path).expect("the file can be copied");
        }
        _ => fs::write(&path, &bytes).expect("the file can be written"),
    }
    Damage { kind, file, page }
}

/// How one damaged directory fared.
#[derive(Default)]
struct Tally {
    same: u32,
    errors: u32,
    refused: u32,
}

fn assert_no_crash(status: ExitStatus, damage: &Damage, errors: &str) {
    assert!(
        status.signal().is_none() && status.code().is_some_and(|code| code < 128),
        "{damage}: the host crashed with {status}\n{errors}"
    );
}

/// True if `rows` are the first lines of `expected`.
fn is_beginning(rows: &[u8], expected: &[u8]) -> bool {
    expected.starts_with(rows) && (rows.is_empty() || rows.ends_with(b"\n"))
}

fn ask(datadir: &Path, damage: &Damage, expected: &[Vec<u8>], tally: &mut Tally) {
    let mut host = Host::start(datadir, &HOST);
    for ((database, table, query), expected) in QUERIES.iter().zip(expected) {
        let before = host.errors().len();
        let rows = match host.try_run(format!("USE {database}; {query};").as_bytes()) {
            Ok(rows) => rows,
            Err(status) => {
                let errors = host.errors();
                assert_no_crash(status, damage, &errors);
                assert!(
                    !damage.is_of_a_table(),
                    "{damage}: a table's file ended the host: {status}\n{errors}"
                );
                assert!(
                    errors.len() > 20,
                    "{damage}: the host did not start and gave no reason"
                );
                tally.refused += 1;
                return;
            }
        };
        let errors = host.errors()[before..].to_string();
        if rows == *expected {
            tally.same += 1;
            continue;
        }
        assert!(
            errors.contains("ERROR"),
            "{damage}: {query} gave other rows and no error\n{errors}"
        );
        assert!(
            is_beginning(&rows, expected),
            "{damage}: {query} gave wrong rows before its error\n{errors}"
        );
        assert!(
            !damage.is_of_a_table() || damage.table() == *table,
            "{damage}: {database}.{table} suffers from another table's damage\n{errors}"
        );
        assert!(
            errors.contains(table) || errors.contains(&table.replace('-', "@002d")),
            "{damage}: the error of {query} does not name the table\n{errors}"
        );
        tally.errors += 1;
    }
    // Writing to the damaged table and shutting down must not crash either.
    if damage.is_of_a_table() {
        let database = damage
            .file
            .parent()
            .unwrap_or(Path::new(""))
            .display()
            .to_string();
        let statement = format!(
            "USE {database}; DELETE FROM `{0}` LIMIT 50; CHECK TABLE `{0}`;",
            damage.table()
        );
        if let Err(status) = host.try_run(statement.as_bytes()) {
            panic!(
                "{damage}: writing ended the host: {status}\n{}",
                host.errors()
            );
        }
    }
    let (status, errors) = host.end();
    assert_no_crash(status, damage, &errors);
}

#[test]
#[ignore = "open: the first third holds, the rest was never run to its end (docs/state.md)"]
fn a_damaged_directory_gives_the_same_rows_or_an_error() {
    let mut rng = Rng::announced("damage");
    let scratch = Scratch::new("damage");
    let sound = scratch.dir("sound");
    host::script_ok(
        &sound,
        &HOST[1..],
        workload::grown(3000, 3).script().as_bytes(),
    );
    host::script_ok(&sound, &HOST[1..], &workload::shop_dump());
    let mut host = Host::start(&sound, &HOST);
    let expected: Vec<Vec<u8>> = QUERIES
        .iter()
        .map(|(database, _, query)| host.run(format!("USE {database}; {query};").as_bytes()))
        .collect();
    host.quit();
    let mut tally = Tally::default();
    for number in 1..=DAMAGES {
        let seed = rng.next();
        let datadir = scratch.path().join("damaged");
        copy_dir(&sound, &datadir);
        let damage = damage(&datadir, &mut Rng::new(seed));
        println!("{number} (seed {seed}): {damage}");
        ask(&datadir, &damage, &expected, &mut tally);
        fs::remove_dir_all(&datadir).expect("the directory can be removed");
    }
    println!(
        "{} same, {} errors, {} starts refused",
        tally.same, tally.errors, tally.refused
    );
    assert!(tally.errors > DAMAGES / 4, "the damages hardly showed");
}

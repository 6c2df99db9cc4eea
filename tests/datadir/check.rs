//! CHECK TABLE on a damaged secondary index: pages that are sound in themselves, and say something
//! else than the rows.

use crate::support::host::{Host, script_ok};
use crate::support::scratch::Scratch;
use std::fs;
use std::path::Path;
use xtradb::format::checksum::{Flavour, stamp};

const PAGE: usize = 16384;
const ROWS: u32 = 300;

/// `d.t`, with the row n: (n, n * 10, 'word<n>').
fn make_table(datadir: &Path) {
    let mut script = String::from(
        "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, \
         w VARCHAR(20) CHARACTER SET latin1 NOT NULL, KEY k (k), KEY w (w)) ENGINE=InnoDB; \
         INSERT INTO t VALUES ",
    );
    let rows: Vec<String> = (1..=ROWS)
        .map(|n| format!("({n},{},'word{n}')", n * 10))
        .collect();
    script += &rows.join(",");
    script.push_str(";\n");
    script_ok(datadir, &[], script.as_bytes());
}

fn int(n: u32) -> [u8; 4] {
    (n | 1 << 31).to_be_bytes()
}

/// Changes the one place of the file where `entry` stands; the page gets its checksum.
fn change_entry(datadir: &Path, entry: &[u8], change: impl Fn(&mut [u8], usize)) {
    let path = datadir.join("d/t.ibd");
    let mut file = fs::read(&path).expect("the table's file");
    let places: Vec<usize> = (0..file.len() - entry.len())
        .filter(|&at| file[at..].starts_with(entry))
        .collect();
    assert_eq!(places.len(), 1, "the entry stands in one place");
    let page = &mut file[places[0] / PAGE * PAGE..][..PAGE];
    change(page, places[0] % PAGE);
    stamp(page, Flavour::FullCrc32);
    fs::write(&path, &file).expect("the file can be written");
}

/// What plain and EXTENDED say.
fn checked(datadir: &Path) -> (String, String) {
    let mut host = Host::start(datadir, &["--force"]);
    host.run(b"USE d;");
    let mut check = |sql: &[u8]| String::from_utf8_lossy(&host.run(sql)).into_owned();
    let plain = check(b"CHECK TABLE t;");
    let extended = check(b"CHECK TABLE t EXTENDED;");
    assert_eq!(
        check(b"SELECT SUM(k) FROM t WHERE id < 1000;"),
        format!("SUM(k)\n{}\n", ROWS * (ROWS + 1) * 5)
    );
    host.quit();
    (plain, extended)
}

const OK: &str = "check\tstatus\tOK\n";

#[test]
fn an_entry_with_another_key_is_found_by_a_row_by_row_check() {
    let scratch = Scratch::new("check-key");
    let datadir = scratch.dir("data");
    make_table(&datadir);
    let entry = [int(1000), int(100)].concat();
    change_entry(&datadir, &entry, |page, at| {
        page[at..at + 4].copy_from_slice(&int(1001));
    });
    let (plain, extended) = checked(&datadir);
    assert!(plain.ends_with(OK), "the numbers agree: {plain}");
    let wanted = "index k has no entry for the row (80000064)";
    assert!(extended.contains(wanted), "{extended}");
}

#[test]
fn a_deleted_entry_of_a_row_is_found_by_its_number_and_by_its_row() {
    let scratch = Scratch::new("check-mark");
    let datadir = scratch.dir("data");
    make_table(&datadir);
    let entry = [int(2000), int(200)].concat();
    change_entry(&datadir, &entry, |page, at| page[at - 5] |= 0x20);
    let (plain, extended) = checked(&datadir);
    let wanted = "index k has 299 entries, the table 300 rows";
    assert!(plain.contains(wanted), "{plain}");
    let wanted = "index k: the entry of the row (800000c8) is deleted";
    assert!(extended.contains(wanted), "{extended}");
}

#[test]
fn an_entry_that_is_equal_only_in_the_collation_is_found() {
    let scratch = Scratch::new("check-bytes");
    let datadir = scratch.dir("data");
    make_table(&datadir);
    let entry = [&b"word50"[..], &int(50)].concat();
    change_entry(&datadir, &entry, |page, at| page[at] = b'W');
    let (plain, extended) = checked(&datadir);
    assert!(plain.ends_with(OK), "the numbers agree: {plain}");
    let wanted = "index w: the entry of the row (80000032) has another value";
    assert!(extended.contains(wanted), "{extended}");
}

#[test]
fn a_check_inside_a_transaction_sees_what_the_transaction_sees() {
    let scratch = Scratch::new("check-own");
    let datadir = scratch.dir("data");
    make_table(&datadir);
    let script =
        b"USE d; BEGIN; DELETE FROM t WHERE id < 100; UPDATE t SET k = k + 1 WHERE id > 250; \
        INSERT INTO t VALUES (1000, 1, 'new'); CHECK TABLE t; CHECK TABLE t EXTENDED; ROLLBACK; \
        CHECK TABLE t EXTENDED;\n";
    let said = script_ok(&datadir, &[], script);
    let said = String::from_utf8_lossy(&said);
    assert_eq!(said.matches(OK).count(), 3, "{said}");
}

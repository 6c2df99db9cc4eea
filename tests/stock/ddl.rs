//! Tables made here against the same tables made by the stock server: what the two dictionaries say,
//! and what the stock server does with ours.

use crate::support::host;
use crate::support::scratch::{Scratch, copy_dir};
use crate::support::stock::{Stock, lay_definitions};
use crate::support::{checkers, samples};
use std::collections::BTreeMap;
use std::path::Path;

/// The CREATE TABLE of a sample, geometry left out: the host has no such columns.
fn definition(table: &str) -> String {
    let sql = samples::text(&format!("{table}.sql"));
    let begin = sql.find("CREATE TABLE").expect("a definition");
    let end = sql[begin..].find(';').expect("its end") + begin;
    let text = sql[begin..=end].replace(", pt POINT, ge GEOMETRY", "");
    format!("{text}\n")
}

fn definitions() -> String {
    let samples = [
        "s_types",
        "s_dynamic",
        "s_compact",
        "s_redundant",
        "s_noprimary",
        "s_blob_dynamic",
        "s_blob_compact",
        "s_blob_redundant",
    ];
    let mut all: String = samples.map(definition).concat();
    all += "CREATE TABLE k1 (a INT NOT NULL, b VARCHAR(20) NOT NULL, c INT, UNIQUE KEY uc (c), \
            UNIQUE KEY ub (b), KEY ac (a, c DESC)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3;\n\
            CREATE TABLE k2 (a VARCHAR(300), b VARBINARY(300), c VARCHAR(64), PRIMARY KEY (c(10), a), \
            KEY kb (b(5), a(7) DESC)) ENGINE=InnoDB DEFAULT CHARSET=latin1;\n\
            CREATE TABLE k3 (a BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, e SET('a','b'), \
            f DOUBLE UNSIGNED, g DECIMAL(30,10) UNSIGNED, h LONGTEXT, i MEDIUMBLOB, j TINYTEXT, \
            k CHAR(20)) ENGINE=InnoDB AUTO_INCREMENT=100 DEFAULT CHARSET=utf8mb4 \
            COLLATE=utf8mb4_bin;\n";
    all
}

/// The dictionary's rows by table name, ids, places and transactions left out.
fn dictionary(datadir: &Path) -> BTreeMap<String, Vec<String>> {
    let file = datadir.join("ibdata1");
    let dump = checkers::ibdump(&[&file.to_string_lossy(), "dict"]);
    let mut names = BTreeMap::new();
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut part = "";
    for line in dump.lines() {
        if let Some(title) = line.strip_prefix("== ") {
            part = title;
            continue;
        }
        let fields: BTreeMap<&str, &str> =
            line.split('\t').filter_map(|f| f.split_once('=')).collect();
        let told = |wanted: &[&str]| {
            let told: Vec<String> = wanted
                .iter()
                .map(|&w| format!("{w}={}", fields[w]))
                .collect();
            format!("{part} {}", told.join(" "))
        };
        let (owner, text) = match part {
            "SYS_TABLES" => {
                let name = fields["NAME"].to_string();
                names.insert(("table", fields["ID"]), name.clone());
                (name, told(&["N_COLS", "TYPE", "MIX_LEN"]))
            }
            "SYS_COLUMNS" => {
                let name = names[&("table", fields["TABLE_ID"])].clone();
                let columns = ["POS", "NAME", "MTYPE", "PRTYPE", "LEN", "PREC"];
                (name, told(&columns))
            }
            "SYS_INDEXES" => {
                let name = names[&("table", fields["TABLE_ID"])].clone();
                names.insert(("index", fields["ID"]), name.clone());
                (
                    name,
                    told(&["NAME", "N_FIELDS", "TYPE", "PAGE_NO", "MERGE_THRESHOLD"]),
                )
            }
            "SYS_FIELDS" => {
                let name = names[&("index", fields["INDEX_ID"])].clone();
                (name, told(&["POS", "COL_NAME"]))
            }
            _ => continue,
        };
        tables.entry(owner).or_default().push(text);
    }
    tables.retain(|name, _| name.starts_with("d/"));
    tables
}

#[test]
fn tables_made_here_are_in_the_dictionary_as_the_stock_server_would_have_them() {
    let scratch = Scratch::new("ddl");
    let sql = definitions();
    let theirs = scratch.dir("theirs");
    let stock = Stock::start(&theirs, &[]);
    stock.sql("", "CREATE DATABASE d");
    stock.sql("d", &sql);
    stock.shutdown(false);
    let ours = scratch.dir("ours");
    let script = format!("CREATE DATABASE d; USE d;\n{sql}");
    host::script_ok(&ours, &[], script.as_bytes());
    let (theirs, ours_rows) = (dictionary(&theirs), dictionary(&ours));
    assert_eq!(theirs.len(), 11);
    for (name, rows) in &theirs {
        let found = ours_rows.get(name).map_or(&[][..], Vec::as_slice);
        assert_eq!(&rows[..], found, "{name}");
    }
    checkers::check_data_dir(&ours).expect("no checker complains");
    lay_definitions("d", &sql, &ours.join("d"));
    let stock = Stock::start(&ours, &[]);
    assert_eq!(stock.check_tables("d"), 11);
    stock.sql(
        "d",
        "INSERT INTO k3 (k) VALUES ('x'); INSERT INTO s_types (id) VALUES (7)",
    );
    assert_eq!(stock.sql("d", "SELECT a FROM k3"), "a\n100\n");
    stock.sql(
        "d",
        "TRUNCATE k1; DROP TABLE k2; RENAME TABLE s_types TO types",
    );
    stock.shutdown(false);
    let said = host::script_ok(&ours, &[], b"USE d; SELECT a, k FROM k3;");
    assert_eq!(String::from_utf8_lossy(&said), "a\tk\n100\tx\n");
}

#[test]
fn both_engines_finish_or_undo_ddl_that_a_kill_cut_short() {
    let scratch = Scratch::new("ddl-kill");
    for (round, wait_ms) in [150, 400, 700].into_iter().enumerate() {
        let datadir = scratch.dir(&format!("data{round}"));
        host::script_ok(&datadir, &[], b"CREATE DATABASE d;");
        let mut script = String::from("USE d;\n");
        for i in 0..400 {
            let (a, b) = (i % 5, (i + 2) % 5);
            script += &format!(
                "DROP TABLE IF EXISTS t{a}; CREATE TABLE t{a} (a INT PRIMARY KEY, b BLOB, KEY (b(9)));\n\
                 INSERT INTO t{a} VALUES (1, REPEAT('x', 30000)), (2, 'y'); TRUNCATE t{a};\n\
                 DROP TABLE IF EXISTS r{b}; RENAME TABLE t{a} TO r{b};\n"
            );
        }
        let mut living = host::Host::start(&datadir, &[]);
        let begin = std::time::Instant::now();
        let statements: Vec<&str> = script.split_inclusive(";\n").collect();
        for group in statements.chunks(2) {
            if begin.elapsed().as_millis() > wait_ms {
                break;
            }
            living.run(group.concat().as_bytes());
        }
        living.kill();
        let own = scratch.path().join(format!("own{round}"));
        copy_dir(&datadir, &own);
        host::script_ok(&own, &[], b"USE d; SHOW TABLES;");
        every_table_has_its_file(&own);
        let stock = Stock::start(&datadir, &[]);
        let files = "SELECT t.NAME, s.FILENAME FROM information_schema.INNODB_SYS_TABLES t \
                     LEFT JOIN information_schema.INNODB_SYS_TABLESPACES s USING (SPACE) \
                     WHERE t.NAME LIKE 'd/%' ORDER BY 1";
        let found = stock.sql("", files);
        for line in found.lines().skip(1) {
            let (name, file) = line.split_once('\t').expect("two columns");
            assert_eq!(file, format!("./{name}.ibd"), "{found}");
        }
        let log = stock.log();
        assert!(!log.contains("[ERROR]"), "{log}");
        stock.shutdown(false);
        every_table_has_its_file(&datadir);
    }
}

/// No file without a table, no table without a file.
fn every_table_has_its_file(datadir: &Path) {
    let tables = dictionary(datadir);
    let mut named: Vec<String> = tables.keys().map(|n| format!("{}.ibd", &n[2..])).collect();
    named.sort();
    let mut there: Vec<String> = std::fs::read_dir(datadir.join("d"))
        .expect("the database")
        .map(|f| {
            f.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|f| f.ends_with(".ibd"))
        .collect();
    there.sort();
    assert_eq!(named, there);
    checkers::check_data_dir(datadir).expect("no checker complains");
}

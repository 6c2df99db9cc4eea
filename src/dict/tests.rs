//! The stock server's dictionaries against what it, and an independent reader, say is in them.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use super::open_table::OpenTable;
use super::system_tables::{self, ColumnRow, FieldRow, IndexRow, TableRow, scan};
use super::testing::{SampleDir, sample, sample_bytes};
use crate::page::RecordView;
use crate::schema::{RowFormat, Tuple};
use crate::words::Error;

fn text(name: &str) -> String {
    String::from_utf8(sample_bytes(name)).expect("a text")
}

/// Every live row of a table as lines by `line`.
fn lines(
    bed: &SampleDir,
    table: &OpenTable,
    mut line: impl FnMut(&RecordView<'_>) -> String,
) -> Vec<String> {
    let mut all = Vec::new();
    scan(&bed.ctx, table.clustered(), &Tuple::new(), &mut |view| {
        if !view.is_deleted() {
            all.push(line(view));
        }
        Ok(ControlFlow::Continue(()))
    })
    .expect("a sound table");
    all
}

/// The dictionary as `ibdump.py` prints it.
fn dump(bed: &SampleDir) -> String {
    let sys = bed.dict.system();
    let mut out = String::from("== SYS_TABLES\n");
    for line in lines(bed, &sys.tables, |view| {
        let row = TableRow::parse(view).expect("a row");
        format!(
            "NAME={}\tDB_TRX_ID={}\tID={}\tN_COLS={}\tTYPE={}\tMIX_ID=\tMIX_LEN={}\t\
             CLUSTER_NAME=None\tSPACE={}",
            row.name, row.trx_id, row.id, row.n_cols, row.flags, row.mix_len, row.space
        )
    }) {
        writeln!(out, "{line}").expect("memory");
    }
    let id_of = |view: &RecordView<'_>| {
        u64::from_be_bytes(view.field(0).bytes().expect("an id").try_into().expect("8"))
    };
    let trx = |view: &RecordView<'_>| view.trx_id().expect("DB_TRX_ID");
    out += "== SYS_COLUMNS\n";
    for line in lines(bed, &sys.columns, |view| {
        let c = ColumnRow::parse(view).expect("a row");
        format!(
            "TABLE_ID={}\tPOS={}\tDB_TRX_ID={}\tNAME={}\tMTYPE={}\tPRTYPE={}\tLEN={}\tPREC={}",
            id_of(view),
            c.pos,
            trx(view),
            c.name,
            c.mtype,
            c.prtype,
            c.len,
            c.prec
        )
    }) {
        writeln!(out, "{line}").expect("memory");
    }
    out += "== SYS_INDEXES\n";
    for line in lines(bed, &sys.indexes, |view| {
        let i = IndexRow::parse(view).expect("a row");
        format!(
            "TABLE_ID={}\tID={}\tDB_TRX_ID={}\tNAME={}\tN_FIELDS={}\tTYPE={}\tSPACE={}\t\
             PAGE_NO={}\tMERGE_THRESHOLD={}",
            i.table,
            i.id,
            trx(view),
            i.name,
            i.n_fields,
            i.ty,
            i.space,
            i.root,
            i.merge_threshold
        )
    }) {
        writeln!(out, "{line}").expect("memory");
    }
    out += "== SYS_FIELDS\n";
    for line in lines(bed, &sys.fields, |view| {
        let f = FieldRow::parse(view).expect("a row");
        format!(
            "INDEX_ID={}\tPOS={}\tDB_TRX_ID={}\tCOL_NAME={}",
            id_of(view),
            f.pos,
            trx(view),
            f.column
        )
    }) {
        writeln!(out, "{line}").expect("memory");
    }
    out
}

/// The part of a dump that `dump` makes.
fn first_four(dump: &str) -> &str {
    &dump[..dump.find("== SYS_FOREIGN\n").expect("the fifth table")]
}

#[test]
fn the_hard_wired_tables_hold_what_an_independent_reader_finds() {
    for name in ["fresh", "mini"] {
        let bed = SampleDir::open(name);
        let expected = text(&format!("{name}/dict.txt"));
        assert_eq!(dump(&bed), first_four(&expected), "{name}");
    }
}

#[test]
fn every_table_of_the_stock_server_is_defined_as_it_says() {
    let bed = SampleDir::open("mini");
    let tsv = text("mini/INNODB_SYS_TABLES.tsv");
    let indexes = text("mini/INNODB_SYS_INDEXES.tsv");
    let columns = text("mini/INNODB_SYS_COLUMNS.tsv");
    let mut seen = 0;
    for line in tsv.lines().skip(1) {
        let f: Vec<&str> = line.split('\t').collect();
        let (id, name, n_cols, format) = (f[0], f[1], f[3], f[5]);
        let def = bed.dict.definition(&bed.ctx, name).expect(name);
        assert_eq!(def.id.0.to_string(), id);
        assert_eq!(format!("{:?}", def.format), format, "{name}");
        // The server counts the three system columns.
        assert_eq!(def.columns.len().to_string(), n_cols, "{name}");
        let of_table = |line: &&str| line.split('\t').nth(2) == Some(id);
        let mut expected: Vec<String> = indexes
            .lines()
            .filter(of_table)
            .map(|l| l.split('\t').take(6).collect::<Vec<_>>().join("\t"))
            .collect();
        let mut found: Vec<String> = def
            .indexes
            .iter()
            .map(|i| {
                let root = i.root.some().map_or("NULL".into(), |r| r.to_string());
                format!(
                    "{}\t{}\t{id}\t{}\t{}\t{root}",
                    i.id, i.name, i.ty.0, i.n_user_fields
                )
            })
            .collect();
        expected.sort();
        found.sort();
        let same_but_root = |a: &String, b: &String| {
            a == b || a.rsplit_once('\t').map(|x| x.0) == b.rsplit_once('\t').map(|x| x.0)
        };
        assert_eq!(
            expected.len(),
            found.len(),
            "{name}: {expected:?} {found:?}"
        );
        for (a, b) in expected.iter().zip(&found) {
            assert!(same_but_root(a, b), "{name}: {a} {b}");
        }
        let n_columns = columns.lines().filter(|l| l.split('\t').next() == Some(id));
        assert_eq!(
            n_columns.count(),
            def.n_stored() + def.virtual_columns.len(),
            "{name}"
        );
        seen += 1;
    }
    assert_eq!(seen, bed.dict.table_rows(&bed.ctx).expect("rows").len());
}

/// Records of the clustered index, delete-marked and metadata ones left out.
fn count_rows(bed: &SampleDir, table: &OpenTable) -> usize {
    lines(bed, table, |view| {
        for field in view.fields() {
            assert!(field.len() < 16384);
        }
        String::new()
    })
    .len()
}

#[test]
fn every_table_of_the_sample_directory_opens_and_has_its_rows() {
    let bed = SampleDir::open("mini");
    let mut counted = 0;
    for row in bed.dict.table_rows(&bed.ctx).expect("rows") {
        let def = bed
            .dict
            .definition(&bed.ctx, &row.name)
            .expect("a definition");
        let opened = bed.dict.open_table(&bed.ctx, &row.name);
        if def.format == RowFormat::Compressed {
            let error = opened.err().expect("COMPRESSED is refused");
            assert!(
                matches!(error, Error::Unsupported(_)),
                "{}: {error}",
                row.name
            );
            continue;
        }
        let table = opened.unwrap_or_else(|e| panic!("{}: {e}", row.name));
        let rows = count_rows(&bed, &table);
        let again = bed.dict.open_by_id(&bed.ctx, row.id).expect("by id");
        assert!(std::ptr::eq(&*again, &*table));
        let tsv = match row.name.strip_prefix("smp/") {
            Some(short) => sample(&format!("{short}.tsv")),
            None => continue,
        };
        if tsv.exists() {
            let expected = std::fs::read(&tsv).expect("a table");
            let expected = expected.iter().filter(|&&b| b == b'\n').count() - 1;
            assert_eq!(rows, expected, "{}", row.name);
            counted += 1;
        }
    }
    assert!(counted >= 8, "{counted} tables compared");
}

#[test]
fn instant_columns_have_their_defaults() {
    let bed = SampleDir::open("mini");
    for name in [
        "smp/s_instant",
        "smp/s_instant_redundant",
        "smp/s_instant_alter",
    ] {
        let table = bed.dict.open_table(&bed.ctx, name).expect(name);
        let state = table.def().clustered().instant.as_ref().expect("instant");
        assert_eq!(state.is_alter, name.ends_with("alter"), "{name}");
        let added = table.def().clustered().fields.len() - state.n_core_fields as usize;
        assert_eq!(state.defaults.len(), added, "{name}");
        assert!(added > 0 || state.is_alter, "{name}");
    }
}

#[test]
fn user_tables_are_listed_by_database() {
    let bed = SampleDir::open("mini");
    let names = bed.dict.table_names(&bed.ctx, Some("smp")).expect("names");
    assert!(names.iter().any(|n| &**n == "smp/s_types"));
    assert!(
        names
            .iter()
            .all(|n| n.starts_with("smp/") && !n.contains("FTS_"))
    );
    assert!(names.is_sorted());
    let none = bed.dict.table_names(&bed.ctx, Some("sm")).expect("names");
    assert!(none.is_empty());
    let missing = bed.dict.open_table(&bed.ctx, "smp/nothing");
    assert!(matches!(missing, Err(Error::NoSuchTable(_))));
}

#[test]
fn a_table_without_its_file_does_not_disturb_the_others() {
    let bed = SampleDir::open("mini");
    std::fs::remove_file(bed.dir.join("smp/s_types.ibd")).expect("a file");
    let mut damaged = std::fs::read(bed.dir.join("smp/s_compact.ibd")).expect("a file");
    damaged[3 * 16384 + 100] ^= 1;
    std::fs::write(bed.dir.join("smp/s_compact.ibd"), damaged).expect("room");
    let missing = bed.dict.open_table(&bed.ctx, "smp/s_types");
    assert!(matches!(missing, Err(Error::TablespaceMissing(_))));
    bed.dict
        .definition(&bed.ctx, "smp/s_types")
        .expect("rows are there");
    match bed.dict.open_table(&bed.ctx, "smp/s_compact") {
        Err(Error::Corrupt(c)) => assert_eq!(&*c.table, "smp/s_compact"),
        other => panic!("{:?}", other.err()),
    }
    bed.dict
        .open_table(&bed.ctx, "smp/s_dynamic")
        .expect("sound");
}

#[test]
fn row_ids_go_on_beyond_what_was_used() {
    let bed = SampleDir::open("fresh");
    let counters = bed.dict.counters();
    assert_eq!(counters.next_row_id(&bed.ctx).expect("an id"), 512);
    let ids: Vec<u64> = (0..600)
        .map(|_| counters.next_row_id(&bed.ctx).expect("an id"))
        .collect();
    assert!(ids.iter().zip(513..).all(|(&id, wanted)| id == wanted));
    let header = super::boot::read_header(&bed.ctx).expect("a header");
    assert_eq!(header.row_id.get(), 1024);
    assert!(header.next_row_id() > *ids.last().expect("600"));
    let new = counters.new_ids(&bed.ctx, 2).expect("ids");
    assert_eq!((new.table.0, new.first_index.0, new.space.0), (14, 16, 3));
    let next = counters.new_ids(&bed.ctx, 1).expect("ids");
    assert_eq!(
        (next.table.0, next.first_index.0, next.space.0),
        (15, 18, 4)
    );
    let key = system_tables::key(&[b"SYS_FOREIGN"]);
    assert_eq!(key.len(), 1);
}

/// Bytes that differ although they should not: LSN, checksum and trailer are left out.
fn differences(ours: &[u8], stock: &[u8]) -> Vec<usize> {
    let end = ours.len() - 8;
    let counts = |&i: &usize| !(16..24).contains(&i) && (4..end).contains(&i);
    (0..ours.len())
        .filter(counts)
        .filter(|&i| ours[i] != stock[i])
        .collect()
}

#[test]
fn a_new_system_tablespace_is_the_stock_servers_byte_for_byte() {
    let bed = SampleDir::create(16384);
    bed.ctx.pool.flush_all().expect("flushed");
    let ours = std::fs::read(bed.dir.join("ibdata1")).expect("a file");
    let stock = sample_bytes("fresh/ibdata1");
    assert_eq!(ours.len(), stock.len());
    let page = |file: &[u8], n: usize| file[n * 16384..(n + 1) * 16384].to_vec();
    // The rows of the described tables name another transaction, and no undo; rollback segment 0
    // knows that transaction.
    let may_differ = [6, 8, 9, 10, 11, 12];
    for n in (0..=12).chain(45..=49) {
        let different = differences(&page(&ours, n), &page(&stock, n));
        if may_differ.contains(&n) {
            assert!(different.len() < 500, "page {n}: {different:?}");
        } else {
            assert!(different.is_empty(), "page {n}: {different:?}");
        }
    }
    let rows = dump(&bed).replace("DB_TRX_ID=1\t", "");
    let expected = text("fresh/dict.txt").replace("DB_TRX_ID=1\t", "");
    assert_eq!(rows, first_four(&expected));
}

fn checker(bed: &SampleDir, arguments: &[&str]) -> String {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/ibdump.py");
    let mut run = std::process::Command::new("python3");
    let out = run
        .arg(tool)
        .args(arguments)
        .current_dir(&bed.dir)
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{text}{errors}");
    text
}

#[test]
fn an_independent_checker_accepts_a_new_system_tablespace_of_every_page_size() {
    for page_size in [4096, 8192, 16384, 32768, 65536] {
        let bed = SampleDir::create(page_size);
        bed.ctx.pool.flush_all().expect("flushed");
        checker(&bed, &["ibdata1", "check"]);
        checker(&bed, &["undo001", "check"]);
    }
}

#[test]
fn tables_that_nobody_uses_are_closed_when_they_take_too_much() {
    let bed = SampleDir::open("mini");
    let names = bed.dict.table_names(&bed.ctx, None).expect("names");
    let open = |name: &str| bed.dict.open_table(&bed.ctx, name);
    let held: Vec<_> = names
        .iter()
        .take(2)
        .filter_map(|name| open(name).ok())
        .collect();
    let opened = names.iter().filter(|name| open(name).is_ok()).count();
    let (all, limit) = bed.dict.memory();
    assert_eq!(limit, u64::MAX);
    assert!(opened > 4 && all > opened as u64 * 2000, "{opened} {all}");
    let in_cache = || {
        names
            .iter()
            .filter(|name| bed.dict.cached(name).is_some())
            .count()
    };
    assert_eq!(in_cache(), opened);
    // The next table that is opened makes room; what is held, and SYS_*, stays.
    bed.dict.set_memory_limit(1);
    bed.dict
        .forget(&open(&names[opened - 1]).expect("it opens"));
    let last = open(&names[opened - 1]).expect("it opens again");
    assert_eq!(in_cache(), held.len() + 1, "those that are held");
    assert!(bed.dict.cached("SYS_TABLES").is_some());
    for table in held.iter().chain([&last]) {
        let found = bed.dict.cached(table.name()).expect("it is held");
        assert!(std::sync::Arc::ptr_eq(&found, table));
        let by_id = bed.dict.cached_by_id(table.id()).expect("it is held");
        assert!(std::sync::Arc::ptr_eq(&by_id, table));
    }
    // A closed one is opened when it is wanted.
    bed.dict.set_memory_limit(all);
    assert_eq!(
        names.iter().filter(|name| open(name).is_ok()).count(),
        opened
    );
    assert_eq!(bed.dict.memory().0, all);
}

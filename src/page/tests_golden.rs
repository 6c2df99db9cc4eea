//! Every index page of the stock server's samples: parsed, compared with the rows that the server
//! printed, rebuilt record by record.

use std::process::Command;

use crate::format::cfg::Cfg;
use crate::host::collation::char_width;
use crate::schema::value::TupleKind;
use crate::schema::{Field, FieldRef, Index, Table, Tuple, cfg, system};
use crate::words::{PageNo, be};

use super::damage_tests::exercise;
use super::layout::{self, page_type};
use super::tests::Random;
use super::{
    Offsets, PageWrite, RecordView, Scratch, apply, insert, instant, list, record, validate,
};

const PAGE: usize = 16384;

const TABLES: [&str; 11] = [
    "s_compact",
    "s_dynamic",
    "s_redundant",
    "s_noprimary",
    "s_types",
    "s_blob_compact",
    "s_blob_dynamic",
    "s_blob_redundant",
    "s_instant",
    "s_instant_redundant",
    "s_instant_alter",
];

fn fixture(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/tests/fixtures/samples/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    if !name.ends_with(".xz") {
        return std::fs::read(&path).expect("a fixture");
    }
    let out = Command::new("xz")
        .args(["-dc", &path])
        .output()
        .expect("xz is installed");
    assert!(out.status.success(), "xz -dc {path}");
    out.stdout
}

/// A sample's file and its table, instant state included.
struct Sample {
    name: &'static str,
    file: Vec<u8>,
    table: Table,
}

impl Sample {
    fn open(name: &'static str) -> Sample {
        let cfg = Cfg::parse(&fixture(&format!("{name}.cfg"))).expect("a stock .cfg");
        let table = cfg::from_cfg(&cfg).expect("a consistent .cfg");
        let mut sample = Sample {
            name,
            file: fixture(&format!("{name}.ibd.xz")),
            table,
        };
        sample.load_instant();
        sample
    }

    fn page(&self, no: PageNo) -> &[u8] {
        &self.file[no.0 as usize * PAGE..][..PAGE]
    }

    fn pages_of(&self, index: &Index) -> Vec<&[u8]> {
        self.file
            .chunks_exact(PAGE)
            .filter(|p| matches!(page_type(p), 17855 | 18) && layout::index_id(p) == index.id)
            .collect()
    }

    fn load_instant(&mut self) {
        let root = self.table.clustered().root;
        let Some(state) = instant::root_state(self.page(root)) else {
            return;
        };
        // The samples' clustered trees with instant columns have one page.
        let page = self.page(root).to_vec();
        let rec = instant::metadata_record(&page)
            .expect("sound")
            .expect("a metadata record");
        let blob = instant::metadata_blob(&page, rec, self.table.clustered()).expect("sound");
        let map = blob.map(|reference| {
            let blob_page = self.page(PageNo(be::u32_at(&reference, 4)));
            let len = be::u32_at(blob_page, 38) as usize;
            instant::parse_field_map(&blob_page[46..46 + len]).expect("a sound map")
        });
        self.table
            .set_instant(state.n_core_fields, state.core_null_bytes, map.as_deref())
            .expect("consistent");
        let defaults = instant::defaults(&page, rec, self.table.clustered(), |_| panic!("no BLOB"))
            .expect("sound");
        self.table.set_instant_defaults(defaults);
    }

    /// Leaf pages of the clustered index in key order.
    fn leaves(&self) -> Vec<&[u8]> {
        let index = self.table.clustered();
        let mut page = self.page(index.root);
        while !layout::is_leaf(page) {
            let first = layout::first(page).expect("sound");
            let child = record::child_of(page, first, index).expect("sound");
            page = self.page(child);
        }
        let mut leaves = vec![page];
        while let Some(next) = layout::next_page(page) {
            page = self.page(next);
            leaves.push(page);
        }
        leaves
    }

    /// The whole value of a field, off-page parts included.
    fn value(&self, field: FieldRef<'_>) -> Option<Vec<u8>> {
        let Some((prefix, reference)) = field.external_parts() else {
            return field.bytes().map(<[u8]>::to_vec);
        };
        let mut value = prefix.to_vec();
        let mut at = (
            PageNo(be::u32_at(reference, 4)),
            be::u32_at(reference, 8) as usize,
        );
        while let Some(no) = at.0.some() {
            let page = self.page(no);
            let len = be::u32_at(page, at.1) as usize;
            value.extend_from_slice(&page[at.1 + 8..][..len]);
            at = (PageNo(be::u32_at(page, at.1 + 4)), 38);
        }
        Some(value)
    }

    /// Rows as the fixture's TSV has them, columns in table order.
    fn rows(&self) -> Vec<String> {
        let index = self.table.clustered();
        let types = SqlTypes::read(self.name);
        let mut offsets = Offsets::new();
        let mut rows = Vec::new();
        for page in self.leaves() {
            for rec in layout::records(page) {
                let view = RecordView::new(page, rec.expect("sound"), index, &mut offsets)
                    .expect("a sound record");
                if view.is_metadata() || view.is_deleted() {
                    continue;
                }
                let row: Vec<String> = self
                    .table
                    .stored_columns()
                    .iter()
                    .map(|column| {
                        let i = index.field_of_column(column.ordinal).expect("every column");
                        let value = self.value(view.field(i));
                        show(&index.fields[i], value, types.of(&column.name))
                    })
                    .collect();
                rows.push(row.join("\t"));
            }
        }
        rows
    }
}

/// What the dictionary does not know: the second word of each column definition.
struct SqlTypes(Vec<(String, String)>);

impl SqlTypes {
    fn read(name: &str) -> SqlTypes {
        let sql = String::from_utf8(fixture(&format!("{name}.sql"))).expect("utf8");
        let mut types = Vec::new();
        let mut depth = 0;
        let mut column = String::new();
        for c in sql
            .replace("ADD COLUMN", "(,")
            .replace(", ALGORITHM", ")")
            .chars()
        {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if (c == ',' && depth <= 1) || c == ';' || (c == '(' && depth == 1) || depth == 0 {
                let mut words = column.split_whitespace();
                if let (Some(name), Some(ty)) = (words.next(), words.next()) {
                    types.push((name.to_string(), ty.to_uppercase()));
                }
                column.clear();
            } else {
                column.push(c);
            }
            if c == ';' {
                depth = 0;
            }
        }
        SqlTypes(types)
    }

    fn of(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(n, _)| n == name)
            .map_or("", |(_, ty)| ty)
    }
}

/// A value in the notation of the TSV files, for the types that s_compact and its like use.
fn show(field: &Field, value: Option<Vec<u8>>, ty: &str) -> String {
    use crate::format::column::Mtype;
    let Some(v) = value else { return "NULL".into() };
    if ty.starts_with("DECIMAL(10,2)") {
        return decimal_10_2(&v);
    }
    if ty.starts_with("DATETIME(3)") {
        return datetime_3(&v);
    }
    if field.ty.mtype == Mtype::Int {
        let n = v.iter().fold(0i128, |n, &b| n << 8 | i128::from(b));
        let unsigned = field.ty.prtype.is_unsigned();
        return (if unsigned {
            n
        } else {
            n - (1 << (8 * v.len() - 1))
        })
        .to_string();
    }
    if v.len() > 64 {
        return format!("#{}:{:x}", v.len(), md5::compute(&v));
    }
    let binary = matches!(field.ty.mtype, Mtype::FixBinary | Mtype::Binary)
        || (field.ty.mtype == Mtype::Blob && field.ty.prtype.is_binary_type());
    if binary {
        return format!(
            "0x{}",
            v.iter().map(|b| format!("{b:02X}")).collect::<String>()
        );
    }
    let text = if char_width(field.ty.prtype.collation()).max == 1 {
        v.iter().map(|&b| char::from(b)).collect()
    } else {
        String::from_utf8(v).expect("utf8 text")
    };
    if matches!(field.ty.mtype, Mtype::Char | Mtype::Mysql) {
        return text.trim_end_matches(' ').to_string();
    }
    text
}

fn decimal_10_2(v: &[u8]) -> String {
    let negative = v[0] & 0x80 == 0;
    let mut raw = [v[0] ^ 0x80, v[1], v[2], v[3], v[4]];
    if negative {
        raw.iter_mut().for_each(|b| *b ^= 0xFF);
    }
    let whole = be::u32_at(&raw, 0);
    format!("{}{whole}.{:02}", if negative { "-" } else { "" }, raw[4])
}

fn datetime_3(v: &[u8]) -> String {
    let n = v[..5].iter().fold(0u64, |n, &b| n << 8 | u64::from(b)) - 0x80_0000_0000;
    let (ym, day, time) = (n >> 22, n >> 17 & 31, n & 0x1FFFF);
    let (h, m, s) = (time >> 12, time >> 6 & 63, time & 63);
    let ms = be::u16_at(v, 5) / 10;
    format!(
        "{:04}-{:02}-{day:02} {h:02}:{m:02}:{s:02}.{ms:03}",
        ym / 13,
        ym % 13
    )
}

#[test]
fn rows_are_those_that_the_server_printed() {
    for name in TABLES.into_iter().filter(|&name| name != "s_types") {
        let sample = Sample::open(name);
        let tsv = String::from_utf8(fixture(&format!("{name}.tsv"))).expect("utf8");
        let expected: Vec<&str> = tsv.lines().skip(1).collect();
        assert_eq!(sample.rows(), expected, "{name}");
    }
}

#[test]
fn every_index_page_of_a_stock_server_is_valid() {
    let mut pages = 0;
    for name in TABLES {
        let sample = Sample::open(name);
        for index in &sample.table.indexes {
            for page in sample.pages_of(index) {
                // Collations that BytesOnly can't order are ASCII here but for the accented rows.
                validate(page, index, &Utf8General).unwrap_or_else(|e| panic!("{name}: {e}"));
                pages += 1;
            }
        }
    }
    assert!(pages > 35, "{pages} pages");
}

#[test]
fn the_hard_wired_dictionary_tables_parse() {
    for (file, tsv) in [
        ("fresh/ibdata1.xz", None),
        ("mini/ibdata1.xz", Some("mini/INNODB_SYS_TABLES.tsv")),
    ] {
        let file = fixture(file);
        let root = |at| PageNo(be::u32_at(&file, 7 * PAGE + at));
        let boot = system::boot_tables(&system::BootRoots {
            tables: root(70),
            table_ids: root(74),
            columns: root(78),
            indexes: root(82),
            fields: root(86),
        })
        .expect("fixed definitions");
        let mut names = Vec::new();
        for table in [&boot.tables, &boot.columns, &boot.indexes, &boot.fields] {
            for index in &table.indexes {
                // Roots first: every page of these small trees but the doublewrite copies.
                let pages = file.chunks_exact(PAGE).enumerate().filter(|(i, page)| {
                    !(64..192).contains(i)
                        && page_type(page) == 17855
                        && layout::index_id(page) == index.id
                });
                let mut rows = 0;
                for (_, page) in pages {
                    validate(page, index, &Utf8General).expect("a valid page");
                    if !layout::is_leaf(page) {
                        continue;
                    }
                    let mut offsets = Offsets::new();
                    for rec in layout::records(page) {
                        let view = RecordView::new(page, rec.expect("sound"), index, &mut offsets)
                            .expect("sound");
                        rows += 1;
                        if index.id.0 == system::SYS_TABLES_ID && !view.is_deleted() {
                            let name = view.field(0).bytes().expect("a name");
                            names.push(String::from_utf8_lossy(name).into_owned());
                        }
                    }
                }
                assert!(rows > 0, "{} has rows", index.name);
            }
        }
        let Some(tsv) = tsv else { continue };
        let tsv = String::from_utf8_lossy(&fixture(tsv)).into_owned();
        for name in &names {
            assert!(
                tsv.contains(name.as_str()),
                "{name} is not in the list of the server"
            );
        }
        assert!(names.len() > 20, "{} tables", names.len());
    }
}

/// utf8mb4_general_ci for the characters that occur in the samples.
struct Utf8General;

impl crate::host::collation::CollationSource for Utf8General {
    fn knows(&self, _collation: u16) -> bool {
        true
    }

    fn compare(&self, _collation: u16, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        let weights = |text: &[u8]| -> Vec<char> {
            let text = String::from_utf8_lossy(text)
                .replace('é', "E")
                .to_uppercase();
            text.trim_end_matches(' ').chars().collect()
        };
        weights(a).cmp(&weights(b))
    }
}

#[test]
fn pages_rebuilt_from_their_entries_hold_the_same_records() {
    let mut scratch = Scratch::new();
    for name in TABLES {
        let sample = Sample::open(name);
        for index in &sample.table.indexes {
            for page in sample.pages_of(index) {
                let copy = rebuilt(page, index, &mut scratch);
                validate(&copy, index, &Utf8General).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(images(&copy, index), images(page, index), "{name}");
            }
        }
    }
}

/// An empty page of the same kind, then each record inserted as an entry.
fn rebuilt(page: &[u8], index: &Index, scratch: &mut Scratch) -> Vec<u8> {
    let mut copy = page.to_vec();
    list::empty(&mut copy[..], scratch).expect("sound");
    let mut prev = layout::infimum(page);
    let mut tuple = Tuple::new();
    let mut offsets = Offsets::new();
    for rec in layout::records(page) {
        let rec = rec.expect("sound");
        RecordView::new(page, rec, index, &mut offsets)
            .expect("sound")
            .copy_to(&mut tuple);
        prev = insert::insert(&mut copy[..], index, prev, &tuple, scratch)
            .expect("an entry that was a record")
            .expect("room for what was there");
    }
    copy
}

/// Header (without link and heap number) and data of each record.
fn images(page: &[u8], index: &Index) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut offsets = Offsets::new();
    layout::records(page)
        .map(|rec| {
            let rec = rec.expect("sound");
            let view = RecordView::new(page, rec, index, &mut offsets).expect("sound");
            let extra = view.offsets().extra_size();
            let fixed = if index.compact { 5 } else { 6 };
            let (header, data) = view.bytes().split_at(extra);
            let mut header = header[..extra - fixed].to_vec();
            header.push(view.info_bits());
            (header, data.to_vec())
        })
        .collect()
}

#[test]
fn entries_become_the_bytes_that_the_server_wrote() {
    let mut seen = 0;
    for name in TABLES {
        let sample = Sample::open(name);
        let index = sample.table.clustered();
        let mut offsets = Offsets::new();
        let mut tuple = Tuple::new();
        let mut image = super::RecordImage::new();
        for page in sample.pages_of(index) {
            for rec in layout::records(page) {
                let rec = rec.expect("sound");
                let view = RecordView::new(page, rec, index, &mut offsets).expect("sound");
                view.copy_to(&mut tuple);
                image.build(index, &tuple).expect("a record as an entry");
                assert_eq!(
                    image.data(),
                    &view.bytes()[view.offsets().extra_size()..],
                    "{name}"
                );
                seen += usize::from(tuple.kind == TupleKind::Leaf);
            }
        }
    }
    assert!(seen > 1000, "{seen} records");
}

#[test]
fn reorganised_sample_pages_keep_their_records() {
    let (mut scratch, mut moved) = (Scratch::new(), Vec::new());
    for name in TABLES {
        let sample = Sample::open(name);
        for index in &sample.table.indexes {
            for page in sample.pages_of(index) {
                let mut copy = page.to_vec();
                list::reorganise(&mut copy[..], index, &mut scratch, &mut moved).expect("sound");
                validate(&copy, index, &Utf8General).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!(images(&copy, index), images(page, index), "{name}");
                assert_eq!(copy[..38], page[..38]);
                assert_eq!(copy[56..94], page[56..94]);
            }
        }
    }
}

#[test]
fn an_empty_page_is_the_reference_s_minimal_instance() {
    for (compact, slots) in [(true, [0, 0x70, 0, 0x63]), (false, [0, 0x74, 0, 0x65])] {
        let mut page = vec![0xEE; PAGE];
        apply::init_index(&mut page, compact).expect("a whole page");
        assert_eq!(page[PAGE - 12..PAGE - 8], slots);
        assert_eq!(layout::n_heap(&page), 2);
        assert_eq!(layout::heap_top(&page), if compact { 120 } else { 125 });
        assert_eq!(layout::direction(&page), 5);
    }
}

#[test]
fn damaged_sample_pages_are_errors_never_panics() {
    let seed = 0x5EED;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    for name in TABLES {
        let sample = Sample::open(name);
        for index in &sample.table.indexes {
            for page in sample.pages_of(index) {
                let mut key = Tuple::new();
                let mut offsets = Offsets::new();
                let Some(Ok(rec)) = layout::records(page).next() else {
                    continue;
                };
                RecordView::new(page, rec, index, &mut offsets)
                    .expect("sound")
                    .copy_to(&mut key);
                for _ in 0..60 {
                    let mut copy = page.to_vec();
                    for _ in 0..1 + random.below(3) {
                        let at = 24 + random.below(PAGE - 32);
                        let len = 1 + random.below(6);
                        let end = (at + len).min(PAGE - 8);
                        copy[at..end].fill(random.next() as u8);
                    }
                    exercise(&copy, index, &key);
                    let mut scratch = Scratch::new();
                    let _ = list::reorganise(&mut copy[..], index, &mut scratch, &mut Vec::new());
                }
            }
        }
    }
}

#[test]
fn the_log_s_worked_example_gives_the_page_that_it_was_logged_for() {
    use crate::format::redo_record::{InsertDynamic, PageOp};
    let mut page = vec![0u8; PAGE];
    apply::init_index(&mut page, true).expect("a whole page");
    let first = [
        3, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0x13, 0x83, 0x84, 0, 0, 1, 0x2d, 1, 0x10,
    ];
    let op = |prev, data_common, header, data| {
        PageOp::InsertDynamic(InsertDynamic {
            reuse_shift: None,
            prev,
            info_bits: 0,
            instant: false,
            header_common: 0,
            data_common,
            header,
            data,
        })
    };
    let data = [&first[2..], b"one"].concat();
    page[..]
        .apply(&op(99, 0, &first[..2], &data))
        .expect("room");
    let second: [u8; 17] = [
        2, 0, 0, 0, 0, 0, 0x13, 0x84, 0, 0, 1, 0x2d, 1, 0x10, b't', b'w', b'o',
    ];
    page[..].apply(&op(127, 3, &[3, 0], &second)).expect("room");
    assert_eq!(layout::n_recs(&page), 2);
    assert_eq!(&page[154..158], [0x80, 0, 0, 2]);
    assert_eq!(layout::direction(&page), 2);
}

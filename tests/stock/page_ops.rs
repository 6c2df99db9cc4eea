//! The stock server's recovery applies our page operations: rows are inserted, deleted and updated
//! on pages of a clean data directory, but only in the log; the server must make the same tables of it.

use crate::support::scratch::Scratch;
use crate::support::seed::Rng;
use crate::support::stock::Stock;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use xtradb::format::column::ColumnType;
use xtradb::format::redo_encode::{Encoder, finish};
use xtradb::format::redo_file::{Checkpoint, LogGeometry, LogHeader, checkpoint_offset};
use xtradb::format::redo_record::{FileOp, PageOp};
use xtradb::host::collation::BytesOnly;
use xtradb::page::{
    self, Offsets, PageWrite, RecOffset, RecordView, Scratch as PageScratch, SearchMode, apply,
    layout, list, record, update,
};
use xtradb::schema::{
    Column, FieldColumn, FieldRef, Index, IndexDef, IndexType, KeyPart, Table, TableDef,
    TableFlags, Tuple,
};
use xtradb::words::{Lsn, PageId, PageNo, Result, SpaceId, TableId, be};

const PAGE: usize = 16384;
const ROWS_MIN: usize = 300;

/// One table's file with the log of the changes of its pages.
struct Pages {
    name: String,
    table: Table,
    file: Vec<u8>,
    scratch: PageScratch,
    encoder: Encoder,
    log: Vec<u8>,
    rows: BTreeMap<u32, Row>,
}

#[derive(Clone, PartialEq, Debug)]
struct Row {
    a: Option<Vec<u8>>,
    c: i32,
}

struct Changed<'p> {
    page: &'p mut [u8],
    id: PageId,
    encoder: &'p mut Encoder,
    log: &'p mut Vec<u8>,
}

impl PageWrite for Changed<'_> {
    fn page(&self) -> &[u8] {
        self.page
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        self.page[offset..offset + data.len()].copy_from_slice(data);
        let offset = offset as u32;
        self.encoder
            .page_op(self.log, self.id, &PageOp::Write { offset, data });
    }

    fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        self.page[offset..offset + len].fill(byte);
        let op = PageOp::Memset {
            offset: offset as u32,
            len: len as u32,
            fill: &[byte],
        };
        self.encoder.page_op(self.log, self.id, &op);
    }

    fn apply(&mut self, op: &PageOp<'_>) -> Result<()> {
        apply::apply(self.page, op)?;
        self.encoder.page_op(self.log, self.id, op);
        Ok(())
    }
}

fn definition(compact: bool, file: &[u8]) -> Table {
    let ty = |m, p, l| ColumnType::parse(m, p, l).expect("known type");
    let index = |name: &str, root: u32, ty, column| IndexDef {
        id: layout::index_id(&file[root as usize * PAGE..][..PAGE]),
        name: name.into(),
        ty: IndexType(ty),
        root: PageNo(root),
        parts: vec![KeyPart {
            column: FieldColumn::Stored(column),
            prefix_len: 0,
            desc: false,
        }],
        merge_threshold: 50,
    };
    TableDef {
        id: TableId(0),
        name: "g/t".into(),
        space: SpaceId(be::u32_at(file, 34)),
        flags: TableFlags(if compact { 33 } else { 1 }),
        compact,
        mix_len: 80,
        path: None,
        columns: vec![
            Column::new("id", ty(6, 0x503, 4), 0),
            Column::new("a", ty(4, 0x3F_040F, 200), 1),
            Column::new("c", ty(6, 0x503, 4), 2),
        ],
        virtual_columns: Vec::new(),
        indexes: vec![index("PRIMARY", 3, 3, 0), index("c", 4, 0, 2)],
    }
    .build()
    .expect("a valid table")
}

fn int(n: i32) -> [u8; 4] {
    (n as u32 ^ 0x8000_0000).to_be_bytes()
}

impl Pages {
    fn open(datadir: &Path, name: &str, compact: bool) -> Pages {
        let file = fs::read(datadir.join(format!("g/{name}.ibd"))).expect("the table's file");
        Pages {
            name: name.into(),
            table: definition(compact, &file),
            file,
            scratch: PageScratch::new(),
            encoder: Encoder::new(),
            log: Vec::new(),
            rows: BTreeMap::new(),
        }
    }

    fn page(&self, no: PageNo) -> &[u8] {
        &self.file[no.0 as usize * PAGE..][..PAGE]
    }

    /// The leaf where `key` belongs, and the record at or before it.
    fn find(&self, index: &Index, key: &Tuple) -> (PageNo, RecOffset, bool) {
        let mut no = index.root;
        loop {
            let page = self.page(no);
            layout::check(page, index).expect("an index page");
            let found = page::search(page, index, key, SearchMode::LessOrEqual, &BytesOnly)
                .expect("a sound page");
            if layout::is_leaf(page) {
                return (no, found.rec, found.low_match as usize == key.len());
            }
            no = record::child_of(page, found.rec, index).expect("a child");
        }
    }

    fn change<T>(
        &mut self,
        no: PageNo,
        change: impl FnOnce(&mut Changed<'_>, &Table, &mut PageScratch) -> T,
    ) -> T {
        let mut changed = Changed {
            page: &mut self.file[no.0 as usize * PAGE..][..PAGE],
            id: PageId::new(self.table.space, no),
            encoder: &mut self.encoder,
            log: &mut self.log,
        };
        change(&mut changed, &self.table, &mut self.scratch)
    }

    fn clustered_entry(&self, id: u32, row: &Row) -> Tuple {
        let mut entry = Tuple::new();
        entry.push_bytes(&int(id as i32));
        entry.push_bytes(&[0, 0, 0, 0, 0, 1]);
        entry.push_bytes(&[0x80, 0, 0, 0, 0, 0, 0]);
        entry.push(row.a.as_deref().map_or(FieldRef::Null, FieldRef::Bytes));
        entry.push_bytes(&int(row.c));
        entry
    }

    fn secondary_entry(id: u32, row: &Row) -> Tuple {
        let mut entry = Tuple::new();
        entry.push_bytes(&int(row.c));
        entry.push_bytes(&int(id as i32));
        entry
    }

    /// False, with nothing changed, if the leaf is full even after reorganising.
    fn insert_entry(&mut self, position: usize, entry: &Tuple, key_len: usize) -> bool {
        let index = self.table.indexes[position].clone();
        let mut key = entry.clone();
        key.truncate(key_len);
        let (no, prev, found) = self.find(&index, &key);
        assert!(!found);
        self.change(no, |page, _, scratch| {
            let (mut prev, mut moved) = (prev, Vec::new());
            for _ in 0..2 {
                let done = page::insert::insert(page, &index, prev, entry, scratch);
                if done.expect("a sound page").is_some() {
                    return true;
                }
                scratch.image.build(&index, entry).expect("a valid entry");
                let room = page::space::max_insert_size_after_reorganise(page.page(), 1);
                if room < scratch.image.size() {
                    return false;
                }
                list::reorganise(page, &index, scratch, &mut moved).expect("a sound page");
                let mode = SearchMode::LessOrEqual;
                prev = page::search(page.page(), &index, &key, mode, &BytesOnly)
                    .expect("sound")
                    .rec;
            }
            unreachable!("it fits after reorganising");
        })
    }

    fn delete_entry(&mut self, position: usize, key: &Tuple) -> bool {
        let index = self.table.indexes[position].clone();
        let (no, rec, found) = self.find(&index, key);
        assert!(found);
        self.change(no, |page, _, scratch| {
            // The last record of a page must stay: a merge is the tree's business.
            layout::n_recs(page.page()) > 1
                && page::delete::delete(page, &index, rec, &mut scratch.offsets).is_ok()
        })
    }

    fn insert(&mut self, id: u32, row: Row) {
        let entry = Pages::secondary_entry(id, &row);
        if !self.insert_entry(1, &entry, 2) {
            return;
        }
        let clustered = self.clustered_entry(id, &row);
        if self.insert_entry(0, &clustered, 1) {
            self.rows.insert(id, row);
        } else {
            assert!(self.delete_entry(1, &entry));
        }
    }

    fn delete(&mut self, id: u32) {
        let row = self.rows[&id].clone();
        let mut key = self.clustered_entry(id, &row);
        key.truncate(1);
        if !self.delete_entry(1, &Pages::secondary_entry(id, &row)) {
            return;
        }
        if self.delete_entry(0, &key) {
            self.rows.remove(&id);
        } else {
            assert!(self.insert_entry(1, &Pages::secondary_entry(id, &row), 2));
        }
    }

    /// New bytes of the same length in `a`.
    fn update(&mut self, id: u32, byte: u8) {
        let mut row = self.rows[&id].clone();
        let Some(a) = &mut row.a else { return };
        a.fill(byte);
        let index = self.table.clustered().clone();
        let mut key = self.clustered_entry(id, &row);
        key.truncate(1);
        let (no, rec, _) = self.find(&index, &key);
        self.change(no, |page, _, scratch| {
            scratch
                .offsets
                .compute(page.page(), rec, &index)
                .expect("a sound record");
            let changes = [(3, row.a.as_deref().map_or(FieldRef::Null, FieldRef::Bytes))];
            let offsets = &scratch.offsets;
            assert!(update::update_in_place(
                page,
                &index,
                rec,
                offsets,
                changes.into_iter()
            ));
        });
        self.rows.insert(id, row);
    }

    /// Rows as the leaves have them.
    fn read_rows(&mut self) {
        let index = self.table.clustered().clone();
        let mut no = index.root;
        while !layout::is_leaf(self.page(no)) {
            let first = layout::first(self.page(no)).expect("a record");
            no = record::child_of(self.page(no), first, &index).expect("child");
        }
        let mut rows = BTreeMap::new();
        let mut offsets = Offsets::new();
        let mut next = Some(no);
        while let Some(no) = next {
            let page = self.page(no);
            for rec in layout::records(page) {
                let view = RecordView::new(page, rec.expect("sound"), &index, &mut offsets)
                    .expect("sound");
                let number = |i: usize| {
                    be::u32_at(view.field(i).bytes().expect("NOT NULL"), 0) ^ 0x8000_0000
                };
                let a = view.field(3).bytes().map(<[u8]>::to_vec);
                rows.insert(
                    number(0),
                    Row {
                        a,
                        c: number(4) as i32,
                    },
                );
            }
            next = layout::next_page(page);
        }
        self.rows = rows;
    }

    /// What `SELECT id, HEX(a), c` prints.
    fn printed(&self) -> String {
        let mut text = "id\thex(a)\tc\n".to_string();
        for (id, row) in &self.rows {
            let a = match &row.a {
                None => "NULL".to_string(),
                Some(a) => a.iter().map(|b| format!("{b:02X}")).collect(),
            };
            text += &format!("{id}\t{a}\t{}\n", row.c);
        }
        text
    }
}

/// Appends mini-transactions behind the checkpoint of a cleanly shut down directory.
struct LogTail {
    file: Vec<u8>,
    geometry: LogGeometry,
    at: Lsn,
}

impl LogTail {
    fn open(datadir: &Path) -> LogTail {
        let file = fs::read(datadir.join("ib_logfile0")).expect("the log");
        let header = LogHeader::parse(&file).expect("a stock header");
        let block = |slot| {
            let at = checkpoint_offset(slot) as usize;
            Checkpoint::parse(&file[at..at + 64], header.first_lsn)
        };
        let (checkpoint, _) = Checkpoint::choose(block(0), block(1)).expect("a checkpoint");
        let geometry = LogGeometry::new(header.first_lsn, file.len() as u64).expect("a log");
        // After a clean shutdown the log ends with the 16 bytes of FILE_CHECKPOINT.
        LogTail {
            file,
            geometry,
            at: Lsn(checkpoint.end_lsn.0 + 16),
        }
    }

    fn append(&mut self, records: &[u8]) {
        let mut mtr = records.to_vec();
        let end = Lsn(self.at.0 + records.len() as u64);
        finish(&mut mtr, 0, self.geometry.seq_bit(end));
        let start = self.geometry.offset(self.at) as usize;
        assert!(
            start + mtr.len() < self.file.len(),
            "the test does not wrap the log"
        );
        self.file[start..start + mtr.len()].copy_from_slice(&mtr);
        self.file[start + mtr.len()] = 0;
        self.at = Lsn(self.at.0 + mtr.len() as u64);
    }
}

#[test]
fn stock_recovery_makes_the_same_tables_of_our_page_operations() {
    let mut rng = Rng::announced("page_ops");
    let scratch = Scratch::new("page_ops");
    let datadir = scratch.dir("data");
    Stock::create(&datadir, &[]);
    let stock = Stock::start(&datadir, &[]);
    stock.sql("", "CREATE DATABASE g");
    for (name, format) in [("d", "DYNAMIC"), ("c", "COMPACT"), ("r", "REDUNDANT")] {
        stock.sql(
            "g",
            &format!(
                "CREATE TABLE {name} (id INT PRIMARY KEY, a VARBINARY(200), c INT NOT NULL, KEY(c)) \
                 ENGINE=InnoDB ROW_FORMAT={format} STATS_PERSISTENT=0; \
                 INSERT INTO {name} SELECT seq * 10, IF(seq % 5 = 0, NULL, REPEAT('x', seq % 180)), \
                 seq * 7 % 100 FROM seq_1_to_600; \
                 DELETE FROM {name} WHERE id % 30 = 0"
            ),
        );
    }
    stock.shutdown(true);

    let mut tail = LogTail::open(&datadir);
    let mut printed = Vec::new();
    for (name, compact) in [("d", true), ("c", true), ("r", false)] {
        let mut pages = Pages::open(&datadir, name, compact);
        pages.read_rows();
        assert_eq!(pages.rows.len(), 400);
        let path = format!("./g/{name}.ibd");
        let modify = FileOp::Modify {
            space: pages.table.space,
            name: path.as_bytes(),
        };
        let mut records = Vec::new();
        Encoder::new().file_op(&mut records, &modify);
        tail.append(&records);
        for _ in 0..3000 {
            let id = rng.below(6100) as u32;
            let nearest = pages.rows.range(id..).next().map(|(&id, _)| id);
            match (rng.below(3), nearest) {
                // As many deletes as inserts are a random walk: it must not end with too few rows.
                (0, Some(id)) if pages.rows.len() > ROWS_MIN => pages.delete(id),
                (1, Some(id)) => pages.update(id, rng.below(256) as u8),
                _ if !pages.rows.contains_key(&id) => {
                    let length = rng.below(200) as usize;
                    let a = (!rng.one_in(5)).then(|| vec![rng.below(256) as u8; length]);
                    pages.insert(
                        id,
                        Row {
                            a,
                            c: rng.below(200) as i32 - 100,
                        },
                    );
                }
                _ => {}
            }
            if !pages.log.is_empty() {
                tail.append(&pages.log);
                pages.log.clear();
                pages.encoder.reset();
            }
        }
        printed.push((pages.name.clone(), pages.printed()));
    }
    fs::write(datadir.join("ib_logfile0"), &tail.file).expect("the log");

    let stock = Stock::start(&datadir, &[]);
    for (name, expected) in &printed {
        assert!(expected.lines().count() > ROWS_MIN);
        let rows = stock.sql(
            "g",
            &format!("SELECT id, HEX(a) AS `hex(a)`, c FROM {name} ORDER BY id"),
        );
        assert_eq!(&rows, expected, "{name}");
    }
    assert_eq!(stock.check_tables("g"), 3);
    stock.shutdown(true);
    for name in ["d", "c", "r"] {
        let file = datadir.join(format!("g/{name}.ibd"));
        crate::support::checkers::innochecksum(&file).expect("sound pages");
    }
}

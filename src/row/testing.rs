//! For the tests of this layer and those above: a table on an instance with undo tablespaces.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::dict::system_tables::IndexRow;
use crate::extent::create_space;
use crate::format::column::ColumnType;
use crate::host::callbacks::SessionCtx;
use crate::host::collation::BytesOnly;
use crate::host::image::{
    BlobHeap, BlobRef, ColumnKind, ImageColumn, ImageKey, KeyKind, RowIn, TableImage, little_endian,
};
use crate::lock::LockTable;
use crate::mtr::testing::SPACE;
use crate::mtr::{Budget, Mtr, PageCtx};
use crate::schema::build::MERGE_THRESHOLD;
use crate::schema::{Column, FieldColumn, IndexDef, IndexType, KeyPart, TableDef, TableFlags};
use crate::tree::{self, Tree};
use crate::trx::{Isolation, Trx, TrxSystem};
use crate::undo::testing::UndoBed;
use crate::words::{IndexId, PageNo, Result, SessionId, TableId, UndoNo};

/// A row of the test table: (id INT PRIMARY KEY, a INT NULL, v VARBINARY(200) NULL, b LONGBLOB NULL),
/// KEY (a), UNIQUE (v), KEY (b prefix 20).
#[derive(Clone, PartialEq, Eq, Debug, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the columns")]
pub struct Row {
    pub id: i32,
    pub a: Option<i32>,
    pub v: Option<Vec<u8>>,
    pub b: Option<Vec<u8>>,
}

const ROW_BYTES: usize = 222;

/// The table's trees.
pub struct TestTable(Vec<Tree>);

impl HasTrees for TestTable {
    fn trees(&self) -> &[Tree] {
        &self.0
    }
}

/// An instance with one table.
pub struct Bed {
    /// Files.
    pub undo: UndoBed,
    /// Transactions.
    pub sys: Arc<TrxSystem>,
    /// The table.
    pub table: Arc<TestTable>,
    /// The host's layout.
    pub template: Template,
}

/// A column of the host's layout.
pub fn column(
    name: &str,
    kind: ColumnKind,
    offset: u32,
    length: u32,
    null_mask: u8,
) -> ImageColumn {
    let length_bytes = match kind {
        ColumnKind::VarChar => 1,
        ColumnKind::LongBlob => 4,
        _ => 0,
    };
    let octets = match kind.is_blob() {
        true => 0,
        false => length - u32::from(length_bytes),
    };
    ImageColumn {
        octets,
        null_mask,
        length_bytes,
        not_null: null_mask == 0,
        ..ImageColumn::plain(name, kind, offset, length)
    }
}

/// The host's template.
pub fn image() -> TableImage {
    let columns = vec![
        column("id", ColumnKind::Long, 1, 4, 0),
        column("a", ColumnKind::Long, 5, 4, 1),
        column("v", ColumnKind::VarChar, 9, 201, 2),
        column("b", ColumnKind::LongBlob, 210, 12, 4),
    ];
    let keys = vec![
        ImageKey::of_column("PRIMARY", KeyKind::Primary, 0, 4),
        ImageKey::of_column("v", KeyKind::Unique, 2, 200),
        ImageKey::of_column("a", KeyKind::Plain, 1, 4),
        ImageKey::of_column("b", KeyKind::Plain, 3, 20),
    ];
    TableImage::new(columns, keys, ROW_BYTES as u32, 1).expect("a sound template")
}

/// A tablespace with four empty trees.
fn make_roots(ctx: &PageCtx, compact: bool) -> Vec<PageNo> {
    let mut roots = Vec::new();
    let budget = Budget::statement(64 << 10).with_frames(8);
    let mut mtr = Mtr::start(ctx, budget).expect("room");
    create_space(&mut mtr, SPACE, 4).expect("space");
    mtr.commit();
    for id in 70..74 {
        let _space = crate::extent::reserve(ctx, SPACE, 2, 2, crate::mtr::Class::Statement);
        let mut mtr = Mtr::start(ctx, budget).expect("room");
        roots.push(tree::create(&mut mtr, SPACE, IndexId(id), compact).expect("root"));
        mtr.commit();
    }
    roots
}

impl Bed {
    /// A new one; `flags` and `compact` choose the row format.
    pub fn new(pool_pages: usize, compact: bool) -> Bed {
        Bed::make(pool_pages, compact, false)
    }

    /// One whose table has a FULLTEXT index on column v.
    pub fn with_full_text() -> Bed {
        Bed::make(64, true, true)
    }

    fn make(pool_pages: usize, compact: bool, full_text: bool) -> Bed {
        let undo = UndoBed::new(4096, pool_pages, 2);
        let opened = undo.open();
        let locks = Arc::new(LockTable::new());
        let rsegs = Arc::new(opened.rsegs);
        let sys = Arc::new(TrxSystem::new(opened.next_trx_id, rsegs, locks.clone()));
        undo.pages.add_space(SPACE, 4);
        let roots = make_roots(&undo.pages.ctx, compact);
        let ty = |m, p, l| ColumnType::parse(m, p, l).expect("known type");
        let index = |i: usize, name: &str, bits, column, prefix_len| IndexDef {
            id: IndexId(70 + i as u64),
            name: name.into(),
            ty: IndexType(bits),
            root: roots.get(i).copied().unwrap_or(PageNo::NONE),
            parts: vec![KeyPart {
                column: FieldColumn::Stored(column),
                prefix_len,
                desc: false,
            }],
            merge_threshold: MERGE_THRESHOLD,
        };
        let mut def = TableDef {
            id: TableId(20),
            name: "d/t".into(),
            space: SPACE,
            flags: TableFlags(if compact { 33 } else { 1 }),
            compact,
            mix_len: 80,
            path: None,
            columns: vec![
                Column::new("id", ty(6, 0x503, 4), 0),
                Column::new("a", ty(6, 0x403, 4), 1),
                Column::new("v", ty(4, 0x3F040F, 200), 2),
                Column::new("b", ty(5, 0x3F04FC, 12), 3),
            ],
            virtual_columns: Vec::new(),
            indexes: vec![
                index(0, "PRIMARY", 3, 0, 0),
                index(1, "v", 2, 2, 0),
                index(2, "a", 0, 1, 0),
                index(3, "b", 0, 3, 20),
            ],
        };
        if full_text {
            def.indexes
                .push(index(4, "words", IndexType::FULLTEXT, 2, 0));
        }
        let def = Arc::new(def.build().expect("a valid table"));
        let trees = (0..4)
            .map(|i| Tree::new(def.clone(), i, locks.clone(), Arc::new(BytesOnly)))
            .collect();
        let template = Template::new(Arc::new(image()), &def).expect("it fits");
        Bed {
            undo,
            sys,
            table: Arc::new(TestTable(trees)),
            template,
        }
    }

    /// Pages.
    pub fn ctx(&self) -> &PageCtx {
        &self.undo.pages.ctx
    }

    /// The trees.
    pub fn trees(&self) -> &[Tree] {
        self.table.trees()
    }

    /// A session with no transaction.
    pub fn session(&self) -> Session<'_> {
        Session {
            bed: self,
            trx: self.sys.add(SessionId(1), SessionCtx::default()),
            work: Workspace::default(),
            heap: BlobHeap::default(),
            cursor: Cursor::new(0),
            patience: Patience::AtMost(Duration::from_secs(5)),
            observer: None,
        }
    }

    /// Runs the independent checker over the table's file.
    pub fn check(&self) {
        self.ctx().pool.flush_all().expect("flush");
        let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/ibdump.py");
        let path = self.ctx().spaces.find(SPACE).expect("open").path();
        let run = std::process::Command::new("python3")
            .args([tool, &path, "check"])
            .output()
            .expect("python3 runs");
        let text = String::from_utf8_lossy(&run.stdout);
        assert!(
            run.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&run.stderr)
        );
    }

    /// Records in each tree, delete-marked ones included; every tree is checked.
    pub fn records(&self) -> Vec<u64> {
        let count = |tree: &Tree| {
            let counts = tree.validate(self.ctx(), &|| Ok(())).expect("a valid tree");
            counts.records
        };
        self.trees().iter().map(count).collect()
    }
}

impl Tables for Bed {
    fn open(&self, id: TableId) -> Result<Option<Arc<dyn HasTrees>>> {
        let found = (id == TableId(20)).then(|| self.table.clone() as Arc<dyn HasTrees>);
        Ok(found)
    }

    fn drop_tree(&self, _row: &IndexRow) -> Result<()> {
        Ok(())
    }

    fn undo_rename(&self, _id: TableId, _old_name: &str) -> Result<()> {
        Ok(())
    }
}

/// A session of the test.
pub struct Session<'b> {
    bed: &'b Bed,
    /// Its transaction.
    pub trx: Trx,
    work: Workspace,
    heap: BlobHeap,
    /// The place of `read` and `next`.
    pub cursor: Cursor,
    /// For locks.
    pub patience: Patience,
    /// Hears of rows of a table with a FULLTEXT index.
    pub observer: Option<Arc<dyn IndexObserver>>,
}

fn never() -> bool {
    false
}

/// The row as `record[0]`, without its BLOB.
pub fn encode(row: &Row) -> Vec<u8> {
    let mut out = vec![0xA5; ROW_BYTES];
    out[0] = 0xF8;
    out[1..5].copy_from_slice(&row.id.to_le_bytes());
    match row.a {
        Some(a) => out[5..9].copy_from_slice(&a.to_le_bytes()),
        None => out[0] |= 1,
    }
    match &row.v {
        Some(v) => {
            out[9] = v.len() as u8;
            out[10..10 + v.len()].copy_from_slice(v);
        }
        None => out[0] |= 2,
    }
    match &row.b {
        Some(b) => out[210..214].copy_from_slice(&(b.len() as u32).to_le_bytes()),
        None => out[0] |= 4,
    }
    out
}

fn decode(image: &[u8], heap: &BlobHeap) -> Row {
    let null = |bit: u8| image[0] & bit != 0;
    let int = |at: usize| i32::from_le_bytes(image[at..at + 4].try_into().expect("4 bytes"));
    assert_eq!(image[0] & 0xF8, 0xF8, "bits of no column stay");
    Row {
        id: int(1),
        a: (!null(1)).then(|| int(5)),
        v: (!null(2)).then(|| image[10..10 + usize::from(image[9])].to_vec()),
        b: (!null(4)).then(|| {
            let blob = BlobRef {
                length: little_endian(&image[210..214]) as u32,
                address: u64::from_ne_bytes(image[214..222].try_into().expect("8 bytes")),
            };
            match blob.length {
                0 => Vec::new(),
                _ => heap.bytes(blob).expect("it lies in the heap").to_vec(),
            }
        }),
    }
}

impl Session<'_> {
    /// Starts a transaction.
    pub fn begin(&mut self, isolation: Isolation) {
        self.trx.start(isolation, false, 1);
    }

    /// Begins a statement.
    pub fn statement(&mut self) {
        self.trx.begin_statement();
    }

    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Op<'_>, &[Tree], &mut Workspace) -> Result<T>,
    ) -> Result<T> {
        let mut op = Op {
            ctx: self.bed.ctx(),
            sys: &self.bed.sys,
            trx: &mut self.trx,
            patience: self.patience,
            killed: &never,
            observer: self.observer.as_ref(),
        };
        work(&mut op, self.bed.trees(), &mut self.work)
    }

    /// Inserts; after an error the statement is rolled back.
    pub fn insert(&mut self, row: &Row) -> Result<()> {
        let start = self.trx.next_undo_no();
        let (image, blob) = (encode(row), row.b.clone().unwrap_or_default());
        let template = &self.bed.template;
        let done = self.with(|op, trees, work| {
            let row = RowIn {
                image: &image,
                blobs: &[&blob],
            };
            let no_row_id = || Ok(0);
            insert(
                op,
                trees,
                template,
                work,
                row,
                InsertMode::Plain,
                &no_row_id,
            )
        });
        self.undo_if_failed(start, done)
    }

    /// Loads rows with sort buffers of `buffer` bytes; `None` if they must go in one by one. After an error
    /// the load is rolled back.
    pub fn load(&mut self, rows: &[Row], buffer: usize) -> Result<Option<u64>, LoadError> {
        let start = self.trx.next_undo_no();
        let template = &self.bed.template;
        let ctx = self.bed.ctx();
        let (vfs, dir) = (ctx.spaces.vfs(), &ctx.spaces.places().data_dir);
        let place = SortPlace::new(vfs, dir, buffer, &ctx.sort_bytes);
        let mut failed = None;
        let done = self.with(|op, trees, work| {
            let Some(mut load) = BulkLoad::begin(op, trees, place, 100)? else {
                return Ok(None);
            };
            for row in rows {
                let (image, blob) = (encode(row), row.b.clone().unwrap_or_default());
                let row = RowIn {
                    image: &image,
                    blobs: &[&blob],
                };
                load.add(op, trees, template, work, row, &|| Ok(0))?;
            }
            load.finish(op, trees).map(Some).map_err(|error| {
                let plain = error.error.clone();
                failed = Some(error);
                plain
            })
        });
        if done.is_err() {
            self.rollback_to(start);
        }
        done.map_err(|error| failed.unwrap_or(LoadError { error, key: None }))
    }

    fn undo_if_failed(&mut self, start: UndoNo, done: Result<()>) -> Result<()> {
        if done.is_err() {
            rollback_to(self.bed.ctx(), &mut self.trx, self.bed, start).expect("undone");
        }
        done
    }

    /// Changes all columns of row `id`.
    pub fn update(&mut self, id: i32, row: &Row) -> Result<()> {
        let start = self.trx.next_undo_no();
        let (image, blob) = (encode(row), row.b.clone().unwrap_or_default());
        let template = &self.bed.template;
        let key = self.key_of(0, &id.to_le_bytes());
        let done = self.with(|op, trees, work| {
            let row = RowIn {
                image: &image,
                blobs: &[&blob],
            };
            update(op, trees, template, work, &key, &[0, 1, 2, 3], row)
        });
        self.undo_if_failed(start, done)
    }

    /// Deletes row `id`.
    pub fn delete(&mut self, id: i32) -> Result<()> {
        let start = self.trx.next_undo_no();
        let key = self.key_of(0, &id.to_le_bytes());
        let done = self.with(|op, trees, work| delete(op, trees, work, &key, false));
        self.undo_if_failed(start, done)
    }

    fn key_of(&self, key: usize, image: &[u8]) -> crate::schema::Tuple {
        let mut out = crate::schema::Tuple::new();
        let template = &self.bed.template;
        template
            .search_entry(key, image, &mut out)
            .expect("a key image");
        out
    }

    /// Commits.
    pub fn commit(&mut self) {
        self.trx.commit(self.bed.ctx(), None).expect("committed");
    }

    /// Rolls back.
    pub fn rollback(&mut self) {
        rollback(self.bed.ctx(), &mut self.trx, self.bed).expect("rolled back");
    }

    /// Goes back to undo number `to`.
    pub fn rollback_to(&mut self, to: UndoNo) {
        rollback_to(self.bed.ctx(), &mut self.trx, self.bed, to).expect("rolled back");
    }

    /// Reads a row from `start` on of the cursor's index.
    pub fn read(&mut self, start: Start, locking: Locking) -> Result<Row> {
        let mut image = vec![0xF8; ROW_BYTES];
        self.heap.clear();
        let bed = self.bed;
        let mut op = Op {
            ctx: bed.ctx(),
            sys: &bed.sys,
            trx: &mut self.trx,
            patience: self.patience,
            killed: &never,
            observer: self.observer.as_ref(),
        };
        let mut reader = Reader {
            trees: bed.trees(),
            template: &bed.template,
            columns: &[0, 1, 2, 3],
            locking,
            heap: &mut self.heap,
            work: &mut self.work,
        };
        let mut rows = Rows::one(&mut image);
        self.cursor.fetch(&mut op, &mut reader, start, &mut rows)?;
        Ok(decode(&image, &self.heap))
    }

    /// Lets the row read last go.
    pub fn unlock_row(&mut self) {
        let bed = self.bed;
        let mut op = Op {
            ctx: bed.ctx(),
            sys: &bed.sys,
            trx: &mut self.trx,
            patience: self.patience,
            killed: &never,
            observer: self.observer.as_ref(),
        };
        self.cursor
            .unlock_row(&mut op, bed.trees())
            .expect("unlocked");
    }

    /// Reads by key image of host key `key`.
    pub fn find(&mut self, key: usize, image: &[u8], find: Find, locking: Locking) -> Result<Row> {
        self.cursor = Cursor::new(self.bed.template.index_of_key(key));
        *self.cursor.key() = self.key_of(key, image);
        self.read(Start::Key(find), locking)
    }

    /// All rows by host key `key`.
    pub fn scan(&mut self, key: usize, forwards: bool, locking: Locking) -> Result<Vec<Row>> {
        self.cursor = Cursor::new(self.bed.template.index_of_key(key));
        let (first, then) = match forwards {
            true => (Start::First, Start::Next),
            false => (Start::Last, Start::Prev),
        };
        let mut rows = Vec::new();
        let mut start = first;
        loop {
            match self.read(start, locking) {
                Ok(row) => rows.push(row),
                Err(crate::words::Error::EndOfFile) => return Ok(rows),
                Err(error) => return Err(error),
            }
            start = then;
        }
    }
}

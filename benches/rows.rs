//! What does a row cost? Point reads by primary key, a scan, single inserts, through the engine's own
//! interface, with everything in memory: `cargo bench --bench rows`.
//!
//! A table of 100 000 rows (`id INT PRIMARY KEY`, 200 bytes); the log is not flushed at commit, so
//! that the figures are the engine's and not the device's.

#![allow(missing_docs, reason = "the macro makes a public function")]

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::path::PathBuf;
use std::sync::Arc;
use xtradb::engine::{
    CreateOptions, Engine, Find, LockMode, OpenFlags, Session, SessionConfig, StatementFlags,
    TableHandle, TableUse, TrxFlags, Wait,
};
use xtradb::host::callbacks::SessionCtx;
use xtradb::host::image::{ColumnKind, ImageColumn, ImageKey, KeyKind, RowIn, TableImage};
use xtradb::words::{Error, Result};

const ROWS: i32 = 100_000;
const VALUE_BYTES: usize = 200;
/// The null byte, id, value.
const ROW_BYTES: usize = 1 + 4 + VALUE_BYTES;

struct Bed {
    engine: Arc<Engine>,
    session: Session,
    table: TableHandle,
    dir: PathBuf,
}

impl Bed {
    fn new() -> Bed {
        let dir = support::directory("bench-rows");
        let engine = support::open(&dir);
        let config = SessionConfig {
            isolation: xtradb::engine::Isolation::RepeatableRead,
            connection_id: 1,
            ctx: SessionCtx(0),
        };
        let mut session = Session::open(&engine, config).expect("a session");
        let options = CreateOptions::default();
        let created = engine.create_table(&mut session, "bench/rows", &image(), &options);
        created.expect("the table is created");
        let flags = OpenFlags::default();
        let table = TableHandle::open(&engine, "bench/rows", image(), flags).expect("it opens");
        let mut bed = Bed {
            engine,
            session,
            table,
            dir,
        };
        bed.fill();
        bed
    }

    fn fill(&mut self) {
        for first in (0..ROWS).step_by(1000) {
            self.session.begin(TrxFlags::default()).expect("begins");
            for id in first..first + 1000 {
                self.insert(id * 2);
            }
            self.session.commit().expect("commits");
        }
    }

    fn statement<T>(
        &mut self,
        lock: LockMode,
        body: impl FnOnce(&mut Session, &mut TableHandle) -> Result<T>,
    ) -> T {
        let Bed { session, table, .. } = self;
        session
            .statement_begin(StatementFlags::default())
            .expect("a statement begins");
        let how = TableUse {
            lock,
            wait: Wait::Default,
            write: lock == LockMode::Exclusive,
            lock_table: false,
        };
        table.begin_use(session, &how).expect("the table is free");
        let value = body(session, table).expect("the statement holds");
        table.end_use();
        session.statement_end().expect("the statement ends");
        value
    }

    fn insert(&mut self, id: i32) {
        let mut image = [b'v'; ROW_BYTES];
        image[0] = 0;
        image[1..5].copy_from_slice(&id.to_le_bytes());
        self.statement(LockMode::Exclusive, |session, table| {
            let row = RowIn {
                image: &image,
                blobs: &[],
            };
            table.insert(session, row)
        });
    }

    fn read(&mut self, id: i32) {
        self.statement(LockMode::None, |session, table| {
            let mut row = [0; ROW_BYTES];
            table.index_begin(session, 0)?;
            table.index_read(session, &mut row, &id.to_le_bytes(), Find::Exact)
        });
    }

    fn scan(&mut self) -> i32 {
        self.statement(LockMode::None, |session, table| {
            table.scan_begin(session, true)?;
            let mut row = [0; ROW_BYTES];
            let mut rows = 0;
            loop {
                match table.next(session, &mut row) {
                    Ok(()) => rows += 1,
                    Err(Error::EndOfFile) => return Ok(rows),
                    Err(error) => return Err(error),
                }
            }
        })
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = self.engine.close();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn image() -> TableImage {
    let id = ImageColumn::plain("id", ColumnKind::Long, 1, 4);
    let value = ImageColumn::plain("v", ColumnKind::String, 5, VALUE_BYTES as u32);
    let primary = ImageKey::of_column("PRIMARY", KeyKind::Primary, 0, 4);
    TableImage::new(vec![id, value], vec![primary], ROW_BYTES as u32, 1).expect("a sound image")
}

fn rows(c: &mut Criterion) {
    let mut bed = Bed::new();
    // An odd step through the even numbers: every id, in no order.
    let mut id = 0;
    c.bench_function("point read", |b| {
        b.iter(|| {
            id = (id + 77_777) % ROWS;
            bed.read(id * 2);
        });
    });
    let mut group = c.benchmark_group("scan");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.sample_size(10);
    group.bench_function("100 000 rows", |b| b.iter(|| assert_eq!(bed.scan(), ROWS)));
    group.finish();
    let mut next = 2 * ROWS;
    c.bench_function("insert", |b| {
        b.iter(|| {
            next += 1;
            bed.insert(next);
        });
    });
}

criterion_group!(benches, rows);
criterion_main!(benches);

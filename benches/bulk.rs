//! What does a row of a load cost, and of an index build, against the same rows one by one?
//! `cargo bench --bench bulk` prints processor time of the whole process (user and system, background
//! threads included) per row, and the ratio.
//!
//! 200 000 rows (`id INT PRIMARY KEY, n INT, 100 bytes`) in memory; the log is not flushed at commit.

mod support;

use std::sync::Arc;
use xtradb::engine::{
    CreateOptions, Engine, LockMode, OpenFlags, Session, SessionConfig, StatementFlags,
    TableHandle, TableUse, TrxFlags, Wait,
};
use xtradb::host::callbacks::SessionCtx;
use xtradb::host::image::{ColumnKind, ImageColumn, ImageKey, KeyKind, RowIn, TableImage};

const ROWS: u32 = 200_000;
const BATCH: u32 = 1000;
const VALUE_BYTES: usize = 100;
/// The null byte, id, n, value.
const ROW_BYTES: usize = 1 + 4 + 4 + VALUE_BYTES;
/// Odd and prime to `ROWS`: every id once, in no order.
const STEP: u32 = 77_777;
/// Clock ticks of /proc/self/stat, in seconds.
const TICK: f64 = 0.01;

/// Processor time of this process so far, in seconds.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after = stat.rsplit(')').next().expect("the name ends");
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |i: usize| fields[i].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) * TICK
}

fn image(with_key: bool) -> TableImage {
    let mut keys = vec![ImageKey::of_column("PRIMARY", KeyKind::Primary, 0, 4)];
    if with_key {
        keys.push(ImageKey::of_column("n", KeyKind::Plain, 1, 4));
    }
    let value_bytes = VALUE_BYTES as u32;
    let columns = vec![
        ImageColumn::plain("id", ColumnKind::Long, 1, 4),
        ImageColumn::plain("n", ColumnKind::Long, 5, 4),
        ImageColumn::plain("v", ColumnKind::String, 9, value_bytes),
    ];
    TableImage::new(columns, keys, ROW_BYTES as u32, 1).expect("a sound image")
}

fn row(number: u32, in_order: bool) -> [u8; ROW_BYTES] {
    let id = match in_order {
        true => number,
        false => (u64::from(number) * u64::from(STEP) % u64::from(ROWS)) as u32,
    };
    let mut row = [b'v'; ROW_BYTES];
    row[0] = 0;
    row[1..5].copy_from_slice(&id.to_le_bytes());
    row[5..9].copy_from_slice(&id.wrapping_mul(2_654_435_761).to_le_bytes());
    row
}

struct Bed {
    engine: Arc<Engine>,
    session: Session,
    tables: u32,
}

impl Bed {
    fn table(&mut self, with_key: bool) -> (String, TableHandle) {
        self.tables += 1;
        let name = format!("bench/t{}", self.tables);
        let options = CreateOptions::default();
        self.engine
            .create_table(&mut self.session, &name, &image(with_key), &options)
            .expect("the table is created");
        let flags = OpenFlags::default();
        let table = TableHandle::open(&self.engine, &name, image(with_key), flags);
        (name, table.expect("it opens"))
    }

    /// Inserts all rows, `batch` a statement; seconds.
    fn fill(&mut self, table: &mut TableHandle, in_order: bool, batch: u32, bulk: bool) -> f64 {
        let before = processor();
        for first in (0..ROWS).step_by(batch as usize) {
            self.session.begin(TrxFlags::default()).expect("begins");
            let flags = StatementFlags {
                relaxed_unique: bulk,
                no_foreign_keys: bulk,
                ..StatementFlags::default()
            };
            self.session.statement_begin(flags).expect("begins");
            let how = TableUse {
                lock: LockMode::Exclusive,
                wait: Wait::Default,
                write: true,
                lock_table: false,
            };
            table
                .begin_use(&mut self.session, &how)
                .expect("it is free");
            if bulk {
                table
                    .bulk_begin(&mut self.session, u64::from(ROWS))
                    .expect("begins");
            }
            for number in first..first + batch {
                let image = row(number, in_order);
                let row = RowIn {
                    image: &image,
                    blobs: &[],
                };
                table.insert(&mut self.session, row).expect("inserted");
            }
            table.bulk_end(&mut self.session).expect("loaded");
            table.end_use();
            self.session.statement_end().expect("the statement ends");
            self.session.commit().expect("commits");
        }
        processor() - before
    }

    fn one_by_one(&mut self, in_order: bool, with_key: bool) -> f64 {
        let (_, mut table) = self.table(with_key);
        self.fill(&mut table, in_order, BATCH, false)
    }

    fn load(&mut self, in_order: bool, with_key: bool) -> f64 {
        let (_, mut table) = self.table(with_key);
        self.fill(&mut table, in_order, ROWS, true)
    }

    fn index(&mut self) -> f64 {
        let (name, mut table) = self.table(false);
        self.fill(&mut table, true, ROWS, true);
        drop(table);
        let before = processor();
        self.engine
            .add_indexes(&mut self.session, &name, &image(true), None)
            .expect("the index is built");
        processor() - before
    }
}

fn show(what: &str, seconds: f64, against: f64) {
    let micros = seconds * 1e6 / f64::from(ROWS);
    println!(
        "{what:<42} {micros:>7.2} µs/row  {:>6.1} x",
        against / seconds
    );
}

fn main() {
    let dir = support::directory("bench-bulk");
    let engine = support::open(&dir);
    let config = SessionConfig {
        isolation: xtradb::engine::Isolation::RepeatableRead,
        connection_id: 1,
        ctx: SessionCtx(0),
    };
    let session = Session::open(&engine, config).expect("a session");
    let mut bed = Bed {
        engine: engine.clone(),
        session,
        tables: 0,
    };
    println!("{ROWS} rows; processor time, and how often it fits into that of rows one by one");
    let mut keyed = [0.0; 2];
    for (i, (in_order, order)) in [(true, "in key order"), (false, "in random order")]
        .iter()
        .enumerate()
    {
        let plain = bed.one_by_one(*in_order, false);
        show(&format!("one by one, {order}"), plain, plain);
        show(&format!("load, {order}"), bed.load(*in_order, false), plain);
        let with_key = bed.one_by_one(*in_order, true);
        show(
            &format!("one by one, a second index, {order}"),
            with_key,
            with_key,
        );
        show(
            &format!("load, a second index, {order}"),
            bed.load(*in_order, true),
            with_key,
        );
        keyed[i] = with_key - plain;
    }
    show("the second index alone, one by one", keyed[0], keyed[0]);
    show("index build", bed.index(), keyed[0]);
    let Bed { session, .. } = bed;
    session.close();
    drop(engine.close());
    let _ = std::fs::remove_dir_all(&dir);
}

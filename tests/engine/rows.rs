//! Rows through sessions and handles: what the engine does to a stock server's table, the stock
//! server reads back.

use super::open;
use crate::support::checkers;
use crate::support::scratch::Scratch;
use crate::support::seed::Rng;
use crate::support::stock::Stock;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use xtradb::engine::{
    CheckFinding, Engine, Find, Isolation, LockMode, OpenFlags, Session, SessionConfig,
    StatementFlags, TableHandle, TableUse, TrxFlags, Wait,
};
use xtradb::host::callbacks::SessionCtx;
use xtradb::host::image::{ColumnKind, ImageColumn, ImageKey, KeyKind, RowIn, TableImage};
use xtradb::words::{Error, Result};

/// `t (id INT PRIMARY KEY, n INT, v VARBINARY(200), KEY n (n))`: one null byte, id, n, v.
const ROW_BYTES: usize = 1 + 4 + 4 + 1 + 200;

pub fn image() -> TableImage {
    let id = ImageColumn::plain("id", ColumnKind::Long, 1, 4);
    let n = ImageColumn {
        null_mask: 1,
        not_null: false,
        ..ImageColumn::plain("n", ColumnKind::Long, 5, 4)
    };
    let v = ImageColumn {
        null_mask: 2,
        not_null: false,
        length_bytes: 1,
        octets: 200,
        ..ImageColumn::plain("v", ColumnKind::VarChar, 9, 201)
    };
    let keys = vec![
        ImageKey::of_column("PRIMARY", KeyKind::Primary, 0, 4),
        ImageKey::of_column("n", KeyKind::Plain, 1, 4),
    ];
    TableImage::new(vec![id, n, v], keys, ROW_BYTES as u32, 1).expect("a sound image")
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub id: i32,
    pub n: Option<i32>,
    pub v: Vec<u8>,
}

impl Row {
    pub fn pack(&self) -> [u8; ROW_BYTES] {
        let mut row = [0; ROW_BYTES];
        row[0] = u8::from(self.n.is_none());
        row[1..5].copy_from_slice(&self.id.to_le_bytes());
        row[5..9].copy_from_slice(&self.n.unwrap_or(0).to_le_bytes());
        row[9] = self.v.len() as u8;
        row[10..10 + self.v.len()].copy_from_slice(&self.v);
        row
    }

    pub fn unpack(row: &[u8]) -> Row {
        let int = |at: usize| i32::from_le_bytes(row[at..at + 4].try_into().expect("4 bytes"));
        Row {
            id: int(1),
            n: (row[0] & 1 == 0).then(|| int(5)),
            v: row[10..10 + row[9] as usize].to_vec(),
        }
    }
}

pub fn session(engine: &Arc<Engine>, isolation: Isolation) -> Session {
    let config = SessionConfig {
        isolation,
        connection_id: 7,
        ctx: SessionCtx(0),
    };
    Session::open(engine, config).expect("a session")
}

pub fn table(engine: &Arc<Engine>) -> TableHandle {
    TableHandle::open(engine, "d/t", image(), OpenFlags::default()).expect("the table opens")
}

pub fn begin(
    session: &mut Session,
    table: &mut TableHandle,
    lock: LockMode,
    wait: Wait,
) -> Result<()> {
    session.statement_begin(StatementFlags::default())?;
    let how = TableUse {
        lock,
        wait,
        write: lock == LockMode::Exclusive,
        lock_table: false,
    };
    table.begin_use(session, &how)
}

pub fn end(session: &mut Session, table: &mut TableHandle, done: Result<()>) -> Result<()> {
    table.end_use();
    match done {
        Ok(()) => session.statement_end(),
        Err(error) => {
            session
                .statement_rollback()
                .expect("the statement is undone");
            Err(error)
        }
    }
}

pub fn insert(session: &mut Session, table: &mut TableHandle, row: &Row) -> Result<()> {
    begin(session, table, LockMode::Exclusive, Wait::NoWait)?;
    let packed = row.pack();
    let row = RowIn {
        image: &packed,
        blobs: &[],
    };
    let done = table.insert(session, row);
    end(session, table, done)
}

pub fn find(session: &mut Session, table: &mut TableHandle, id: i32) -> Result<[u8; ROW_BYTES]> {
    let mut row = [0; ROW_BYTES];
    table.index_begin(session, 0)?;
    table.index_read(session, &mut row, &id.to_le_bytes(), Find::Exact)?;
    Ok(row)
}

pub fn change(
    session: &mut Session,
    table: &mut TableHandle,
    id: i32,
    new: Option<&Row>,
) -> Result<()> {
    begin(session, table, LockMode::Exclusive, Wait::NoWait)?;
    let done = find(session, table, id).and_then(|_| match new {
        None => table.delete(session),
        Some(row) => {
            let packed = row.pack();
            let new = RowIn {
                image: &packed,
                blobs: &[],
            };
            match table.update(session, new) {
                Err(Error::RecordIsTheSame) => Ok(()),
                other => other,
            }
        }
    });
    end(session, table, done)
}

pub fn all(session: &mut Session, table: &mut TableHandle, key: Option<u32>) -> Vec<Row> {
    begin(session, table, LockMode::None, Wait::Default).expect("a read begins");
    match key {
        None => table.scan_begin(session, true).expect("a scan"),
        Some(key) => table.index_begin(session, key).expect("an index"),
    }
    let mut rows = Vec::new();
    let mut row = [0; ROW_BYTES];
    loop {
        match table.next(session, &mut row) {
            Ok(()) => rows.push(Row::unpack(&row)),
            Err(Error::EndOfFile) => break,
            Err(error) => panic!("{error}"),
        }
    }
    end(session, table, Ok(())).expect("a read ends");
    rows
}

pub fn random_row(rng: &mut Rng, id: i32) -> Row {
    let len = rng.below(200) as usize;
    Row {
        id,
        n: (!rng.one_in(5)).then(|| rng.below(50) as i32),
        v: rng.text(len).into_bytes(),
    }
}

const TABLE: &str = "CREATE DATABASE d; USE d; \
    CREATE TABLE t (id INT PRIMARY KEY, n INT, v VARBINARY(200), KEY n (n)) ENGINE=InnoDB; \
    INSERT INTO t SELECT seq, seq % 50, REPEAT('s', seq % 200) FROM seq_1_to_300";

/// A directory of the stock server with the table `d.t`, and its rows.
pub fn directory(datadir: &Path) -> BTreeMap<i32, Row> {
    let stock = Stock::start(datadir, &[]);
    stock.sql("", TABLE);
    stock.shutdown(true);
    (1..=300)
        .map(|id| Row {
            id,
            n: Some(id % 50),
            v: vec![b's'; id as usize % 200],
        })
        .map(|row| (row.id, row))
        .collect()
}

/// Random inserts, updates and deletes in transactions that commit or roll back, some half-way to a
/// savepoint; the model follows.
fn work(engine: &Arc<Engine>, rows: &mut BTreeMap<i32, Row>, rng: &mut Rng, rounds: u32) {
    let mut session = session(engine, Isolation::RepeatableRead);
    let mut table = table(engine);
    for _ in 0..rounds {
        session.begin(TrxFlags::default()).expect("a transaction");
        let before = rows.clone();
        let mut at_savepoint = None;
        for step in 0..1 + rng.below(8) {
            if step == 3 {
                session.savepoint_set(b"half").expect("a savepoint");
                at_savepoint = Some(rows.clone());
            }
            let id = rng.between(1, 400) as i32;
            let row = random_row(rng, id);
            match rng.below(3) {
                0 => match insert(&mut session, &mut table, &row) {
                    Ok(()) => assert!(rows.insert(id, row).is_none(), "id {id} was there"),
                    Err(Error::DuplicateKey { index: 0 }) => assert!(rows.contains_key(&id)),
                    Err(error) => panic!("insert of {id}: {error}"),
                },
                1 => match change(&mut session, &mut table, id, Some(&row)) {
                    Ok(()) => assert!(rows.insert(id, row).is_some(), "id {id} was not there"),
                    Err(Error::KeyNotFound) => assert!(!rows.contains_key(&id)),
                    Err(error) => panic!("update of {id}: {error}"),
                },
                _ => match change(&mut session, &mut table, id, None) {
                    Ok(()) => assert!(rows.remove(&id).is_some(), "id {id} was not there"),
                    Err(Error::KeyNotFound) => assert!(!rows.contains_key(&id)),
                    Err(error) => panic!("delete of {id}: {error}"),
                },
            }
        }
        match (rng.below(4), at_savepoint) {
            (0, _) => {
                session.rollback().expect("a rollback");
                *rows = before;
            }
            (1, Some(then)) => {
                session.savepoint_rollback(b"half").expect("back to half");
                *rows = then;
                session.commit().expect("a commit");
            }
            _ => session.commit().expect("a commit"),
        }
    }
    let found = all(&mut session, &mut table, None);
    assert!(found.iter().eq(rows.values()));
    let mut by_n = all(&mut session, &mut table, Some(1));
    assert!(by_n.windows(2).all(|pair| pair[0].n <= pair[1].n));
    by_n.sort_by_key(|row| row.id);
    assert!(by_n.iter().eq(rows.values()));
    let mut findings = Vec::new();
    let mut note = |finding: CheckFinding| {
        findings.push(finding.text);
        true
    };
    session.commit().expect("a commit");
    session
        .statement_begin(StatementFlags::default())
        .expect("a statement");
    let sound = table.check(&mut session, true, &mut note).expect("a check");
    assert!(sound, "{findings:?}");
    session.statement_end().expect("a statement");
    session.close();
}

pub fn stock_sees(datadir: &Path, rows: &BTreeMap<i32, Row>) {
    checkers::check_data_dir(datadir).expect("no checker complains");
    stock_recovers(datadir, rows);
}

/// The same for a directory that was not shut down: its files alone are not whole.
pub fn stock_recovers(datadir: &Path, rows: &BTreeMap<i32, Row>) {
    let stock = Stock::start(datadir, &[]);
    assert_eq!(stock.check_tables("d"), 1);
    let mut wanted = String::from("id\tn\tv\n");
    for row in rows.values() {
        let n = row.n.map_or("NULL".to_string(), |n| n.to_string());
        let v = String::from_utf8(row.v.clone()).expect("text");
        wanted += &format!("{}\t{n}\t{v}\n", row.id);
    }
    assert_eq!(stock.sql("d", "SELECT id, n, v FROM t ORDER BY id"), wanted);
    stock.shutdown(false);
}

#[test]
fn the_stock_server_reads_what_random_transactions_left() {
    let mut rng = Rng::announced("engine-rows");
    let scratch = Scratch::new("engine-rows");
    let datadir = scratch.dir("data");
    let mut rows = directory(&datadir);
    let engine = open(&datadir, &[]).unwrap_or_else(|error| panic!("open: {error}"));
    engine.recovery_done();
    work(&engine, &mut rows, &mut rng, 150);
    engine.close().expect("close");
    drop(engine);
    stock_sees(&datadir, &rows);
    let engine = open(&datadir, &["fast_shutdown=0"]).expect("open");
    work(&engine, &mut rows, &mut rng, 30);
    engine.close().expect("close");
    drop(engine);
    stock_sees(&datadir, &rows);
}

#[test]
fn what_was_committed_survives_a_stop_without_a_word_and_nothing_else_does() {
    let mut rng = Rng::announced("engine-crash");
    let scratch = Scratch::new("engine-stops");
    let datadir = scratch.dir("data");
    let mut rows = directory(&datadir);
    for round in 0..4 {
        let engine = open(&datadir, &[]).unwrap_or_else(|error| panic!("open: {error}"));
        engine.recovery_done();
        work(&engine, &mut rows, &mut rng, 40);
        let mut lost = session(&engine, Isolation::ReadCommitted);
        let mut handle = table(&engine);
        for id in 1000..1020 {
            let row = random_row(&mut rng, id);
            insert(&mut lost, &mut handle, &row).expect("an insert");
        }
        let first = *rows.keys().next().expect("a row");
        change(&mut lost, &mut handle, first, None).expect("a delete");
        engine.flush_log(true).expect("the log is written");
        // No close: what a kill leaves.
        drop((lost, handle, engine));
        if round % 2 == 1 {
            stock_recovers(&datadir, &rows);
        }
    }
}

#[test]
fn a_read_only_engine_reads_and_changes_no_byte() {
    let scratch = Scratch::new("engine-read-only");
    let datadir = scratch.dir("data");
    let rows = directory(&datadir);
    let bytes = |name: &str| std::fs::read(datadir.join(name)).expect("a file");
    let files = ["ibdata1", "ib_logfile0", "d/t.ibd"];
    let before = files.map(bytes);
    let engine = open(&datadir, &["read_only=ON"]).unwrap_or_else(|error| panic!("open: {error}"));
    let mut reader = session(&engine, Isolation::RepeatableRead);
    let mut handle = table(&engine);
    assert!(all(&mut reader, &mut handle, None).iter().eq(rows.values()));
    let row = random_row(&mut Rng::new(1), 1000);
    assert_eq!(insert(&mut reader, &mut handle, &row), Err(Error::ReadOnly));
    reader.close();
    drop(handle);
    engine.close().expect("close");
    drop(engine);
    assert!(files.map(bytes) == before, "a file changed");
}

#[test]
fn a_missing_file_is_named_and_damage_stays_with_its_table() {
    let scratch = Scratch::new("engine-damage");
    let datadir = scratch.dir("data");
    let rows = directory(&datadir);
    {
        let stock = Stock::start(&datadir, &["--innodb-flush-log-at-trx-commit=1"]);
        stock.sql(
            "",
            "CREATE DATABASE e; USE e; \
             CREATE TABLE t (id INT PRIMARY KEY, n INT, v VARBINARY(200), KEY n (n)) ENGINE=InnoDB; \
             INSERT INTO t SELECT * FROM d.t; UPDATE d.t SET n = n + 1; UPDATE d.t SET n = n - 1",
        );
        stock.kill();
    }
    let away = scratch.path().join("away");
    let file = datadir.join("d/t.ibd");
    std::fs::rename(&file, &away).expect("renamed");
    let engine = open(&datadir, &[]).unwrap_or_else(|error| panic!("open: {error}"));
    match TableHandle::open(&engine, "d/t", image(), OpenFlags::default()) {
        Ok(_) => panic!("opened without d/t.ibd"),
        Err(error) => assert!(error.to_string().contains("d/t.ibd"), "{error}"),
    }
    engine.close().expect("close");
    drop(engine);
    let mut bytes = std::fs::read(&away).expect("the file");
    // From the root on: neither the log nor a doublewrite copy has whole pages of it.
    bytes[3 * 16384 + 200..].fill(0xA5);
    std::fs::write(&file, &bytes).expect("written");
    let engine = open(&datadir, &[]).unwrap_or_else(|error| panic!("open: {error}"));
    let mut reader = session(&engine, Isolation::RepeatableRead);
    let mut handle = TableHandle::open(&engine, "e/t", image(), OpenFlags::default()).expect("e.t");
    assert!(all(&mut reader, &mut handle, None).iter().eq(rows.values()));
    drop(handle);
    let damaged = TableHandle::open(&engine, "d/t", image(), OpenFlags::default());
    let read = damaged.and_then(|mut handle| {
        begin(&mut reader, &mut handle, LockMode::None, Wait::Default)?;
        handle.scan_begin(&mut reader, true)?;
        let mut row = [0; ROW_BYTES];
        let mut read = Ok(());
        while read.is_ok() {
            read = handle.next(&mut reader, &mut row);
        }
        end(&mut reader, &mut handle, Ok(()))?;
        read
    });
    assert!(matches!(read, Err(Error::Corrupt(_))), "{read:?}");
    reader.close();
    engine.close().expect("close");
}

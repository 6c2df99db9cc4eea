//! Several sessions at once: views, waits for locks, transfers.

use super::open;
use super::rows::{Row, all, begin, change, directory, end, find, insert, random_row, session};
use super::rows::{stock_sees, table};
use crate::support::scratch::Scratch;
use crate::support::seed::Rng;
use xtradb::engine::{
    Isolation, LockMode, Session, StatementFlags, TableHandle, TableUse, TrxFlags, Wait,
};
use xtradb::host::image::RowIn;
use xtradb::words::{Error, Result};

#[test]
fn a_reader_keeps_its_view_and_a_writer_is_waited_for() {
    let scratch = Scratch::new("engine-two");
    let datadir = scratch.dir("data");
    let rows = directory(&datadir);
    let engine = open(&datadir, &[]).unwrap_or_else(|error| panic!("open: {error}"));
    let mut reader = session(&engine, Isolation::RepeatableRead);
    let mut writer = session(&engine, Isolation::RepeatableRead);
    let (mut read, mut write) = (table(&engine), table(&engine));
    assert!(all(&mut reader, &mut read, None).iter().eq(rows.values()));
    let row = Row {
        id: 5,
        n: None,
        v: b"new".to_vec(),
    };
    change(&mut writer, &mut write, 5, Some(&row)).expect("an update");
    change(&mut writer, &mut write, 6, None).expect("a delete");
    let busy = change(&mut reader, &mut read, 5, None);
    assert_eq!(busy, Err(Error::LockWaitTimeout));
    writer.commit().expect("a commit");
    assert!(all(&mut reader, &mut read, None).iter().eq(rows.values()));
    reader.commit().expect("a commit");
    let seen = all(&mut reader, &mut read, None);
    assert_eq!(seen.len(), rows.len() - 1);
    assert_eq!(seen[4], row);
    reader.close();
    writer.close();
    drop((read, write));
    engine.close().expect("close");
}

#[test]
fn a_wait_for_a_lock_shows_in_the_report_and_ends_with_the_commit() {
    let scratch = Scratch::new("engine-waits");
    let datadir = scratch.dir("data");
    directory(&datadir);
    let engine = open(&datadir, &[]).unwrap_or_else(|error| panic!("open: {error}"));
    let mut first = session(&engine, Isolation::RepeatableRead);
    let mut table_of_first = table(&engine);
    change(&mut first, &mut table_of_first, 7, None).expect("a delete");
    let waiter = {
        let engine = engine.clone();
        std::thread::spawn(move || {
            let mut second = session(&engine, Isolation::RepeatableRead);
            let mut table = table(&engine);
            begin(
                &mut second,
                &mut table,
                LockMode::Exclusive,
                Wait::Seconds(30),
            )
            .expect("begun");
            let found = find(&mut second, &mut table, 7).map(|_| ());
            table.end_use();
            second.close();
            found
        })
    };
    let report = loop {
        let report = engine.lock_report();
        if !report.waits.is_empty() {
            break report;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let states: Vec<_> = report.transactions.iter().map(|trx| trx.state).collect();
    assert!(
        states.contains(&"LOCK WAIT") && states.contains(&"RUNNING"),
        "{states:?}"
    );
    assert_eq!(report.locks.len(), 2);
    for lock in &report.locks {
        assert_eq!(
            (&*lock.table, lock.index.as_deref()),
            ("`d`.`t`", Some("PRIMARY"))
        );
        assert_eq!(lock.data.as_deref(), Some("7"));
    }
    // A third session reads plainly, in autocommit.
    let mut third = session(&engine, Isolation::RepeatableRead);
    let mut table_of_third = table(&engine);
    let autocommit = StatementFlags {
        autocommit: true,
        ..StatementFlags::default()
    };
    third.statement_begin(autocommit).expect("begun");
    let plainly = TableUse {
        lock: LockMode::None,
        wait: Wait::Default,
        write: false,
        lock_table: false,
    };
    table_of_third
        .begin_use(&mut third, &plainly)
        .expect("bound");
    std::thread::sleep(std::time::Duration::from_millis(200));
    let report = engine.lock_report();
    let mut uses: Vec<_> = report
        .transactions
        .iter()
        .map(|trx| (trx.state, trx.tables_in_use, trx.autocommit_non_locking))
        .collect();
    uses.sort_unstable();
    let expected = [
        ("LOCK WAIT", 1, false),
        ("RUNNING", 0, false),
        ("RUNNING", 1, true),
    ];
    assert_eq!(uses, expected);
    end(&mut third, &mut table_of_third, Ok(())).expect("ended");
    third.close();
    drop(table_of_third);
    first.commit().expect("a commit");
    assert_eq!(waiter.join().expect("no panic"), Err(Error::KeyNotFound));
    first.close();
    drop(table_of_first);
    engine.close().expect("close");
}

/// One transfer: two rows change, or none.
fn transfer(
    session: &mut Session,
    table: &mut TableHandle,
    from: i32,
    to: i32,
    amount: i32,
) -> Result<()> {
    session.begin(TrxFlags::default())?;
    for (id, by) in [(from, -amount), (to, amount)] {
        begin(session, table, LockMode::Exclusive, Wait::Seconds(2))?;
        let done = find(session, table, id).and_then(|packed| {
            let mut row = Row::unpack(&packed);
            row.n = row.n.map(|n| n + by);
            let packed = row.pack();
            let new = RowIn {
                image: &packed,
                blobs: &[],
            };
            table.update(session, new)
        });
        end(session, table, done)?;
    }
    session.commit()
}

#[test]
fn many_sessions_at_once_lose_no_transfer() {
    const THREADS: u64 = 4;
    let seed = Rng::announced("engine-transfers").next();
    let scratch = Scratch::new("engine-transfers");
    let datadir = scratch.dir("data");
    let before = directory(&datadir);
    let options = [
        "buffer_pool_size=5M",
        "log_file_size=4M",
        "flush_log_at_trx_commit=2",
    ];
    let engine = open(&datadir, &options).unwrap_or_else(|error| panic!("open: {error}"));
    engine.recovery_done();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(6);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let engine = engine.clone();
            std::thread::spawn(move || {
                let mut rng = Rng::new(seed ^ thread);
                let mut own = session(&engine, Isolation::RepeatableRead);
                let mut handle = table(&engine);
                let (mut done, mut victims) = (0, 0);
                let mut next = 10_000 * (thread as i32 + 1);
                while std::time::Instant::now() < until {
                    let (from, to) = (rng.between(1, 12) as i32, rng.between(1, 12) as i32);
                    match transfer(
                        &mut own,
                        &mut handle,
                        from,
                        to + 12 * i32::from(from == to),
                        1,
                    ) {
                        Ok(()) => done += 1,
                        Err(Error::Deadlock | Error::LockWaitTimeout) => {
                            victims += 1;
                            own.rollback().expect("a rollback");
                        }
                        Err(error) => panic!("{error}"),
                    }
                    // Rows come and go, so that pages split and merge and purge has work.
                    next += 1;
                    let row = random_row(&mut rng, next);
                    insert(&mut own, &mut handle, &row).expect("an insert");
                    if next % 3 != 0 {
                        change(&mut own, &mut handle, next, None).expect("a delete");
                    }
                    own.commit().expect("a commit");
                    if rng.one_in(50) {
                        let sum: i64 = all(&mut own, &mut handle, None)
                            .iter()
                            .filter(|row| row.id <= 300)
                            .map(|row| i64::from(row.n.expect("no NULL")))
                            .sum();
                        own.commit().expect("a commit");
                        assert_eq!(
                            sum,
                            (1..=300i64).map(|id| id % 50).sum::<i64>(),
                            "a torn view"
                        );
                    }
                }
                own.close();
                (done, victims)
            })
        })
        .collect();
    let counts: Vec<(u32, u32)> = threads
        .into_iter()
        .map(|thread| thread.join().expect("no panic"))
        .collect();
    println!("transfers and victims: {counts:?}");
    let mut last = session(&engine, Isolation::RepeatableRead);
    let mut handle = table(&engine);
    let rows = all(&mut last, &mut handle, None);
    let sum = |rows: &mut dyn Iterator<Item = &Row>| -> i64 {
        let old = rows.filter(|row| row.id <= 300);
        old.map(|row| i64::from(row.n.expect("no NULL"))).sum()
    };
    assert_eq!(sum(&mut rows.iter()), sum(&mut before.values()));
    last.close();
    drop(handle);
    engine.close().expect("close");
    drop(engine);
    let rows = rows.into_iter().map(|row| (row.id, row)).collect();
    stock_sees(&datadir, &rows);
}

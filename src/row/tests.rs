//! A table against a `BTreeMap`: statements, rollbacks, readers with views.

use std::collections::BTreeMap;

use super::testing::{Bed, Row, Session};
use super::*;
use crate::mtr::Mode;
use crate::mtr::testing::SPACE;
use crate::page::layout;
use crate::sync::Rank;
use crate::trx::Isolation;
use crate::words::{Error, PageId, TableId};

/// xorshift64*: a seed gives the same run again.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

type Model = BTreeMap<i32, Row>;

fn row(id: i32, a: i32, v: &str) -> Row {
    Row {
        id,
        a: Some(a),
        v: Some(v.into()),
        b: None,
    }
}

fn random_row(rnd: &mut Random, id: i32) -> Row {
    let len = match rnd.below(12) {
        0 => 3000 + rnd.below(9000),
        1 | 2 => rnd.below(900),
        _ => rnd.below(60),
    };
    let fill = rnd.below(5) as u8;
    Row {
        id,
        a: (rnd.below(8) != 0).then(|| rnd.below(20) as i32 - 10),
        v: (rnd.below(3) == 0).then(|| format!("value {}", rnd.below(400)).into_bytes()),
        b: (rnd.below(6) != 0).then(|| (0..len).map(|i| fill + (i / 50) as u8).collect()),
    }
}

fn rows_of(model: &Model) -> Vec<Row> {
    model.values().cloned().collect()
}

/// The rows by every index, forwards and backwards, are the model's.
fn check(session: &mut Session<'_>, model: &Model, locking: Locking) {
    let expected = rows_of(model);
    assert_eq!(session.scan(0, true, locking).expect("scan"), expected);
    for key in 0..4 {
        let forwards = key % 2 == 0;
        let mut found = session.scan(key, forwards, locking).expect("scan");
        if key == 2 {
            assert!(found.is_sorted_by_key(|row| (row.a, row.id)), "{found:?}");
        }
        found.sort();
        assert_eq!(found, expected, "by key {key}");
    }
}

#[test]
fn a_row_comes_back_by_every_key() {
    let bed = Bed::new(128, true);
    let mut s = bed.session();
    s.begin(Isolation::RepeatableRead);
    for id in [5, -3, 9] {
        s.insert(&row(id, id * 10, &format!("v{id}")))
            .expect("inserted");
    }
    let again = s.insert(&row(9, 1, "x"));
    assert_eq!(again, Err(Error::DuplicateKey { index: 0 }));
    let again = s.insert(&row(10, 1, "v5"));
    assert_eq!(again, Err(Error::DuplicateKey { index: 1 }));
    s.commit();
    s.begin(Isolation::RepeatableRead);
    let none = Locking::None;
    let found = s.find(0, &9i32.to_le_bytes(), Find::Exact, none);
    assert_eq!(found, Ok(row(9, 90, "v9")));
    let mut key = vec![0, 2, 0];
    key.extend_from_slice(b"v5");
    key.resize(203, 0);
    assert_eq!(s.find(1, &key, Find::Exact, none), Ok(row(5, 50, "v5")));
    let mut key = vec![0];
    key.extend_from_slice(&(-40i32).to_le_bytes());
    assert_eq!(
        s.find(2, &key, Find::KeyOrNext, none),
        Ok(row(-3, -30, "v-3"))
    );
    assert_eq!(s.read(Start::Next, none), Ok(row(5, 50, "v5")));
    assert_eq!(s.read(Start::Prev, none), Ok(row(-3, -30, "v-3")));
    assert_eq!(s.read(Start::Prev, none), Err(Error::EndOfFile));
    let found = s.find(0, &4i32.to_le_bytes(), Find::Exact, none);
    assert_eq!(found, Err(Error::KeyNotFound));
    let found = s.find(0, &4i32.to_le_bytes(), Find::KeyOrPrev, none);
    assert_eq!(found, Ok(row(-3, -30, "v-3")));
    s.commit();
}

#[test]
fn a_view_does_not_see_what_comes_after_it() {
    let bed = Bed::new(128, true);
    let (mut w, mut r) = (bed.session(), bed.session());
    w.begin(Isolation::RepeatableRead);
    w.insert(&row(1, 10, "one")).expect("inserted");
    w.insert(&row(2, 20, "two")).expect("inserted");
    w.commit();
    r.begin(Isolation::RepeatableRead);
    r.trx.open_snapshot();
    w.begin(Isolation::RepeatableRead);
    w.update(1, &row(1, 99, "uno")).expect("updated");
    w.delete(2).expect("deleted");
    w.insert(&row(3, 30, "three")).expect("inserted");
    let before = BTreeMap::from([(1, row(1, 10, "one")), (2, row(2, 20, "two"))]);
    let after = BTreeMap::from([(1, row(1, 99, "uno")), (3, row(3, 30, "three"))]);
    check(&mut r, &before, Locking::None);
    check(&mut w, &after, Locking::None);
    w.commit();
    check(&mut r, &before, Locking::None);
    r.commit();
    r.begin(Isolation::ReadCommitted);
    r.statement();
    check(&mut r, &after, Locking::None);
    r.commit();
}

/// A run of one writer with statement rollbacks, rollbacks and commits, and readers that keep their
/// views while it goes on.
fn model_run(seed: u64, compact: bool, steps: usize) {
    println!("seed {seed:#x} compact {compact}");
    let mut rnd = Random(seed);
    let bed = Bed::new(512, compact);
    let mut committed = Model::new();
    let mut model = Model::new();
    let mut w = bed.session();
    w.begin(Isolation::RepeatableRead);
    let mut readers: Vec<(Session<'_>, Model)> = Vec::new();
    for step in 0..steps {
        let savepoint = (w.trx.next_undo_no(), model.clone());
        for _ in 0..1 + rnd.below(4) {
            one_change(&mut rnd, &mut w, &mut model, step);
        }
        match rnd.below(10) {
            0 => {
                w.rollback_to(savepoint.0);
                model = savepoint.1;
            }
            1 => {
                w.rollback();
                model = committed.clone();
                w.begin(Isolation::RepeatableRead);
            }
            2..=4 => {
                w.commit();
                committed = model.clone();
                w.begin(Isolation::RepeatableRead);
            }
            5 if readers.len() < 3 => {
                let mut r = bed.session();
                r.begin(Isolation::RepeatableRead);
                r.trx.open_snapshot();
                readers.push((r, committed.clone()));
            }
            6 if !readers.is_empty() => {
                let (mut r, seen) = readers.swap_remove(rnd.below(readers.len()));
                check(&mut r, &seen, Locking::None);
                r.commit();
            }
            _ => {}
        }
        if step % 20 == 19 {
            w.trx.close_view();
            check(&mut w, &model, Locking::None);
            check(&mut w, &model, Locking::Exclusive);
            bed.records();
        }
    }
    for (mut r, seen) in readers {
        check(&mut r, &seen, Locking::None);
        r.commit();
    }
    w.rollback();
    w.begin(Isolation::ReadCommitted);
    w.statement();
    check(&mut w, &committed, Locking::None);
    w.commit();
    bed.undo.check();
    bed.check();
}

fn one_change(rnd: &mut Random, w: &mut Session<'_>, model: &mut Model, step: usize) {
    let id = rnd.below(60) as i32;
    let new = random_row(rnd, id);
    let taken = |model: &Model, v: &Option<Vec<u8>>, but: i32| {
        v.is_some() && model.values().any(|row| row.v == *v && row.id != but)
    };
    match rnd.below(6) {
        0..=2 => {
            let done = w.insert(&new);
            let index = match model.contains_key(&id) {
                true => Some(0),
                false => taken(model, &new.v, id).then_some(1),
            };
            match index {
                Some(index) => assert_eq!(done, Err(Error::DuplicateKey { index }), "step {step}"),
                None => {
                    done.expect("inserted");
                    model.insert(id, new);
                }
            }
        }
        3 | 4 if model.contains_key(&id) => {
            // Sometimes to another key.
            let to = if rnd.below(3) == 0 {
                rnd.below(60) as i32
            } else {
                id
            };
            let new = Row { id: to, ..new };
            let done = w.update(id, &new);
            if model[&id] == new {
                assert_eq!(done, Err(Error::RecordIsTheSame));
            } else if to != id && model.contains_key(&to) {
                assert_eq!(done, Err(Error::DuplicateKey { index: 0 }), "step {step}");
            } else if taken(model, &new.v, id) {
                assert_eq!(done, Err(Error::DuplicateKey { index: 1 }), "step {step}");
            } else {
                done.expect("updated");
                model.remove(&id);
                model.insert(to, new);
            }
        }
        _ if model.contains_key(&id) => {
            w.delete(id).expect("deleted");
            model.remove(&id);
        }
        _ => {}
    }
}

#[test]
fn a_dynamic_table_holds_what_the_model_holds() {
    model_run(0x1234_5678_9ABC_DEF1, true, 150);
}

#[test]
fn a_redundant_table_holds_what_the_model_holds() {
    model_run(0xFEDC_BA98_7654_3211, false, 100);
}

#[test]
fn a_locking_read_keeps_the_gap_closed_and_a_record_lock_does_not() {
    let bed = Bed::new(128, true);
    let (mut a, mut b) = (bed.session(), bed.session());
    b.patience = Patience::NoWait;
    a.begin(Isolation::RepeatableRead);
    for id in [10, 20, 30] {
        a.insert(&row(id, id, &format!("v{id}"))).expect("inserted");
    }
    a.commit();
    let timeout = Err(Error::LockWaitTimeout);
    // The whole unique key: the record alone.
    a.begin(Isolation::RepeatableRead);
    a.find(0, &20i32.to_le_bytes(), Find::Exact, Locking::Exclusive)
        .expect("found");
    b.begin(Isolation::RepeatableRead);
    assert_eq!(b.insert(&row(15, 15, "v15")), Ok(()));
    assert_eq!(b.update(20, &row(20, 1, "x")), timeout);
    let read = b.find(0, &20i32.to_le_bytes(), Find::Exact, Locking::None);
    assert_eq!(read, Ok(row(20, 20, "v20")));
    b.patience = Patience::SkipLocked;
    let rows = b.scan(0, true, Locking::Exclusive).expect("scan");
    assert_eq!(rows.iter().map(|r| r.id).collect::<Vec<_>>(), [10, 15, 30]);
    b.patience = Patience::NoWait;
    b.rollback();
    a.commit();
    // A range: its gaps too, up to and with the record after it.
    a.begin(Isolation::RepeatableRead);
    a.find(0, &12i32.to_le_bytes(), Find::KeyOrNext, Locking::Shared)
        .expect("found");
    b.begin(Isolation::RepeatableRead);
    assert_eq!(b.insert(&row(15, 15, "v15")), timeout);
    assert_eq!(b.insert(&row(25, 25, "v25")), Ok(()));
    b.rollback();
    a.commit();
    // READ COMMITTED locks no gaps.
    a.begin(Isolation::ReadCommitted);
    a.find(0, &12i32.to_le_bytes(), Find::KeyOrNext, Locking::Exclusive)
        .expect("found");
    b.begin(Isolation::RepeatableRead);
    assert_eq!(b.insert(&row(15, 15, "v15")), Ok(()));
    b.rollback();
    a.commit();
}

#[test]
fn rows_written_by_a_running_transaction_are_locked_implicitly() {
    let bed = Bed::new(128, true);
    let (mut a, mut b) = (bed.session(), bed.session());
    b.patience = Patience::NoWait;
    a.begin(Isolation::RepeatableRead);
    a.insert(&row(1, 10, "one")).expect("inserted");
    b.begin(Isolation::RepeatableRead);
    let timeout = Err(Error::LockWaitTimeout);
    assert_eq!(b.insert(&row(1, 5, "x")), timeout);
    assert_eq!(b.insert(&row(2, 5, "one")), timeout);
    let mut key = vec![0];
    key.extend_from_slice(&10i32.to_le_bytes());
    let by_secondary = b.find(2, &key, Find::Exact, Locking::Shared).map(|_| ());
    assert_eq!(by_secondary, timeout);
    assert_eq!(
        b.find(2, &key, Find::Exact, Locking::None),
        Err(Error::KeyNotFound)
    );
    a.commit();
    assert_eq!(
        b.insert(&row(2, 5, "one")),
        Err(Error::DuplicateKey { index: 1 })
    );
    b.rollback();
    // An entry that a running transaction has marked.
    a.begin(Isolation::RepeatableRead);
    a.update(1, &row(1, 11, "eins")).expect("updated");
    b.begin(Isolation::RepeatableRead);
    let by_secondary = b.find(2, &key, Find::Exact, Locking::Shared).map(|_| ());
    assert_eq!(by_secondary, timeout);
    assert_eq!(b.insert(&row(2, 5, "one")), timeout);
    a.rollback();
    let by_secondary = b.find(2, &key, Find::Exact, Locking::Shared);
    assert_eq!(by_secondary, Ok(row(1, 10, "one")));
    b.rollback();
}

#[test]
fn transfers_keep_the_sum_for_every_view() {
    let bed = Bed::new(256, true);
    let accounts = 12;
    let mut s = bed.session();
    s.begin(Isolation::RepeatableRead);
    for id in 0..accounts {
        let mut account = row(id, 100, "");
        account.v = None;
        s.insert(&account).expect("inserted");
    }
    s.commit();
    let running = &std::sync::atomic::AtomicU32::new(3);
    std::thread::scope(|scope| {
        let bed = &bed;
        for t in 0..3u64 {
            scope.spawn(move || {
                let _ended = Ended(running);
                transfer(bed, 77 + t, accounts);
            });
        }
        for isolation in [Isolation::RepeatableRead, Isolation::ReadCommitted] {
            scope.spawn(move || {
                let mut r = bed.session();
                while running.load(std::sync::atomic::Ordering::SeqCst) > 0 {
                    r.begin(isolation);
                    r.statement();
                    for key in [0, 2] {
                        let rows = r.scan(key, true, Locking::None).expect("scan");
                        let sum: i32 = rows.iter().map(|row| row.a.expect("a value")).sum();
                        assert_eq!((rows.len(), sum), (accounts as usize, accounts * 100));
                    }
                    r.commit();
                }
            });
        }
    });
    bed.records();
}

/// Counts a writer out, also one that panics.
struct Ended<'a>(&'a std::sync::atomic::AtomicU32);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

fn transfer(bed: &Bed, seed: u64, accounts: i32) {
    let mut rnd = Random(seed);
    let mut s = bed.session();
    let mut done = 0;
    while done < 60 {
        s.begin(Isolation::RepeatableRead);
        let (from, to) = (
            rnd.below(accounts as usize) as i32,
            rnd.below(accounts as usize) as i32,
        );
        let mut step = |id: i32, by: i32| {
            let mut row = s.find(0, &id.to_le_bytes(), Find::Exact, Locking::Exclusive)?;
            row.a = row.a.map(|a| a + by);
            s.update(id, &row)
        };
        let moved = match from == to {
            true => Err(Error::RecordIsTheSame),
            false => step(from, -7).and_then(|()| step(to, 7)),
        };
        match moved {
            Ok(()) if rnd.below(5) != 0 => {
                s.commit();
                done += 1;
            }
            Ok(()) | Err(Error::Deadlock | Error::RecordIsTheSame) => s.rollback(),
            Err(error) => {
                bed.sys.locks.each_record_lock(&mut |l| {
                    let (page, heap) = (l.page.page, l.heap);
                    println!(
                        "{:?} {page} {heap:?} {:?} waits {}",
                        l.owner.id(),
                        l.mode,
                        l.waiting
                    );
                });
                panic!("{error} for {:?}", s.trx.owner().id())
            }
        }
    }
}

#[test]
fn at_read_committed_rows_that_do_not_match_are_let_go() {
    let bed = Bed::new(128, true);
    let (mut a, mut b) = (bed.session(), bed.session());
    b.patience = Patience::NoWait;
    a.begin(Isolation::ReadCommitted);
    for id in [1, 2, 3] {
        a.insert(&row(id, id, &format!("v{id}"))).expect("inserted");
    }
    a.commit();
    a.begin(Isolation::ReadCommitted);
    a.cursor = Cursor::new(0);
    assert_eq!(
        a.read(Start::First, Locking::Exclusive),
        Ok(row(1, 1, "v1"))
    );
    a.unlock_row();
    assert_eq!(a.read(Start::Next, Locking::Exclusive), Ok(row(2, 2, "v2")));
    b.begin(Isolation::ReadCommitted);
    assert_eq!(b.update(1, &row(1, 5, "v1")), Ok(()));
    assert_eq!(b.update(2, &row(2, 5, "v2")), Err(Error::LockWaitTimeout));
    // The row that b has changed is shown as it was, and then waited for.
    a.cursor = Cursor::new(0);
    a.cursor.set_semi_consistent(true);
    a.patience = Patience::NoWait;
    assert_eq!(
        a.read(Start::First, Locking::Exclusive),
        Ok(row(1, 1, "v1"))
    );
    assert!(a.cursor.was_semi_consistent());
    assert_eq!(
        a.read(Start::Next, Locking::Exclusive),
        Err(Error::LockWaitTimeout)
    );
    assert_eq!(
        a.read(Start::First, Locking::Exclusive),
        Ok(row(1, 1, "v1"))
    );
    a.unlock_row();
    assert_eq!(a.read(Start::Next, Locking::Exclusive), Ok(row(2, 2, "v2")));
    assert!(!a.cursor.was_semi_consistent());
    assert_eq!(
        a.read(Start::First, Locking::Exclusive),
        Ok(row(1, 1, "v1"))
    );
    b.commit();
    assert_eq!(a.read(Start::Next, Locking::Exclusive), Ok(row(1, 5, "v1")));
    a.commit();
}

/// A table that this version cannot change was skipped by rollback as a dropped one is: its part of
/// an unfinished transaction of a stock server stayed, and the rest of that transaction was undone.
#[test]
fn a_table_that_this_version_cannot_change_is_no_dropped_one_for_rollback() {
    let dir = crate::dict::testing::SampleDir::open("mini");
    let tables = DictTables {
        ctx: &dir.ctx,
        dict: &dir.dict,
    };
    let (mut refused, mut unknown) = (0, 0);
    for row in dir.dict.table_rows(&dir.ctx).expect("rows") {
        let def = dir.dict.definition(&dir.ctx, &row.name).expect("known");
        let opened = tables.open(row.id);
        if def.format == crate::schema::table::RowFormat::Compressed {
            assert!(matches!(opened, Err(Error::Unsupported(_))), "{}", row.name);
            refused += 1;
            continue;
        }
        // The directory's host knows no collation but the binary ones: no entry of others can be found.
        let lacks = def.unknown_collations(&**dir.dict.collations());
        match lacks.iter().any(Option::is_some) {
            false => assert!(matches!(opened, Ok(Some(_))), "{}", row.name),
            true => {
                assert!(
                    matches!(opened, Err(Error::CollationUnknown(_))),
                    "{}",
                    row.name
                );
                unknown += 1;
            }
        }
    }
    assert!(refused > 0 && unknown > 0);
    assert!(matches!(tables.open(TableId(1 << 40)), Ok(None)));
}

/// A record whose DB_TRX_ID or DB_ROLL_PTR was NULL or of another length was changed in place without a look
/// at them: a panic.
#[test]
fn a_record_with_damaged_system_columns_is_an_error_to_whoever_changes_it() {
    // ROW_FORMAT=REDUNDANT: ends of fields stand in front of the six bytes of the header, backwards.
    for (field, end) in [(1, 0x80 | 10), (2, 0x80 | 17), (1, 9)] {
        let bed = Bed::new(64, false);
        let mut w = bed.session();
        w.begin(Isolation::RepeatableRead);
        w.insert(&row(1, 5, "five")).expect("a row");
        w.commit();
        let root = PageId::new(SPACE, bed.trees()[0].index().root);
        let mut mtr = bed.undo.pages.mtr();
        let page = mtr.get(root, Mode::X, Rank::None).expect("in the pool");
        let mut records = layout::records(mtr.view(page));
        let at = records.next().expect("one").expect("sound").at() - 6 - (field + 1);
        mtr.write(page, at, &[end]);
        mtr.commit();
        w.begin(Isolation::RepeatableRead);
        let done = w.update(1, &row(1, 6, "five"));
        assert!(
            matches!(done, Err(Error::Corrupt(_))),
            "{field} {end}: {done:?}"
        );
        w.rollback();
    }
}

#[test]
fn a_transaction_that_finds_no_room_for_its_locks_is_told_so_whatever_its_patience() {
    let bed = Bed::new(128, true);
    let mut a = bed.session();
    a.begin(Isolation::RepeatableRead);
    for id in [10, 20, 30] {
        a.insert(&row(id, id, &format!("v{id}"))).expect("inserted");
    }
    a.commit();
    for patience in [
        Patience::SkipLocked,
        Patience::NoWait,
        Patience::AtMost(std::time::Duration::from_secs(9)),
    ] {
        a.patience = patience;
        a.begin(Isolation::RepeatableRead);
        a.insert(&row(15, 15, "v15")).expect("it needs no lock");
        bed.sys.locks.set_memory_limit(0);
        let full = Err(Error::LockTableFull);
        assert_eq!(a.scan(0, true, Locking::Exclusive).map(drop), full);
        assert_eq!(a.update(20, &row(20, 1, "x")), full);
        let plain = a.scan(0, true, Locking::None).expect("no locks");
        assert_eq!(plain.len(), 4);
        // Undoing needs none.
        a.rollback();
        bed.sys.locks.set_memory_limit(u64::MAX);
        let locked = a.scan(0, true, Locking::Exclusive).expect("there is room");
        assert_eq!(locked.len(), 3);
        a.commit();
    }
}

//! A table against a `BTreeMap`: statements, rollbacks, readers with views.

use std::collections::BTreeMap;

use super::testing::{Bed, Row, Session};
use super::*;
use crate::trx::Isolation;
use crate::words::Error;

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
            if model[&id] == new && new.b.as_ref().is_none_or(|b| b.len() < 1000) {
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

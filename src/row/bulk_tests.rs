//! Loads of an empty table, against what inserts one by one give.

use super::testing::{Bed, Row};
use super::*;
use crate::extent::is_page_free;
use crate::mtr::testing::SPACE;
use crate::mtr::{Mtr, retry};
use crate::page::{layout, space};
use crate::sync::atomic::Ordering;
use crate::trx::Isolation;
use crate::words::{Error, PageId, PageNo};

const LEVEL: Isolation = Isolation::RepeatableRead;
/// The smallest innodb_sort_buffer_size, and one that holds everything.
const SMALL: usize = 64 << 10;
const LARGE: usize = 16 << 20;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }
}

/// `n` rows in random order; one of forty has an off-page value.
fn rows(n: usize, seed: u64) -> Vec<Row> {
    let mut random = Random(seed | 1);
    let mut rows: Vec<Row> = (0..n)
        .map(|i| Row {
            id: i as i32 * 3 - 1000,
            a: (random.below(5) > 0).then(|| random.below(50) as i32 - 25),
            v: (random.below(4) > 0).then(|| format!("{:x}-{i}", random.below(1 << 20)).into()),
            b: match random.below(40) {
                0 => Some(vec![i as u8; 4000 + random.below(9000)]),
                1..=20 => Some(vec![i as u8; random.below(60)]),
                _ => None,
            },
        })
        .collect();
    for i in (1..n).rev() {
        rows.swap(i, random.below(i + 1));
    }
    rows
}

fn sorted(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.sort();
    rows
}

/// Pages of the file that are not free.
fn used_pages(bed: &Bed) -> usize {
    let size = bed.ctx().spaces.find(SPACE).expect("open").size_pages();
    let pages = (0..size).map(|no| PageId::new(SPACE, PageNo(no)));
    let is_used = |&id: &PageId| !is_page_free(&mut Mtr::reader(bed.ctx()), id).expect("a page");
    pages.filter(is_used).count()
}

fn check_all(bed: &Bed, expected: &[Row]) {
    let mut session = bed.session();
    session.begin(LEVEL);
    assert_eq!(
        session.scan(0, true, Locking::None).expect("read"),
        expected
    );
    for key in 1..4 {
        let found = session.scan(key, true, Locking::None).expect("read");
        assert_eq!(sorted(&found), expected, "key {key}");
    }
    session.commit();
    assert!(bed.records().iter().all(|&n| n == expected.len() as u64));
    bed.check();
}

#[test]
fn a_load_gives_what_inserts_give_and_shows_it_at_the_commit() {
    for (compact, n, buffer) in [
        (true, 0, SMALL),
        (true, 1, SMALL),
        (true, 60, LARGE),
        (false, 300, LARGE),
        (true, 1200, SMALL),
        (false, 900, SMALL),
    ] {
        let bed = Bed::new(256, compact);
        let rows = rows(n, n as u64 + 7);
        let (mut loader, mut other) = (bed.session(), bed.session());
        other.begin(LEVEL);
        assert!(other.scan(0, true, Locking::None).expect("read").is_empty());
        loader.begin(LEVEL);
        loader.statement();
        let loaded = loader.load(&rows, buffer).expect("loaded");
        assert_eq!(loaded, Some(n as u64));
        assert_eq!(bed.ctx().sort_bytes.load(Ordering::Relaxed), 0);
        let expected = sorted(&rows);
        let own = loader.scan(0, true, Locking::None).expect("read");
        assert_eq!(own, expected, "its own rows");
        assert!(other.scan(0, true, Locking::None).expect("read").is_empty());
        let mut third = bed.session();
        third.patience = Patience::NoWait;
        third.begin(LEVEL);
        assert!(third.scan(1, true, Locking::None).expect("read").is_empty());
        let refused = third.insert(&rows_one(-5000));
        assert_eq!(refused, Err(Error::LockWaitTimeout), "the table is locked");
        loader.commit();
        assert!(other.scan(0, true, Locking::None).expect("read").is_empty());
        assert!(third.scan(1, true, Locking::None).expect("read").is_empty());
        other.commit();
        third.commit();
        check_all(&bed, &expected);
        // Only one record of undo: another load needs an empty table.
        let mut again = bed.session();
        again.begin(LEVEL);
        let loaded = again.load(&[rows_one(-9000)], LARGE).expect("no error");
        assert_eq!(loaded, if n == 0 { Some(1) } else { None });
        again.rollback();
        check_all(&bed, &expected);
    }
}

fn rows_one(id: i32) -> Row {
    Row {
        id,
        a: Some(1),
        v: None,
        b: None,
    }
}

#[test]
fn a_load_that_is_rolled_back_leaves_no_page_behind() {
    let bed = Bed::new(256, true);
    let before = used_pages(&bed);
    let rows = rows(900, 5);
    for whole in [true, false] {
        let mut session = bed.session();
        session.begin(LEVEL);
        session.statement();
        let start = session.trx.next_undo_no();
        assert!(session.load(&rows, SMALL).expect("loaded").is_some());
        assert!(used_pages(&bed) > before + 60);
        // What follows in the same transaction is undone first.
        session.insert(&rows_one(-7000)).expect("inserted");
        session
            .update(
                rows[0].id,
                &Row {
                    a: Some(77),
                    ..rows[0].clone()
                },
            )
            .expect("updated");
        session.delete(rows[1].id).expect("deleted");
        match whole {
            true => session.rollback(),
            false => session.rollback_to(start),
        }
        assert_eq!(used_pages(&bed), before);
        check_all(&bed, &[]);
        if !whole {
            session.insert(&rows_one(4)).expect("inserted");
            session.commit();
            check_all(&bed, &[rows_one(4)]);
        }
    }
}

/// The root of such a table is an empty leaf whose heap is full of what was removed.
#[test]
fn a_load_does_not_mind_what_a_table_held_before_it_was_emptied_row_by_row() {
    for (compact, before, loaded) in [
        (true, 1, 900),
        (true, 20, 900),
        (true, 60, 12),
        (true, 300, 900),
        (false, 20, 900),
        (false, 60, 12),
        (false, 300, 900),
    ] {
        let bed = Bed::new(256, compact);
        let mut session = bed.session();
        session.begin(LEVEL);
        for row in rows(before, 3) {
            session.insert(&row).expect("inserted");
        }
        session.rollback();
        check_all(&bed, &[]);
        let rows = rows(loaded, 11);
        session.begin(LEVEL);
        session.statement();
        let done = session.load(&rows, LARGE).expect("loaded");
        assert_eq!(done, Some(loaded as u64), "{before} rows before");
        session.commit();
        check_all(&bed, &sorted(&rows));
    }
}

#[test]
fn readers_walk_through_a_tree_that_is_being_emptied() {
    let bed = Bed::new(512, true);
    let rows = rows(900, 11);
    for _ in 0..2 {
        let mut session = bed.session();
        session.begin(LEVEL);
        assert!(session.load(&rows, LARGE).expect("loaded").is_some());
        std::thread::scope(|scope| {
            for key in 0..3 {
                let bed = &bed;
                scope.spawn(move || {
                    let mut reader = bed.session();
                    for i in 0..4 {
                        reader.begin(match i % 2 {
                            0 => Isolation::ReadUncommitted,
                            _ => LEVEL,
                        });
                        let seen = reader.scan(key, i % 3 > 0, Locking::None);
                        let seen = seen.expect("no damage is seen").len();
                        assert!(
                            i % 2 == 0 || seen == 0,
                            "{seen} rows of an open transaction"
                        );
                        reader.commit();
                    }
                });
            }
            session.rollback();
        });
        check_all(&bed, &[]);
    }
}

/// What inserting one by one refuses first.
fn first_refused(rows: &[Row]) -> Option<(u16, Row)> {
    let bed = Bed::new(256, true);
    let mut session = bed.session();
    session.begin(LEVEL);
    for row in rows {
        match session.insert(row) {
            Ok(()) => {}
            Err(Error::DuplicateKey { index }) => return Some((index, row.clone())),
            Err(error) => panic!("{error}"),
        }
    }
    None
}

#[test]
fn the_row_that_an_insert_would_refuse_first_is_named() {
    let mut random = Random(99);
    let mut met = [0; 2];
    for round in 0..16 {
        let mut rows = rows(80, round + 1);
        for _ in 0..1 + random.below(4) {
            let (from, to) = (random.below(80), random.below(80));
            match random.below(2) {
                0 => rows[to].id = rows[from].id,
                _ => rows[to].v = rows[from].v.clone(),
            }
        }
        let expected = first_refused(&rows);
        let bed = Bed::new(256, true);
        let before = used_pages(&bed);
        let mut session = bed.session();
        session.begin(LEVEL);
        let loaded = session.load(&rows, [SMALL, LARGE][random.below(2)]);
        match (loaded, expected) {
            (Ok(Some(n)), None) => assert_eq!(n, 80),
            (Err(failed), Some((index, row))) => {
                assert_eq!(failed.error, Error::DuplicateKey { index });
                met[usize::from(index)] += 1;
                let key = failed.key.expect("the key");
                let value = match index {
                    0 => (row.id as u32 ^ 1 << 31).to_be_bytes().to_vec(),
                    _ => row.v.expect("NULL is no duplicate"),
                };
                assert_eq!(key.field(0).bytes(), Some(&value[..]), "round {round}");
                assert_eq!(used_pages(&bed), before);
            }
            (loaded, expected) => panic!("round {round}: {loaded:?}, not {expected:?}"),
        }
        session.rollback();
        assert_eq!(bed.records(), [0; 4]);
    }
    assert!(met.iter().all(|&n| n > 2), "{met:?}");
}

/// Percent of the page that the records of each leaf but the last take.
fn leaf_fill(bed: &Bed, tree: usize) -> Vec<usize> {
    let tree = &bed.trees()[tree];
    let (fill, _) = retry(bed.ctx(), None, |mtr| {
        let mut at = tree.seek(mtr, crate::tree::Seek::First, crate::tree::Intent::Read)?;
        let mut fill = Vec::new();
        loop {
            let view = mtr.view(at.page);
            let room = crate::format::index_page::empty_free_space(view.len(), true);
            let slots = 2 * (layout::n_dir_slots(view) - 2);
            fill.push((space::data_size(view) + slots) * 100 / room);
            at.rec = layout::supremum(view);
            if !tree.next(mtr, &mut at)? {
                fill.pop();
                return Ok(fill);
            }
        }
    })
    .expect("sound");
    fill
}

#[test]
fn a_load_fills_clustered_leaves_to_fifteen_sixteenths_and_others_whole() {
    let bed = Bed::new(256, true);
    let rows: Vec<Row> = (0..2000)
        .map(|i| Row {
            v: Some(format!("{i:06}").into()),
            ..rows_one(i)
        })
        .collect();
    let mut session = bed.session();
    session.begin(LEVEL);
    session.load(&rows, LARGE).expect("loaded");
    session.commit();
    let clustered = leaf_fill(&bed, 0);
    assert!(
        clustered.len() > 15 && clustered.iter().all(|&p| (91..=94).contains(&p)),
        "{clustered:?}"
    );
    let secondary = leaf_fill(&bed, 1);
    assert!(
        secondary.len() > 5 && secondary.iter().all(|&p| p >= 98),
        "{secondary:?}"
    );
}

/// As the stock server's: 15/16 where a run of inserts splits, and half where it is broken.
#[test]
fn inserts_in_key_order_fill_pages_to_fifteen_sixteenths() {
    for step in [1, -1] {
        let bed = Bed::new(256, true);
        let mut session = bed.session();
        session.begin(LEVEL);
        for i in 0..1500 {
            session.insert(&rows_one(i * step)).expect("inserted");
        }
        session.commit();
        let fill = leaf_fill(&bed, 0);
        let (low, high) = (fill.iter().min(), fill.iter().max());
        assert!(fill.len() > 10, "{fill:?}");
        // Descending, the first page of the level is the one that fills.
        let full = fill.iter().filter(|&&p| (91..=94).contains(&p)).count();
        assert!(
            full + 1 >= fill.len(),
            "step {step}: {low:?} to {high:?} in {fill:?}"
        );
    }
}

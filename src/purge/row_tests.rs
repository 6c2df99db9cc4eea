//! Purge against rows: what is deleted goes wholly, what a view needs stays.

use super::*;
use crate::mtr::Mtr;
use crate::mtr::testing::SPACE;
use crate::row::testing::{Bed, Row, Session};
use crate::row::{Find, Locking, purge_record};
use crate::sync::Arc;
use crate::trx::Isolation;
use crate::words::{PageId, PageNo, Result};

struct Rows<'b>(&'b Bed);

impl RecordPurger for Rows<'_> {
    fn purge(&self, record: &PurgeRecord<'_>) -> Result<()> {
        let bed = self.0;
        purge_record(bed.ctx(), &bed.sys, bed, record.roll_ptr, &record.record)
    }
}

fn purge_all(bed: &Bed) {
    let purger = Rows(bed);
    let mut coordinator = Coordinator::new(bed.sys.clone(), Arc::new(Control::new()));
    for _ in 0..1000 {
        let batch = coordinator.batch(bed.ctx(), &purger, 1000).expect("purged");
        if batch.records == 0 && !batch.more {
            break;
        }
    }
}

fn used_pages(bed: &Bed) -> u32 {
    let size = bed.ctx().spaces.find(SPACE).expect("open").size_pages();
    (0..size)
        .filter(|&page| {
            let mut mtr = Mtr::reader(bed.ctx());
            let id = PageId::new(SPACE, PageNo(page));
            !crate::extent::is_page_free(&mut mtr, id).expect("a bit")
        })
        .count() as u32
}

fn row(id: i32, version: i32) -> Row {
    Row {
        id,
        a: Some(version),
        v: Some(format!("{id} {version}").into_bytes()),
        b: Some(vec![version as u8; if id % 3 == 0 { 9000 } else { 100 }]),
    }
}

fn churn(s: &mut Session<'_>, round: i32) {
    s.begin(Isolation::RepeatableRead);
    for id in 0..60 {
        match (id + round) % 4 {
            0 => drop(s.delete(id)),
            1 => drop(s.update(id, &row(id, round))),
            2 => drop(s.update(id, &row(100 + (id + round) % 60, round))),
            _ => drop(s.insert(&row(id, round))),
        }
    }
    match round % 5 {
        4 => s.rollback(),
        _ => s.commit(),
    }
}

#[test]
fn what_is_deleted_is_gone_after_purge() {
    let bed = Bed::new(512, true);
    let empty = used_pages(&bed);
    let mut s = bed.session();
    for round in 0..12 {
        churn(&mut s, round);
        if round % 3 == 0 {
            purge_all(&bed);
            let live = count(&mut s);
            assert_eq!(bed.records(), vec![live; 4], "round {round}");
        }
    }
    s.begin(Isolation::RepeatableRead);
    for id in 0..200 {
        let _absent = s.delete(id);
    }
    s.commit();
    purge_all(&bed);
    assert_eq!(bed.records(), vec![0; 4]);
    assert_eq!(used_pages(&bed), empty, "pages of trees or BLOBs are lost");
    bed.undo.check();
    bed.check();
}

fn count(s: &mut Session<'_>) -> u64 {
    s.begin(Isolation::ReadCommitted);
    s.statement();
    let rows = s.scan(0, true, Locking::None).expect("scan");
    s.commit();
    rows.len() as u64
}

#[test]
fn an_open_view_keeps_its_versions() {
    let bed = Bed::new(512, true);
    let mut w = bed.session();
    w.begin(Isolation::RepeatableRead);
    for id in 0..30 {
        w.insert(&row(id, 1)).expect("inserted");
    }
    w.commit();
    purge_all(&bed);
    let mut r = bed.session();
    r.begin(Isolation::RepeatableRead);
    r.trx.open_snapshot();
    for round in 2..8 {
        churn(&mut w, round);
        purge_all(&bed);
    }
    let expected: Vec<Row> = (0..30).map(|id| row(id, 1)).collect();
    for key in 0..4 {
        let mut seen = r.scan(key, true, Locking::None).expect("scan");
        seen.sort();
        assert_eq!(seen, expected, "by key {key}");
    }
    let one = r.find(0, &7i32.to_le_bytes(), Find::Exact, Locking::None);
    assert_eq!(one, Ok(row(7, 1)));
    r.commit();
    purge_all(&bed);
    let live = count(&mut w);
    assert_eq!(bed.records(), vec![live; 4]);
}

#[test]
fn purge_runs_beside_writers_and_readers() {
    let bed = Bed::new(1024, true);
    std::thread::scope(|scope| {
        let bed = &bed;
        let writers: Vec<_> = (0..2)
            .map(|t| {
                scope.spawn(move || {
                    let mut s = bed.session();
                    for round in 0..15 {
                        s.begin(Isolation::RepeatableRead);
                        for i in 0..15 {
                            let id = t * 1000 + (i * 7 + round) % 20;
                            let new = row(id, round);
                            if s.insert(&new).is_err() && s.update(id, &new).is_err() {
                                let _same = s.delete(id);
                            }
                        }
                        match round % 4 {
                            3 => s.rollback(),
                            _ => s.commit(),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            let mut r = bed.session();
            while !writers.iter().all(|w| w.is_finished()) {
                r.begin(Isolation::RepeatableRead);
                let first = r.scan(0, true, Locking::None).expect("scan");
                for key in 1..4 {
                    let mut again = r.scan(key, true, Locking::None).expect("scan");
                    again.sort();
                    assert_eq!(again, first, "by key {key}");
                }
                r.commit();
                purge_all(bed);
            }
        });
    });
    purge_all(&bed);
    let live = count(&mut bed.session());
    assert_eq!(bed.records(), vec![live; 4]);
}

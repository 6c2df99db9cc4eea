use super::*;
use crate::format::tests::Random;
use crate::host::callbacks::SessionCtx;
use crate::lock::LockTable;
use crate::mtr::{Budget, Mtr, PageCtx};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, Rank};
use crate::trx::{Isolation, Trx, TrxSystem};
use crate::undo::read;
use crate::undo::testing::{UndoBed, insert};
use crate::words::{Error, Result, SessionId, TrxId, TrxNo, UndoNo};

const P: usize = 16384;

fn system(bed: &UndoBed) -> Arc<TrxSystem> {
    let opened = bed.open();
    assert!(opened.found.is_empty());
    let locks = Arc::new(LockTable::new());
    Arc::new(TrxSystem::new(
        opened.next_trx_id,
        Arc::new(opened.rsegs),
        locks,
    ))
}

fn begin(sys: &Arc<TrxSystem>) -> Trx {
    let mut trx = sys.add(SessionId(1), SessionCtx::default());
    trx.start(Isolation::RepeatableRead, false, 1);
    trx
}

/// What a change of a row does to the undo log.
fn change(trx: &mut Trx, ctx: &PageCtx, len: usize) -> Result<crate::words::RollPtr> {
    trx.begin_write(ctx, false)?;
    loop {
        let needs = trx.reserve_undo(ctx, len + 16)?;
        let budget = Budget::statement(needs.log_bytes).with_frames(needs.frames);
        let mut mtr = Mtr::start(ctx, budget)?;
        match trx.append_undo(&mut mtr, |out, no| insert(out, no, 7, len)) {
            Err(Error::WouldBlock) => continue,
            other => return other,
        }
    }
}

/// Collects what is purged.
struct Seen(Mutex<Vec<(TrxNo, TrxId, UndoNo)>>);

impl Seen {
    fn new() -> Seen {
        Seen(Mutex::new(Rank::None, Vec::new()))
    }
}

impl RecordPurger for Seen {
    fn purge(&self, record: &PurgeRecord<'_>) -> Result<()> {
        let undo_no = record.record.undo_no;
        self.0.lock().push((record.no, record.trx_id, undo_no));
        Ok(())
    }
}

#[test]
fn what_a_view_may_need_is_kept_until_it_closes() {
    let bed = UndoBed::new(P, 512, 2);
    let (sys, ctx) = (system(&bed), &bed.pages.ctx);
    let mut purge = Coordinator::new(sys.clone(), Arc::new(Control::new()));
    let seen = Seen::new();
    let mut reader = begin(&sys);
    let mut old = begin(&sys);
    change(&mut old, ctx, 10).expect("changed");
    let first = old
        .commit(ctx, None)
        .expect("committed")
        .no
        .expect("a number");
    let view = reader.view().expect("a view");
    let mut writer = begin(&sys);
    let roll_ptr = change(&mut writer, ctx, 10).expect("changed");
    let id = writer.id().expect("an id");
    assert!(!view.sees(&sys.registry, id));
    let committed = writer.commit(ctx, None).expect("committed");
    assert!(committed.lsn.0 > 0);
    assert!(!view.sees(&sys.registry, id));
    purge.drain(ctx, &seen).expect("purged");
    assert_eq!(
        seen.0.lock().iter().map(|s| s.0).collect::<Vec<_>>(),
        [first]
    );
    let mut body = Vec::new();
    let mut mtr = Mtr::reader(ctx);
    read::record(&mut mtr, &sys.rsegs, roll_ptr, &mut body).expect("kept");
    drop(mtr);
    assert_eq!(sys.rsegs.history_len(), 1);
    reader.commit(ctx, None).expect("ended");
    purge.drain(ctx, &seen).expect("purged");
    assert_eq!(seen.0.lock().len(), 2);
    assert_eq!(sys.rsegs.history_len(), 0);
    assert_eq!(sys.registry.counts(), (0, 0));
    bed.check();
}

#[test]
fn a_long_log_is_purged_in_batches_that_free_its_pages() {
    let bed = UndoBed::new(P, 512, 1);
    let (sys, ctx) = (system(&bed), &bed.pages.ctx);
    let before = bed.used_pages();
    let mut trx = begin(&sys);
    for _ in 0..1000 {
        change(&mut trx, ctx, 1500).expect("changed");
    }
    let pages = trx.undo().expect("a log").page_count();
    trx.commit(ctx, None).expect("committed");
    let mut purge = Coordinator::new(sys.clone(), Arc::new(Control::new()));
    let seen = Seen::new();
    let mut used = bed.used_pages();
    assert_eq!(used, before + pages);
    let mut batches = 0;
    while purge.batch(ctx, &seen, 100).expect("purged").more {
        batches += 1;
        let now = bed.used_pages();
        assert!(now < used, "batch {batches}: {now} pages, {used} before");
        used = now;
        if batches == 5 {
            // A crash: what is left is found, with its freed head gone.
            let rsegs = bed.open().rsegs;
            assert_eq!(rsegs.history_len(), 1);
            bed.check();
        }
    }
    let numbers: Vec<_> = seen.0.lock().iter().map(|s| s.2.0).collect();
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    assert_eq!((batches, bed.used_pages()), (10, before));
    bed.check();
}

#[test]
fn an_error_in_the_middle_begins_the_log_again() {
    struct Failing(Seen, AtomicU64);
    impl RecordPurger for Failing {
        fn purge(&self, record: &PurgeRecord<'_>) -> Result<()> {
            if self.1.fetch_add(1, Ordering::Relaxed) == 5 {
                return Err(Error::Interrupted);
            }
            self.0.purge(record)
        }
    }
    let bed = UndoBed::new(P, 512, 1);
    let (sys, ctx) = (system(&bed), &bed.pages.ctx);
    let mut trx = begin(&sys);
    for _ in 0..9 {
        change(&mut trx, ctx, 15).expect("changed");
    }
    trx.commit(ctx, None).expect("committed");
    let mut purge = Coordinator::new(sys.clone(), Arc::new(Control::new()));
    let purger = Failing(Seen::new(), AtomicU64::new(0));
    assert_eq!(purge.batch(ctx, &purger, 100), Err(Error::Interrupted));
    purge.drain(ctx, &purger).expect("purged");
    let numbers: Vec<_> = purger.0.0.lock().iter().map(|s| s.2.0).collect();
    assert_eq!(numbers, (0..5).chain(0..9).collect::<Vec<_>>());
}

/// One session's life: transactions of all sorts. Returns the records it committed.
fn session(sys: &Arc<TrxSystem>, ctx: &PageCtx, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut trx = sys.add(SessionId(seed), SessionCtx::default());
    let mut committed = 0;
    for round in 0..150 {
        trx.start(Isolation::RepeatableRead, round % 10 == 9, round);
        if random.below(3) == 0 {
            trx.view();
        }
        for _ in 0..random.below(12) {
            if trx.is_read_only() {
                continue;
            }
            trx.begin_statement();
            for _ in 0..random.below(8) {
                change(&mut trx, ctx, random.below(1800)).expect("changed");
            }
            if random.below(6) == 0 {
                let start = trx.statement_start();
                trx.cut_undo(ctx, start).expect("cut");
            }
            trx.end_statement();
        }
        if random.below(5) == 0 {
            trx.begin_rollback(ctx).expect("begun");
            trx.finish_rollback(ctx).expect("rolled back");
        } else {
            committed += trx.next_undo_no().0;
            trx.commit(ctx, None).expect("committed");
        }
        assert!(!trx.is_open());
    }
    committed
}

#[test]
fn sessions_commit_while_purge_follows_in_number_order() {
    let bed = UndoBed::new(P, 700, 2);
    let (sys, ctx) = (system(&bed), &bed.pages.ctx);
    let before = bed.used_pages();
    let control = Arc::new(Control::new());
    let seen = Seen::new();
    let committed = std::thread::scope(|scope| {
        let purger = scope.spawn(|| {
            let mut purge = Coordinator::new(sys.clone(), control.clone());
            purge.run(ctx, &seen, &|error| panic!("{error}"));
        });
        let sessions: Vec<_> = (1..=4)
            .map(|seed| {
                let sys = &sys;
                scope.spawn(move || session(sys, ctx, seed * 7919))
            })
            .collect();
        let committed: u64 = sessions
            .into_iter()
            .map(|session| session.join().expect("no panic"))
            .sum();
        control.stop(&sys);
        purger.join().expect("no panic");
        committed
    });
    let mut purge = Coordinator::new(sys.clone(), control.clone());
    purge.drain(ctx, &seen).expect("purged");
    let seen = seen.0.lock();
    assert!(seen.is_sorted(), "purge follows the commit numbers");
    assert_eq!(seen.len() as u64, committed);
    assert_eq!(sys.rsegs.history_len(), 0);
    assert_eq!((sys.registry.counts(), sys.list().len()), ((0, 0), 0));
    let cached: usize = sys.rsegs.all().map(|rseg| rseg.cached_count()).sum();
    // Each undo tablespace may have got a second INODE page.
    let used = bed.used_pages() - before - cached as u32;
    assert!(used <= 2, "{used} pages are lost");
    bed.check();
    let opened = bed.open();
    assert!(opened.found.is_empty() && opened.rsegs.history_len() == 0);
    let (largest, ..) = seen.last().expect("much was committed");
    assert!(opened.next_trx_id.0 > largest.0);
}

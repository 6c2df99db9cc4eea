use super::*;
use crate::format::undo_page::Xid;
use crate::host::callbacks::SessionCtx;
use crate::lock::LockTable;
use crate::mtr::{Budget, Mtr, PageCtx};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::undo::testing::{self, UndoBed};
use crate::words::{SessionId, TrxId, TrxNo, UndoNo};

fn registry() -> (Registry, Views, LockTable) {
    (Registry::new(TrxId(1000)), Views::new(), LockTable::new())
}

#[test]
fn a_view_sees_what_was_committed_before_it_and_nothing_later() {
    let (r, views, locks) = registry();
    let slot = views.add_slot();
    let (a, b, c) = (
        r.begin(&locks.owner()),
        r.begin(&locks.owner()),
        r.begin(&locks.owner()),
    );
    let no = r.draw_number();
    r.publish(a, no);
    let view = slot.open(&r, TrxId(0));
    let no = r.draw_number();
    r.publish(b, no);
    assert!(view.sees(&r, TrxId(999)));
    assert!(view.sees(&r, a));
    assert!(!view.sees(&r, b));
    assert!(!view.sees(&r, c));
    assert!(!view.sees(&r, r.next_id()));
    let later = views.add_slot().open(&r, c);
    assert!(later.sees(&r, b) && later.sees(&r, c));
}

#[test]
fn a_view_never_passes_a_number_that_is_not_published() {
    let (r, views, locks) = registry();
    let (a, b) = (r.begin(&locks.owner()), r.begin(&locks.owner()));
    let first = r.draw_number();
    let second = r.draw_number();
    r.publish(b, second);
    let slot = views.add_slot();
    let early = slot.open(&r, TrxId(0));
    assert!(!early.sees(&r, a) && !early.sees(&r, b));
    r.publish(a, first);
    assert!(!early.sees(&r, a) && !early.sees(&r, b));
    let late = slot.open(&r, TrxId(0));
    assert!(late.sees(&r, a) && late.sees(&r, b));
}

#[test]
fn pruning_keeps_what_an_open_view_does_not_see() {
    let (r, views, locks) = registry();
    let slot = views.add_slot();
    let a = r.begin(&locks.owner());
    let view = slot.open(&r, TrxId(0));
    let no = r.draw_number();
    r.publish(a, no);
    r.prune(views.oldest(&r));
    assert!(!view.sees(&r, a));
    assert_eq!(r.counts(), (0, 1));
    slot.close();
    r.prune(views.oldest(&r));
    assert_eq!(r.counts(), (0, 0));
    assert!(r.state(a).is_none());
    assert!(r.low_water() > a);
}

#[test]
fn a_rolled_back_transaction_leaves_nothing() {
    let (r, views, locks) = registry();
    let a = r.begin(&locks.owner());
    assert!(r.active_owner(a).is_some());
    r.forget(a, None);
    assert!(r.active_owner(a).is_none());
    assert_eq!(r.counts(), (0, 0));
    assert!(views.oldest(&r) > TrxNo(a.0));
}

#[test]
fn views_are_stable_and_ordered_while_others_commit() {
    // Writers commit in turn; each transaction i also notes its number. Readers check that what
    // a view sees does not change, and is exactly the commits below its limit.
    let r = Arc::new(Registry::new(TrxId(1)));
    let views = Arc::new(Views::new());
    let locks = Arc::new(LockTable::new());
    let stop = Arc::new(AtomicBool::new(false));
    let numbers: Arc<Vec<AtomicU64>> = Arc::new((0..200_000).map(|_| AtomicU64::new(0)).collect());
    let mut threads = Vec::new();
    for _ in 0..3 {
        let (r, views, locks, stop, numbers) = (
            r.clone(),
            views.clone(),
            locks.clone(),
            stop.clone(),
            numbers.clone(),
        );
        threads.push(std::thread::spawn(move || {
            for n in 0..8_000 {
                let id = r.begin(&locks.owner());
                let no = r.draw_number();
                numbers[id.0 as usize].store(no.0, Ordering::SeqCst);
                r.publish(id, no);
                if n % 64 == 0 {
                    r.prune(views.oldest(&r));
                }
            }
            stop.store(true, Ordering::SeqCst);
        }));
    }
    let slot = views.add_slot();
    while !stop.load(Ordering::SeqCst) {
        let view = slot.open(&r, TrxId(0));
        for _ in 0..2 {
            let end = view.limit().0.min(199_999);
            for id in end.saturating_sub(300)..end {
                let no = numbers[id as usize].load(Ordering::SeqCst);
                // Numbers that were never an id stay 0 here, and an id without a number runs.
                if no != 0 {
                    assert_eq!(
                        view.sees(&r, TrxId(id)),
                        no < view.limit().0,
                        "id {id} no {no}"
                    );
                }
            }
        }
        slot.close();
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
}

fn system(bed: &UndoBed) -> Arc<TrxSystem> {
    let opened = bed.open();
    let (next, rsegs) = (opened.next_trx_id, Arc::new(opened.rsegs));
    let sys = Arc::new(TrxSystem::new(next, rsegs, Arc::new(LockTable::new())));
    for found in opened.found {
        sys.park(sys.resurrect(found, 7));
    }
    sys
}

fn change(trx: &mut Trx, ctx: &PageCtx) {
    trx.begin_write(ctx, false).expect("an undo log");
    let needs = trx.reserve_undo(ctx, 100).expect("room");
    let budget = Budget::statement(needs.log_bytes).with_frames(needs.frames);
    let mut mtr = Mtr::start(ctx, budget).expect("admitted");
    trx.append_undo(&mut mtr, |out, no| testing::insert(out, no, 7, 60))
        .expect("appended");
}

#[test]
fn a_read_only_transaction_costs_no_id_and_writes_nothing() {
    let bed = UndoBed::new(16384, 512, 2);
    let (sys, ctx) = (system(&bed), &bed.pages.ctx);
    let (next, lsn) = (sys.registry.next_id(), ctx.log.lsn());
    let mut trx = sys.add(SessionId(3), SessionCtx::default());
    trx.start(Isolation::RepeatableRead, true, 5);
    let view = trx.view().expect("a view");
    assert_eq!(trx.view(), Some(view), "one view for the transaction");
    assert_eq!(
        trx.begin_write(ctx, false),
        Err(crate::words::Error::ReadOnly)
    );
    let listed = sys.list();
    assert_eq!(
        (listed.len(), listed[0].id, listed[0].read_only),
        (1, None, true)
    );
    assert_eq!(trx.commit(ctx, None), Ok(Committed::default()));
    assert_eq!((sys.registry.next_id(), ctx.log.lsn()), (next, lsn));
    assert_eq!((sys.views.open_count(), sys.list().len()), (0, 0));
    assert!(trx.owner_if_any().is_none());
}

#[test]
fn views_last_as_long_as_the_isolation_level_says() {
    let bed = UndoBed::new(16384, 512, 2);
    let (sys, ctx) = (system(&bed), &bed.pages.ctx);
    let mut writer = sys.add(SessionId(1), SessionCtx::default());
    let mut sees = |level: Isolation| {
        let mut reader = sys.add(SessionId(2), SessionCtx::default());
        reader.start(level, false, 0);
        reader.begin_statement();
        let first = reader.view();
        writer.start(Isolation::RepeatableRead, false, 0);
        change(&mut writer, ctx);
        let id = writer.id().expect("an id");
        writer.commit(ctx, None).expect("committed");
        let same = reader.view() == first;
        reader.end_statement();
        reader.begin_statement();
        let sees = reader
            .view()
            .is_none_or(|view| view.sees(&sys.registry, id));
        reader.commit(ctx, None).expect("ended");
        (first.is_some(), same, sees)
    };
    assert_eq!(sees(Isolation::ReadUncommitted), (false, true, true));
    assert_eq!(sees(Isolation::ReadCommitted), (true, true, true));
    assert_eq!(sees(Isolation::RepeatableRead), (true, true, false));
    assert_eq!(sees(Isolation::Serializable), (true, true, false));
}

#[test]
fn savepoints_are_replaced_released_and_gone_back_to() {
    let bed = UndoBed::new(16384, 512, 2);
    let (sys, ctx) = (system(&bed), &bed.pages.ctx);
    let mut trx = sys.add(SessionId(1), SessionCtx::default());
    trx.start(Isolation::RepeatableRead, false, 0);
    trx.set_savepoint(b"a");
    change(&mut trx, ctx);
    trx.set_savepoint(b"b");
    change(&mut trx, ctx);
    trx.set_savepoint(b"c");
    change(&mut trx, ctx);
    trx.begin_statement();
    change(&mut trx, ctx);
    assert_eq!(
        (trx.statement_start(), trx.next_undo_no()),
        (UndoNo(3), UndoNo(4))
    );
    assert_eq!(trx.rollback_to_savepoint(b"b"), Ok(UndoNo(1)));
    trx.cut_undo(ctx, UndoNo(1)).expect("cut");
    assert_eq!(trx.next_undo_no(), UndoNo(1));
    assert_eq!(
        trx.release_savepoint(b"c"),
        Err(crate::words::Error::NoSavepoint)
    );
    change(&mut trx, ctx);
    trx.set_savepoint(b"a");
    assert_eq!(trx.rollback_to_savepoint(b"a"), Ok(UndoNo(2)));
    assert_eq!(trx.release_savepoint(b"b"), Ok(()));
    assert!(trx.rollback_to_savepoint(b"b").is_err());
    assert_eq!(sys.list()[0].rows_modified, 2);
    trx.finish_rollback(ctx).expect("rolled back");
    assert!(trx.rollback_to_savepoint(b"a").is_err());
    assert_eq!(sys.counts(), (0, 1));
}

#[test]
fn a_prepared_transaction_survives_its_session_and_the_server() {
    let bed = UndoBed::new(16384, 512, 2);
    let ctx = &bed.pages.ctx;
    let (keep, undo) = (
        Xid::new(1, b"keep", b"").expect("an XID"),
        Xid::new(1, b"undo", b"").expect("an XID"),
    );
    let (kept_id, undone_id, lost_id) = {
        let sys = system(&bed);
        let mut ids = Vec::new();
        for xid in [&keep, &undo] {
            let mut trx = sys.add(SessionId(1), SessionCtx::default());
            trx.start(Isolation::RepeatableRead, false, 0);
            change(&mut trx, ctx);
            ids.push(trx.id().expect("an id"));
            assert!(trx.prepare(ctx, xid).expect("prepared").0 > 0);
            sys.park(trx.detach().expect("prepared"));
            assert!(!trx.is_open());
        }
        assert_eq!(sys.prepared_xids().len(), 2);
        let mut trx = sys.add(SessionId(1), SessionCtx::default());
        trx.start(Isolation::RepeatableRead, false, 0);
        change(&mut trx, ctx);
        (ids[0], ids[1], trx.id().expect("an id"))
    };
    // The server starts again.
    let sys = system(&bed);
    let mut xids = sys.prepared_xids();
    xids.sort_by_key(|xid| xid.gtrid().to_vec());
    assert_eq!(xids, [keep, undo]);
    assert_eq!(sys.list().len(), 3);
    let mut trx = sys.add(SessionId(9), SessionCtx::default());
    let lost = sys.unpark_active().expect("it was running");
    assert_eq!(lost.id(), lost_id);
    trx.attach(lost).expect("no transaction is open");
    trx.begin_rollback(ctx).expect("begun");
    trx.finish_rollback(ctx).expect("rolled back");
    trx.attach(sys.unpark(&undo).expect("parked"))
        .expect("free");
    assert_eq!((trx.state(), trx.id()), (State::Prepared, Some(undone_id)));
    let mut other = sys.add(SessionId(8), SessionCtx::default());
    let view = other.view();
    assert!(view.is_some_and(|view| !view.sees(&sys.registry, kept_id)));
    trx.begin_rollback(ctx).expect("begun");
    assert_eq!(
        bed.open()
            .found
            .iter()
            .filter(|found| found.prepared)
            .count(),
        1
    );
    trx.finish_rollback(ctx).expect("rolled back");
    trx.attach(sys.unpark(&keep).expect("parked"))
        .expect("free");
    let committed = trx
        .commit(ctx, Some(("binlog.000007", 4711)))
        .expect("committed");
    assert!(committed.no.is_some() && sys.unpark(&keep).is_none());
    other.close_view();
    assert!(
        other
            .view()
            .is_some_and(|view| view.sees(&sys.registry, kept_id))
    );
    other.close_view();
    assert!(bed.open().found.is_empty());
    assert_eq!(bed.open().rsegs.history_len(), 1);
    bed.check();
}

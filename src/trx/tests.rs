use super::*;
use crate::lock::LockTable;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::words::{TrxId, TrxNo};

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

use crate::sync::Arc;
use std::time::Duration;

use super::*;
use crate::words::{Error, HeapNo, PageId, PageNo, SpaceId, TableId};

const LONG: Duration = Duration::from_secs(20);

fn page(n: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(n))
}

fn never() -> bool {
    false
}

fn granted(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Granted)
}

/// Takes a lock that nothing stands in the way of.
fn take(locks: &LockTable, owner: &Arc<Owner>, page: PageId, heap: HeapNo, mode: RecordMode) {
    assert!(granted(locks.lock_record(owner, page, heap, mode)));
}

fn queued(outcome: Outcome) -> Arc<Wait> {
    match outcome {
        Outcome::Wait(w) => w,
        Outcome::Granted => panic!("granted, though something should stand in the way"),
    }
}

#[test]
fn the_conflict_matrix_is_innodbs() {
    use RecordKind::{Gap, InsertIntention, NextKey, Record};
    use Strength::{Exclusive, Shared};
    let m = RecordMode::new;
    // Request, existing, waits on an ordinary record, waits on the supremum.
    let cases = [
        (m(Shared, NextKey), m(Shared, NextKey), false, false),
        (m(Exclusive, NextKey), m(Shared, NextKey), true, false),
        (m(Exclusive, NextKey), m(Exclusive, Gap), false, false),
        (m(Exclusive, Gap), m(Exclusive, NextKey), false, false),
        (m(Exclusive, Record), m(Shared, Record), true, false),
        (m(Exclusive, Record), m(Exclusive, Gap), false, false),
        (
            m(Exclusive, InsertIntention),
            m(Shared, NextKey),
            true,
            true,
        ),
        (m(Exclusive, InsertIntention), m(Shared, Gap), true, true),
        (
            m(Exclusive, InsertIntention),
            m(Exclusive, Record),
            false,
            false,
        ),
        (
            m(Exclusive, InsertIntention),
            m(Exclusive, InsertIntention),
            false,
            false,
        ),
        (
            m(Exclusive, NextKey),
            m(Exclusive, InsertIntention),
            false,
            false,
        ),
    ];
    for (request, existing, ordinary, supremum) in cases {
        assert_eq!(
            request.waits_for(existing, false),
            ordinary,
            "{request:?} on {existing:?}"
        );
        assert_eq!(
            request.waits_for(existing, true),
            supremum,
            "supremum {request:?} {existing:?}"
        );
    }
}

#[test]
fn a_waiter_gets_the_lock_when_the_holder_ends() {
    let locks = Arc::new(LockTable::new());
    let (a, b) = (locks.owner(), locks.owner());
    take(&locks, &a, page(3), HeapNo(2), RecordMode::X_RECORD);
    let wait = queued(locks.lock_record(&b, page(3), HeapNo(2), RecordMode::S_RECORD));
    let thread = std::thread::spawn({
        let locks = locks.clone();
        move || locks.wait(&wait, LONG, &never)
    });
    locks.release_all(&a);
    assert_eq!(thread.join().unwrap(), Ok(()));
    assert!(locks.holds(&b, page(3), HeapNo(2), RecordMode::S_RECORD));
    locks.release_all(&b);
    assert!(locks.page_is_free(page(3)));
}

#[test]
fn a_later_request_does_not_overtake_a_waiting_one() {
    let locks = LockTable::new();
    let (a, b, c) = (locks.owner(), locks.owner(), locks.owner());
    take(&locks, &a, page(3), HeapNo(2), RecordMode::S_RECORD);
    let x = queued(locks.lock_record(&b, page(3), HeapNo(2), RecordMode::X_RECORD));
    let s = queued(locks.lock_record(&c, page(3), HeapNo(2), RecordMode::S_RECORD));
    locks.release_all(&a);
    assert_eq!(x.sleep(Duration::ZERO), Some(WaitEnd::Granted));
    assert_eq!(s.sleep(Duration::ZERO), None);
    locks.release_all(&b);
    assert_eq!(s.sleep(Duration::ZERO), Some(WaitEnd::Granted));
}

#[test]
fn a_timed_out_request_lets_those_behind_it_pass() {
    let locks = LockTable::new();
    let (a, b, c) = (locks.owner(), locks.owner(), locks.owner());
    take(&locks, &a, page(3), HeapNo(2), RecordMode::S_RECORD);
    let x = queued(locks.lock_record(&b, page(3), HeapNo(2), RecordMode::X_RECORD));
    let s = queued(locks.lock_record(&c, page(3), HeapNo(2), RecordMode::S_RECORD));
    assert_eq!(
        locks.wait(&x, Duration::from_millis(1), &never),
        Err(Error::LockWaitTimeout)
    );
    assert_eq!(s.sleep(Duration::ZERO), Some(WaitEnd::Granted));
    assert!(b.waiting().is_none());
}

#[test]
fn an_interrupt_ends_a_wait_and_leaves_no_trace() {
    let locks = LockTable::new();
    let (a, b) = (locks.owner(), locks.owner());
    take(&locks, &a, page(3), HeapNo(2), RecordMode::X_RECORD);
    let w = queued(locks.lock_record(&b, page(3), HeapNo(2), RecordMode::X_RECORD));
    assert_eq!(locks.wait(&w, LONG, &|| true), Err(Error::Interrupted));
    locks.release_all(&a);
    assert!(!locks.holds(&b, page(3), HeapNo(2), RecordMode::S_RECORD));
    assert!(locks.page_is_free(page(3)));
}

#[test]
fn locks_and_waiters_follow_their_record_to_another_page() {
    let locks = LockTable::new();
    let (a, b) = (locks.owner(), locks.owner());
    take(&locks, &a, page(3), HeapNo(9), RecordMode::X_RECORD);
    let w = queued(locks.lock_record(&b, page(3), HeapNo(9), RecordMode::X_RECORD));
    locks.moved(
        page(3),
        page(4),
        &[Moved {
            from: HeapNo(9),
            to: HeapNo(2),
        }],
    );
    assert!(locks.holds(&a, page(4), HeapNo(2), RecordMode::X_RECORD));
    assert!(locks.page_is_free(page(3)));
    locks.release_all(&a);
    assert_eq!(w.sleep(Duration::ZERO), Some(WaitEnd::Granted));
    assert!(locks.holds(&b, page(4), HeapNo(2), RecordMode::X_RECORD));
    locks.release_all(&b);
    assert!(locks.page_is_free(page(4)));
}

#[test]
fn swapped_heap_numbers_do_not_mix_up_locks() {
    let locks = LockTable::new();
    let (a, b) = (locks.owner(), locks.owner());
    take(&locks, &a, page(3), HeapNo(2), RecordMode::X_RECORD);
    take(&locks, &b, page(3), HeapNo(3), RecordMode::X_RECORD);
    let swap = [
        Moved {
            from: HeapNo(2),
            to: HeapNo(3),
        },
        Moved {
            from: HeapNo(3),
            to: HeapNo(2),
        },
    ];
    locks.reorganised(page(3), &swap);
    assert!(locks.holds(&a, page(3), HeapNo(3), RecordMode::X_RECORD));
    assert!(locks.holds(&b, page(3), HeapNo(2), RecordMode::X_RECORD));
    assert!(!locks.holds(&a, page(3), HeapNo(2), RecordMode::X_RECORD));
}

#[test]
fn a_removed_record_leaves_its_gap_locked_and_wakes_its_waiters() {
    let locks = LockTable::new();
    let (a, b, c) = (locks.owner(), locks.owner(), locks.owner());
    take(&locks, &a, page(3), HeapNo(2), RecordMode::X_NEXT_KEY);
    let w = queued(locks.lock_record(&b, page(3), HeapNo(2), RecordMode::X_RECORD));
    locks.removed((page(3), HeapNo(2)), (page(3), HeapNo::SUPREMUM));
    assert_eq!(w.sleep(Duration::ZERO), Some(WaitEnd::Granted));
    let insert = queued(locks.lock_insert(&c, page(3), HeapNo::SUPREMUM));
    locks.release_all(&a);
    assert_eq!(insert.sleep(Duration::ZERO), None);
    locks.release_all(&b);
    assert_eq!(insert.sleep(Duration::ZERO), Some(WaitEnd::Granted));
}

#[test]
fn at_read_committed_a_removed_record_leaves_no_gap_locked() {
    let locks = LockTable::new();
    let (a, c) = (locks.owner(), locks.owner());
    a.set_keeps_gaps(false);
    take(&locks, &a, page(3), HeapNo(2), RecordMode::X_RECORD);
    locks.removed((page(3), HeapNo(2)), (page(3), HeapNo::SUPREMUM));
    assert!(granted(locks.lock_insert(&c, page(3), HeapNo::SUPREMUM)));
}

#[test]
fn an_insert_splits_a_locked_gap_but_not_a_record_lock() {
    let locks = LockTable::new();
    let (a, b, c) = (locks.owner(), locks.owner(), locks.owner());
    take(&locks, &a, page(3), HeapNo(5), RecordMode::X_NEXT_KEY);
    take(&locks, &b, page(3), HeapNo(6), RecordMode::X_RECORD);
    locks.inserted(page(3), HeapNo(7), HeapNo(5));
    locks.inserted(page(3), HeapNo(8), HeapNo(6));
    assert!(!granted(locks.lock_insert(&c, page(3), HeapNo(7))));
    assert!(granted(locks.lock_insert(
        &locks.owner(),
        page(3),
        HeapNo(8)
    )));
}

#[test]
fn the_lightest_transaction_of_a_cycle_is_the_victim() {
    let locks = Arc::new(LockTable::new());
    let (a, b) = (locks.owner(), locks.owner());
    b.set_changes(10);
    take(&locks, &a, page(3), HeapNo(2), RecordMode::X_RECORD);
    take(&locks, &b, page(3), HeapNo(3), RecordMode::X_RECORD);
    let a_waits = queued(locks.lock_record(&a, page(3), HeapNo(3), RecordMode::X_RECORD));
    let thread = std::thread::spawn({
        let locks = locks.clone();
        let a = a.clone();
        move || {
            let end = locks.wait(&a_waits, LONG, &never);
            locks.release_all(&a);
            end
        }
    });
    let b_waits = queued(locks.lock_record(&b, page(3), HeapNo(2), RecordMode::X_RECORD));
    assert_eq!(locks.wait(&b_waits, LONG, &never), Ok(()));
    assert_eq!(thread.join().unwrap(), Err(Error::Deadlock));
    assert_eq!(locks.counts(), (2, 1));
}

#[test]
fn a_table_lock_waits_for_intentions_of_others_only() {
    let locks = LockTable::new();
    let (a, b) = (locks.owner(), locks.owner());
    let t = TableId(20);
    assert!(granted(locks.lock_table(
        &a,
        t,
        TableMode::IntentionExclusive
    )));
    assert!(granted(locks.lock_table(&b, t, TableMode::IntentionShared)));
    let w = queued(locks.lock_table(&b, t, TableMode::Shared));
    assert!(locks.table_is_locked_by_others(Some(&b), t));
    locks.release_all(&a);
    assert_eq!(w.sleep(Duration::ZERO), Some(WaitEnd::Granted));
    assert!(!locks.table_is_locked_by_others(Some(&b), t));
}

#[test]
fn random_histories_never_grant_conflicting_locks() {
    // A small model: all granted locks, checked against the matrix after each step.
    let mut seed = 0x5EED_0001u64;
    let mut rnd = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    let locks = LockTable::new();
    let mut owners: Vec<Arc<Owner>> = (0..6).map(|_| locks.owner()).collect();
    let modes = [
        RecordMode::X_RECORD,
        RecordMode::S_RECORD,
        RecordMode::X_NEXT_KEY,
        RecordMode::S_NEXT_KEY,
        RecordMode::new(Strength::Shared, RecordKind::Gap),
    ];
    for step in 0..20_000 {
        let who = rnd(6) as usize;
        let (p, heap) = (page(rnd(3) as u32), HeapNo(1 + rnd(200) as u16 % 5 * 60));
        let idle = owners[who].waiting().is_none_or(|w| w.ended().is_some());
        match rnd(10) {
            0 => {
                locks.release_all(&owners[who]);
                owners[who].set_waiting(None);
                owners[who] = locks.owner();
            }
            1 => locks.removed((p, heap), (p, HeapNo::SUPREMUM)),
            2 => locks.moved(
                p,
                page(100 + step),
                &[Moved {
                    from: heap,
                    to: heap,
                }],
            ),
            _ if idle => {
                let _ = locks.lock_record(&owners[who], p, heap, modes[rnd(5) as usize]);
            }
            _ => {}
        }
        let mut all = Vec::new();
        locks.each_record_lock(&mut |l| {
            if !l.waiting {
                all.push((l.owner.id(), l.page, l.heap, l.mode));
            }
        });
        for a in &all {
            for b in &all {
                let clash = a.0 != b.0
                    && (a.1, a.2) == (b.1, b.2)
                    && a.3.waits_for(b.3, a.2 == HeapNo::SUPREMUM)
                    && b.3.waits_for(a.3, a.2 == HeapNo::SUPREMUM);
                assert!(!clash, "step {step}: {a:?} beside {b:?}");
            }
        }
    }
}

/// A waits for C alone, C for A and – queued before it – for B, who waits for A. The lightest of the
/// longer cycle is B; ending its wait leaves A and C waiting for each other.
#[test]
fn every_cycle_that_a_request_closes_is_broken() {
    let locks = Arc::new(LockTable::new());
    let (a, b, c) = (locks.owner(), locks.owner(), locks.owner());
    a.set_changes(10);
    c.set_changes(10);
    let x = RecordMode::X_RECORD;
    take(&locks, &a, page(3), HeapNo(2), x);
    take(&locks, &c, page(3), HeapNo(3), x);
    let b_waits = queued(locks.lock_record(&b, page(3), HeapNo(2), x));
    let c_waits = queued(locks.lock_record(&c, page(3), HeapNo(2), x));
    let a_waits = queued(locks.lock_record(&a, page(3), HeapNo(3), x));
    let end = locks.wait(&a_waits, Duration::from_millis(1), &never);
    assert_eq!(b_waits.sleep(Duration::ZERO), Some(WaitEnd::Deadlock));
    let broken =
        end == Err(Error::Deadlock) || c_waits.sleep(Duration::ZERO) == Some(WaitEnd::Deadlock);
    assert!(broken, "{end:?}");
}

/// Two inserts wait for the duplicate that a third transaction takes back: each keeps the other from
/// inserting, and the later one is the victim.
#[test]
fn those_who_waited_for_a_removed_record_have_its_gap() {
    let locks = LockTable::new();
    let (a, b, c) = (locks.owner(), locks.owner(), locks.owner());
    let record = (page(3), HeapNo(2));
    locks.make_explicit(&a, record.0, record.1);
    let b_waits = queued(locks.lock_record(&b, record.0, record.1, RecordMode::S_NEXT_KEY));
    let c_waits = queued(locks.lock_record(&c, record.0, record.1, RecordMode::S_NEXT_KEY));
    locks.removed(record, (page(3), HeapNo::SUPREMUM));
    assert_eq!(b_waits.sleep(Duration::ZERO), Some(WaitEnd::Granted));
    assert_eq!(c_waits.sleep(Duration::ZERO), Some(WaitEnd::Granted));
    let b_inserts = queued(locks.lock_insert(&b, page(3), HeapNo::SUPREMUM));
    let c_inserts = queued(locks.lock_insert(&c, page(3), HeapNo::SUPREMUM));
    let end = locks.wait(&c_inserts, LONG, &never);
    assert_eq!(end, Err(Error::Deadlock));
    locks.release_all(&c);
    locks.release_all(&a);
    assert_eq!(b_inserts.sleep(Duration::ZERO), Some(WaitEnd::Granted));
}

#[test]
fn locks_beyond_the_limit_are_refused_and_those_that_must_not_fail_are_not() {
    let locks = LockTable::new();
    locks.set_memory_limit(100_000);
    let (a, b) = (locks.owner(), locks.owner());
    let mut taken = 0;
    let refused = loop {
        match locks.lock_record(&a, page(taken), HeapNo(2), RecordMode::X_RECORD) {
            Outcome::Granted => taken += 1,
            Outcome::Wait(wait) => break wait,
        }
        assert!(taken < 10_000);
    };
    assert!(taken > 100, "{taken}");
    let result = locks.wait(&refused, LONG, &never);
    assert_eq!(result, Err(Error::LockTableFull));
    assert_eq!(refused.check_refused(), Err(Error::LockTableFull));
    assert_eq!(locks.counts(), (0, 0), "nobody waited");
    assert!(locks.page_is_free(page(taken)), "nothing is left of it");
    let other = queued(locks.lock_record(&b, page(5000), HeapNo(2), RecordMode::X_RECORD));
    let result = locks.wait(&other, LONG, &never);
    assert_eq!(result, Err(Error::LockTableFull));
    // What a has already it may ask for again; implicit locks become explicit, gaps are inherited.
    take(&locks, &a, page(0), HeapNo(2), RecordMode::X_RECORD);
    locks.make_explicit(&b, page(6000), HeapNo(2));
    let place = |heap| (page(0), HeapNo(heap));
    locks.removed(place(2), (page(7000), HeapNo(2)));
    assert!(!locks.page_is_free(page(7000)));
    // A wait for what somebody has is none of the matter.
    let waits = queued(locks.lock_record(&b, page(1), HeapNo(2), RecordMode::X_RECORD));
    locks.release_all(&a);
    locks.wait(&waits, LONG, &never).expect("granted");
    take(&locks, &b, page(8000), HeapNo(2), RecordMode::X_RECORD);
    locks.release_all(&b);
    assert!(locks.memory().0 < 10_000, "{:?}", locks.memory());
    drop((a, b, refused, other, waits));
    assert_eq!(locks.memory().0, 0);
}

#[test]
fn a_lock_given_back_early_gives_its_memory_back() {
    let locks = LockTable::new();
    let a = locks.owner();
    take(&locks, &a, page(1), HeapNo(2), RecordMode::X_RECORD);
    let before = a.lock_bytes();
    for heap in 3..2000 {
        take(&locks, &a, page(2), HeapNo(heap), RecordMode::X_RECORD);
        locks.unlock_record(&a, page(2), HeapNo(heap), RecordMode::X_RECORD);
    }
    assert!(a.lock_bytes() < before + 100, "{before} {}", a.lock_bytes());
}

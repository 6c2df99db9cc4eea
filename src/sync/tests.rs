//! Stress tests of latch and gate: real threads, short critical sections, checked exclusion.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::*;

/// Two words that only an X holder changes, and only together.
struct Pair(AtomicU64, AtomicU64);

#[test]
fn readers_never_see_a_writer_at_work_and_everybody_gets_in() {
    let latch = Latch::new();
    let pair = Pair(AtomicU64::new(0), AtomicU64::new(0));
    let updaters = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for seed in 0..6u64 {
            let (latch, pair, updaters, done) = (&latch, &pair, &updaters, &done);
            scope.spawn(move || {
                let mut x = seed * 31 + 7;
                for _ in 0..20_000 {
                    x = x
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    match x >> 61 {
                        0..=3 => read(latch, pair),
                        4 => update(latch, pair, updaters),
                        5 => upgrade(latch, pair),
                        _ => write(latch, pair),
                    }
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(done.load(Ordering::Relaxed), 6);
    assert!(!latch.is_locked());
    assert_eq!(latch.version(), 2 * pair.0.load(Ordering::Relaxed));
}

fn read(latch: &Latch, pair: &Pair) {
    latch.lock_s(Rank::IndexPage);
    let version = latch.version();
    assert_eq!(
        pair.0.load(Ordering::Relaxed),
        pair.1.load(Ordering::Relaxed)
    );
    assert!(!latch.is_locked_x() && latch.version() == version && version % 2 == 0);
    latch.unlock(Mode::Shared, Rank::IndexPage);
}

fn update(latch: &Latch, pair: &Pair, updaters: &AtomicUsize) {
    latch.lock_u(Rank::IndexPage);
    assert_eq!(updaters.fetch_add(1, Ordering::Relaxed), 0, "two updaters");
    assert_eq!(
        pair.0.load(Ordering::Relaxed),
        pair.1.load(Ordering::Relaxed)
    );
    assert!(!latch.try_lock(Mode::Exclusive, Rank::IndexPage));
    updaters.fetch_sub(1, Ordering::Relaxed);
    latch.unlock(Mode::Update, Rank::IndexPage);
}

fn write(latch: &Latch, pair: &Pair) {
    latch.lock_x(Rank::IndexPage);
    let value = pair.0.load(Ordering::Relaxed) + 1;
    pair.0.store(value, Ordering::Relaxed);
    std::hint::spin_loop();
    pair.1.store(value, Ordering::Relaxed);
    latch.unlock(Mode::Exclusive, Rank::IndexPage);
}

fn upgrade(latch: &Latch, pair: &Pair) {
    latch.lock_u(Rank::IndexPage);
    latch.upgrade(Rank::IndexPage);
    let value = pair.0.load(Ordering::Relaxed) + 1;
    pair.0.store(value, Ordering::Relaxed);
    std::hint::spin_loop();
    pair.1.store(value, Ordering::Relaxed);
    latch.unlock(Mode::Exclusive, Rank::IndexPage);
}

#[test]
fn update_admits_readers_and_nobody_else() {
    let latch = Latch::new();
    latch.lock_u(Rank::None);
    assert!(latch.try_lock(Mode::Shared, Rank::None));
    assert!(!latch.try_lock(Mode::Update, Rank::None));
    assert!(!latch.try_lock(Mode::Exclusive, Rank::None));
    latch.unlock(Mode::Update, Rank::None);
    assert!(latch.try_lock(Mode::Update, Rank::None));
    latch.unlock(Mode::Shared, Rank::None);
    latch.unlock(Mode::Update, Rank::None);
    assert_eq!(latch.version(), 0);
    assert!(latch.try_lock(Mode::Exclusive, Rank::None));
    assert!(!latch.try_lock(Mode::Shared, Rank::None));
    assert_eq!(latch.version(), 1);
    latch.unlock(Mode::Exclusive, Rank::None);
    assert_eq!(latch.version(), 2);
}

#[test]
fn the_gate_lets_one_exclusive_caller_in_alone() {
    let gate = Gate::new(Rank::LogGate);
    let inside = AtomicUsize::new(0);
    let alone = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (gate, inside, alone) = (&gate, &inside, &alone);
            scope.spawn(move || {
                for round in 0..5_000 {
                    if (round + thread) % 50 == 0 {
                        let guard = gate.enter_exclusive();
                        assert!(guard.is_exclusive());
                        assert_eq!(inside.load(Ordering::SeqCst), 0);
                        assert_eq!(alone.fetch_add(1, Ordering::SeqCst), 0);
                        alone.fetch_sub(1, Ordering::SeqCst);
                    } else {
                        let _guard = gate.enter();
                        inside.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(alone.load(Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
}

#[test]
fn an_event_set_before_the_wait_is_not_lost() {
    use std::time::Duration;
    let event = Event::new();
    event.set();
    assert!(event.wait(Duration::from_millis(1)));
    assert!(!event.wait(Duration::from_millis(1)));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| event.wait(Duration::from_secs(20)));
        std::thread::sleep(Duration::from_millis(5));
        event.set();
        assert!(waiter.join().expect("no panic"));
    });
}

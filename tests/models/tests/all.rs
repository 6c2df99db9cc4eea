//! Each model runs under many interleavings, chosen by seed: at random, and by PCT, which finds bugs that
//! need few switches. A wake that is missing is a deadlock, which the scheduler reports.
//!
//!     XTRADB_MODEL_RUNS=100000 cargo test --manifest-path tests/models/Cargo.toml

use models::buffer::{Leaf, Pool, Tree};
use models::lock::{LockTable, Outcome, RecordKind, RecordMode, Strength};
use models::sync::raw::atomic::{AtomicU32, AtomicU64, Ordering};
use models::sync::{Arc, Gate, GroupLock, Latch, Mode, Rank, Ring, Turn, Watermark};
use models::words::{HeapNo, PageId, PageNo, SpaceId};
use shuttle::thread;
use std::time::Duration;

fn check(runs: usize, model: fn()) {
    let runs = match std::env::var("XTRADB_MODEL_RUNS") {
        Ok(runs) => runs.parse().expect("a number"),
        Err(_) => runs,
    };
    let mut config = shuttle::Config::new();
    // Who waits for ever without sleeping fails here.
    config.max_steps = shuttle::MaxSteps::FailAfter(50_000);
    let random = shuttle::scheduler::RandomScheduler::new(runs);
    shuttle::Runner::new(random, config.clone()).run(model);
    let pct = shuttle::scheduler::PctScheduler::new(3, runs);
    shuttle::Runner::new(pct, config).run(model);
}

#[test]
fn the_page_latch_excludes_and_wakes_everybody() {
    check(1200, || {
        let shared = Arc::new((Latch::new(), AtomicU32::new(0), AtomicU64::new(0)));
        let modes = [Mode::Exclusive, Mode::Shared, Mode::Update, Mode::Shared];
        let tasks = modes.map(|mode| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (latch, inside, value) = &*shared;
                for _ in 0..2 {
                    latch.lock(mode, Rank::None);
                    // A hundred for X, ten for U, one for S.
                    let own = match mode {
                        Mode::Exclusive => 100,
                        Mode::Update => 10,
                        Mode::Shared => 1,
                    };
                    let others = inside.fetch_add(own, Ordering::SeqCst);
                    match mode {
                        Mode::Exclusive => assert_eq!(others, 0, "X is alone"),
                        Mode::Update => assert!(others < 10, "U admits S alone"),
                        Mode::Shared => assert!(others < 100, "S beside X"),
                    }
                    let before = (latch.version(), value.load(Ordering::Relaxed));
                    if mode == Mode::Exclusive {
                        value.fetch_add(1, Ordering::Relaxed);
                    }
                    thread::yield_now();
                    if mode != Mode::Exclusive {
                        let after = (latch.version(), value.load(Ordering::Relaxed));
                        assert_eq!(before, after, "nothing changes under {mode:?}");
                    }
                    inside.fetch_sub(own, Ordering::SeqCst);
                    if mode == Mode::Update {
                        latch.upgrade(Rank::None);
                        assert_eq!(inside.load(Ordering::SeqCst), 0, "raised to X: alone");
                        latch.unlock(Mode::Exclusive, Rank::None);
                    } else {
                        latch.unlock(mode, Rank::None);
                    }
                }
            })
        });
        tasks
            .into_iter()
            .for_each(|task| task.join().expect("no panic"));
        assert!(!shared.0.is_locked());
    });
}

#[test]
fn pages_are_found_or_missed_and_never_taken_for_another() {
    check(1800, || {
        let page = |number| PageId::new(SpaceId(1), PageNo(number));
        let pool = Arc::new(Pool::new(2));
        assert!(pool.bring(page(1), 0));
        let evictor = {
            let pool = pool.clone();
            thread::spawn(move || {
                // The frame changes hands while others look for its page.
                for number in [2, 1, 3] {
                    if pool.evict(0) {
                        pool.bring(page(number), 0);
                    }
                }
            })
        };
        let other = {
            let pool = pool.clone();
            thread::spawn(move || {
                if pool.bring(page(2), 1) {
                    pool.evict(1);
                }
            })
        };
        let grower = {
            let pool = pool.clone();
            thread::spawn(move || pool.grow())
        };
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let pool = pool.clone();
                thread::spawn(move || {
                    for number in [1, 2, 3] {
                        if let Some(content) = pool.read(page(number)) {
                            assert_eq!(content, page(number).to_u64());
                        }
                    }
                })
            })
            .collect();
        readers
            .into_iter()
            .for_each(|task| task.join().expect("no panic"));
        evictor.join().expect("no panic");
        other.join().expect("no panic");
        grower.join().expect("no panic");
        // Every page that is in a frame stands where it is looked for.
        for id in pool.pages() {
            assert!(pool.read(id).is_some(), "{id}");
        }
    });
}

#[test]
fn a_descent_by_a_guide_ends_on_the_leaf_that_has_the_key() {
    check(1500, || {
        let tree = Arc::new(Tree::new(4));
        let readers: Vec<_> = [2, 5]
            .map(|key| {
                let tree = tree.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        if let Some(found) = tree.has(key) {
                            assert!(found, "key {key} is missed");
                        }
                    }
                })
            })
            .into();
        let changer = {
            let tree = tree.clone();
            thread::spawn(move || {
                for boundary in [6, 1] {
                    tree.restructure(boundary);
                    tree.guide();
                }
            })
        };
        let evictor = {
            let tree = tree.clone();
            thread::spawn(move || {
                tree.relocate();
                tree.guide();
                tree.relocate();
            })
        };
        readers
            .into_iter()
            .chain([changer, evictor])
            .for_each(|task| task.join().expect("no panic"));
        tree.guide();
        assert_eq!(tree.has(2), Some(true), "nobody is in the way");
    });
}

#[test]
fn spots_tell_where_records_stand_now_or_nothing() {
    check(1000, || {
        let leaf = Arc::new(Leaf::new());
        let readers = [1, 2].map(|key| {
            let leaf = leaf.clone();
            thread::spawn(move || {
                for _ in 0..12 {
                    leaf.read(key);
                }
            })
        });
        let changer = {
            let leaf = leaf.clone();
            thread::spawn(move || (0..2).for_each(|_| leaf.shift()))
        };
        readers
            .into_iter()
            .chain([changer])
            .for_each(|task| task.join().expect("no panic"));
        for _ in 0..12 {
            leaf.read(3);
        }
        assert!(leaf.read(3), "nobody changes it, and it was read often");
    });
}

#[test]
fn the_ring_of_the_log_gives_each_byte_once_and_in_order() {
    check(180, || {
        let ring = Arc::new(Ring::new(4096, 0, &[]));
        let writers: Vec<_> = (1..4u8)
            .map(|number| {
                let ring = ring.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        let len = 700 + u64::from(number) * 100;
                        let range = ring.reserve(len);
                        while !ring.has_room(&range) {
                            thread::yield_now();
                        }
                        ring.fill(range, &vec![number; len as usize], &|| false);
                    }
                })
            })
            .collect();
        let total: u64 = (1..4).map(|number| 3 * (700 + number * 100)).sum();
        let mut reader = ring.reader();
        let (mut done, mut counts) = (0, [0u64; 4]);
        while done < total {
            assert!(ring.wait_filled(done + 1, &|| false));
            let filled = ring.filled();
            let (first, second) = reader.pieces(done, filled);
            first
                .iter()
                .chain(second)
                .for_each(|byte| counts[*byte as usize] += 1);
            reader.consume(filled);
            done = filled;
        }
        assert_eq!(counts, [0, 3 * 800, 3 * 900, 3 * 1000]);
        writers
            .into_iter()
            .for_each(|task| task.join().expect("no panic"));
    });
}

#[test]
fn the_watermark_passes_no_gap_and_stops_at_none() {
    check(1800, || {
        let shared = Arc::new((Watermark::new(0, 64), AtomicU64::new(0)));
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (mark, next) = &*shared;
                    for _ in 0..4 {
                        let start = next.fetch_add(16, Ordering::Relaxed);
                        assert!(mark.reached() <= start, "passed before it was marked");
                        mark.mark(start, start + 16, &|| false);
                    }
                })
            })
            .collect();
        tasks
            .into_iter()
            .for_each(|task| task.join().expect("no panic"));
        assert_eq!(shared.0.reached(), 3 * 4 * 16);
    });
}

/// What a checkpoint relies on (ARCHITECTURE L2): who has the log gate alone finds everything registered that was
/// reserved, and nobody reserves before it leaves.
#[test]
fn who_closes_the_log_gate_finds_everything_registered() {
    check(1500, || {
        let shared = Arc::new((
            Gate::new(Rank::None),
            AtomicU64::new(0),
            Watermark::new(0, 64),
        ));
        let commits = (0..3).map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (gate, lsn, registered) = &*shared;
                for _ in 0..2 {
                    let inside = gate.enter();
                    assert!(!inside.is_exclusive());
                    let start = lsn.fetch_add(16, Ordering::SeqCst);
                    thread::yield_now();
                    registered.mark(start, start + 16, &|| false);
                    drop(inside);
                }
            })
        });
        let checkpoints = (0..2).map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (gate, lsn, registered) = &*shared;
                let alone = gate.enter_exclusive();
                assert!(alone.is_exclusive());
                let current = lsn.load(Ordering::SeqCst);
                assert_eq!(registered.reached(), current, "reserved, not registered");
                thread::yield_now();
                assert_eq!(
                    lsn.load(Ordering::SeqCst),
                    current,
                    "reserved past the gate"
                );
                drop(alone);
            })
        });
        let tasks: Vec<_> = commits.chain(checkpoints).collect();
        tasks
            .into_iter()
            .for_each(|task| task.join().expect("no panic"));
        assert_eq!(shared.2.reached(), 3 * 2 * 16);
    });
}

#[test]
fn group_commit_acknowledges_what_was_done_and_leaves_nobody_asleep() {
    check(2400, || {
        let shared = Arc::new((
            // As the log has it: the first who must wait spins a little.
            GroupLock::new(Rank::None, 0).spinning(3),
            AtomicU64::new(0),
            AtomicU64::new(0),
        ));
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (group, position, durable) = &*shared;
                    for _ in 0..2 {
                        let mine = position.fetch_add(1, Ordering::SeqCst) + 1;
                        match group.acquire(mine) {
                            Turn::Leader => {
                                let to = position.load(Ordering::SeqCst);
                                durable.fetch_max(to, Ordering::SeqCst);
                                group.release(to);
                            }
                            Turn::Reached => {
                                assert!(durable.load(Ordering::SeqCst) >= mine, "not durable")
                            }
                            Turn::Failed => panic!("nothing failed"),
                        }
                    }
                })
            })
            .collect();
        tasks
            .into_iter()
            .for_each(|task| task.join().expect("no panic"));
        assert_eq!(shared.0.reached(), 8);
    });
}

#[test]
fn a_failed_group_wakes_everybody_with_the_failure() {
    check(2400, || {
        let group = Arc::new(GroupLock::new(Rank::None, 0));
        let tasks: Vec<_> = (1..5)
            .map(|position| {
                let group = group.clone();
                thread::spawn(move || match group.acquire(position) {
                    Turn::Leader => group.release_failed(),
                    Turn::Failed => {}
                    Turn::Reached => panic!("nothing was done"),
                })
            })
            .collect();
        tasks
            .into_iter()
            .for_each(|task| task.join().expect("no panic"));
        assert_eq!(group.acquire(1), Turn::Failed);
    });
}

#[test]
fn the_lock_queue_grants_x_to_one_and_every_waiter_gets_it() {
    check(750, || {
        let shared = Arc::new((LockTable::new(), AtomicU32::new(0)));
        shared.0.set_deadlock_detect(false);
        let page = PageId::new(SpaceId(1), PageNo(4));
        let modes = [Strength::Exclusive, Strength::Shared, Strength::Exclusive];
        let tasks = modes.map(|strength| {
            let shared = shared.clone();
            thread::spawn(move || {
                let (locks, inside) = &*shared;
                let owner = locks.owner();
                let mode = RecordMode::new(strength, RecordKind::Record);
                if let Outcome::Wait(wait) = locks.lock_record(&owner, page, HeapNo(2), mode) {
                    let patience = Duration::from_secs(3600);
                    locks.wait(&wait, patience, &|| false).expect("granted");
                }
                let own = if strength == Strength::Exclusive {
                    10
                } else {
                    1
                };
                let others = inside.fetch_add(own, Ordering::SeqCst);
                assert!(others == 0 || own == 1 && others < 10, "conflicting locks");
                thread::yield_now();
                inside.fetch_sub(own, Ordering::SeqCst);
                locks.release_all(&owner);
            })
        });
        tasks
            .into_iter()
            .for_each(|task| task.join().expect("no panic"));
        assert!(shared.0.page_is_free(page), "nothing is left");
    });
}

#[test]
fn a_lock_that_moves_while_it_is_released_leaves_nothing_behind() {
    check(750, || {
        let locks = Arc::new(LockTable::new());
        locks.set_deadlock_detect(false);
        let page = |number| PageId::new(SpaceId(1), PageNo(number));
        let mode = RecordMode::new(Strength::Exclusive, RecordKind::Record);
        let holder = locks.owner();
        assert!(matches!(
            locks.lock_record(&holder, page(4), HeapNo(2), mode),
            Outcome::Granted
        ));
        let waiter = {
            let locks = locks.clone();
            thread::spawn(move || {
                let owner = locks.owner();
                // As a transaction does: it looks where the record is now.
                if let Outcome::Wait(wait) = locks.lock_record(&owner, page(4), HeapNo(2), mode) {
                    locks
                        .wait(&wait, Duration::from_secs(3600), &|| false)
                        .expect("granted");
                }
                locks.release_all(&owner);
            })
        };
        let mover = {
            let locks = locks.clone();
            thread::spawn(move || {
                let moved = models::page::list::Moved {
                    from: HeapNo(2),
                    to: HeapNo(3),
                };
                locks.moved(page(4), page(5), &[moved]);
            })
        };
        locks.release_all(&holder);
        mover.join().expect("no panic");
        waiter.join().expect("no panic");
        assert!(
            locks.page_is_free(page(4)) && locks.page_is_free(page(5)),
            "nothing is left"
        );
    });
}

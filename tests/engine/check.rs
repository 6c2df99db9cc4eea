//! CHECK TABLE EXTENDED beside writers: what one view sees agrees at every moment.

use super::open;
use super::rows::{all, begin, change, directory, end, insert, random_row, session, table};
use crate::support::scratch::Scratch;
use crate::support::seed::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use xtradb::engine::{Engine, Isolation, LockMode, TrxFlags, Wait};
use xtradb::words::Error;

const THREADS: u64 = 3;
const CHECKS: u32 = 12;

/// Transactions on rows of its own and on shared ones, until told to stop; how many committed.
fn write(engine: &Arc<Engine>, thread: u64, seed: u64, stop: &AtomicBool) -> u32 {
    let mut rng = Rng::new(seed ^ thread);
    let mut own = session(engine, Isolation::ReadCommitted);
    let mut handle = table(engine);
    let mut next = 10_000 * (thread as i32 + 1);
    let mut committed = 0;
    while !stop.load(Ordering::Relaxed) {
        own.begin(TrxFlags::default()).expect("a transaction");
        for _ in 0..rng.between(1, 8) {
            let done = match rng.below(4) {
                0 => {
                    next += 1;
                    let row = random_row(&mut rng, next);
                    insert(&mut own, &mut handle, &row)
                }
                1 => change(&mut own, &mut handle, rng.between(1, 300) as i32, None),
                _ => {
                    let id = match rng.one_in(3) {
                        true => rng.between(1, 300) as i32,
                        false => next,
                    };
                    let row = random_row(&mut rng, id);
                    change(&mut own, &mut handle, id, Some(&row))
                }
            };
            match done {
                Ok(()) | Err(Error::KeyNotFound | Error::LockWaitTimeout) => {}
                Err(Error::Deadlock) => break,
                Err(error) => panic!("{error}"),
            }
        }
        // A deadlock's victim can only be rolled back.
        match own.state().aborted || rng.one_in(3) {
            true => own.rollback().expect("a rollback"),
            false => {
                own.commit().expect("a commit");
                committed += 1;
            }
        }
    }
    own.close();
    committed
}

#[test]
fn a_row_by_row_check_finds_nothing_while_others_write() {
    let seed = Rng::announced("engine-check").next();
    let scratch = Scratch::new("engine-check");
    let datadir = scratch.dir("data");
    directory(&datadir);
    let options = ["flush_log_at_trx_commit=2"];
    let engine = open(&datadir, &options).unwrap_or_else(|error| panic!("open: {error}"));
    engine.recovery_done();
    let stop = Arc::new(AtomicBool::new(false));
    let committed = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (engine, stop, committed) = (engine.clone(), stop.clone(), committed.clone());
            std::thread::spawn(move || {
                let count = write(&engine, thread, seed, &stop);
                committed.fetch_add(count, Ordering::Relaxed);
            })
        })
        .collect();
    let mut findings = Vec::new();
    let mut handle = table(&engine);
    let levels = [
        Isolation::ReadUncommitted,
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ];
    for round in 0..CHECKS {
        let mut own = session(&engine, levels[round as usize % levels.len()]);
        begin(&mut own, &mut handle, LockMode::None, Wait::NoWait).expect("a use");
        let sound = handle.check(&mut own, round % 3 != 0, &mut |finding| {
            findings.push(finding.text);
            true
        });
        end(&mut own, &mut handle, sound.map(|_| ())).expect("a check");
        own.close();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("no panic");
    }
    assert_eq!(findings, Vec::<String>::new());
    println!("{committed:?} transactions committed");
    assert!(committed.load(Ordering::Relaxed) > 0);
    let mut last = session(&engine, Isolation::RepeatableRead);
    assert!(!all(&mut last, &mut handle, None).is_empty());
    last.close();
    drop(handle);
    engine.close().expect("close");
}

//! Kills at named points and between any two mini-transactions: what was acknowledged is there, what was
//! not is gone or – if the kill hit its commit – wholly there.
//!
//! The victim is this test binary run again on one test, which does nothing unless it is told to by the
//! environment. It tells of each step on its standard output, which outlives it.

use super::rows::{Row, all, change, directory, insert, random_row, session, stock_sees, table};
use super::{host, settings};
use crate::support::scratch::Scratch;
use crate::support::seed::Rng;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use xtradb::engine::{Engine, EngineConfig, Isolation, TrxFlags, Under};
use xtradb::settings::Counters;

const DATADIR: &str = "XTRADB_KILL_DATADIR";
const POINTS: &str = "XTRADB_KILL_POINTS";
const SEED: &str = "XTRADB_KILL_SEED";
/// Checkers look at the files alone: a faster stop may leave some of the recovery to the next start.
const SLOW: [&str; 1] = ["fast_shutdown=0"];

#[test]
fn the_victim() {
    let Ok(datadir) = std::env::var(DATADIR) else {
        return;
    };
    let variable = |name| std::env::var(name).expect("set by the parent");
    let under = Under::default();
    let armed = under.points.arm_all(&variable(POINTS));
    armed.expect("well formed");
    let config = EngineConfig {
        datadir: datadir.into(),
        may_create: false,
    };
    let counters = Arc::new(Counters::default());
    let engine = Engine::open_on(under, config, settings(&[]), counters, host())
        .unwrap_or_else(|error| panic!("open: {error}"));
    engine.recovery_done();
    let mut rng = Rng::new(variable(SEED).parse().expect("a number"));
    let mut session = session(&engine, Isolation::RepeatableRead);
    let mut table = table(&engine);
    let say = |text: String| {
        let mut out = std::io::stdout();
        writeln!(out, "{text}")
            .and_then(|()| out.flush())
            .expect("the parent listens");
    };
    say("X open".into());
    for round in 0..60 {
        session.begin(TrxFlags::default()).expect("a transaction");
        for _ in 0..1 + rng.below(6) {
            let id = rng.between(1, 400) as i32;
            let row = random_row(&mut rng, id);
            let (done, verb) = match rng.below(3) {
                0 => (insert(&mut session, &mut table, &row), 'I'),
                1 => (change(&mut session, &mut table, id, Some(&row)), 'I'),
                _ => (change(&mut session, &mut table, id, None), 'D'),
            };
            if done.is_ok() {
                let v = String::from_utf8(row.v).expect("text");
                say(format!("X {verb} {id} {} {v}", row.n.map_or(-1, |n| n)));
            }
        }
        if rng.one_in(4) {
            session.rollback().expect("a rollback");
            say(format!("X R {round}"));
        } else {
            say(format!("X B {round}"));
            session.commit().expect("a commit");
            say(format!("X C {round}"));
        }
    }
    say("X end".into());
    // Not closed: it ends as by a kill.
    std::process::exit(0);
}

/// What the victim said: the rows after its last acknowledged commit, and after a commit that it was in.
fn follow(
    said: &str,
    rows: &BTreeMap<i32, Row>,
) -> (BTreeMap<i32, Row>, Option<BTreeMap<i32, Row>>) {
    let (mut committed, mut running) = (rows.clone(), rows.clone());
    let mut committing = None;
    // Whole lines only; the test harness may have begun the first one.
    let lines = said[..said.rfind('\n').map_or(0, |end| end)].lines();
    for line in lines.filter_map(|line| line.find("X ").map(|at| &line[at + 2..])) {
        let mut words = line.splitn(4, ' ');
        let verb = words.next().expect("a verb");
        let mut number = || -> i32 { words.next().expect("a number").parse().expect("a number") };
        match verb {
            "I" => {
                let (id, n) = (number(), number());
                let v = words.next().unwrap_or_default().as_bytes().to_vec();
                let n = (n >= 0).then_some(n);
                running.insert(id, Row { id, n, v });
            }
            "D" => {
                running.remove(&number());
            }
            "R" => running = committed.clone(),
            "B" => committing = Some(running.clone()),
            "C" => {
                committed = running.clone();
                committing = None;
            }
            _ => {}
        }
    }
    (committed, committing)
}

fn run_victim(datadir: &Path, points: &str, seed: u64) -> String {
    let output = Command::new(std::env::current_exe().expect("this binary"))
        .args([
            "engine::kill::the_victim",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DATADIR, datadir)
        .env(POINTS, points)
        .env(SEED, seed.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("the victim starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("panicked"), "{points}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn acknowledged_commits_survive_kills_at_any_point() {
    let mut rng = Rng::announced("engine-kill");
    let scratch = Scratch::new("engine-kill");
    let datadir = scratch.dir("data");
    let mut rows = directory(&datadir);
    let mut died = 0;
    for round in 0..14 {
        let points = match round % 7 {
            0 => format!("trx.before_history:kill:{}", rng.below(20)),
            1 => format!("trx.before_publish:kill:{}", rng.below(20)),
            2 => format!("redo.before_write:kill:{}", rng.below(30)),
            3 => format!("redo.after_write:kill:{}", rng.below(30)),
            4 => format!("redo.before_sync:kill:{}", rng.below(30)),
            // Small numbers fall into the rollback at the start.
            5 => format!("mtr.committed:kill:{}", rng.below(20)),
            _ => format!("mtr.committed:kill:{}", rng.below(900)),
        };
        let said = run_victim(&datadir, &points, rng.next());
        died += u32::from(!said.contains("X end"));
        let (committed, committing) = follow(&said, &rows);
        let engine =
            super::open(&datadir, &SLOW).unwrap_or_else(|error| panic!("{points}: {error}"));
        engine.recovery_done();
        let mut session = session(&engine, Isolation::ReadCommitted);
        let mut handle = table(&engine);
        let found: BTreeMap<_, _> = all(&mut session, &mut handle, None)
            .into_iter()
            .map(|row| (row.id, row))
            .collect();
        assert!(
            found == committed || Some(&found) == committing.as_ref(),
            "{points}: {} rows, {} were committed",
            found.len(),
            committed.len()
        );
        let by_n = all(&mut session, &mut handle, Some(1));
        assert_eq!(by_n.len(), found.len(), "{points}");
        rows = found;
        session.close();
        drop(handle);
        if round % 5 == 4 {
            engine.close().expect("close");
            drop(engine);
            stock_sees(&datadir, &rows);
        }
    }
    assert!(died > 10, "only {died} victims died");
    super::open_and_close(&datadir, &SLOW);
    stock_sees(&datadir, &rows);
}

//! The k-th I/O call fails, for every k: once, for good, for want of room, half-way, at a sync.
//!
//! Whatever fails, a statement gets an error or the engine stops in good order; nothing acknowledged is
//! lost, nothing half done is found after a power cut, and no failed sync is tried again.

use super::bed::{self, Row};
use super::verify::{Depth, read, verify};
use super::work::{Model, Work};
use super::{IDS, Violations, checked, instance, number, workers};
use crate::support::seed::Rng;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use xtradb::engine::{Engine, Isolation, TrxFlags};
use xtradb::os::sim::{Blow, SimVfs};
use xtradb::words::Error;

const STATEMENTS: usize = 60;

/// A clean instance and what is in it.
struct Base {
    disk: SimVfs,
    model: Model,
    seed: u64,
}

impl Base {
    fn new(rng: &mut Rng) -> Base {
        let (disk, engine, db) = instance(rng);
        engine.close().expect("close");
        Base {
            disk,
            model: Model { states: vec![db] },
            seed: rng.next(),
        }
    }
}

/// How a run went.
struct Ran {
    model: Model,
    allowed: RangeInclusive<usize>,
    calls: u64,
    /// The engine stopped itself, or closing it failed.
    ended: Option<String>,
    errors: Vec<String>,
}

/// 60 statements and a close on `disk`, after the call number `at` of them was hit.
fn run(base: &Base, disk: &SimVfs, blow: Option<(Blow, u64)>) -> Result<Ran, String> {
    let engine = bed::open(disk).map_err(|error| format!("a sound instance: {error}"))?;
    let model = Model {
        states: base.model.states.clone(),
    };
    let before = disk.calls();
    if let Some((blow, at)) = blow {
        disk.strike(blow, at);
    }
    let mut work = Work::new(disk, &engine, model, Rng::new(base.seed), IDS);
    let mut errors = Vec::new();
    let mut open_from = None;
    for statement in 0..STATEMENTS {
        let known = work.model.states.len();
        let Err(error) = work.step() else { continue };
        errors.push(format!("statement {statement}: {error}"));
        if work.model.states.len() > known && engine.stopped().is_some() {
            // Nobody knows whether the last step counts.
            open_from = Some(known - 1);
        }
        if engine.stopped().is_some() {
            break;
        }
        let settled = work.recover(known, |model, known| settle(&engine, model, known));
        match settled {
            Err(text)
                if matches!(blow, Some((Blow::EioForGood, _))) && text.contains("os error 5") =>
            {
                work.given_up = Some(text);
            }
            other => other?,
        }
        if work.given_up.is_some() {
            if work.model.states.len() > known {
                open_from = Some(known - 1);
            }
            break;
        }
    }
    if let Some(why) = engine.stopped() {
        let ddl = open_from.is_some() && !work.log.last().is_some_and(|s| s.contains("commit"));
        stays_stopped(&engine, &work.model, disk, ddl).map_err(|text| format!("{text} ({why})"))?;
    }
    let ended = engine.stopped().map(String::from).or(work.given_up.take());
    let (model, _) = work.abandon();
    let closed = engine.close();
    drop(engine);
    let last = model.states.len() - 1;
    Ok(Ran {
        allowed: open_from.unwrap_or(last)..=last,
        model,
        calls: disk.calls() - before,
        ended: ended.or(closed.err().map(|error| format!("close: {error}"))),
        errors,
    })
}

/// A step failed and the engine goes on: what it did is all there or not at all. Keeps the state that
/// is found.
fn settle(engine: &Arc<Engine>, model: &mut Model, known: usize) -> Result<(), String> {
    if model.states.len() == known {
        return Ok(());
    }
    let found = match read(engine) {
        Ok(found) => found,
        // The device may fail for good: then the next cut shows what there is.
        Err(_) if engine.stopped().is_some() => return Ok(()),
        Err(text) => return Err(format!("reading after a failed step: {text}")),
    };
    let is = |state: &super::work::Db| super::verify::is_state(&found, state);
    match model.states.iter().rposition(is) {
        Some(at) if at + 1 >= known => {
            let state = model.states[at].clone();
            model.states.truncate(known);
            model.states.push(state);
            Ok(())
        }
        _ => {
            let last = model.states.last().expect("pushed");
            let text = super::verify::difference(&found, last);
            Err(format!("a failed step is half done: {text}"))
        }
    }
}

/// No commit is acknowledged any more; what can be read is read.
fn stays_stopped(
    engine: &Arc<Engine>,
    model: &Model,
    disk: &SimVfs,
    unfinished_ddl: bool,
) -> Result<(), String> {
    let struck = disk.struck().unwrap_or_default();
    let Some(name) = model.last().keys().next() else {
        return Ok(());
    };
    let mut session = bed::session(engine, Isolation::ReadCommitted);
    let Ok(mut table) = bed::table(engine, name) else {
        return Ok(());
    };
    let row = Row {
        id: 1_000_000,
        n: None,
        v: Vec::new(),
        b: None,
    };
    let done = session
        .begin(TrxFlags::default())
        .and_then(|()| bed::insert(&mut session, &mut table, &row))
        .and_then(|()| session.commit());
    if done.is_ok() {
        return Err(format!("a commit is acknowledged after {struck}"));
    }
    let mut session = bed::session(engine, Isolation::ReadCommitted);
    match bed::all(&mut session, &mut table, 0) {
        Ok(_) => Ok(()),
        // A device that fails for good gives no page that is not cached.
        Err(Error::Io(_)) => Ok(()),
        // A table that the statement was about to change may be in nobody's use.
        Err(Error::Stopped(_)) if unfinished_ddl => Ok(()),
        Err(error) => Err(format!("reads do not go on after {struck}: {error}")),
    }
}

fn strike(base: &Base, blow: Blow, at: u64, counts: &Counts) -> Result<(), String> {
    let disk = base.disk.after_kill();
    let ran = run(base, &disk, Some((blow, at)))?;
    let Some(struck) = disk.struck() else {
        return Ok(());
    };
    counts.struck.fetch_add(1, Ordering::Relaxed);
    counts
        .stopped
        .fetch_add(usize::from(ran.ended.is_some()), Ordering::Relaxed);
    counts
        .errors
        .fetch_add(usize::from(!ran.errors.is_empty()), Ordering::Relaxed);
    let about = |text: String| {
        let Ran { ended, errors, .. } = &ran;
        format!("{struck}; errors {errors:?}; ended {ended:?}: {text}")
    };
    let retried = disk.syncs_retried();
    if !retried.is_empty() {
        return Err(about(format!("synced again after a failure: {retried:?}")));
    }
    let is_harmless = matches!(blow, Blow::Short | Blow::Eintr);
    if is_harmless && (ran.ended.is_some() || !ran.errors.is_empty()) {
        return Err(about("no error may come of it".into()));
    }
    let mut rng = Rng::new(base.seed ^ at);
    let depth = match rng.one_in(4) {
        true => Depth::Audit,
        false => Depth::Read,
    };
    let after = disk.after_power_cut(rng.next());
    verify(&after, &ran.model, ran.allowed.clone(), depth, &mut rng)
        .map(|_| ())
        .map_err(about)
}

#[derive(Default)]
struct Counts {
    runs: AtomicUsize,
    struck: AtomicUsize,
    stopped: AtomicUsize,
    errors: AtomicUsize,
}

#[test]
#[ignore = "a read that fails between two changes of a mini-transaction may still stop the engine"]
fn a_failing_call_costs_a_statement_or_stops_the_engine_and_loses_nothing() {
    let mut rng = Rng::announced("power-faults");
    let base = Base::new(&mut rng);
    let calm = base.disk.after_kill();
    let ran = run(&base, &calm, None).expect("a healthy disk");
    assert!(
        ran.errors.is_empty() && ran.ended.is_none(),
        "{:?}",
        ran.errors
    );
    let calls = ran.calls + 20;
    let stride = number("XTRADB_FAULT_STRIDE", 7) as u64;
    let start = rng.below(stride);
    let counts: BTreeMap<usize, Counts> = (0..Blow::ALL.len())
        .map(|i| (i, Counts::default()))
        .collect();
    let violations = Violations::default();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                while !violations.are_many() {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    let which = task % Blow::ALL.len();
                    // Neighbouring blows fall on different calls.
                    let at =
                        (task / Blow::ALL.len()) as u64 * stride + (start + which as u64) % stride;
                    if at >= calls {
                        return;
                    }
                    let blow = Blow::ALL[which];
                    let done = checked(|| strike(&base, blow, at, &counts[&which]));
                    counts[&which].runs.fetch_add(1, Ordering::Relaxed);
                    if let Err(text) = done {
                        violations.add(
                            &base.disk,
                            format!("seed {} {blow:?} at {at}: {text}", base.seed),
                        );
                    }
                }
            });
        }
    });
    for (which, counts) in &counts {
        println!(
            "power-faults: {:?} of {calls} calls: {counts:?}",
            Blow::ALL[*which]
        );
    }
    violations.none();
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let get = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        write!(
            f,
            "{} runs, {} struck, {} with statement errors, {} stopped",
            get(&self.runs),
            get(&self.struck),
            get(&self.errors),
            get(&self.stopped)
        )
    }
}

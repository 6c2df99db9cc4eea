//! The k-th I/O call fails, for every k: once, for good, for want of room, half-way, at a sync.
//!
//! Whatever fails, a statement gets an error or the engine stops in good order; nothing acknowledged is
//! lost, nothing half done is found after a power cut, and no failed sync is tried again.

use super::bed::{self, Row};
use super::verify::{ALL_WAYS, Depth, read, verify};
use super::work::{Db, Model, Work, mark_of};
use super::{IDS, Violations, checked, instance, number, workers};
use crate::support::seed::Rng;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use xtradb::engine::{Engine, Isolation, RowFormat, TrxFlags};
use xtradb::os::sim::{Blow, Call, SimVfs, Struck};
use xtradb::words::Error;

const STATEMENTS: usize = 60;
/// Every so many calls are hit, from a random one on; 1 takes each.
const STRIDE: usize = 1;

/// A clean instance and what is in it.
struct Base {
    disk: SimVfs,
    model: Model,
    seed: u64,
}

impl Base {
    fn new(rng: &mut Rng) -> Base {
        let (disk, engine, db) = instance(rng, IDS);
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
        let blow = blow.map_or(Blow::Eio, |(blow, _)| blow);
        let ddl = open_from.is_some() && !work.log.last().is_some_and(|s| s.contains("commit"));
        stays_stopped(&engine, &work.model, disk, blow, ddl)
            .map_err(|text| format!("{text} ({why})"))?;
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
    let found = match read(engine, &ALL_WAYS) {
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
    blow: Blow,
    unfinished_ddl: bool,
) -> Result<(), String> {
    let struck = disk.struck().expect("a healthy engine does not stop");
    let Some(name) = model.last().keys().next() else {
        return Ok(());
    };
    let promised = |error: Error| match may_refuse(&error, blow, &struck, unfinished_ddl) {
        true => Ok(()),
        false => Err(format!("reads do not go on after {struck}: {error:?}")),
    };
    let mut session = bed::session(engine, Isolation::ReadCommitted);
    let mut table = match bed::table(engine, name) {
        Ok(table) => table,
        Err(error) => return promised(error),
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
        Err(error) => promised(error),
    }
}

/// What F5 does not promise a read.
fn may_refuse(error: &Error, blow: Blow, struck: &Struck, unfinished_ddl: bool) -> bool {
    let is_name = struck.call == Call::Name || struck.call == Call::Sync && is_dir(&struck.path);
    match error {
        // A device that fails for good gives no page that is not cached.
        Error::Io(_) => blow == Blow::EioForGood,
        // Nor does a file that has failed, whatever the device does now.
        Error::FileFailed(path) => blow.is_for_good() || **path == *struck.path,
        // Nobody knows which names will last; and a table that a statement was about to change may be in
        // nobody's use.
        Error::Stopped(_) => is_name || blow.is_for_good() || unfinished_ddl,
        _ => false,
    }
}

fn is_dir(path: &str) -> bool {
    path == "./" || path == "./d"
}

fn strike(base: &Base, blow: Blow, at: u64, counts: &Counts) -> Result<(), String> {
    let disk = base.disk.after_kill();
    let ran = run(base, &disk, Some((blow, at)))?;
    let Some(struck) = disk.struck() else {
        return Ok(());
    };
    counts.note(ran.ended.is_some(), !ran.errors.is_empty());
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

/// What the runs of one blow came to.
#[derive(Default)]
pub struct Counts {
    runs: AtomicUsize,
    struck: AtomicUsize,
    stopped: AtomicUsize,
    errors: AtomicUsize,
}

impl Counts {
    /// A run that was struck: the engine stopped, statements failed.
    pub fn note(&self, stopped: bool, errors: bool) {
        self.struck.fetch_add(1, Ordering::Relaxed);
        self.stopped
            .fetch_add(usize::from(stopped), Ordering::Relaxed);
        self.errors
            .fetch_add(usize::from(errors), Ordering::Relaxed);
    }
}

#[test]
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
    let stride = number("XTRADB_FAULT_STRIDE", STRIDE) as u64;
    let places = (stride, rng.below(stride));
    let violations = Violations::default();
    play(
        "power-faults",
        calls,
        places,
        &violations,
        |blow, at, counts| {
            let done = checked(|| strike(&base, blow, at, counts));
            done.map_err(|text| (base.disk.clone(), format!("seed {}: {text}", base.seed)))
        },
    );
    violations.none();
}

/// Lets every blow hit some of `calls` calls: each `stride`th from a first one on. Where something is wrong,
/// `strike` gives the disk as it was at first.
pub fn play(
    what: &str,
    calls: u64,
    (stride, start): (u64, u64),
    violations: &Violations,
    strike: impl Fn(Blow, u64, &Counts) -> Result<(), (SimVfs, String)> + Sync,
) {
    let counts: Vec<Counts> = Blow::ALL.iter().map(|_| Counts::default()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while !violations.are_many() {
            let task = next.fetch_add(1, Ordering::Relaxed);
            let which = task % Blow::ALL.len();
            // Neighbouring blows fall on different calls.
            let first = (start + which as u64 * stride / Blow::ALL.len() as u64) % stride;
            let at = (task / Blow::ALL.len()) as u64 * stride + first;
            if at >= calls {
                return;
            }
            let (blow, counts) = (Blow::ALL[which], &counts[which]);
            counts.runs.fetch_add(1, Ordering::Relaxed);
            if let Err((disk, text)) = strike(blow, at, counts) {
                violations.add(&disk, format!("{blow:?} at {at}: {text}"));
            }
        }
    };
    std::thread::scope(|scope| (0..workers()).for_each(|_| drop(scope.spawn(work))));
    for (blow, counts) in Blow::ALL.iter().zip(&counts) {
        println!("{what}: {blow:?} of {calls} calls: {counts:?}");
    }
}

/// Statements of DDL on the tables of the base.
#[derive(Clone, Copy, Debug)]
enum Ddl {
    Create,
    Rename,
    Truncate,
    Drop,
    AddIndex,
}

impl Ddl {
    const ALL: [Ddl; 5] = [
        Ddl::Create,
        Ddl::Rename,
        Ddl::Truncate,
        Ddl::Drop,
        Ddl::AddIndex,
    ];

    fn run(self, engine: &Arc<Engine>) -> Result<(), Error> {
        let session = &mut bed::session(engine, Isolation::RepeatableRead);
        match self {
            Ddl::Create => bed::create(engine, session, NEW, RowFormat::Dynamic),
            Ddl::Rename => engine.rename_table(session, OLD, NEW),
            Ddl::Truncate => engine.truncate_table(session, OLD),
            Ddl::Drop => engine.drop_table(session, OLD),
            Ddl::AddIndex => bed::add_or_drop(engine, session, OLD, true),
        }
    }

    fn change(self, db: &mut Db) {
        let rows = match self {
            Ddl::Create => Some(Arc::default()),
            Ddl::Rename => db.remove(OLD),
            Ddl::Truncate => db.insert(OLD.into(), Arc::default()).and(None),
            Ddl::Drop => db.remove(OLD).and(None),
            Ddl::AddIndex => db.insert(mark_of(OLD), Arc::default()).and(None),
        };
        db.extend(rows.map(|rows| (NEW.to_string(), rows)));
    }
}

const OLD: &str = "d/t1";
const NEW: &str = "d/new";

/// One statement whose call number `at` is hit; false if it has fewer.
fn strike_ddl(base: &Base, ddl: Ddl, blow: Blow, at: u64) -> Result<bool, String> {
    let disk = base.disk.after_kill();
    let engine = bed::open(&disk).map_err(|error| format!("a sound instance: {error}"))?;
    let mut db = base.model.last().clone();
    ddl.change(&mut db);
    let model = Model {
        states: vec![base.model.last().clone(), db],
    };
    disk.strike(blow, at);
    let done = ddl.run(&engine);
    let Some(struck) = disk.struck() else {
        return Ok(false);
    };
    let about = |text: String| format!("{struck}: {done:?}: {text}");
    let allowed = match done.is_ok() {
        true => 1..=1,
        false => 0..=1,
    };
    // The rest of the run may be cut off, or end well.
    let mut rng = Rng::new(base.seed ^ at);
    if rng.one_in(2) {
        disk.heal();
        // What it says was said before: the device is well again.
        let _ = engine.close();
    }
    drop(engine);
    if !disk.syncs_retried().is_empty() {
        let text = format!("synced again after a failure: {:?}", disk.syncs_retried());
        return Err(about(text));
    }
    let after = disk.after_power_cut(rng.next());
    verify(&after, &model, allowed, Depth::Audit, &mut rng).map_err(about)?;
    Ok(true)
}

/// A renaming that failed after its log record had been written was done by the next start, and nobody
/// undid it: the table had lost its file.
#[test]
fn a_failing_call_leaves_a_statement_of_ddl_done_or_undone() {
    let mut rng = Rng::announced("power-ddl-faults");
    let base = Base::new(&mut rng);
    let stride = number("XTRADB_FAULT_STRIDE", STRIDE) as u64;
    let blows = [
        Blow::Eio,
        Blow::EioForGood,
        Blow::EnospcForGood,
        Blow::Fsync,
    ];
    let violations = Violations::default();
    let next = AtomicUsize::new(0);
    let struck = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..workers() {
            scope.spawn(|| {
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&blow) = blows.get(task / Ddl::ALL.len()) else {
                        return;
                    };
                    let ddl = Ddl::ALL[task % Ddl::ALL.len()];
                    for at in (task as u64 % stride..).step_by(stride as usize) {
                        if violations.are_many() {
                            return;
                        }
                        match checked(|| strike_ddl(&base, ddl, blow, at)) {
                            Ok(true) => struck.fetch_add(1, Ordering::Relaxed),
                            Ok(false) => break,
                            Err(text) => {
                                let text = format!("{ddl:?}, {blow:?} at {at}, {text}");
                                violations.add(&base.disk, text);
                                0
                            }
                        };
                    }
                }
            });
        }
    });
    println!("power-ddl-faults: {struck:?} statements were struck");
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

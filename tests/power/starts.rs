//! The k-th I/O call of a start after a crash fails: once, for good, for want of room, half-way, at a sync.
//!
//! The start is refused with an error that tells what the system said, or it succeeds, and what is read then
//! is right or an error. Whatever it was, the next start recovers everything.

use super::bed::{self, Row};
use super::faults::{Counts, play};
use super::verify::{Depth, is_state, verify};
use super::work::{Model, Work};
use super::{Violations, checked, instance, number};
use crate::support::seed::Rng;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use xtradb::engine::{Engine, Isolation};
use xtradb::os::sim::{Blow, SimVfs};
use xtradb::words::Error;

/// Every so many calls are hit, from a random one on; 1 takes each.
const STRIDE: usize = 19;
const IDS: u64 = 100;
const STATEMENTS: usize = 150;

/// What a crash left, and where the database is then.
struct Crash {
    disk: SimVfs,
    model: Model,
    allowed: RangeInclusive<usize>,
    /// I/O calls of a start and a stop that nothing disturbs.
    calls: u64,
    seed: u64,
}

impl Crash {
    /// A process that was killed, or that a power cut ended.
    fn new(rng: &mut Rng, killed: bool) -> Crash {
        let (disk, engine, db) = instance(rng, IDS);
        if rng.one_in(2) {
            bed::checkpoint(&engine);
        }
        let model = Model { states: vec![db] };
        let mut work = Work::new(&disk, &engine, model, Rng::new(rng.next()), IDS);
        for _ in 0..STATEMENTS {
            work.step().expect("a healthy disk");
        }
        let left = match killed {
            true => disk.after_kill(),
            false => disk.after_power_cut(rng.next()),
        };
        let (model, _) = work.abandon();
        drop(engine);
        let calm = left.after_kill();
        let last = model.states.len() - 1;
        let found = verify(&calm, &model, last..=last, Depth::Audit, rng).expect("a healthy disk");
        Crash {
            disk: left,
            model,
            allowed: found..=found,
            calls: calm.calls(),
            seed: rng.next(),
        }
    }
}

/// True if it tells that the system refused, not that the files are wrong.
fn is_clear(error: &Error) -> bool {
    matches!(
        error,
        Error::Io(_)
            | Error::NoSpace(_)
            | Error::Stopped(_)
            | Error::FileFailed(_)
            | Error::TablespaceMissing(_)
    )
}

/// All rows, or the first error.
fn rows(engine: &Arc<Engine>) -> Result<BTreeMap<String, Vec<Row>>, Error> {
    let mut session = bed::session(engine, Isolation::ReadCommitted);
    let mut tables = BTreeMap::new();
    for name in engine.table_names(Some("d"))? {
        if bed::has_added(engine, &name)? {
            tables.insert(super::work::mark_of(&name), Vec::new());
        }
        let mut table = bed::table(engine, &name)?;
        let rows = bed::all(&mut session, &mut table, 0)?;
        tables.insert(name.to_string(), rows);
    }
    session.close();
    Ok(tables)
}

/// What the struck start came to, and what went wrong with it.
struct Started {
    refused: bool,
    errors: Vec<Error>,
}

fn start(crash: &Crash, disk: &SimVfs, stop: bool) -> Result<Started, String> {
    let engine = match bed::open(disk) {
        Ok(engine) => engine,
        Err(error) => {
            return Ok(Started {
                refused: true,
                errors: vec![error],
            });
        }
    };
    let mut errors = Vec::new();
    match rows(&engine) {
        Err(error) => errors.push(error),
        Ok(found) => {
            let is = |state: usize| is_state(&found, &crash.model.states[state]);
            if !crash.allowed.clone().any(is) {
                return Err("other rows are read".into());
            }
        }
    }
    if stop {
        errors.extend(engine.close().err());
    }
    Ok(Started {
        refused: false,
        errors,
    })
}

fn strike(crash: &Crash, blow: Blow, at: u64, counts: &Counts) -> Result<(), String> {
    let disk = crash.disk.after_kill();
    disk.strike(blow, at);
    let mut rng = Rng::new(crash.seed ^ at << 8 ^ blow as u64);
    let started = start(crash, &disk, rng.one_in(2));
    let Some(struck) = disk.struck() else {
        return started.map(|_| ());
    };
    let Started { refused, errors } = started.map_err(|text| format!("{struck}: {text}"))?;
    counts.note(refused, !errors.is_empty());
    let about = |text: String| format!("{struck}; {errors:?}: {text}");
    if let Some(error) = errors.iter().find(|error| !is_clear(error)) {
        return Err(about(format!("{error:?} is no clear error")));
    }
    if matches!(blow, Blow::Short | Blow::Eintr) && !errors.is_empty() {
        return Err(about("no error may come of it".into()));
    }
    let retried = disk.syncs_retried();
    if !retried.is_empty() {
        return Err(about(format!("synced again after a failure: {retried:?}")));
    }
    let after = match rng.one_in(4) {
        true => disk.after_kill(),
        false => disk.after_power_cut(rng.next()),
    };
    let allowed = crash.allowed.clone();
    verify(&after, &crash.model, allowed, Depth::Audit, &mut rng)
        .map(|_| ())
        .map_err(about)
}

fn strike_all(what: &str, killed: bool) {
    let mut rng = Rng::announced(what);
    let crash = Crash::new(&mut rng, killed);
    let stride = number("XTRADB_FAULT_STRIDE", STRIDE) as u64;
    let start = rng.below(stride);
    let violations = Violations::default();
    play(
        what,
        crash.calls,
        (stride, start),
        &violations,
        |blow, at, counts| {
            let done = checked(|| strike(&crash, blow, at, counts));
            done.map_err(|text| (crash.disk.clone(), text))
        },
    );
    violations.none();
}

#[test]
fn a_failing_call_of_a_start_after_a_power_cut_is_told_and_the_next_start_recovers_all() {
    strike_all("power-starts", false);
}

#[test]
fn a_failing_call_of_a_start_after_a_kill_is_told_and_the_next_start_recovers_all() {
    strike_all("power-starts-kill", true);
}

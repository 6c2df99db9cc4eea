//! Power cuts and failing devices, for the whole engine on a simulated disk.
//!
//! A run of the workload is recorded once; its states are derived from the record: one for each moment –
//! after a write, a sync, a change of names – and seed, which says what of the unsynced survived. Each is
//! opened and compared with the model; of many, what the recovery did is cut a second time.
//!
//! Background threads make each recording a little different, so a seed alone does not bring a failure
//! back: the files of the first one are written to a directory, which the report names.

mod audit;
mod bed;
mod faults;
mod pages;
mod starts;
mod verify;
mod work;

use crate::support::scratch::Scratch;
use crate::support::seed::Rng;
use bed::Row;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use verify::{Depth, verify};
use work::{Db, Model, Work};
use xtradb::engine::{Engine, Isolation, RowFormat, TrxFlags};
use xtradb::os::Vfs;
use xtradb::os::sim::SimVfs;
use xtradb::os::sim_record::Recording;
use xtradb::settings::Counter;

/// Ids of rows in each table, at most.
const IDS: u64 = 300;

/// A recorded run and what it acknowledged when.
struct Recorded {
    recording: Recording,
    model: Model,
    log: Vec<String>,
}

impl Recorded {
    /// States that a cut at `moment` may leave.
    fn allowed(&self, marks: &[(usize, u64)], moment: usize) -> std::ops::RangeInclusive<usize> {
        let passed = marks.partition_point(|(at, _)| *at <= moment);
        match passed.checked_sub(1).map(|at| marks[at].1 as usize) {
            None => 0..=0,
            Some(note) if note % 2 == 0 => note / 2..=note / 2 + 1,
            Some(note) => note / 2 + 1..=note / 2 + 1,
        }
    }
}

/// An instance with some tables, rows with ids below `ids` in them, and a log that is about to wrap.
fn instance(rng: &mut Rng, ids: u64) -> (SimVfs, Arc<Engine>, Db) {
    let disk = SimVfs::new();
    disk.create_dir("./d").expect("a directory");
    let engine = bed::open(&disk).expect("a new instance");
    let mut session = bed::session(&engine, Isolation::RepeatableRead);
    let formats = [
        RowFormat::Dynamic,
        RowFormat::Compact,
        RowFormat::Redundant,
        RowFormat::Dynamic,
    ];
    let mut db = Db::new();
    for (i, format) in formats.into_iter().enumerate() {
        let name = format!("d/t{i}");
        bed::create(&engine, &mut session, &name, format).expect("a table");
        db.insert(name, Arc::default());
    }
    let mut model = Model { states: vec![db] };
    let mut round = 0;
    while log_used(&engine) < 3_400_000 {
        round += 1;
        assert!(round < 100, "the log does not fill");
        for name in model.last().keys().cloned().collect::<Vec<_>>() {
            let mut table = bed::table(&engine, &name).expect("a table");
            session.begin(TrxFlags::default()).expect("a transaction");
            let mut next = model.last().clone();
            let rows = Arc::make_mut(next.get_mut(&name).expect("there"));
            for _ in 0..20 {
                let id = rng.below(ids) as i32;
                let row = Row {
                    id,
                    n: Some(id % 7),
                    v: rng.text(id as usize % 150).into_bytes(),
                    b: rng.one_in(10).then(|| vec![id as u8; 6000]),
                };
                let done = match rows.contains_key(&id) {
                    true => bed::change(&mut session, &mut table, id, Some(&row)),
                    false => bed::insert(&mut session, &mut table, &row),
                };
                done.expect("a change");
                rows.insert(id, Arc::new(row));
            }
            session.commit().expect("a commit");
            model.states = vec![next];
        }
    }
    session.close();
    (disk, engine, model.last().clone())
}

/// Bytes of the first lap that are written.
fn log_used(engine: &Engine) -> u64 {
    engine.refresh_counters();
    engine.counters().get(Counter::LsnCurrent) - 12288
}

/// What a recorded run does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mix {
    All,
    /// The same on as much log and as many rows as there is room for.
    Long,
    /// Statements of DDL alone.
    Ddl,
}

impl Mix {
    /// Rows of a table: a state costs as much as must be read, and most bugs need few.
    fn ids(self, rng: &mut Rng) -> u64 {
        match self {
            Mix::Long => IDS,
            Mix::All => *rng.pick(&[60, 100, 150]),
            Mix::Ddl => 60,
        }
    }

    fn step(self, work: &mut Work) {
        let done = match self {
            Mix::All | Mix::Long => work.step(),
            Mix::Ddl => work.change_tables(),
        };
        done.expect("a healthy disk");
    }
}

/// Runs `steps` statements, closes, opens again, runs some more, and stops as by a crash.
fn record(rng: &mut Rng, mix: Mix, steps: u32) -> Recorded {
    let ids = mix.ids(rng);
    let (disk, engine, db) = instance(rng, ids);
    if mix != Mix::Long {
        // Recovery begins near its end.
        bed::checkpoint(&engine);
    }
    disk.start_recording();
    let model = Model { states: vec![db] };
    let mut work = Work::new(&disk, &engine, model, Rng::new(rng.next()), ids);
    for _ in 0..steps {
        mix.step(&mut work);
    }
    let (model, mut log) = work.end().expect("the end");
    engine.close().expect("close");
    drop(engine);
    let engine = bed::open(&disk).expect("a clean instance");
    let mut work = Work::new(&disk, &engine, model, Rng::new(rng.next()), ids);
    for _ in 0..steps / 4 {
        mix.step(&mut work);
    }
    let (model, more) = work.abandon();
    log.extend(more);
    drop(engine);
    let recording = disk.take_recording();
    Recorded {
        recording,
        model,
        log,
    }
}

/// The making of an instance, from an empty directory to its clean end.
fn record_creation() -> Recorded {
    let disk = SimVfs::new();
    disk.create_dir("./d").expect("a directory");
    disk.start_recording();
    let engine = bed::open(&disk).expect("a new instance");
    engine.close().expect("close");
    Recorded {
        recording: disk.take_recording(),
        model: Model {
            states: vec![Db::new()],
        },
        log: Vec::new(),
    }
}

/// Violations, the first of them with its files.
#[derive(Default)]
struct Violations {
    count: AtomicUsize,
    first: Mutex<Option<String>>,
}

impl Violations {
    fn add(&self, disk: &SimVfs, what: String) {
        println!("VIOLATION {what}");
        if self.count.fetch_add(1, Ordering::Relaxed) == 0 {
            let dir = dump(disk);
            let text = format!("{what}\nits files: {}", dir.display());
            *self.first.lock().expect("no panic") = Some(text);
        }
    }

    fn none(&self) {
        if let Some(first) = self.first.lock().expect("no panic").take() {
            panic!(
                "{} violations, the first: {first}",
                self.count.load(Ordering::Relaxed)
            );
        }
    }

    fn are_many(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= 10
    }
}

/// Writes the files of a state out, for a look.
fn dump(disk: &SimVfs) -> PathBuf {
    let scratch = Scratch::new("power");
    let dir = scratch.path().to_path_buf();
    // It outlives the test.
    std::mem::forget(scratch);
    for path in disk.paths() {
        let to = dir.join(path.trim_start_matches("./"));
        std::fs::create_dir_all(to.parent().expect("a directory")).expect("a directory");
        std::fs::write(to, disk.content(&path).expect("a file")).expect("written");
    }
    dir
}

/// Runs a check; a panic is a violation like any other.
fn checked<T>(check: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        Err(format!(
            "panic: {}",
            xtradb::os::thread::panic_text(&*panic)
        ))
    })
}

/// How a recorded run is cut.
#[derive(Clone, Copy)]
struct Plan {
    seed: u64,
    /// So many states, spread over all moments; second cuts come on top.
    count: usize,
    /// One in so many is a kill of the process first, with the power gone afterwards.
    kills: u64,
}

/// Cuts a recorded run at these moments; yields how many states were checked.
fn cut(recorded: &Recorded, moments: &[usize], plan: Plan, violations: &Violations) -> usize {
    let count = plan.count;
    let workers = workers();
    let states = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let states = &states;
            scope.spawn(move || {
                let range = count * worker / workers..count * (worker + 1) / workers;
                states.fetch_add(
                    cut_range(recorded, moments, plan, range, violations),
                    Ordering::Relaxed,
                );
            });
        }
    });
    states.into_inner()
}

fn cut_range(
    recorded: &Recorded,
    moments: &[usize],
    plan: Plan,
    range: std::ops::Range<usize>,
    violations: &Violations,
) -> usize {
    let Plan { seed, count, kills } = plan;
    let marks = recorded.recording.marks();
    let mut replay = recorded.recording.replay();
    let mut states = 0;
    for state in range {
        if violations.are_many() {
            break;
        }
        let moment = moments[state * moments.len() / count];
        replay.advance_to(moment);
        let mut rng = Rng::new(seed ^ (state as u64) << 20);
        let killed = rng.one_in(kills);
        let disk = match killed {
            true => replay.kill(),
            false => replay.cut(rng.next()),
        };
        let before = disk.after_kill();
        let allowed = recorded.allowed(&marks, moment);
        let depth = match rng.below(16) {
            0 => Depth::Work,
            _ => Depth::Audit,
        };
        let twice = depth != Depth::Work && rng.one_in(2);
        if twice {
            disk.start_recording();
        }
        let about = |text: String| {
            let allowed = &allowed;
            let last: Vec<_> = recorded
                .log
                .iter()
                .take(*allowed.end())
                .rev()
                .take(3)
                .collect();
            format!(
                "seed {seed} state {state} moment {moment} ({}), {depth:?}, last steps {last:?}: {text}",
                recorded.recording.describe(moment)
            )
        };
        states += 1;
        let found = checked(|| verify(&disk, &recorded.model, allowed.clone(), depth, &mut rng));
        let found = match found {
            Ok(found) => found,
            Err(text) => {
                violations.add(&before, about(text));
                continue;
            }
        };
        if !twice {
            continue;
        }
        let recovery = disk.take_recording();
        let again = recovery.moments();
        if again.is_empty() {
            continue;
        }
        // Often while it opens.
        let until = match rng.one_in(2) {
            true => again.len(),
            false => again.len().min(12),
        };
        let second = again[rng.below(until as u64) as usize];
        let mut replay = recovery.replay();
        replay.advance_to(second);
        let disk = replay.cut(rng.next());
        let before = disk.after_kill();
        states += 1;
        // A log that was read from the system's cache may still be lost.
        let allowed = if killed {
            allowed.clone()
        } else {
            found..=found
        };
        let again = checked(|| verify(&disk, &recorded.model, allowed, Depth::Audit, &mut rng));
        if let Err(text) = again {
            let place = recovery.describe(second);
            let text = format!("recovery cut at {second} ({place}): {text}");
            violations.add(&before, about(text));
        }
    }
    states
}

/// Threads that check states: an engine waits now and then, so more than there are processors.
fn workers() -> usize {
    2 * std::thread::available_parallelism().map_or(2, |n| n.get())
}

/// A number from the environment.
fn number(variable: &str, default: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} is a number")),
        Err(_) => default,
    }
}

/// Records a run and cuts it; yields how many states were checked.
fn round(rng: &mut Rng, mix: Mix, count: usize, kills: u64, violations: &Violations) -> usize {
    keep_memory();
    let since = Instant::now();
    let steps = match mix {
        Mix::All | Mix::Long => number("XTRADB_POWER_STEPS", 500),
        Mix::Ddl => 40,
    };
    let recorded = record(rng, mix, steps as u32);
    println!(
        "power: {mix:?}: {} events, {} steps, recorded in {:?}",
        recorded.recording.len(),
        recorded.model.states.len(),
        since.elapsed()
    );
    let seed = rng.next();
    let moments = recorded.recording.moments();
    let plan = Plan { seed, count, kills };
    let states = cut(&recorded, &moments, plan, violations);
    println!("power: {states} states in {:?}", since.elapsed());
    states
}

/// An engine takes and returns megabytes: the allocator is to keep them, or each state costs thousands
/// of page faults.
fn keep_memory() {
    // SAFETY: it changes settings of the allocator only, and any thread may call it.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 512 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 30);
    }
}

/// First cuts of the mixed workload; half as many second ones come on top: more than 20 000 states. Each of
/// the three tests of some kind of cut plays a sixth of that.
fn count() -> usize {
    number("XTRADB_POWER_STATES", 14_000)
}

#[test]
fn acknowledged_transactions_survive_power_cuts_at_every_write_and_sync() {
    /// First cuts of one recording, which has about so many moments.
    const ROUND: usize = 1250;
    let mut rng = Rng::announced("power");
    let violations = Violations::default();
    let (count, mut states) = (count(), 0);
    for (number, first) in (0..count).step_by(ROUND).enumerate() {
        let mix = match number % 8 {
            7 => Mix::Long,
            _ => Mix::All,
        };
        let cuts = ROUND.min(count - first);
        states += round(&mut rng, mix, cuts, 20, &violations);
        violations.none();
    }
    println!("power: {states} states");
}

/// Pages that a killed process had written and not synced were taken for durable by the next start,
/// which used their doublewrite copies' places again: a power cut then tore them for good.
#[test]
fn what_a_killed_process_left_in_the_cache_survives_a_power_cut_after_the_next_start() {
    let mut rng = Rng::announced("power-kill");
    let violations = Violations::default();
    round(&mut rng, Mix::All, count() / 6, 1, &violations);
    violations.none();
}

/// The next start renamed files as a log said that lay in the system's cache alone: a power cut took the
/// log back, and not the names.
#[test]
fn names_of_files_do_not_run_ahead_of_the_log_that_a_killed_process_left_in_the_cache() {
    let mut rng = Rng::announced("power-names");
    let violations = Violations::default();
    round(&mut rng, Mix::Ddl, count() / 6, 1, &violations);
    violations.none();
}

/// A checkpoint that a killed process had written and not synced: the next start, which found nothing to
/// recover, cleared the log behind it, and a power cut took the checkpoint back.
#[test]
fn a_checkpoint_that_a_killed_process_left_in_the_cache_survives_a_power_cut_after_the_next_start()
{
    let mut rng = Rng::announced("power-checkpoint");
    let recorded = record(&mut rng, Mix::All, 120);
    let is_checkpoint = |&moment: &usize| {
        let what = recorded.recording.describe(moment);
        [
            "write of 4096 at 4096 of ./ib_logfile0",
            "write of 4096 at 8192 of ./ib_logfile0",
        ]
        .contains(&&*what)
    };
    let mut moments = recorded.recording.moments();
    moments.retain(is_checkpoint);
    let violations = Violations::default();
    let plan = Plan {
        seed: rng.next(),
        count: count() / 20,
        kills: 1,
    };
    let states = cut(&recorded, &moments, plan, &violations);
    println!(
        "power-checkpoint: {states} states at {} moments",
        moments.len()
    );
    violations.none();
}

/// The first page of the system tablespace was to be written last. A device that writes in another
/// order left it without the pages that it promises, and the instance could never be opened.
#[test]
fn a_new_instance_is_there_or_made_again_after_power_cuts() {
    let mut rng = Rng::announced("power-creation");
    let recorded = record_creation();
    let violations = Violations::default();
    let plan = Plan {
        seed: rng.next(),
        count: count() / 6,
        kills: 20,
    };
    let states = cut(&recorded, &recorded.recording.moments(), plan, &violations);
    println!("power-creation: {states} states");
    violations.none();
}

/// Opens and closes the files of a failure, which XTRADB_POWER_DIR names, and says what the audit finds
/// when no row of any table has a BLOB.
#[test]
#[ignore = "for a look at the files of a failure"]
fn look() {
    let dir = std::env::var("XTRADB_POWER_DIR").expect("XTRADB_POWER_DIR names a directory");
    let disk = SimVfs::new();
    disk.create_dir("./d").expect("a directory");
    for (from, to) in [(dir.clone(), "./"), (format!("{dir}/d"), "./d/")] {
        for entry in std::fs::read_dir(from).expect("a directory") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_file() {
                let bytes = std::fs::read(entry.path()).expect("a file");
                disk.put(&format!("{to}{}", entry.file_name().display()), &bytes);
            }
        }
    }
    for _ in 0..number("XTRADB_POWER_STATES", 5) {
        let disk = disk.after_kill();
        println!("{:?}", verify::rows_and_chains(&disk));
    }
}

/// Rounds of new recordings until so many states were checked, over several runs if need be: seed and
/// progress are kept in a file.
#[test]
#[ignore = "takes hours: make soak-powercut"]
fn soak() {
    const ROUND: usize = 2000;
    let wanted = number("XTRADB_POWER_STATES", 500_000);
    let file = std::env::var("XTRADB_SOAK_FILE").expect("XTRADB_SOAK_FILE names a file");
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let mut numbers = kept.split_whitespace().map(|word| word.parse::<u64>());
    let mut next = || numbers.next().and_then(Result::ok);
    let (seed, mut rounds, mut states) = match (next(), next(), next()) {
        (Some(seed), Some(rounds), Some(states)) => (seed, rounds, states as usize),
        _ => (Rng::announced("soak-powercut").next(), 0, 0),
    };
    println!("soak-powercut: seed {seed}, {states} of {wanted} states done ({file})");
    let (since, before) = (Instant::now(), states);
    while states < wanted {
        let violations = Violations::default();
        let mut rng = Rng::new(seed.wrapping_add(rounds));
        let (mix, kills) = match rounds % 8 {
            1 => (Mix::Long, 20),
            3 => (Mix::All, 1),
            5 => (Mix::Ddl, 20),
            7 => (Mix::Ddl, 1),
            _ => (Mix::All, 20),
        };
        states += round(&mut rng, mix, ROUND, kills, &violations);
        violations.none();
        rounds += 1;
        std::fs::write(&file, format!("{seed} {rounds} {states}")).expect("the file is written");
        let rate = (states - before) as f64 / since.elapsed().as_secs_f64();
        println!(
            "soak-powercut: {states} of {wanted} states, {rate:.0}/s, {:.0} minutes left",
            wanted.saturating_sub(states) as f64 / rate / 60.0
        );
    }
    println!("soak-powercut: {states} states, no violation, seed {seed}");
}

//! Damage: whatever happens to the bytes of a data directory, the host answers with the same rows or with an
//! error that names the object, goes on with the other tables, and never crashes or hangs.
//!
//! Every damage follows from a seed. Several tables are damaged at once, so that 1 000 damages need fewer
//! starts of the host; an error about a table that was left alone fails the test.

mod damage;
pub mod host;
mod panics;
mod stage;

use crate::support::scratch::{Scratch, copy_dir};
use crate::support::seed::Rng;
use damage::{Damage, Place};
use stage::{Stage, Tally};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Rounds by what is damaged, how many damages each round makes, and whether a checksum shows them. Of
/// those that no checksum shows, nothing may crash, hang, or reach other tables.
const ROUNDS: [(Place, usize, usize, bool); 6] = [
    (Place::Tables, 60, 9, false),
    (Place::TablesOfACrash, 12, 9, false),
    (Place::System, 50, 1, false),
    (Place::SystemOfACrash, 35, 1, false),
    (Place::Log, 55, 1, false),
    (Place::Tables, 24, 9, true),
];

struct Round {
    number: usize,
    place: Place,
    damages: usize,
    forged: bool,
    seed: u64,
}

/// `forged` rounds of damages with right checksums, the others as `ROUNDS` says.
fn rounds(rng: &mut Rng, forged_rounds: Option<usize>) -> Vec<Round> {
    let mut rounds = Vec::new();
    for (place, count, damages, forged) in ROUNDS {
        let count = forged_rounds.filter(|_| forged).unwrap_or(count);
        for _ in 0..count {
            rounds.push(Round {
                number: rounds.len() + 1,
                place,
                damages,
                forged,
                seed: rng.next(),
            });
        }
    }
    rounds
}

/// One round: damages a copy, asks everything. What is wrong, each with the damages' words.
fn play(stage: &Stage, scratch: &Scratch, round: &Round, tally: &Mutex<Tally>) -> Vec<String> {
    let mut rng = Rng::new(round.seed);
    let datadir = scratch.path().join(format!("damaged-{}", round.number));
    copy_dir(stage.datadir(round.place), &datadir);
    let damages: Vec<Damage> =
        damage::inflict(&datadir, round.place, round.damages, round.forged, &mut rng);
    let wrong = stage.ask(&datadir, round.place, &damages, &mut rng, tally);
    if wrong.is_empty() {
        let _ = fs::remove_dir_all(&datadir);
        return wrong;
    }
    let listed: Vec<String> = damages.iter().map(ToString::to_string).collect();
    let heading = format!(
        "round {} (seed {}) {:?}: {}\n  in {}",
        round.number,
        round.seed,
        round.place,
        listed.join("; "),
        datadir.display()
    );
    wrong
        .into_iter()
        .map(|text| format!("{heading}\n  {}", text.replace('\n', "\n  ")))
        .collect()
}

/// `XTRADB_ROUND=7,30-40` plays these rounds alone (with the seed that the failing run printed).
fn is_wanted(round: &Round) -> bool {
    let Ok(list) = std::env::var("XTRADB_ROUND") else {
        return true;
    };
    list.split(',').any(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().expect("a round's number");
        (number(from)..=number(to)).contains(&round.number)
    })
}

fn number(variable: &str) -> Option<usize> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

/// Plays the rounds, a few at once. What is wrong, and how the directories fared.
fn play_all(stage: &Stage, scratch: &Scratch, rounds: &[Round]) -> (Tally, Vec<String>) {
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let wrong: Mutex<Vec<String>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..number("XTRADB_THREADS").unwrap_or(4) {
            scope.spawn(|| {
                while let Some(round) = rounds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = play(stage, scratch, round, &tally);
                    for text in &found {
                        println!("{text}\n");
                    }
                    wrong.lock().expect("nobody panics").extend(found);
                }
            });
        }
    });
    (
        tally.into_inner().expect("nobody panics"),
        wrong.into_inner().expect("nobody panics"),
    )
}

fn none(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} failures, the first: {}",
        wrong.len(),
        wrong[0]
    );
}

#[test]
fn a_damaged_directory_gives_the_same_rows_or_an_error() {
    let mut rng = Rng::announced("damage");
    let scratch = Scratch::new("damage");
    let stage = Stage::new(&scratch);
    let rounds = rounds(&mut rng, number("XTRADB_FORGED_ROUNDS"));
    let rounds: Vec<Round> = rounds.into_iter().filter(is_wanted).collect();
    let since = Instant::now();
    let (tally, wrong) = play_all(&stage, &scratch, &rounds);
    println!("{tally}, {} rounds in {:?}", rounds.len(), since.elapsed());
    none(&wrong);
    if std::env::var_os("XTRADB_ROUND").is_none() {
        assert!(tally.damages >= 1000, "{tally}");
        assert!(tally.errors > 200, "the damages hardly showed: {tally}");
    }
}

/// The same over and over until so many damages were made, over several runs if need be: seed and
/// progress are kept in a file.
#[test]
#[ignore = "takes hours: make soak-damage"]
fn soak() {
    let wanted = number("XTRADB_DAMAGES").unwrap_or(20_000);
    let file = std::env::var("XTRADB_SOAK_FILE").expect("XTRADB_SOAK_FILE names a file");
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let kept: Vec<u64> = kept.split_whitespace().flat_map(str::parse).collect();
    let (seed, mut batches, mut done) = match kept[..] {
        [seed, batches, done] => (seed, batches, done as usize),
        _ => (Rng::announced("soak-damage").next(), 0, 0),
    };
    println!("soak-damage: seed {seed}, {done} of {wanted} damages done ({file})");
    let scratch = Scratch::new("soak-damage");
    let stage = Stage::new(&scratch);
    let (since, before) = (Instant::now(), done);
    while done < wanted {
        let batch = seed.wrapping_add(batches);
        let rounds = rounds(&mut Rng::new(batch), None);
        let (tally, wrong) = play_all(&stage, &scratch, &rounds);
        if !wrong.is_empty() {
            println!("soak-damage: XTRADB_SEED={batch}, and XTRADB_ROUND as above");
        }
        none(&wrong);
        (done, batches) = (done + tally.damages, batches + 1);
        fs::write(&file, format!("{seed} {batches} {done}")).expect("the file is written");
        let rate = (done - before) as f64 / since.elapsed().as_secs_f64();
        println!(
            "soak-damage: {done} of {wanted} damages ({tally}), {rate:.1}/s, {:.0} minutes left",
            wanted.saturating_sub(done) as f64 / rate / 60.0
        );
    }
    println!("soak-damage: {done} damages, no violation, seed {seed}");
}

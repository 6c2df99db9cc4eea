//! The pace on a clock of its own.

use std::time::{Duration, Instant};

use super::pace::{Limits, Pace, Seen};
use crate::words::Lsn;

const MIB: u64 = 1 << 20;
const ROUND: Duration = Duration::from_millis(100);

fn limits() -> Limits {
    Limits {
        io_capacity: 200.0,
        io_capacity_max: None,
        adaptive: true,
        rounds: 30.0,
        low_age: 8.0 * MIB as f64,
        high_age: 64.0 * MIB as f64,
        dirty_pct_low: 0.0,
        dirty_pct_max: 90.0,
        batch: 64,
    }
}

/// A pool in which every page holds back `page_redo` bytes of log.
struct Model {
    pace: Pace,
    limits: Limits,
    seen: Seen,
    page_redo: u64,
    frames: usize,
}

impl Model {
    fn new(limits: Limits) -> Model {
        let now = Instant::now();
        let lsn = Lsn(100 * MIB);
        Model {
            pace: Pace::new(now, lsn),
            limits,
            seen: Seen {
                now,
                lsn,
                age: 0,
                dirty: 0,
                frames: 100_000,
            },
            page_redo: 4096,
            frames: 100_000,
        }
    }

    /// A second in which `redo` bytes are logged; the pages written in it.
    fn second(&mut self, redo: u64) -> usize {
        let mut written = 0;
        for _ in 0..10 {
            self.seen.now += ROUND;
            self.seen.lsn = Lsn(self.seen.lsn.0 + redo / 10);
            self.seen.age += redo / 10;
            self.seen.dirty = ((self.seen.age / self.page_redo) as usize).min(self.frames);
            if self.pace.second_is_over(self.seen.now) {
                let reach = self.pace.redo_in_3_seconds(&self.seen).min(self.seen.age);
                let waiting = (reach / self.page_redo) as usize;
                let waiting = waiting.min(self.limits.most_pages() * 3);
                self.pace.average(&self.seen, waiting, &self.limits);
            }
            let due = self.pace.pages_due(&self.seen, &self.limits);
            let due = due.min(self.seen.dirty);
            self.pace.wrote(due);
            self.seen.age -= due as u64 * self.page_redo;
            self.seen.dirty -= due;
            written += due;
        }
        written
    }
}

#[test]
fn under_a_steady_load_the_age_settles_and_seconds_are_alike() {
    for redo in [MIB, 4 * MIB, 16 * MIB] {
        let mut model = Model::new(limits());
        for _ in 0..60 {
            model.second(redo);
            assert!(model.seen.age < 64 * MIB, "{redo}: {}", model.seen.age);
        }
        let seconds: Vec<usize> = (0..30).map(|_| model.second(redo)).collect();
        let mean = seconds.iter().sum::<usize>() / seconds.len();
        let wanted = (redo / model.page_redo) as usize;
        assert!(mean.abs_diff(wanted) <= wanted / 10 + 1, "{redo}: {mean}");
        let spread = seconds.iter().max().expect("30") - seconds.iter().min().expect("30");
        // A batch more or less falls into a second.
        assert!(spread <= mean / 5 + 2 * 64, "{redo}: {seconds:?}");
    }
}

#[test]
fn nothing_is_written_while_nothing_presses_but_an_idle_pool_empties() {
    let mut model = Model::new(limits());
    assert_eq!(model.second(2 * MIB) + model.second(2 * MIB), 0);
    let idle = model.second(0);
    assert!((130..=210).contains(&idle), "{idle} of innodb_io_capacity");
    while model.seen.dirty > 0 {
        model.second(0);
    }
    assert_eq!(model.second(0), 0);
}

#[test]
fn a_limit_that_is_set_holds() {
    let mut model = Model::new(Limits {
        io_capacity_max: Some(500.0),
        ..limits()
    });
    let most = (0..40).map(|_| model.second(16 * MIB)).max();
    assert!((400..=565).contains(&most.expect("40 seconds")), "{most:?}");
}

#[test]
fn many_dirty_pages_press_without_age() {
    let mut model = Model::new(limits());
    model.seen.frames = 1000;
    model.frames = 1000;
    model.page_redo = 100;
    model.seen.age = 95_000;
    assert!(model.second(1000) > 0);
}

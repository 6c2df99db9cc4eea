//! How many pages a second the cleaner writes: InnoDB's adaptive flushing (format-redo.md section 12),
//! paid out evenly.
//!
//! Once a second the pages are counted that hold back the log written in a second. The rate is the
//! reference's formula: a third each of those, of the rate until now, and of what the checkpoint age
//! (or the share of dirty pages) asks of innodb_io_capacity. That third alone cannot keep up with a
//! log that grows fast, and would end in a burst at the limit; so the rate is at least a part of the
//! pages counted that rises with the age, to all of them well before the limit. Each round owes its
//! share of the rate, and pays when the debt fills a batch, so that a second looks like the one before
//! and no sync is for a few pages.

use std::time::{Duration, Instant};

use crate::words::Lsn;

/// Length of the measured spans.
const SECOND: Duration = Duration::from_secs(1);
/// innodb_io_capacity_max if it is not set: at least this, or twice innodb_io_capacity.
const CAPACITY_MAX_MIN: f64 = 2000.0;
/// How far above that the rate may go, if it is not set, when the age nears its limit.
const CAPACITY_STRETCH: f64 = 10.0;
/// Share of the highest age from which it goes above.
const STRETCH_FROM: f64 = 0.5;
/// The part of the pages that hold back the log which is written when the age is at its highest.
const PART_AT_LIMIT: f64 = 1.5;

/// What the settings and the log's size say.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Pages a second.
    pub(super) io_capacity: f64,
    /// Pages a second; `None`: not set.
    pub(super) io_capacity_max: Option<f64>,
    pub(super) adaptive: bool,
    /// Seconds in which an average forgets.
    pub(super) rounds: f64,
    /// Bytes: below this the age asks for nothing.
    pub(super) low_age: f64,
    /// Bytes: the age should stay below this.
    pub(super) high_age: f64,
    /// 0: off.
    pub(super) dirty_pct_low: f64,
    pub(super) dirty_pct_max: f64,
    /// Pages that are best written together.
    pub(super) batch: usize,
}

impl Limits {
    fn usual_max(&self) -> f64 {
        let unset = (2.0 * self.io_capacity).max(CAPACITY_MAX_MIN);
        self.io_capacity_max.unwrap_or(unset)
    }

    /// Most pages in a second at this share of the highest age.
    fn max_at(&self, age: f64) -> f64 {
        let near = ((age / self.high_age - STRETCH_FROM) / (1.0 - STRETCH_FROM)).clamp(0.0, 1.0);
        match self.io_capacity_max {
            Some(max) => max,
            None => self.usual_max() * (1.0 + near * (CAPACITY_STRETCH - 1.0)),
        }
    }

    /// Most pages in a second, ever.
    pub(super) fn most_pages(&self) -> usize {
        self.max_at(self.high_age) as usize
    }
}

/// The state of log and pool.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) now: Instant,
    pub(super) lsn: Lsn,
    /// Bytes of log since the oldest change that no file has.
    pub(super) age: u64,
    /// Pages.
    pub(super) dirty: usize,
    /// Pages of the pool.
    pub(super) frames: usize,
}

impl Seen {
    fn dirty_pct(&self) -> f64 {
        self.dirty as f64 * 100.0 / self.frames.max(1) as f64
    }
}

/// The rate, and what is owed.
pub(super) struct Pace {
    /// Start of the second that is measured, and what was then.
    second: Instant,
    second_lsn: Lsn,
    second_written: usize,
    /// The round before.
    round: Instant,
    round_lsn: Lsn,
    /// Averages a second.
    page_rate: f64,
    lsn_rate: f64,
    /// Pages a second to keep the oldest change moving as fast as the log grows.
    pages_for_lsn: f64,
    due: f64,
    paid: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant, lsn: Lsn) -> Pace {
        Pace {
            second: now,
            second_lsn: lsn,
            second_written: 0,
            round: now,
            round_lsn: lsn,
            page_rate: 0.0,
            lsn_rate: 0.0,
            pages_for_lsn: 0.0,
            due: 0.0,
            paid: now,
        }
    }

    /// True once a second: `average` is due.
    pub(super) fn second_is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.second) >= SECOND
    }

    /// Bytes of log that come in three seconds.
    pub(super) fn redo_in_3_seconds(&self, seen: &Seen) -> u64 {
        let (_, lsn_rate) = self.rates(seen);
        (lsn_rate.max(self.lsn_rate) * 3.0) as u64
    }

    /// Pages and bytes of log a second, in the second that is over.
    fn rates(&self, seen: &Seen) -> (f64, f64) {
        let span = seen.now.saturating_duration_since(self.second);
        let span = span.as_secs_f64().max(0.001);
        let bytes = seen.lsn.0.saturating_sub(self.second_lsn.0);
        (self.second_written as f64 / span, bytes as f64 / span)
    }

    /// Takes the second that is over into the averages. `waiting`: dirty pages that the log of three
    /// seconds would leave behind.
    pub(super) fn average(&mut self, seen: &Seen, waiting: usize, limits: &Limits) {
        let (page_rate, lsn_rate) = self.rates(seen);
        let weight = 2.0 / (limits.rounds / 10.0 + 1.0).max(2.0);
        self.page_rate += (page_rate - self.page_rate) * weight;
        self.lsn_rate += (lsn_rate - self.lsn_rate) * weight;
        self.pages_for_lsn += (waiting as f64 / 3.0 - self.pages_for_lsn) * weight;
        self.second = seen.now;
        self.second_lsn = seen.lsn;
        self.second_written = 0;
    }

    /// Pages a second that the state asks for; 0 while nothing presses.
    fn rate(&self, seen: &Seen, limits: &Limits) -> f64 {
        let age = seen.age as f64;
        let dirty_pct = seen.dirty_pct();
        let pct_from = match limits.dirty_pct_low > 0.0 {
            true => limits.dirty_pct_low.min(limits.dirty_pct_max),
            false => limits.dirty_pct_max,
        };
        let by_age = age > limits.low_age;
        let by_dirty = dirty_pct > pct_from;
        if !by_age && !by_dirty {
            return 0.0;
        }
        if !limits.adaptive && age < limits.high_age {
            return limits.io_capacity;
        }
        let factor = age * 100.0 / limits.high_age.max(1.0);
        let slope = limits.usual_max() / limits.io_capacity;
        let pct_for_age = match by_age {
            true => slope * factor * factor.sqrt() / 7.5,
            false => 0.0,
        };
        let pct_for_dirty = match by_dirty {
            true => dirty_pct * 100.0 / limits.dirty_pct_max.max(1.0),
            false => 0.0,
        };
        let by_state = limits.io_capacity * pct_for_age.max(pct_for_dirty) / 100.0;
        let span = (limits.high_age - limits.low_age).max(1.0);
        let part = ((age - limits.low_age) / span).max(0.0) * PART_AT_LIMIT;
        let formula = (by_state + self.page_rate + self.pages_for_lsn) / 3.0;
        let rate = formula.max(self.pages_for_lsn * part);
        // Past the limit nothing may be left to averages.
        let max = limits.max_at(age);
        if age > limits.high_age {
            max
        } else {
            rate.min(max)
        }
    }

    /// Pages to write in this round: 0, or about a batch or more.
    pub(super) fn pages_due(&mut self, seen: &Seen, limits: &Limits) -> usize {
        let span = seen.now.saturating_duration_since(self.round).min(SECOND);
        let idle = seen.lsn == self.round_lsn;
        (self.round, self.round_lsn) = (seen.now, seen.lsn);
        if seen.dirty == 0 {
            self.due = 0.0;
            return 0;
        }
        let mut rate = self.rate(seen, limits);
        if rate == 0.0 && idle {
            // While nobody writes, pages trickle out, so that a restart finds little to do; else their
            // syncs would only delay commits.
            rate = limits.io_capacity;
        }
        if rate == 0.0 {
            self.due = 0.0;
            return 0;
        }
        self.due += rate * span.as_secs_f64();
        let pays = self.due >= limits.batch as f64
            || self.due >= seen.dirty as f64
            || (self.due >= 1.0 && seen.now.saturating_duration_since(self.paid) >= SECOND);
        if !pays {
            return 0;
        }
        let pages = self.due.floor();
        self.due -= pages;
        self.paid = seen.now;
        pages as usize
    }

    /// So many of the pages due were written.
    pub(super) fn wrote(&mut self, pages: usize) {
        self.second_written += pages;
    }
}

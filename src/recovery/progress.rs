//! How far recovery is: for status, the table XTRADB_RECOVERY and the error log.

use std::time::{Duration, Instant};

use super::pending::Pending;
use super::scan::LogScan;
use crate::sync::{Mutex, Once, Rank};
use crate::words::Lsn;

/// Time between two lines in the error log.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// What a start found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// Where the pass over the log began and ended.
    pub checkpoint: Lsn,
    /// See `checkpoint`.
    pub end: Lsn,
    /// How long the pass took.
    pub scan: Duration,
    /// The instance was not shut down cleanly.
    pub crashed: bool,
}

/// What goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The instance had been shut down cleanly.
    NotNeeded,
    /// Pages are being brought up.
    Running,
    /// What is left waits for files that are missing.
    Waiting,
    /// No page waits.
    Done,
}

impl Phase {
    /// As the table shows it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::NotNeeded => "NOT NEEDED",
            Phase::Running => "RUNNING",
            Phase::Waiting => "WAITING FOR FILE",
            Phase::Done => "DONE",
        }
    }
}

/// How far recovery is. Bytes are those of log records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// What goes on.
    pub phase: Phase,
    /// The checkpoint that the start found.
    pub checkpoint: Lsn,
    /// Where the log ended then.
    pub end: Lsn,
    /// How long reading the log took.
    pub scan: Duration,
    /// Pages that had to be brought up, and their records.
    pub pages: u64,
    /// See `pages`.
    pub bytes: u64,
    /// What of that waits still.
    pub pages_pending: u64,
    /// See `pages_pending`.
    pub bytes_pending: u64,
    /// Pages among them whose files are missing: they wait for those.
    pub pages_missing: u64,
    /// Since the log was read, up to the end of the work.
    pub elapsed: Duration,
    /// Until no page waits but for missing files; `None` if nobody can tell yet.
    pub left: Option<Duration>,
}

impl Report {
    /// Of the pages whose files are there, 0 to 100.
    pub fn percent(&self) -> u64 {
        let (all, done) = (self.pages - self.pages_missing, self.done());
        (done * 100).checked_div(all).unwrap_or(100)
    }

    fn done(&self) -> u64 {
        self.pages - self.pages_pending
    }
}

/// What `Pending` notes of its work.
pub(super) struct Progress {
    origin: Origin,
    pages: u64,
    bytes: u64,
    started: Instant,
    ended: Once<Instant>,
    said: Mutex<Instant>,
}

impl Progress {
    pub(super) fn new(origin: Origin, pages: u64, bytes: u64) -> Progress {
        let now = Instant::now();
        Progress {
            origin,
            pages,
            bytes,
            started: now,
            ended: Once::new(),
            said: Mutex::new(Rank::Leaf, now),
        }
    }

    /// No page waits any more.
    pub(super) fn end(&self) {
        let _the_first_stays = self.ended.set(Instant::now());
    }

    fn elapsed(&self) -> Duration {
        let until = self.ended.get().copied().unwrap_or_else(Instant::now);
        until.duration_since(self.started)
    }

    /// True once in a while.
    fn is_time_to_say(&self) -> bool {
        let Some(mut said) = self.said.try_lock() else {
            return false;
        };
        let due = said.elapsed() >= SAY_EVERY;
        if due {
            *said = Instant::now();
        }
        due
    }
}

impl LogScan {
    /// What the pass found, for `Pending`.
    pub fn origin(&self) -> Origin {
        Origin {
            checkpoint: self.checkpoint.lsn,
            end: self.end,
            scan: self.took,
            crashed: !self.clean,
        }
    }

    /// Bytes of log that were read.
    pub fn bytes(&self) -> u64 {
        self.end.0 - self.checkpoint.lsn.0
    }
}

impl Pending {
    /// How far recovery is.
    pub fn report(&self) -> Report {
        let progress = self.progress();
        // Counts that others change meanwhile: each is a true one, and no sum of them is beyond all.
        let pages_pending = (self.count() as u64).min(progress.pages);
        let pages_missing = (self.missing_count() as u64).min(pages_pending);
        let to_do = pages_pending - pages_missing;
        let phase = match (progress.origin.crashed, to_do, pages_missing) {
            (_, 1.., _) => Phase::Running,
            (_, 0, 1..) => Phase::Waiting,
            (true, 0, 0) => Phase::Done,
            (false, 0, 0) => Phase::NotNeeded,
        };
        let mut report = Report {
            phase,
            checkpoint: progress.origin.checkpoint,
            end: progress.origin.end,
            scan: progress.origin.scan,
            pages: progress.pages,
            bytes: progress.bytes,
            pages_pending,
            bytes_pending: match pages_pending {
                0 => 0,
                _ => self.bytes_left().min(progress.bytes),
            },
            pages_missing,
            elapsed: progress.elapsed(),
            left: None,
        };
        let done = report.done();
        report.left = match to_do {
            0 => Some(Duration::ZERO),
            _ if done == 0 => None,
            _ => Some(report.elapsed.mul_f64(to_do as f64 / done as f64)),
        };
        report
    }

    /// Where the log ended at the start.
    pub fn end_of_log(&self) -> Lsn {
        self.progress().origin.end
    }

    /// Once in a while, says how far recovery is.
    pub(super) fn say_progress(&self) {
        if !self.progress().is_time_to_say() {
            return;
        }
        let report = self.report();
        let left = report.left.unwrap_or_default();
        log::info!(
            "recovery: {} % of {} pages are up to date, {} to go, about {} s",
            report.percent(),
            report.pages - report.pages_missing,
            report.pages_pending - report.pages_missing,
            left.as_secs_f64().ceil()
        );
    }
}

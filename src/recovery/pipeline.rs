//! The pass over the log as jobs that several threads take: one reads the next chunk, one cuts a chunk into
//! mini-transactions, others check and parse what was cut, and one puts the results together, in the
//! log's order. One thread alone does the same jobs one after the other, so what comes out does not
//! depend on how many there are.
//!
//! ```text
//!   read ──▶ chunks ──cut──▶ stretches ──parse──▶ batches ──merge──▶ index
//! ```
//!
//! Chunks are read and stretches parsed out of order; `cut` and `merge` go by number. What lies behind
//! the log's end may be read, cut and parsed for nothing, and an error there is none.

use std::collections::{BTreeMap, VecDeque};

use super::cut::{Chunk, Cutter, Stretch};
use super::merge::Merger;
use super::parse::Batch;
use super::scan::LogBytes;
use crate::format::redo_frame::sound_records;
use crate::os::AlignedBuf;
use crate::os::thread::in_parallel;
use crate::sync::{Condvar, Mutex, MutexGuard, Rank};
use crate::words::{Error, Lsn, Result};

/// How the log is read.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions {
    /// Threads, the calling one among them.
    pub threads: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// So many bytes are read by the calling thread alone: most logs are short.
    pub alone_bytes: u64,
}

/// The first chunk is smaller by so many bits, since most logs end within it; the next ones grow.
const SMALL_BITS: u32 = 6;
/// Chunks that are read at once: a device with one read alone to do is idle half of the time.
pub(super) const READS_AT_ONCE: usize = 4;

pub(super) struct Pipeline<'l> {
    log: &'l dyn LogBytes,
    options: ScanOptions,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Where the next chunk begins, and behind the last byte that may be of this log: one lap.
    next: Lsn,
    limit: Lsn,
    /// Chunks begun, and chunks merged: between them at most as many as there are buffers.
    begun: u64,
    merged: u64,
    depth: u64,
    reading: usize,
    buffers: Vec<AlignedBuf>,
    /// Empty ones, for more stretches.
    spare: Vec<Batch>,
    /// Read, by number, from `cut` on.
    chunks: BTreeMap<u64, Result<Chunk>>,
    /// Number of the next chunk to cut.
    cut: u64,
    /// `None` while a thread works with it, and when the end is cut.
    cutter: Option<Cutter>,
    end_is_cut: bool,
    stretches: VecDeque<Job>,
    batches: BTreeMap<u64, Parsed>,
    /// `None` while a thread works with it.
    merger: Option<Merger>,
    outcome: Option<Result<Lsn>>,
    /// Nobody waits: a job that cannot be done now is left to others.
    alone: bool,
}

/// A stretch to parse.
struct Job {
    number: u64,
    stretch: Stretch,
    /// Where it ends, and whether the log ends there.
    end: Lsn,
    last: bool,
}

/// A stretch that was parsed.
struct Parsed {
    batch: Batch,
    end: Lsn,
    last: bool,
    failure: Option<Error>,
}

/// What a thread does next.
enum Next {
    Read(u64, Lsn, usize, Option<AlignedBuf>),
    Cut(u64, Cutter, Result<Chunk>),
    /// One whole lap was read.
    Ended(u64, Lsn),
    Parse(Job, Batch),
    Merge(Box<(Parsed, Merger)>),
    Wait,
    Leave,
}

impl<'l> Pipeline<'l> {
    pub(super) fn new(
        log: &'l dyn LogBytes,
        from: Lsn,
        merger: Merger,
        options: ScanOptions,
    ) -> Pipeline<'l> {
        let geometry = log.geometry();
        let state = State {
            next: from,
            limit: Lsn(from.0.saturating_add(geometry.capacity())),
            begun: 0,
            merged: 0,
            depth: 1,
            reading: 0,
            buffers: Vec::new(),
            spare: Vec::new(),
            chunks: BTreeMap::new(),
            cut: 0,
            cutter: Some(Cutter::new(geometry, from)),
            end_is_cut: false,
            stretches: VecDeque::new(),
            batches: BTreeMap::new(),
            merger: Some(merger),
            outcome: None,
            alone: true,
        };
        Pipeline {
            log,
            options,
            state: Mutex::new(Rank::Leaf, state),
            changed: Condvar::new(),
        }
    }

    /// Does all of it. Yields where the log ends.
    ///
    /// Errors: what reading gives before that; those of `Merger::add`.
    pub(super) fn run(self, from: Lsn) -> Result<(Lsn, Merger)> {
        let alone_until = Lsn(from.0.saturating_add(self.options.alone_bytes));
        self.work(Some(alone_until));
        if self.state.lock().outcome.is_none() {
            {
                let mut state = self.state.lock();
                state.alone = false;
                state.depth = self.options.threads as u64 + 2;
            }
            in_parallel("xt_scan", self.options.threads, &|| self.work(None))?;
        }
        let state = self.state.into_inner();
        let end = state
            .outcome
            .unwrap_or_else(|| Err(Error::internal("the pass over the redo log did not end")))?;
        let merger = state.merger.expect("all threads have ended");
        Ok((end, merger))
    }

    /// A thread's life. `until`: leaves when the log is merged so far, and never waits for others.
    fn work(&self, until: Option<Lsn>) {
        let _bail = Bail(self);
        let mut state = self.state.lock();
        loop {
            match state.next_job(self.log, &self.options, until) {
                Next::Leave => return,
                Next::Wait => state = self.changed.wait(state),
                job => {
                    drop(state);
                    state = self.carry_out(job);
                    self.changed.notify_all();
                }
            }
        }
    }

    fn carry_out(&self, job: Next) -> MutexGuard<'_, State> {
        match job {
            Next::Read(number, from, len, buffer) => {
                let chunk = self.read(from, len, buffer);
                let mut state = self.state.lock();
                state.reading -= 1;
                state.chunks.insert(number, chunk);
                state
            }
            Next::Cut(number, cutter, chunk) => self.cut(number, cutter, chunk),
            Next::Ended(number, end) => self.ended(number, end, None),
            Next::Parse(job, batch) => {
                let number = job.number;
                let (parsed, buffer) = parse(job, batch);
                let mut state = self.parsed(number, parsed);
                state.buffers.push(buffer);
                state
            }
            Next::Merge(work) => {
                let (mut parsed, mut merger) = *work;
                let result = merger.add(&mut parsed.batch, parsed.failure);
                parsed.batch.clear();
                let mut state = self.state.lock();
                state.spare.push(parsed.batch);
                state.merger = Some(merger);
                state.merged += 1;
                match result {
                    Err(error) => state.outcome = Some(Err(error)),
                    Ok(()) if parsed.last => state.outcome = Some(Ok(parsed.end)),
                    Ok(()) => {}
                }
                state
            }
            Next::Wait | Next::Leave => self.state.lock(),
        }
    }

    fn read(&self, from: Lsn, len: usize, buffer: Option<AlignedBuf>) -> Result<Chunk> {
        let buffer = match buffer {
            Some(buffer) if Chunk::room(&buffer) >= len => buffer,
            _ => Chunk::buffer(len),
        };
        let mut chunk = Chunk::new(buffer, len);
        self.log.read(from, chunk.bytes_mut())?;
        Ok(chunk)
    }

    fn cut(&self, number: u64, mut cutter: Cutter, chunk: Result<Chunk>) -> MutexGuard<'_, State> {
        let chunk = match chunk {
            Ok(chunk) => chunk,
            Err(error) => return self.ended(number, cutter.lsn(), Some(error)),
        };
        let (stretch, last) = cutter.cut(chunk);
        let end = cutter.lsn();
        let mut state = self.state.lock();
        state.stretches.push_back(Job {
            number,
            stretch,
            end,
            last,
        });
        state.cut += 1;
        state.cutter = (!last).then_some(cutter);
        state.end_is_cut = last;
        state
    }

    /// Nothing is cut from chunk `number` on: the log ends, or cannot be read.
    fn ended(&self, number: u64, end: Lsn, failure: Option<Error>) -> MutexGuard<'_, State> {
        let nothing = Parsed {
            batch: Batch::default(),
            end,
            last: true,
            failure,
        };
        let mut state = self.parsed(number, nothing);
        state.end_is_cut = true;
        state
    }

    fn parsed(&self, number: u64, parsed: Parsed) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        state.batches.insert(number, parsed);
        state
    }
}

impl State {
    fn next_job(&mut self, log: &dyn LogBytes, options: &ScanOptions, until: Option<Lsn>) -> Next {
        if self.outcome.is_some() {
            return Next::Leave;
        }
        if self.merger.is_some() {
            if let Some(parsed) = self.batches.remove(&self.merged) {
                let merger = self.merger.take().expect("looked at above");
                return Next::Merge(Box::new((parsed, merger)));
            }
        }
        if let Some(next) = self.next_cut() {
            return next;
        }
        if let Some(next) = self.next_read(log, options, until) {
            return next;
        }
        match self.stretches.pop_front() {
            Some(job) => Next::Parse(job, self.spare.pop().unwrap_or_default()),
            None if self.alone => Next::Leave,
            None => Next::Wait,
        }
    }

    fn next_cut(&mut self) -> Option<Next> {
        self.cutter.as_ref()?;
        if let Some(chunk) = self.chunks.remove(&self.cut) {
            return Some(Next::Cut(self.cut, self.cutter.take()?, chunk));
        }
        if self.cut == self.begun && self.next == self.limit {
            let end = self.cutter.take()?.lsn();
            self.begun += 1;
            return Some(Next::Ended(self.cut, end));
        }
        None
    }

    fn next_read(
        &mut self,
        log: &dyn LogBytes,
        options: &ScanOptions,
        until: Option<Lsn>,
    ) -> Option<Next> {
        let stop = until.map_or(self.limit, |until| until.min(self.limit));
        if self.end_is_cut
            || self.next >= stop
            || self.begun - self.merged >= self.depth
            || self.reading >= READS_AT_ONCE
        {
            return None;
        }
        let geometry = log.geometry();
        // The chunks of the beginning are small; all end at whole blocks of the file.
        let small = SMALL_BITS.saturating_sub(self.begun as u32);
        let most = (options.chunk_bytes >> small).max(1);
        let aligned = most as u64 - geometry.offset(self.next) % most as u64;
        let len = aligned
            .min(geometry.bytes_to_wrap(self.next))
            .min(self.limit.0 - self.next.0);
        let (number, from) = (self.begun, self.next);
        self.begun += 1;
        self.next.0 += len;
        self.reading += 1;
        Some(Next::Read(number, from, len as usize, self.buffers.pop()))
    }
}

/// Checks and parses the mini-transactions of a stretch, up to the first torn one: there the log ends.
fn parse(job: Job, batch: Batch) -> (Parsed, AlignedBuf) {
    let mut parsed = Parsed {
        batch,
        end: job.end,
        last: job.last,
        failure: None,
    };
    for (start, end, mtr) in job.stretch.mtrs() {
        let Some(records) = sound_records(mtr) else {
            (parsed.end, parsed.last) = (start, true);
            break;
        };
        if let Err(error) = parsed.batch.take_in(start, end, records) {
            parsed.failure = Some(at_lsn(error, start));
            break;
        }
    }
    (parsed, job.stretch.into_buffer())
}

/// A thread that panicked has a part of the pipeline with it: the others must not wait for that.
struct Bail<'p, 'l>(&'p Pipeline<'l>);

impl Drop for Bail<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = Error::internal("a thread that reads the redo log panicked");
            self.0.state.lock().outcome = Some(Err(error));
        }
        self.0.changed.notify_all();
    }
}

/// Adds where in the log a record stands.
#[cold]
fn at_lsn(error: Error, lsn: Lsn) -> Error {
    match error {
        Error::Corrupt(mut corruption) => {
            corruption.why = format!("{} (mini-transaction at LSN {lsn})", corruption.why).into();
            Error::Corrupt(corruption)
        }
        other => other,
    }
}

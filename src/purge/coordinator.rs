//! Who picks what is purged next.

use std::time::Duration;

use super::runs::Runs;
use crate::format::undo_record::UndoRecord;
use crate::mtr::{Mtr, PageCtx};
use crate::os::planted;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::trx::TrxSystem;
use crate::undo::read::{LogHead, LogReader};
use crate::undo::{Oldest, Rseg, history};
use crate::words::{PageNo, Result, RollPtr, TrxId, TrxNo, UndoNo};

/// An undo record of a committed transaction that every view sees.
#[derive(Clone, Copy, Debug)]
pub struct PurgeRecord<'a> {
    /// The transaction that wrote it.
    pub trx_id: TrxId,
    /// Its commit number.
    pub no: TrxNo,
    /// What the row carries in DB_ROLL_PTR if this was its last change.
    pub roll_ptr: RollPtr,
    /// The record.
    pub record: UndoRecord<'a>,
}

/// What a purged record means for rows: removing the delete-marked record if it is still the newest
/// version, secondary entries first; freeing BLOBs that the old version alone held; dropping the
/// tree of a removed SYS_INDEXES row.
pub trait RecordPurger {
    /// Deals with a record; called with no latch held, in history order. It may have been called for
    /// the same record before a crash or an error.
    ///
    /// Errors: only those that stop purge as a whole. A damaged or missing table is none: its records
    /// are skipped, and reported once.
    fn purge(&self, record: &PurgeRecord<'_>) -> Result<()>;

    /// True while an error that `purge` gave is sure to come again.
    fn is_blocked(&self) -> bool {
        false
    }
}

/// What a batch did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// Records handed over.
    pub records: usize,
    /// Logs taken out of the history.
    pub logs: usize,
    /// Undo pages freed.
    pub pages_freed: u32,
    /// More can be done at once.
    pub more: bool,
}

/// Stops a coordinator, and tells how far it is.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    paused: AtomicBool,
    /// Commit number and undo number that were dealt with last.
    done_no: AtomicU64,
    done_undo_no: AtomicU64,
}

impl Control {
    /// Not stopped.
    pub fn new() -> Control {
        Control::default()
    }

    /// Lets `Coordinator::run` return after its batch.
    pub fn stop(&self, sys: &TrxSystem) {
        self.stop.store(true, Ordering::Release);
        sys.purge_wanted.set();
    }

    /// Suspends purge, or resumes it; a running batch ends first.
    pub fn pause(&self, sys: &TrxSystem, paused: bool) {
        self.paused.store(paused, Ordering::Release);
        sys.purge_wanted.set();
    }

    /// True once `stop` was called.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// "Purge done for trx's n:o < .. undo n:o < .." of the monitor.
    pub fn done(&self) -> (TrxNo, UndoNo) {
        (
            TrxNo(self.done_no.load(Ordering::Relaxed)),
            UndoNo(self.done_undo_no.load(Ordering::Relaxed)),
        )
    }
}

/// Sleep between two looks while there is history: commits do not wake purge, which would cost them
/// more than it does; what came meanwhile is one batch.
const SLEEP_MIN: Duration = Duration::from_millis(10);
/// The same while a view keeps history from being purged; nobody tells when a view closes.
const SLEEP_LONG: Duration = Duration::from_millis(200);
/// Sleep while there is no history, or after an error.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Records of a batch before the views are looked at again.
const BATCH_RECORDS: usize = 3000;

/// Purges. One for the engine, driven by one thread.
#[derive(Debug)]
pub struct Coordinator {
    sys: Arc<TrxSystem>,
    control: Arc<Control>,
    current: Option<Current>,
    runs: Runs,
    /// The reader of the last log, for its memory.
    spare: Option<LogReader>,
}

/// The log that is being worked on.
#[derive(Debug)]
struct Current {
    rseg: Arc<Rseg>,
    entry: Oldest,
    head: LogHead,
    reader: LogReader,
    /// Pages before this one were freed.
    cut_to: PageNo,
}

impl Coordinator {
    /// A coordinator at rest.
    pub fn new(sys: Arc<TrxSystem>, control: Arc<Control>) -> Coordinator {
        Coordinator {
            sys,
            control,
            current: None,
            runs: Runs::default(),
            spare: None,
        }
    }

    /// Hands over up to `records_max` records, takes finished logs out of the history, frees pages,
    /// and prunes the registry.
    ///
    /// Errors: what `purger` gives; damage in undo pages; what reading gives. The log that was being
    /// worked on is begun again then.
    pub fn batch(
        &mut self,
        ctx: &PageCtx,
        purger: &dyn RecordPurger,
        records_max: usize,
    ) -> Result<Batch> {
        let limit = match planted("purge.view_ignored") {
            true => self.sys.registry.visible_limit(),
            false => self.sys.views.oldest(&self.sys.registry),
        };
        self.sys.registry.prune(limit);
        let mut batch = Batch::default();
        self.runs.begin(&self.sys.rsegs, limit);
        let done = self.work(ctx, purger, records_max, limit, &mut batch);
        // Also after an error: what was dealt with is not to be dealt with again.
        let removed = self.runs.remove_all(ctx);
        let done = done.and(removed);
        if done.is_err() {
            self.current = None;
        }
        done.map(|()| batch)
    }

    fn work(
        &mut self,
        ctx: &PageCtx,
        purger: &dyn RecordPurger,
        records_max: usize,
        limit: TrxNo,
        batch: &mut Batch,
    ) -> Result<()> {
        let mut mtr = Mtr::reader(ctx);
        while batch.records < records_max {
            let Some(current) = self.current(&mut mtr)? else {
                return Ok(());
            };
            if let Some(record) = current.next(&mut mtr)? {
                ctx.reached("purge.step");
                purger.purge(&record)?;
                batch.records += 1;
                let (no, undo_no) = (record.no.0, record.record.undo_no.0);
                self.control.done_no.store(no, Ordering::Relaxed);
                self.control.done_undo_no.store(undo_no, Ordering::Relaxed);
                continue;
            }
            batch.pages_freed += self.finish_log(ctx, &mut mtr, limit)?;
            batch.logs += 1;
        }
        batch.more = true;
        if let Some(current) = &mut self.current {
            current.cut_head(ctx)?;
        }
        Ok(())
    }

    /// The log to go on with, if the batch has one left.
    fn current(&mut self, mtr: &mut Mtr<'_>) -> Result<Option<&mut Current>> {
        if self.current.is_none() {
            let Some((rseg, entry)) = self.runs.oldest() else {
                return Ok(None);
            };
            let (first, header) = (entry.first, entry.header);
            let mut reader = match self.spare.take() {
                Some(spare) => spare.begin_anew(rseg, first, header),
                None => LogReader::new(rseg, first, header),
            };
            let head = reader.head(mtr)?;
            self.current = Some(Current {
                rseg: rseg.clone(),
                entry,
                head,
                reader,
                cut_to: entry.first,
            });
        }
        Ok(self.current.as_mut())
    }

    /// Lets the current log, whose records are dealt with, go: at once if its pages go with it, else
    /// with those that follow it. Returns how many pages were freed.
    fn finish_log(&mut self, ctx: &PageCtx, mtr: &mut Mtr<'_>, limit: TrxNo) -> Result<u32> {
        ctx.reached("purge.log");
        let Some(current) = self.current.take() else {
            return Ok(0);
        };
        let Current {
            rseg,
            entry,
            head,
            reader,
            ..
        } = current;
        self.spare = Some(reader);
        let newer = match head.newer {
            Some(node) => Some(history::entry_at(mtr, &rseg, node)?),
            None => None,
        };
        let newer = newer.filter(|newer| newer.no < limit);
        if head.keeps_page {
            self.runs.passed(entry, newer);
            return Ok(0);
        }
        self.runs.remove_oldest(ctx)?;
        let removed = history::remove(ctx, &rseg, entry)?;
        self.runs.removed(newer);
        Ok(match removed {
            history::Removed::Freed(pages) => pages,
            history::Removed::Kept => 0,
        })
    }

    /// Purges everything that no view needs. For a slow shutdown, and for tests.
    ///
    /// Errors: as `batch`.
    pub fn drain(&mut self, ctx: &PageCtx, purger: &dyn RecordPurger) -> Result<()> {
        while self.batch(ctx, purger, BATCH_RECORDS)?.more {}
        // Logs without records left may have been taken out last.
        self.sys
            .registry
            .prune(self.sys.views.oldest(&self.sys.registry));
        Ok(())
    }

    /// Purges until the control says stop. `failed` is told of errors; it is tried again later.
    pub fn run(
        &mut self,
        ctx: &PageCtx,
        purger: &dyn RecordPurger,
        failed: &dyn Fn(&crate::words::Error),
    ) {
        let mut sleep = SLEEP_MIN;
        while !self.control.is_stopping() {
            if self.control.paused.load(Ordering::Acquire) || purger.is_blocked() {
                self.sys.purge_wanted.wait(SLEEP_MAX);
                continue;
            }
            match self.batch(ctx, purger, BATCH_RECORDS) {
                Ok(batch) if batch.more => {
                    sleep = SLEEP_MIN;
                    continue;
                }
                Ok(batch) if batch.logs > 0 => sleep = SLEEP_MIN,
                Ok(_) if self.sys.rsegs.history_len() == 0 => {
                    sleep = SLEEP_MIN;
                    self.sys.rest_from_purge(SLEEP_MAX);
                    continue;
                }
                Ok(_) => sleep = (sleep * 2).min(SLEEP_LONG),
                // It has said why.
                Err(_) if purger.is_blocked() => {}
                Err(error) => {
                    failed(&error);
                    sleep = SLEEP_MAX;
                }
            }
            self.sys.purge_wanted.wait(sleep);
        }
    }
}

impl Current {
    fn next(&mut self, mtr: &mut Mtr<'_>) -> Result<Option<PurgeRecord<'_>>> {
        if !self.head.needs_purge {
            return Ok(None);
        }
        let rseg = self.rseg.id();
        let Some((position, body)) = self.reader.next(mtr)? else {
            return Ok(None);
        };
        let record = UndoRecord::parse(body)
            .map_err(|error| error.at_page(self.rseg.page(position.page)))?;
        let is_insert = !record.kind.has_old_version();
        Ok(Some(PurgeRecord {
            trx_id: self.head.trx_id,
            no: self.entry.no,
            roll_ptr: RollPtr::new(is_insert, rseg, position.page, position.offset),
            record,
        }))
    }

    /// Frees the pages before the one that is being read.
    fn cut_head(&mut self, ctx: &PageCtx) -> Result<()> {
        let page = self.reader.page();
        if page != self.cut_to {
            history::cut_head(ctx, &self.rseg, self.entry, page)?;
            self.cut_to = page;
        }
        Ok(())
    }
}

//! Writing dirty pages (F1..F5): copy, log durable, doublewrite, in place, fsync.
//!
//! A batch goes through all steps before its buffer and its doublewrite block are used again. The
//! state of each page is moved by flush_list.rs.

use std::time::Duration;

use super::doublewrite::Doublewrite;
use super::frame::{FLAG_FREED, FLAG_FRESH, FLAG_POISONED, Frame, WriteState};
use super::guard::{Mode, Pin};
use super::neighbors::Neighbors;
use super::pool::Pool;
use super::stall::Stall;
use crate::format::{checksum, fil};
use crate::os::{Aio, AlignedBuf, planted};
use crate::space::{Space, State};
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Mutex, MutexGuard, Once, Rank};
use crate::words::{Error, Lsn, PageId, Result, SpaceId};

/// What a flush did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlushReport {
    /// Pages written and synced.
    pub written: usize,
    /// Pages that need not be written: freed, or their tablespace is gone.
    pub dropped: usize,
    /// Pages whose latch was taken.
    pub busy: usize,
    /// Pages whose write failed and will be tried again (disk full), or whose file failed.
    pub failed: usize,
}

impl FlushReport {
    pub(super) fn add(&mut self, other: FlushReport) {
        self.written += other.written;
        self.dropped += other.dropped;
        self.busy += other.busy;
        self.failed += other.failed;
    }
}

pub(super) struct Flusher {
    batches: [Mutex<Batch>; 2],
    doublewrite: Once<Doublewrite>,
    /// Batches are written one page after the other while there is none.
    aio: Once<Arc<Aio>>,
    pub(super) neighbors: Neighbors,
    pub(super) stall: Stall,
}

/// A buffer of one extent, and what is in it.
///
/// Entries that stay when the batch is given back found no room on the device: the batch is *kept* for
/// them, buffer and doublewrite block, until they are in their files.
struct Batch {
    number: usize,
    buffer: Option<AlignedBuf>,
    entries: Vec<Entry>,
    /// Slots from the front: pages that go through the doublewrite block.
    front: usize,
    /// Slots from the back: pages that the log alone rebuilds, and temporary ones.
    back: usize,
    /// An fsync failed with this batch: its doublewrite slots may be the only good copies.
    lost: bool,
}

struct Entry {
    frame: u32,
    id: PageId,
    lsn: Lsn,
    slot: usize,
    bytes: usize,
    space: Arc<Space>,
    in_file: bool,
    /// The device had no room for it.
    waits: bool,
}

impl Flusher {
    pub(super) fn new() -> Flusher {
        let batch = |number| {
            Mutex::new(
                // Outside the order: whoever has a batch waits for page latches, log and files, and
                // nobody who holds one of these waits for a batch.
                Rank::None,
                Batch {
                    number,
                    buffer: None,
                    entries: Vec::new(),
                    front: 0,
                    back: 0,
                    lost: false,
                },
            )
        };
        Flusher {
            batches: [batch(0), batch(1)],
            doublewrite: Once::new(),
            aio: Once::new(),
            neighbors: Neighbors::new(),
            stall: Stall::new(),
        }
    }
}

impl Entry {
    fn write_alone(&self, image: &[u8]) -> Result<()> {
        self.space.write_pages(self.id.page, image)
    }
}

impl Batch {
    fn slot_bytes(&self, slot: usize, page_size: usize) -> std::ops::Range<usize> {
        slot * page_size..(slot + 1) * page_size
    }
}

impl Pool {
    /// Writes go through these doublewrite blocks from here on. Set once, before the first write.
    pub fn set_doublewrite(&self, place: Doublewrite) {
        if self.flusher.doublewrite.set(place).is_err() {
            panic!("the doublewrite blocks are set twice");
        }
    }

    /// Batches are written through `aio` from here on. Set once.
    pub fn set_aio(&self, aio: Arc<Aio>) {
        if self.flusher.aio.set(aio).is_err() {
            panic!("asynchronous I/O is set twice");
        }
    }

    /// Pages in a batch: an extent.
    pub fn batch_pages(&self) -> usize {
        match self.flusher.doublewrite.get() {
            Some(place) => place.block_pages as usize,
            None => {
                crate::format::fsp::Geometry::of_page_size(self.page_size()).extent_pages() as usize
            }
        }
    }

    /// Dirty pages whose oldest change is below `below`; counts up to about `limit`.
    pub fn dirty_below(&self, below: Lsn, limit: usize) -> usize {
        self.flush_list.count_below(&self.frames, below, limit)
    }

    /// Writes up to `limit` of the oldest dirty pages whose oldest change is below `below`. Pages
    /// that somebody latches are skipped. For the cleaner's steady work.
    ///
    /// Errors: `Stopped`, or what made the log or the doublewrite block fail.
    pub fn flush_oldest(&self, below: Lsn, limit: usize) -> Result<FlushReport> {
        self.flush_some(below, limit, Wait::No)
    }

    /// Writes pages until no change older than `below` is missing from its file, but for files
    /// that have failed. Waits for latches and for others' batches; call it with no latch held.
    ///
    /// Errors: as `flush_oldest`; `Io` if pages cannot be written.
    pub fn flush_to(&self, below: Lsn) -> Result<()> {
        let mut idle_rounds = 0;
        while self
            .oldest_modification()
            .is_some_and(|oldest| oldest < below)
        {
            let report = self.flush_some(below, self.batch_pages(), Wait::Yes)?;
            if report.failed > 0 {
                return Err(self.flusher.stall.failure());
            }
            if report.written + report.dropped > 0 {
                idle_rounds = 0;
                continue;
            }
            // What is left is in another thread's batch, or in a failed file.
            if self.only_failed_below(below) {
                return Err(self.flusher.stall.failure());
            }
            idle_rounds += 1;
            std::thread::sleep(Duration::from_micros(if idle_rounds < 50 {
                50
            } else {
                1000
            }));
        }
        Ok(())
    }

    /// Writes all dirty pages, temporary ones left out.
    pub fn flush_all(&self) -> Result<()> {
        self.flush_to(super::flush_list::UNLOGGED)
    }

    /// Writes up to `limit` dirty pages at the cold end of the LRU, so that they can be evicted.
    pub fn flush_coldest(&self, limit: usize) -> Result<FlushReport> {
        self.flush_cold(limit, Wait::No)
    }

    /// The same for a caller that holds page latches: writes nothing if both batches are in use, as
    /// their users may wait for those latches.
    pub(super) fn flush_coldest_under_latches(&self, limit: usize) -> Result<FlushReport> {
        self.flush_cold(limit, Wait::Never)
    }

    fn flush_cold(&self, limit: usize, wait: Wait) -> Result<FlushReport> {
        let mut cold = Vec::with_capacity(limit);
        let wanted = |frame: &Frame| {
            frame.pins() == Some(0) && frame.write_state() == WriteState::Dirty && frame.try_pin()
        };
        self.lru
            .lock()
            .coldest(&self.frames, usize::MAX, limit, wanted, &mut cold);
        self.pin_neighbors(&mut cold, limit);
        self.write_pinned(cold, wait)
    }

    fn flush_some(&self, below: Lsn, limit: usize, wait: Wait) -> Result<FlushReport> {
        let mut pinned = Vec::new();
        self.flush_list
            .pin_oldest(&self.frames, below, limit, &mut pinned);
        self.pin_neighbors(&mut pinned, limit);
        self.write_pinned(pinned, wait)
    }

    /// Writes the pages of these frames, which are pinned for this call.
    pub(super) fn write_pinned(&self, pinned: Vec<u32>, wait: Wait) -> Result<FlushReport> {
        let mut report = FlushReport::default();
        self.retry_kept(&mut report)?;
        let mut pins: Vec<Pin<'_>> = pinned.into_iter().map(|at| Pin::adopt(self, at)).collect();
        while !pins.is_empty() {
            let rest = pins.split_off(pins.len().min(self.batch_pages()));
            let mut batch = match self.claim_batch(wait)? {
                Claimed::Batch(batch) => batch,
                Claimed::Busy => {
                    report.busy += pins.len() + rest.len();
                    return Ok(report);
                }
                Claimed::Stalled => {
                    report.failed += pins.len() + rest.len();
                    return Ok(report);
                }
            };
            let _section = self.critical("panic while pages were written");
            let collected = self.collect(&mut batch, pins, wait);
            report.add(collected);
            let result = self.write_batch(&mut batch, &mut report);
            self.settle_batch(&mut batch, result.is_ok());
            result?;
            pins = rest;
        }
        self.frame_available.raise();
        Ok(report)
    }

    /// Writes what the device had no room for again.
    fn retry_kept(&self, report: &mut FlushReport) -> Result<()> {
        if !self.flusher.stall.any() {
            return Ok(());
        }
        for batch in &self.flusher.batches {
            let Some(mut batch) = batch.try_lock() else {
                continue;
            };
            self.check_running()?;
            if !batch.entries.is_empty() {
                let _section = self.critical("panic while pages were written");
                self.write_places(&mut batch, report);
                self.sync_places(&mut batch, report);
                self.settle_batch(&mut batch, true);
            }
        }
        Ok(())
    }

    /// Tries once more to write what the device had no room for; true if all of it is written.
    ///
    /// Errors: `Stopped`.
    pub fn retry_stalled(&self) -> Result<bool> {
        let mut report = FlushReport::default();
        self.retry_kept(&mut report)?;
        self.frame_available.raise();
        Ok(!self.writes_stalled())
    }

    /// The tablespace is dropped: what its device had no room for need not be written.
    pub(super) fn forget_kept(&self, space: SpaceId) {
        if !self.flusher.stall.has(space) {
            return;
        }
        for batch in &self.flusher.batches {
            batch.lock().entries.retain(|entry| {
                let stays = entry.id.space != space;
                if !stays {
                    self.flush_list.write_failed(&self.frames, entry.frame);
                }
                stays
            });
        }
        self.flusher.stall.end(space);
    }

    fn claim_batch(&self, wait: Wait) -> Result<Claimed<'_>> {
        loop {
            self.check_running()?;
            let (mut lost, mut kept) = (0, 0);
            for batch in &self.flusher.batches {
                match batch.try_lock() {
                    Some(batch) if batch.lost => lost += 1,
                    Some(batch) if !batch.entries.is_empty() => kept += 1,
                    Some(mut batch) => {
                        if batch.buffer.is_none() {
                            let len = self.batch_pages() * self.page_size();
                            batch.buffer = Some(AlignedBuf::new(len));
                        }
                        (batch.front, batch.back) = (0, self.batch_pages());
                        return Ok(Claimed::Batch(batch));
                    }
                    None => {}
                }
            }
            if lost == self.flusher.batches.len() {
                return Err(Error::Stopped(
                    "both doublewrite batches are held by failed data files; restart".into(),
                ));
            }
            if lost + kept == self.flusher.batches.len() {
                return Ok(Claimed::Stalled);
            }
            if wait == Wait::Never {
                return Ok(Claimed::Busy);
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Takes copies of the pages under U (F1).
    fn collect(&self, batch: &mut Batch, pins: Vec<Pin<'_>>, wait: Wait) -> FlushReport {
        let mut report = FlushReport::default();
        for pin in pins {
            let at = pin.index();
            let id = pin.id();
            let guard = match wait {
                Wait::Yes => pin.latch(Mode::U, Rank::None).map(Some),
                Wait::No | Wait::Never => pin.try_latch(Mode::U, Rank::None),
            };
            let Ok(Some(guard)) = guard else {
                report.busy += 1;
                continue;
            };
            let frame = guard.frame();
            if frame.has_flag(FLAG_POISONED) {
                continue;
            }
            let space = match self.spaces.find(id.space) {
                Ok(space) if !frame.has_flag(FLAG_FREED) => space,
                // Freed (FREE_PAGE is in the log and is enough), or its tablespace was dropped.
                _ => {
                    report.dropped += usize::from(self.flush_list.forget(&self.frames, at));
                    continue;
                }
            };
            if space.state() == State::Failed || self.flusher.stall.has(id.space) {
                report.failed += 1;
                continue;
            }
            if !self.flush_list.begin_write(&self.frames, at) {
                continue;
            }
            let through_front = self.flusher.doublewrite.get().is_some()
                && !frame.has_flag(FLAG_FRESH)
                && id.space != SpaceId::TEMPORARY;
            frame.clear_flag(FLAG_FRESH);
            let slot = match through_front {
                true => batch.front,
                false => batch.back - 1,
            };
            match through_front {
                true => batch.front += 1,
                false => batch.back -= 1,
            }
            let page_size = self.page_size();
            let range = batch.slot_bytes(slot, page_size);
            let buffer = batch.buffer.as_mut().expect("claim_batch made the buffer");
            let copy = &mut buffer[range];
            let bytes = guard.bytes().len();
            copy[..bytes].copy_from_slice(guard.bytes());
            self.reached("flush.copy");
            copy[bytes..].fill(0);
            drop(guard);
            let lsn = fil::lsn(copy);
            space.encode(id.page, &mut copy[..bytes]);
            checksum::stamp(&mut copy[..bytes], space.flags().flavour());
            batch.entries.push(Entry {
                frame: at,
                id,
                lsn,
                slot,
                bytes,
                space,
                in_file: false,
                waits: false,
            });
        }
        report
    }

    /// Log, doublewrite, places, fsync. Entries that reached their file are marked.
    fn write_batch(&self, batch: &mut Batch, report: &mut FlushReport) -> Result<()> {
        if batch.entries.is_empty() {
            return Ok(());
        }
        let newest = batch
            .entries
            .iter()
            .filter(|entry| entry.id.space != SpaceId::TEMPORARY)
            .map(|entry| entry.lsn)
            .max();
        if let Some(lsn) = newest.filter(|_| !planted("page.before_log")) {
            self.log.write_up_to(lsn, true)?;
        }
        self.reached("flush.doublewrite");
        self.check_running()?;
        match self.write_doublewrite(batch) {
            Err(Error::NoSpace(id)) => {
                let path = self.spaces.find(id).map(|space| space.path());
                self.flusher.stall.doublewrite(Some(path?));
                report.failed += batch.entries.len();
                return Ok(());
            }
            written => written?,
        }
        self.flusher.stall.doublewrite(None);
        self.reached("flush.places");
        self.check_running()?;
        self.write_places(batch, report);
        self.sync_places(batch, report);
        Ok(())
    }

    fn write_doublewrite(&self, batch: &mut Batch) -> Result<()> {
        let Some(place) = self.flusher.doublewrite.get() else {
            return Ok(());
        };
        if batch.front == 0 || planted("doublewrite.skipped") {
            return Ok(());
        }
        let system = self.spaces.find(SpaceId::SYSTEM)?;
        let buffer = batch.buffer.as_ref().expect("claim_batch made the buffer");
        let image = &buffer[..batch.front * self.page_size()];
        system.write_pages(place.blocks[batch.number], image)?;
        if planted("doublewrite.sync_skipped") {
            return Ok(());
        }
        system.sync().inspect_err(|_| batch.lost = true)
    }

    fn write_places(&self, batch: &mut Batch, report: &mut FlushReport) {
        batch.entries.sort_unstable_by_key(|entry| entry.id);
        let page_size = self.page_size();
        let buffer = batch.buffer.as_ref().expect("claim_batch made the buffer");
        let results = self.write_images(&batch.entries, |entry| {
            let start = entry.slot * page_size;
            &buffer[start..start + entry.bytes]
        });
        let stall = &self.flusher.stall;
        for (entry, result) in batch.entries.iter_mut().zip(&results) {
            if result.is_ok() {
                entry.in_file = true;
                self.flush_list.written(&self.frames, entry.frame);
                self.counters.written.fetch_add(1, Ordering::Relaxed);
                stall.end(entry.id.space);
            }
        }
        for (entry, result) in batch.entries.iter_mut().zip(results) {
            let Err(error) = result else { continue };
            report.failed += 1;
            entry.waits = matches!(error, Error::NoSpace(_));
            if entry.waits {
                stall.begin(entry.id.space, entry.space.path());
            } else {
                log::error!("page {} was not written and is kept: {error}", entry.id);
                stall.note_failure(&error);
            }
        }
    }

    /// Writes the images of all entries at once, if the system can.
    fn write_images<'b>(
        &self,
        entries: &'b [Entry],
        image: impl Fn(&'b Entry) -> &'b [u8],
    ) -> Vec<Result<()>> {
        let Some(aio) = self.flusher.aio.get() else {
            let write = |entry| Entry::write_alone(entry, image(entry));
            return entries.iter().map(write).collect();
        };
        let mut results = Vec::with_capacity(entries.len());
        let (mut announced, mut writes) = (Vec::new(), Vec::new());
        for entry in entries {
            match entry.space.announce_write(entry.id.page, image(entry)) {
                Ok(write) => {
                    writes.push(write.write.clone());
                    announced.push((entry, write));
                    results.push(Ok(()));
                }
                Err(error) => results.push(Err(error)),
            }
        }
        let written = aio.write_all(&writes);
        let open = results.iter_mut().filter(|result| result.is_ok());
        for ((result, done), (entry, write)) in open.zip(written).zip(announced) {
            *result = entry.space.write_ended(write, done);
        }
        results
    }

    fn sync_places(&self, batch: &mut Batch, report: &mut FlushReport) {
        let mut at = 0;
        while at < batch.entries.len() {
            let space = batch.entries[at].id.space;
            let len = batch.entries[at..]
                .iter()
                .take_while(|entry| entry.id.space == space)
                .count();
            let entries = &batch.entries[at..at + len];
            at += len;
            let synced = match space {
                SpaceId::TEMPORARY => Ok(()),
                _ if planted("page.sync_skipped") => Ok(()),
                _ => entries[0].space.sync(),
            };
            for entry in entries.iter().filter(|entry| entry.in_file) {
                match &synced {
                    Ok(()) => {
                        self.flush_list.synced(&self.frames, entry.frame);
                        report.written += 1;
                    }
                    // The page stays unsynced for good: no checkpoint passes it (F5).
                    Err(_) => report.failed += 1,
                }
            }
            if let Err(error) = synced {
                self.flusher.stall.note_failure(&error);
                log::error!(
                    "{}: {error}; the file has failed until restart",
                    entries[0].space.path()
                );
                batch.lost |= batch.front > 0;
            }
        }
    }

    /// Whatever did not reach its file is dirty again, or waits for room there.
    fn settle_batch(&self, batch: &mut Batch, placed: bool) {
        batch.entries.retain(|entry| {
            let stays = placed && entry.waits && !entry.in_file;
            if !stays && !entry.in_file {
                self.flush_list.write_failed(&self.frames, entry.frame);
            }
            stays
        });
    }

    /// True if every page that holds `below` back belongs to a failed file.
    fn only_failed_below(&self, below: Lsn) -> bool {
        self.used_frames().iter().all(|frame| {
            let oldest = frame.oldest.load(Ordering::Relaxed);
            let holds_back = oldest != 0 && oldest < below.0;
            !holds_back
                || self
                    .spaces
                    .find(frame.id().space)
                    .is_ok_and(|space| space.state() == State::Failed)
        })
    }
}

/// What came of asking for a batch.
enum Claimed<'p> {
    Batch(MutexGuard<'p, Batch>),
    /// Both are in use.
    Busy,
    /// Both are kept for pages that the device has no room for.
    Stalled,
}

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Page latches and a batch.
    Yes,
    /// A batch.
    No,
    /// Nothing.
    Never,
}

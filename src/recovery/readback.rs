//! Records that stayed in the log, read again when their pages are brought up.
//!
//! Nothing overwrites them: a page that waits holds the checkpoint back (L2), and no log after the
//! checkpoint is written over (L4). Neighbouring pages were changed together, as a rule, so what several of them
//! need is read in few long stretches.

use super::apply;
use super::chain::{Content, Entry};
use super::index::RedoIndex;
use super::scan::LogBytes;
use crate::format::redo_frame::sound_records;
use crate::os::AlignedBuf;
use crate::sync::{Arc, Mutex, Rank};
use crate::words::{Error, Lsn, PageId, Result};

/// What an excerpt may hold: more than the longest mini-transaction.
pub(super) const EXCERPT_BYTES_MAX: usize = 2 << 20;
/// Bytes between two mini-transactions that are rather read than left out.
const GAP_BYTES: u64 = 32 << 10;
/// Whole blocks are read, as the system's cache has them.
const BLOCK: u64 = 4096;
/// Excerpts up to this size have memory of their own; longer ones use buffers again.
const OWN_BYTES_MAX: usize = 128 << 10;
/// Buffers that are kept for later.
const BUFFERS_MAX: usize = 8;

/// A mini-transaction in the log: its start and length.
pub(super) type Span = (Lsn, u32);

/// Is shown a mini-transaction: start, end, records.
pub(super) type Visit<'v> = dyn FnMut(Lsn, Lsn, &[u8]) -> Result<()> + 'v;

/// Buffers for excerpts.
pub(super) struct Buffers {
    free: Mutex<Vec<AlignedBuf>>,
}

/// Mini-transactions that were read again.
pub(super) struct Excerpt {
    bytes: Option<AlignedBuf>,
    /// In the log's order.
    stretches: Vec<Stretch>,
    buffers: Arc<Buffers>,
}

/// Bytes of the log, and where in the buffer they stand.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: Lsn,
    end: Lsn,
    at: usize,
}

impl Buffers {
    pub(super) fn new() -> Buffers {
        Buffers {
            free: Mutex::new(Rank::Leaf, Vec::new()),
        }
    }

    fn take(&self, bytes: usize) -> AlignedBuf {
        if bytes <= OWN_BYTES_MAX {
            return AlignedBuf::new(bytes);
        }
        let free = self.free.lock().pop();
        free.unwrap_or_else(|| AlignedBuf::new(bytes.max(EXCERPT_BYTES_MAX)))
    }

    fn give_back(&self, buffer: AlignedBuf) {
        let mut free = self.free.lock();
        if buffer.len() >= EXCERPT_BYTES_MAX && free.len() < BUFFERS_MAX {
            free.push(buffer);
        }
    }

    /// Gives the memory back.
    pub(super) fn clear(&self) {
        *self.free.lock() = Vec::new();
    }

    /// Bytes of memory at rest.
    pub(super) fn bytes(&self) -> usize {
        self.free.lock().iter().map(|buffer| buffer.len()).sum()
    }
}

/// The stretches that hold these spans, which are in the log's order; and how many spans these are: as many
/// from the front as an excerpt may hold.
fn plan(log: &dyn LogBytes, spans: &[Span]) -> (Vec<Stretch>, usize, usize) {
    let geometry = log.geometry();
    let (mut stretches, mut bytes): (Vec<Stretch>, usize) = (Vec::new(), 0);
    for (number, &(start, len)) in spans.iter().enumerate() {
        let behind = Lsn(start.0 + u64::from(len));
        let from = Lsn(start.0 - geometry.offset(start) % BLOCK);
        let end = Lsn(behind.0 + (BLOCK - geometry.offset(behind) % BLOCK) % BLOCK);
        let (more, joins) = match stretches.last() {
            Some(last) if from.0 <= last.end.0 + GAP_BYTES => {
                (end.0.saturating_sub(last.end.0), true)
            }
            _ => (end.0 - from.0, false),
        };
        if number > 0 && bytes + more as usize > EXCERPT_BYTES_MAX {
            return (stretches, bytes, number);
        }
        match stretches.last_mut() {
            Some(last) if joins => last.end = last.end.max(end),
            _ => stretches.push(Stretch {
                start: from,
                end,
                at: bytes,
            }),
        }
        bytes += more as usize;
    }
    (stretches, bytes, spans.len())
}

impl Excerpt {
    /// Reads as many of the spans as an excerpt may hold; also yields how many these are.
    ///
    /// Errors: what reading gives.
    pub(super) fn read(
        log: &dyn LogBytes,
        spans: &[Span],
        buffers: &Arc<Buffers>,
    ) -> Result<(Excerpt, usize)> {
        let (stretches, total, count) = plan(log, spans);
        let mut bytes = (total > 0).then(|| buffers.take(total));
        if let Some(bytes) = &mut bytes {
            for stretch in &stretches {
                let len = (stretch.end.0 - stretch.start.0) as usize;
                log.read(stretch.start, &mut bytes[stretch.at..stretch.at + len])?;
            }
        }
        let excerpt = Excerpt {
            bytes,
            stretches,
            buffers: buffers.clone(),
        };
        Ok((excerpt, count))
    }

    /// True if all spans fit into one excerpt.
    pub(super) fn holds_all(log: &dyn LogBytes, spans: &[Span]) -> bool {
        plan(log, spans).2 == spans.len()
    }

    /// The records of a mini-transaction; `None` if it was not read.
    ///
    /// Errors: `Corrupt` if these are not the bytes that the pass over the log found.
    fn records(&self, (start, len): Span) -> Option<Result<&[u8]>> {
        let behind = Lsn(start.0 + u64::from(len));
        let next = self.stretches.partition_point(|s| s.start <= start);
        let stretch = self.stretches.get(next.checked_sub(1)?)?;
        if behind > stretch.end {
            return None;
        }
        let at = stretch.at + (start.0 - stretch.start.0) as usize;
        let mtr = &self.bytes.as_ref()?[at..at + len as usize];
        let why = "the redo log reads back as other bytes; restart";
        Some(sound_records(mtr).ok_or_else(|| Error::corrupt_bytes(why)))
    }
}

impl Drop for Excerpt {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.buffers.give_back(bytes);
        }
    }
}

/// What of a page's records, from `from` on, stands in the log.
///
/// Errors: those of `RedoIndex::visit`.
pub(super) fn add_spans(
    index: &RedoIndex,
    id: PageId,
    from: Lsn,
    spans: &mut Vec<Span>,
) -> Result<()> {
    index.visit(id, &mut |entry| {
        if matches!(entry.content, Content::InLog(_)) && entry.start >= from {
            spans.push((entry.start, entry.len));
        }
        Ok(())
    })
}

/// Shows `each` the mini-transactions of a page from `from` on, oldest first; records of other pages may be
/// among them. `ahead`: what was read before.
///
/// Errors: those of `each`; what reading gives; `Corrupt` if the log has other bytes now.
pub(super) fn visit_records(
    (index, log): (&RedoIndex, &dyn LogBytes),
    id: PageId,
    from: Lsn,
    (ahead, buffers): (Option<&Excerpt>, &Arc<Buffers>),
    each: &mut Visit<'_>,
) -> Result<()> {
    let (mut spans, mut done) = (Vec::new(), 0);
    let mut own: Option<Excerpt> = None;
    index.visit(id, &mut |entry: Entry<'_>| {
        let (start, span) = (entry.start, (entry.start, entry.len));
        if start < from {
            return Ok(());
        }
        let end = Lsn(start.0 + u64::from(entry.len));
        let skip = match entry.content {
            Content::Here(records) => return each(start, end, records),
            Content::InLog(skip) => skip as usize,
        };
        if let Some(records) = ahead.and_then(|ahead| ahead.records(span)) {
            return each(start, end, &records?[skip..]);
        }
        if own.as_ref().and_then(|own| own.records(span)).is_none() {
            if spans.is_empty() {
                add_spans(index, id, start, &mut spans)?;
            }
            own = None;
            let (next, count) = Excerpt::read(log, &spans[done..], buffers)?;
            own = Some(next);
            done += count;
        }
        match own.as_ref().and_then(|own| own.records(span)) {
            Some(records) => each(start, end, &records?[skip..]),
            None => Err(Error::internal("recovery reads the wrong part of the log")),
        }
    })
}

/// Brings `page` up to date with all that the index has for it. Returns the start of the oldest
/// mini-transaction applied.
///
/// Errors: those of `apply::bring_up` and of reading the log.
pub fn bring_up(
    index: &RedoIndex,
    log: &dyn LogBytes,
    id: PageId,
    page: &mut [u8],
) -> Result<Option<Lsn>> {
    bring_up_with((index, log), id, page, (None, &Arc::new(Buffers::new())))
}

/// The same with what was read before, and buffers for the rest.
pub(super) fn bring_up_with(
    source: (&RedoIndex, &dyn LogBytes),
    id: PageId,
    page: &mut [u8],
    help: (Option<&Excerpt>, &Arc<Buffers>),
) -> Result<Option<Lsn>> {
    let mut oldest = None;
    let from = apply::first_needed(page);
    visit_records(source, id, from, help, &mut |start, end, records| {
        if apply::bring_up(id, page, (start, end), records)? {
            oldest = oldest.or(Some(start));
        }
        Ok(())
    })?;
    Ok(oldest)
}

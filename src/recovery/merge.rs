//! Stretches of the log, in their order, into the index; and the search for the checkpoint's own record
//! among them.

use std::time::{Duration, Instant};

use super::chain::{Content as Records, Entry};
use super::index::{Change, FileEvents, RedoIndex};
use super::parse::{Batch, Event, FileEvent, Header, RecordPlace};
use crate::format::redo_file::Checkpoint;
use crate::words::{Error, Lsn, Result, SpaceId};

/// The index so far.
#[derive(Debug)]
pub(super) struct Merger {
    pub(super) index: RedoIndex,
    pub(super) mtr_count: u64,
    search: Search,
    said: Instant,
}

/// Time between two lines in the error log.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// What a mini-transaction held, as far as the search for the checkpoint must know.
#[derive(Clone, Copy, Debug)]
struct Content {
    start: Lsn,
    end: Lsn,
    changes: bool,
    checkpoint: Option<Lsn>,
}

/// Where in a stretch of the log.
#[derive(Default)]
struct Place {
    mtr: Option<Content>,
    /// The tablespace of the last page, and whether its file is deleted.
    last: Option<(SpaceId, bool)>,
}

impl Merger {
    pub(super) fn new(checkpoint: Checkpoint, index: RedoIndex) -> Merger {
        Merger {
            index,
            mtr_count: 0,
            said: Instant::now(),
            search: Search {
                checkpoint,
                reached: false,
                named: None,
            },
        }
    }

    /// Takes in the stretch that follows. `failure`: its last mini-transaction has records that cannot
    /// be.
    ///
    /// Errors: `failure`; `Corrupt` if FILE_CHECKPOINT is not where it must be; what keeping records in a
    /// file gives.
    pub(super) fn add(&mut self, batch: &mut Batch, failure: Option<Error>) -> Result<()> {
        self.mtr_count += batch.mtr_count;
        let mut place = Place::default();
        for event in batch.events.drain(..) {
            self.take_event(event, &batch.kept, &mut place)?;
        }
        if let (Some(mtr), true) = (place.mtr, self.said.elapsed() >= SAY_EVERY) {
            self.said = Instant::now();
            let bytes = mtr.end.0 - self.search.checkpoint.lsn.0;
            log::info!("recovery: {} MiB of redo log are scanned", bytes >> 20);
        }
        match failure {
            None => self.end_mtr(place.mtr),
            Some(error) => Err(error),
        }
    }

    fn take_event(&mut self, event: Event, kept: &[u8], place: &mut Place) -> Result<()> {
        match event {
            Event::Mtr {
                start,
                len,
                changes,
            } => {
                self.end_mtr(place.mtr.take())?;
                self.search.before(start)?;
                place.mtr = Some(Content {
                    start,
                    end: Lsn(start.0 + u64::from(len)),
                    changes,
                    checkpoint: None,
                });
            }
            Event::Checkpoint(lsn) => {
                if let Some(mtr) = &mut place.mtr {
                    mtr.checkpoint = Some(lsn);
                }
            }
            Event::Uses(space) => self.take_use(space, place),
            Event::Entry {
                id,
                bytes,
                rebuilds,
                place: records,
            } => {
                let Some(mtr) = place.mtr else { return Ok(()) };
                if self.is_deleted(place, id.space) {
                    return Ok(());
                }
                let content = match records {
                    RecordPlace::Kept(at) => Records::Here(&kept[at as usize..][..bytes as usize]),
                    RecordPlace::InLog(skip) => Records::InLog(skip),
                };
                let entry = Entry {
                    start: mtr.start,
                    len: (mtr.end.0 - mtr.start.0) as u32,
                    content,
                };
                let change = Change {
                    entry,
                    bytes,
                    rebuilds,
                };
                self.index.add(id, &change)?;
            }
            Event::Free(id) => {
                if !self.is_deleted(place, id.space) {
                    self.index.drop_page(id);
                }
            }
            Event::Header(space, Header::Size(size)) => self.index.file(space).size = Some(size),
            Event::Header(space, Header::Flags(flags)) => {
                self.index.file(space).flags = Some(flags);
            }
            Event::Trim(space) => {
                let file = self.index.file(space);
                file.trimmed = place.mtr.map(|mtr| mtr.start);
                file.size = None;
                self.index.drop_space(space);
            }
            Event::File(event) => {
                self.take_file(*event);
                place.last = None;
            }
        }
        Ok(())
    }

    /// What was noted of the space of the last page holds until a file is named or deleted: who is
    /// nameless when FILE_CHECKPOINT is passed is noted there.
    fn take_use(&mut self, space: SpaceId, place: &mut Place) {
        if place.last.is_some_and(|(last, _)| last == space) {
            return;
        }
        let named_late = self.search.named.is_some();
        let file = self.index.file(space);
        file.used = true;
        file.used_unnamed |= named_late && file.name.is_none();
        place.last = Some((space, file.deleted));
    }

    fn is_deleted(&self, place: &Place, space: SpaceId) -> bool {
        match place.last {
            Some((last, deleted)) if last == space => deleted,
            _ => self.index.is_deleted(space),
        }
    }

    fn end_mtr(&mut self, mtr: Option<Content>) -> Result<()> {
        let Some(mtr) = mtr else { return Ok(()) };
        if self.search.after(&mtr)? {
            // Who has no name by now was used without one.
            for file in self.index.files_mut() {
                file.used_unnamed |= file.used && file.name.is_none();
            }
        }
        Ok(())
    }

    fn take_file(&mut self, event: FileEvent) {
        match event {
            FileEvent::Create(space, name) => {
                let file = self.index.file(space);
                file.created = true;
                file.name = Some(name);
            }
            FileEvent::Modify(space, name) => self.index.file(space).name = Some(name),
            FileEvent::Delete(space, name) => {
                let file = self.index.file(space);
                file.deleted = true;
                file.name = Some(name);
                self.index.drop_space(space);
            }
            FileEvent::Rename(space, old, new) => {
                let file = self.index.file(space);
                file.name = Some(new.clone());
                file.renames.push((old, new));
            }
        }
    }

    /// The log has ended: the end of the mini-transaction with FILE_CHECKPOINT.
    ///
    /// Errors: `Corrupt` if there was none.
    pub(super) fn named(&self) -> Result<Lsn> {
        self.search.named.ok_or_else(|| self.search.missing())
    }
}

/// The search for the FILE_CHECKPOINT record that belongs to the checkpoint.
#[derive(Debug)]
struct Search {
    checkpoint: Checkpoint,
    /// The mini-transaction at the checkpoint's end LSN was seen.
    reached: bool,
    /// End of the mini-transaction with FILE_CHECKPOINT. What is used behind it must be named before.
    named: Option<Lsn>,
}

impl Search {
    fn before(&mut self, start: Lsn) -> Result<()> {
        self.reached |= start == self.checkpoint.end_lsn;
        if !self.reached && start > self.checkpoint.end_lsn {
            return Err(bad(
                "the checkpoint's end LSN lies inside a mini-transaction",
            ));
        }
        Ok(())
    }

    /// True if this was the record searched for.
    fn after(&mut self, mtr: &Content) -> Result<bool> {
        if !self.reached || self.named.is_some() {
            return Ok(false);
        }
        if mtr.changes {
            return Err(self.missing());
        }
        let is_it = mtr.checkpoint == Some(self.checkpoint.lsn);
        if is_it {
            self.named = Some(mtr.end);
        }
        Ok(is_it)
    }

    fn missing(&self) -> Error {
        let Checkpoint { lsn, end_lsn } = self.checkpoint;
        bad(&format!("missing FILE_CHECKPOINT({lsn}) at {end_lsn}"))
    }
}

#[cold]
pub(super) fn bad(why: &str) -> Error {
    Error::corrupt_bytes(format!("redo log: {why}"))
}

impl RedoIndex {
    /// Takes in the mini-transaction `start..end`. `named_late`: FILE_CHECKPOINT was seen before,
    /// so that a file must be named before it is used from here on.
    ///
    /// Errors: `Corrupt` for records that cannot be, although the CRC holds.
    pub fn take_in(
        &mut self,
        start: Lsn,
        end: Lsn,
        records: &[u8],
        named_late: bool,
    ) -> Result<()> {
        let mut batch = Batch::default();
        batch.take_in(start, end, records)?;
        let nowhere = Checkpoint {
            lsn: Lsn(u64::MAX),
            end_lsn: Lsn(u64::MAX),
        };
        let mut merger = Merger::new(nowhere, std::mem::take(self));
        merger.search.named = named_late.then_some(start);
        let result = merger.add(&mut batch, None);
        *self = merger.index;
        result
    }

    /// The spaces whose page records the log does not name in time. Wrong for all but space 0 and
    /// undo tablespaces, whose ids the caller knows (format-redo.md section 8).
    pub fn unnamed(&self) -> impl Iterator<Item = SpaceId> + '_ {
        let unnamed =
            |space: &SpaceId, file: &FileEvents| *space != SpaceId::SYSTEM && file.used_unnamed;
        self.files()
            .iter()
            .filter(move |(space, file)| unnamed(space, file))
            .map(|(space, _)| *space)
    }
}

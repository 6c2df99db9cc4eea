//! From mini-transactions to what they mean for pages and files. Needs nothing but their bytes, so
//! that several threads can do it, each for a stretch of the log; `merge` puts the stretches together
//! in their order.

use crate::format::fsp;
use crate::format::redo_record::{FileOp, PageOp, Parsed, Record, Records, SAME_PAGE};
use crate::os::planted;
use crate::words::{Lsn, PageId, PageNo, Result, SpaceId, be};

/// Records of one page in one mini-transaction stay in the log if they are longer; the index has shorter ones:
/// to read a block of the log again costs more than to keep them.
const KEPT_BYTES_MAX: usize = 256;

/// What a stretch of the log says.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Records that the index is to keep.
    pub(super) kept: Vec<u8>,
    /// In the order in which they count.
    pub(super) events: Vec<Event>,
    pub(super) mtr_count: u64,
    scratch: Vec<Piece>,
}

/// One thing that the log says.
#[derive(Debug)]
pub(super) enum Event {
    /// A mini-transaction begins, and the events up to the next one are its own. `changes`: it holds
    /// something else than FILE_MODIFY and FILE_CHECKPOINT.
    Mtr { start: Lsn, len: u32, changes: bool },
    /// There are records of pages of the tablespace.
    Uses(SpaceId),
    /// SIZE or flags were written into page 0.
    Header(SpaceId, Header),
    /// TRIM_PAGES: earlier records of the tablespace are void.
    Trim(SpaceId),
    /// The page is changed by so many bytes of records. `rebuilds`: they begin with INIT_PAGE.
    Entry {
        id: PageId,
        bytes: u32,
        rebuilds: bool,
        place: RecordPlace,
    },
    /// FREE_PAGE is the last word on the page.
    Free(PageId),
    /// What the log says of a file.
    File(Box<FileEvent>),
    /// FILE_CHECKPOINT of this LSN.
    Checkpoint(Lsn),
}

/// Where records stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum RecordPlace {
    /// From this offset of `Batch::kept` on, all of the page.
    Kept(u32),
    /// From this offset of the mini-transaction on, among those of other pages.
    InLog(u32),
}

/// A field of page 0.
#[derive(Clone, Copy, Debug)]
pub(super) enum Header {
    Size(u32),
    Flags(u32),
}

/// A `FileOp` that owns its names.
#[derive(Debug)]
pub(super) enum FileEvent {
    Create(SpaceId, Box<str>),
    Modify(SpaceId, Box<str>),
    Delete(SpaceId, Box<str>),
    /// Old name, new name.
    Rename(SpaceId, Box<str>, Box<str>),
}

/// Records of one page that stand one behind the other, by their place in the mini-transaction.
#[derive(Clone, Copy, Debug)]
struct Piece {
    id: PageId,
    kind: Kind,
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// INIT_PAGE, and what may follow it.
    Init,
    Free,
    Change,
}

impl Batch {
    /// Makes it empty; its memory stays.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.events.clear();
        self.mtr_count = 0;
    }

    /// Takes in the mini-transaction `start..end`.
    ///
    /// Errors: `Corrupt` for records that cannot be, although the CRC holds; then the events of this
    /// mini-transaction mean nothing.
    pub(super) fn take_in(&mut self, start: Lsn, end: Lsn, records: &[u8]) -> Result<()> {
        let begin = self.events.len();
        self.events.push(Event::Mtr {
            start,
            len: (end.0 - start.0) as u32,
            changes: false,
        });
        let mut pieces = std::mem::take(&mut self.scratch);
        pieces.clear();
        let (mut at, mut changed, mut used) = (0, false, None);
        for parsed in Records::new(records) {
            let Parsed { raw, record } = parsed?;
            let range = (at, at + raw.len());
            at = range.1;
            match record {
                Record::File(op) => changed |= self.take_file(&op),
                Record::Page(id, op) => {
                    changed = true;
                    if used.replace(id.space) != Some(id.space) {
                        self.events.push(Event::Uses(id.space));
                    }
                    self.take_page(id, &op, range, &mut pieces);
                }
            }
        }
        self.file_pieces(records, &mut pieces);
        self.scratch = pieces;
        if let Event::Mtr { changes, .. } = &mut self.events[begin] {
            *changes = changed;
        }
        self.mtr_count += 1;
        Ok(())
    }

    fn take_page(
        &mut self,
        id: PageId,
        op: &PageOp<'_>,
        (start, end): (usize, usize),
        pieces: &mut Vec<Piece>,
    ) {
        let kind = match *op {
            PageOp::TrimPages => {
                pieces.retain(|piece| piece.id.space != id.space);
                self.events.push(Event::Trim(id.space));
                return;
            }
            PageOp::Ignored(_) => return,
            PageOp::UndoAppend(_) if planted("recovery.record_dropped") => return,
            PageOp::Init => Kind::Init,
            PageOp::Free => Kind::Free,
            PageOp::Write { offset, data } if id.page == PageNo(0) => {
                self.take_header(id.space, offset, data);
                Kind::Change
            }
            _ => Kind::Change,
        };
        match pieces.last_mut() {
            Some(last)
                if kind == Kind::Change
                    && last.id == id
                    && last.end == start
                    && last.kind != Kind::Free =>
            {
                last.end = end;
            }
            _ => pieces.push(Piece {
                id,
                kind,
                start,
                end,
            }),
        }
    }

    fn take_header(&mut self, space: SpaceId, offset: u32, data: &[u8]) {
        if let Some(size) = field(offset, data, fsp::OFF_SIZE) {
            self.events.push(Event::Header(space, Header::Size(size)));
        }
        if let Some(flags) = field(offset, data, fsp::OFF_FLAGS) {
            self.events.push(Event::Header(space, Header::Flags(flags)));
        }
    }

    /// Groups the records by page and makes one entry for each.
    fn file_pieces(&mut self, records: &[u8], pieces: &mut [Piece]) {
        if !pieces.is_sorted_by_key(|piece| piece.id) {
            // Stable: the order of the records of a page stays.
            pieces.sort_by_key(|piece| piece.id);
        }
        for of_page in pieces.chunk_by(|a, b| a.id == b.id) {
            let id = of_page[0].id;
            // Only what follows the last INIT_PAGE or FREE_PAGE counts.
            let renewed = of_page.iter().rposition(|piece| piece.kind != Kind::Change);
            let kept = &of_page[renewed.unwrap_or(0)..];
            if kept[0].kind == Kind::Free {
                // Nobody reads the page before the next INIT_PAGE.
                self.events.push(Event::Free(id));
                continue;
            }
            let bytes: usize = kept.iter().map(|piece| piece.end - piece.start).sum();
            let first = kept[0].start;
            // A record that does not name its page says nothing without the one before it.
            let place = match bytes > KEPT_BYTES_MAX && records[first] & SAME_PAGE == 0 {
                true => RecordPlace::InLog(first as u32),
                false => {
                    let at = self.kept.len() as u32;
                    let pieces = kept.iter().map(|piece| &records[piece.start..piece.end]);
                    pieces.for_each(|piece| self.kept.extend_from_slice(piece));
                    RecordPlace::Kept(at)
                }
            };
            self.events.push(Event::Entry {
                id,
                bytes: bytes as u32,
                rebuilds: kept[0].kind == Kind::Init,
                place,
            });
        }
    }

    /// True if it is a change.
    fn take_file(&mut self, op: &FileOp<'_>) -> bool {
        let text = |name: &[u8]| -> Box<str> { String::from_utf8_lossy(name).into() };
        let (event, changes) = match *op {
            FileOp::Create { space, name } => (FileEvent::Create(space, text(name)), true),
            FileOp::Modify { space, name } => (FileEvent::Modify(space, text(name)), false),
            FileOp::Delete { space, name } => (FileEvent::Delete(space, text(name)), true),
            FileOp::Rename { space, old, new } => {
                (FileEvent::Rename(space, text(old), text(new)), true)
            }
            FileOp::Checkpoint(lsn) => {
                self.events.push(Event::Checkpoint(lsn));
                return false;
            }
            FileOp::Padding(_) => return false,
        };
        self.events.push(Event::File(Box::new(event)));
        changes
    }
}

/// The 4-byte field at `at` of page 0, if the bytes written at `offset` cover it wholly.
fn field(offset: u32, data: &[u8], at: usize) -> Option<u32> {
    be::try_u32_at(data, at.checked_sub(offset as usize)?)
}

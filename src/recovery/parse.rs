//! From mini-transactions to the index: which records of which page still count, and what becomes
//! of the files.

use super::index::RedoIndex;
use crate::format::fsp;
use crate::format::redo_record::{FileOp, PageOp, Parsed, Record, Records};
use crate::os::planted;
use crate::words::{Lsn, PageId, PageNo, Result, SpaceId, be};

/// One record of a page.
#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    id: PageId,
    kind: Kind,
    raw: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Init,
    Free,
    Change,
}

/// What a mini-transaction held, as far as the search for the checkpoint must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MtrContent {
    /// Something else than FILE_MODIFY and FILE_CHECKPOINT.
    pub changes: bool,
    /// FILE_CHECKPOINT of this LSN.
    pub checkpoint: Option<Lsn>,
}

impl RedoIndex {
    /// Takes in the mini-transaction `start..end`. `named_late`: FILE_CHECKPOINT was seen before,
    /// so that a file must be named before it is used from here on.
    ///
    /// Errors: `Corrupt` for records that cannot be, although the CRC holds; then the index is as
    /// before, but for names.
    pub fn take_in(
        &mut self,
        start: Lsn,
        end: Lsn,
        records: &[u8],
        named_late: bool,
    ) -> Result<MtrContent> {
        let mut pieces = Vec::new();
        let mut content = MtrContent::default();
        for parsed in Records::new(records) {
            let Parsed { raw, record } = parsed?;
            match record {
                Record::File(op) => self.take_file(&op, &mut content),
                Record::Page(id, op) => {
                    content.changes = true;
                    self.take_page(id, &op, start, named_late);
                    match op {
                        PageOp::TrimPages => {
                            pieces.retain(|piece: &Piece<'_>| piece.id.space != id.space);
                            self.drop_space(id.space);
                        }
                        PageOp::Init => pieces.push(Piece {
                            id,
                            kind: Kind::Init,
                            raw,
                        }),
                        PageOp::Free => pieces.push(Piece {
                            id,
                            kind: Kind::Free,
                            raw,
                        }),
                        PageOp::Ignored(_) => {}
                        PageOp::UndoAppend(_) if planted("recovery.record_dropped") => {}
                        _ => pieces.push(Piece {
                            id,
                            kind: Kind::Change,
                            raw,
                        }),
                    }
                }
            }
        }
        self.file_pieces(start, end, &mut pieces)?;
        Ok(content)
    }

    /// Groups the records by page and appends one entry for each.
    fn file_pieces(&mut self, start: Lsn, end: Lsn, pieces: &mut [Piece<'_>]) -> Result<()> {
        // Stable: the order of the records of a page stays.
        pieces.sort_by_key(|piece| piece.id);
        let mut raws = Vec::new();
        for of_page in pieces.chunk_by(|a, b| a.id == b.id) {
            let id = of_page[0].id;
            if self.file(id.space).deleted {
                continue;
            }
            // Only what follows the last INIT_PAGE or FREE_PAGE counts.
            let renewed = of_page.iter().rposition(|piece| piece.kind != Kind::Change);
            let kept = &of_page[renewed.unwrap_or(0)..];
            if kept[0].kind == Kind::Free {
                // Nobody reads the page before the next INIT_PAGE.
                self.drop_page(id);
                continue;
            }
            raws.clear();
            raws.extend(kept.iter().map(|piece| piece.raw));
            self.append(id, (start, end), kept[0].kind == Kind::Init, &raws)?;
        }
        Ok(())
    }

    fn take_page(&mut self, id: PageId, op: &PageOp<'_>, start: Lsn, named_late: bool) {
        let file = self.file(id.space);
        file.used = true;
        file.used_unnamed |= named_late && file.name.is_none();
        match *op {
            PageOp::TrimPages => {
                file.trimmed = Some(start);
                file.size = None;
            }
            PageOp::Write { offset, data } if id.page == PageNo(0) => {
                file.size = field(offset, data, fsp::OFF_SIZE).or(file.size);
                file.flags = field(offset, data, fsp::OFF_FLAGS).or(file.flags);
            }
            _ => {}
        }
    }

    fn take_file(&mut self, op: &FileOp<'_>, content: &mut MtrContent) {
        let text = |name: &[u8]| -> Box<str> { String::from_utf8_lossy(name).into() };
        match *op {
            FileOp::Create { space, name } => {
                let file = self.file(space);
                file.created = true;
                file.name = Some(text(name));
                content.changes = true;
            }
            FileOp::Modify { space, name } => self.file(space).name = Some(text(name)),
            FileOp::Delete { space, name } => {
                let file = self.file(space);
                file.deleted = true;
                file.name = Some(text(name));
                content.changes = true;
                self.drop_space(space);
            }
            FileOp::Rename { space, old, new } => {
                let file = self.file(space);
                file.renames.push((text(old), text(new)));
                file.name = Some(text(new));
                content.changes = true;
            }
            FileOp::Checkpoint(lsn) => content.checkpoint = Some(lsn),
            FileOp::Padding(_) => {}
        }
    }

    /// FILE_CHECKPOINT was reached: who has no name by now was used without one.
    pub(super) fn end_of_naming(&mut self) {
        for file in self.files_mut() {
            file.used_unnamed |= file.used && file.name.is_none();
        }
    }

    /// The spaces whose page records the log does not name in time. Wrong for all but space 0 and
    /// undo tablespaces, whose ids the caller knows (format-redo.md section 8).
    pub fn unnamed(&self) -> impl Iterator<Item = SpaceId> + '_ {
        let unnamed = |space: &SpaceId, file: &super::FileEvents| {
            *space != SpaceId::SYSTEM && file.used_unnamed
        };
        self.files()
            .iter()
            .filter(move |(space, file)| unnamed(space, file))
            .map(|(space, _)| *space)
    }
}

/// The 4-byte field at `at` of page 0, if the bytes written at `offset` cover it wholly.
fn field(offset: u32, data: &[u8], at: usize) -> Option<u32> {
    be::try_u32_at(data, at.checked_sub(offset as usize)?)
}

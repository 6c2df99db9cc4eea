//! The records of a mini-transaction: parsing (format-redo.md sections 5 to 8).
//!
//! [`Records`] walks what `redo_frame::frame` cut out of the log, resolving page ids and offsets.
//! Nothing is copied. A valid CRC proves that
//! the bytes were written as one; it says nothing of their content, so every field is checked here
//! against what a page can hold, and again against the page itself when it is applied.

use crate::words::limits::PAGE_SIZE_MAX;
use crate::words::{Error, Lsn, PageId, PageNo, Result, SpaceId, be};

use super::redo_frame::{Next, read_varint, record_end};

/// Origin of the infimum on COMPACT and DYNAMIC pages; `prev` fields count from it.
pub const INFIMUM_COMPACT: u32 = 99;
/// Origin of the infimum on REDUNDANT pages.
pub const INFIMUM_REDUNDANT: u32 = 101;

pub(crate) const FREE_PAGE: u8 = 0x00;
pub(crate) const INIT_PAGE: u8 = 0x10;
pub(crate) const EXTENDED: u8 = 0x20;
pub(crate) const WRITE: u8 = 0x30;
pub(crate) const MEMSET: u8 = 0x40;
pub(crate) const MEMMOVE: u8 = 0x50;
pub(crate) const OPTION: u8 = 0x70;
pub(crate) const SAME_PAGE: u8 = 0x80;
pub(crate) const FILE_CREATE: u8 = 0x80;
pub(crate) const FILE_DELETE: u8 = 0x90;
pub(crate) const FILE_RENAME: u8 = 0xA0;
pub(crate) const FILE_MODIFY: u8 = 0xB0;
pub(crate) const FILE_CHECKPOINT: u8 = 0xF0;

/// A record of a mini-transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// A change of a page.
    Page(PageId, PageOp<'a>),
    /// A change of the set of files, or a checkpoint.
    File(FileOp<'a>),
}

/// A change of one page. Offsets are counted from the page's start and lie in 8..65536; whether
/// they lie in the page is known only with the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageOp<'a> {
    /// The page is free; nobody reads it until the next `Init`.
    Free,
    /// The page becomes zeros with its ids; what was logged before is void.
    Init,
    /// Bytes at an offset.
    Write {
        /// Where.
        offset: u32,
        /// What; at least one byte.
        data: &'a [u8],
    },
    /// `fill` repeated over `len` bytes.
    Memset {
        /// Where.
        offset: u32,
        /// How many bytes.
        len: u32,
        /// At least one byte. A writer uses lengths that are multiples of its length.
        fill: &'a [u8],
    },
    /// Bytes copied within the page, as memmove does.
    Memmove {
        /// Where to.
        offset: u32,
        /// How many bytes.
        len: u32,
        /// Where from.
        source: u32,
    },
    /// An empty index page.
    InitIndex {
        /// False for REDUNDANT.
        compact: bool,
    },
    /// An empty undo page.
    UndoInit,
    /// An undo record, without its two link fields.
    UndoAppend(&'a [u8]),
    /// A record into a REDUNDANT page.
    InsertRedundant(InsertRedundant<'a>),
    /// A record into a COMPACT or DYNAMIC page.
    InsertDynamic(InsertDynamic<'a>),
    /// Removes the record after `prev` from a REDUNDANT page.
    DeleteRedundant {
        /// Origin of the predecessor.
        prev: u32,
    },
    /// Removes the record after `prev` from a COMPACT or DYNAMIC page.
    DeleteDynamic {
        /// Origin of the predecessor.
        prev: u32,
        /// Bytes before the record's 5 fixed header bytes.
        header_bytes: u32,
        /// Bytes from the origin on.
        data_bytes: u32,
    },
    /// The undo tablespace ends before this page now; all its earlier records are void.
    TrimPages,
    /// Debugging aid: CRC-32C of the page after the mini-transaction.
    Checksum(u32),
    /// An OPTION record of a kind we do not know: to be ignored.
    Ignored(&'a [u8]),
}

/// INSERT_HEAP_REDUNDANT and INSERT_REUSE_REDUNDANT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InsertRedundant<'a> {
    /// Takes the head of the free list instead of the heap's top.
    pub reuse: bool,
    /// Origin of the predecessor.
    pub prev: u32,
    /// Number of fields, 1..=1023.
    pub n_fields: u32,
    /// Field ends take 1 byte, not 2.
    pub short: bool,
    /// Info bits, 0x10 and 0x20.
    pub info_bits: u8,
    /// Header bytes in common with the predecessor, beyond the 6 fixed ones.
    pub header_common: u32,
    /// Data bytes in common with the predecessor.
    pub data_common: u32,
    /// The header's other bytes, then the data's.
    pub literal: &'a [u8],
}

/// INSERT_HEAP_DYNAMIC and INSERT_REUSE_DYNAMIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InsertDynamic<'a> {
    /// `None`: takes the heap's top. `Some(n)`: takes the head of the free list; n = new record's
    /// header bytes minus the freed one's.
    pub reuse_shift: Option<i32>,
    /// Origin of the predecessor.
    pub prev: u32,
    /// Info bits, 0x10 and 0x20.
    pub info_bits: u8,
    /// Status 4: a record with instantly added columns.
    pub instant: bool,
    /// Header bytes in common with the predecessor, those just before its 5 fixed ones.
    pub header_common: u32,
    /// Data bytes in common with the predecessor.
    pub data_common: u32,
    /// The header's other bytes; they stand at the lowest addresses.
    pub header: &'a [u8],
    /// The data's other bytes.
    pub data: &'a [u8],
}

/// A file-level record. Names are paths as the server wrote them, without terminating NUL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "space and name speak for themselves")]
pub enum FileOp<'a> {
    /// First record of the mini-transaction that initialises page 0.
    Create { space: SpaceId, name: &'a [u8] },
    /// Durable before the file is deleted; earlier records of the space are ignored.
    Delete { space: SpaceId, name: &'a [u8] },
    /// Durable before the file is renamed.
    Rename {
        space: SpaceId,
        old: &'a [u8],
        new: &'a [u8],
    },
    /// Names a tablespace that is about to be changed.
    Modify { space: SpaceId, name: &'a [u8] },
    /// All changes below this LSN are in the page files.
    Checkpoint(Lsn),
    /// `n` zero bytes.
    Padding(usize),
}

/// One parsed record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed<'a> {
    /// The record's bytes. The raw records of one page, in order, are themselves what [`Records`]
    /// can walk: a record that says "same page" follows one of its page.
    pub raw: &'a [u8],
    /// What it says.
    pub record: Record<'a>,
}

/// Walks the records of one mini-transaction. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The page that "same page" means.
    page: Option<PageId>,
    /// A page record was seen: file records may not follow.
    in_pages: bool,
    cursor: u32,
}

impl<'a> Records<'a> {
    /// `records` as `redo_frame::frame` yields them.
    pub fn new(records: &'a [u8]) -> Records<'a> {
        Records {
            bytes: records,
            at: 0,
            page: None,
            in_pages: false,
            cursor: 0,
        }
    }

    fn parse_next(&mut self) -> Result<Parsed<'a>> {
        let start = self.at;
        let first = self.bytes[start];
        let Next::End(end) = record_end(self.bytes, start) else {
            return Err(bad("length"));
        };
        let raw = self.bytes.get(start..end).ok_or_else(|| bad("length"))?;
        let mut body = Body { bytes: raw, at: 1 };
        if first & 15 == 0 {
            body.varint()?;
        }
        self.at = end;
        let same_page = first & SAME_PAGE != 0;
        let record = if same_page && !self.in_pages {
            Record::File(file_op(first & 0xF0, body)?)
        } else {
            let id = self.page_of(same_page, &mut body)?;
            Record::Page(id, self.page_op(first & 0x70, id, same_page, body)?)
        };
        Ok(Parsed { raw, record })
    }

    fn page_of(&mut self, same_page: bool, body: &mut Body<'a>) -> Result<PageId> {
        if same_page {
            return self
                .page
                .ok_or_else(|| bad("a record of the same page after FREE_PAGE"));
        }
        let id = PageId::new(SpaceId(body.varint()?), PageNo(body.varint()?));
        if id.page == PageNo::NONE {
            return Err(bad("page number"));
        }
        (self.page, self.cursor, self.in_pages) = (Some(id), 0, true);
        Ok(id)
    }

    fn page_op(
        &mut self,
        kind: u8,
        id: PageId,
        same_page: bool,
        mut body: Body<'a>,
    ) -> Result<PageOp<'a>> {
        match kind {
            FREE_PAGE | INIT_PAGE if same_page || !body.rest().is_empty() => {
                Err(bad("FREE_PAGE or INIT_PAGE with a payload").at_page(id))
            }
            FREE_PAGE => {
                self.page = None;
                Ok(PageOp::Free)
            }
            INIT_PAGE => {
                self.cursor = super::fil::OFF_TYPE as u32;
                Ok(PageOp::Init)
            }
            EXTENDED => {
                self.cursor = super::fil::OFF_TYPE as u32;
                if id.page.0 < 3 {
                    return Err(bad("EXTENDED on one of the pages 0 to 2").at_page(id));
                }
                extended(&mut body).map_err(|e| e.at_page(id))
            }
            WRITE | MEMSET | MEMMOVE => self.bytes_op(kind, body).map_err(|e| e.at_page(id)),
            OPTION => Ok(match body.rest() {
                [0, sum @ ..] if sum.len() == 4 => PageOp::Checksum(be::u32_at(sum, 0)),
                other => PageOp::Ignored(other),
            }),
            _ => Err(bad("reserved record type").at_page(id)),
        }
    }

    fn bytes_op(&mut self, kind: u8, mut body: Body<'a>) -> Result<PageOp<'a>> {
        let offset = u64::from(self.cursor) + u64::from(body.varint()?);
        let (len, op) = match kind {
            WRITE => {
                let data = body.rest();
                (
                    data.len() as u64,
                    PageOp::Write {
                        offset: offset as u32,
                        data,
                    },
                )
            }
            MEMSET => {
                let len = body.varint()?;
                let fill = body.rest();
                if fill.is_empty() {
                    return Err(bad("MEMSET without a byte"));
                }
                (
                    u64::from(len),
                    PageOp::Memset {
                        offset: offset as u32,
                        len,
                        fill,
                    },
                )
            }
            _ => {
                let len = body.varint()?;
                let coded = body.varint()?;
                let distance = i64::from(coded >> 1) + 1;
                let source = offset as i64 + if coded & 1 == 0 { distance } else { -distance };
                let end = source + i64::from(len);
                if source < 8 || end > PAGE_SIZE_MAX as i64 || !body.rest().is_empty() {
                    return Err(bad("MEMMOVE source"));
                }
                let source = source as u32;
                (
                    u64::from(len),
                    PageOp::Memmove {
                        offset: offset as u32,
                        len,
                        source,
                    },
                )
            }
        };
        if len == 0 || offset < 8 || offset + len > PAGE_SIZE_MAX as u64 {
            return Err(bad("range of WRITE, MEMSET or MEMMOVE"));
        }
        self.cursor = (offset + len) as u32;
        Ok(op)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Parsed<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let result = self.parse_next();
        if result.is_err() {
            self.at = self.bytes.len();
        }
        Some(result)
    }
}

fn extended<'a>(body: &mut Body<'a>) -> Result<PageOp<'a>> {
    let subtype = body.byte()?;
    let op = match subtype {
        0 | 1 => PageOp::InitIndex {
            compact: subtype == 1,
        },
        2 => PageOp::UndoInit,
        3 => match body.take_rest() {
            record if record.len() > 2 => PageOp::UndoAppend(record),
            _ => return Err(bad("UNDO_APPEND of less than 3 bytes")),
        },
        4 | 5 => PageOp::InsertRedundant(insert_redundant(subtype == 5, body)?),
        6 | 7 => PageOp::InsertDynamic(insert_dynamic(subtype == 7, body)?),
        8 => PageOp::DeleteRedundant {
            prev: body.origin(INFIMUM_REDUNDANT)?,
        },
        9 => PageOp::DeleteDynamic {
            prev: body.origin(INFIMUM_COMPACT)?,
            header_bytes: body.size()?,
            data_bytes: body.size()?,
        },
        10 => PageOp::TrimPages,
        _ => return Err(bad("EXTENDED subtype")),
    };
    if !body.rest().is_empty() {
        return Err(bad("bytes left over in an EXTENDED record"));
    }
    Ok(op)
}

fn insert_redundant<'a>(reuse: bool, body: &mut Body<'a>) -> Result<InsertRedundant<'a>> {
    let prev = body.origin(INFIMUM_REDUNDANT)?;
    let coded = body.varint()?;
    let n_fields = (coded >> 3) + 1;
    if n_fields > 1023 {
        return Err(bad("number of fields of an inserted record"));
    }
    Ok(InsertRedundant {
        reuse,
        prev,
        n_fields,
        short: coded & 4 != 0,
        info_bits: (coded & 3) as u8 * 0x10,
        header_common: body.size()?,
        data_common: body.size()?,
        literal: body.take_rest(),
    })
}

fn insert_dynamic<'a>(reuse: bool, body: &mut Body<'a>) -> Result<InsertDynamic<'a>> {
    let prev = body.origin(INFIMUM_COMPACT)?;
    let reuse_shift = match reuse {
        false => None,
        true => {
            let coded = body.size()? as i32;
            Some(if coded & 1 == 0 {
                coded >> 1
            } else {
                -(coded >> 1)
            })
        }
    };
    let coded = body.varint()?;
    let (header_common, data_common) = (body.size()?, body.size()?);
    let header = body.take((coded >> 3) as usize)?;
    Ok(InsertDynamic {
        reuse_shift,
        prev,
        info_bits: (coded & 3) as u8 * 0x10,
        instant: coded & 4 != 0,
        header_common,
        data_common,
        header,
        data: body.take_rest(),
    })
}

fn file_op(kind: u8, mut body: Body<'_>) -> Result<FileOp<'_>> {
    if kind == FILE_CHECKPOINT {
        return match body.rest() {
            [0, 0, lsn @ ..] if lsn.len() == 8 => Ok(FileOp::Checkpoint(Lsn(be::u64_at(lsn, 0)))),
            zeros if zeros.iter().all(|&byte| byte == 0) => Ok(FileOp::Padding(zeros.len())),
            _ => Err(bad("FILE_CHECKPOINT")),
        };
    }
    let space = SpaceId(body.varint()?);
    if body.varint()? != 0 {
        return Err(bad("file record of a page other than 0"));
    }
    let text = body.rest();
    match kind {
        FILE_CREATE => Ok(FileOp::Create {
            space,
            name: name(text)?,
        }),
        FILE_DELETE => Ok(FileOp::Delete {
            space,
            name: name(text)?,
        }),
        FILE_MODIFY => Ok(FileOp::Modify {
            space,
            name: name(text)?,
        }),
        FILE_RENAME => {
            let nul = text.iter().position(|&byte| byte == 0);
            let nul = nul.ok_or_else(|| bad("FILE_RENAME without a second name"))?;
            Ok(FileOp::Rename {
                space,
                old: name(&text[..nul])?,
                new: name(&text[nul + 1..])?,
            })
        }
        _ => Err(bad("file record type")),
    }
}

fn name(text: &[u8]) -> Result<&[u8]> {
    if text.contains(&0) || !text.contains(&b'/') || !text.ends_with(b".ibd") {
        return Err(bad("file name"));
    }
    Ok(text)
}

struct Body<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Body<'a> {
    fn byte(&mut self) -> Result<u8> {
        let byte = *self
            .bytes
            .get(self.at)
            .ok_or_else(|| bad("a record is too short"))?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u32> {
        read_varint(self.bytes, &mut self.at).ok_or_else(|| bad("an integer"))
    }

    /// A length or distance within a page.
    fn size(&mut self) -> Result<u32> {
        match self.varint()? {
            n if n as usize <= 2 * PAGE_SIZE_MAX => Ok(n),
            _ => Err(bad("a size larger than a page")),
        }
    }

    /// A record's origin, counted from the infimum.
    fn origin(&mut self, infimum: u32) -> Result<u32> {
        match self.varint()?.checked_add(infimum) {
            Some(n) if (n as usize) < PAGE_SIZE_MAX => Ok(n),
            _ => Err(bad("a record offset outside the page")),
        }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = self.at.saturating_add(n);
        let bytes = self
            .bytes
            .get(self.at..end)
            .ok_or_else(|| bad("a record is too short"))?;
        self.at = end;
        Ok(bytes)
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest();
        self.at = self.bytes.len();
        rest
    }
}

#[cold]
fn bad(what: &str) -> Error {
    Error::corrupt_bytes(format!("redo log: invalid record: {what}"))
}

//! Building mini-transactions (format-redo.md sections 4 to 8): the reverse of redo_record.rs.
//!
//! [`Encoder`] keeps what the coding of a record depends on: the page of the record before and the
//! byte cursor in it. It chooses the codings that the stock server chooses, so that records cut
//! from a stock log come back as the same bytes.

use crate::words::PageId;

use super::fil;
use super::redo_record::{
    EXTENDED, FILE_CHECKPOINT, FILE_CREATE, FILE_DELETE, FILE_MODIFY, FILE_RENAME, FREE_PAGE,
    FileOp, INFIMUM_COMPACT, INFIMUM_REDUNDANT, INIT_PAGE, InsertDynamic, InsertRedundant, MEMMOVE,
    MEMSET, OPTION, PageOp, SAME_PAGE, WRITE,
};

/// Codes the records of one mini-transaction, appending them to a buffer that the caller owns.
///
/// One encoder and one buffer belong together; [`Encoder::reset`] starts the next
/// mini-transaction.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    /// The page that a record may refer to as "the same".
    page: Option<PageId>,
    /// Where the record before ended in that page.
    cursor: u32,
    /// A page record was coded: file records may not follow.
    in_pages: bool,
}

impl Encoder {
    /// An encoder at the start of a mini-transaction.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// Back to the start of a mini-transaction.
    pub fn reset(&mut self) {
        *self = Encoder::default();
    }

    /// Appends a change of `page`.
    pub fn page_op(&mut self, out: &mut Vec<u8>, page: PageId, op: &PageOp<'_>) {
        match *op {
            PageOp::Free => {
                self.page = None;
                self.record(out, FREE_PAGE, page, &[], &[]);
                self.page = None;
            }
            PageOp::Init => {
                self.page = None;
                self.record(out, INIT_PAGE, page, &[], &[]);
                self.cursor = fil::OFF_TYPE as u32;
            }
            PageOp::Write { offset, data } => self.write(out, page, offset as usize, data),
            PageOp::Memset { offset, len, fill } => {
                self.memset(out, page, offset as usize, len as usize, fill);
            }
            PageOp::Memmove {
                offset,
                len,
                source,
            } => {
                self.memmove(out, page, offset as usize, len as usize, source as usize);
            }
            PageOp::InitIndex { compact } => self.extended(out, page, &[compact as u8], &[]),
            PageOp::UndoInit => self.extended(out, page, &[2], &[]),
            PageOp::UndoAppend(record) => self.extended(out, page, &[3], record),
            PageOp::InsertRedundant(ref insert) => self.insert_redundant(out, page, insert),
            PageOp::InsertDynamic(ref insert) => self.insert_dynamic(out, page, insert),
            PageOp::DeleteRedundant { prev } => {
                let head = Head::new().byte(8).varint(prev - INFIMUM_REDUNDANT);
                self.extended(out, page, head.bytes(), &[]);
            }
            PageOp::DeleteDynamic {
                prev,
                header_bytes,
                data_bytes,
            } => {
                let head = Head::new().byte(9).varint(prev - INFIMUM_COMPACT);
                let head = head.varint(header_bytes).varint(data_bytes);
                self.extended(out, page, head.bytes(), &[]);
            }
            PageOp::TrimPages => self.extended(out, page, &[10], &[]),
            PageOp::Checksum(sum) => {
                self.record(out, OPTION, page, &[0], &sum.to_be_bytes());
            }
            PageOp::Ignored(bytes) => self.record(out, OPTION, page, &[], bytes),
        }
    }

    /// Appends "the page is free".
    pub fn free_page(&mut self, out: &mut Vec<u8>, page: PageId) {
        self.page_op(out, page, &PageOp::Free);
    }

    /// Appends "the page starts anew".
    pub fn init_page(&mut self, out: &mut Vec<u8>, page: PageId) {
        self.page_op(out, page, &PageOp::Init);
    }

    /// Appends `data` written at `offset`. Panics if there is no data or `offset` is below 8.
    pub fn write(&mut self, out: &mut Vec<u8>, page: PageId, offset: usize, data: &[u8]) {
        assert!(
            !data.is_empty() && offset >= 8,
            "a WRITE changes bytes behind the page number"
        );
        let head = self.at(page, offset as u32);
        self.record(out, WRITE, page, head.bytes(), data);
        self.cursor = (offset + data.len()) as u32;
    }

    /// Appends `fill` repeated over `len` bytes from `offset`. Panics if `len` is not a multiple of
    /// the length of `fill`: the stock server mishandles the remainder.
    pub fn memset(
        &mut self,
        out: &mut Vec<u8>,
        page: PageId,
        offset: usize,
        len: usize,
        fill: &[u8],
    ) {
        assert!(
            len > 0 && offset >= 8 && len % fill.len() == 0,
            "MEMSET of whole fills"
        );
        let head = self.at(page, offset as u32).varint(len as u32);
        self.record(out, MEMSET, page, head.bytes(), fill);
        self.cursor = (offset + len) as u32;
    }

    /// Appends "`len` bytes from `source` moved to `offset`". Panics if both are equal.
    pub fn memmove(
        &mut self,
        out: &mut Vec<u8>,
        page: PageId,
        offset: usize,
        len: usize,
        source: usize,
    ) {
        assert!(
            len > 0 && offset >= 8 && source >= 8 && source != offset,
            "a MEMMOVE moves"
        );
        let back = source < offset;
        let coded = (offset.abs_diff(source) as u32 - 1) << 1 | back as u32;
        let head = self
            .at(page, offset as u32)
            .varint(len as u32)
            .varint(coded);
        self.record(out, MEMMOVE, page, head.bytes(), &[]);
        self.cursor = (offset + len) as u32;
    }

    /// Appends an insert into a REDUNDANT page.
    pub fn insert_redundant(
        &mut self,
        out: &mut Vec<u8>,
        page: PageId,
        insert: &InsertRedundant<'_>,
    ) {
        let coded = (insert.n_fields - 1) << 3 | (insert.short as u32) << 2;
        let head = Head::new()
            .byte(4 | insert.reuse as u8)
            .varint(insert.prev - INFIMUM_REDUNDANT)
            .varint(coded | u32::from(insert.info_bits >> 4))
            .varint(insert.header_common)
            .varint(insert.data_common);
        self.extended(out, page, head.bytes(), insert.literal);
    }

    /// Appends an insert into a COMPACT or DYNAMIC page.
    pub fn insert_dynamic(&mut self, out: &mut Vec<u8>, page: PageId, insert: &InsertDynamic<'_>) {
        let mut head = Head::new()
            .byte(6 | insert.reuse_shift.is_some() as u8)
            .varint(insert.prev - INFIMUM_COMPACT);
        if let Some(shift) = insert.reuse_shift {
            head = head.varint(shift.unsigned_abs() << 1 | (shift < 0) as u32);
        }
        let coded = (insert.header.len() as u32) << 3 | (insert.instant as u32) << 2;
        let head = head
            .varint(coded | u32::from(insert.info_bits >> 4))
            .varint(insert.header_common)
            .varint(insert.data_common);
        self.extended_parts(out, page, head.bytes(), [insert.header, insert.data]);
    }

    /// Appends a file-level record. Panics after a page record: the format has no such order.
    pub fn file_op(&mut self, out: &mut Vec<u8>, op: &FileOp<'_>) {
        assert!(!self.in_pages, "file records precede page records");
        let named = |space: u32| Head::new().varint(space).byte(0);
        match *op {
            FileOp::Create { space, name } => {
                put_record(out, FILE_CREATE, &[named(space.0).bytes(), name]);
            }
            FileOp::Delete { space, name } => {
                put_record(out, FILE_DELETE, &[named(space.0).bytes(), name]);
            }
            FileOp::Modify { space, name } => {
                put_record(out, FILE_MODIFY, &[named(space.0).bytes(), name]);
            }
            FileOp::Rename { space, old, new } => {
                put_record(out, FILE_RENAME, &[named(space.0).bytes(), old, &[0], new]);
            }
            FileOp::Checkpoint(lsn) => {
                put_record(out, FILE_CHECKPOINT, &[&[0, 0], &lsn.0.to_be_bytes()]);
            }
            FileOp::Padding(n) => put_record(out, FILE_CHECKPOINT, &[&vec![0; n]]),
        }
    }

    /// The offset field of a record at `offset`: from the cursor if the page is the same and the
    /// cursor is not beyond, else absolute with the page named again.
    fn at(&mut self, page: PageId, offset: u32) -> Head {
        if self.page != Some(page) || self.cursor > offset {
            self.page = None;
            self.cursor = 0;
        }
        Head::new().varint(offset - self.cursor)
    }

    fn extended(&mut self, out: &mut Vec<u8>, page: PageId, head: &[u8], payload: &[u8]) {
        self.extended_parts(out, page, head, [payload, &[]]);
    }

    fn extended_parts(&mut self, out: &mut Vec<u8>, id: PageId, head: &[u8], parts: [&[u8]; 2]) {
        assert!(id.page.0 >= 3, "no EXTENDED record on the pages 0 to 2");
        self.record_parts(out, EXTENDED, id, &[head, parts[0], parts[1]]);
        self.cursor = fil::OFF_TYPE as u32;
    }

    fn record(&mut self, out: &mut Vec<u8>, kind: u8, page: PageId, head: &[u8], payload: &[u8]) {
        self.record_parts(out, kind, page, &[head, payload, &[]]);
    }

    fn record_parts(&mut self, out: &mut Vec<u8>, kind: u8, page: PageId, parts: &[&[u8]; 3]) {
        let [head, payload, more] = *parts;
        if self.page == Some(page) {
            put_record(out, kind | SAME_PAGE, &[head, payload, more]);
        } else {
            let id = Head::new().varint(page.space.0).varint(page.page.0);
            put_record(out, kind, &[id.bytes(), head, payload, more]);
        }
        self.page = Some(page);
        self.in_pages = true;
    }
}

/// Appends sequence bit and CRC to a mini-transaction whose records are `out[start..]`.
/// The bit is that of the log position of the byte itself.
pub fn finish(out: &mut Vec<u8>, start: usize, seq_bit: u8) {
    let crc = crc32c::crc32c(&out[start..]);
    out.push(seq_bit);
    out.extend_from_slice(&crc.to_be_bytes());
}

/// Appends a variable-length integer.
pub fn put_varint(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(Head::new().varint(value).bytes());
}

/// Bytes of a variable-length integer.
pub fn varint_bytes(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4080 => 2,
        0x4080..0x20_4080 => 3,
        0x20_4080..0x1020_4080 => 4,
        _ => 5,
    }
}

/// Type, length, and the parts of a record.
fn put_record(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let body: usize = parts.iter().map(|part| part.len()).sum();
    if body <= 15 {
        out.push(kind | body as u8);
    } else {
        // The integer counts all bytes of the record from the 16th on, its own included.
        let n = [1, 2, 3]
            .into_iter()
            .find(|&n| varint_bytes((body + n - 15) as u32) == n);
        let n = n.expect("a record is shorter than 2 MiB");
        out.push(kind);
        put_varint(out, (body + n - 15) as u32);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// A few integers on the stack: the longest head has a byte and six integers.
struct Head {
    raw: [u8; 32],
    len: usize,
}

impl Head {
    fn new() -> Head {
        Head {
            raw: [0; 32],
            len: 0,
        }
    }

    fn byte(mut self, byte: u8) -> Head {
        self.raw[self.len] = byte;
        self.len += 1;
        self
    }

    fn varint(mut self, value: u32) -> Head {
        let n = varint_bytes(value);
        let coded = match n {
            1 => u64::from(value),
            2 => u64::from((value - 0x80) | 0x8000),
            3 => u64::from((value - 0x4080) | 0xC0_0000),
            4 => u64::from((value - 0x20_4080) | 0xE000_0000),
            _ => u64::from(value - 0x1020_4080) | 0xF0_0000_0000,
        };
        self.raw[self.len..self.len + n].copy_from_slice(&coded.to_be_bytes()[8 - n..]);
        self.len += n;
        self
    }

    fn bytes(&self) -> &[u8] {
        &self.raw[..self.len]
    }
}

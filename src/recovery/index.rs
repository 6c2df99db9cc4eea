//! The records of a crashed log by page, and what the log says of files.
//!
//! Record bytes stand in an arena of large chunks, as `parse` has copied them out of the log: one
//! entry per page and mini-transaction, each linked to the one of its page before it. So adding an
//! entry writes to the new chunk alone, and who brings a page up walks back first. What is dropped
//! (INIT_PAGE and the like) stays in the arena: the log itself bounds it. An arena that reaches its
//! limit goes to a file (spill.rs).

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use super::spill::{NO_PIECE, Spill, SpillPlace, SpilledPage};
use crate::format::redo_record::Records;
use crate::os::slab::Slab;
use crate::words::{Error, Lsn, PageId, PageNo, Result, SpaceId, be};

/// Entry head: entry before (8), start LSN (8), length of the mini-transaction (4), of records (4).
pub(super) const HEAD_BYTES: usize = 24;
/// "No entry".
const NOWHERE: u64 = u64::MAX;

/// What the log holds from the checkpoint on, by page and by file.
#[derive(Debug)]
pub struct RedoIndex {
    chunks: Vec<Slab>,
    /// Bytes in all chunks, and how many there may be.
    chunk_bytes: usize,
    chunk_bytes_max: usize,
    spill_place: Option<SpillPlace>,
    spill: Option<Spill>,
    pages: HashMap<PageId, PageEntries, BuildHasherDefault<PageHasher>>,
    files: BTreeMap<SpaceId, FileEvents>,
}

#[derive(Clone, Copy, Debug)]
struct PageEntries {
    /// Pieces in the file, older than the entries in memory.
    first_piece: u32,
    last_piece: u32,
    /// The newest entry in memory.
    last: u64,
    first_start: Lsn,
    last_end: Lsn,
    /// Of all its records.
    bytes: u64,
    /// The first record is INIT_PAGE: the file need not be read.
    rebuilds: bool,
}

/// One mini-transaction's records for one page.
#[derive(Clone, Copy, Debug)]
pub struct MtrOfPage<'a> {
    /// Where it starts. A page whose LSN is greater has it already.
    pub start: Lsn,
    /// Where it ends: the page's LSN afterwards.
    pub end: Lsn,
    records: &'a [u8],
}

impl<'a> MtrOfPage<'a> {
    /// The records in order; all are of the page. None is an error: they were checked.
    pub fn records(&self) -> Records<'a> {
        Records::new(self.records)
    }
}

/// What the log says of a tablespace and its file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileEvents {
    /// The latest name, as a path from the data directory; `None` if no record names the file.
    pub name: Option<Box<str>>,
    /// FILE_CREATE stands in the log: a missing file is rebuilt from the log.
    pub created: bool,
    /// FILE_DELETE stands in the log: the file is to be deleted, its records are void.
    pub deleted: bool,
    /// Renames in order, old and new name: to be done on disk if they were not.
    pub renames: Vec<(Box<str>, Box<str>)>,
    /// FSP_SIZE as last written: the file is extended to so many pages before pages are applied.
    pub size: Option<u32>,
    /// FSP_SPACE_FLAGS as last written.
    pub flags: Option<u32>,
    /// TRIM_PAGES: the undo tablespace was truncated by the mini-transaction that starts here.
    pub trimmed: Option<Lsn>,
    /// A page record stands before FILE_CHECKPOINT and no name does, or one stands behind it before
    /// any name: wrong for all spaces but 0 and undo tablespaces.
    pub used_unnamed: bool,
    /// The log has (or had) page records of the space.
    pub(super) used: bool,
}

impl Default for RedoIndex {
    fn default() -> RedoIndex {
        RedoIndex::with_limit(usize::MAX, None)
    }
}

impl RedoIndex {
    /// An empty index that keeps at most about `bytes_max` bytes of records in memory, and the others
    /// in a file at `spill_place`.
    pub fn with_limit(bytes_max: usize, spill_place: Option<SpillPlace>) -> RedoIndex {
        RedoIndex {
            chunks: Vec::new(),
            chunk_bytes: 0,
            chunk_bytes_max: bytes_max,
            spill_place,
            spill: None,
            pages: HashMap::default(),
            files: BTreeMap::new(),
        }
    }

    /// True if no page waits.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Number of pages that wait.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// The pages that wait, in no order.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.pages.keys().copied()
    }

    /// True if a page of the tablespace waits.
    pub fn has_pages_of(&self, space: SpaceId) -> bool {
        self.pages().any(|id| id.space == space)
    }

    /// The tablespaces of which the log has page records, void ones too: it must go on naming them.
    pub fn changed_spaces(&self) -> impl Iterator<Item = SpaceId> + '_ {
        let changed = self.files.iter().filter(|(_, file)| file.used);
        changed.map(|(space, _)| *space)
    }

    /// The pages that wait, in file order.
    pub fn pages_sorted(&self) -> Vec<PageId> {
        let mut pages: Vec<_> = self.pages().collect();
        pages.sort_unstable();
        pages
    }

    /// True if the page has records.
    pub fn has(&self, id: PageId) -> bool {
        self.pages.contains_key(&id)
    }

    /// True if the page's records start with INIT_PAGE: the file need not be read.
    pub fn rebuilds(&self, id: PageId) -> bool {
        self.pages.get(&id).is_some_and(|page| page.rebuilds)
    }

    /// Start of the oldest mini-transaction that the page waits for; the checkpoint may not pass it.
    pub fn oldest(&self, id: PageId) -> Option<Lsn> {
        self.pages.get(&id).map(|page| page.first_start)
    }

    /// End of the newest mini-transaction that changed the page.
    pub fn newest(&self, id: PageId) -> Option<Lsn> {
        self.pages.get(&id).map(|page| page.last_end)
    }

    /// Bytes of the page's records.
    pub fn bytes_of(&self, id: PageId) -> u64 {
        self.pages.get(&id).map_or(0, |page| page.bytes)
    }

    /// What of the page is to be read from the file, for `of_page`.
    pub fn spilled(&self, id: PageId) -> Option<SpilledPage> {
        let first = self.pages.get(&id)?.first_piece;
        (first != NO_PIECE).then(|| self.spill.as_ref().expect("it has pieces").page(first))
    }

    /// The mini-transactions of a page, oldest first; none if the page does not wait. `spilled`: what
    /// `spilled` read, or nothing.
    pub fn of_page<'a>(
        &'a self,
        id: PageId,
        mut spilled: &'a [u8],
    ) -> impl Iterator<Item = MtrOfPage<'a>> {
        let mut at = self.pages.get(&id).map_or(NOWHERE, |page| page.last);
        let mut newest_first = Vec::new();
        while let Some((before, entry)) = self.entry(at) {
            newest_first.push(entry);
            at = before;
        }
        std::iter::from_fn(move || {
            if !spilled.is_empty() {
                let (_, entry) = parse_entry(spilled);
                spilled = &spilled[HEAD_BYTES + entry.records.len()..];
                return Some(entry);
            }
            newest_first.pop()
        })
    }

    /// What the log says of each tablespace that it names or changes.
    pub fn files(&self) -> &BTreeMap<SpaceId, FileEvents> {
        &self.files
    }

    /// Drops the records of a tablespace: its file is gone for good.
    pub fn drop_space(&mut self, space: SpaceId) {
        self.pages.retain(|id, _| id.space != space);
    }

    /// Bytes of memory, for the engine's budget.
    pub fn bytes(&self) -> usize {
        let spill = self.spill.as_ref().map_or(0, Spill::bytes);
        self.chunk_bytes + spill + self.pages.capacity() * (size_of::<(PageId, PageEntries)>() + 1)
    }

    pub(super) fn files_mut(&mut self) -> impl Iterator<Item = &mut FileEvents> {
        self.files.values_mut()
    }

    pub(super) fn file(&mut self, space: SpaceId) -> &mut FileEvents {
        self.files.entry(space).or_default()
    }

    /// Drops the records of one page.
    pub(super) fn drop_page(&mut self, id: PageId) {
        self.pages.remove(&id);
    }

    /// True if FILE_DELETE was seen for the tablespace.
    pub(super) fn is_deleted(&self, space: SpaceId) -> bool {
        self.files.get(&space).is_some_and(|file| file.deleted)
    }

    /// Takes over a chunk of entries, for `add_entry`. Others go to the file if there is no room.
    ///
    /// Errors: `Invalid` if there is no room and no place for a file; what writing gives.
    pub(super) fn add_chunk(&mut self, chunk: Slab) -> Result<()> {
        if self.chunk_bytes + chunk.len() > self.chunk_bytes_max && !self.chunks.is_empty() {
            self.spill_all()?;
        }
        self.chunk_bytes += chunk.len();
        self.chunks.push(chunk);
        Ok(())
    }

    /// Enters the entry at `offset` of the last chunk: what a mini-transaction does to the page.
    /// `rebuilds`: the first record is INIT_PAGE, so that older entries are void.
    pub(super) fn add_entry(&mut self, id: PageId, offset: usize, rebuilds: bool) {
        let number = self.chunks.len() - 1;
        let at = (number as u64) << 32 | offset as u64;
        let chunk = &mut self.chunks[number];
        let (_, entry) = parse_entry(&chunk[offset..]);
        let (start, end, bytes) = (entry.start, entry.end, entry.records.len() as u64);
        match self.pages.get_mut(&id) {
            Some(page) if !rebuilds => {
                be::put_u64(chunk, offset, page.last);
                page.last = at;
                page.last_end = end;
                page.bytes += bytes;
            }
            _ => {
                let entries = PageEntries {
                    first_piece: NO_PIECE,
                    last_piece: NO_PIECE,
                    last: at,
                    first_start: start,
                    last_end: end,
                    bytes,
                    rebuilds,
                };
                self.pages.insert(id, entries);
            }
        }
    }

    /// One entry in a chunk of its own.
    #[cfg(test)]
    pub(super) fn append(&mut self, id: PageId, mtr: (Lsn, Lsn), records: &[u8]) {
        let mut chunk = Slab::default();
        let offset = push_entry(&mut chunk, mtr, std::iter::once(records));
        self.add_chunk(chunk).expect("there is no limit");
        self.add_entry(id, offset, false);
    }

    /// Moves the records in memory to the file.
    ///
    /// Errors: `Invalid` if there is no place for a file; what writing gives.
    fn spill_all(&mut self) -> Result<()> {
        let mut spill = match (self.spill.take(), &self.spill_place) {
            (Some(spill), _) => spill,
            (None, Some(place)) => {
                let spill = Spill::new(place)?;
                log::info!(
                    "the records of the redo log need more than {} bytes of memory: they go to {}",
                    self.chunk_bytes_max,
                    place.path()
                );
                spill
            }
            (None, None) => {
                return Err(Error::invalid(format!(
                    "the records of the redo log need more than {} bytes of memory",
                    self.chunk_bytes_max
                )));
            }
        };
        for id in self.pages_sorted() {
            let page = self.pages.get_mut(&id).expect("listed");
            if page.last == NOWHERE {
                continue;
            }
            let (mut at, mut newest_first) = (page.last, Vec::new());
            while at != NOWHERE {
                let (chunk, offset) = split(at);
                let bytes = &self.chunks[chunk][offset..];
                let (before, entry) = parse_entry(bytes);
                newest_first.push(&bytes[..HEAD_BYTES + entry.records.len()]);
                at = before;
            }
            newest_first
                .iter()
                .rev()
                .for_each(|entry| spill.push(entry));
            let piece = spill.end_piece(page.last_piece)?;
            page.last_piece = piece;
            if page.first_piece == NO_PIECE {
                page.first_piece = piece;
            }
            page.last = NOWHERE;
        }
        spill.flush()?;
        self.spill = Some(spill);
        self.chunks.clear();
        self.chunk_bytes = 0;
        Ok(())
    }

    fn entry(&self, at: u64) -> Option<(u64, MtrOfPage<'_>)> {
        if at == NOWHERE {
            return None;
        }
        let (chunk, offset) = split(at);
        Some(parse_entry(&self.chunks[chunk][offset..]))
    }
}

/// The entry before in memory, and this one, which `bytes` begin with.
fn parse_entry(bytes: &[u8]) -> (u64, MtrOfPage<'_>) {
    let start = Lsn(be::u64_at(bytes, 8));
    let end = Lsn(start.0 + u64::from(be::u32_at(bytes, 16)));
    let len = be::u32_at(bytes, 20) as usize;
    let records = &bytes[HEAD_BYTES..HEAD_BYTES + len];
    let entry = MtrOfPage {
        start,
        end,
        records,
    };
    (be::u64_at(bytes, 0), entry)
}

/// Adds an entry of one mini-transaction's records for one page to a chunk, for `add_chunk`; where it
/// stands there.
pub(super) fn push_entry<'p>(
    chunk: &mut Slab,
    mtr: (Lsn, Lsn),
    pieces: impl Iterator<Item = &'p [u8]>,
) -> usize {
    let (start, end) = mtr;
    let offset = chunk.len();
    let mut head = [0; HEAD_BYTES];
    be::put_u64(&mut head, 0, NOWHERE);
    be::put_u64(&mut head, 8, start.0);
    be::put_u32(&mut head, 16, (end.0 - start.0) as u32);
    chunk.extend(&head);
    pieces.for_each(|piece| chunk.extend(piece));
    let len = chunk.len() - offset - HEAD_BYTES;
    be::put_u32(chunk, offset + 20, len as u32);
    offset
}

/// Page ids are numbers that nobody chooses in order to collide: one multiplication spreads them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    #[inline]
    fn write_u32(&mut self, word: u32) {
        let mixed = self.0.rotate_left(23) ^ u64::from(word);
        self.0 = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table looks at the lowest and the highest bits; the product's low ones are poor.
        self.0 ^ self.0 >> 32
    }
}

fn split(at: u64) -> (usize, usize) {
    ((at >> 32) as usize, at as u32 as usize)
}

/// First page of a space that a set of pages names, for messages.
pub(super) fn any_page_of(index: &RedoIndex, space: SpaceId) -> PageId {
    let page = index.pages().filter(|id| id.space == space).min();
    page.unwrap_or(PageId::new(space, PageNo(0)))
}

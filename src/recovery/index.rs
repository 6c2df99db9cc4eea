//! The records of a crashed log by page, and what the log says of files.
//!
//! Each page has a chain of entries (chain.rs), one for each mini-transaction that changed it. Short records
//! stand in the chain; long ones stay in the log, which nothing overwrites while their page waits, and are
//! read from there when the page is brought up (readback.rs). What is dropped (INIT_PAGE and the like) stays
//! in memory: the log itself bounds it. Chains that reach the limit go to a file (spill.rs).

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

#[cfg(test)]
use super::chain::Content;
use super::chain::{Arena, Chain, Entry, decode, encode};
use super::spill::{NO_PIECE, Spill, SpillPlace};
use crate::words::{Error, Lsn, PageId, PageNo, Result, SpaceId};

/// What the log holds from the checkpoint on, by page and by file.
#[derive(Debug)]
pub struct RedoIndex {
    arena: Arena,
    bytes_max: usize,
    spill_place: Option<SpillPlace>,
    spill: Option<Spill>,
    pages: HashMap<PageId, PageEntries, BuildHasherDefault<PageHasher>>,
    files: BTreeMap<SpaceId, FileEvents>,
    /// An entry on its way into a chain.
    coded: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct PageEntries {
    chain: Chain,
    /// Pieces in the file, older than the chain in memory.
    first_piece: u32,
    last_piece: u32,
    first_start: Lsn,
    /// The newest entry's.
    last_start: Lsn,
    last_end: Lsn,
    /// Of all its records.
    bytes: u64,
    /// The first record is INIT_PAGE: the file need not be read.
    rebuilds: bool,
}

/// What a mini-transaction does to a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'a> {
    pub(super) entry: Entry<'a>,
    /// Of the records, wherever they stand.
    pub(super) bytes: u32,
    /// The first record is INIT_PAGE, so that older entries are void.
    pub(super) rebuilds: bool,
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
    /// An empty index that keeps at most about `bytes_max` bytes of entries in memory, and the others
    /// in a file at `spill_place`.
    pub fn with_limit(bytes_max: usize, spill_place: Option<SpillPlace>) -> RedoIndex {
        RedoIndex {
            arena: Arena::with_limit(bytes_max),
            bytes_max,
            spill_place,
            spill: None,
            pages: HashMap::default(),
            files: BTreeMap::new(),
            coded: Vec::new(),
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

    /// Shows `each` the entries of a page, oldest first; none if the page does not wait.
    ///
    /// Errors: those of `each`; what reading entries back from the file gives.
    pub fn visit(&self, id: PageId, each: &mut dyn FnMut(Entry<'_>) -> Result<()>) -> Result<()> {
        let Some(page) = self.pages.get(&id) else {
            return Ok(());
        };
        let mut before = Lsn(0);
        let mut visit_all = |mut bytes: &[u8]| -> Result<()> {
            while !bytes.is_empty() {
                let entry = decode(&mut bytes, before)?;
                before = entry.start;
                each(entry)?;
            }
            Ok(())
        };
        if let Some(spill) = &self.spill {
            spill.visit(page.first_piece, &mut visit_all)?;
        }
        self.arena.blocks(page.chain).try_for_each(visit_all)
    }

    /// True if some of the page's entries stand in the file.
    #[cfg(test)]
    pub(super) fn is_spilled(&self, id: PageId) -> bool {
        let page = self.pages.get(&id);
        page.is_some_and(|page| page.first_piece != NO_PIECE)
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
        self.arena.bytes()
            + spill
            + self.pages.capacity() * (size_of::<(PageId, PageEntries)>() + 1)
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

    /// Enters what a mini-transaction does to a page. Entries go to the file if there is no room.
    ///
    /// Errors: `Invalid` if there is no room and no place for a file; what writing gives; `OutOfMemory`.
    pub(super) fn add(&mut self, id: PageId, change: &Change<'_>) -> Result<()> {
        let start = change.entry.start;
        let mut page = match self.pages.get(&id) {
            Some(page) if !change.rebuilds => *page,
            _ => PageEntries {
                chain: Chain::EMPTY,
                first_piece: NO_PIECE,
                last_piece: NO_PIECE,
                first_start: start,
                last_start: Lsn(0),
                last_end: start,
                bytes: 0,
                rebuilds: change.rebuilds,
            },
        };
        self.coded.clear();
        encode(&change.entry, page.last_start, &mut self.coded);
        if !self.arena.push(&mut page.chain, &self.coded)? {
            self.spill_all()?;
            if let (Some(spilled), false) = (self.pages.get(&id), change.rebuilds) {
                page = *spilled;
            }
            let is_kept = self.arena.push(&mut page.chain, &self.coded)?;
            assert!(is_kept, "an empty arena takes any entry");
        }
        page.last_start = start;
        page.last_end = Lsn(start.0 + u64::from(change.entry.len));
        page.bytes += u64::from(change.bytes);
        self.pages.insert(id, page);
        Ok(())
    }

    /// Adds an entry with all of its records.
    #[cfg(test)]
    pub(super) fn append(&mut self, id: PageId, mtr: (Lsn, Lsn), records: &[u8]) {
        let change = Change {
            entry: Entry {
                start: mtr.0,
                len: (mtr.1.0 - mtr.0.0) as u32,
                content: Content::Here(records),
            },
            bytes: records.len() as u32,
            rebuilds: false,
        };
        self.add(id, &change).expect("there is no limit");
    }

    /// Moves the entries in memory to the file.
    ///
    /// Errors: `Invalid` if there is no place for a file; what writing gives.
    fn spill_all(&mut self) -> Result<()> {
        let mut spill = match (self.spill.take(), &self.spill_place) {
            (Some(spill), _) => spill,
            (None, Some(place)) => {
                let spill = Spill::new(place)?;
                log::info!(
                    "recovery's index needs more than {} bytes of memory: it goes to {}",
                    self.bytes_max,
                    place.path()
                );
                spill
            }
            (None, None) => {
                return Err(Error::invalid(format!(
                    "recovery's index needs more than {} bytes of memory",
                    self.bytes_max
                )));
            }
        };
        for id in self.pages_sorted() {
            let page = self.pages.get_mut(&id).expect("listed");
            if page.chain.is_empty() {
                continue;
            }
            self.arena
                .blocks(page.chain)
                .for_each(|block| spill.push(block));
            let piece = spill.end_piece(page.last_piece)?;
            page.last_piece = piece;
            if page.first_piece == NO_PIECE {
                page.first_piece = piece;
            }
            page.chain = Chain::EMPTY;
        }
        spill.flush()?;
        self.spill = Some(spill);
        self.arena.clear();
        Ok(())
    }
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

/// First page of a space that a set of pages names, for messages.
pub(super) fn any_page_of(index: &RedoIndex, space: SpaceId) -> PageId {
    let page = index.pages().filter(|id| id.space == space).min();
    page.unwrap_or(PageId::new(space, PageNo(0)))
}

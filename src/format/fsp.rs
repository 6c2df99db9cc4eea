//! Tablespace flags, geometry and the space header (format-tablespace.md sections 3 and 4).

use std::fmt;
use std::mem::{offset_of, size_of};

use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::words::limits::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use crate::words::{Error, PageNo, Result, SegmentId, SpaceId};

use super::checksum::Flavour;
use super::fil;
use super::list::ListBase;

/// FSP_SPACE_FLAGS: how the pages of a tablespace are laid out. Fixed at creation.
///
/// | bits  | full_crc32 (bit 4 = 1)         | crc32 (bit 4 = 0)                            |
/// |-------|--------------------------------|----------------------------------------------|
/// | 0-3   | page size = 512 << n           | 0: atomic BLOBs exist; 1-4: zip size, 512<<n |
/// | 5-7   | PAGE_COMPRESSED algorithm      | 5: atomic BLOBs; 6-9: page size, 0 = 16 KiB  |
/// | 8-31  | 0                              | 16: PAGE_COMPRESSED                          |
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpaceFlags(u32);

const FULL_CRC32: u32 = 1 << 4;
const POST_ANTELOPE: u32 = 1;
const ATOMIC_BLOBS: u32 = 1 << 5;
/// Set by other versions for DATA DIRECTORY; ignored.
const FOREIGN_DATA_DIR: u32 = 1 << 10;
const PAGE_COMPRESSED: u32 = 1 << 16;

impl SpaceFlags {
    /// Checks flags read from page 0.
    pub fn parse(raw: u32) -> Result<SpaceFlags> {
        let flags = SpaceFlags(raw);
        let valid = if flags.is_full_crc32() {
            raw >> 8 == 0 && (3..=7).contains(&(raw & 15)) && raw >> 5 & 7 <= 6
        } else {
            flags.is_valid_crc32()
        };
        if valid {
            return Ok(flags);
        }
        if raw & FULL_CRC32 == 0 && raw & (3 << 13) != 0 {
            return Err(Error::unsupported(format!(
                "tablespace flags {raw:#x} of MySQL 5.7 or 8.0"
            )));
        }
        Err(Error::corrupt_bytes(format!("tablespace flags {raw:#x}")))
    }

    /// Flags of a new full_crc32 file.
    pub fn full_crc32(page_size: usize) -> SpaceFlags {
        SpaceFlags(FULL_CRC32 | size_shift(page_size))
    }

    /// Flags of a new crc32 file. `zip_size` = 0 if the file is not ROW_FORMAT=COMPRESSED.
    pub fn crc32(page_size: usize, zip_size: usize, atomic_blobs: bool) -> SpaceFlags {
        let mut raw = if page_size == 16384 {
            0
        } else {
            size_shift(page_size) << 6
        };
        if zip_size != 0 {
            raw |= size_shift(zip_size) << 1;
        }
        if atomic_blobs {
            raw |= POST_ANTELOPE | ATOMIC_BLOBS;
        }
        SpaceFlags(raw)
    }

    /// The flags of a file of a table with SYS_TABLES.TYPE `table`, in the flavour asked for.
    /// KEY_BLOCK_SIZE tables are never full_crc32.
    pub fn of_table(table: TableFlags, page_size: usize, full_crc32: bool) -> SpaceFlags {
        if full_crc32 && table.zip_size() == 0 {
            // The algorithm is not recorded in TYPE: zlib, the server's default.
            let algorithm = if table.is_page_compressed() {
                1 << 5
            } else {
                0
            };
            return SpaceFlags(SpaceFlags::full_crc32(page_size).0 | algorithm);
        }
        let mut flags = SpaceFlags::crc32(page_size, table.zip_size(), table.has_atomic_blobs());
        if table.is_page_compressed() {
            flags.0 |= PAGE_COMPRESSED;
        }
        flags
    }

    /// True if a file with these flags may hold a table of `table`'s TYPE: equal in what both
    /// record; files of the two flavours only need equal page sizes.
    pub fn match_table(self, table: TableFlags, page_size: usize) -> bool {
        let expected = SpaceFlags::of_table(table, page_size, self.is_full_crc32());
        if self.is_full_crc32() || expected.is_full_crc32() {
            return self.page_size() == expected.page_size()
                && self.zip_size() == expected.zip_size();
        }
        self.0 & !FOREIGN_DATA_DIR == expected.0
    }

    /// The flags as stored.
    pub fn raw(self) -> u32 {
        self.0
    }

    /// True for the full_crc32 flavour.
    pub fn is_full_crc32(self) -> bool {
        self.0 & FULL_CRC32 != 0
    }

    /// How pages are checksummed.
    pub fn flavour(self) -> Flavour {
        match (self.is_full_crc32(), self.zip_size()) {
            (true, _) => Flavour::FullCrc32,
            (false, 0) => Flavour::Crc32,
            (false, _) => Flavour::Zip,
        }
    }

    /// Logical page size in bytes: innodb_page_size of the instance that made the file.
    pub fn page_size(self) -> usize {
        let shift = if self.is_full_crc32() {
            self.0 & 15
        } else {
            self.0 >> 6 & 15
        };
        if shift == 0 { 16384 } else { 512 << shift }
    }

    /// ROW_FORMAT=COMPRESSED page size in bytes, or 0.
    pub fn zip_size(self) -> usize {
        match self.0 >> 1 & 15 {
            _ if self.is_full_crc32() => 0,
            0 => 0,
            shift => 512 << shift,
        }
    }

    /// True if pages are stored compressed with holes behind them.
    pub fn is_page_compressed(self) -> bool {
        if self.is_full_crc32() {
            self.0 >> 5 & 7 != 0
        } else {
            self.0 & PAGE_COMPRESSED != 0
        }
    }

    /// Page and extent sizes.
    pub fn geometry(self) -> Geometry {
        let physical = if self.zip_size() == 0 {
            self.page_size()
        } else {
            self.zip_size()
        };
        Geometry {
            logical: self.page_size() as u32,
            physical: physical as u32,
        }
    }

    fn is_valid_crc32(self) -> bool {
        let zip = self.0 >> 1 & 15;
        let page = self.0 >> 6 & 15;
        let page_shift = if page == 0 { 5 } else { page };
        let atomic = self.0 & ATOMIC_BLOBS != 0;
        self.0 & !(0x7FF | PAGE_COMPRESSED) == 0
            && matches!(page, 0 | 3 | 4 | 6 | 7)
            && zip <= page_shift.min(5)
            && (self.0 & POST_ANTELOPE != 0) == atomic
            && (zip == 0 || atomic)
    }
}

impl fmt::Debug for SpaceFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpaceFlags({:#x})", self.0)
    }
}

/// SYS_TABLES.TYPE: the row format of a table (format-tablespace.md section 7).
///
/// Bit 0 is always 1; 1-4 zip size; 5 atomic BLOBs (DYNAMIC, COMPRESSED); 6 DATA DIRECTORY;
/// 7 PAGE_COMPRESSED, 8-11 its level; 12-13 "no rollback" (sequences).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct TableFlags(u32);

impl TableFlags {
    /// Checks a TYPE read from SYS_TABLES.
    pub fn parse(raw: u32) -> Result<TableFlags> {
        let (zip, level) = (raw >> 1 & 15, raw >> 8 & 15);
        let atomic = raw & ATOMIC_BLOBS != 0;
        let compressed = raw & 1 << 7 != 0;
        if raw & 1 == 0
            || raw >> 14 != 0
            || zip > 5
            || zip != 0 && !atomic
            || level > 9
            || compressed != (level != 0)
            || !matches!(raw >> 12 & 3, 0 | 3)
        {
            return Err(Error::corrupt_bytes(format!("SYS_TABLES.TYPE {raw:#x}")));
        }
        Ok(TableFlags(raw))
    }

    /// The TYPE of a table of a plain row format.
    pub fn new(atomic_blobs: bool, zip_size: usize) -> TableFlags {
        let zip = if zip_size == 0 {
            0
        } else {
            size_shift(zip_size) << 1
        };
        TableFlags(1 | zip | if atomic_blobs { ATOMIC_BLOBS } else { 0 })
    }

    /// The TYPE as stored.
    pub fn raw(self) -> u32 {
        self.0
    }

    /// ROW_FORMAT=COMPRESSED page size in bytes, or 0.
    pub fn zip_size(self) -> usize {
        match self.0 >> 1 & 15 {
            0 => 0,
            shift => 512 << shift,
        }
    }

    /// True for DYNAMIC and COMPRESSED: off-page columns have no local prefix.
    pub fn has_atomic_blobs(self) -> bool {
        self.0 & ATOMIC_BLOBS != 0
    }

    /// True for PAGE_COMPRESSED tables.
    pub fn is_page_compressed(self) -> bool {
        self.0 & 1 << 7 != 0
    }
}

/// n with 512 << n = `bytes`. Panics if `bytes` is not a power of two from 1 KiB to 64 KiB.
fn size_shift(bytes: usize) -> u32 {
    assert!(
        bytes.is_power_of_two() && (1024..=PAGE_SIZE_MAX).contains(&bytes),
        "{bytes}"
    );
    bytes.trailing_zeros() - 9
}

/// Page and extent sizes of a tablespace, and where descriptors stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    logical: u32,
    physical: u32,
}

impl Geometry {
    /// A tablespace of uncompressed pages. Panics on a page size that does not exist.
    pub fn of_page_size(page_size: usize) -> Geometry {
        assert!(
            page_size.is_power_of_two() && (PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&page_size)
        );
        Geometry {
            logical: page_size as u32,
            physical: page_size as u32,
        }
    }

    /// Bytes of a page in the buffer pool.
    pub fn logical_bytes(self) -> usize {
        self.logical as usize
    }

    /// Bytes of a page in the file.
    pub fn physical_bytes(self) -> usize {
        self.physical as usize
    }

    /// Pages of an extent; computed from the logical size also in compressed files.
    pub fn extent_pages(self) -> u32 {
        if self.logical <= 16384 {
            (1 << 20) / self.logical
        } else {
            64
        }
    }

    /// Pages that one descriptor page describes.
    pub fn descriptor_interval(self) -> u32 {
        self.physical
    }

    /// Extents that one descriptor page describes.
    pub fn extents_per_descriptor_page(self) -> u32 {
        self.physical / self.extent_pages()
    }

    /// Bytes of an extent descriptor.
    pub fn xdes_bytes(self) -> usize {
        24 + self.extent_pages() as usize / 4
    }

    /// The page that holds the descriptor of `page`'s extent.
    pub fn descriptor_page(self, page: PageNo) -> PageNo {
        PageNo(page.0 & !(self.physical - 1))
    }

    /// Byte offset, in its page, of the descriptor of `page`'s extent.
    pub fn xdes_offset(self, page: PageNo) -> usize {
        let extent = (page.0 & (self.physical - 1)) / self.extent_pages();
        XDES_ARRAY + extent as usize * self.xdes_bytes()
    }

    /// First page of the extent whose descriptor stands at `offset` of `descriptor_page`, or
    /// `None` if no descriptor starts there.
    pub fn extent_at(self, descriptor_page: PageNo, offset: usize) -> Option<PageNo> {
        let at = offset.checked_sub(XDES_ARRAY)?;
        let extent = (at / self.xdes_bytes()) as u32;
        (at % self.xdes_bytes() == 0
            && extent < self.extents_per_descriptor_page()
            && self.is_descriptor_page(descriptor_page))
        .then(|| PageNo(descriptor_page.0 + extent * self.extent_pages()))
    }

    /// First page of `page`'s extent.
    pub fn extent_start(self, page: PageNo) -> PageNo {
        PageNo(page.0 & !(self.extent_pages() - 1))
    }

    /// True for pages 0, n*interval: space header or descriptors.
    pub fn is_descriptor_page(self, page: PageNo) -> bool {
        page.0 & (self.physical - 1) == 0
    }

    /// True for pages n*interval+1: change buffer bitmaps.
    pub fn is_bitmap_page(self, page: PageNo) -> bool {
        page.0 & (self.physical - 1) == 1
    }

    /// The change buffer bitmap page that describes `page`.
    pub fn bitmap_page(self, page: PageNo) -> PageNo {
        PageNo(self.descriptor_page(page).0 + 1)
    }

    /// Fragment slots of a segment inode.
    pub fn fragment_slots(self) -> u32 {
        self.extent_pages() / 2
    }

    /// Bytes of a segment inode.
    pub fn inode_bytes(self) -> usize {
        64 + 4 * self.fragment_slots() as usize
    }

    /// Segment inodes of an INODE page.
    pub fn inodes_per_page(self) -> usize {
        (self.physical as usize - 60) / self.inode_bytes()
    }
}

/// Offset of the space header in page 0.
pub const HEADER: usize = fil::HEADER_BYTES;
/// Bytes of the space header.
pub const HEADER_BYTES: usize = 112;
/// Offset of the extent descriptors in page 0 and in every descriptor page.
pub const XDES_ARRAY: usize = HEADER + HEADER_BYTES;

/// Page offset of the space id.
pub const OFF_SPACE_ID: usize = 38;
/// Page offset of the size in pages.
pub const OFF_SIZE: usize = 46;
/// Page offset of the first page whose extent is not initialised.
pub const OFF_FREE_LIMIT: usize = 50;
/// Page offset of the flags.
pub const OFF_FLAGS: usize = 54;
/// Page offset of the number of used pages in FREE_FRAG extents.
pub const OFF_FRAG_N_USED: usize = 58;
/// Page offset of the list of free extents.
pub const OFF_FREE: usize = 62;
/// Page offset of the list of extents whose pages are handed out singly.
pub const OFF_FREE_FRAG: usize = 78;
/// Page offset of the list of such extents without a free page.
pub const OFF_FULL_FRAG: usize = 94;
/// Page offset of the next unused segment id.
pub const OFF_NEXT_SEGMENT: usize = 110;
/// Page offset of the list of INODE pages without a free slot.
pub const OFF_INODES_FULL: usize = 118;
/// Page offset of the list of INODE pages with a free slot.
pub const OFF_INODES_FREE: usize = 134;

/// Space header, at offset 38 of page 0 (4.2). Every field changes with allocation but
/// `space_id` and `flags`; all are covered by the page checksum.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq, Debug,
)]
#[repr(C)]
pub struct SpaceHeader {
    /// Tablespace id, as in the page envelope.
    pub space_id: U32,
    /// Zero.
    pub unused: U32,
    /// Size in pages. The file may be longer, never shorter.
    pub size: U32,
    /// First page whose extent was not yet initialised.
    pub free_limit: U32,
    /// FSP_SPACE_FLAGS, see [`SpaceFlags`].
    pub flags: U32,
    /// Used pages in FREE_FRAG extents.
    pub frag_n_used: U32,
    /// Free extents.
    pub free: ListBase,
    /// Extents whose pages are handed out singly.
    pub free_frag: ListBase,
    /// Such extents without a free page.
    pub full_frag: ListBase,
    /// Next unused segment id, from 1.
    pub next_segment: U64,
    /// INODE pages without a free slot.
    pub inodes_full: ListBase,
    /// INODE pages with a free slot.
    pub inodes_free: ListBase,
}

const _: () = {
    assert!(size_of::<SpaceHeader>() == HEADER_BYTES);
    assert!(HEADER + offset_of!(SpaceHeader, size) == OFF_SIZE);
    assert!(HEADER + offset_of!(SpaceHeader, free_limit) == OFF_FREE_LIMIT);
    assert!(HEADER + offset_of!(SpaceHeader, flags) == OFF_FLAGS);
    assert!(HEADER + offset_of!(SpaceHeader, frag_n_used) == OFF_FRAG_N_USED);
    assert!(HEADER + offset_of!(SpaceHeader, free) == OFF_FREE);
    assert!(HEADER + offset_of!(SpaceHeader, free_frag) == OFF_FREE_FRAG);
    assert!(HEADER + offset_of!(SpaceHeader, full_frag) == OFF_FULL_FRAG);
    assert!(HEADER + offset_of!(SpaceHeader, next_segment) == OFF_NEXT_SEGMENT);
    assert!(HEADER + offset_of!(SpaceHeader, inodes_full) == OFF_INODES_FULL);
    assert!(HEADER + offset_of!(SpaceHeader, inodes_free) == OFF_INODES_FREE);
};

impl SpaceHeader {
    /// The header of a new, empty space.
    pub fn new(space: SpaceId, flags: SpaceFlags, size: u32) -> SpaceHeader {
        SpaceHeader {
            space_id: U32::new(space.0),
            unused: U32::new(0),
            size: U32::new(size),
            free_limit: U32::new(0),
            flags: U32::new(flags.0),
            frag_n_used: U32::new(0),
            free: ListBase::EMPTY,
            free_frag: ListBase::EMPTY,
            full_frag: ListBase::EMPTY,
            next_segment: U64::new(1),
            inodes_full: ListBase::EMPTY,
            inodes_free: ListBase::EMPTY,
        }
    }

    /// Reads the header of page 0 and checks that its ids agree and its flags are known.
    /// Lists are not checked: they are when they are walked.
    pub fn parse(page: &[u8]) -> Result<SpaceHeader> {
        let header: SpaceHeader = super::list::read(page, HEADER)?;
        SpaceFlags::parse(header.flags.get())?;
        if header.space_id() != fil::space_id(page) {
            return Err(Error::corrupt_bytes(format!(
                "page 0 belongs to space {} and to space {}",
                fil::space_id(page),
                header.space_id()
            )));
        }
        Ok(header)
    }

    /// Writes the header into page 0. Panics if `page` is too short.
    pub fn write(&self, page: &mut [u8]) {
        page[HEADER..XDES_ARRAY].copy_from_slice(self.as_bytes());
    }

    /// The tablespace.
    pub fn space_id(&self) -> SpaceId {
        SpaceId(self.space_id.get())
    }

    /// The flags; an error if they are not known.
    pub fn flags(&self) -> Result<SpaceFlags> {
        SpaceFlags::parse(self.flags.get())
    }

    /// First page whose extent was not yet initialised.
    pub fn free_limit(&self) -> PageNo {
        PageNo(self.free_limit.get())
    }

    /// Next unused segment id.
    pub fn next_segment(&self) -> SegmentId {
        SegmentId(self.next_segment.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_seen_in_stock_files_mean_what_the_reference_says() {
        let of = |raw| SpaceFlags::parse(raw).unwrap();
        assert_eq!(of(0x15), SpaceFlags::full_crc32(16384));
        assert_eq!(of(0x13).page_size(), 4096);
        assert_eq!(of(0x17).page_size(), 65536);
        assert!(of(0x35).is_page_compressed());
        assert_eq!(of(0), SpaceFlags::crc32(16384, 0, false));
        assert_eq!(of(0x21), SpaceFlags::crc32(16384, 0, true));
        assert_eq!(of(0x29), SpaceFlags::crc32(16384, 8192, true));
        assert_eq!(of(0x29).geometry().physical_bytes(), 8192);
        assert_eq!(of(0x29).flavour(), Flavour::Zip);
        assert!(of(0x10021).is_page_compressed());
        for bad in [
            0x10, 0x18, 0xF5, 0x115, 1, 0x20, 0x8, 0x2D, 0x140, 0x800, 0x80000000,
        ] {
            assert!(SpaceFlags::parse(bad).is_err(), "{bad:#x}");
        }
        assert!(matches!(
            SpaceFlags::parse(0x4021),
            Err(Error::Unsupported(_))
        ));
    }

    #[test]
    fn table_types_lead_to_the_flags_of_their_files() {
        let dynamic = TableFlags::parse(33).unwrap();
        let compressed = TableFlags::parse(41).unwrap();
        assert_eq!(TableFlags::new(true, 8192), compressed);
        assert_eq!(SpaceFlags::of_table(dynamic, 16384, true).raw(), 0x15);
        assert_eq!(SpaceFlags::of_table(dynamic, 16384, false).raw(), 0x21);
        assert_eq!(SpaceFlags::of_table(compressed, 16384, true).raw(), 0x29);
        let full = SpaceFlags::full_crc32(16384);
        assert!(full.match_table(dynamic, 16384));
        assert!(!full.match_table(dynamic, 8192));
        assert!(!full.match_table(compressed, 16384));
        assert!(SpaceFlags(0x421).match_table(dynamic, 16384));
        assert!(!SpaceFlags(0x0).match_table(dynamic, 16384));
        for bad in [0, 32, 9, 0x81, 0x101, 0x1001, 0x4001] {
            assert!(TableFlags::parse(bad).is_err(), "{bad:#x}");
        }
    }

    #[test]
    fn geometry_agrees_with_the_reference_for_every_page_size() {
        for (page_size, extent, xdes, inode) in [
            (4096, 256, 88, 576),
            (8192, 128, 56, 320),
            (16384, 64, 40, 192),
            (32768, 64, 40, 192),
        ] {
            let g = Geometry::of_page_size(page_size);
            assert_eq!(g.extent_pages(), extent);
            assert_eq!(g.xdes_bytes(), xdes);
            assert_eq!(g.inode_bytes(), inode);
        }
        let g = Geometry::of_page_size(16384);
        assert_eq!(g.inodes_per_page(), 85);
        assert_eq!(g.xdes_offset(PageNo(64)), 190);
        assert_eq!(g.descriptor_page(PageNo(16384 + 70)), PageNo(16384));
        assert_eq!(g.extent_at(PageNo(16384), 190), Some(PageNo(16384 + 64)));
        assert_eq!(g.extent_at(PageNo(0), 191), None);
        assert_eq!(g.extent_at(PageNo(0), 150 + 256 * 40), None);
        assert!(g.is_bitmap_page(PageNo(16385)));
    }
}

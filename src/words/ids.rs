//! Identifiers, each a type of its own.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// A tablespace: 0 is the system tablespace, `SpaceId::TEMPORARY` the temporary one.
    SpaceId(u32)
);
id!(
    /// A page's number within its tablespace.
    PageNo(u32)
);
id!(
    /// A byte position in the redo log; 0 means "none".
    Lsn(u64)
);
id!(
    /// A transaction's identifier, 48 bits on disk.
    TrxId(u64)
);
id!(
    /// A transaction's commit number, drawn from the same counter as `TrxId`.
    TrxNo(u64)
);
id!(
    /// The number of an undo record within its transaction, counted from 0.
    UndoNo(u64)
);
id!(
    /// A table, as SYS_TABLES.ID names it.
    TableId(u64)
);
id!(
    /// An index, as SYS_INDEXES.ID and PAGE_INDEX_ID name it.
    IndexId(u64)
);
id!(
    /// A file segment; 0 marks an unused inode slot.
    SegmentId(u64)
);
id!(
    /// A record's number in its page's heap: 0 infimum, 1 supremum, users from 2.
    HeapNo(u16)
);
id!(
    /// A rollback segment: its slot in the TRX_SYS page, 0..128.
    RsegId(u8)
);
id!(
    /// A session of the host.
    SessionId(u64)
);

impl SpaceId {
    /// The system tablespace, ibdata1.
    pub const SYSTEM: SpaceId = SpaceId(0);
    /// The temporary tablespace, ibtmp1: recreated at each start, never logged.
    pub const TEMPORARY: SpaceId = SpaceId(0xFFFF_FFFE);
    /// User tablespaces have ids below this one.
    pub const UPPER_BOUND: SpaceId = SpaceId(0xFFFF_FFF0);
}

impl PageNo {
    /// "No page" in lists and links on disk.
    pub const NONE: PageNo = PageNo(0xFFFF_FFFF);

    /// `None` for the on-disk "no page".
    pub fn some(self) -> Option<PageNo> {
        (self != PageNo::NONE).then_some(self)
    }
}

impl HeapNo {
    /// The record before all others.
    pub const INFIMUM: HeapNo = HeapNo(0);
    /// The record after all others.
    pub const SUPREMUM: HeapNo = HeapNo(1);
}

/// A page of a tablespace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PageId {
    /// The tablespace.
    pub space: SpaceId,
    /// The page in it.
    pub page: PageNo,
}

impl PageId {
    /// Names page `page` of tablespace `space`.
    pub const fn new(space: SpaceId, page: PageNo) -> PageId {
        PageId { space, page }
    }

    /// Both halves in one word, for atomics and hashing.
    pub const fn to_u64(self) -> u64 {
        (self.space.0 as u64) << 32 | self.page.0 as u64
    }

    /// The reverse of `to_u64`.
    pub const fn from_u64(word: u64) -> PageId {
        PageId {
            space: SpaceId((word >> 32) as u32),
            page: PageNo(word as u32),
        }
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[space {}, page {}]", self.space, self.page)
    }
}

/// DB_ROLL_PTR, 56 bits: where the undo record of a row version stands.
///
/// | bits  | meaning                                             |
/// |-------|-----------------------------------------------------|
/// | 55    | 1 = the row was inserted: there is no older version |
/// | 48-54 | rollback segment                                    |
/// | 16-47 | page                                                |
/// | 0-15  | offset of the undo record in the page               |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RollPtr(pub u64);

impl RollPtr {
    /// What a row carries that needs no undo (format-tablespace.md 17.5).
    pub const NO_UNDO: RollPtr = RollPtr(1 << 55);

    /// Packs the parts.
    pub fn new(is_insert: bool, rseg: RsegId, page: PageNo, offset: u16) -> RollPtr {
        RollPtr(
            (is_insert as u64) << 55
                | (rseg.0 as u64 & 0x7F) << 48
                | (page.0 as u64) << 16
                | offset as u64,
        )
    }

    /// True if the row has no older version.
    pub fn is_insert(self) -> bool {
        self.0 >> 55 & 1 == 1
    }

    /// The rollback segment.
    pub fn rseg(self) -> RsegId {
        RsegId((self.0 >> 48 & 0x7F) as u8)
    }

    /// The undo page, in the rollback segment's tablespace.
    pub fn page(self) -> PageNo {
        PageNo((self.0 >> 16) as u32)
    }

    /// The offset of the undo record in its page.
    pub fn offset(self) -> u16 {
        self.0 as u16
    }
}

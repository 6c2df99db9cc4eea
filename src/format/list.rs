//! Lists whose nodes live in pages (format-tablespace.md 4.1).
//!
//! A list is named by its base node; a node is addressed by page and byte offset *of the node*.
//! Only the layout stands here; linking and walking, which touch several pages, stand in `extent`
//! and `undo`.

use std::fmt;
use std::mem::size_of;

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::words::{Error, PageNo, Result};

/// Bytes of an address.
pub const ADDR_BYTES: usize = 6;
/// Bytes of a base node.
pub const BASE_BYTES: usize = 16;
/// Bytes of a node.
pub const NODE_BYTES: usize = 12;
/// Within a base node: the length.
pub const BASE_LEN: usize = 0;
/// Within a base node: the first node's address.
pub const BASE_FIRST: usize = 4;
/// Within a base node: the last node's address.
pub const BASE_LAST: usize = 10;
/// Within a node: the previous node's address.
pub const NODE_PREV: usize = 0;
/// Within a node: the next node's address.
pub const NODE_NEXT: usize = 6;

/// Where a list node stands: page (4) and byte offset in it (2).
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct FilAddr {
    page: U32,
    offset: U16,
}

impl FilAddr {
    /// "No node": the ends of a list.
    pub const NONE: FilAddr = FilAddr {
        page: U32::new(u32::MAX),
        offset: U16::new(0),
    };

    /// The node at `offset` of `page`.
    pub const fn new(page: PageNo, offset: u16) -> FilAddr {
        FilAddr {
            page: U32::new(page.0),
            offset: U16::new(offset),
        }
    }

    /// Page of the node; `PageNo::NONE` if there is no node.
    pub fn page(self) -> PageNo {
        PageNo(self.page.get())
    }

    /// Byte offset of the node in its page, unchecked: it may lie anywhere.
    pub fn offset(self) -> usize {
        self.offset.get() as usize
    }

    /// `None` if there is no node.
    pub fn some(self) -> Option<FilAddr> {
        (self.page() != PageNo::NONE).then_some(self)
    }

    /// Reads an address from `bytes` at `at`.
    pub fn parse(bytes: &[u8], at: usize) -> Result<FilAddr> {
        read(bytes, at)
    }

    /// The address as bytes.
    pub fn to_bytes(self) -> [u8; ADDR_BYTES] {
        zerocopy::transmute!(self)
    }
}

impl fmt::Debug for FilAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.some() {
            Some(_) => write!(f, "{}:{}", self.page, self.offset),
            None => f.write_str("none"),
        }
    }
}

/// No list is longer: there are fewer extents, and fewer transactions that purge has left behind. So
/// that one may be added to what a page says.
const NODES_MAX: u32 = u32::MAX / 2;

/// Base node: number of nodes, first, last.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq, Debug,
)]
#[repr(C)]
pub struct ListBase {
    len: U32,
    /// First node, or NONE.
    pub first: FilAddr,
    /// Last node, or NONE.
    pub last: FilAddr,
}

impl ListBase {
    /// A list without nodes.
    pub const EMPTY: ListBase = ListBase {
        len: U32::new(0),
        first: FilAddr::NONE,
        last: FilAddr::NONE,
    };

    /// A list of `len` nodes.
    pub const fn new(len: u32, first: FilAddr, last: FilAddr) -> ListBase {
        ListBase {
            len: U32::new(len),
            first,
            last,
        }
    }

    /// Number of nodes that the base claims.
    pub fn count(&self) -> u32 {
        self.len.get()
    }

    /// Reads a base node; refuses one whose length and ends contradict each other, and a length that
    /// no list can have.
    pub fn parse(bytes: &[u8], at: usize) -> Result<ListBase> {
        let base: ListBase = read(bytes, at)?;
        let empty = base.count() == 0;
        let possible = base.count() <= NODES_MAX;
        if base.first.some().is_none() != empty || base.last.some().is_none() != empty || !possible
        {
            return Err(Error::corrupt_bytes(format!("list base {base:?} at {at}")));
        }
        Ok(base)
    }

    /// The base node as bytes.
    pub fn to_bytes(self) -> [u8; BASE_BYTES] {
        zerocopy::transmute!(self)
    }
}

/// Node: previous and next.
#[derive(
    FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, PartialEq, Eq, Debug,
)]
#[repr(C)]
pub struct ListNode {
    /// Previous node, or NONE.
    pub prev: FilAddr,
    /// Next node, or NONE.
    pub next: FilAddr,
}

impl ListNode {
    /// The node of a list's only element.
    pub const ALONE: ListNode = ListNode {
        prev: FilAddr::NONE,
        next: FilAddr::NONE,
    };

    /// Reads a node.
    pub fn parse(bytes: &[u8], at: usize) -> Result<ListNode> {
        read(bytes, at)
    }

    /// The node as bytes.
    pub fn to_bytes(self) -> [u8; NODE_BYTES] {
        zerocopy::transmute!(self)
    }
}

const _: () = {
    assert!(size_of::<FilAddr>() == ADDR_BYTES);
    assert!(size_of::<ListBase>() == BASE_BYTES);
    assert!(size_of::<ListNode>() == NODE_BYTES);
};

/// Copies a fixed layout out of `bytes` at an offset that may come from disk.
pub(crate) fn read<T: FromBytes + Unaligned>(bytes: &[u8], at: usize) -> Result<T> {
    bytes
        .get(at..)
        .and_then(|tail| T::read_from_prefix(tail).ok())
        .map(|(value, _)| value)
        .ok_or_else(|| Error::corrupt_bytes(format!("offset {at} leads out of the page")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_an_impossible_length_is_damage() {
        let node = FilAddr::new(PageNo(3), 150);
        let parse = |len| ListBase::parse(&ListBase::new(len, node, node).to_bytes(), 0);
        assert_eq!(parse(NODES_MAX).map(|base| base.count()), Ok(NODES_MAX));
        for len in [0, NODES_MAX + 1, u32::MAX] {
            assert!(matches!(parse(len), Err(Error::Corrupt(_))), "{len}");
        }
    }
}

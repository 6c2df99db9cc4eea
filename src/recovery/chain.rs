//! A page's entries as bytes: one for each mini-transaction, in the log's order, each told by its distance from
//! the one before. Chains of all pages share the memory of an arena, in blocks that grow with the chain.
//! An entry does not stand in two blocks, so whoever walks a chain copies nothing.

use crate::os::slab::Slab;
use crate::words::{Error, Lsn, Result, be};

/// Head of a block: the next one (8), bytes in use behind the head (4), bytes behind the head (4).
const HEAD_BYTES: usize = 16;
/// First block of a chain, head included; each further one is twice as large, up to a limit.
const BLOCK_BYTES_MIN: usize = 64;
const BLOCK_BYTES_MAX: usize = 1024;
/// Memory is asked for in pieces of that size, or less if the arena may have little.
const SLAB_BYTES_MAX: usize = 4 << 20;
const SLAB_BYTES_MIN: usize = 256;
/// "No block".
const NOWHERE: u64 = u64::MAX;

/// One mini-transaction's records for one page, as the index has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Where the mini-transaction starts.
    pub start: Lsn,
    /// Its length, sequence bit and CRC included.
    pub len: u32,
    /// The records.
    pub content: Content<'a>,
}

/// Where records are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// These, all of the page.
    Here(&'a [u8]),
    /// Those of the page among the mini-transaction's records from this offset on, in the log.
    InLog(u32),
}

/// Where a page's entries stand in the arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    first: u64,
    last: u64,
}

impl Chain {
    pub(super) const EMPTY: Chain = Chain {
        first: NOWHERE,
        last: NOWHERE,
    };

    pub(super) fn is_empty(self) -> bool {
        self.first == NOWHERE
    }
}

/// The memory of all chains.
#[derive(Debug)]
pub(super) struct Arena {
    slabs: Vec<Slab>,
    /// How many of them have been begun: those behind it are empty.
    begun: usize,
    /// No chain has a block.
    is_empty: bool,
    slab_bytes: usize,
    bytes: usize,
    bytes_max: usize,
}

impl Arena {
    /// An arena of about `bytes_max` bytes at most.
    pub(super) fn with_limit(bytes_max: usize) -> Arena {
        Arena {
            slabs: Vec::new(),
            begun: 0,
            is_empty: true,
            slab_bytes: (bytes_max / 8).clamp(SLAB_BYTES_MIN, SLAB_BYTES_MAX),
            bytes: 0,
            bytes_max,
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an entry, in its coded form, to a chain. False if there is no room.
    ///
    /// Errors: `OutOfMemory`.
    pub(super) fn push(&mut self, chain: &mut Chain, entry: &[u8]) -> Result<bool> {
        let mut size = BLOCK_BYTES_MIN;
        if chain.last != NOWHERE {
            let block = self.block_mut(chain.last);
            let used = be::u32_at(block, 8) as usize;
            let room = be::u32_at(block, 12) as usize;
            if used + entry.len() <= room {
                block[HEAD_BYTES + used..][..entry.len()].copy_from_slice(entry);
                be::put_u32(block, 8, (used + entry.len()) as u32);
                return Ok(true);
            }
            size = ((HEAD_BYTES + room) * 2).min(BLOCK_BYTES_MAX);
        }
        let size = size.min(self.slab_bytes).max(HEAD_BYTES + entry.len());
        let Some(at) = self.new_block(size)? else {
            return Ok(false);
        };
        let block = self.block_mut(at);
        be::put_u64(block, 0, NOWHERE);
        be::put_u32(block, 8, entry.len() as u32);
        be::put_u32(block, 12, (size - HEAD_BYTES) as u32);
        block[HEAD_BYTES..][..entry.len()].copy_from_slice(entry);
        match chain.last {
            NOWHERE => chain.first = at,
            last => be::put_u64(self.block_mut(last), 0, at),
        }
        chain.last = at;
        Ok(true)
    }

    /// The bytes of a chain, block by block.
    pub(super) fn blocks(&self, chain: Chain) -> impl Iterator<Item = &[u8]> {
        let mut at = chain.first;
        std::iter::from_fn(move || {
            if at == NOWHERE {
                return None;
            }
            let (slab, offset) = split(at);
            let block = &self.slabs[slab][offset..];
            at = be::u64_at(block, 0);
            Some(&block[HEAD_BYTES..][..be::u32_at(block, 8) as usize])
        })
    }

    /// Forgets all chains; the memory is used again.
    pub(super) fn clear(&mut self) {
        self.slabs.iter_mut().for_each(Slab::clear);
        self.begun = 0;
        self.is_empty = true;
    }

    fn block_mut(&mut self, at: u64) -> &mut [u8] {
        let (slab, offset) = split(at);
        &mut self.slabs[slab][offset..]
    }

    fn new_block(&mut self, size: usize) -> Result<Option<u64>> {
        loop {
            if let Some(number) = self.begun.checked_sub(1) {
                let slab = &mut self.slabs[number];
                let offset = slab.len();
                if slab.extend_zeros(size) {
                    self.is_empty = false;
                    return Ok(Some((number as u64) << 32 | offset as u64));
                }
            }
            if self.begun == self.slabs.len() {
                let capacity = self.slab_bytes.max(size);
                if self.bytes + capacity > self.bytes_max && !self.is_empty {
                    return Ok(None);
                }
                self.slabs.push(Slab::reserve(capacity)?);
                self.bytes += capacity;
            }
            self.begun += 1;
        }
    }
}

fn split(at: u64) -> (usize, usize) {
    ((at >> 32) as usize, at as u32 as usize)
}

/// The coded form: distance from the start of the entry before, length, then twice the number of bytes that
/// follow, or twice the offset in the log and 1. Behind `out`'s begin.
pub(super) fn encode(entry: &Entry<'_>, before: Lsn, out: &mut Vec<u8>) {
    put_varint(out, entry.start.0.wrapping_sub(before.0));
    put_varint(out, entry.len.into());
    match entry.content {
        Content::Here(records) => {
            put_varint(out, (records.len() as u64) << 1);
            out.extend_from_slice(records);
        }
        Content::InLog(skip) => put_varint(out, u64::from(skip) << 1 | 1),
    }
}

/// Takes the first entry off `bytes`.
///
/// Errors: `Internal` for bytes that `encode` did not make.
pub(super) fn decode<'a>(bytes: &mut &'a [u8], before: Lsn) -> Result<Entry<'a>> {
    let broken = || Error::internal("recovery's index is broken");
    let mut number = || take_varint(bytes).ok_or_else(broken);
    let start = Lsn(before.0.wrapping_add(number()?));
    let len = number()? as u32;
    let coded = number()?;
    let content = match coded & 1 {
        1 => Content::InLog((coded >> 1) as u32),
        _ => {
            let records = bytes.split_at_checked((coded >> 1) as usize);
            let (records, rest) = records.ok_or_else(broken)?;
            *bytes = rest;
            Content::Here(records)
        }
    };
    Ok(Entry {
        start,
        len,
        content,
    })
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::tests::Random;

    #[test]
    fn chains_of_many_pages_keep_their_entries_and_stay_within_the_limit() {
        for seed in 1..20 {
            println!("seed {seed}");
            let mut random = Random::new(seed);
            let mut arena = Arena::with_limit(60_000);
            let mut chains = vec![(Chain::EMPTY, Lsn(7), Vec::new()); 20];
            let (mut lsn, mut rounds) = (7, 0);
            loop {
                lsn += random.below(100_000) as u64;
                let (chain, before, added) = &mut chains[random.below(20)];
                let mut records = vec![0; random.below(400)];
                random.fill(&mut records);
                let skip = random.below(1 << 20) as u32;
                let here = random.below(2) == 0;
                let content = match here {
                    true => Content::Here(&records),
                    false => Content::InLog(skip),
                };
                let stored = here.then(|| records.clone()).ok_or(skip);
                let entry = Entry {
                    start: Lsn(lsn),
                    len: random.below(1 << 20) as u32,
                    content,
                };
                let mut bytes = Vec::new();
                encode(&entry, *before, &mut bytes);
                if arena.push(chain, &bytes).expect("memory") {
                    *before = entry.start;
                    added.push((entry.start, entry.len, stored));
                    continue;
                }
                for (chain, _, added) in &chains {
                    let (mut found, mut before) = (Vec::new(), Lsn(7));
                    for mut block in arena.blocks(*chain) {
                        while !block.is_empty() {
                            let entry = decode(&mut block, before).expect("as encoded");
                            before = entry.start;
                            let content = match entry.content {
                                Content::Here(records) => Ok(records.to_vec()),
                                Content::InLog(skip) => Err(skip),
                            };
                            found.push((entry.start, entry.len, content));
                        }
                    }
                    assert_eq!(found, *added);
                }
                assert!(arena.bytes() <= 60_000 && arena.bytes() > 40_000);
                rounds += 1;
                if rounds == 3 {
                    break;
                }
                arena.clear();
                chains.fill((Chain::EMPTY, Lsn(7), Vec::new()));
            }
        }
    }

    #[test]
    fn bytes_that_are_no_entry_are_an_error() {
        let entry = Entry {
            start: Lsn(1 << 40),
            len: 300,
            content: Content::Here(b"records"),
        };
        let mut bytes = Vec::new();
        encode(&entry, Lsn(5), &mut bytes);
        for cut in 0..bytes.len() {
            assert!(decode(&mut &bytes[..cut], Lsn(5)).is_err(), "cut at {cut}");
        }
        assert_eq!(decode(&mut &bytes[..], Lsn(5)).expect("whole"), entry);
        assert!(decode(&mut &[0xFF; 20][..], Lsn(5)).is_err());
    }
}

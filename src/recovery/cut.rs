//! Cutting the log into stretches of whole mini-transactions, chunk by chunk as it is read. Only lengths and
//! sequence bits are looked at: that is quick, and can be done by one thread alone. The checksums, and
//! with them the log's true end, are for whoever parses the stretches.

use crate::format::redo_file::LogGeometry;
use crate::format::redo_frame::{Framing, frame_unchecked};
use crate::os::AlignedBuf;
use crate::words::Lsn;
use crate::words::limits::MTR_BYTES_MAX;

/// Room before a chunk for the mini-transaction that began in the chunk before: it is shorter.
const HEADROOM: usize = MTR_BYTES_MAX;

/// A piece of the log, as it was read.
pub(super) struct Chunk {
    /// Behind `HEADROOM` bytes.
    buffer: AlignedBuf,
    len: usize,
}

/// Whole mini-transactions.
pub(super) struct Stretch {
    chunk: Chunk,
    /// Where the first one starts, in the log and in the buffer.
    start: Lsn,
    at: usize,
    /// Where each of them ends, counted from `start`.
    ends: Vec<u32>,
}

/// Moves over the log.
pub(super) struct Cutter {
    geometry: LogGeometry,
    /// Start of the next mini-transaction.
    lsn: Lsn,
    /// What was read of it.
    tail: Vec<u8>,
}

impl Chunk {
    /// A buffer for chunks of up to `bytes`.
    pub(super) fn buffer(bytes: usize) -> AlignedBuf {
        AlignedBuf::new(HEADROOM + bytes)
    }

    /// Chunks that a buffer has room for.
    pub(super) fn room(buffer: &AlignedBuf) -> usize {
        buffer.len() - HEADROOM
    }

    /// A chunk of `len` bytes, which are to be read into `bytes_mut`.
    pub(super) fn new(buffer: AlignedBuf, len: usize) -> Chunk {
        Chunk { buffer, len }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[HEADROOM..HEADROOM + self.len]
    }
}

impl Stretch {
    /// Start, end and bytes of each mini-transaction, sequence bit and CRC included.
    pub(super) fn mtrs(&self) -> impl Iterator<Item = (Lsn, Lsn, &[u8])> {
        let mut from = 0;
        self.ends.iter().map(move |&end| {
            let start = std::mem::replace(&mut from, end);
            let bytes = &self.chunk.buffer[self.at + start as usize..self.at + end as usize];
            let lsn = |offset: u32| Lsn(self.start.0 + u64::from(offset));
            (lsn(start), lsn(end), bytes)
        })
    }

    /// The buffer, for another chunk.
    pub(super) fn into_buffer(self) -> AlignedBuf {
        self.chunk.buffer
    }
}

impl Cutter {
    pub(super) fn new(geometry: LogGeometry, lsn: Lsn) -> Cutter {
        Cutter {
            geometry,
            lsn,
            tail: Vec::new(),
        }
    }

    /// Where the last stretch ended.
    pub(super) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The mini-transactions that end in the chunk, which follows the last one. True if the log ends
    /// behind them.
    pub(super) fn cut(&mut self, mut chunk: Chunk) -> (Stretch, bool) {
        let (start, at) = (self.lsn, HEADROOM - self.tail.len());
        chunk.buffer[at..HEADROOM].copy_from_slice(&self.tail);
        let bytes = &chunk.buffer[at..HEADROOM + chunk.len];
        let (mut ends, mut from) = (Vec::new(), 0);
        let ended = loop {
            let seq_bit_at = |n: usize| self.geometry.seq_bit(Lsn(start.0 + (from + n) as u64));
            match frame_unchecked(&bytes[from..], seq_bit_at) {
                Framing::Mtr { total, .. } => {
                    from += total;
                    ends.push(from as u32);
                }
                other => break other != Framing::Incomplete,
            }
        };
        self.tail.clear();
        self.tail.extend_from_slice(&bytes[from..]);
        self.lsn = Lsn(start.0 + from as u64);
        let stretch = Stretch {
            chunk,
            start,
            at,
            ends,
        };
        (stretch, ended)
    }
}

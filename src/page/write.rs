//! The ways in which a page may change, so that one function serves pages that are logged and
//! plain bytes (a copy being rebuilt, a test).

use crate::format::redo_record::PageOp;
use crate::words::Result;
use crate::words::difference::next_run;

use super::apply;

/// A page that can be read and changed. A logged implementation appends each change to its
/// mini-transaction; none of these may fail once the change was checked.
pub trait PageWrite {
    /// The bytes as they are now.
    fn page(&self) -> &[u8];

    /// Replaces bytes at `offset`.
    fn write(&mut self, offset: usize, bytes: &[u8]);

    /// The same for bytes that are known to differ.
    fn write_run(&mut self, offset: usize, bytes: &[u8]) {
        self.write(offset, bytes);
    }

    /// Fills `len` bytes at `offset`.
    fn fill(&mut self, offset: usize, len: usize, byte: u8);

    /// Applies an operation of `apply`; an error has changed nothing.
    fn apply(&mut self, op: &PageOp<'_>) -> Result<()>;
}

impl PageWrite for [u8] {
    fn page(&self) -> &[u8] {
        self
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        self[offset..offset + len].fill(byte);
    }

    fn apply(&mut self, op: &PageOp<'_>) -> Result<()> {
        apply::apply(self, op)
    }
}

/// Runs of equal bytes shorter than this do not end a write: a record costs about as much.
const GAP: usize = 8;

/// Makes the page equal to `wanted`, from the index page header to the directory, writing only what
/// differs. Both have the same length, LSN and space id, so no run covers these.
pub fn write_difference(page: &mut (impl PageWrite + ?Sized), wanted: &[u8]) {
    let end = wanted.len() - crate::format::index_page::TRAILER_BYTES;
    let mut at = crate::format::index_page::TYPE;
    while let Some((start, stop)) = next_run(&page.page()[..end], &wanted[..end], at, GAP) {
        let run = &wanted[start..stop];
        if run.len() > GAP && run.iter().all(|&byte| byte == run[0]) {
            page.fill(start, run.len(), run[0]);
        } else {
            page.write_run(start, run);
        }
        at = stop;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_the_wanted_one() {
        let mut now = vec![0u8; 4096];
        let mut wanted = now.clone();
        wanted[100] = 1;
        wanted[105] = 2;
        wanted[200..300].fill(7);
        wanted[4087] = 9;
        write_difference(&mut now[..], &wanted);
        assert_eq!(now, wanted);
    }
}

//! What is fuzzed: one function for each kind of bytes that come from a disk, and one for calls over
//! the C ABI. Any bytes are right: none may panic, hang, or ask for memory without bound.
//!
//! The fuzz targets and `tests/fuzz`, which replays the corpus, share them.

pub mod calls;
mod logs;
mod pages;

/// A function that is fuzzed, by the name of its target and of its folder in corpus/.
pub type Entry = (&'static str, fn(&[u8]));

/// All that need nothing but bytes.
#[allow(dead_code, reason = "the targets name theirs")]
pub const ENTRIES: [Entry; 9] = [
    ("index_page", index_page),
    ("undo_page", undo_page),
    ("space_page", space_page),
    ("system_page", system_page),
    ("blob_page", blob_page),
    ("change_buffer", change_buffer),
    ("redo_records", redo_records),
    ("redo_file", redo_file),
    ("export_file", export_file),
];

pub use logs::{export_file, redo_file, redo_records};
pub use pages::{blob_page, change_buffer, index_page, space_page, system_page, undo_page};

/// Bytes of a large page.
pub const PAGE: usize = 16384;

/// The bytes as a page: of 4 KiB if they fit, else of 16 KiB; zeros behind.
fn page_of(bytes: &[u8]) -> Vec<u8> {
    let len = if bytes.len() <= 4096 { 4096 } else { PAGE };
    let mut page = vec![0; len];
    let n = bytes.len().min(len);
    page[..n].copy_from_slice(&bytes[..n]);
    page
}

/// The first `N` bytes, and the rest; zeros where there are none.
fn head<const N: usize>(data: &[u8]) -> ([u8; N], &[u8]) {
    let mut head = [0; N];
    let n = data.len().min(N);
    head[..n].copy_from_slice(&data[..n]);
    (head, &data[n..])
}

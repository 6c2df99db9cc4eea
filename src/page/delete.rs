//! Removing a record from a page.

use crate::format::record::COMPACT_EXTRA;
use crate::format::redo_record::PageOp;
use crate::schema::Index;
use crate::words::Result;

use super::layout::{self, RecOffset, corrupt};
use super::offsets::Offsets;
use super::write::PageWrite;

/// Removes the user record at `rec`; returns the record before it.
///
/// Its space goes to the free list, or back to the heap if it was the last one allocated. An error
/// has changed nothing.
pub fn delete(
    page: &mut (impl PageWrite + ?Sized),
    index: &Index,
    rec: RecOffset,
    offsets: &mut Offsets,
) -> Result<RecOffset> {
    let bytes = page.page();
    if layout::is_system(bytes, rec) {
        return Err(corrupt(bytes, "a delete of a system record"));
    }
    let prev = layout::previous(bytes, rec)?;
    offsets.compute(bytes, rec, index)?;
    let op = if index.compact {
        PageOp::DeleteDynamic {
            prev: prev.0.into(),
            header_bytes: (offsets.extra_size() - COMPACT_EXTRA) as u32,
            data_bytes: offsets.data_size() as u32,
        }
    } else {
        PageOp::DeleteRedundant {
            prev: prev.0.into(),
        }
    };
    page.apply(&op)?;
    Ok(prev)
}

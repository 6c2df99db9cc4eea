//! The two steps of a distributed commit on an undo log: PREPARED with an XID, and back.

use zerocopy::IntoBytes;

use crate::format::undo_page::{LOG_XID, LOG_XID_EXISTS, OFF_STATE, State, Xid};
use crate::mtr::{Mode, Mtr};
use crate::words::Result;

use super::latch;
use super::segment::UndoLog;

/// Marks the log PREPARED under `xid`. The mini-transaction holds no other latch.
///
/// Errors: what reading gives; nothing is changed then.
pub fn set(mtr: &mut Mtr<'_>, log: &UndoLog, xid: &Xid) -> Result<()> {
    let page = latch::undo_page(mtr, log.rseg.page(log.first), Mode::X)?;
    let header = log.header as usize;
    mtr.write_u16(page, OFF_STATE, State::Prepared as u16);
    mtr.write_u8(page, header + LOG_XID_EXISTS, 1);
    mtr.write(page, header + LOG_XID, xid.as_bytes());
    Ok(())
}

/// Marks the log ACTIVE again, before its rollback: a crash in the middle of that must not find it
/// prepared. The mini-transaction holds no other latch.
///
/// Errors: as `set`.
pub fn clear(mtr: &mut Mtr<'_>, log: &UndoLog) -> Result<()> {
    let page = latch::undo_page(mtr, log.rseg.page(log.first), Mode::X)?;
    mtr.write_u16(page, OFF_STATE, State::Active as u16);
    Ok(())
}

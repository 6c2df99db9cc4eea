//! Bringing up every page that waits, in file order. The engine could serve sessions meanwhile: a
//! page that is read first is brought up by that read.

use super::pending::Pending;
use crate::buffer::Mode;
use crate::mtr::PageCtx;
use crate::sync::Rank;
use crate::words::{Error, PageId, Result};

/// What a sweep did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Swept {
    /// Pages that are up to date now.
    pub pages: usize,
    /// Pages that are damaged: their tables will say so.
    pub damaged: usize,
    /// Pages that hold the checkpoint back, since they may be stale and look sound.
    pub stuck: usize,
}

/// Reads every page that waits. `stop` is asked between pages.
///
/// A damaged page is logged and left: whoever reads it gets the error. If what the file holds is
/// recognisably damaged, its records are given up; else they stay and no checkpoint passes them.
///
/// Errors: `Stopped`, `BufferPoolFull`, `Interrupted` when `stop` says so.
pub fn sweep(ctx: &PageCtx, pending: &Pending, stop: &dyn Fn() -> bool) -> Result<Swept> {
    let mut swept = Swept::default();
    for id in pending.pages() {
        if stop() {
            return Err(Error::Interrupted);
        }
        match bring_up(ctx, pending, id) {
            Ok(()) => swept.pages += 1,
            Err(error @ (Error::Stopped(_) | Error::BufferPoolFull)) => return Err(error),
            Err(error) => {
                log::error!("page {id} was not recovered: {error}");
                match is_damaged_in_file(ctx, id) {
                    true => {
                        pending.give_up(id);
                        swept.damaged += 1;
                    }
                    false => swept.stuck += 1,
                }
            }
        }
    }
    pending.shrink();
    Ok(swept)
}

fn bring_up(ctx: &PageCtx, pending: &Pending, id: PageId) -> Result<()> {
    let pin = ctx.pool.fetch(id)?;
    // Whoever creates the page now holds X until its mini-transaction is in the log.
    let guard = pin.latch(Mode::S, Rank::None)?;
    pending.settle(id);
    drop(guard);
    Ok(())
}

/// True if the file's bytes fail their checksum: they cannot be taken for the page later either.
fn is_damaged_in_file(ctx: &PageCtx, id: PageId) -> bool {
    use crate::format::checksum::{self, Content};
    let Some(space) = ctx.spaces.get(id.space) else {
        return false;
    };
    let mut page = crate::os::AlignedBuf::new(space.geometry().physical_bytes());
    match space.read_page(id.page, &mut page) {
        Ok(()) => !matches!(
            checksum::verify(&page, space.flags().flavour(), id),
            Ok(Content::Written)
        ),
        Err(Error::Corrupt(_)) => true,
        Err(_) => false,
    }
}

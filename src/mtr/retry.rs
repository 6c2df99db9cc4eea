//! The restart loop of protocol T4.

use super::ctx::PageCtx;
use super::mtr::{Budget, Mtr};
use crate::words::{Error, Lsn, Result};

/// Runs `work` in a mini-transaction and commits it. When `work` returns `WouldBlock` – a page must
/// be read, or a latch was taken against the order – everything is released, the page is read, and
/// `work` runs again in the same mtr; so `work` must not have changed a page before it returns that.
///
/// Any other error is returned; an error after the first change freezes the engine (C4), unless an
/// `attempt` took the change back.
///
/// `budget = None` runs a reader. Call with no latch held.
pub fn retry<'a, T>(
    ctx: &'a PageCtx,
    budget: Option<Budget>,
    mut work: impl FnMut(&mut Mtr<'a>) -> Result<T>,
) -> Result<(T, Lsn)> {
    let mut mtr = match budget {
        Some(budget) => Mtr::start(ctx, budget)?,
        None => Mtr::reader(ctx),
    };
    loop {
        match work(&mut mtr) {
            Ok(value) => return Ok((value, mtr.commit())),
            Err(Error::WouldBlock) => mtr.restart()?,
            Err(error) => return Err(error),
        }
    }
}

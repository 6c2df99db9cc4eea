//! The AUTO_INCREMENT counter in the clustered root page (format-tablespace.md section 22): the last
//! value handed out. Logged, not undone. Written under a U latch, beside readers.

use crate::format::index_page;
use crate::mtr::{Budget, Mode, PageCtx, retry};
use crate::page::layout;
use crate::sync::Rank;
use crate::tree::Tree;
use crate::words::Result;

const LOG_BYTES: usize = 64;

/// The last value handed out; 0 = none yet.
///
/// Errors: damage; what reading gives.
pub fn counter(ctx: &PageCtx, clustered: &Tree) -> Result<u64> {
    let (value, _) = retry(ctx, None, |mtr| {
        let root = mtr.get(clustered.root(), Mode::S, Rank::IndexPage)?;
        layout::check(mtr.view(root), clustered.index())?;
        Ok(layout::root_auto_inc(mtr.view(root)))
    })?;
    Ok(value)
}

/// Raises the counter to `last`, unless it is there already.
///
/// Errors: damage; what reading gives.
pub fn push_counter(ctx: &PageCtx, clustered: &Tree, last: u64) -> Result<()> {
    write(ctx, clustered, last, false)
}

/// Sets the counter, also to less than it was.
///
/// Errors: damage; what reading gives.
pub fn set_counter(ctx: &PageCtx, clustered: &Tree, last: u64) -> Result<()> {
    write(ctx, clustered, last, true)
}

fn write(ctx: &PageCtx, clustered: &Tree, last: u64, lower: bool) -> Result<()> {
    let budget = Budget::statement(LOG_BYTES);
    retry(ctx, Some(budget), |mtr| {
        let root = mtr.get(clustered.root(), Mode::U, Rank::IndexPage)?;
        layout::check(mtr.view(root), clustered.index())?;
        let now = layout::root_auto_inc(mtr.view(root));
        if now < last || lower && now != last {
            mtr.write_u64(root, index_page::MAX_TRX_ID, last);
        }
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mtr::Mtr;
    use crate::row::testing::Bed;
    use crate::sync::atomic::{AtomicU64, Ordering};

    /// The counter is on the root, which every insert passes.
    #[test]
    fn values_are_drawn_while_readers_hold_the_root_and_end_no_stamp() {
        let bed = Bed::new(512, true);
        let (ctx, tree) = (bed.ctx(), &bed.trees()[0]);
        let mut reader = Mtr::reader(ctx);
        let root = reader
            .get(tree.root(), Mode::S, Rank::IndexPage)
            .expect("the root");
        let before = reader.stamp_after(root);
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let value = 1 + next.fetch_add(1, Ordering::Relaxed);
                        push_counter(ctx, tree, value).expect("written beside the reader");
                    }
                });
            }
        });
        assert_eq!(reader.stamp_after(root), before);
        drop(reader);
        assert_eq!(counter(ctx, tree).expect("readable"), 1600);
        set_counter(ctx, tree, 7).expect("lowered");
        assert_eq!(counter(ctx, tree).expect("readable"), 7);
    }
}

//! What a row operation works with: the transaction, its patience, memory that is reused.

use std::time::Duration;

use super::codec::BlobQueue;
use super::entry::Fetched;
use super::observer::IndexObserver;
use super::offpage::BigValues;
use crate::lock::Wait;
use crate::mtr::{Budget, Class, Mtr, PageCtx};
use crate::page::Offsets;
use crate::schema::Tuple;
use crate::sync::Arc;
use crate::tree::{Guess, Tree};
use crate::trx::{Trx, TrxSystem};
use crate::undo::Needs;
use crate::words::{Error, Result};

/// What to do when a row is locked by somebody else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// `LockWaitTimeout` at once.
    NoWait,
    /// Leave the row out.
    SkipLocked,
    /// Wait at most so long.
    AtMost(Duration),
}

/// One statement's view of the engine.
pub struct Op<'e> {
    /// Pages.
    pub ctx: &'e PageCtx,
    /// The transactions of the engine, that of `trx` among them.
    pub sys: &'e TrxSystem,
    /// The transaction; started.
    pub trx: &'e mut Trx,
    /// For locks.
    pub patience: Patience,
    /// True once the session was interrupted. Called without latches.
    pub killed: &'e dyn Fn() -> bool,
    /// Told of changes in tables with FULLTEXT indexes.
    pub observer: Option<&'e Arc<dyn IndexObserver>>,
}

/// Memory of row operations, reused from row to row. One for each handle.
#[derive(Default)]
pub struct Workspace {
    pub(super) tree: crate::tree::Scratch,
    pub(super) offsets: Offsets,
    /// The clustered entry being written, or read from an old version.
    pub(super) row: Tuple,
    /// The same before an update.
    pub(super) old: Tuple,
    /// A secondary entry.
    pub(super) entry: Tuple,
    /// A secondary entry of the version before.
    pub(super) old_entry: Tuple,
    /// A clustered key.
    pub(super) key: Tuple,
    /// The clustered leaf that was visited last.
    pub(super) leaf: Guess,
    /// A secondary key.
    pub(super) prefix: Tuple,
    pub(super) fetched: Fetched,
    pub(super) old_fetched: Fetched,
    pub(super) big: BigValues,
    pub(super) blobs: BlobQueue,
    pub(super) versions: super::version::Versions,
    pub(super) ordering: super::undo_row::Ordering,
    /// The lock on the clustered record that was looked up last is a new one.
    pub(super) new_lock: bool,
    /// Changed clustered fields.
    pub(super) changed: Vec<u16>,
    /// The table on which the transaction is known to hold an intention lock.
    pub(super) intention: Option<(crate::lock::OwnerId, crate::words::TableId, bool)>,
}

/// Log bytes of a leaf's change beside the record itself: header, directory, a reorganisation.
const LEAF_LOG_BYTES: usize = 1 << 10;

/// What an attempt at a change came to.
pub(super) enum Step<T> {
    /// Done; the mini-transaction is to be committed.
    Done(T),
    /// Somebody holds a lock.
    Wait(Arc<Wait>),
    /// The leaf has no room, or would get too empty.
    Restructure,
    /// The undo record needs more than was reserved.
    Again,
}

/// How an attempt may change the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    /// On one leaf.
    Leaf,
    /// With a structure change.
    Restructure,
}

impl<'e> Op<'e> {
    /// Waits for a lock, with no latch held.
    ///
    /// Errors: `LockWaitTimeout`, also at once; `LockTableFull`, `Deadlock`, `Interrupted`, `Stopped`.
    pub(super) fn wait(&self, wait: &Arc<Wait>) -> Result<()> {
        let locks = &self.trx.system().locks;
        wait.check_refused()?;
        match self.patience {
            Patience::NoWait | Patience::SkipLocked => {
                locks.cancel(wait);
                Err(Error::LockWaitTimeout)
            }
            Patience::AtMost(timeout) => locks.wait(wait, timeout, self.killed),
        }
    }

    /// Errors: `Interrupted` if the session is to stop.
    pub(super) fn check_killed(&self) -> Result<()> {
        match (self.killed)() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Runs `attempt` until it is done: on one leaf first, with a structure change if it asks for
    /// that. Each attempt is one mini-transaction with room for an undo record of `undo_bytes` (0 =
    /// none) and a leaf record of `record_bytes`; it starts from nothing and checks everything.
    pub(super) fn change<T>(
        &mut self,
        tree: &Tree,
        undo_bytes: usize,
        record_bytes: usize,
        mut attempt: impl FnMut(&mut Trx, &mut Mtr<'e>, How) -> Result<Step<T>>,
    ) -> Result<T> {
        let mut how = How::Leaf;
        loop {
            let needs = match undo_bytes {
                0 => Needs::default(),
                len => self.trx.reserve_undo(self.ctx, len)?,
            };
            let leaf = 2 * record_bytes + LEAF_LOG_BYTES;
            match attempt_once(self, tree, how, Class::Statement, needs, leaf, &mut attempt)? {
                Step::Done(value) => return Ok(value),
                Step::Wait(wait) => self.wait(&wait)?,
                Step::Restructure => how = How::Restructure,
                Step::Again => {}
            }
        }
    }
}

fn attempt_once<'e, T>(
    op: &mut Op<'e>,
    tree: &Tree,
    how: How,
    class: Class,
    needs: Needs,
    leaf_bytes: usize,
    attempt: &mut impl FnMut(&mut Trx, &mut Mtr<'e>, How) -> Result<Step<T>>,
) -> Result<Step<T>> {
    let ctx = op.ctx;
    let trx = &mut *op.trx;
    run(ctx, tree, how, class, needs, leaf_bytes, |mtr, how| {
        attempt(trx, mtr, how)
    })
}

/// One mini-transaction of a change, restarted while pages must be read.
pub(super) fn run<'e, T>(
    ctx: &'e PageCtx,
    tree: &Tree,
    how: How,
    class: Class,
    needs: Needs,
    leaf_bytes: usize,
    mut attempt: impl FnMut(&mut Mtr<'e>, How) -> Result<Step<T>>,
) -> Result<Step<T>> {
    let _space = match how {
        How::Leaf => None,
        How::Restructure => Some(tree.reserve_for_change(ctx, class)?),
    };
    let budget = match how {
        How::Leaf => Budget {
            log_bytes: leaf_bytes + needs.log_bytes + ctx.page_size(),
            frames: needs.frames,
            class,
        },
        How::Restructure => {
            let change = tree.change_budget(ctx, class);
            Budget {
                log_bytes: change.log_bytes + needs.log_bytes,
                frames: change.frames + needs.frames,
                class,
            }
        }
    };
    let mut mtr = Mtr::start(ctx, budget)?;
    loop {
        match attempt(&mut mtr, how) {
            Ok(Step::Done(value)) => {
                mtr.commit();
                return Ok(Step::Done(value));
            }
            Ok(other) => return Ok(other),
            Err(Error::WouldBlock) => mtr.restart()?,
            Err(error) => return Err(error),
        }
    }
}

/// As `Op::change` for those who take no locks and write no undo: rollback and purge.
pub(super) fn system_change<'e, T>(
    ctx: &'e PageCtx,
    tree: &Tree,
    record_bytes: usize,
    mut attempt: impl FnMut(&mut Mtr<'e>, How) -> Result<Step<T>>,
) -> Result<T> {
    let mut how = How::Leaf;
    let leaf = 2 * record_bytes + LEAF_LOG_BYTES;
    loop {
        let none = Needs::default();
        match run(ctx, tree, how, Class::System, none, leaf, &mut attempt)? {
            Step::Done(value) => return Ok(value),
            Step::Restructure => how = How::Restructure,
            Step::Wait(_) | Step::Again => {
                return Err(Error::internal("a change without undo asked for undo"));
            }
        }
    }
}

/// Turns the undo log's "reserve again" into a step, so that it is not taken for a missing page.
pub(super) fn again<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::WouldBlock) => Ok(None),
        Err(error) => Err(error),
    }
}

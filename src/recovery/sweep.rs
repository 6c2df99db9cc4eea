//! Bringing up every page that waits, in file order, several neighbours with one read. The engine
//! serves sessions meanwhile: a page that is read first is brought up by that read.

use super::pending::Pending;
use crate::buffer::Mode;
use crate::mtr::PageCtx;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Rank};
use crate::words::{Error, PageId, Result};

/// Bytes read at once. Whoever wants one of these pages meanwhile waits for all of them.
const RUN_BYTES: usize = 1 << 20;

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

/// The pages that wait, for one or more threads to read.
///
/// A damaged page is logged and left: whoever reads it gets the error. If what the file holds is
/// recognisably damaged, its records are given up; else they stay and no checkpoint passes them.
pub struct Sweep {
    /// In file order.
    pages: Vec<PageId>,
    /// How many of them are taken.
    taken: Mutex<usize>,
    swept: Mutex<Swept>,
    stopped: AtomicBool,
}

impl Sweep {
    /// Of the pages that wait now, and whose files are there.
    pub fn new(pending: &Pending) -> Sweep {
        Sweep {
            pages: pending.present_pages(),
            taken: Mutex::new(Rank::Leaf, 0),
            swept: Mutex::new(Rank::Leaf, Swept::default()),
            stopped: AtomicBool::new(false),
        }
    }

    /// `run` ends with the pages at hand: the others wait on, for the next start.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// True after `stop`.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Brings pages up until none is left that no other thread has taken. When the pool is full,
    /// waits for others to let go of pages, or not: as `wait_for_frames` says.
    ///
    /// Errors: `Stopped`, `BufferPoolFull`.
    pub fn run(
        &self,
        ctx: &PageCtx,
        pending: &Pending,
        wait_for_frames: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut own = Swept::default();
        let pages_max = (RUN_BYTES / ctx.page_size()).max(1);
        loop {
            let mut run = self.take_run(pages_max);
            if run.is_empty() {
                break;
            }
            while !run.is_empty() {
                let ahead = pending.read_ahead(run);
                let (part, rest) = run.split_at(ahead.count());
                self.bring_up(ctx, pending, part, wait_for_frames, &mut own)?;
                run = rest;
            }
        }
        self.swept.lock().add(own);
        pending.shrink();
        Ok(())
    }

    /// Brings up pages whose records are at hand.
    fn bring_up(
        &self,
        ctx: &PageCtx,
        pending: &Pending,
        mut run: &[PageId],
        wait_for_frames: &dyn Fn() -> bool,
        own: &mut Swept,
    ) -> Result<()> {
        while !run.is_empty() {
            let mut failed = Vec::new();
            let read = ctx.pool.read_run(run, |id, result| {
                if let Err(error) = result {
                    failed.push((id, error));
                }
            });
            let dealt_with = match read {
                Err(Error::BufferPoolFull) if wait_for_frames() => continue,
                read => read?,
            };
            let (done, rest) = run.split_at(dealt_with);
            for &id in done {
                let result = match failed.iter().position(|(other, _)| *other == id) {
                    Some(at) => Err(failed.swap_remove(at).1),
                    None => settle(ctx, pending, id, wait_for_frames),
                };
                self.note(ctx, pending, id, result, own)?;
            }
            pending.say_progress();
            run = rest;
        }
        Ok(())
    }

    /// Pages that stand side by side, as a rule; at most so many.
    fn take_run(&self, pages_max: usize) -> &[PageId] {
        let mut taken = self.taken.lock();
        if self.is_stopped() {
            return &[];
        }
        let rest = &self.pages[*taken..];
        let len = rest.len().min(pages_max);
        *taken += len;
        &rest[..len]
    }

    fn note(
        &self,
        ctx: &PageCtx,
        pending: &Pending,
        id: PageId,
        result: Result<()>,
        own: &mut Swept,
    ) -> Result<()> {
        match result {
            Ok(()) => own.pages += 1,
            Err(error @ (Error::Stopped(_) | Error::BufferPoolFull)) => return Err(error),
            // Freed meanwhile, or its table was dropped: nobody waits for it.
            Err(_) if !pending.has(id) => {}
            Err(error) => {
                log::error!("page {id} was not recovered: {error}");
                match is_damaged_in_file(ctx, id) {
                    true => {
                        pending.give_up(id);
                        own.damaged += 1;
                    }
                    false => own.stuck += 1,
                }
            }
        }
        Ok(())
    }

    /// What the threads that ended did.
    pub fn swept(&self) -> Swept {
        *self.swept.lock()
    }
}

impl Swept {
    fn add(&mut self, other: Swept) {
        self.pages += other.pages;
        self.damaged += other.damaged;
        self.stuck += other.stuck;
    }
}

/// The page was read, by us or by others before. Most have left the list by that; one that was created
/// meanwhile has not.
fn settle(
    ctx: &PageCtx,
    pending: &Pending,
    id: PageId,
    wait_for_frames: &dyn Fn() -> bool,
) -> Result<()> {
    if !pending.has(id) {
        return Ok(());
    }
    let pin = loop {
        match ctx.pool.fetch(id) {
            Err(Error::BufferPoolFull) if wait_for_frames() => {}
            other => break other?,
        }
    };
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

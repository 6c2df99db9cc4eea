//! The end of an mtr that did not commit: release, or freeze (C4, M5).

use super::ctx::{PageCtx, Scratch};
use super::mtr::{Kind, Mtr};

/// Between a change outside any mtr's reach and its record – for callers that must do several
/// steps of which a panic may not see only some – a panic freezes the engine.
pub struct CriticalSection<'a> {
    ctx: &'a PageCtx,
    what: &'static str,
}

impl<'a> CriticalSection<'a> {
    /// Begins; `what` goes into the message.
    pub fn enter(ctx: &'a PageCtx, what: &'static str) -> CriticalSection<'a> {
        CriticalSection { ctx, what }
    }
}

impl Drop for CriticalSection<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.ctx.freeze(self.what);
        }
    }
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        if self.modified {
            // Before the latches go, which would let others see and write half a change.
            let why = match std::thread::panicking() {
                true => "panic with page changes that the log does not tell",
                false => "page changes were given up that the log does not tell",
            };
            self.ctx.freeze(why);
            for slot in self.scratch.memo.iter_mut().filter(|slot| slot.modified) {
                slot.guard.poison();
            }
        }
        self.scratch.memo.release_all();
        if self.kind != Kind::Reader {
            let scratch = std::mem::replace(&mut self.scratch, Scratch::empty());
            self.ctx.give_back(scratch);
        }
    }
}

//! Forgetting the pages of a dropped tablespace.

use super::frame::{Load, NO_PAGE};
use super::pool::Pool;
use crate::space::State;
use crate::words::{PageId, SpaceId};
use std::time::Duration;

impl Pool {
    /// Throws all pages of a tablespace out, dirty ones unwritten, with what recovery keeps for them.
    /// Nobody may use the tablespace any more, but for the cleaner and recovery's sweep, which are
    /// waited for (F3), and for read-ahead: a page that it still brings in is clean, belongs to nobody,
    /// and goes as any cold page does. Call it with no latch held.
    pub fn discard_space(&self, space: SpaceId) {
        if let Some(hook) = self.hook.get() {
            hook.on_drop(space);
        }
        self.forget_kept(space);
        self.discard(|id| id.space == space);
    }

    fn discard(&self, wanted: impl Fn(PageId) -> bool) {
        // No page slips by while frames are looked at.
        let _no_moves = self.resizer.hold_still();
        for at in 0..self.used_frames().len() as u32 {
            let frame = self.frame(at);
            while frame.id_word() != NO_PAGE && wanted(frame.id()) {
                if self.discard_frame(at, &wanted) {
                    break;
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// False if somebody still has the frame, or its page is being written.
    fn discard_frame(&self, at: u32, wanted: &impl Fn(PageId) -> bool) -> bool {
        let frame = self.frame(at);
        if !frame.try_own() {
            return false;
        }
        let gone = match frame.load() {
            Load::Ready if frame.id_word() != NO_PAGE && wanted(frame.id()) => {
                let space = self.spaces.get(frame.id().space);
                if space.is_some_and(|space| space.state() == State::Failed) {
                    self.flush_list.abandon(&self.frames, at);
                }
                // What changed while the page was in flight need not be written either.
                self.flush_list.forget(&self.frames, at)
            }
            // Another page took the frame meanwhile.
            _ => {
                frame.disown(0);
                return true;
            }
        };
        if !gone {
            frame.disown(0);
            return false;
        }
        self.leave(at);
        self.give_frame_back(at);
        true
    }
}

//! Forgetting pages: of a dropped tablespace, of a truncated end.

use super::frame::{Load, NO_PAGE};
use super::guard::Pin;
use super::pool::Pool;
use crate::space::State;
use crate::words::{PageId, PageNo, SpaceId};
use std::time::Duration;

impl Pool {
    /// Throws all pages of a tablespace out, dirty ones unwritten. Nobody may use the tablespace any
    /// more, but for the cleaner, which is waited for (F3). Call it with no latch held.
    pub fn discard_space(&self, space: SpaceId) {
        self.discard(|id| id.space == space);
    }

    /// The same for pages `from` and up: the file is cut there.
    pub fn discard_from(&self, space: SpaceId, from: PageNo) {
        self.discard(|id| id.space == space && id.page >= from);
    }

    fn discard(&self, wanted: impl Fn(PageId) -> bool) {
        for at in 0..self.frames.len() as u32 {
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

    /// Every page of `space` that is in the pool, pinned one after the other. For FOR EXPORT and
    /// checks.
    pub fn for_each_page(&self, space: SpaceId, mut see: impl FnMut(&Pin<'_>)) {
        for at in 0..self.frames.len() as u32 {
            let frame = self.frame(at);
            if frame.id_word() != NO_PAGE && frame.id().space == space && frame.try_pin() {
                let pin = Pin::adopt(self, at);
                if frame.load() == Load::Ready && pin.id().space == space {
                    see(&pin);
                }
            }
        }
    }
}

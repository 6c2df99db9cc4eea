//! Doubly linked lists through the frames' own links; whoever holds the list holds its mutex.

use super::frame::{Frame, NO_FRAME};
use crate::sync::atomic::{AtomicU32, Ordering};

/// Which pair of links a list runs through.
pub(super) trait Links {
    fn prev(frame: &Frame) -> &AtomicU32;
    fn next(frame: &Frame) -> &AtomicU32;
}

/// Links of the LRU and free lists.
pub(super) struct LruLinks;
/// Links of the flush lists.
pub(super) struct FlushLinks;

impl Links for LruLinks {
    fn prev(frame: &Frame) -> &AtomicU32 {
        &frame.lru_prev
    }
    fn next(frame: &Frame) -> &AtomicU32 {
        &frame.lru_next
    }
}

impl Links for FlushLinks {
    fn prev(frame: &Frame) -> &AtomicU32 {
        &frame.flush_prev
    }
    fn next(frame: &Frame) -> &AtomicU32 {
        &frame.flush_next
    }
}

/// A list of frames. Relaxed atomics: the mutex around the list orders them.
pub(super) struct List<L: Links> {
    head: u32,
    tail: u32,
    len: usize,
    _links: std::marker::PhantomData<fn() -> L>,
}

impl<L: Links> List<L> {
    pub(super) fn new() -> List<L> {
        List {
            head: NO_FRAME,
            tail: NO_FRAME,
            len: 0,
            _links: std::marker::PhantomData,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn head(&self) -> Option<u32> {
        (self.head != NO_FRAME).then_some(self.head)
    }

    pub(super) fn tail(&self) -> Option<u32> {
        (self.tail != NO_FRAME).then_some(self.tail)
    }

    pub(super) fn next(frames: &[Frame], at: u32) -> Option<u32> {
        let next = L::next(&frames[at as usize]).load(Ordering::Relaxed);
        (next != NO_FRAME).then_some(next)
    }

    pub(super) fn prev(frames: &[Frame], at: u32) -> Option<u32> {
        let prev = L::prev(&frames[at as usize]).load(Ordering::Relaxed);
        (prev != NO_FRAME).then_some(prev)
    }

    pub(super) fn push_head(&mut self, frames: &[Frame], at: u32) {
        self.insert_after(frames, None, at);
    }

    pub(super) fn push_tail(&mut self, frames: &[Frame], at: u32) {
        self.insert_after(frames, self.tail(), at);
    }

    /// Inserts `at` behind `before`, or at the head.
    pub(super) fn insert_after(&mut self, frames: &[Frame], before: Option<u32>, at: u32) {
        let after = match before {
            Some(before) => L::next(&frames[before as usize]).load(Ordering::Relaxed),
            None => self.head,
        };
        L::prev(&frames[at as usize]).store(before.unwrap_or(NO_FRAME), Ordering::Relaxed);
        L::next(&frames[at as usize]).store(after, Ordering::Relaxed);
        match before {
            Some(before) => L::next(&frames[before as usize]).store(at, Ordering::Relaxed),
            None => self.head = at,
        }
        match after {
            NO_FRAME => self.tail = at,
            after => L::prev(&frames[after as usize]).store(at, Ordering::Relaxed),
        }
        self.len += 1;
    }

    pub(super) fn remove(&mut self, frames: &[Frame], at: u32) {
        let prev = L::prev(&frames[at as usize]).load(Ordering::Relaxed);
        let next = L::next(&frames[at as usize]).load(Ordering::Relaxed);
        match prev {
            NO_FRAME => self.head = next,
            prev => L::next(&frames[prev as usize]).store(next, Ordering::Relaxed),
        }
        match next {
            NO_FRAME => self.tail = prev,
            next => L::prev(&frames[next as usize]).store(prev, Ordering::Relaxed),
        }
        self.len -= 1;
    }

    pub(super) fn pop_head(&mut self, frames: &[Frame]) -> Option<u32> {
        let head = self.head()?;
        self.remove(frames, head);
        Some(head)
    }
}

//! A set of heap numbers: one bit each, two words inline, grown when a page has more records.

use crate::words::HeapNo;

const INLINE_WORDS: usize = 2;

/// Heap numbers of one page.
#[derive(Clone, Debug, Default)]
pub(super) struct HeapSet {
    low: [u64; INLINE_WORDS],
    high: Vec<u64>,
}

impl HeapSet {
    fn word(&self, heap: HeapNo) -> u64 {
        let w = heap.0 as usize / 64;
        match w.checked_sub(INLINE_WORDS) {
            None => self.low[w],
            Some(i) => self.high.get(i).copied().unwrap_or(0),
        }
    }

    fn word_mut(&mut self, heap: HeapNo) -> &mut u64 {
        let w = heap.0 as usize / 64;
        match w.checked_sub(INLINE_WORDS) {
            None => &mut self.low[w],
            Some(i) => {
                if self.high.len() <= i {
                    self.high.resize(i + 1, 0);
                }
                &mut self.high[i]
            }
        }
    }

    pub(super) fn contains(&self, heap: HeapNo) -> bool {
        self.word(heap) >> (heap.0 % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, heap: HeapNo) {
        *self.word_mut(heap) |= 1 << (heap.0 % 64);
    }

    /// Takes `heap` out; true if it was in.
    pub(super) fn remove(&mut self, heap: HeapNo) -> bool {
        let was = self.contains(heap);
        if was {
            *self.word_mut(heap) &= !(1 << (heap.0 % 64));
        }
        was
    }

    pub(super) fn is_empty(&self) -> bool {
        self.low.iter().chain(&self.high).all(|w| *w == 0)
    }

    pub(super) fn len(&self) -> usize {
        self.low
            .iter()
            .chain(&self.high)
            .map(|w| w.count_ones() as usize)
            .sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = HeapNo> + '_ {
        self.low
            .iter()
            .chain(&self.high)
            .enumerate()
            .flat_map(|(i, word)| {
                let word = *word;
                (0..64u16)
                    .filter(move |b| word >> b & 1 == 1)
                    .map(move |b| HeapNo(i as u16 * 64 + b))
            })
    }
}

//! A page filled in key order, outside the pool: what sorted builds write.
//!
//! The bytes are those that inserts one after the other would leave, but for the directory: each slot
//! owns four records, as few as the format allows.

use crate::format::index_page as at;
use crate::format::record as header;
use crate::words::{IndexId, Result, SpaceId, TrxId, be};

use super::apply;
use super::layout::RecOffset;

/// A page under construction.
#[derive(Debug)]
pub struct PageBuilder {
    page: Vec<u8>,
    compact: bool,
    /// Origin of the last record, or the infimum.
    last: usize,
    top: usize,
    n_recs: usize,
    /// Records since the last one that owns a directory slot.
    unowned: u8,
    slots: usize,
}

impl PageBuilder {
    /// An empty page of `page_size` bytes in `space`. `max_trx_id` is for secondary leaves, else 0.
    pub fn new(
        page_size: usize,
        space: SpaceId,
        index: IndexId,
        level: u16,
        compact: bool,
        max_trx_id: TrxId,
    ) -> Result<PageBuilder> {
        let mut page = vec![0; page_size];
        apply::init_index(&mut page, compact)?;
        page[at::SPACE_ID..at::SPACE_ID + 4].copy_from_slice(&space.0.to_be_bytes());
        page[at::LEVEL..at::LEVEL + 2].copy_from_slice(&level.to_be_bytes());
        page[at::INDEX_ID..at::INDEX_ID + 8].copy_from_slice(&index.0.to_be_bytes());
        page[at::MAX_TRX_ID..at::MAX_TRX_ID + 8].copy_from_slice(&max_trx_id.0.to_be_bytes());
        let mut builder = PageBuilder {
            page,
            compact,
            last: 0,
            top: 0,
            n_recs: 0,
            unowned: 0,
            slots: 0,
        };
        builder.clear();
        Ok(builder)
    }

    /// No records any more; index, level and memory stay.
    pub fn clear(&mut self) {
        let frame = at::frame(self.compact);
        self.page[usize::from(frame.heap)..].fill(0);
        self.page[at::DATA..usize::from(frame.heap)].copy_from_slice(frame.system_records);
        (self.last, self.top) = (frame.infimum.into(), frame.heap.into());
        (self.n_recs, self.unowned, self.slots) = (0, 0, 1);
    }

    /// Records so far.
    pub fn n_recs(&self) -> usize {
        self.n_recs
    }

    /// True if a record of `size` bytes goes in and `reserve` bytes stay free.
    pub fn has_room(&self, size: usize, reserve: usize) -> bool {
        let heap = usize::from(at::frame(self.compact).heap);
        let room = at::empty_free_space(self.page.len(), self.compact);
        let used = self.top - heap + at::directory_reserve(self.n_recs + 1);
        let heap_no_left = self.n_recs + 2 <= usize::from(header::HEAP_NO_MAX);
        heap_no_left && used + size + reserve <= room
    }

    /// Appends a record, given with its header of `extra` bytes, that has room (`has_room`).
    pub fn push(&mut self, record: &[u8], extra: usize) {
        let (compact, origin) = (self.compact, self.top + extra);
        self.page[self.top..self.top + record.len()].copy_from_slice(record);
        self.top += record.len();
        self.n_recs += 1;
        let heap_no = self.n_recs as u16 + 1;
        let number_at = origin - if compact { 4 } else { 5 };
        let low = be::u16_at(&self.page, number_at) & 7;
        be::put_u16(&mut self.page, number_at, heap_no << 3 | low);
        header::set_next(&mut self.page, self.last, compact, origin);
        self.last = origin;
        self.unowned += 1;
        let owned = match self.unowned == at::OWNED_MIN {
            true => std::mem::take(&mut self.unowned),
            false => 0,
        };
        header::set_n_owned(&mut self.page, origin, compact, owned);
        if owned > 0 {
            self.put_slot(origin as u16);
        }
    }

    fn put_slot(&mut self, origin: u16) {
        let slot = at::slot_offset(self.page.len(), self.slots);
        be::put_u16(&mut self.page, slot, origin);
        self.slots += 1;
    }

    /// The whole page: links, checksum and LSN are the caller's. More records may follow only after
    /// `clear`.
    pub fn finish(&mut self) -> &[u8] {
        let frame = at::frame(self.compact);
        let (supremum, compact) = (frame.supremum, self.compact);
        header::set_next(&mut self.page, self.last, compact, supremum.into());
        header::set_n_owned(&mut self.page, supremum.into(), compact, self.unowned + 1);
        let first = at::slot_offset(self.page.len(), 0);
        be::put_u16(&mut self.page, first, frame.infimum);
        self.put_slot(supremum);
        let n_heap = (self.n_recs as u16 + 2) | if compact { at::COMPACT_BIT } else { 0 };
        let last = match self.n_recs {
            0 => 0,
            _ => self.last as u16,
        };
        let direction = match self.n_recs {
            0 => at::DIRECTION_NONE,
            _ => at::DIRECTION_RIGHT,
        };
        let page = &mut self.page;
        for (offset, value) in [
            (at::N_DIR_SLOTS, self.slots as u16),
            (at::HEAP_TOP, self.top as u16),
            (at::N_HEAP, n_heap),
            (at::LAST_INSERT, last),
            (at::INSTANT, direction.into()),
            (at::N_RECS, self.n_recs as u16),
        ] {
            be::put_u16(page, offset, value);
        }
        &self.page
    }

    /// The first record of a finished page that is not empty.
    pub fn first(&self) -> RecOffset {
        let infimum = usize::from(at::frame(self.compact).infimum);
        RecOffset(header::next(&self.page, infimum, self.compact) as u16)
    }

    /// The bytes.
    pub fn page(&self) -> &[u8] {
        &self.page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::collation::BytesOnly;
    use crate::page::{Scratch, insert, layout, list, tests, validate};
    use crate::schema::Tuple;

    fn entry(id: u32) -> Tuple {
        let mut tuple = Tuple::new();
        tuple.push_bytes(&id.to_be_bytes());
        tuple.push_bytes(&[0; 6]);
        tuple.push_bytes(&[0; 7]);
        tuple.push_bytes(b"text");
        tuple.push_null();
        tuple.push_null();
        tuple
    }

    /// The same records in the same places as inserts leave; both pages are valid.
    #[test]
    fn a_built_page_has_what_inserts_would_leave() {
        for compact in [true, false] {
            let table = tests::table(compact);
            let index = table.clustered();
            for n in [1, 3, 4, 5, 8, 9, 100] {
                let mut scratch = Scratch::new();
                let mut built = PageBuilder::new(16384, SpaceId(0), index.id, 0, compact, TrxId(0))
                    .expect("a page");
                let mut inserted = vec![0; 16384];
                list::create(&mut inserted[..], index.id, 0, compact).expect("a page");
                let mut prev = layout::infimum(&inserted);
                for id in 0..n {
                    let tuple = entry(id);
                    scratch.image.build(index, &tuple).expect("a record");
                    let size = scratch.image.size();
                    assert!(built.has_room(size, 0));
                    built.push(scratch.image.bytes(), scratch.image.extra_size());
                    let rec = insert::insert(&mut inserted[..], index, prev, &tuple, &mut scratch);
                    prev = rec.expect("sound").expect("room");
                }
                built.finish();
                validate::validate(built.page(), index, &BytesOnly).expect("a valid page");
                assert_eq!(layout::n_recs(built.page()), n as usize);
                assert_eq!(built.first(), layout::first(&inserted).expect("sound"));
                assert_eq!(layout::heap_top(built.page()), layout::heap_top(&inserted));
                for (a, b) in layout::records(built.page()).zip(layout::records(&inserted)) {
                    let (a, b) = (a.expect("sound").at(), b.expect("sound").at());
                    assert_eq!(a, b);
                    assert_eq!(built.page()[a..a + 20], inserted[a..a + 20]);
                }
            }
        }
    }

    #[test]
    fn a_full_page_is_valid_and_used_again() {
        let table = tests::table(true);
        let index = table.clustered();
        let mut scratch = Scratch::new();
        let mut built =
            PageBuilder::new(4096, SpaceId(0), index.id, 0, true, TrxId(0)).expect("a page");
        for _ in 0..2 {
            for id in 0.. {
                scratch.image.build(index, &entry(id)).expect("a record");
                if !built.has_room(scratch.image.size(), 0) {
                    break;
                }
                built.push(scratch.image.bytes(), scratch.image.extra_size());
            }
            assert!(built.n_recs() > 80, "{}", built.n_recs());
            built.finish();
            validate::validate(built.page(), index, &BytesOnly).expect("a valid page");
            built.clear();
        }
    }
}

//! Allocation against a model, and its files against the independent checker.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::format::fsp;
use crate::format::inode::SegmentHeader;
use crate::mtr::testing::{SPACE, TestPages};
use crate::mtr::{Budget, Class, Mode, Mtr};
use crate::sync::Rank;
use crate::words::{Error, PageId, PageNo, be};

fn budget() -> Budget {
    Budget::statement(64 << 10).with_frames(8)
}

/// A table's tablespace as CREATE TABLE makes it, without segments.
fn new_space(pages: &TestPages) {
    pages.add_space(SPACE, 4);
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    create_space(&mut mtr, SPACE, 4).expect("a space");
    mtr.commit();
}

fn new_segment(pages: &TestPages) -> SegmentHeader {
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    let segment = create_segment(&mut mtr, SPACE).expect("a segment");
    mtr.commit();
    segment
}

fn new_page(pages: &TestPages, segment: SegmentHeader, hint: u32, direction: Direction) -> PageNo {
    let _room = reserve(&pages.ctx, SPACE, 1, 1, Class::Statement).expect("room");
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    let page = allocate_and_create(&mut mtr, segment, PageNo(hint), direction, Rank::IndexPage)
        .expect("a page");
    let number = mtr.page_id(page).page;
    mtr.commit();
    number
}

/// Runs the independent checker over the file of `SPACE`.
fn check_file(pages: &TestPages) {
    pages.ctx.pool.flush_all().expect("flush");
    let path = pages.ctx.spaces.find(SPACE).expect("open").path();
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/ibdump.py");
    let run = std::process::Command::new("python3")
        .args([tool, &path, "check"])
        .output();
    let run = run.expect("python3 runs");
    assert!(
        run.status.success(),
        "{}{}",
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr)
    );
}

#[test]
fn a_new_table_file_is_what_the_reference_makes() {
    let pages = TestPages::empty(16384, 64);
    new_space(&pages);
    let top = new_segment(&pages);
    let root = new_page(&pages, top, 0, Direction::None);
    let leaf = new_segment(&pages);
    assert_eq!((root, top.offset(), leaf.offset()), (PageNo(3), 50, 242));
    assert_eq!(leaf.page(), PageId::new(SPACE, PageNo(2)));
    let mut mtr = Mtr::reader(&pages.ctx);
    let h = mtr
        .get(pages.id(0), Mode::S, Rank::FspPage)
        .expect("page 0");
    // format-tablespace.md 4.5, end: SIZE 4, FREE_LIMIT 64, FRAG_N_USED 4, FREE_FRAG (0:158), next
    // segment 3, INODES_FREE (2:38), four used bits.
    let page = mtr.view(h);
    let expected = "00000005 00000000 00000004 00000040 00000015 00000004 \
         00000000 ffffffff0000 ffffffff0000 00000001 00000000009e 00000000009e \
         00000000 ffffffff0000 ffffffff0000 0000000000000003 \
         00000000 ffffffff0000 ffffffff0000 00000001 000000020026 000000020026 \
         0000000000000000 ffffffff0000 ffffffff0000 00000002 aaffffffffffffffffffffffffffffff";
    let hex: String = page[38..190]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hex, expected.replace([' ', '\n'], ""));
    drop(mtr);
    check_file(&pages);
}

/// What should be allocated.
#[derive(Default)]
struct Model {
    segments: Vec<(SegmentHeader, BTreeSet<u32>)>,
    /// Owner of each page.
    owner: BTreeMap<u32, usize>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

impl Model {
    fn take(&mut self, pages: &TestPages, random: &mut Random) {
        let at = random.below(self.segments.len() as u64) as usize;
        let own = &self.segments[at].1;
        let hint = match random.below(3) {
            0 => 0,
            1 => own.last().map_or(0, |page| page + 1),
            _ => random.below(20_000) as u32,
        };
        let direction = [Direction::None, Direction::Up, Direction::Down];
        let direction = direction[random.below(3) as usize];
        let page = new_page(pages, self.segments[at].0, hint, direction).0;
        assert_eq!(
            self.owner.insert(page, at),
            None,
            "page {page} is handed out twice"
        );
        self.segments[at].1.insert(page);
    }

    fn give_back(&mut self, pages: &TestPages, random: &mut Random) {
        if self.owner.is_empty() {
            return;
        }
        let at = random.below(self.owner.len() as u64) as usize;
        let (&page, &owner) = self.owner.iter().nth(at).expect("below the length");
        let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
        free_page(&mut mtr, self.segments[owner].0, PageNo(page)).expect("freed");
        mtr.commit();
        self.owner.remove(&page);
        self.segments[owner].1.remove(&page);
    }

    fn check(&self, pages: &TestPages) {
        let mut mtr = Mtr::reader(&pages.ctx);
        for (segment, own) in &self.segments {
            let counted = segment_use(&mut mtr, *segment).expect("an inode");
            assert_eq!(counted.used as usize, own.len());
            mtr = Mtr::reader(&pages.ctx);
        }
        let size = pages.ctx.spaces.find(SPACE).expect("open").size_pages();
        for page in 0..size {
            let id = pages.id(page);
            let geometry = fsp::Geometry::of_page_size(pages.ctx.page_size());
            let own = geometry.is_descriptor_page(id.page) || geometry.is_bitmap_page(id.page);
            let free = is_page_free(&mut mtr, id).expect("a descriptor");
            if !own && page != 2 {
                let used = self.owner.contains_key(&page);
                // INODE pages beyond the first are used without being the model's.
                assert!(free != used || !free, "page {page}");
                assert!(!(free && used), "page {page} is in use and free");
            }
            mtr = Mtr::reader(&pages.ctx);
        }
    }
}

fn run_model(page_size: usize, steps: u32, takes_of_ten: u64, seed: u64) {
    println!("page size {page_size}, seed {seed}");
    let mut random = Random(seed);
    let pages = TestPages::empty(page_size, 256);
    new_space(&pages);
    let mut model = Model::default();
    for _ in 0..5 {
        model.segments.push((new_segment(&pages), BTreeSet::new()));
    }
    for step in 0..steps {
        match random.below(10) < takes_of_ten {
            true => model.take(&pages, &mut random),
            false => model.give_back(&pages, &mut random),
        }
        if step % (steps / 2) == 0 {
            model.check(&pages);
        }
    }
    model.check(&pages);
    check_file(&pages);
    // All of it is freed again, step by step.
    for (segment, own) in std::mem::take(&mut model.segments) {
        let mut steps = 0;
        loop {
            let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
            let done = free_segment_step(&mut mtr, segment, None).expect("a step");
            mtr.commit();
            steps += 1;
            assert!(steps <= own.len() + 10);
            if done {
                break;
            }
        }
    }
    model.owner.clear();
    model.check(&pages);
    check_file(&pages);
}

#[test]
fn random_allocation_agrees_with_a_model_and_the_checker() {
    run_model(16384, 1200, 7, 1);
}

#[test]
fn allocation_goes_on_behind_the_second_descriptor_page() {
    run_model(4096, 4700, 10, 2);
}

#[test]
fn a_growing_table_grows_as_the_reference_does() {
    let pages = TestPages::empty(16384, 128);
    new_space(&pages);
    let top = new_segment(&pages);
    new_page(&pages, top, 0, Direction::None);
    let leaf = new_segment(&pages);
    let space = pages.ctx.spaces.find(SPACE).expect("open");
    let mut sizes = vec![space.size_pages()];
    let mut last = 0;
    for _ in 0..800 {
        last = new_page(&pages, leaf, last + 1, Direction::Up).0;
        if sizes.last() != Some(&space.size_pages()) {
            sizes.push(space.size_pages());
        }
    }
    // By pages below half an extent, then to an extent, then by extents.
    assert_eq!(sizes[..4], [4, 5, 6, 7]);
    let extents: Vec<_> = sizes.iter().filter(|&&size| size >= 64).collect();
    assert!(*extents[0] <= 576, "{sizes:?}");
    assert!(extents.iter().all(|&&size| size % 64 == 0));
    assert!(*sizes.last().expect("sizes") < 1400);
    check_file(&pages);
}

#[test]
fn what_is_reserved_is_not_promised_twice() {
    let pages = TestPages::empty(16384, 64);
    new_space(&pages);
    let top = new_segment(&pages);
    let size = |pages: &TestPages| pages.ctx.spaces.find(SPACE).expect("open").size_pages();
    let first = reserve(&pages.ctx, SPACE, 1, 3, Class::System).expect("room");
    let before = size(&pages);
    let second = reserve(&pages.ctx, SPACE, 1, 3, Class::System).expect("room");
    assert_eq!(size(&pages), before + 3);
    drop(first);
    drop(second);
    let third = reserve(&pages.ctx, SPACE, 1, 6, Class::System).expect("room");
    assert_eq!(size(&pages), before + 3);
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    for _ in 0..6 {
        allocate_and_create(&mut mtr, top, PageNo(0), Direction::None, Rank::IndexPage)
            .expect("reserved");
    }
    // One more than was reserved.
    let none = allocate_page(&mut mtr, top, PageNo(0), Direction::None);
    assert_eq!(none, Err(Error::NoSpace(SPACE)));
    mtr.commit();
    drop(third);
    check_file(&pages);
}

#[test]
fn freeing_a_free_page_or_a_strangers_page_is_damage_and_changes_nothing() {
    let pages = TestPages::empty(16384, 64);
    new_space(&pages);
    let (a, b) = (new_segment(&pages), new_segment(&pages));
    let page = new_page(&pages, a, 0, Direction::None);
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    assert!(matches!(
        free_page(&mut mtr, b, page),
        Err(Error::Corrupt(_))
    ));
    assert!(matches!(
        free_page(&mut mtr, a, PageNo(page.0 + 1)),
        Err(Error::Corrupt(_))
    ));
    assert!(matches!(
        free_page(&mut mtr, a, PageNo(7_000_000)),
        Err(Error::Corrupt(_))
    ));
    assert!(!mtr.is_modified());
    drop(mtr);
    assert!(pages.ctx.check_running().is_ok());
    check_file(&pages);
}

#[test]
fn a_damaged_list_is_an_error_and_changes_nothing() {
    let pages = TestPages::empty(16384, 64);
    new_space(&pages);
    let segment = new_segment(&pages);
    for _ in 0..40 {
        new_page(&pages, segment, 0, Direction::None);
    }
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    let h = mtr
        .get(pages.id(0), Mode::X, Rank::FspPage)
        .expect("page 0");
    for (at, damage) in [
        (fsp::OFF_FREE_FRAG + 4, 0x7FFF_FFFF),
        (fsp::OFF_FREE_FRAG, 0),
    ] {
        let sound = be::u32_at(mtr.view(h), at);
        mtr.write_u32(h, at, damage);
        let before = mtr.view(h).to_vec();
        let other = create_segment(&mut mtr, SPACE).expect("the inode page has room");
        let taken = allocate_page(&mut mtr, other, PageNo(100), Direction::None);
        assert!(matches!(taken, Err(Error::Corrupt(_))), "{taken:?}");
        assert_eq!(
            mtr.view(h)[fsp::OFF_FREE..fsp::OFF_NEXT_SEGMENT],
            before[fsp::OFF_FREE..fsp::OFF_NEXT_SEGMENT]
        );
        mtr.write_u32(h, at, sound);
    }
    mtr.commit();
}

/// Sets bytes of the bitmap page: place in its page, value.
fn set_bitmap(pages: &TestPages, bytes: &[(usize, u8)]) {
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    let h = mtr
        .get(pages.id(1), Mode::X, Rank::FspPage)
        .expect("the bitmap");
    for &(at, value) in bytes {
        mtr.write_u8(h, at, value);
    }
    mtr.commit();
}

fn bitmap_byte(pages: &TestPages, at: usize) -> u8 {
    let mut mtr = Mtr::reader(&pages.ctx);
    let h = mtr.get(pages.id(1), Mode::S, Rank::FspPage);
    mtr.view(h.expect("the bitmap"))[at]
}

#[test]
fn the_free_space_classes_of_a_bitmap_page_are_lowered_at_once_and_remembered() {
    let pages = TestPages::empty(16384, 64);
    new_space(&pages);
    let leaf = PageId::new(SPACE, PageNo(5));
    set_bitmap(&pages, &[(94 + 2, 0b0011_0001), (94 + 8191, 0b0010_0000)]);
    let lowered = change_bitmap::Lowered::default();
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    lowered.lower(&mut mtr, leaf).expect("lowered");
    assert!(!mtr.is_modified() && !mtr.holds_latches());
    let left = mtr.log_bytes_left();
    for other in [0, 5, 16383] {
        let leaf = PageId::new(SPACE, PageNo(other));
        lowered.lower(&mut mtr, leaf).expect("known");
    }
    assert_eq!(mtr.log_bytes_left(), left);
    drop(mtr);
    assert_eq!(bitmap_byte(&pages, 96), 0);
    assert_eq!(bitmap_byte(&pages, 94 + 8191), 0);
}

#[test]
fn marks_of_the_change_buffer_stay_when_a_class_is_lowered() {
    let pages = TestPages::empty(16384, 64);
    new_space(&pages);
    let leaf = PageId::new(SPACE, PageNo(5));
    set_bitmap(&pages, &[(94 + 2, 0b0111_1011)]);
    let lowered = change_bitmap::Lowered::default();
    for _ in 0..2 {
        let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
        lowered.lower(&mut mtr, leaf).expect("lowered");
        drop(mtr);
        assert_eq!(bitmap_byte(&pages, 96), 0b0100_1011);
    }
}

#[test]
fn the_doublewrite_blocks_are_where_a_fresh_instance_has_them() {
    let pages = TestPages::empty(16384, 64);
    let path = crate::space::DataFilePath::parse("ibdata1:12M:autoextend").expect("a path");
    let flags = fsp::SpaceFlags::full_crc32(16384);
    let system = crate::words::SpaceId::SYSTEM;
    let kind = crate::space::Kind::System;
    pages
        .ctx
        .spaces
        .create_system(kind, &path, flags)
        .expect("ibdata1");
    let id = |page| PageId::new(system, PageNo(page));
    let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
    create_space(&mut mtr, system, 768).expect("a space");
    mtr.commit();
    // Stands for the segments with the pages 3 to 12.
    for page in 3..13 {
        let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
        let segment = create_segment(&mut mtr, system).expect("a segment");
        let made =
            allocate_and_create(&mut mtr, segment, PageNo(0), Direction::None, Rank::FspPage);
        assert_eq!(mtr.page_id(made.expect("a page")), id(page));
        mtr.commit();
    }
    let room = Budget::statement(DOUBLEWRITE_LOG_BYTES).with_frames(8);
    let mut mtr = Mtr::start(&pages.ctx, room).expect("admitted");
    let trx_sys = mtr.get(id(5), Mode::X, Rank::FspPage).expect("page 5");
    let place = create_doublewrite(&mut mtr, trx_sys).expect("a segment");
    assert_eq!(place.blocks, [PageNo(64), PageNo(128)]);
    let geometry = fsp::Geometry::of_page_size(16384);
    let read = crate::buffer::Doublewrite::parse(mtr.view(trx_sys), geometry);
    assert_eq!(
        read,
        Ok(Some(crate::buffer::Doublewrite::new(
            place.blocks,
            geometry
        )))
    );
    println!("{} log bytes left", mtr.log_bytes_left());
    mtr.commit();
    // samples/fresh: FREE_LIMIT 320, FRAG_N_USED as there.
    let mut mtr = Mtr::reader(&pages.ctx);
    let h = mtr.get(id(0), Mode::S, Rank::FspPage).expect("page 0");
    assert_eq!(be::u32_at(mtr.view(h), fsp::OFF_FREE_LIMIT), 320);
}

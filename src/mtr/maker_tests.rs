//! Free frames ahead of need: marks, waits, what stands dirty at the cold end, failing files.

use std::time::Duration;

use super::testing::{SPACE, TestPages};
use super::{Budget, Mode, Mtr};
use crate::os::sim::{Call, SimVfs};
use crate::sync::Rank;
use crate::words::{PageId, PageNo, SpaceId, be};

const P: usize = 4096;
const FRAMES: usize = 256;
const OTHER: SpaceId = SpaceId(6);

fn setup(sim: &SimVfs) -> TestPages {
    let pages = TestPages::simulated(sim, P, FRAMES);
    pages.add_space(SPACE, 2000);
    pages.add_space(OTHER, 2000);
    pages
}

fn id(space: SpaceId, page: u32) -> PageId {
    PageId::new(space, PageNo(page))
}

fn create(pages: &TestPages, id: PageId) {
    let budget = Budget::statement(4096).with_frames(1);
    let mut mtr = Mtr::start(&pages.ctx, budget).expect("admitted");
    let h = mtr.create(id, Rank::IndexPage).expect("a page");
    mtr.write_u64(h, 100, u64::from(id.page.0));
    mtr.commit();
}

fn change(pages: &TestPages, id: PageId) {
    let mut mtr = Mtr::start(&pages.ctx, Budget::statement(4096)).expect("admitted");
    let h = mtr.get(id, Mode::X, Rank::IndexPage).expect("a page");
    mtr.write_u64(h, 200, 1);
    mtr.commit();
}

/// Pages 3, 4, … of `space`, so many that `free` frames remain.
fn fill(pages: &TestPages, space: SpaceId, free: usize) {
    let pool = &pages.ctx.pool;
    for page in 3.. {
        if pool.counts().free <= free {
            return;
        }
        create(pages, id(space, page));
    }
}

fn value(pages: &TestPages, id: PageId) -> u64 {
    let mut mtr = Mtr::reader(&pages.ctx);
    let h = mtr.get(id, Mode::S, Rank::IndexPage).expect("a page");
    be::u64_at(mtr.view(h), 100)
}

#[test]
fn frames_are_made_before_anybody_needs_them() {
    let pages = setup(&SimVfs::new());
    let pool = &pages.ctx.pool;
    pool.set_maker_runs(true);
    let mut woken = 0;
    for page in 3..1500 {
        create(&pages, id(SPACE, page));
        let low = pool.counts().free < pool.free_frames_low();
        let wanted = pool.wait_for_maker_work(Duration::ZERO);
        assert!(wanted || !low, "below the low-water mark nobody woke it");
        if wanted {
            woken += 1;
            let report = pool.make_free_frames(1000).expect("frames");
            assert_eq!(report.failed, 0);
            assert!(pool.counts().free >= pool.free_frames_target());
        }
    }
    assert!(woken >= 1200 / pool.free_frames_target(), "{woken}");
    assert_eq!(pool.counts().waits_for_frame, 0);
    for page in 3..1500 {
        assert_eq!(value(&pages, id(SPACE, page)), u64::from(page));
        pool.make_free_frames(1000).expect("frames");
    }
}

#[test]
fn a_wait_for_a_frame_is_counted_once_and_ends_when_one_is_made() {
    let pages = setup(&SimVfs::new());
    let pool = &pages.ctx.pool;
    fill(&pages, SPACE, 0);
    assert_eq!(pool.counts().waits_for_frame, 0);
    pool.set_maker_runs(true);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| create(&pages, id(OTHER, 3)));
        while pool.counts().waits_for_frame == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Some of its sleeps pass.
        std::thread::sleep(Duration::from_millis(60));
        assert!(!waiter.is_finished());
        pool.make_free_frames(1000).expect("frames");
        waiter.join().expect("the page was made");
    });
    assert_eq!(pool.counts().waits_for_frame, 1);
    assert_eq!(value(&pages, id(OTHER, 3)), 3);
}

#[test]
fn clean_pages_go_without_a_write_and_dirty_ones_are_written_in_a_batch() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    let pool = &pages.ctx.pool;
    fill(&pages, SPACE, 4);
    pool.flush_all().expect("flush");
    let written = pool.counts().written;
    // The coldest few are dirty, but for so few no file is synced.
    for page in 3..10 {
        change(&pages, id(SPACE, page));
    }
    let before = sim.calls();
    let report = pool.make_free_frames(1000).expect("frames");
    assert_eq!((report.written, sim.calls()), (0, before));
    assert_eq!(pool.counts().free, pool.free_frames_target());
    assert_eq!(pool.dirty_count(), 7);
    for page in 3..10 {
        assert!(pool.contains(id(SPACE, page)));
    }
    // With the cold end full of dirty pages they are written ahead, though no frame is short.
    for page in 22..60 {
        change(&pages, id(SPACE, page));
    }
    let report = pool.make_free_frames(1000).expect("frames");
    let counts = pool.counts();
    assert!(report.written > 16, "{report:?}");
    assert_eq!(counts.written - written, report.written as u64);
    assert_eq!(counts.written_cold, report.written as u64);
    assert_eq!(counts.free, pool.free_frames_target());
}

#[test]
fn clean_pages_go_while_dirty_ones_wait_for_their_writes() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    let pool = &pages.ctx.pool;
    fill(&pages, SPACE, 0);
    pool.flush_all().expect("flush");
    // Dirty as far as anybody looks at first; those behind are clean.
    for page in 3..80 {
        change(&pages, id(SPACE, page));
    }
    let before = sim.calls();
    assert!(pool.evict_ahead(), "a batch has gathered, nobody is told");
    assert_eq!(pool.counts().free, pool.free_frames_target());
    assert_eq!(sim.calls(), before, "the one who evicts waits for a device");
    // Who finds no free frame looks as far.
    for page in 80..=FRAMES as u32 {
        change(&pages, id(SPACE, page % 80 + 80));
    }
    pool.make_free_frames(1000).expect("frames");
    assert!(!pool.evict_ahead(), "all is written");
}

#[test]
fn pages_that_cannot_be_written_do_not_keep_others_from_going() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    let pool = &pages.ctx.pool;
    fill(&pages, SPACE, FRAMES / 2);
    fill(&pages, OTHER, 0);
    sim.fail(Call::Write, "t5.ibd", 0, libc::ENOSPC, false);
    let report = pool.make_free_frames(1000).expect("some frames");
    assert!(report.failed > 0 && pool.writes_stalled(), "{report:?}");
    for _ in 0..4 {
        pool.make_free_frames(1000).expect("frames");
    }
    assert_eq!(pool.counts().free, pool.free_frames_target());
    for page in 3..3 + FRAMES as u32 / 2 {
        assert!(pool.contains(id(SPACE, page)), "page {page} was lost");
    }
    sim.heal();
    pool.flush_all().expect("there is room");
    assert_eq!(pool.dirty_count(), 0);
    for page in 3..3 + FRAMES as u32 / 2 {
        assert_eq!(value(&pages, id(SPACE, page)), u64::from(page));
    }
}

#[test]
fn pages_of_a_file_that_failed_to_be_synced_stay_and_others_go() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    let pool = &pages.ctx.pool;
    fill(&pages, SPACE, FRAMES / 2);
    let oldest = pool.oldest_modification();
    fill(&pages, OTHER, 0);
    sim.fail(Call::Sync, "t5.ibd", 0, libc::EIO, true);
    for _ in 0..4 {
        pool.make_free_frames(1000).expect("frames");
    }
    assert_eq!(pool.counts().free, pool.free_frames_target());
    assert_eq!(pool.oldest_modification(), oldest);
    for page in 3..3 + FRAMES as u32 / 2 {
        assert_eq!(value(&pages, id(SPACE, page)), u64::from(page));
    }
    assert_eq!(sim.syncs_retried(), Vec::<String>::new());
}

//! innodb_flush_neighbors: which pages go with one that is written.

use super::testing::{SPACE, TestPages};
use super::{Budget, Mode, Mtr};
use crate::os::sim::SimVfs;
use crate::sync::Rank;
use crate::words::{Lsn, PageId, PageNo};

const P: usize = 4096;
/// So many that an area is an extent: 256 pages of 4 KiB.
const FRAMES: usize = 16 * 256;
/// In the first extent but for the last two, one gap in the middle.
const DIRTY: [u32; 9] = [3, 20, 21, 22, 24, 25, 200, 256, 257];

/// Pages that are in the pool and clean, then `DIRTY` changed, the oldest change being that of 22.
fn setup(rotates: bool) -> TestPages {
    let sim = SimVfs::new();
    if rotates {
        sim.set_rotates();
    }
    let pages = TestPages::simulated(&sim, P, FRAMES);
    pages.add_space(SPACE, 1000);
    for page in 3..300 {
        let mut mtr = pages.mtr();
        mtr.create(id(page), Rank::IndexPage).expect("a page");
        mtr.commit();
    }
    pages.ctx.pool.flush_all().expect("written");
    for page in [22].into_iter().chain(DIRTY) {
        let budget = Budget::statement(4096);
        let mut mtr = Mtr::start(&pages.ctx, budget).expect("admitted");
        let h = mtr.get(id(page), Mode::X, Rank::IndexPage).expect("a page");
        mtr.write_u64(h, 200, u64::from(page));
        mtr.commit();
    }
    pages
}

fn id(page: u32) -> PageId {
    PageId::new(SPACE, PageNo(page))
}

/// How many pages are written when one is asked for, at most `limit`.
fn written(pages: &TestPages, neighbors: u8) -> usize {
    let pool = &pages.ctx.pool;
    pool.set_flush_neighbors(neighbors);
    let first = pool.oldest_modification().expect("dirty pages");
    let report = pool.flush_oldest(Lsn(first.0 + 1), 100).expect("written");
    report.written
}

#[test]
fn on_a_disk_that_rotates_neighbours_go_with_a_page_as_the_setting_says() {
    // 22 alone; with 20 and 21, as 23 is clean; with all of its extent.
    for (neighbors, expected) in [(0, 1), (1, 3), (2, 7)] {
        let pages = setup(true);
        assert_eq!(written(&pages, neighbors), expected, "{neighbors}");
        assert_eq!(pages.ctx.pool.counts().dirty, DIRTY.len() - expected);
        pages.ctx.pool.flush_all().expect("the rest is written");
        assert_eq!(pages.ctx.pool.counts().dirty, 0);
    }
}

#[test]
fn elsewhere_a_page_is_written_alone() {
    let pages = setup(false);
    assert_eq!(written(&pages, 2), 1);
}

#[test]
fn neighbours_count_towards_what_was_asked_for() {
    let pages = setup(true);
    let pool = &pages.ctx.pool;
    pool.set_flush_neighbors(2);
    let all = Lsn(u64::MAX);
    // Two areas have dirty pages: 22 brings its own, the second is left for the next call.
    assert_eq!(pool.flush_oldest(all, 5).expect("written").written, 7);
    assert_eq!(pool.flush_oldest(all, 5).expect("written").written, 2);
    assert_eq!(pool.flush_oldest(all, 5).expect("written").written, 0);
}

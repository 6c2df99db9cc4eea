//! Read-ahead: when a scan or a hot extent makes pages come before they are asked for.

use std::time::{Duration, Instant};

use super::testing::{SPACE, TestPages};
use super::{Mode, Mtr};
use crate::buffer::Listed;
use crate::os::Threads;
use crate::sync::{Arc, Rank};
use crate::words::be;

const P: usize = 16384;
const EXTENT: u32 = 64;
const PAGES: u32 = 8 * EXTENT + 10;

/// Pages in the file, none in the pool, and a reader, which ends with it.
struct Bed {
    pages: Arc<TestPages>,
    threads: Threads,
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.pages.ctx.pool.stop_reading_ahead();
        self.threads.join_all();
    }
}

fn bed() -> Bed {
    let threads = Threads::new(Arc::new(|name, text| eprintln!("{name}: {text}")));
    let pages = Arc::new(TestPages::new(P, 1024, PAGES));
    for page in 3..PAGES {
        let mut mtr = pages.mtr();
        let h = mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.write_u32(h, 100, page);
        mtr.commit();
    }
    pages.ctx.pool.flush_all().expect("flush");
    pages.ctx.pool.discard_space(SPACE);
    let own = pages.clone();
    threads
        .start("reader", move || own.ctx.pool.run_read_ahead())
        .expect("a thread");
    wait_until("the reader runs", || pages.ctx.pool.reads_ahead());
    Bed { pages, threads }
}

fn read(pages: &TestPages, page: u32) {
    let mut mtr = Mtr::reader(&pages.ctx);
    let h = mtr.get(pages.id(page), Mode::S, Rank::IndexPage);
    let h = h.expect("the page");
    assert_eq!(be::u32_at(mtr.view(h), 100), page);
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Misses `page`, and waits until `then` comes by itself.
fn enter(pages: &TestPages, page: u32, then: u32) {
    read(pages, page);
    wait_until("the next page comes by itself", || {
        pages.ctx.pool.contains(pages.id(then))
    });
}

#[test]
fn a_scan_finds_the_next_extents_read() {
    let bed = bed();
    let (pages, pool) = (&bed.pages, &bed.pages.ctx.pool);
    pool.set_read_ahead(56, false);
    (EXTENT..EXTENT + 55).for_each(|page| read(pages, page));
    read(pages, 2 * EXTENT);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(pool.counts().read_ahead, 0, "too few pages in sequence");
    pool.evict(1024, 1024);
    (EXTENT..EXTENT + 56).for_each(|page| read(pages, page));
    enter(pages, 2 * EXTENT, 2 * EXTENT + 1);
    let last = pages.id(4 * EXTENT - 1);
    wait_until("two extents", || pool.contains(last));
    assert!(!pool.contains(pages.id(4 * EXTENT)), "no more than two");
    assert!(pool.counts().read_ahead >= 2 * u64::from(EXTENT) - 1);
    (2 * EXTENT..4 * EXTENT).for_each(|page| read(pages, page));
    // Over the end of the file, where nothing is.
    (4 * EXTENT..8 * EXTENT).for_each(|page| read(pages, page));
    enter(pages, 8 * EXTENT, PAGES - 1);
    assert!(!pool.contains(pages.id(PAGES)));
}

#[test]
fn a_scan_backwards_finds_the_extents_before_it_read() {
    let bed = bed();
    let (pages, pool) = (&bed.pages, &bed.pages.ctx.pool);
    pool.set_read_ahead(56, false);
    (5 * EXTENT..6 * EXTENT)
        .rev()
        .for_each(|page| read(pages, page));
    enter(pages, 5 * EXTENT - 1, 3 * EXTENT);
    wait_until("all of both", || {
        (3 * EXTENT..5 * EXTENT).all(|page| pool.contains(pages.id(page)))
    });
}

#[test]
fn an_extent_with_many_hot_pages_is_read_as_a_whole_if_that_is_wanted() {
    let bed = bed();
    let (pages, pool) = (&bed.pages, &bed.pages.ctx.pool);
    let hot = |page: &u32| page % 4 == 1;
    for _ in 0..2 {
        (EXTENT..2 * EXTENT)
            .filter(hot)
            .for_each(|page| read(pages, page));
        // A page that is used a while after its first use is hot; the maker turns the clock.
        std::thread::sleep(Duration::from_millis(1200));
        pool.wait_for_maker_work(Duration::ZERO);
    }
    read(pages, EXTENT + 2);
    std::thread::sleep(Duration::from_millis(50));
    assert!(!pool.contains(pages.id(EXTENT + 3)), "off by default");
    pool.set_read_ahead(0, true);
    enter(pages, EXTENT + 6, EXTENT + 7);
    wait_until("all of it", || {
        (EXTENT..2 * EXTENT).all(|page| pool.contains(pages.id(page)))
    });
    assert_eq!(pool.counts().read_ahead, 0);
    assert!(pool.counts().read_ahead_random > 0);
}

#[test]
fn pages_that_nobody_used_count_when_they_go() {
    let bed = bed();
    let (pages, pool) = (&bed.pages, &bed.pages.ctx.pool);
    pool.set_read_ahead(56, false);
    (EXTENT..2 * EXTENT).for_each(|page| read(pages, page));
    enter(pages, 2 * EXTENT, 2 * EXTENT + 1);
    wait_until("two extents", || pool.contains(pages.id(4 * EXTENT - 1)));
    pool.stop_reading_ahead();
    bed.threads.join_all();
    pool.evict(1024, 1024);
    let counts = pool.counts();
    assert_eq!(counts.read_ahead_evicted, counts.read_ahead, "{counts:?}");
}

#[test]
fn a_list_is_read_and_a_full_pool_takes_no_more_of_it() {
    let bed = bed();
    let (pages, pool) = (&bed.pages, &bed.pages.ctx.pool);
    let list = [70, 7, 71, 9_999, 72, 7]
        .map(|page| pages.id(page))
        .to_vec();
    assert_eq!(pool.read_list(list), Listed::Taken);
    pool.wait_for_lists();
    let here = |page: u32| pool.contains(pages.id(page));
    assert!([7, 70, 71, 72].into_iter().all(here));
    assert!(!here(8) && !here(73));
    assert_eq!(pool.counts().loaded, 4);
    read(pages, 300);
    assert!(pool.hottest(9).contains(&pages.id(300)));
    assert_eq!(pool.hottest(2).len(), 2);
    // Smaller than the file: what is here stays, and frames for others are left.
    pool.resize(128 * P, &|| true).expect("a smaller pool");
    [70, 300].into_iter().for_each(|page| read(pages, page));
    let evicted = pool.counts().evicted;
    let mut taken = 0;
    for from in (100..PAGES).step_by(50) {
        let list = (from..from + 50).map(|page| pages.id(page)).collect();
        taken += usize::from(pool.read_list(list) == Listed::Taken);
        pool.wait_for_lists();
    }
    assert!(taken < 9, "it was full after {taken}");
    assert!(here(300) && here(70));
    assert_eq!(pool.counts().evicted, evicted);
    assert!(pool.counts().free >= pool.free_frames_target());
    pool.stop_reading_ahead();
    bed.threads.join_all();
    assert_ne!(pool.read_list(vec![pages.id(5)]), Listed::Taken);
}

//! Many threads on a pool that is too small, with a cleaner, frees, re-creation and drops.

use std::time::Duration;

use crate::format::fil;
use crate::mtr::testing::TestPages;
use crate::mtr::{Budget, Mode, Mtr, retry};
use crate::os::sim::Random;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, Rank};
use crate::words::{Error, Lsn, PageId, PageNo, Result, SpaceId, be};

pub(super) const SPACES: u32 = 3;
pub(super) const PAGES: u32 = 120;
pub(super) const P: usize = 4096;

/// What a page should hold; `None` = freed. The mutex orders the threads per page, as the locks of
/// upper layers do.
pub(super) type Expected = Vec<Mutex<Option<u64>>>;

pub(super) fn id(at: usize) -> PageId {
    let at = at as u32;
    PageId::new(SpaceId(10 + at / PAGES), PageNo(3 + at % PAGES))
}

pub(super) fn step(pages: &TestPages, expected: &Expected, random: &mut Random) {
    let at = random.below(expected.len() as u64) as usize;
    let mut slot = expected[at].lock();
    let id = id(at);
    let budget = Budget::statement(400).with_frames(1);
    match (*slot, random.below(10)) {
        (None, _) => {
            let value = random.next_u64();
            let mut mtr = Mtr::start(&pages.ctx, budget).expect("admitted");
            let h = mtr.create(id, Rank::IndexPage).expect("a page");
            mtr.write_u64(h, 100, value);
            mtr.write_u64(h, 4000, value);
            mtr.commit();
            *slot = Some(value);
        }
        (Some(_), 0) => {
            let mut mtr = Mtr::start(&pages.ctx, budget).expect("admitted");
            mtr.free_page(id);
            mtr.commit();
            *slot = None;
        }
        (Some(old), 1..4) => {
            let value = random.next_u64();
            retry(&pages.ctx, Some(budget), |mtr| {
                let h = mtr.get(id, Mode::X, Rank::IndexPage)?;
                assert_eq!(be::u64_at(mtr.view(h), 100), old, "page {id}");
                mtr.write_u64(h, 100, value);
                mtr.write_u64(h, 4000, value);
                Ok(())
            })
            .expect("a change");
            *slot = Some(value);
        }
        (Some(value), _) => read(pages, id, value),
    }
}

pub(super) fn read(pages: &TestPages, id: PageId, value: u64) {
    retry(&pages.ctx, None, |mtr| {
        let h = mtr.get(id, Mode::S, Rank::IndexPage)?;
        assert_eq!(fil::page_id(mtr.view(h)), id);
        assert_eq!(be::u64_at(mtr.view(h), 100), value, "page {id}");
        assert_eq!(be::u64_at(mtr.view(h), 4000), value, "page {id}");
        Ok(())
    })
    .expect("a read");
}

pub(super) fn clean(pages: &TestPages, running: &AtomicBool) {
    let pool = &pages.ctx.pool;
    while running.load(Ordering::Acquire) {
        pool.wait_for_cleaner_work(Duration::from_millis(2));
        pool.flush_oldest(Lsn(u64::MAX), 20).expect("flush");
        let oldest = || pool.oldest_modification();
        pages
            .ctx
            .log
            .checkpoint(&pages.ctx.spaces, oldest)
            .expect("a checkpoint");
    }
}

pub(super) fn make_frames(pages: &TestPages, running: &AtomicBool) {
    let pool = &pages.ctx.pool;
    pool.set_maker_runs(true);
    while running.load(Ordering::Acquire) {
        pool.wait_for_maker_work(Duration::from_millis(2));
        pool.make_free_frames(64).expect("frames");
    }
    pool.set_maker_runs(false);
}

/// A small pool, tablespaces that it cannot hold, and what is in them: nothing yet.
pub(super) fn set_up() -> (TestPages, Expected) {
    let pages = TestPages::empty(P, 64);
    for space in 0..SPACES {
        pages.add_space(SpaceId(10 + space), PAGES + 3);
    }
    let count = (SPACES * PAGES) as usize;
    let expected = (0..count).map(|_| Mutex::new(Rank::None, None)).collect();
    (pages, expected)
}

fn run(seed: u64, with_cleaner: bool) {
    println!("seed {seed}, cleaner: {with_cleaner}");
    let (pages, expected) = set_up();
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        if with_cleaner {
            scope.spawn(|| clean(&pages, &running));
            scope.spawn(|| make_frames(&pages, &running));
        }
        let workers: Vec<_> = (0..4)
            .map(|worker| {
                let (pages, expected) = (&pages, &expected);
                scope.spawn(move || {
                    let mut random = Random(seed * 100 + worker);
                    for _ in 0..4000 {
                        step(pages, expected, &mut random);
                    }
                })
            })
            .collect();
        let failed = workers.into_iter().any(|worker| worker.join().is_err());
        running.store(false, Ordering::Release);
        assert!(!failed);
    });
    for (at, slot) in expected.iter().enumerate() {
        if let Some(value) = *slot.lock() {
            read(&pages, id(at), value);
        }
    }
    let counts = pages.ctx.pool.counts();
    assert!(counts.evicted > 1000 && counts.written > 1000, "{counts:?}");
    // One tablespace is dropped: nothing of it stays, nothing else goes.
    pages.ctx.pool.discard_space(SpaceId(10));
    for at in 0..expected.len() {
        assert!(at >= PAGES as usize || !pages.ctx.pool.contains(id(at)));
    }
    pages.ctx.pool.flush_all().expect("flush");
    let counts = pages.ctx.pool.counts();
    assert_eq!(counts.dirty, 0);
    assert_eq!(
        counts.free + counts.young + counts.old,
        counts.frames,
        "a frame is lost"
    );
}

#[test]
fn pages_keep_their_content_while_frames_change_hands() {
    run(1, false);
}

#[test]
fn pages_keep_their_content_while_a_cleaner_runs() {
    run(2, true);
}

#[test]
fn a_hot_page_stays_while_a_scan_passes() {
    let pages = TestPages::new(P, 64, 400);
    for page in 3..400 {
        let mut mtr = pages.mtr();
        mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.commit();
    }
    pages.ctx.pool.flush_all().expect("flush");
    let use_page = |page: u32| {
        retry(&pages.ctx, None, |mtr| {
            mtr.get(pages.id(page), Mode::S, Rank::IndexPage).map(drop)
        })
        .expect("a read");
    };
    use_page(3);
    // Used again after innodb_old_blocks_time: hot.
    std::thread::sleep(Duration::from_millis(1200));
    pages.ctx.pool.advance_tick();
    let before = pages.ctx.pool.counts().reads;
    use_page(3);
    for round in 0..3 {
        for page in 10..400 {
            use_page(page);
        }
        assert!(
            pages.ctx.pool.contains(pages.id(3)),
            "{round} {:?}",
            pages.ctx.pool.counts()
        );
    }
    assert!(pages.ctx.pool.counts().reads >= before + 3 * 380);
}

#[test]
fn a_page_that_is_used_again_and_again_stays_though_pages_leave_soon() {
    let pages = TestPages::new(P, 64, 400);
    for page in 3..400 {
        let mut mtr = pages.mtr();
        mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.commit();
    }
    let pool = &pages.ctx.pool;
    pool.flush_all().expect("flush");
    let use_page = |page: u32| {
        retry(&pages.ctx, None, |mtr| {
            mtr.get(pages.id(page), Mode::S, Rank::IndexPage).map(drop)
        })
        .expect("a read");
    };
    // No page that came lately stays for as long as innodb_old_blocks_time.
    let mut misses = 0;
    for (i, page) in (10..400).cycle().take(780).enumerate() {
        use_page(page);
        if i % 5 == 0 {
            misses += usize::from(!pool.contains(pages.id(3)));
            use_page(3);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(misses < 20, "{misses} of 156");
}

#[test]
fn a_full_pool_is_an_error_and_not_a_hang() {
    let pages = TestPages::new(P, 64, 100);
    for page in 3..80 {
        let mut mtr = pages.mtr();
        mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.commit();
    }
    let mut mtr = Mtr::reader(&pages.ctx);
    let mut held = 0;
    let refused = loop {
        match mtr.get_reading(pages.id(3 + held), Mode::S, Rank::IndexPage) {
            Ok(_) => held += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Error::BufferPoolFull);
    assert!(held >= 60, "{held}");
    drop(mtr);
    assert!(pages.ctx.pool.admit_frames(33).is_err());
    drop(pages.ctx.pool.admit_frames(20).expect("free again"));
}

/// A descent that met two missing pages once kept only the one it had read last, and that one only
/// until it latched the first page of the next try: where the pool was else dirty, each of the two
/// was the only page that could go when the other came in.
#[test]
fn two_missing_pages_of_a_descent_do_not_evict_each_other_for_ever() {
    let pages = TestPages::new(P, 64, 200);
    let create = |page| {
        let budget = Budget::statement(400).with_frames(1);
        let mut mtr = Mtr::start(&pages.ctx, budget).expect("admitted");
        mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.commit();
    };
    let path = [3, 4, 5];
    path.into_iter().for_each(create);
    pages.ctx.pool.flush_all().expect("flush");
    // Pushes the three out and leaves two frames that need no write.
    (10..72).for_each(create);
    let counts = pages.ctx.pool.counts();
    assert_eq!((counts.dirty, counts.free), (62, 2), "{counts:?}");
    let mut tries = 0;
    retry(&pages.ctx, None, |mtr| {
        tries += 1;
        assert!(tries < 50, "the pages evict each other");
        for page in path {
            mtr.get(pages.id(page), Mode::S, Rank::IndexPage)?;
        }
        Ok(())
    })
    .expect("a read");
}

/// Counts what the pool reports, and gives one page a change of its own.
#[derive(Default)]
struct Hook {
    read: AtomicU64,
    listed: AtomicU64,
    created: AtomicU64,
    freed: AtomicU64,
}

impl crate::buffer::PageLoaded for Hook {
    fn rebuilds(&self, id: PageId) -> bool {
        id.page == PageNo(7)
    }

    fn repair(&self, id: PageId, damaged: &[u8]) -> Option<Box<[u8]>> {
        assert_eq!(id.page, PageNo(8));
        let mut copy = damaged.to_vec();
        fil::init(&mut copy, id);
        be::put_u64(&mut copy, 100, 88);
        crate::format::checksum::stamp(&mut copy, crate::format::checksum::Flavour::FullCrc32);
        Some(copy.into())
    }

    fn on_read(&self, id: PageId, page: &mut [u8]) -> Result<Option<Lsn>> {
        self.read.fetch_add(1, Ordering::Relaxed);
        if id.page == PageNo(7) {
            be::put_u64(page, 100, 77);
            fil::set_lsn(page, Lsn(20_000));
            return Ok(Some(Lsn(15_000)));
        }
        Ok(None)
    }

    fn listed(&self, id: PageId) {
        assert_eq!(id.page, PageNo(7), "only that page was changed by the hook");
        self.listed.fetch_add(1, Ordering::Relaxed);
    }

    fn on_create(&self, _: PageId) {
        self.created.fetch_add(1, Ordering::Relaxed);
    }

    fn on_free(&self, _: PageId) {
        self.freed.fetch_add(1, Ordering::Relaxed);
    }

    fn on_drop(&self, _: SpaceId) {}
}

#[test]
fn the_hook_rebuilds_repairs_and_hears_of_new_and_freed_pages() {
    let pages = TestPages::new(P, 64, 20);
    let hook = crate::sync::Arc::new(Hook::default());
    pages.ctx.pool.set_hook(hook.clone());
    let mut mtr = pages.mtr();
    mtr.create(pages.id(8), Rank::IndexPage).expect("a page");
    mtr.commit();
    pages.ctx.pool.flush_all().expect("flush");
    pages.ctx.pool.discard_space(crate::mtr::testing::SPACE);
    let path = pages
        .ctx
        .spaces
        .find(crate::mtr::testing::SPACE)
        .expect("open")
        .path();
    let mut bytes = std::fs::read(&path).expect("the file");
    bytes[8 * P + 2000] ^= 8;
    std::fs::write(&path, &bytes).expect("damaged");
    let value = |page| {
        let mut mtr = Mtr::reader(&pages.ctx);
        let h = mtr
            .get(pages.id(page), Mode::S, Rank::IndexPage)
            .expect("a page");
        be::u64_at(mtr.view(h), 100)
    };
    assert_eq!(value(7), 77);
    assert_eq!(pages.ctx.pool.oldest_modification(), Some(Lsn(15_000)));
    assert_eq!(value(8), 88);
    assert_eq!(pages.ctx.pool.counts().repaired, 1);
    let mut mtr = pages.mtr();
    mtr.free_page(pages.id(8));
    mtr.commit();
    let seen = [&hook.read, &hook.created, &hook.freed].map(|n| n.load(Ordering::Relaxed));
    assert_eq!(seen, [2, 1, 1]);
}

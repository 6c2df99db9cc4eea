//! The pool changes its size while it is used.

use super::pool_tests::{P, clean, id, make_frames, read, set_up, step};
use crate::mtr::testing::TestPages;
use crate::mtr::{Mode, Mtr};
use crate::os::sim::Random;
use crate::sync::Rank;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::words::Error;
use std::time::{Duration, Instant};

const GO_ON: &dyn Fn() -> bool = &|| true;

fn frames(pages: &TestPages) -> [usize; 2] {
    let counts = pages.ctx.pool.counts();
    [counts.frames, counts.free + counts.young + counts.old]
}

/// Sizes drawn one after the other, with eight threads that change, read, free and make pages.
fn run(seed: u64) {
    println!("seed {seed}");
    let (pages, expected) = set_up();
    let running = AtomicBool::new(true);
    let until = Instant::now() + Duration::from_secs(4);
    std::thread::scope(|scope| {
        scope.spawn(|| clean(&pages, &running));
        scope.spawn(|| make_frames(&pages, &running));
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                let (pages, expected, running) = (&pages, &expected, &running);
                scope.spawn(move || {
                    let mut random = Random(seed * 100 + worker);
                    while running.load(Ordering::Acquire) {
                        step(pages, expected, &mut random);
                    }
                })
            })
            .collect();
        let mut random = Random(seed);
        let (mut resized, mut larger) = (0, 0);
        while resized < 30 || Instant::now() < until {
            let size = 64 + random.below(400) as usize;
            larger += usize::from(size > pages.ctx.pool.frame_count());
            pages.ctx.pool.resize(size * P, GO_ON).expect("resized");
            assert_eq!(pages.ctx.pool.frame_count(), size);
            resized += 1;
        }
        println!("resized {resized} times");
        assert!(larger > 5 && larger < resized - 5);
        running.store(false, Ordering::Release);
        let failed = workers.into_iter().any(|worker| worker.join().is_err());
        assert!(!failed);
    });
    for (at, slot) in expected.iter().enumerate() {
        if let Some(value) = *slot.lock() {
            read(&pages, id(at), value);
        }
    }
    pages.ctx.pool.flush_all().expect("flush");
    let [all, listed] = frames(&pages);
    assert_eq!(all, listed, "a frame is lost");
    assert_eq!(pages.ctx.pool.counts().dirty, 0);
}

#[test]
fn pages_keep_their_content_while_the_pool_changes_its_size() {
    run(1);
}

#[test]
fn a_page_that_is_in_use_keeps_the_pool_from_shrinking_and_nothing_else() {
    let pages = TestPages::new(P, 64, 300);
    pages.ctx.pool.resize(200 * P, GO_ON).expect("larger");
    for page in 3..170 {
        let mut mtr = pages.mtr();
        let h = mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.write_u64(h, 100, page.into());
        mtr.write_u64(h, 4000, page.into());
        mtr.commit();
    }
    pages.ctx.pool.flush_all().expect("flush");
    // Its frame is one of the last.
    let mut mtr = Mtr::reader(&pages.ctx);
    mtr.get_reading(pages.id(169), Mode::S, Rank::IndexPage)
        .expect("it is here");
    let asked = std::cell::Cell::new(0);
    let give_up = || {
        asked.set(asked.get() + 1);
        asked.get() < 20
    };
    let refused = pages.ctx.pool.resize(70 * P, &give_up);
    assert_eq!(refused, Err(Error::Interrupted));
    assert_eq!(frames(&pages), [200, 200], "the old size");
    drop(mtr);
    pages.ctx.pool.resize(70 * P, GO_ON).expect("smaller");
    assert_eq!(frames(&pages), [70, 70]);
    for page in 3..170 {
        read(&pages, pages.id(page), page.into());
    }
    assert_eq!(frames(&pages), [70, 70]);
}

#[test]
fn hot_pages_and_dirty_pages_move_without_being_read_or_written() {
    let pages = TestPages::new(P, 64, 300);
    pages.ctx.pool.resize(200 * P, GO_ON).expect("larger");
    for page in 3..180 {
        let mut mtr = pages.mtr();
        let h = mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.write_u64(h, 100, page.into());
        mtr.write_u64(h, 4000, page.into());
        mtr.commit();
        if page == 100 {
            pages.ctx.pool.flush_all().expect("flush");
        }
    }
    let oldest = pages.ctx.pool.oldest_modification();
    let before = pages.ctx.pool.counts();
    // The first hundred clean pages go, the rest stays, dirty as it is.
    pages.ctx.pool.resize(100 * P, GO_ON).expect("smaller");
    let after = pages.ctx.pool.counts();
    assert_eq!(after.dirty, before.dirty);
    assert_eq!(after.written, before.written);
    assert_eq!(pages.ctx.pool.oldest_modification(), oldest);
    for page in 101..180 {
        assert!(pages.ctx.pool.contains(pages.id(page)), "{page}");
        read(&pages, pages.id(page), page.into());
    }
    assert_eq!(pages.ctx.pool.counts().reads, before.reads);
    pages.ctx.pool.flush_all().expect("flush");
    assert_eq!(pages.ctx.pool.counts().dirty, 0);
}

#[test]
fn sizes_that_cannot_be_had_are_refused_by_name() {
    let pages = TestPages::new(P, 64, 10);
    let pool = &pages.ctx.pool;
    let refused = |bytes| match pool.resize(bytes, GO_ON) {
        Err(Error::Invalid(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(63 * P).contains("at least 64 pages"));
    assert!(refused(pool.bytes_max() + P).contains("innodb_buffer_pool_size_max"));
    assert_eq!(pool.frame_count(), 64);
    pool.resize(pool.bytes_max(), GO_ON).expect("the largest");
    assert_eq!(frames(&pages), [1024, 1024]);
}

#[test]
fn the_settings_of_the_cold_end_change_while_the_pool_is_used() {
    let pages = TestPages::new(P, 512, 10);
    let pool = &pages.ctx.pool;
    assert_eq!(pool.free_frames_target(), 32);
    pool.set_lru_scan_depth(10);
    assert_eq!(pool.free_frames_target(), 10);
    // A page is hot at its second use, or is not for an hour.
    for (ms, moves) in [(0, true), (3_600_000, false)] {
        pool.set_old_blocks_time(ms);
        let page = 3 + u32::from(moves);
        let mut mtr = pages.mtr();
        mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.commit();
        drop(pool.find_ready(pages.id(page)).expect("running"));
        drop(pool.find_ready(pages.id(page)).expect("running"));
        pool.flush_all().expect("flush");
        // It is looked at, and goes unless it is hot.
        pool.evict(2, 2);
        assert_eq!(pool.contains(pages.id(page)), moves, "{ms}");
    }
}

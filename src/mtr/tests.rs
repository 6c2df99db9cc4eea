//! Reading and changing pages through mini-transactions, on real files.

use super::testing::{SPACE, TestPages};
use super::*;
use crate::format::{checksum, fil};
use crate::space::PageTransform;
use crate::sync::Rank;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::words::{Error, Lsn, PageId, PageNo, Result, be};

const P: usize = 16384;

/// Makes pages `from..to` with their number at 100 and zero counters.
fn make(pages: &TestPages, from: u32, to: u32) {
    for page in from..to {
        let mut mtr = pages.mtr();
        let h = mtr
            .create(pages.id(page), Rank::IndexPage)
            .expect("a new page");
        mtr.write_u32(h, 100, page);
        mtr.commit();
    }
}

#[test]
fn a_page_written_evicted_and_read_again_is_the_same() {
    let pages = TestPages::new(P, 64, 200);
    make(&pages, 3, 200);
    assert!(
        pages.ctx.pool.counts().evicted > 100,
        "{:?}",
        pages.ctx.pool.counts()
    );
    let mut mtr = Mtr::reader(&pages.ctx);
    for page in 3..200 {
        let h = mtr
            .get(pages.id(page), Mode::S, Rank::IndexPage)
            .expect("the page");
        assert_eq!(be::u32_at(mtr.view(h), 100), page);
        assert_eq!(fil::page_id(mtr.view(h)), pages.id(page));
        assert!(fil::lsn(mtr.view(h)) > Lsn(12288));
        mtr.release(h);
    }
    assert!(pages.ctx.pool.counts().reads > 100);
}

#[test]
fn a_miss_under_a_latch_would_block_and_succeeds_after_restart() {
    let pages = TestPages::new(P, 64, 100);
    make(&pages, 3, 100);
    pages.ctx.pool.flush_all().expect("flush");
    pages.ctx.pool.discard_space(SPACE);
    let mut mtr = Mtr::reader(&pages.ctx);
    mtr.get(pages.id(3), Mode::S, Rank::IndexPage)
        .expect("a read without latches");
    let missed = mtr.get(pages.id(4), Mode::S, Rank::IndexPage);
    assert_eq!(missed, Err(Error::WouldBlock));
    assert_eq!(mtr.missing(), Some(pages.id(4)));
    mtr.restart().expect("the page is read");
    assert!(!mtr.holds_latches());
    mtr.get(pages.id(3), Mode::S, Rank::IndexPage)
        .expect("in the pool");
    mtr.get(pages.id(4), Mode::S, Rank::IndexPage)
        .expect("in the pool");
    assert_eq!(pages.ctx.pool.counts().reads_under_latches, 0);
}

#[test]
fn readers_and_writers_agree_while_the_pool_is_too_small() {
    let pages = TestPages::new(4096, 64, 400);
    make(&pages, 3, 400);
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 1..=4u64 {
            let (pages, written) = (&pages, &written);
            scope.spawn(move || {
                let mut x = seed;
                for _ in 0..3000 {
                    x = x
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    let id = pages.id(3 + (x >> 33) as u32 % 397);
                    if x >> 62 == 0 {
                        let budget = Some(Budget::statement(100));
                        let ((), lsn) = retry(&pages.ctx, budget, |mtr| {
                            let h = mtr.get(id, Mode::X, Rank::IndexPage)?;
                            let n = be::u64_at(mtr.view(h), 200);
                            mtr.write_u64(h, 200, n + 1);
                            mtr.write_u64(h, 3000, n + 1);
                            Ok(())
                        })
                        .expect("a change");
                        assert!(lsn > Lsn(0));
                        written.fetch_add(1, Ordering::Relaxed);
                    } else {
                        retry(&pages.ctx, None, |mtr| {
                            let h = mtr.get(id, Mode::S, Rank::IndexPage)?;
                            let page = mtr.view(h);
                            assert_eq!(fil::page_id(page), id);
                            assert_eq!(be::u64_at(page, 200), be::u64_at(page, 3000));
                            Ok(())
                        })
                        .expect("a read");
                    }
                }
            });
        }
    });
    let mut sum = 0;
    let mut mtr = Mtr::reader(&pages.ctx);
    for page in 3..400 {
        let h = mtr
            .get(pages.id(page), Mode::S, Rank::IndexPage)
            .expect("the page");
        sum += be::u64_at(mtr.view(h), 200);
        mtr.release(h);
    }
    assert_eq!(sum, written.load(Ordering::Relaxed));
    pages.ctx.pool.flush_all().expect("flush");
    assert_eq!(pages.ctx.pool.dirty_count(), 0);
    assert_eq!(pages.ctx.pool.oldest_modification(), None);
}

#[test]
fn only_changed_bytes_are_logged() {
    let pages = TestPages::new(P, 64, 10);
    make(&pages, 3, 4);
    let mut mtr = pages.mtr();
    let h = mtr
        .get(pages.id(3), Mode::X, Rank::IndexPage)
        .expect("the page");
    mtr.write(h, 100, &[0, 0, 0, 3]);
    mtr.memset(h, 1000, 500, 0);
    assert!(!mtr.is_modified() && mtr.log_bytes_left() == 512 << 10);
    mtr.write(h, 100, &[0, 0, 9, 3]);
    assert!(mtr.is_modified());
    // Type, space, page, offset, one byte.
    assert_eq!(mtr.log_bytes_left(), (512 << 10) - 5);
    mtr.commit();
}

#[test]
fn a_page_is_held_once_and_released_with_its_last_use() {
    let pages = TestPages::new(P, 64, 10);
    make(&pages, 3, 5);
    let mut mtr = pages.mtr();
    let a = mtr
        .get(pages.id(3), Mode::U, Rank::FspPage)
        .expect("the page");
    let point = mtr.savepoint();
    let b = mtr
        .get(pages.id(4), Mode::S, Rank::FspPage)
        .expect("the page");
    let again = mtr
        .get(pages.id(3), Mode::X, Rank::FspPage)
        .expect("raised");
    assert!(a == again && mtr.mode(a) == Mode::X && a != b);
    mtr.release_from(point);
    assert!(mtr.held(pages.id(4)).is_none() && mtr.held(pages.id(3)).is_some());
    mtr.release(a);
    assert!(mtr.holds_latches());
    mtr.release(again);
    assert!(!mtr.holds_latches());
}

#[test]
fn a_panic_in_a_changed_page_freezes_the_engine_and_nothing_is_written() {
    let pages = TestPages::new(P, 64, 10);
    make(&pages, 3, 5);
    let id = pages.id(3);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut mtr = pages.mtr();
        let h = mtr.get(id, Mode::X, Rank::IndexPage).expect("the page");
        mtr.write_u64(h, 200, 0xBAD);
        panic!("planted");
    }));
    assert!(panicked.is_err());
    let written = pages.ctx.pool.counts().written;
    assert!(matches!(pages.ctx.pool.flush_all(), Err(Error::Stopped(_))));
    assert_eq!(pages.ctx.pool.counts().written, written);
    assert!(matches!(
        Mtr::start(&pages.ctx, Budget::statement(10)),
        Err(Error::Stopped(_))
    ));
    let mut reader = Mtr::reader(&pages.ctx);
    assert!(matches!(
        reader.get(id, Mode::S, Rank::IndexPage),
        Err(Error::Stopped(_))
    ));
    drop(reader);
}

#[test]
fn a_failed_apply_leaves_the_page_unmodified() {
    let pages = TestPages::new(P, 64, 10);
    make(&pages, 3, 4);
    let mut mtr = pages.mtr();
    let h = mtr
        .get(pages.id(3), Mode::X, Rank::UndoPage)
        .expect("the page");
    let op = crate::format::redo_record::PageOp::UndoInit;
    let failed = mtr.extended(h, &op, |_| Err::<(), _>(Error::corrupt_bytes("no")));
    assert!(failed.is_err() && !mtr.is_modified());
    mtr.extended(h, &op, |page| {
        page[38] = 1;
        Ok(())
    })
    .expect("applied");
    assert!(mtr.is_modified());
    mtr.commit();
}

#[test]
fn a_freed_page_is_not_written_and_can_be_made_anew() {
    let pages = TestPages::new(P, 64, 10);
    make(&pages, 3, 4);
    let mut mtr = pages.mtr();
    mtr.free_page(pages.id(3));
    mtr.commit();
    let report = pages
        .ctx
        .pool
        .flush_oldest(Lsn(u64::MAX), 10)
        .expect("flush");
    assert_eq!((report.written, report.dropped), (0, 1));
    make(&pages, 3, 4);
    let report = pages
        .ctx
        .pool
        .flush_oldest(Lsn(u64::MAX), 10)
        .expect("flush");
    assert_eq!((report.written, report.dropped), (1, 0));
}

#[test]
fn a_damaged_page_is_an_error_that_names_file_and_page() {
    let pages = TestPages::new(P, 64, 10);
    make(&pages, 3, 5);
    pages.ctx.pool.flush_all().expect("flush");
    pages.ctx.pool.discard_space(SPACE);
    let path = pages.ctx.spaces.find(SPACE).expect("open").path();
    let mut bytes = std::fs::read(&path).expect("the file");
    bytes[3 * P + 5000] ^= 1;
    std::fs::write(&path, &bytes).expect("damaged");
    let mut mtr = Mtr::reader(&pages.ctx);
    for _ in 0..2 {
        let error = mtr
            .get(pages.id(3), Mode::S, Rank::IndexPage)
            .expect_err("damaged");
        let text = error.to_string();
        assert!(
            text.contains(&path) && text.contains("page 3 of space 5"),
            "{text}"
        );
    }
    assert!(!pages.ctx.pool.contains(pages.id(3)));
    mtr.get(pages.id(4), Mode::S, Rank::IndexPage)
        .expect("its neighbour is fine");
    drop(mtr);
    // A page in the wrong place has a valid checksum.
    let (left, right) = bytes.split_at_mut(4 * P);
    left[3 * P..].copy_from_slice(&right[..P]);
    std::fs::write(&path, &bytes).expect("misplaced");
    let mut mtr = Mtr::reader(&pages.ctx);
    let error = mtr
        .get(pages.id(3), Mode::S, Rank::IndexPage)
        .expect_err("misplaced");
    assert!(error.to_string().contains("claims to be"), "{error}");
}

#[test]
fn changes_under_update_admit_readers() {
    let pages = TestPages::new(P, 64, 10);
    make(&pages, 3, 4);
    let mut mtr = pages.mtr();
    let mut reader = Mtr::reader(&pages.ctx);
    let r = reader
        .get(pages.id(3), Mode::S, Rank::IndexPage)
        .expect("the page");
    let h = mtr
        .get(pages.id(3), Mode::U, Rank::IndexPage)
        .expect("the page");
    mtr.write_u64(h, 56, 77);
    let end = mtr.commit();
    assert_eq!(reader.page_id(r), pages.id(3));
    drop(reader);
    let mut reader = Mtr::reader(&pages.ctx);
    let r = reader
        .get(pages.id(3), Mode::S, Rank::IndexPage)
        .expect("the page");
    assert_eq!(be::u64_at(reader.view(r), 56), 77);
    assert_eq!(fil::lsn(reader.view(r)), end);
}

/// Stands for an encryption: every byte behind the header is turned round.
#[derive(Debug)]
struct Turned;

impl PageTransform for Turned {
    fn encode(&self, page: PageNo, copy: &mut [u8]) {
        assert!(page < PageNo(200));
        copy[fil::HEADER_BYTES..P - 8]
            .iter_mut()
            .for_each(|byte| *byte = !*byte);
    }

    fn decode(&self, page: PageNo, bytes: &mut [u8]) -> Result<()> {
        self.encode(page, bytes);
        match be::u32_at(bytes, 100) == page.0 {
            true => Ok(()),
            false => Err(Error::corrupt(PageId::new(SPACE, page), "not decoded")),
        }
    }
}

#[test]
fn a_page_goes_through_the_transform_of_its_tablespace() {
    let pages = TestPages::new(P, 64, 200);
    let space = pages.ctx.spaces.find(SPACE).expect("open");
    space.set_transform(std::sync::Arc::new(Turned));
    make(&pages, 3, 200);
    pages.ctx.pool.flush_all().expect("flush");
    let file = std::fs::read(space.path()).expect("its bytes");
    let id = pages.id(77);
    let at = 77 * P;
    assert_eq!(
        be::u32_at(&file, at + 100),
        !77,
        "the file has the other form"
    );
    checksum::verify(&file[at..at + P], space.flags().flavour(), id).expect("stamped after it");
    pages.ctx.pool.discard_space(SPACE);
    let mut mtr = Mtr::reader(&pages.ctx);
    for page in 3..200 {
        let h = mtr.get(pages.id(page), Mode::S, Rank::IndexPage);
        let h = h.expect("the page");
        assert_eq!(be::u32_at(mtr.view(h), 100), page);
        mtr.release(h);
    }
}

//! What fails half-way leaves no trace.

use super::testing::{SPACE, TestPages};
use super::*;
use crate::format::redo_record::Records;
use crate::sync::Rank;
use crate::words::{Error, Lsn, Result, be};

const P: usize = 4096;

fn made(pages: &TestPages, numbers: std::ops::Range<u32>) {
    let mut mtr = pages.mtr();
    for page in numbers {
        let held = mtr.create(pages.id(page), Rank::IndexPage).expect("new");
        mtr.write_u32(held, 100, page);
    }
    mtr.commit();
}

fn fails() -> Result<()> {
    Err(Error::corrupt_bytes("damage"))
}

#[test]
fn a_failed_attempt_leaves_pages_records_and_the_engine_as_they_were() {
    let pages = TestPages::new(P, 64, 20);
    made(&pages, 3..8);
    let mut mtr = pages.mtr();
    let changed = mtr
        .get(pages.id(3), Mode::X, Rank::IndexPage)
        .expect("there");
    mtr.write_u32(changed, 200, 1);
    let before: Vec<u8> = mtr.view(changed).to_vec();
    let left = mtr.log_bytes_left();
    let failed = mtr.attempt(|mtr| {
        mtr.write_u32(changed, 200, 2);
        let other = mtr.get(pages.id(4), Mode::X, Rank::IndexPage)?;
        mtr.memset(other, 300, 50, 7);
        mtr.memmove(other, 400, 300, 20);
        let under_update = mtr.get(pages.id(5), Mode::U, Rank::IndexPage)?;
        mtr.write_u64(under_update, 56, 99);
        let new = mtr.create(pages.id(9), Rank::IndexPage)?;
        mtr.write_u32(new, 100, 9);
        mtr.free_page(pages.id(6));
        fails()
    });
    assert!(failed.is_err());
    assert_eq!(mtr.view(changed), before);
    assert_eq!(mtr.log_bytes_left(), left);
    let other = mtr.held(pages.id(4)).expect("still latched");
    assert_eq!(mtr.view(other)[300..420], [0; 120]);
    // What came before the attempt, and what comes after, is committed.
    mtr.write_u32(changed, 204, 3);
    assert!(mtr.commit() > Lsn(0));
    pages.ctx.pool.flush_all().expect("flush");
    pages.ctx.pool.discard_space(SPACE);
    let mut mtr = Mtr::reader(&pages.ctx);
    let page = mtr.get(pages.id(3), Mode::S, Rank::IndexPage).expect("3");
    assert_eq!(be::u64_at(mtr.view(page), 200), 1 << 32 | 3);
    mtr.release(page);
    let page = mtr.get(pages.id(5), Mode::S, Rank::IndexPage).expect("5");
    assert_eq!(be::u64_at(mtr.view(page), 56), 0);
    mtr.release(page);
    let page = mtr.get(pages.id(6), Mode::S, Rank::IndexPage).expect("6");
    assert_eq!(be::u32_at(mtr.view(page), 100), 6);
    mtr.release(page);
    let never = mtr.get(pages.id(9), Mode::S, Rank::IndexPage);
    assert!(never.is_err(), "page 9 was never made");
}

#[test]
fn an_mtr_that_only_tried_ends_unmodified_and_may_restart() {
    let pages = TestPages::new(P, 64, 20);
    made(&pages, 3..6);
    let mut mtr = pages.mtr();
    let tried: Result<()> = mtr.attempt(|mtr| {
        let page = mtr.get(pages.id(3), Mode::X, Rank::IndexPage)?;
        mtr.write_u32(page, 200, 2);
        Err(Error::WouldBlock)
    });
    assert_eq!(tried, Err(Error::WouldBlock));
    assert!(!mtr.is_modified());
    mtr.restart().expect("nothing is modified");
    drop(mtr);
    pages.ctx.check_running().expect("the engine goes on");
}

#[test]
fn a_failed_part_of_an_attempt_goes_alone() {
    let pages = TestPages::new(P, 64, 20);
    made(&pages, 3..6);
    for outer_fails in [false, true] {
        let mut mtr = pages.mtr();
        let held = mtr
            .get(pages.id(3), Mode::X, Rank::IndexPage)
            .expect("there");
        let start = mtr.view(held).to_vec();
        let outer = mtr.attempt(|mtr| {
            mtr.write_u32(held, 200, 10);
            for (at, inner_fails) in [(204, false), (208, true), (212, false)] {
                let inner = mtr.attempt(|mtr| {
                    mtr.write_u32(held, 200, at as u32);
                    mtr.write_u32(held, at, 11);
                    if inner_fails { fails() } else { Ok(()) }
                });
                assert_eq!(inner.is_err(), inner_fails);
            }
            if outer_fails { fails() } else { Ok(()) }
        });
        assert_eq!(outer.is_err(), outer_fails);
        let words = |at| be::u32_at(mtr.view(held), at);
        match outer_fails {
            true => assert_eq!(mtr.view(held), start),
            false => assert_eq!(
                [words(200), words(204), words(208), words(212)],
                [212, 11, 0, 11]
            ),
        }
        if outer_fails {
            assert!(!mtr.is_modified());
        }
        mtr.commit();
        let mut mtr = pages.mtr();
        let held = mtr
            .get(pages.id(3), Mode::X, Rank::IndexPage)
            .expect("there");
        mtr.memset(held, 200, 20, 0);
        mtr.commit();
    }
}

/// The coding of a record depends on the one before: page and cursor go back, too.
#[test]
fn the_records_around_a_failed_attempt_are_those_of_an_mtr_without_it() {
    let pages = TestPages::new(P, 64, 20);
    made(&pages, 3..5);
    let run = |tries: bool| {
        let mut mtr = pages.mtr();
        let mut get = |page| {
            mtr.get(pages.id(page), Mode::X, Rank::IndexPage)
                .expect("there")
        };
        let (a, b) = (get(3), get(4));
        let result = mtr.attempt(|mtr| {
            mtr.write_u32(a, 200, 0x0101_0101);
            if tries {
                let tried = mtr.attempt(|mtr| {
                    mtr.write_u32(b, 300, 0x0202_0202);
                    mtr.write_u32(b, 310, 0x0202_0202);
                    fails()
                });
                assert!(tried.is_err());
            }
            mtr.write_u32(a, 240, 0x0303_0303);
            let records = mtr.scratch.records.clone();
            assert_eq!(Records::new(&records).filter(|r| r.is_ok()).count(), 2);
            Err::<(), _>(Error::internal(format!("{records:?}")))
        });
        format!("{result:?}")
    };
    assert_eq!(run(false), run(true));
}

//! The device is full while pages are written: who waits, who fails, and what must not be lost.

use super::testing::{SPACE, TestPages};
use super::{Budget, Mode, Mtr};
use crate::buffer::{Doublewrite, DoublewriteCopies};
use crate::format::checksum::Flavour;
use crate::format::fsp::SpaceFlags;
use crate::os::sim::{Call, SimVfs};
use crate::space::{DataFilePath, Kind};
use crate::sync::Rank;
use crate::words::{Error, Lsn, PageId, PageNo, SpaceId, be};

const P: usize = 4096;
const OTHER: SpaceId = SpaceId(6);
const PLACE: Doublewrite = Doublewrite {
    blocks: [PageNo(256), PageNo(512)],
    block_pages: 256,
};

fn setup(sim: &SimVfs) -> TestPages {
    let pages = TestPages::simulated(sim, P, 128);
    let path = DataFilePath::parse("ibdata1:4M:autoextend").expect("a path");
    let flags = SpaceFlags::full_crc32(P);
    let made = pages.ctx.spaces.create_system(Kind::System, &path, flags);
    made.expect("ibdata1");
    pages.ctx.pool.set_doublewrite(PLACE);
    for space in [SPACE, OTHER] {
        pages.add_space(space, 40);
        for page in 3..20 {
            let mut mtr = pages.mtr();
            mtr.create(id(space, page), Rank::IndexPage)
                .expect("a page");
            mtr.commit();
        }
    }
    pages.ctx.pool.flush_all().expect("flush");
    pages
}

fn id(space: SpaceId, page: u32) -> PageId {
    PageId::new(space, PageNo(page))
}

/// By the class that is never made to wait.
fn change(pages: &TestPages, id: PageId, value: u64) {
    let mut mtr = Mtr::start(&pages.ctx, Budget::system(4096)).expect("admitted");
    let h = mtr.get(id, Mode::X, Rank::IndexPage).expect("a page");
    mtr.write_u64(h, 200, value);
    mtr.commit();
}

fn value(pages: &TestPages, id: PageId) -> u64 {
    let mut mtr = Mtr::reader(&pages.ctx);
    let h = mtr
        .get_reading(id, Mode::S, Rank::IndexPage)
        .expect("a page");
    be::u64_at(mtr.view(h), 200)
}

const ALL: Lsn = Lsn(u64::MAX);

#[test]
fn while_a_file_has_no_room_statements_fail_by_its_name_and_reads_and_other_files_go_on() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    let pool = &pages.ctx.pool;
    change(&pages, id(SPACE, 5), 1);
    sim.fail(Call::Write, "t5.ibd", 0, libc::ENOSPC, false);
    assert_eq!(pool.flush_oldest(ALL, 100).map(|r| r.failed), Ok(1));
    assert!(pool.writes_stalled());
    let refused = Mtr::start(&pages.ctx, Budget::statement(4096)).map(drop);
    let Err(Error::DeviceFull(path)) = refused else {
        panic!("{refused:?}");
    };
    assert!(path.ends_with("t5.ibd"), "{path}");
    // Reads, rollback (this class), and the other file.
    change(&pages, id(SPACE, 5), 2);
    change(&pages, id(SPACE, 6), 3);
    change(&pages, id(OTHER, 5), 4);
    assert_eq!(value(&pages, id(SPACE, 5)), 2);
    let report = pool.flush_oldest(ALL, 100).expect("the other file");
    assert_eq!((report.written, report.failed), (1, 2), "{report:?}");
    let Err(Error::Io(failure)) = pool.flush_all() else {
        panic!("not all can be written");
    };
    assert!(failure.path.ends_with("t5.ibd") && failure.errno == libc::ENOSPC);
    assert!(!pool.retry_stalled().expect("no room yet"));
    sim.heal();
    assert!(pool.retry_stalled().expect("there is room"));
    drop(pages.mtr());
    pool.flush_all().expect("all");
    assert_eq!(pool.dirty_count(), 0);
    for (at, wanted) in [(id(SPACE, 5), 2), (id(SPACE, 6), 3), (id(OTHER, 5), 4)] {
        let file = sim.content(if at.space == SPACE {
            "./t/t5.ibd"
        } else {
            "./t/t6.ibd"
        });
        let file = file.expect("the file");
        assert_eq!(be::u64_at(&file, at.page.0 as usize * P + 200), wanted);
    }
}

#[test]
fn the_copy_of_a_page_that_a_full_device_tore_stays_until_the_page_is_written() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    let pool = &pages.ctx.pool;
    let copy = |number: u32| {
        let file = sim.content("./ibdata1").expect("the file");
        let copies = DoublewriteCopies::load(PLACE, P, &(Lsn(0)..=ALL), |page, buffer| {
            buffer.copy_from_slice(&file[page.0 as usize * P..][..P]);
            Ok(())
        });
        let copy = copies.find(id(SPACE, number), P, Flavour::FullCrc32, Lsn(0), ALL);
        copy.map(|copy| be::u64_at(copy, 200))
    };
    change(&pages, id(SPACE, 5), 7);
    sim.fail(Call::Write, "t5.ibd", 0, libc::ENOSPC, false);
    pool.flush_oldest(ALL, 100).expect("no room");
    assert_eq!(copy(5), Some(7));
    for round in 0..6 {
        for page in 3..20 {
            change(&pages, id(OTHER, page), round);
        }
        change(&pages, id(SPACE, 9), round);
        pool.flush_oldest(ALL, 100).expect("the other file");
        assert_eq!(copy(5), Some(7), "round {round}");
    }
    sim.heal();
    pool.flush_all().expect("there is room");
    let file = sim.content("./t/t5.ibd").expect("the file");
    assert_eq!(be::u64_at(&file, 5 * P + 200), 7);
    assert_eq!(be::u64_at(&file, 9 * P + 200), 5);
    // Both blocks serve again.
    for round in 10..14 {
        change(&pages, id(OTHER, 3), round);
        pool.flush_all().expect("flush");
    }
    assert_eq!(copy(5), None);
}

#[test]
fn a_file_without_room_can_be_dropped_and_doublewrite_blocks_without_room_are_tried_again() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    let pool = &pages.ctx.pool;
    change(&pages, id(SPACE, 5), 1);
    sim.fail(Call::Write, "t5.ibd", 0, libc::ENOSPC, false);
    pool.flush_oldest(ALL, 100).expect("no room");
    pool.discard_space(SPACE);
    assert!(!pool.writes_stalled());
    assert_eq!(pool.oldest_modification(), None);
    drop(pages.mtr());
    sim.heal();
    sim.fail(Call::Write, "ibdata1", 0, libc::ENOSPC, false);
    change(&pages, id(OTHER, 5), 2);
    assert_eq!(pool.flush_oldest(ALL, 100).map(|r| r.failed), Ok(1));
    let refused = Mtr::start(&pages.ctx, Budget::statement(4096)).map(drop);
    assert!(matches!(&refused, Err(Error::DeviceFull(path)) if path.ends_with("ibdata1")));
    sim.heal();
    pool.flush_all().expect("there is room");
    assert!(!pool.writes_stalled());
    assert_eq!(pool.dirty_count(), 0);
}

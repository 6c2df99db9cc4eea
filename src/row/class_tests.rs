//! The free-space classes of secondary leaves, as a stock server left them, under random changes.

use super::testing::{Bed, Row};
use crate::extent::is_page_free;
use crate::format::fil::PageType;
use crate::format::ibuf::{self, OFF_BITMAP};
use crate::mtr::testing::SPACE;
use crate::mtr::{Budget, Mode, Mtr};
use crate::page::{layout, space};
use crate::sync::Rank;
use crate::trx::Isolation;
use crate::words::{PageId, PageNo};

/// Claims the most for every page, and marks one as the change buffer's: so no bitmap page is
/// lowered as a whole.
fn claim_all(bed: &Bed) {
    let geometry = bed.ctx().spaces.find(SPACE).expect("open").geometry();
    let bitmap = PageId::new(SPACE, geometry.bitmap_page(PageNo(0)));
    let budget = Budget::statement(64 << 10).with_frames(8);
    let mut mtr = Mtr::start(bed.ctx(), budget).expect("room");
    let page = mtr.get_reading(bitmap, Mode::X, Rank::FspPage);
    let page = page.expect("the bitmap");
    let bytes = geometry.descriptor_interval() as usize / 2;
    mtr.memset(page, OFF_BITMAP, bytes, 0b0011_0011);
    mtr.write_u8(page, OFF_BITMAP, 0b0011_1011);
    mtr.commit();
}

/// No secondary leaf claims more than it has; returns how many leaves there are, and how many of
/// them claim nothing.
fn check_claims(bed: &Bed) -> (usize, usize) {
    let file = bed.ctx().spaces.find(SPACE).expect("open");
    let geometry = file.geometry();
    let (mut leaves, mut low) = (0, 0);
    for no in (0..file.size_pages()).map(PageNo) {
        let id = PageId::new(SPACE, no);
        let free = is_page_free(&mut Mtr::reader(bed.ctx()), id);
        if free.expect("a descriptor") {
            continue;
        }
        let mut mtr = Mtr::reader(bed.ctx());
        let page = mtr.get_reading(id, Mode::S, Rank::IndexPage);
        let page = page.expect("a sound page");
        let view = mtr.view(page);
        let is_secondary = layout::page_type(view) == PageType::INDEX.0
            && layout::is_leaf(view)
            && (71..74).contains(&layout::index_id(view).0);
        if !is_secondary {
            continue;
        }
        let room = space::max_insert_size_after_reorganise(view, 1);
        let n_recs = layout::n_recs(view);
        let bitmap = PageId::new(SPACE, geometry.bitmap_page(no));
        let held = mtr.get_reading(bitmap, Mode::S, Rank::FspPage);
        let claim = ibuf::bits(mtr.view(held.expect("the bitmap")), geometry, no).free;
        let has = ibuf::free_class(geometry, room);
        assert!(
            claim <= has,
            "page {no}: {claim} of {has}, {n_recs} records"
        );
        leaves += 1;
        low += usize::from(claim == 0);
    }
    (leaves, low)
}

fn row(id: i32, length: usize) -> Row {
    let spread = (id as u32).wrapping_mul(2_654_435_761) % 10_007;
    let mut v = format!("{spread:05} {id:05}").into_bytes();
    v.resize(v.len() + length, b'.');
    Row {
        id,
        a: Some(spread as i32 % 50),
        b: Some(v[..12].to_vec()),
        v: Some(v),
    }
}

#[test]
fn no_secondary_leaf_claims_more_space_than_it_has() {
    for compact in [true, false] {
        let bed = Bed::new(512, compact);
        claim_all(&bed);
        let mut w = bed.session();
        w.begin(Isolation::RepeatableRead);
        for id in 0..400 {
            w.insert(&row(id, 20 + id as usize % 150))
                .expect("inserted");
        }
        w.commit();
        let (grown, low) = check_claims(&bed);
        assert!(grown > 15 && low == grown, "{low} of {grown}");
        w.begin(Isolation::RepeatableRead);
        for id in 0..400 {
            match id % 3 {
                0 => w.insert(&row(1000 + id, 150)),
                1 => w.update(id, &row(id, 170)),
                _ => w.delete(id),
            }
            .expect("changed");
        }
        check_claims(&bed);
        // Takes entries out, so leaves merge.
        w.rollback();
        let (after, _) = check_claims(&bed);
        println!("{grown} leaves, {after} after the rollback");
        bed.records();
        bed.check();
    }
}

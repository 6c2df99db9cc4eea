//! Structure changes in trees whose pages contradict each other, each with a right checksum: the change
//! is made, or it is an error that names the damage and has changed nothing.

use std::collections::BTreeMap;

use super::tests::{Bed, Random, bed, key, row};
use super::*;
use crate::format::{fil, fsp, index_page};
use crate::mtr::testing::SPACE;
use crate::mtr::{Budget, Class, Mode, retry};
use crate::words::be;

const P: usize = 4096;

/// What a page is to the tree, for choosing where to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Leaf,
    Inner,
    Root,
    /// Page 0: space header and descriptors.
    Header,
    /// Page 2: the segments' inodes.
    Inodes,
}

/// A contradiction: which pages, where in the page, what.
#[derive(Clone, Copy, Debug)]
struct Plant {
    name: &'static str,
    place: Place,
    from: usize,
    to: usize,
    bytes: &'static [u8],
}

const fn plant(
    name: &'static str,
    place: Place,
    (from, to): (usize, usize),
    bytes: &'static [u8],
) -> Plant {
    Plant {
        name,
        place,
        from,
        to,
        bytes,
    }
}

const PLANTS: [Plant; 20] = [
    plant("left link", Place::Leaf, (8, 9), &[0, 0, 0, 7]),
    plant("right link", Place::Leaf, (12, 13), &[0, 0, 0, 7]),
    plant(
        "right link to itself",
        Place::Inner,
        (12, 13),
        &[0, 0, 0, 5],
    ),
    plant(
        "left link of an inner page",
        Place::Inner,
        (8, 9),
        &[0xFF; 4],
    ),
    plant("level of a leaf", Place::Leaf, (64, 65), &[0, 1]),
    plant("level of an inner page", Place::Inner, (64, 65), &[0, 3]),
    plant("index id", Place::Leaf, (66, 67), &[0, 0, 0, 0, 0, 0, 0, 9]),
    plant(
        "index id above",
        Place::Inner,
        (66, 67),
        &[0, 0, 0, 0, 0, 0, 0, 9],
    ),
    plant("records of a leaf", Place::Leaf, (94, 1000), &[0xFF, 0xFF]),
    plant("records of an inner page", Place::Inner, (94, 600), &[0, 0]),
    plant("records of the root", Place::Root, (94, 200), &[0x55]),
    plant("page header", Place::Leaf, (38, 56), &[0, 0xFF]),
    plant("page header above", Place::Inner, (38, 56), &[1]),
    plant("directory", Place::Leaf, (P - 60, P - 9), &[0x02, 0x11]),
    plant("directory above", Place::Inner, (P - 30, P - 9), &[0, 99]),
    plant("segment headers", Place::Root, (74, 93), &[0xFF]),
    plant(
        "inode of the leaves",
        Place::Inodes,
        (626, 680),
        &[0xFF, 0xFF],
    ),
    plant(
        "inode above that is gone",
        Place::Inodes,
        (50, 100),
        &[0; 40],
    ),
    plant("descriptors", Place::Header, (158, 240), &[0xFF, 0xFF]),
    plant(
        "space header",
        Place::Header,
        (fsp::OFF_FREE_LIMIT, 150),
        &[0, 0xFF],
    ),
];

struct Planted {
    bed: Bed,
    /// All pages as they are without damage.
    sound: BTreeMap<u32, Vec<u8>>,
    rows: Vec<u64>,
}

fn planted() -> Planted {
    let bed = bed(512, true);
    // Three levels: a node pointer has 8 + 4 bytes, so short pages come from long values.
    let rows: Vec<u64> = (0..1600).map(|n| n * 10).collect();
    for &id in &rows {
        bed.insert(id, &[7; 500]);
    }
    let mut planted = Planted {
        bed,
        sound: BTreeMap::new(),
        rows,
    };
    assert_eq!(planted.bed.validate().height, 2);
    let ctx = &planted.bed.pages.ctx;
    let size = ctx.spaces.find(SPACE).expect("open").size_pages();
    planted.sound = planted.pages(0..size);
    planted
}

impl Planted {
    fn pages(&self, numbers: impl Iterator<Item = u32>) -> BTreeMap<u32, Vec<u8>> {
        let copy = |page| {
            let mut mtr = Mtr::reader(&self.bed.pages.ctx);
            let held = mtr.get(self.bed.pages.id(page), Mode::S, Rank::None);
            Some((page, mtr.view(held.ok()?).to_vec()))
        };
        numbers.filter_map(copy).collect()
    }

    /// A row of the page or, from time to time, any.
    fn row_near(&self, page: u32, nth: usize, random: &mut Random) -> u64 {
        let bytes = &self.sound[&page];
        let any = self.rows[random.below(self.rows.len())];
        if page < 3 || nth % 4 == 3 {
            return any;
        }
        let keys = layout::records(bytes).map(|rec| be::u64_at(bytes, rec.expect("sound").at()));
        let keys: Vec<u64> = keys.collect();
        keys[random.below(keys.len())]
    }

    fn places(&self, place: Place) -> Vec<u32> {
        let of = |(&page, bytes): (&u32, &Vec<u8>)| {
            let is_tree = be::u16_at(bytes, fil::OFF_TYPE) == index_page::TYPE_INDEX
                && be::u64_at(bytes, 66) == self.bed.tree.index().id.0;
            let is_root = PageNo(page) == self.bed.tree.index().root;
            let found = match (page, is_tree) {
                (0, _) => Place::Header,
                (2, _) => Place::Inodes,
                (_, false) => return None,
                _ if is_root => Place::Root,
                _ if be::u16_at(bytes, 64) == 0 => Place::Leaf,
                _ => Place::Inner,
            };
            (found == place).then_some(page)
        };
        self.sound.iter().filter_map(of).collect()
    }

    fn write(&self, page: u32, at: usize, bytes: &[u8]) {
        let mut mtr = self.bed.pages.mtr();
        let held = mtr
            .get(self.bed.pages.id(page), Mode::X, Rank::None)
            .expect("in the pool");
        mtr.write(held, at, bytes);
        mtr.commit();
    }

    /// All pages as they were without damage.
    fn mend(&self) {
        for (&page, bytes) in &self.sound {
            self.write(page, 8, &bytes[8..16]);
            self.write(page, 24, &bytes[24..P - 8]);
        }
    }

    /// A change that needs the structure: a large row, a row less, a row that grows.
    fn change(&mut self, kind: usize, id: u64) -> Result<()> {
        let Bed {
            pages,
            tree,
            scratch,
        } = &mut self.bed;
        let ctx = &pages.ctx;
        let _space = tree.reserve_for_change(ctx, Class::Statement)?;
        let budget: Budget = tree.change_budget(ctx, Class::Statement);
        let done = |mtr: &mut Mtr<'_>| match kind {
            0 => {
                let tuple = row(id + 1, &[9; 1500]);
                let (_, mut path) = tree.seek_to_restructure(mtr, &tuple, Change::Insert)?;
                tree.insert_restructuring(mtr, &mut path, &tuple, scratch)
                    .map(drop)
            }
            1 => {
                let (at, mut path) = tree.seek_to_restructure(mtr, &key(id), Change::Delete)?;
                if layout::is_system(mtr.view(at.page), at.rec) {
                    return Ok(());
                }
                tree.delete_restructuring(mtr, &mut path, at.rec, scratch)
            }
            _ => {
                let tuple = row(id, &[8; 1800]);
                let (at, mut path) = tree.seek_to_restructure(mtr, &key(id), Change::Both)?;
                if at.low_match != 1 {
                    return Ok(());
                }
                tree.replace_restructuring(mtr, &mut path, &at, &tuple, scratch)
                    .map(drop)
            }
        };
        retry(ctx, Some(budget), done).map(drop)
    }
}

/// Plants every contradiction at several places and tries every change beside it.
#[test]
fn a_structure_change_that_meets_damage_is_an_error_and_changes_nothing() {
    let mut planted = planted();
    let mut random = Random(0x5EED);
    let mut errors = BTreeMap::new();
    for plant in PLANTS {
        let places = planted.places(plant.place);
        for round in 0..5 {
            let page = places[random.below(places.len())];
            let at = plant.from + random.below(plant.to - plant.from);
            planted.write(page, at, plant.bytes);
            let ids = [0, 1, 2].map(|n| planted.row_near(page, round + n, &mut random));
            for (kind, id) in [0, 1, 2].into_iter().zip(ids) {
                // The file may grow before the change begins.
                let ctx = &planted.bed.pages.ctx;
                drop(planted.bed.tree.reserve_for_change(ctx, Class::Statement));
                let before = planted.pages(planted.sound.keys().copied());
                match planted.change(kind, id) {
                    Ok(()) => {
                        planted.mend();
                        planted.write(page, at, plant.bytes);
                    }
                    Err(error) => {
                        assert!(
                            matches!(error, Error::Corrupt(_)),
                            "{} at {at} of page {page}: {error}",
                            plant.name
                        );
                        *errors.entry(plant.name).or_insert(0) += 1;
                        let ctx = &planted.bed.pages.ctx;
                        ctx.check_running().expect("the engine goes on");
                        let after = planted.pages(planted.sound.keys().copied());
                        for (page, bytes) in &before {
                            assert!(after[page] == *bytes, "{}: page {page} changed", plant.name);
                        }
                    }
                }
            }
            planted.mend();
        }
    }
    println!("{errors:?}");
    assert!(errors.len() >= PLANTS.len() * 2 / 3, "{errors:?}");
    planted.bed.validate();
    for kind in 0..3 {
        planted.change(kind, 500).expect("sound again");
    }
    planted.bed.validate();
}

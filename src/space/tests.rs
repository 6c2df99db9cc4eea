//! Opening, growing, renaming and deleting files, and what faults do to them.

use super::*;
use crate::format::checksum::{self, Flavour};
use crate::format::fil;
use crate::format::fsp::{SpaceFlags, SpaceHeader};
use crate::os::sim::{Call, SimVfs};
use crate::os::{AlignedBuf, OpenMode, RealVfs, Vfs};
use crate::sync::{Arc, Gate, Rank};
use crate::words::{Error, Lsn, PageId, PageNo, SpaceId};

const PAGE: usize = 16384;

fn registry(sim: &SimVfs) -> Registry {
    sim.create_dir("./data").unwrap();
    let places = Places {
        data_dir: "./data".into(),
        system_dir: "./data".into(),
        undo_dir: "./data".into(),
        page_size: PAGE,
        direct: true,
        read_only: false,
    };
    Registry::new(Arc::new(sim.clone()), places)
}

fn no_repair(_: PageId) -> Option<Vec<u8>> {
    None
}

fn first_page(id: SpaceId, flags: SpaceFlags, size: u32) -> AlignedBuf {
    let mut page = AlignedBuf::new(PAGE);
    fil::init(&mut page, PageId::new(id, PageNo(0)));
    crate::words::be::put_u16(&mut page, fil::OFF_TYPE, fil::PageType::FSP_HDR.0);
    fil::set_lsn(&mut page, Lsn(777));
    SpaceHeader::new(id, flags, size).write(&mut page);
    checksum::stamp(&mut page, flags.flavour());
    page
}

fn make_table(spaces: &Registry, id: u32, name: &str) -> Arc<Space> {
    let flags = SpaceFlags::full_crc32(PAGE);
    let space = spaces.create_table(SpaceId(id), name, flags, 4).unwrap();
    space
        .write_page(PageNo(0), &first_page(SpaceId(id), flags, 4))
        .unwrap();
    space.sync().unwrap();
    space
}

#[test]
fn a_table_that_was_made_is_opened_again_and_its_name_goes_with_it() {
    let sim = SimVfs::new();
    let spaces = registry(&sim);
    let space = make_table(&spaces, 5, "t/w");
    assert_eq!(spaces.log_path(&space), "./t/w.ibd");
    assert_eq!(spaces.resolve_log_path("./t/w.ibd"), "./data/t/w.ibd");
    assert!(matches!(
        spaces.create_table(SpaceId(6), "t/w", space.flags(), 4),
        Err(Error::TablespaceExists(_))
    ));
    spaces.rename_table(&space, "u/v").unwrap();
    assert_eq!((&*space.name(), &*space.path()), ("u/v", "./data/u/v.ibd"));
    let mut page = AlignedBuf::new(PAGE);
    space.read_page(PageNo(0), &mut page).unwrap();
    drop(space);

    let cut = sim.after_power_cut(11);
    let spaces = registry(&cut);
    let space = spaces.open_table(SpaceId(5), "u/v", &no_repair).unwrap();
    assert_eq!((space.size_pages(), space.file_pages().unwrap()), (4, 4));
    assert!(Arc::ptr_eq(
        &space,
        &spaces.open_table(SpaceId(5), "u/v", &no_repair).unwrap()
    ));
    spaces.delete(&space).unwrap();
    assert!(spaces.get(SpaceId(5)).is_none());
    assert!(matches!(
        space.read_page(PageNo(0), &mut page),
        Err(Error::TablespaceMissing(_))
    ));
    assert!(matches!(
        spaces.open_table(SpaceId(5), "u/v", &no_repair),
        Err(Error::TablespaceMissing(_))
    ));
}

#[test]
fn damage_of_page_0_is_found_and_repaired_from_a_copy_only() {
    let sim = SimVfs::new();
    make_table(&registry(&sim), 5, "t/w");
    let good = sim.content("./data/t/w.ibd").unwrap();
    let mut seed = crate::os::sim::Random(5);
    for _ in 0..60 {
        let mut bad = good.clone();
        let at = seed.below(PAGE as u64) as usize;
        bad[at] ^= 1 << seed.below(8);
        sim.put("./data/t/w.ibd", &bad);
        let error = registry(&sim)
            .open_table(SpaceId(5), "t/w", &no_repair)
            .unwrap_err();
        assert!(
            error.to_string().contains("./data/t/w.ibd"),
            "byte {at}: {error}"
        );
    }
    let copy = good[..PAGE].to_vec();
    let repaired = registry(&sim);
    repaired
        .open_table(SpaceId(5), "t/w", &|_| Some(copy.clone()))
        .unwrap();
    assert_eq!(sim.content("./data/t/w.ibd").unwrap(), good);
    // A copy of another tablespace is no help.
    let mut zero = good.clone();
    zero[..PAGE].fill(0);
    sim.put("./data/t/w.ibd", &zero);
    let other = first_page(SpaceId(9), SpaceFlags::full_crc32(PAGE), 4).to_vec();
    let opened = registry(&sim).open_table(SpaceId(5), "t/w", &|_| Some(other.clone()));
    assert!(matches!(opened, Err(Error::Corrupt(_))));
    for short in [0, 100, PAGE - 1] {
        sim.put("./data/t/w.ibd", &good[..short]);
        let opened = registry(&sim).open_table(SpaceId(5), "t/w", &no_repair);
        assert!(matches!(opened, Err(Error::Corrupt(_))), "{short} bytes");
    }
    sim.put("./data/t/w.ibd", &good);
    let opened = registry(&sim).open_table(SpaceId(8), "t/w", &no_repair);
    assert!(
        opened
            .unwrap_err()
            .to_string()
            .contains("belongs to tablespace 5")
    );
}

#[test]
fn a_full_device_refuses_growth_and_leaves_everything_usable() {
    let sim = SimVfs::new();
    let spaces = registry(&sim);
    let space = make_table(&spaces, 5, "t/w");
    sim.limit_bytes(10 * PAGE as u64);
    assert_eq!(space.allocate(20), Err(Error::NoSpace(SpaceId(5))));
    assert_eq!(
        (space.file_pages().unwrap(), space.state()),
        (4, State::Normal)
    );
    let full = spaces.create_table(SpaceId(6), "t/x", space.flags(), 20);
    assert!(matches!(full, Err(Error::NoSpace(_))));
    assert!(!sim.exists("./data/t/x.ibd").unwrap());
    space.allocate(8).unwrap();
    sim.heal();
    space.allocate(20).unwrap();
    assert_eq!(space.file_pages().unwrap(), 20);
    space.sync().unwrap();
    assert_eq!(
        sim.after_power_cut(3)
            .content("./data/t/w.ibd")
            .unwrap()
            .len(),
        20 * PAGE
    );
}

#[test]
fn a_failed_sync_fails_the_tablespace_for_good_and_no_other() {
    let sim = SimVfs::new();
    let spaces = registry(&sim);
    let (bad, good) = (
        make_table(&spaces, 5, "t/bad"),
        make_table(&spaces, 6, "t/good"),
    );
    let page = first_page(SpaceId(5), bad.flags(), 4);
    bad.write_page(PageNo(0), &page).unwrap();
    assert!(bad.has_unsynced_writes());
    sim.fail(Call::Sync, "bad.ibd", 0, libc::EIO, true);
    assert!(matches!(bad.sync(), Err(Error::Io(_))));
    assert_eq!(bad.state(), State::Failed);
    // The device would say yes now; nobody asks it.
    assert!(matches!(bad.sync(), Err(Error::FileFailed(_))));
    assert!(matches!(
        bad.write_page(PageNo(0), &page),
        Err(Error::FileFailed(_))
    ));
    good.write_page(PageNo(1), &page).unwrap();
    good.sync().unwrap();
    sim.fail(Call::Write, "good.ibd", 0, libc::ENOSPC, true);
    assert_eq!(
        good.write_page(PageNo(1), &page),
        Err(Error::NoSpace(SpaceId(6)))
    );
    assert_eq!(good.state(), State::Normal);
}

#[test]
fn the_system_tablespace_may_be_several_files_and_is_locked() {
    let sim = SimVfs::new();
    let spaces = registry(&sim);
    let path = DataFilePath::parse("a:1M;b:2M:autoextend:max:3M").unwrap();
    let flags = SpaceFlags::full_crc32(PAGE);
    let space = spaces.create_system(Kind::System, &path, flags).unwrap();
    assert_eq!(space.size_pages(), 192);
    space
        .write_page(PageNo(0), &first_page(SpaceId(0), flags, 192))
        .unwrap();
    let mut page = AlignedBuf::new(PAGE);
    page.fill(5);
    space.write_page(PageNo(64), &page).unwrap();
    assert_eq!(sim.content("./data/b").unwrap()[..PAGE], page[..]);
    assert_eq!(space.size_for(193, 1), 256);
    space.allocate(256).unwrap();
    assert_eq!(space.allocate(257), Err(Error::NoSpace(SpaceId(0))));
    assert_eq!(space.file_pages().unwrap(), 256);
    assert!(matches!(
        registry(&sim).open_system(&path, &no_repair),
        Err(Error::Busy(_))
    ));
    drop((space, spaces));
    let spaces = registry(&sim);
    let space = spaces.open_system(&path, &no_repair).unwrap();
    space.read_page(PageNo(64), &mut page).unwrap();
    assert!(page.iter().all(|&byte| byte == 5));
    let beyond = space.read_page(PageNo(256), &mut page);
    assert!(beyond.unwrap_err().to_string().contains("./data/b"));
    let wrong = DataFilePath::parse("a:2M;b:2M").unwrap();
    drop((space, spaces));
    assert!(matches!(
        registry(&sim).open_system(&wrong, &no_repair),
        Err(Error::Invalid(_))
    ));
}

#[test]
fn a_link_file_leads_to_a_table_elsewhere() {
    let sim = SimVfs::new();
    let spaces = registry(&sim);
    let space = make_table(&spaces, 5, "t/w");
    let bytes = sim.content(&space.path()).unwrap();
    sim.put("/far/t/w.ibd", &bytes);
    sim.remove("./data/t/w.ibd").unwrap();
    sim.put("./data/t/w.isl", b"/far/t/w.ibd\n");
    let spaces = registry(&sim);
    let space = spaces.open_table(SpaceId(5), "t/w", &no_repair).unwrap();
    assert_eq!(spaces.log_path(&space), "/far/t/w.ibd");
    assert_eq!(spaces.resolve_log_path("/far/t/w.ibd"), "/far/t/w.ibd");
    spaces.delete(&space).unwrap();
    assert!(!sim.exists("./data/t/w.isl").unwrap() && !sim.exists("/far/t/w.ibd").unwrap());
}

#[test]
fn a_missing_file_is_named_until_its_records_are_behind_the_checkpoint() {
    let sim = SimVfs::new();
    let spaces = registry(&sim);
    let space = make_table(&spaces, 5, "t/w");
    let spaces = registry(&sim);
    let absent = |waits| Absent {
        name: "./t/w.ibd".into(),
        path: space.path().into(),
        until: Lsn(2000),
        waits,
    };
    spaces.note_absent(SpaceId(5), absent(true));
    // It is back, but what the log has of it was not applied.
    let opened = spaces.open_table(SpaceId(5), "t/w", &no_repair);
    assert!(matches!(&opened, Err(Error::TablespaceMissing(why)) if why.contains("restart")));
    let gate = Gate::new(Rank::LogGate);
    let name = (SpaceId(5), "./t/w.ibd".to_string());
    for checkpoint in [1000, 1999, 2000] {
        let alone = gate.enter_exclusive();
        assert!(spaces.modified_names_bytes() > 9);
        let names = spaces.take_modified(&alone, Lsn(checkpoint));
        assert_eq!(names, std::slice::from_ref(&name));
    }
    assert_eq!(spaces.modified_names_bytes(), 0);
    assert!(!spaces.is_waiting_for_files());
    spaces.note_absent(SpaceId(5), absent(true));
    assert!(spaces.is_waiting_for_files());
    spaces.forget_absent(SpaceId(5));
    // What was given up keeps nobody from the file.
    spaces.note_absent(SpaceId(5), absent(false));
    assert!(!spaces.is_waiting_for_files());
    spaces.open_table(SpaceId(5), "t/w", &no_repair).unwrap();
}

#[test]
fn many_threads_write_and_sync_and_a_deletion_waits_for_them() {
    let sim = SimVfs::new();
    let spaces = registry(&sim);
    let space = make_table(&spaces, 5, "t/w");
    space.allocate(64).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let space = &space;
            scope.spawn(move || {
                let mut page = AlignedBuf::new(PAGE);
                for round in 0..u32::MAX {
                    page.fill(round as u8);
                    let at = PageNo(1 + thread * 8 + round % 8);
                    if space.write_page(at, &page).is_err() {
                        return;
                    }
                    if round % 5 == 0 && space.sync().is_err() {
                        return;
                    }
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        spaces.delete(&space).unwrap();
    });
    assert_eq!(space.pending_io(), 0);
}

#[test]
fn every_stock_sample_opens_and_says_what_it_is() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/samples");
    let mut seen = 0;
    for name in RealVfs.list_dir(dir).unwrap() {
        let Some(stem) = name.strip_suffix(".ibd.xz") else {
            continue;
        };
        let out = std::process::Command::new("xz")
            .args(["-dc", &format!("{dir}/{name}")])
            .output()
            .unwrap();
        assert!(out.status.success());
        let sim = SimVfs::new();
        sim.put("./x.ibd", &out.stdout);
        let first = open::probe(&sim, "./x.ibd", PAGE).unwrap();
        let compressed = stem.contains("compressed");
        assert_eq!(first.flags.flavour() == Flavour::Zip, compressed, "{stem}");
        let physical = first.flags.geometry().physical_bytes() as u64;
        assert!(
            first.size_pages as u64 * physical <= out.stdout.len() as u64,
            "{stem}"
        );
        assert!(sim.open("./x.ibd", OpenMode::READ).is_ok());
        seen += 1;
    }
    assert!(seen > 10, "{seen} samples");
}

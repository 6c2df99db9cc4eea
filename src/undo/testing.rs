//! For the tests of this layer and those above: an instance's system and undo tablespaces.

use super::append;
use super::rseg::{self, Opened, Rsegs};
use super::segment::UndoLog;
use crate::extent;
use crate::format::fsp::SpaceFlags;
use crate::format::undo_build::UndoBuilder;
use crate::format::undo_record::{UndoKind, UndoValue};
use crate::mtr::testing::TestPages;
use crate::mtr::{Budget, Mtr};
use crate::space::{DataFilePath, Kind};
use crate::sync::Rank;
use crate::words::{PageNo, Result, RollPtr, RsegId, SpaceId, TableId};

/// Tablespaces with the rollback segments of a new instance.
pub struct UndoBed {
    /// Pool, log, files.
    pub pages: TestPages,
    /// Number of undo tablespaces.
    pub undo_spaces: u32,
}

fn budget() -> Budget {
    Budget::system(64 << 10).with_frames(8)
}

impl UndoBed {
    /// A new instance with so many undo tablespaces.
    pub fn new(page_size: usize, pool_pages: usize, undo_spaces: u32) -> UndoBed {
        let pages = TestPages::empty(page_size, pool_pages);
        let flags = SpaceFlags::full_crc32(page_size);
        let path = DataFilePath::parse("ibdata1:12M:autoextend").expect("a path");
        let spaces = &pages.ctx.spaces;
        let system = spaces
            .create_system(Kind::System, &path, flags)
            .expect("a system tablespace");
        let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
        extent::create_space(&mut mtr, SpaceId::SYSTEM, system.size_pages()).expect("a space");
        // Pages 3 and 4 are the change buffer's.
        let segment = extent::create_segment(&mut mtr, SpaceId::SYSTEM).expect("a segment");
        for page in [3, 4] {
            let direction = extent::Direction::None;
            let rank = Rank::FspPage;
            extent::allocate_and_create(&mut mtr, segment, PageNo(page), direction, rank)
                .expect("a page");
        }
        rseg::create_trx_sys(&mut mtr).expect("TRX_SYS");
        let first = rseg::create(&mut mtr, SpaceId::SYSTEM, RsegId(0)).expect("a segment");
        assert_eq!(first.page, PageNo(6));
        mtr.commit();
        let ids: Vec<_> = (1..=undo_spaces).map(SpaceId).collect();
        for &id in &ids {
            let size = (10 << 20) / page_size as u32;
            spaces
                .create_undo(id, id.0, flags, size)
                .expect("an undo tablespace");
            let mut mtr = Mtr::start(&pages.ctx, budget()).expect("admitted");
            extent::create_space(&mut mtr, id, size).expect("a space");
            mtr.commit();
        }
        rseg::create_all(&pages.ctx, &ids).expect("rollback segments");
        UndoBed { pages, undo_spaces }
    }

    /// Opens the rollback segments as a start does.
    pub fn open(&self) -> Opened {
        Rsegs::open(&self.pages.ctx).expect("sound rollback segments")
    }

    /// Appends an insert of table `table` with a key of `len` bytes, as a row's change does.
    pub fn append(&self, log: &mut UndoLog, table: u64, len: usize) -> Result<RollPtr> {
        let ctx = &self.pages.ctx;
        loop {
            // A guess that is often too low.
            let needs = append::reserve(ctx, log, len / 2)?;
            let budget = Budget::statement(needs.log_bytes).with_frames(needs.frames);
            let mut mtr = Mtr::start(ctx, budget)?;
            match append::append(&mut mtr, log, |out, no| insert(out, no, table, len)) {
                Err(crate::words::Error::WouldBlock) => continue,
                other => return other,
            }
        }
    }

    fn tool(&self, args: &[&str]) -> String {
        self.pages.ctx.pool.flush_all().expect("flush");
        let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/ibdump.py");
        let run = std::process::Command::new("python3")
            .arg(tool)
            .args(args)
            .output()
            .expect("python3 runs");
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{text}{errors}");
        text
    }

    fn files(&self) -> Vec<String> {
        let path = |id| {
            self.pages
                .ctx
                .spaces
                .find(SpaceId(id))
                .expect("open")
                .path()
        };
        (0..=self.undo_spaces).map(path).collect()
    }

    /// What the independent dump says of the undo logs and history lists.
    pub fn dump(&self) -> String {
        let files = self.files();
        let mut args = vec![files[0].as_str(), "undo", "--undo"];
        args.extend(files[1..].iter().map(String::as_str));
        let text = self.tool(&args);
        assert!(!text.contains("!!"), "{text}");
        text
    }

    /// Runs the independent checker over every file.
    pub fn check(&self) {
        for file in self.files() {
            self.tool(&[&file, "check"]);
        }
    }

    /// Pages in use of the undo tablespaces.
    pub fn used_pages(&self) -> u32 {
        let mut used = 0;
        for id in 1..=self.undo_spaces {
            let space = self.pages.ctx.spaces.find(SpaceId(id)).expect("open");
            for page in 0..space.size_pages() {
                let id = crate::words::PageId::new(space.id(), PageNo(page));
                let mut mtr = Mtr::reader(&self.pages.ctx);
                used += u32::from(!extent::is_page_free(&mut mtr, id).expect("a bit"));
            }
        }
        used
    }
}

/// The body of an insert's record.
pub fn insert(out: &mut Vec<u8>, no: crate::words::UndoNo, table: u64, len: usize) {
    let key = vec![no.0 as u8; len];
    UndoBuilder::begin(out, UndoKind::Insert, 0, no, TableId(table)).value(&UndoValue::Bytes(&key));
}

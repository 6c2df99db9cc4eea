//! For the tests of this layer and those above: the stock server's sample directories, opened.

use super::cache::Dict;
use super::create;
use crate::buffer::{Pool, PoolConfig};
use crate::format::fsp::SpaceFlags;
use crate::host::collation::BytesOnly;
use crate::lock::LockTable;
use crate::mtr::{Budget, Mtr, PageCtx};
use crate::os::{CrashPoints, RealVfs};
use crate::redo::{Log, LogOptions};
use crate::space::{DataFilePath, Kind, Places, Registry};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::words::{Lsn, SpaceId};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of a sample directory, in a place that goes when this is dropped.
pub struct SampleDir {
    /// What mini-transactions work on.
    pub ctx: PageCtx,
    /// Its dictionary.
    pub dict: Dict,
    /// The directory.
    pub dir: PathBuf,
}

/// The path of a sample.
pub fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/samples")
        .join(name)
}

/// The bytes of a sample, unpacked.
pub fn sample_bytes(name: &str) -> Vec<u8> {
    let path = sample(name);
    if path.exists() {
        return std::fs::read(path).expect("a sample");
    }
    let out = Command::new("xz")
        .arg("-dc")
        .arg(sample(&format!("{name}.xz")))
        .output()
        .expect("xz is installed");
    assert!(out.status.success(), "unpacking {name}");
    out.stdout
}

/// A new directory for a test.
pub fn temporary_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("xtradb-dict-{}-{number}", std::process::id()));
    std::fs::create_dir_all(dir.join("log")).expect("a temporary directory");
    dir
}

/// Pool, log and an empty registry on `dir`. The log is a new one that begins beyond the LSNs of
/// any sample.
pub fn context(dir: &Path, page_size: usize, pool_pages: usize) -> PageCtx {
    let text = dir.to_string_lossy().into_owned();
    let vfs = Arc::new(RealVfs);
    let places = Places {
        data_dir: text.clone(),
        system_dir: text.clone(),
        undo_dir: text.clone(),
        page_size,
        direct: false,
        read_only: false,
    };
    let options = LogOptions {
        dir: format!("{text}/log"),
        file_size: 32 << 20,
        buffer_size: 4 << 20,
        page_size,
        creator: "xtradb test".into(),
        direct: false,
        sync: false,
    };
    let points = Arc::new(CrashPoints::new());
    let log = Log::create(&*vfs, options, points, Lsn(1 << 32)).expect("a log");
    let log = Arc::new(log);
    let spaces = Arc::new(Registry::new(vfs, places));
    let config = PoolConfig::new(pool_pages * page_size, page_size);
    let pool = Arc::new(Pool::open(config, log.clone(), spaces.clone()).expect("a pool"));
    PageCtx::new(pool, log, spaces)
}

impl SampleDir {
    /// Lays out `mini` or `fresh`, and opens it.
    pub fn open(name: &str) -> SampleDir {
        let dir = temporary_dir();
        for file in ["ibdata1", "undo001", "undo002"] {
            std::fs::write(dir.join(file), sample_bytes(&format!("{name}/{file}"))).expect("room");
        }
        if name == "mini" {
            let tar = dir.join("smp.tar");
            std::fs::write(&tar, sample_bytes("mini/smp.tar")).expect("room");
            let mut unpack = Command::new("tar");
            unpack.arg("-xf").arg(&tar).arg("-C").arg(&dir);
            let done = unpack.arg("--no-same-owner").status().expect("tar");
            assert!(done.success());
        }
        SampleDir::on(dir)
    }

    /// A new instance with two undo tablespaces, made here.
    pub fn create(page_size: usize) -> SampleDir {
        let dir = temporary_dir();
        let ctx = context(&dir, page_size, 512);
        let flags = SpaceFlags::full_crc32(page_size);
        let path = DataFilePath::parse("ibdata1:12M:autoextend").expect("a path");
        let made = ctx.spaces.create_system(Kind::System, &path, flags);
        made.expect("ibdata1");
        create::create_system(&ctx).expect("its pages");
        for number in [1, 2] {
            let (id, pages) = (SpaceId(number), (10 << 20) / page_size as u32);
            let made = ctx.spaces.create_undo(id, number, flags, pages);
            made.expect("an undo file");
            let budget = Budget::system(64 << 10).with_frames(8);
            let mut mtr = Mtr::start(&ctx, budget).expect("room");
            crate::extent::create_space(&mut mtr, id, pages).expect("its pages");
            mtr.commit();
        }
        let undo = [SpaceId(1), SpaceId(2)];
        crate::undo::rseg::create_all(&ctx, &undo).expect("rollback segments");
        let (locks, order) = (Arc::new(LockTable::new()), Arc::new(BytesOnly));
        create::create_described_tables(&ctx, locks.clone(), order.clone()).expect("tables");
        let dict = Dict::open(&ctx, locks, order, Box::new(|_| None)).expect("a dictionary");
        SampleDir { ctx, dict, dir }
    }

    /// Opens the system and undo tablespaces in `dir`, and the dictionary.
    pub fn on(dir: PathBuf) -> SampleDir {
        let ctx = context(&dir, 16384, 512);
        let none = |_| None;
        let path = DataFilePath::parse("ibdata1:12M:autoextend").expect("a path");
        ctx.spaces.open_system(&path, &none).expect("ibdata1");
        for number in [1, 2] {
            ctx.spaces.open_undo(number, &none).expect("an undo file");
        }
        let (locks, order) = (Arc::new(LockTable::new()), Arc::new(BytesOnly));
        let dict = Dict::open(&ctx, locks, order, Box::new(none)).expect("a dictionary");
        SampleDir { ctx, dict, dir }
    }
}

impl Drop for SampleDir {
    fn drop(&mut self) {
        // A leftover directory in the temporary place harms nobody.
        let _gone = std::fs::remove_dir_all(&self.dir);
    }
}

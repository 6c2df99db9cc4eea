//! For the tests of this layer and those above: the stock server's sample directories, opened.

use super::cache::Dict;
use crate::buffer::{Pool, PoolConfig};
use crate::host::collation::BytesOnly;
use crate::lock::LockTable;
use crate::mtr::PageCtx;
use crate::os::{CrashPoints, RealVfs};
use crate::redo::{Log, LogOptions};
use crate::space::{DataFilePath, Places, Registry};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::words::Lsn;
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

//! For the tests of this layer and those above: an engine's pages without an engine.

use super::ctx::PageCtx;
use super::mtr::{Budget, Mtr};
use crate::buffer::{Pool, PoolConfig};
use crate::format::fsp::SpaceFlags;
use crate::format::redo_file::FIRST_LSN;
use crate::os::sim::SimVfs;
use crate::os::{CrashPoints, RealVfs, Vfs};
use crate::redo::{CheckpointNeeded, Log, LogOptions};
use crate::space::{Places, Registry, Space};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::words::{Lsn, PageId, PageNo, SpaceId};
use std::sync::Weak;

/// A pool, a log and tablespaces in a directory that goes when this is dropped.
pub struct TestPages {
    /// What mini-transactions work on.
    pub ctx: PageCtx,
    /// The directory.
    pub dir: String,
}

/// The tablespace that `TestPages::new` makes.
pub const SPACE: SpaceId = SpaceId(5);

impl TestPages {
    /// A pool of `pool_pages` pages and the tablespace `SPACE` with `file_pages` zero pages.
    pub fn new(page_size: usize, pool_pages: usize, file_pages: u32) -> TestPages {
        let pages = TestPages::empty(page_size, pool_pages);
        pages.add_space(SPACE, file_pages);
        pages
    }

    /// The same without a tablespace.
    pub fn empty(page_size: usize, pool_pages: usize) -> TestPages {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("xtradb-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a temporary directory");
        let dir = dir.to_string_lossy().into_owned();
        TestPages::on(Arc::new(RealVfs), &dir, page_size, pool_pages, 32 << 20)
    }

    /// The same on simulated files in the directory ".".
    pub fn simulated(sim: &SimVfs, page_size: usize, pool_pages: usize) -> TestPages {
        TestPages::on(Arc::new(sim.clone()), ".", page_size, pool_pages, 8 << 20)
    }

    fn on(
        vfs: Arc<dyn Vfs>,
        dir: &str,
        page_size: usize,
        pool_pages: usize,
        log_bytes: u64,
    ) -> TestPages {
        let places = Places {
            data_dir: dir.into(),
            system_dir: dir.into(),
            undo_dir: dir.into(),
            page_size,
            direct: false,
            read_only: false,
        };
        let options = LogOptions {
            dir: dir.into(),
            file_size: log_bytes,
            buffer_size: 4 << 20,
            page_size,
            creator: "xtradb test".into(),
            direct: false,
            sync: dir == ".",
        };
        let points = Arc::new(CrashPoints::new());
        let log = Arc::new(Log::create(&*vfs, options, points, FIRST_LSN).expect("a log"));
        let spaces = Arc::new(Registry::new(vfs, places));
        let mut config = PoolConfig::new(pool_pages * page_size, page_size);
        config.bytes_max *= 16;
        let pool = Arc::new(Pool::open(config, log.clone(), spaces.clone()).expect("a pool"));
        log.set_hook(Arc::new(Checkpointer {
            pool: Arc::downgrade(&pool),
            log: Arc::downgrade(&log),
            spaces: Arc::downgrade(&spaces),
        }));
        TestPages {
            ctx: PageCtx::new(pool, log, spaces),
            dir: dir.into(),
        }
    }

    /// Another tablespace with `file_pages` zero pages.
    pub fn add_space(&self, id: SpaceId, file_pages: u32) -> Arc<Space> {
        let flags = SpaceFlags::full_crc32(self.ctx.page_size());
        let name = format!("t/t{}", id.0);
        self.ctx
            .spaces
            .create_table(id, &name, flags, file_pages)
            .expect("a tablespace")
    }

    /// Page `page` of `SPACE`.
    pub fn id(&self, page: u32) -> PageId {
        PageId::new(SPACE, PageNo(page))
    }

    /// A mini-transaction with room for anything a test does.
    pub fn mtr(&self) -> Mtr<'_> {
        let budget = Budget::statement(512 << 10).with_frames(16);
        Mtr::start(&self.ctx, budget).expect("log room and frames")
    }
}

/// Makes room in the log on the thread that needs it.
struct Checkpointer {
    pool: Weak<Pool>,
    log: Weak<Log>,
    spaces: Weak<Registry>,
}

impl CheckpointNeeded for Checkpointer {
    fn checkpoint_needed(&self, target: Lsn, urgent: bool) {
        let parts = (
            self.pool.upgrade(),
            self.log.upgrade(),
            self.spaces.upgrade(),
        );
        let (Some(pool), Some(log), Some(spaces), true) = (parts.0, parts.1, parts.2, urgent)
        else {
            return;
        };
        // What fails here is seen by the test as a wait that ends with an error.
        let _flushed = pool.flush_to(target);
        let _made = log.checkpoint(&spaces, || pool.oldest_modification());
    }
}

impl Drop for TestPages {
    fn drop(&mut self) {
        if self.dir != "." {
            // A leftover directory in the temporary place harms nobody.
            let _gone = std::fs::remove_dir_all(&self.dir);
        }
    }
}

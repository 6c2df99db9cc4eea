//! What the benchmarks share: an engine of their own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use xtradb::engine::{Engine, EngineConfig, HostServices};
use xtradb::host::callbacks::NoCallbacks;
use xtradb::host::collation::BytesOnly;
use xtradb::settings::{Counters, Settings};

/// An empty directory for the benchmark `name`.
pub fn directory(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    dir
}

/// An engine with room for everything in memory, whose log is not flushed at commit.
pub fn open(dir: &Path) -> Arc<Engine> {
    let settings = Settings::default();
    for option in [
        "buffer_pool_size=256M",
        "log_file_size=512M",
        "flush_log_at_trx_commit=0",
    ] {
        settings.apply_option(option).expect("a valid option");
    }
    let config = EngineConfig {
        datadir: dir.into(),
        may_create: true,
    };
    let host = HostServices {
        collations: Arc::new(BytesOnly),
        callbacks: Arc::new(NoCallbacks),
    };
    let counters = Arc::new(Counters::default());
    Engine::open(config, Arc::new(settings), counters, host).expect("the engine opens")
}

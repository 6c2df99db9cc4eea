//! Opening LMDB: the file is mapped, so heed asks for a promise.

use crate::engine::{Config, Flush, Result};
use heed::{Env, EnvFlags, EnvOpenOptions};

/// Room that the map may grow to; address space, not memory.
const MAP_BYTES: usize = 64 << 30;

pub fn open(config: &Config) -> Result<Env> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_readers(64);
    if config.flush == Flush::Written {
        // SAFETY: the flag gives up durability of the last commits only if the machine fails, and
        // the directory is thrown away after the run.
        unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD) };
    } else {
        // SAFETY: the flag changes only how the kernel reads the map.
        unsafe { options.flags(EnvFlags::NO_READ_AHEAD) };
    }
    // SAFETY: the directory is this run's own; nobody else changes or cuts the file while the
    // environment is open, and it is opened once per process at a time.
    Ok(unsafe { options.open(&config.dir)? })
}

//! Settings as the layers below want them: where files lie, how large things are.

use super::types::EngineConfig;
use crate::buffer::PoolConfig;
use crate::os::file::join;
use crate::os::{memory_bytes, open_files_max};
use crate::redo::LogOptions;
use crate::settings::{Settings, ids};
use crate::space::{DataFilePath, Places};
use crate::words::limits::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use crate::words::{Error, Result};

/// What an instance is opened with.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) places: Places,
    pub(super) system: DataFilePath,
    pub(super) log: LogOptions,
    pub(super) pool: PoolConfig,
    pub(super) undo_tablespaces: u32,
    /// Files that are open at once.
    pub(super) open_files: usize,
    pub(super) doublewrite: bool,
    pub(super) force_recovery: u64,
    pub(super) may_create: bool,
}

/// Text in the header of log files that this engine makes.
const CREATOR: &str = concat!("xtradb ", env!("CARGO_PKG_VERSION"));
/// Least memory for log records at recovery; more of them go to a file.
const RECOVERY_BYTES_MIN: usize = 16 << 20;

/// Open files, if innodb_open_files says nothing.
const OPEN_FILES: u64 = 2000;
/// Fewer are not worked with.
const OPEN_FILES_MIN: u64 = 10;

/// As many as the setting says, while the system leaves a quarter of the descriptors to others.
fn open_files(wanted: u64) -> usize {
    let wanted = match wanted {
        0 => OPEN_FILES,
        wanted => wanted.max(OPEN_FILES_MIN),
    };
    (wanted as usize).min(open_files_max() / 4 * 3)
}

/// One is none: it could never be truncated (format-tablespace.md section 6).
fn undo_tablespaces(wanted: u64) -> u32 {
    match wanted {
        1 => 0,
        wanted => wanted as u32,
    }
}

impl Setup {
    /// Errors: `Invalid`, `Unsupported` for values that cannot be worked with.
    pub(super) fn new(config: &EngineConfig, settings: &Settings) -> Result<Setup> {
        let page_size = settings.uint(ids::PAGE_SIZE) as usize;
        if !page_size.is_power_of_two() || !(PAGE_SIZE_MIN..=PAGE_SIZE_MAX).contains(&page_size) {
            return Err(Error::invalid(format!(
                "innodb_page_size={page_size}: must be 4096, 8192, 16384, 32768 or 65536"
            )));
        }
        let datadir = config
            .datadir
            .to_str()
            .ok_or_else(|| Error::invalid("the data directory's path is not UTF-8"))?;
        let dir = |id| match &*settings.text(id) {
            "" => datadir.to_string(),
            name => join(datadir, name),
        };
        let force_recovery = settings.uint(ids::FORCE_RECOVERY);
        let direct = matches!(
            settings.choice(ids::FLUSH_METHOD),
            "O_DSYNC" | "O_DIRECT" | "O_DIRECT_NO_FSYNC"
        );
        let commit = settings.uint(ids::FLUSH_LOG_AT_TRX_COMMIT);
        let buffering = settings.is_on(ids::LOG_FILE_BUFFERING) || commit == 2;
        let mut pool = PoolConfig::new(settings.uint(ids::BUFFER_POOL_SIZE) as usize, page_size);
        let most = settings.uint(ids::BUFFER_POOL_SIZE_MAX).min(memory_bytes());
        pool.bytes_max = pool.bytes.max(most as usize);
        pool.old_blocks_time_ms = settings.uint(ids::OLD_BLOCKS_TIME) as u32;
        pool.free_frames_target = settings.uint(ids::LRU_SCAN_DEPTH) as usize;
        Ok(Setup {
            places: Places {
                data_dir: datadir.into(),
                system_dir: dir(ids::DATA_HOME_DIR),
                undo_dir: dir(ids::UNDO_DIRECTORY),
                page_size,
                direct,
                read_only: settings.is_on(ids::READ_ONLY) || force_recovery >= 6,
            },
            system: DataFilePath::parse(&settings.text(ids::DATA_FILE_PATH))?,
            log: LogOptions {
                dir: dir(ids::LOG_GROUP_HOME_DIR),
                file_size: settings.uint(ids::LOG_FILE_SIZE) / 4096 * 4096,
                buffer_size: settings.uint(ids::LOG_BUFFER_SIZE) as usize,
                page_size,
                creator: CREATOR.into(),
                direct: !buffering,
                sync: settings.choice(ids::FLUSH_METHOD) != "nosync",
            },
            pool,
            open_files: open_files(settings.uint(ids::OPEN_FILES)),
            undo_tablespaces: undo_tablespaces(settings.uint(ids::UNDO_TABLESPACES)),
            doublewrite: settings.is_on(ids::DOUBLEWRITE),
            force_recovery,
            may_create: config.may_create,
        })
    }

    /// Path of the first file of the system tablespace.
    pub(super) fn system_path(&self) -> String {
        join(&self.places.system_dir, &self.system.files[0].name)
    }

    /// Bytes of memory that recovery may take for the records of the log.
    pub(super) fn recovery_bytes_max(&self) -> usize {
        (self.pool.bytes / 2).max(RECOVERY_BYTES_MIN)
    }
}

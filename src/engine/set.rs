//! Settings that change while the engine runs, and what that starts.

use std::fmt::Write;

use super::open::Engine;
use super::session::Session;
use crate::os::clock::local_time;
use crate::settings::{SettingError, SettingId, Value, ids};
use crate::sync::{Mutex, Rank};
use crate::words::{Error, Result};

/// Why a setting was not changed.
#[derive(Debug)]
pub enum SetError {
    /// The value is none, or the setting cannot be changed.
    Setting(SettingError),
    /// What the change starts failed; the old value stands.
    Engine(Error),
}

impl From<SettingError> for SetError {
    fn from(error: SettingError) -> SetError {
        SetError::Setting(error)
    }
}

impl From<Error> for SetError {
    fn from(error: Error) -> SetError {
        SetError::Engine(error)
    }
}

/// Changes of the sizes of pool and log.
pub(super) struct Resizing {
    /// One at a time, so that the setting says what there is.
    busy: Mutex<()>,
    /// How the last one of the pool ended.
    outcome: Mutex<Box<str>>,
}

impl Resizing {
    pub(super) fn new() -> Resizing {
        Resizing {
            // Taken with no latch held.
            busy: Mutex::new(Rank::None, ()),
            outcome: Mutex::new(Rank::Leaf, Box::default()),
        }
    }
}

impl Session {
    /// Changes the session's value of a setting.
    ///
    /// # Errors
    /// The setting's; `Io`: the directory that it names is not there.
    pub fn set(&mut self, id: SettingId, text: &str) -> std::result::Result<(), SetError> {
        self.engine().check_place(id, text)?;
        Ok(self.settings().set(id, text)?)
    }
}

impl Engine {
    /// A directory for temporary files is looked at now: whoever needs it later has work to lose.
    fn check_place(&self, id: SettingId, text: &str) -> Result<()> {
        if id == ids::TMPDIR && !text.is_empty() {
            self.ctx().spaces.vfs().list_dir(text)?;
        }
        Ok(())
    }

    /// Changes a global setting of the running engine.
    ///
    /// # Errors
    /// The setting's; what the change started gives. The old value stands then.
    pub fn set_global(&self, id: SettingId, text: &str) -> std::result::Result<(), SetError> {
        let _alone = match id {
            ids::BUFFER_POOL_SIZE | ids::LOG_FILE_SIZE => {
                let busy = || format!("{} is being changed already", id.definition().name);
                let alone = self.resizing.busy.try_lock();
                Some(alone.ok_or_else(|| Error::Busy(busy().into()))?)
            }
            _ => None,
        };
        self.check_place(id, text)?;
        let before = self.settings().get(id);
        self.settings().set(id, text)?;
        let done = self.setting_changed(id);
        if done.is_err() {
            self.settings().put(id, before);
        }
        Ok(done?)
    }

    fn setting_changed(&self, id: SettingId) -> Result<()> {
        let settings = self.settings();
        match id {
            ids::LOG_CHECKPOINT_NOW => {
                if let Err(error) = self.checkpoint_now() {
                    log::error!("innodb_log_checkpoint_now: {error}");
                }
            }
            ids::DEADLOCK_DETECT => {
                let on = settings.is_on(ids::DEADLOCK_DETECT);
                self.trx().locks.set_deadlock_detect(on);
            }
            ids::READ_AHEAD_THRESHOLD | ids::RANDOM_READ_AHEAD => {
                self.floor.background.set_read_ahead();
            }
            ids::OLD_BLOCKS_TIME => {
                let ms = settings.uint(id).min(u32::MAX.into());
                self.ctx().pool.set_old_blocks_time(ms as u32);
            }
            ids::LRU_SCAN_DEPTH => {
                let depth = settings.uint(id).min(u32::MAX.into());
                self.ctx().pool.set_lru_scan_depth(depth as usize);
            }
            ids::FLUSH_NEIGHBORS => self.set_flush_neighbors(),
            ids::BUFFER_POOL_DUMP_NOW | ids::BUFFER_POOL_LOAD_NOW | ids::BUFFER_POOL_LOAD_ABORT
                if settings.is_on(id) =>
            {
                // Not a state: OFF again.
                settings.put(id, Value::Number(0));
                self.ask_pool_list(id);
            }
            ids::IO_CAPACITY | ids::IO_CAPACITY_MAX => self.adjust_io_capacity(id),
            ids::BUFFER_POOL_SIZE => return self.resize_pool(),
            ids::LOG_FILE_SIZE if self.is_read_only() => return Err(Error::ReadOnly),
            ids::LOG_FILE_SIZE => return self.floor.storage.set_log_size(settings.uint(id)),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn set_flush_neighbors(&self) {
        let neighbors = self.settings().uint(ids::FLUSH_NEIGHBORS) as u8;
        self.ctx().pool.set_flush_neighbors(neighbors);
    }

    /// Each of the two stays on its side of the other, as in InnoDB: the one that was set moves the other.
    fn adjust_io_capacity(&self, set: SettingId) {
        let settings = self.settings();
        let capacity = settings.uint(ids::IO_CAPACITY);
        let max = settings.uint(ids::IO_CAPACITY_MAX);
        match set {
            _ if capacity <= max => {}
            ids::IO_CAPACITY => settings.put(ids::IO_CAPACITY_MAX, Value::Number(capacity * 2)),
            _ => settings.put(ids::IO_CAPACITY, Value::Number(max)),
        }
    }

    fn ask_pool_list(&self, id: SettingId) {
        match id {
            ids::BUFFER_POOL_DUMP_NOW => self.pool_list.ask_dump(),
            ids::BUFFER_POOL_LOAD_NOW => self.pool_list.ask_load(),
            _ => self.pool_list.abort_load(),
        }
    }

    /// Waits until the pool has the size that the setting says.
    fn resize_pool(&self) -> Result<()> {
        let pool = &self.ctx().pool;
        let (from, to) = (pool.bytes(), self.settings().uint(ids::BUFFER_POOL_SIZE));
        if from as u64 == to {
            return Ok(());
        }
        log::info!("innodb_buffer_pool_size: from {from} to {to}");
        let resized = pool.resize(to as usize, &|| self.stopped().is_none());
        let mut text = match &resized {
            Ok(()) => "Completed resizing buffer pool at ".to_string(),
            Err(error) => format!("Resizing buffer pool to {to} failed: {error}; at "),
        };
        let _ = write!(text, "{}.", local_time(self.host().callbacks.wall_clock()));
        match resized {
            Ok(()) => {
                self.set_memory_limits();
                log::info!("{text}");
            }
            Err(_) => log::error!("{text}"),
        }
        *self.resizing.outcome.lock() = text.into();
        resized
    }

    /// Innodb_buffer_pool_resize_status.
    pub fn resize_status(&self) -> Box<str> {
        match self.ctx().pool.shrink_progress() {
            Some((done, all)) => format!("Withdrawing blocks. ({done}/{all}).").into(),
            None => self.resizing.outcome.lock().clone(),
        }
    }

    /// Innodb_buffer_pool_dump_status.
    pub fn dump_status(&self) -> Box<str> {
        self.pool_list.dump_status()
    }

    /// Innodb_buffer_pool_load_status.
    pub fn load_status(&self) -> Box<str> {
        self.pool_list.load_status()
    }
}

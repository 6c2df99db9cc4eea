//! engine.h: the engine's life.

use std::ffi::c_char;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::arguments::{array, copy_text, out, read_struct, text, write_struct};
use super::c;
use super::edge::{Fault, Outcome, edge, guarded};
use super::handle::{self, Handled};
use super::host::{self, HostShim};
use crate::engine::{Engine, EngineConfig, HostServices, SetError};
use crate::host::callbacks::{Callbacks, Level};
use crate::settings::{Counters, SettingError, Settings};
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Arc, Event, Mutex, Rank, RwLock};
use crate::words::Error;

/// Behind an `xt_engine`.
pub(super) struct EngineBox {
    host: Arc<HostShim>,
    /// `Some` while running.
    running: RwLock<Option<Arc<Engine>>>,
    /// Text of the last error.
    error: Mutex<String>,
    /// Connection ids of open sessions.
    sessions: Mutex<Sessions>,
    /// Open table handles.
    tables: AtomicU32,
    /// Calls in flight that came without a session.
    calls: AtomicU32,
}

/// The running engine, for the length of a call: it is not closed meanwhile.
pub(super) struct Running<'o> {
    owner: &'o EngineBox,
    engine: Arc<Engine>,
}

impl Deref for Running<'_> {
    type Target = Arc<Engine>;
    fn deref(&self) -> &Arc<Engine> {
        &self.engine
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.owner.calls.fetch_sub(1, Ordering::Release);
    }
}

#[derive(Default)]
struct Sessions {
    connections: Vec<u64>,
    /// init or deinit is under way: no new ones.
    changing: bool,
}

/// An init or deinit that is under way; the flag goes when it ends, however it ends.
struct Control<'o>(&'o EngineBox);

impl Drop for Control<'_> {
    fn drop(&mut self) {
        self.0.sessions.lock().changing = false;
    }
}

impl Handled for EngineBox {
    type Opaque = c::xt_engine;
    const KIND: u64 = 1;
    const NAME: &'static str = "engine";
}

/// Text of the last engine_create that failed.
static CREATE_ERROR: Mutex<String> = Mutex::new(Rank::None, String::new());

/// At unload.
pub(super) fn free_memory() {
    *CREATE_ERROR.lock() = String::new();
}

fn not_running() -> Fault {
    Fault::new(c::XT_NOT_RUNNING, "the engine is not running")
}

impl EngineBox {
    /// The running engine.
    pub(super) fn engine(&self) -> Outcome<Running<'_>> {
        let running = self.running.read();
        let engine = running.clone().ok_or_else(not_running)?;
        // Counted under the read lock: deinit looks under the write lock.
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(Running {
            owner: self,
            engine,
        })
    }

    /// Its host.
    pub(super) fn host(&self) -> &Arc<HostShim> {
        &self.host
    }

    /// Runs a body and keeps its error text for engine_error.
    pub(super) fn call(&self, body: impl FnOnce() -> Outcome) -> Outcome {
        let outcome = guarded(body);
        if let Err(fault) = &outcome {
            *self.error.lock() = fault.text();
        }
        outcome
    }

    /// Lets a session in, unless deinit is under way.
    pub(super) fn session_enters(&self, connection_id: u64) -> Outcome {
        let mut sessions = self.sessions.lock();
        if sessions.changing {
            return Err(Fault::new(c::XT_BUSY, "the engine is being closed"));
        }
        sessions.connections.push(connection_id);
        Ok(())
    }

    /// Lets it out.
    pub(super) fn session_leaves(&self, connection_id: u64) {
        let connections = &mut self.sessions.lock().connections;
        if let Some(at) = connections.iter().position(|&id| id == connection_id) {
            connections.swap_remove(at);
        }
    }

    /// A table was opened (+1) or closed (-1).
    pub(super) fn tables_changed(&self, by: i32) {
        // A table is opened inside a session's call, and a session is counted by a list of its own:
        // no deinit can miss it.
        self.tables.fetch_add(by as u32, Ordering::AcqRel);
    }

    fn control(&self) -> Outcome<Control<'_>> {
        if std::mem::replace(&mut self.sessions.lock().changing, true) {
            return Err(Fault::wrong_order(
                "another thread is in engine_init or engine_deinit",
            ));
        }
        Ok(Control(self))
    }

    /// Who keeps the engine from being closed; `None`: nobody.
    fn holders(&self) -> Option<String> {
        let connections = self.sessions.lock().connections.clone();
        let tables = self.tables.load(Ordering::Acquire);
        let calls = self.calls.load(Ordering::Acquire);
        let mut who = Vec::new();
        if !connections.is_empty() {
            let ids: Vec<String> = connections.iter().take(20).map(u64::to_string).collect();
            let more = if connections.len() > 20 { ", …" } else { "" };
            who.push(format!(
                "{} session(s), connection {}{more}",
                connections.len(),
                ids.join(", ")
            ));
        }
        if tables > 0 {
            who.push(format!("{tables} open table handle(s)"));
        }
        if calls > 0 {
            who.push("a call that is still running".to_string());
        }
        (!who.is_empty()).then(|| who.join("; "))
    }

    fn log(&self, level: Level, text: &str) {
        self.host.log(level, text);
    }
}

/// Looks the handle up and runs the body there.
pub(super) fn with_engine(
    engine: *const c::xt_engine,
    body: impl FnOnce(&EngineBox) -> Outcome,
) -> c::xt_status {
    edge(|| {
        let owner = handle::look_up::<EngineBox>(engine)?;
        owner.call(|| body(&owner))
    })
}

/// # Safety
/// engine.h: `host` is NULL or valid until engine_destroy, `engine` NULL or writable.
pub(super) unsafe extern "C" fn create(
    host: *const c::xt_host,
    engine: *mut *mut c::xt_engine,
) -> c::xt_status {
    let outcome = guarded(|| {
        // SAFETY: the caller's promises.
        let (shim, engine) = unsafe { (HostShim::new(host)?, out(engine, "engine")?) };
        let made = EngineBox {
            host: shim.clone(),
            running: RwLock::new(Rank::None, None),
            error: Mutex::new(Rank::None, String::new()),
            sessions: Mutex::new(Rank::None, Sessions::default()),
            tables: AtomicU32::new(0),
            calls: AtomicU32::new(0),
        };
        *engine = handle::publish(Arc::new(made))?;
        host::add_sink(&shim);
        Ok(())
    });
    match outcome {
        Ok(()) => c::XT_OK as c::xt_status,
        Err(fault) => {
            *CREATE_ERROR.lock() = fault.text();
            fault.code()
        }
    }
}

fn setting_fault(error: SettingError) -> Fault {
    let code = match error {
        SettingError::Unknown(_) => c::XT_UNKNOWN_SETTING,
        SettingError::ReadOnly(_) => c::XT_SETTING_READ_ONLY,
        SettingError::Range(_) => c::XT_SETTING_RANGE,
    };
    Fault::new(code, error.to_string())
}

impl From<SettingError> for Fault {
    fn from(error: SettingError) -> Fault {
        setting_fault(error)
    }
}

impl From<SetError> for Fault {
    fn from(error: SetError) -> Fault {
        match error {
            SetError::Setting(error) => setting_fault(error),
            SetError::Engine(error) => error.into(),
        }
    }
}

/// Start values: the defaults, then the options in order.
///
/// # Safety
/// Each option is NULL or a NUL-terminated string.
unsafe fn start_settings(owner: &EngineBox, config: &c::xt_engine_config) -> Outcome<Settings> {
    let settings = Settings::default();
    // SAFETY: engine.h: `settings` has `settings_count` strings.
    let options = unsafe { array(config.settings, config.settings_count as usize, "settings")? };
    for &option in options {
        // SAFETY: as above.
        let option = unsafe { text(option, "a setting")? };
        match settings.apply_option(option) {
            Err(SettingError::Unknown(name)) if config.flags & c::XT_INIT_LOOSE_SETTINGS != 0 => {
                owner.log(
                    Level::Warning,
                    &format!("unknown setting '{name}' is ignored"),
                );
            }
            result => result?,
        }
    }
    Ok(settings)
}

/// # Safety
/// engine.h: `config` is NULL or valid.
pub(super) unsafe extern "C" fn init(
    engine: *mut c::xt_engine,
    config: *const c::xt_engine_config,
) -> c::xt_status {
    with_engine(engine, |owner| {
        // SAFETY: the caller's promise.
        let config = unsafe { read_struct(config)? };
        // SAFETY: the same.
        let datadir = PathBuf::from(unsafe { text(config.datadir, "datadir")? });
        let _control = owner.control()?;
        if owner.running.read().is_some() {
            return Err(Fault::wrong_order("the engine is running already"));
        }
        // SAFETY: the same.
        let settings = Arc::new(unsafe { start_settings(owner, &config)? });
        if !datadir.is_dir() {
            return Err(Fault::new(
                c::XT_IO,
                format!("data directory {} is not there", datadir.display()),
            ));
        }
        let host = HostServices {
            collations: owner.host.clone(),
            callbacks: owner.host.clone(),
        };
        let may_create = config.flags & c::XT_INIT_NO_CREATE == 0;
        let config = EngineConfig {
            datadir,
            may_create,
        };
        let opened = Engine::open(config, settings, Arc::new(Counters::default()), host);
        let engine = opened.map_err(|error| match error {
            Error::Busy(who) => Fault::new(c::XT_DATADIR_IN_USE, String::from(who)),
            error => Fault::Engine(error),
        })?;
        *owner.running.write() = Some(engine);
        Ok(())
    })
}

pub(super) extern "C" fn recovery_done(engine: *mut c::xt_engine) -> c::xt_status {
    with_engine(engine, |owner| {
        owner.engine()?.recovery_done();
        Ok(())
    })
}

pub(super) extern "C" fn pre_shutdown(engine: *mut c::xt_engine) -> c::xt_status {
    with_engine(engine, |owner| {
        owner.engine()?.pre_shutdown();
        Ok(())
    })
}

pub(super) extern "C" fn deinit(engine: *mut c::xt_engine, timeout_ms: u32) -> c::xt_status {
    with_engine(engine, |owner| {
        if owner.running.read().is_none() {
            return Err(not_running());
        }
        let _control = owner.control()?;
        let engine = take_when_idle(owner, timeout_ms)?;
        // Whatever happens in `close`, for the host the engine is closed.
        Ok(engine.close()?)
    })
}

/// Waits for sessions, tables and calls to go, then takes the engine away from new ones.
fn take_when_idle(owner: &EngineBox, timeout_ms: u32) -> Outcome<Arc<Engine>> {
    let started = Instant::now();
    let timeout = Duration::from_millis(timeout_ms.into());
    let pause = Event::new();
    loop {
        let mut running = owner.running.write();
        let Some(who) = owner.holders() else {
            return running.take().ok_or_else(not_running);
        };
        drop(running);
        if started.elapsed() >= timeout {
            return Err(Fault::new(
                c::XT_BUSY,
                format!("the engine is in use: {who}"),
            ));
        }
        pause.wait(Duration::from_millis(1));
    }
}

pub(super) extern "C" fn destroy(engine: *mut c::xt_engine) -> c::xt_status {
    if engine.is_null() {
        return c::XT_OK as c::xt_status;
    }
    edge(|| {
        let owner = handle::look_up::<EngineBox>(engine)?;
        if owner.running.read().is_some() {
            return owner.call(|| Err(Fault::wrong_order("the engine is running: deinit first")));
        }
        let owner = handle::close::<EngineBox>(engine)?;
        host::remove_sink(&owner.host);
        Ok(())
    })
}

pub(super) extern "C" fn state(engine: *const c::xt_engine) -> u32 {
    let mut state = 0;
    edge(|| {
        let owner = handle::look_up::<EngineBox>(engine)?;
        state = match &*owner.running.read() {
            None => c::XT_STATE_CREATED,
            Some(engine) if engine.stopped().is_some() => c::XT_STATE_STOPPED,
            Some(_) => c::XT_STATE_RUNNING,
        };
        Ok(())
    });
    state
}

/// # Safety
/// engine.h: `buffer` is NULL or has `size` bytes.
pub(super) unsafe extern "C" fn error(
    engine: *const c::xt_engine,
    buffer: *mut c_char,
    size: u32,
) -> u32 {
    let mut length = 0;
    edge(|| {
        let text = match engine.is_null() {
            true => CREATE_ERROR.lock().clone(),
            false => handle::look_up::<EngineBox>(engine)?.error.lock().clone(),
        };
        // SAFETY: the caller's promise.
        length = unsafe { copy_text(&text, buffer, size) };
        Ok(())
    });
    length
}

/// # Safety
/// engine.h: `limits` is NULL or valid and writable.
pub(super) unsafe extern "C" fn limits(
    engine: *const c::xt_engine,
    limits: *mut c::xt_limits,
) -> c::xt_status {
    with_engine(engine, |owner| {
        let is = owner.engine()?.limits();
        let value = c::xt_limits {
            struct_size: 0,
            page_size: is.page_size,
            columns_max: is.columns_max,
            keys_max: is.keys_max,
            key_parts_max: is.key_parts_max,
            key_length_max: is.key_length_max,
            key_part_length_max: is.key_part_length_max,
            reserved: 0,
        };
        // SAFETY: the caller's promise.
        unsafe { write_struct(limits, &value) }
    })
}

pub(super) extern "C" fn flush_log(engine: *mut c::xt_engine, sync: u8) -> c::xt_status {
    with_engine(engine, |owner| Ok(owner.engine()?.flush_log(sync != 0)?))
}

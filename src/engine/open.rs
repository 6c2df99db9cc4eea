//! The engine value: open, close, and what concerns the whole instance.

use std::sync::Arc;

use super::types::{EngineConfig, HostServices, Limits, Xid};
use crate::settings::{Counters, Settings};
use crate::words::{Error, Result};

/// One running instance on one data directory.
pub struct Engine {
    host: HostServices,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    config: EngineConfig,
}

impl Engine {
    /// Opens the data directory (makes it if `config.may_create` and it holds no instance), recovers,
    /// and starts the background threads. On failure nothing is left open.
    ///
    /// # Errors
    /// `Busy` another process has it; `Io`, `Corrupt`, `Unsupported`, `ReadOnly`, `Invalid`.
    pub fn open(
        config: EngineConfig,
        settings: Arc<Settings>,
        counters: Arc<Counters>,
        host: HostServices,
    ) -> Result<Arc<Engine>> {
        let _ = Engine {
            host,
            settings,
            counters,
            config,
        };
        Err(Error::unsupported("the storage core is not assembled yet"))
    }

    /// Stops background work, writes everything out as `innodb_fast_shutdown` says, joins every
    /// thread, closes every file. No session is open. A stopped engine writes nothing.
    ///
    /// # Errors
    /// `Io`; the engine is closed all the same.
    pub fn close(&self) -> Result<()> {
        Ok(())
    }

    /// The host's recovery is over: purge may start.
    pub fn recovery_done(&self) {}

    /// Ends background work that could use the host.
    pub fn pre_shutdown(&self) {}

    /// Why the engine stopped itself, if it did.
    pub fn stopped(&self) -> Option<Box<str>> {
        None
    }

    /// What tables may have here.
    pub fn limits(&self) -> Limits {
        Limits::for_page_size(16384)
    }

    /// Writes the log out; `sync`: makes it durable.
    pub fn flush_log(&self, sync: bool) -> Result<()> {
        let _ = sync;
        Ok(())
    }

    /// A dynamic setting changed; `name` is its full name. Called after the new value is stored.
    pub fn setting_changed(&self, name: &str) {
        let _ = name;
    }

    /// XIDs of all prepared transactions, oldest first.
    pub fn prepared(&self) -> Vec<Xid> {
        Vec::new()
    }

    /// Decides a prepared transaction that no session owns.
    ///
    /// # Errors
    /// `Unsupported` until part 3.
    pub fn prepared_decide(&self, xid: &Xid, commit: bool) -> Result<()> {
        let _ = (xid, commit);
        Err(Error::unsupported("XA"))
    }

    /// The host.
    pub fn host(&self) -> &HostServices {
        &self.host
    }

    /// Its settings.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Its counters.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// How it was opened.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }
}

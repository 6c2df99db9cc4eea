//! A session: one connection of the host, its transaction and its statement.

use std::sync::Arc;

use super::open::Engine;
use super::types::{Isolation, SessionConfig, SessionState, StatementFlags, TrxFlags, Xid};
use crate::settings::SessionSettings;
use crate::words::{Error, Result};

/// One session. Driven by one thread at a time.
pub struct Session {
    engine: Arc<Engine>,
    interrupter: Arc<Interrupter>,
    config: SessionConfig,
    settings: SessionSettings,
}

/// The part of a session that any thread may touch.
#[derive(Default)]
pub struct Interrupter {}

impl Interrupter {
    /// Ends the session's statement as soon as possible: sets a flag, wakes a lock wait.
    pub fn interrupt(&self) {}
}

impl Session {
    /// A session without a transaction.
    pub fn open(engine: &Arc<Engine>, config: SessionConfig) -> Result<Session> {
        let settings = engine.settings().for_session();
        Ok(Session {
            engine: engine.clone(),
            interrupter: Arc::default(),
            config,
            settings,
        })
    }

    /// Rolls an open transaction back; a prepared one is left to `Engine::prepared_decide`.
    pub fn close(self) {}

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// How it was opened; `isolation` follows `set_isolation`.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// For other threads.
    pub fn interrupter(&self) -> &Arc<Interrupter> {
        &self.interrupter
    }

    /// The session's values of settings that have one per session.
    pub fn settings(&mut self) -> &mut SessionSettings {
        &mut self.settings
    }

    /// Level of the next transaction, or of this one if it has not read yet.
    pub fn set_isolation(&mut self, isolation: Isolation) -> Result<()> {
        self.config.isolation = isolation;
        Ok(())
    }

    /// What it is in the middle of.
    pub fn state(&self) -> SessionState {
        SessionState::default()
    }

    /// Notes where `statement_rollback` goes back to; clears an old interrupt.
    pub fn statement_begin(&mut self, flags: StatementFlags) -> Result<()> {
        let _ = flags;
        Ok(())
    }

    /// The statement succeeded.
    pub fn statement_end(&mut self) -> Result<()> {
        Ok(())
    }

    /// Undoes the statement's changes; keeps locks.
    pub fn statement_rollback(&mut self) -> Result<()> {
        Ok(())
    }

    /// Starts a transaction; none is open.
    pub fn begin(&mut self, flags: TrxFlags) -> Result<()> {
        let _ = flags;
        Ok(())
    }

    /// Commits; nothing to do without a transaction.
    pub fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Makes a prepared transaction visible without waiting for the log; `commit` follows.
    pub fn commit_ordered(&mut self, binlog: Option<(&str, u64)>) -> Result<()> {
        let _ = binlog;
        Err(Error::unsupported("two-phase commit"))
    }

    /// Rolls back; nothing to do without a transaction.
    pub fn rollback(&mut self) -> Result<()> {
        Ok(())
    }

    /// Prepares under `xid`.
    pub fn prepare(&mut self, xid: &Xid) -> Result<()> {
        let _ = xid;
        Err(Error::unsupported("XA"))
    }

    /// Sets (or moves) a savepoint.
    pub fn savepoint_set(&mut self, name: &[u8]) -> Result<()> {
        let _ = name;
        Ok(())
    }

    /// Undoes everything since; younger savepoints are forgotten.
    pub fn savepoint_rollback(&mut self, name: &[u8]) -> Result<()> {
        let _ = name;
        Err(Error::NoSavepoint)
    }

    /// Forgets it and younger ones.
    pub fn savepoint_release(&mut self, name: &[u8]) -> Result<()> {
        let _ = name;
        Err(Error::NoSavepoint)
    }
}

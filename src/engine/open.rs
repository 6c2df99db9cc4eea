//! The engine value: open, close, and what concerns the whole instance.

use super::cleaner::{Cleaner, WakeCleaner};
use super::create::create;
use super::locks;
use super::maker::Maker;
use super::master::{Background, Stop, on_panic};
use super::places::Setup;
use super::pool_list::PoolList;
use super::set::Resizing;
use super::storage::{self, Found, Storage};
use super::transactions::Transactions;
use super::types::{EngineConfig, HostServices, Limits, Under, Xid};
use crate::change_buffer;
use crate::dict::Dict;
use crate::lock::LockTable;
use crate::mtr::PageCtx;
use crate::os::thread::Threads;
use crate::os::{Aio, Vfs};
use crate::recovery::Report as RecoveryReport;
use crate::row::{self, Merged};
use crate::settings::{Counters, Settings, ids};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, Once, Rank};
use crate::trx::TrxSystem;
use crate::undo::Rsegs;
use crate::words::{Error, Result};
use std::thread::available_parallelism;

/// Looks for a lock before its waiter sleeps: some tens of microseconds.
const LOCK_LOOKS: u32 = 1000;

/// Environment variable that arms crash points (`CrashPoints::arm_all`); debug builds only.
#[cfg(debug_assertions)]
const CRASH_POINTS: &str = "XTRADB_CRASH_POINTS";

/// One running instance on one data directory.
pub struct Engine {
    host: HostServices,
    settings: Arc<Settings>,
    counters: Arc<Counters>,
    config: EngineConfig,
    pub(super) setup: Setup,
    pub(super) floor: Floor,
    trx: Arc<TrxSystem>,
    dict: Arc<Dict>,
    pub(super) transactions: Arc<Transactions>,
    /// Purge and rollback: they end before the floor's threads.
    workers: Threads,
    lock_cache: Mutex<locks::Cached>,
    pub(super) resizing: Resizing,
    pub(super) pool_list: Arc<PoolList>,
    closed: AtomicBool,
}

/// Pages, log and files with the threads that keep them going.
pub(super) struct Floor {
    pub(super) storage: Storage,
    pub(super) background: Arc<Background>,
    aio: Once<Arc<Aio>>,
    threads: Threads,
}

impl Floor {
    fn open(
        setup: &Setup,
        settings: &Arc<Settings>,
        counters: &Arc<Counters>,
        host: &HostServices,
        under: &Under,
    ) -> Result<Floor> {
        let Under { vfs, points } = under;
        if storage::look(&**vfs, setup)? == Found::Nothing {
            create(vfs, setup, points, host)?;
        }
        let storage = storage::open(vfs, setup, points)?;
        let cleaner = Cleaner::new(&storage, settings);
        let hook = Arc::new(WakeCleaner(Arc::downgrade(&cleaner)));
        storage.ctx.log.set_hook(hook);
        let floor = Floor {
            background: Arc::new(Background {
                ctx: storage.ctx.clone(),
                settings: settings.clone(),
                counters: counters.clone(),
                cleaner,
                maker: Maker::new(&storage.ctx, settings),
                log_stop: Stop::default(),
            }),
            aio: Once::new(),
            threads: Threads::new(on_panic(&storage.ctx)),
            storage,
        };
        if !setup.places.read_only {
            floor.start_aio(settings, &**vfs)?;
            floor.background.start(&floor.threads)?;
        }
        Ok(floor)
    }

    /// Pages are written through io_uring, or by threads where nobody wants it or the system has none.
    fn start_aio(&self, settings: &Settings, vfs: &dyn Vfs) -> Result<()> {
        let is_native = settings.is_on(ids::USE_NATIVE_AIO) && vfs.has_descriptors();
        let native = is_native.then(Aio::native);
        if let Some(Err(error)) = &native {
            log::warn!("{error}: innodb_write_io_threads threads write instead");
        }
        let aio = match native {
            Some(Ok(aio)) => aio,
            // Files in memory: there is nothing to wait for.
            _ if !vfs.has_descriptors() => Aio::by_callers(),
            _ => Aio::by_threads(&self.threads, settings.uint(ids::WRITE_IO_THREADS))?,
        };
        let aio = Arc::new(aio);
        self.storage.ctx.pool.set_aio(aio.clone());
        // Nobody else sets it.
        let _ = self.aio.set(aio);
        Ok(())
    }

    fn stop(&self) {
        self.background.stop();
        if let Some(aio) = self.aio.get() {
            aio.stop();
        }
        self.threads.join_all();
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // An open that failed half-way: threads must not outlive the library.
        self.stop();
    }
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
        let under = Under::default();
        #[cfg(debug_assertions)]
        if let Ok(setting) = std::env::var(CRASH_POINTS) {
            under.points.arm_all(&setting)?;
        }
        Engine::open_on(under, config, settings, counters, host)
    }

    /// The same on a file system and with crash points that a test brings.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_on(
        under: Under,
        config: EngineConfig,
        settings: Arc<Settings>,
        counters: Arc<Counters>,
        host: HostServices,
    ) -> Result<Arc<Engine>> {
        let setup = Setup::new(&config, &settings)?;
        let floor = Floor::open(&setup, &settings, &counters, &host, &under)?;
        let ctx = &floor.storage.ctx;
        let opened = Rsegs::open(ctx)?;
        let looks = match available_parallelism() {
            Ok(processors) if processors.get() > 1 => LOCK_LOOKS,
            _ => 0,
        };
        let locks = Arc::new(LockTable::new().watching(looks));
        locks.set_deadlock_detect(settings.is_on(ids::DEADLOCK_DETECT));
        let rsegs = Arc::new(opened.rsegs);
        let trx = Arc::new(TrxSystem::new(opened.next_trx_id, rsegs, locks.clone()));
        // Torn pages were restored before: a file that is opened later needs no copy.
        let no_copy = Box::new(|_| None);
        let dict = Arc::new(Dict::open(ctx, locks, host.collations.clone(), no_copy)?);
        let transactions = Transactions::new(ctx, &trx, &dict);
        let started_s = host.callbacks.wall_clock().as_secs();
        transactions.resurrect(opened.found, started_s)?;
        let pool_list = PoolList::new(&setup, ctx, &dict, &settings, &counters, &host);
        let engine = Arc::new(Engine {
            host,
            settings,
            counters,
            config,
            workers: Threads::new(on_panic(ctx)),
            setup,
            floor,
            trx,
            dict,
            transactions,
            // Held while the snapshot is taken, under which all latches of locks are taken.
            lock_cache: Mutex::new(Rank::None, None),
            resizing: Resizing::new(),
            pool_list,
            closed: AtomicBool::new(false),
        });
        engine.set_memory_limits();
        engine.set_flush_neighbors();
        engine.merge_change_buffer()?;
        engine.start_workers()?;
        if !engine.is_read_only() && engine.setup.force_recovery < 2 {
            engine.finish_drops();
        }
        if !engine.is_read_only() && engine.setup.force_recovery < 3 {
            engine.drop_leftovers()?;
        }
        Ok(engine)
    }

    /// Before rollback, purge and sessions use a secondary index.
    fn merge_change_buffer(&self) -> Result<()> {
        let ctx = self.ctx();
        if self.is_read_only() || self.setup.force_recovery >= 4 {
            // A damaged one may hold changes, too.
            if !change_buffer::is_empty(ctx).unwrap_or(false) {
                self.dict.keep_unmerged_closed();
            }
            return Ok(());
        }
        match row::merge_change_buffer(ctx, &self.dict) {
            Err(error @ Error::Stopped(_)) => return Err(error),
            Ok(Merged {
                left: 0,
                applied: 0,
                discarded: 0,
            }) => {}
            Ok(merged) => {
                log::info!("change buffer: {merged}");
                if merged.left > 0 {
                    self.dict.keep_unmerged_closed();
                }
            }
            Err(error) => {
                log::error!("the change buffer cannot be merged: {error}");
                self.dict.keep_unmerged_closed();
            }
        }
        Ok(())
    }

    fn start_workers(&self) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        let readers = self.settings.uint(ids::READ_IO_THREADS);
        self.floor.storage.sweep(&self.workers, readers)?;
        let force = self.setup.force_recovery;
        if force < 3 {
            self.transactions.roll_back_dictionary()?;
            self.transactions.start_rollback(&self.workers)?;
        }
        if force < 2 {
            self.transactions.start_purge(&self.workers)?;
        }
        if force == 0 && self.settings.is_on(ids::BUFFER_POOL_LOAD_AT_STARTUP) {
            self.pool_list.ask_load();
        }
        self.pool_list.start(&self.workers)
    }

    /// Ends purge, rollback, and whoever may be loading the pool.
    fn stop_workers(&self) {
        self.transactions.stop();
        self.pool_list.stop();
        // A slow shutdown leaves nothing to the next start.
        if self.settings.uint(ids::FAST_SHUTDOWN) != 0 {
            self.floor.storage.stop_sweep();
        }
        self.workers.join_all();
    }

    /// Stops background work, writes everything out as `innodb_fast_shutdown` says, joins every
    /// thread, closes every file. No session is open. A stopped engine writes nothing.
    ///
    /// # Errors
    /// `Io`; the engine is closed all the same.
    pub fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.stop_workers();
        let fast = self.settings.uint(ids::FAST_SHUTDOWN);
        let alive = self.stopped().is_none() && !self.is_read_only();
        if alive && fast == 0 && self.setup.force_recovery < 2 {
            self.transactions.roll_back_rest();
            if let Err(error) = self.transactions.purge_all() {
                log::error!("purge at shutdown: {error}");
            }
        }
        if alive && fast < 2 && self.settings.is_on(ids::BUFFER_POOL_DUMP_AT_SHUTDOWN) {
            self.pool_list.dump_at_shutdown();
        }
        self.floor.stop();
        if self.stopped().is_some() || self.is_read_only() {
            return Ok(());
        }
        if fast >= 2 {
            return self.ctx().log.flush_all().map(|_| ());
        }
        let end = match self.floor.storage.pending.count() {
            0 => self.floor.storage.flush_everything()?,
            _ => self.floor.storage.flush_but_keep_log()?,
        };
        log::info!("shutdown completed; log sequence number {end}");
        Ok(())
    }

    /// How far crash recovery is.
    pub fn recovery_report(&self) -> RecoveryReport {
        self.floor.storage.pending.report()
    }

    /// The host's recovery is over: purge may start.
    pub fn recovery_done(&self) {
        self.transactions.allow_purge();
    }

    /// Ends background work that could use the host.
    pub fn pre_shutdown(&self) {
        self.stop_workers();
    }

    /// Why the engine stopped itself, if it did.
    pub fn stopped(&self) -> Option<Box<str>> {
        match self.ctx().check_running() {
            Err(Error::Stopped(why)) => Some(why),
            _ => match self.ctx().log.check_frozen() {
                Err(Error::Stopped(why)) => Some(why),
                _ => None,
            },
        }
    }

    /// What tables may have here.
    pub fn limits(&self) -> Limits {
        Limits::for_page_size(self.setup.places.page_size as u32)
    }

    /// Writes the log out; `sync`: makes it durable.
    pub fn flush_log(&self, sync: bool) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        let log = &self.ctx().log;
        log.write_up_to(log.lsn(), sync)
    }

    /// Writes all dirty pages of now and makes a checkpoint.
    pub(super) fn checkpoint_now(&self) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        self.ctx().pool.flush_to(self.ctx().log.lsn())?;
        self.floor.background.cleaner.checkpoint()?;
        Ok(())
    }

    /// XIDs of all prepared transactions, oldest first.
    pub fn prepared(&self) -> Vec<Xid> {
        self.trx.prepared_xids().iter().map(Xid::from_log).collect()
    }

    /// Decides a prepared transaction that no session owns.
    ///
    /// # Errors
    /// `Unsupported` until part 3.
    pub fn prepared_decide(&self, xid: &Xid, commit: bool) -> Result<()> {
        let _ = (xid, commit);
        Err(Error::unsupported("XA"))
    }

    /// Pages, log and files.
    pub(super) fn ctx(&self) -> &Arc<PageCtx> {
        &self.floor.storage.ctx
    }

    /// The dictionary.
    pub(super) fn dict(&self) -> &Arc<Dict> {
        &self.dict
    }

    /// The last snapshot of locks.
    pub(super) fn lock_cache(&self) -> &Mutex<locks::Cached> {
        &self.lock_cache
    }

    /// Nothing may be changed.
    pub(super) fn is_read_only(&self) -> bool {
        self.setup.places.read_only
    }

    /// The transactions.
    pub(super) fn trx(&self) -> &Arc<TrxSystem> {
        &self.trx
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

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop_workers();
    }
}

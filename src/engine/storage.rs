//! Files, log and pool of an existing instance: found, recovered, ready for mini-transactions.
//!
//! The order (format-redo.md section 13): locks; the log, read once; doublewrite copies; files as the
//! log knows them; torn pages; the log opened to go on; the pool, whose reads bring pages up. What no
//! session reads is brought up in the background (`Storage::sweep`).

use super::places::Setup;
use crate::buffer::{Doublewrite, Pool};
use crate::format::fsp::Geometry;
use crate::format::trx_sys;
use crate::mtr::{Mode, Mtr, PageCtx};
use crate::os::file::is_errno;
use crate::os::thread::Threads;
use crate::os::{CrashPoints, OpenMode, Vfs};
use crate::recovery::files::{Leniency, make_durable, open_files};
use crate::recovery::sweep::{Sweep, Swept};
use crate::recovery::{LogScan, Pending, RedoIndex, ScanOptions, SpillPlace, Torn, scan_into};
use crate::redo::{Log, LogFile, Resized, file};
use crate::space::{Kind, Registry};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Once, Rank};
use crate::words::{Error, Lsn, PageId, Result, SpaceId};
use std::time::Duration;

/// How long a thread that brings pages up waits for frames that sessions hold.
const FRAME_WAIT: Duration = Duration::from_millis(5);

/// How often the log may grow faster than pages are written before its size is left alone.
const RESIZE_ATTEMPTS: u32 = 20;

/// The lowest floor of an engine.
pub(super) struct Storage {
    pub(super) ctx: Arc<PageCtx>,
    pub(super) pending: Arc<Pending>,
    /// The log is to get this size when no page waits any more.
    log_size: Option<u64>,
    /// Brings up the pages that wait.
    sweep: Once<Arc<Sweep>>,
}

/// What is in the directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// An instance, whole or crashed.
    Instance,
    /// Nothing, or what an interrupted creation left.
    Nothing,
}

/// Looks whether there is an instance.
///
/// Errors: `Invalid` naming the file that is missing; what the file system gives.
pub(super) fn look(vfs: &dyn Vfs, setup: &Setup) -> Result<Found> {
    let system = setup.system_path();
    let has_system = vfs.exists(&system)?;
    let has_log = file::exists(vfs, &setup.log.dir)?;
    match (has_system, has_log) {
        (true, _) if is_unfinished(vfs, setup, has_log)? => {}
        (true, true) => return Ok(Found::Instance),
        (false, false) => {}
        // A creation that began anew had removed what the one before it left, but for the log.
        (false, true) if is_log_of_creation(vfs, setup) => {}
        (true, false) => {
            return Err(Error::invalid(format!(
                "{system} is there, but not {}/ib_logfile0: put the log back, or check \
                 innodb_log_group_home_dir",
                setup.log.dir
            )));
        }
        (false, true) => {
            return Err(Error::invalid(format!(
                "{}/ib_logfile0 is there, but not {system}: put the file back, or check \
                 innodb_data_home_dir and innodb_data_file_path",
                setup.log.dir
            )));
        }
    }
    if !setup.may_create || setup.places.read_only {
        return Err(Error::invalid(format!(
            "there is no instance: {system} is missing"
        )));
    }
    Ok(Found::Nothing)
}

/// True if the creation of the instance was interrupted before anybody could use it: page 0 was never
/// written, or this engine made the log, and the log is at its first checkpoint, which the end of the
/// creation leaves behind when all pages are durable.
fn is_unfinished(vfs: &dyn Vfs, setup: &Setup, has_log: bool) -> Result<bool> {
    let system = vfs.open(&setup.system_path(), OpenMode::READ)?;
    let mut start = [0; 4096];
    if system.size()? >= 4096 {
        system.read_at(&mut start, 0)?;
    }
    let never_written = crate::format::fil::is_all_zero(&start);
    if !has_log {
        return Ok(never_written);
    }
    let log = match LogFile::open(vfs, &setup.log.dir, OpenMode::READ) {
        // Whoever opens the instance will say what is wrong with its log.
        Err(_) if !never_written => return Ok(false),
        log => log?,
    };
    Ok(is_at_first_checkpoint(&log) && (never_written || is_ours(&log)))
}

/// True if this engine made the log and no creation has come to its end with it.
fn is_log_of_creation(vfs: &dyn Vfs, setup: &Setup) -> bool {
    LogFile::open(vfs, &setup.log.dir, OpenMode::READ)
        .is_ok_and(|log| is_at_first_checkpoint(&log) && is_ours(&log))
}

fn is_at_first_checkpoint(log: &LogFile) -> bool {
    let first = crate::format::redo_file::FIRST_LSN;
    log.checkpoint().is_some_and(|(last, _)| last.lsn == first)
}

fn is_ours(log: &LogFile) -> bool {
    log.header().creator_text().starts_with("xtradb")
}

/// Opens an instance. A log of another size than the settings say is replaced: at once, or when nothing
/// waits for recovery any more (`Storage::sweep`).
///
/// Errors: `Busy` if another server has it; `Corrupt`, `Unsupported`, `Invalid`, `Io`.
pub(super) fn open(
    vfs: &Arc<dyn Vfs>,
    setup: &Setup,
    points: &Arc<CrashPoints>,
) -> Result<Storage> {
    let spaces = Registry::new(vfs.clone(), setup.places.clone());
    spaces.set_open_files_max(setup.open_files);
    let log_file = open_log_file(&**vfs, setup)?;
    let records = Arc::new(open_for_recovery(&**vfs, setup)?);
    let mut scan = read_log(vfs, setup, &records)?;
    if setup.places.read_only && !scan.clean {
        return Err(Error::Unsupported(
            "innodb_read_only on an instance that was not shut down cleanly; start it without \
             once"
                .into(),
        ));
    }
    if !scan.clean {
        log::info!(
            "recovery from the checkpoint at LSN {} to {}: {} mini-transactions, {} pages; scanned \
             {:.1} MiB of redo log in {:.3} s ({:.2} GB/s)",
            scan.checkpoint.lsn,
            scan.end,
            scan.mtr_count,
            scan.index.page_count(),
            scan.bytes() as f64 / f64::from(1 << 20),
            scan.took.as_secs_f64(),
            scan.bytes() as f64 / 1e9 / scan.took.as_secs_f64().max(1e-9)
        );
    }
    if !setup.places.read_only && setup.log.sync {
        // What a killed process wrote may be in the system's cache alone. No name and no page may run
        // ahead of the log that tells why; and no log that the checkpoint before this one needs may be written
        // over.
        log_file.sync()?;
    }
    open_tablespaces(&spaces, setup, &mut scan)?;
    let (scan_end, clean) = (scan.end, scan.clean);
    let replace = !setup.places.read_only && Log::wants_new_file(&log_file, &setup.log);
    let log = match replace && clean {
        true => {
            drop(log_file);
            log::info!("a redo log of {} bytes is made", setup.log.file_size);
            Log::create(&**vfs, setup.log.clone(), points.clone(), scan_end)?
        }
        false => Log::open(setup.log.clone(), points.clone(), log_file, scan_end)?,
    };
    let mut storage = assemble(setup, spaces, log, scan, records)?;
    storage.log_size = (replace && !clean).then_some(setup.log.file_size);
    if setup.places.read_only {
        return Ok(storage);
    }
    if setup.doublewrite {
        // Pages may be written from here on.
        set_doublewrite(&storage.ctx)?;
    }
    file::remove_leftovers(&**vfs, &setup.log.dir)?;
    Ok(storage)
}

/// The one pass over the log.
fn read_log(vfs: &Arc<dyn Vfs>, setup: &Setup, log_file: &LogFile) -> Result<LogScan> {
    let place = SpillPlace::new(vfs, &setup.log.dir);
    if !setup.places.read_only {
        place.remove_leftover()?;
    }
    let bytes_max = setup.recovery_bytes_max();
    let index = RedoIndex::with_limit(bytes_max, Some(place));
    scan_into(log_file, index, ScanOptions::for_index_of(bytes_max))
}

/// The log once more, to be read while it is written. Through the system's cache, whatever the settings say of
/// writing it: long records are read again when their pages are brought up, and are there still if memory is
/// not short.
fn open_for_recovery(vfs: &dyn Vfs, setup: &Setup) -> Result<LogFile> {
    LogFile::open(vfs, &setup.log.dir, OpenMode::READ)
}

fn open_log_file(vfs: &dyn Vfs, setup: &Setup) -> Result<LogFile> {
    let mode = OpenMode {
        write: !setup.places.read_only,
        direct: false,
    };
    match LogFile::open(vfs, &setup.log.dir, mode) {
        // Direct transfers need whole blocks; mariadb-backup's log has none.
        Ok(file) if setup.log.direct && file.geometry().file_size() % 4096 == 0 => {
            drop(file);
            LogFile::open(
                vfs,
                &setup.log.dir,
                OpenMode {
                    direct: true,
                    ..mode
                },
            )
        }
        Err(error) if is_errno(&error, libc::EROFS) || is_errno(&error, libc::EACCES) => {
            log::error!("{error}");
            Err(Error::ReadOnly)
        }
        result => result,
    }
}

fn open_tablespaces(spaces: &Registry, setup: &Setup, scan: &mut LogScan) -> Result<()> {
    let torn = match scan.clean {
        true => Torn::default(),
        false => Torn::load(spaces, &setup.system, scan.checkpoint.lsn..=scan.end)?,
    };
    let repair = |id: PageId| torn.first_page(id);
    spaces.open_system(&setup.system, &repair)?;
    for number in 1..=127 {
        if spaces.open_undo(number, &repair)?.is_none() {
            break;
        }
    }
    let is_undo = |id: SpaceId| {
        spaces
            .get(id)
            .is_some_and(|space| space.kind() == Kind::Undo)
    };
    scan.check_names(is_undo)?;
    let leniency = Leniency {
        missing_files: setup.force_recovery >= 1,
    };
    open_files(&mut scan.index, spaces, &torn, leniency, scan.end)?;
    if !scan.clean {
        make_durable(&scan.index, spaces)?;
    }
    let restored = torn.restore(spaces)?;
    if restored > 0 {
        log::info!("{restored} torn pages were restored from the doublewrite blocks");
    }
    Ok(())
}

fn assemble(
    setup: &Setup,
    spaces: Registry,
    log: Log,
    scan: LogScan,
    records: Arc<LogFile>,
) -> Result<Storage> {
    let (log, spaces) = (Arc::new(log), Arc::new(spaces));
    let pool = Arc::new(Pool::open(setup.pool, log.clone(), spaces.clone())?);
    {
        // Checkpoints name the tablespaces of the records in the log until they have passed them.
        let gate = log.enter_exclusive();
        for id in scan.index.changed_spaces() {
            let space = spaces.get(id).filter(|space| space.is_named_in_log());
            if let Some(space) = space {
                spaces.set_modified(&gate, &space, scan.end);
            }
        }
    }
    let origin = scan.origin();
    let pending = Arc::new(Pending::new(scan.index, records, origin));
    pending.set_log(log.clone());
    pending.wait_for_files(&spaces);
    pool.set_hook(pending.clone());
    Ok(Storage {
        ctx: Arc::new(PageCtx::new(pool, log, spaces)),
        pending,
        log_size: None,
        sweep: Once::new(),
    })
}

/// Reads where the doublewrite blocks are.
pub(super) fn set_doublewrite(ctx: &PageCtx) -> Result<()> {
    let id = PageId::new(SpaceId::SYSTEM, trx_sys::PAGE);
    let mut mtr = Mtr::reader(ctx);
    let page = mtr.get(id, Mode::S, Rank::FspPage)?;
    let geometry = Geometry::of_page_size(ctx.page_size());
    match Doublewrite::parse(mtr.view(page), geometry)? {
        Some(place) => ctx.pool.set_doublewrite(place),
        None => log::warn!("there are no doublewrite blocks: torn pages cannot be repaired"),
    }
    Ok(())
}

/// Gives the log the size that the settings say. The next start tries again where this does not succeed.
fn resize_log(ctx: &PageCtx, pending: &Pending, size: u64) {
    match change_log_size(ctx, pending, size) {
        Ok(()) | Err(Error::Stopped(_)) => {}
        Err(error) => log::warn!("{error}"),
    }
}

/// Errors: `Busy` if the log is kept, or never comes to rest; what writing and the file system give.
fn change_log_size(ctx: &PageCtx, pending: &Pending, size: u64) -> Result<()> {
    let busy = |why: &str| {
        let text = format!("the redo log keeps its old size: {why}");
        Err(Error::Busy(text.into()))
    };
    if pending.count() > 0 {
        return match &*pending.missing_files() {
            "" => busy("pages wait for recovery"),
            files => busy(&format!("it is kept for {files}")),
        };
    }
    match try_to_resize(ctx, pending, size)? {
        true => log::info!("the redo log has {size} bytes now"),
        false => return busy("too much is logged"),
    }
    Ok(())
}

/// False if the log never came to rest.
fn try_to_resize(ctx: &PageCtx, pending: &Pending, size: u64) -> Result<bool> {
    for _ in 0..RESIZE_ATTEMPTS {
        ctx.pool.flush_to(ctx.log.lsn())?;
        ctx.log
            .checkpoint(&ctx.spaces, || Storage::oldest(ctx, pending))?;
        if ctx.log.resize(&**ctx.spaces.vfs(), size)? == Resized::Done {
            return Ok(true);
        }
    }
    Ok(false)
}

fn report(swept: Swept, pending: &Pending) {
    log::info!(
        "recovery has brought up its last page, {} in all, in {:.1} s",
        swept.pages,
        pending.report().elapsed.as_secs_f64()
    );
    if swept.damaged + swept.stuck > 0 {
        log::error!(
            "{} pages could not be recovered; their tables will report it",
            swept.damaged + swept.stuck
        );
    }
}

impl Storage {
    /// Gives the log another size while it is in use.
    ///
    /// Errors: `Invalid` for a size that cannot be worked with; `Busy` while the log is kept, or if it never
    /// comes to rest; what writing and the file system give.
    pub(super) fn set_log_size(&self, size: u64) -> Result<()> {
        let buffer = self.ctx.log.options().buffer_size as u64;
        if size < buffer {
            return Err(Error::invalid(format!(
                "innodb_log_file_size={size}: innodb_log_buffer_size={buffer} at least"
            )));
        }
        if size == self.ctx.log.file_size() {
            return Ok(());
        }
        change_log_size(&self.ctx, &self.pending, size)
    }

    /// Starts threads that bring up the pages that wait, and then see to the log's size. They end by
    /// themselves.
    ///
    /// Errors: `Io` if there is no thread to be had.
    pub(super) fn sweep(&self, workers: &Threads, count: u64) -> Result<()> {
        let waiting = self.pending.count() > 0;
        if !waiting && self.log_size.is_none() {
            return Ok(());
        }
        let count = if waiting { count } else { 1 };
        let sweep = self
            .sweep
            .get_or_init(|| Arc::new(Sweep::new(&self.pending)));
        let running = Arc::new(AtomicU64::new(count));
        let log_size = self.log_size;
        for _ in 0..count {
            let (ctx, pending) = (self.ctx.clone(), self.pending.clone());
            let (sweep, running) = (sweep.clone(), running.clone());
            workers.start("xt_recover", move || {
                let wait = || {
                    std::thread::sleep(FRAME_WAIT);
                    !sweep.is_stopped()
                };
                let result = sweep.run(&ctx, &pending, &wait);
                let is_last = running.fetch_sub(1, Ordering::AcqRel) == 1;
                match &result {
                    _ if sweep.is_stopped() => return,
                    Err(error) => log::error!("recovery of pages ends early: {error}"),
                    Ok(()) => {}
                }
                if is_last && result.is_ok() {
                    if waiting {
                        report(sweep.swept(), &pending);
                    }
                    if let Some(size) = log_size {
                        resize_log(&ctx, &pending, size);
                    }
                }
            })?;
        }
        Ok(())
    }

    /// The threads of `sweep` end with the pages at hand.
    pub(super) fn stop_sweep(&self) {
        if let Some(sweep) = self.sweep.get() {
            sweep.stop();
        }
    }

    /// Writes all pages and brings the log into the state of a clean shutdown.
    ///
    /// Errors: what writing gives; `Stopped`.
    pub(super) fn flush_everything(&self) -> Result<Lsn> {
        if self.pending.count() > 0 {
            return Err(Error::Stopped(
                "pages that could not be recovered keep the log from being emptied".into(),
            ));
        }
        self.ctx.pool.flush_all()?;
        self.ctx.log.make_clean(&self.ctx.spaces)
    }

    /// Writes all pages, and makes a checkpoint as far as the pages that wait allow: the log is kept.
    ///
    /// Errors: what writing gives; `Stopped`.
    pub(super) fn flush_but_keep_log(&self) -> Result<Lsn> {
        self.ctx.pool.flush_all()?;
        let oldest = || Storage::oldest(&self.ctx, &self.pending);
        match self.ctx.log.checkpoint(&self.ctx.spaces, oldest) {
            // The log is full. It is whole all the same.
            Ok(_) | Err(Error::LogRoom) => {}
            Err(error) => return Err(error),
        }
        match self.pending.missing_files() {
            files if files.is_empty() => {
                log::warn!("the redo log is kept for pages that were not recovered");
            }
            files => {
                log::warn!("the redo log is kept for {files}: put it back before the next start")
            }
        }
        let log = &self.ctx.log;
        log.flush_all()?;
        Ok(log.lsn())
    }

    /// Start LSN of the oldest change that no file has.
    pub(super) fn oldest(ctx: &PageCtx, pending: &Pending) -> Option<Lsn> {
        // The waiting pages first: one that leaves that list meanwhile has entered the other.
        let waiting = pending.oldest();
        let dirty = ctx.pool.oldest_modification();
        waiting.into_iter().chain(dirty).min()
    }
}

//! A new instance: files, log, the system tablespace, undo tablespaces, the dictionary; everything
//! written out before anybody may use it.
//!
//! Crash: the log leaves its first checkpoint last of all, when every page is durable. Until then the
//! directory counts as empty, and what is there is removed by the next attempt.

use super::places::Setup;
use super::types::HostServices;
use crate::buffer::Pool;
use crate::dict;
use crate::extent;
use crate::format::fsp::SpaceFlags;
use crate::format::redo_file::FIRST_LSN;
use crate::lock::LockTable;
use crate::mtr::{Budget, Mtr, PageCtx};
use crate::os::file::{is_errno, join};
use crate::os::{CrashPoints, Vfs};
use crate::redo::{Log, file};
use crate::space::{Kind, Registry};
use crate::sync::Arc;
use crate::undo::rseg;
use crate::words::{Result, SpaceId};

/// Pages of a new undo tablespace, whatever their size.
const UNDO_PAGES: u32 = 640;
/// Redo of the first pages of a tablespace.
const SPACE_LOG_BYTES: usize = 256 << 10;

/// Makes an instance, cleanly shut down.
///
/// Errors: what the file system gives; `Invalid` for settings that do not fit.
pub(super) fn create(
    vfs: &Arc<dyn Vfs>,
    setup: &Setup,
    points: &Arc<CrashPoints>,
    host: &HostServices,
) -> Result<()> {
    log::info!("a new instance is made in {}", setup.places.system_dir);
    remove_leftovers(&**vfs, setup)?;
    for dir in [
        &setup.places.system_dir,
        &setup.places.undo_dir,
        &setup.log.dir,
    ] {
        vfs.create_dir(dir)?;
    }
    let spaces = Arc::new(Registry::new(vfs.clone(), setup.places.clone()));
    let flags = SpaceFlags::full_crc32(setup.places.page_size);
    spaces.create_system(Kind::System, &setup.system, flags)?;
    let log = Log::create(&**vfs, setup.log.clone(), points.clone(), FIRST_LSN)?;
    let log = Arc::new(log);
    let pool = Arc::new(Pool::open(setup.pool, log.clone(), spaces.clone())?);
    let ctx = PageCtx::new(pool, log, spaces);
    fill(&ctx, setup, flags, host)?;
    ctx.pool.flush_all()?;
    ctx.log.make_clean(&ctx.spaces)?;
    Ok(())
}

fn fill(ctx: &PageCtx, setup: &Setup, flags: SpaceFlags, host: &HostServices) -> Result<()> {
    dict::create::create_system(ctx)?;
    let mut undo_spaces = Vec::new();
    for number in 1..=setup.undo_tablespaces {
        let id = SpaceId(number);
        ctx.spaces.create_undo(id, number, flags, UNDO_PAGES)?;
        let budget = Budget::system(SPACE_LOG_BYTES).with_frames(16);
        let mut mtr = Mtr::start(ctx, budget)?;
        extent::create_space(&mut mtr, id, UNDO_PAGES)?;
        mtr.commit();
        undo_spaces.push(id);
    }
    rseg::create_all(ctx, &undo_spaces)?;
    let locks = Arc::new(LockTable::new());
    dict::create::create_described_tables(ctx, locks, host.collations.clone())
}

/// What an interrupted creation left: `storage::look` has made sure that it is nothing else. The log goes
/// last, and each kind durably before the next: what a power cut leaves of it is recognised again.
fn remove_leftovers(vfs: &dyn Vfs, setup: &Setup) -> Result<()> {
    let log = join(&setup.log.dir, file::NAME);
    let in_system_dir = |name: &str| join(&setup.places.system_dir, name);
    let files = setup.system.files.iter();
    let system: Vec<String> = files.map(|file| in_system_dir(&file.name)).collect();
    let undo = (1..=setup.undo_tablespaces)
        .map(|number| join(&setup.places.undo_dir, &format!("undo{number:03}")));
    let mut left = false;
    for path in system.iter().chain([&log]) {
        if vfs.exists(path)? {
            log::warn!("{path} is left over from an interrupted creation and is removed");
            left = true;
        }
    }
    if !left {
        return Ok(());
    }
    remove_all(vfs, &setup.places.undo_dir, undo)?;
    remove_all(vfs, &setup.places.system_dir, system.into_iter().rev())?;
    remove_all(vfs, &setup.log.dir, [log].into_iter())
}

/// Some files of a directory, durably. A process that was killed may have removed some of them, and they may
/// be back after a power cut.
fn remove_all(vfs: &dyn Vfs, dir: &str, paths: impl Iterator<Item = String>) -> Result<()> {
    for path in paths {
        remove(vfs, &path)?;
    }
    match vfs.exists(dir)? {
        true => vfs.sync_dir(dir),
        false => Ok(()),
    }
}

fn remove(vfs: &dyn Vfs, path: &str) -> Result<()> {
    match vfs.remove(path) {
        Err(error) if !is_errno(&error, libc::ENOENT) => Err(error),
        _ => Ok(()),
    }
}

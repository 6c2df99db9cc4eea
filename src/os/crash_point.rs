//! Named places where a test stops the process or panics.
//!
//! Costs one relaxed load while nothing is armed. A set belongs to one engine: no global.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Rank};
use crate::words::{Error, Result};

/// Every point of the engine: at least one in each critical section, so that a test can walk them all.
pub const POINTS: [&str; 48] = [
    "blob.free",
    "blob.write",
    "bulk.begun",
    "bulk.emptied",
    "bulk.page",
    "bulk.root",
    "ddl.committed",
    "ddl.create_file",
    "ddl.create_rows",
    "ddl.drop_file",
    "ddl.drop_rows",
    "ddl.index_built",
    "ddl.index_made",
    "ddl.rename_logged",
    "ddl.rename_noted",
    "ddl.renamed",
    "ddl.truncate_aside",
    "ddl.truncate_created",
    "flush.copy",
    "flush.doublewrite",
    "flush.places",
    "mtr.appended",
    "mtr.changed",
    "mtr.committed",
    "pool.evict",
    "pool.load",
    "purge.log",
    "purge.step",
    "redo.after_checkpoint_block",
    "redo.after_write",
    "redo.before_checkpoint_block",
    "redo.before_sync",
    "redo.before_write",
    "rollback.step",
    "tree.locks_moved",
    "tree.lower_root",
    "tree.merge",
    "tree.raise_root",
    "tree.reorganise",
    "tree.split",
    "tree.split_left",
    "trx.published",
    "trx.before_history",
    "trx.before_publish",
    "undo.append",
    "undo.begin",
    "undo.page",
    "undo.reuse",
];

/// What happens at an armed point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The process ends at once, as by `kill -9`.
    Kill,
    /// The thread panics.
    Panic,
}

#[derive(Debug)]
struct Armed {
    name: String,
    action: Action,
    /// Hits that pass before the action.
    left: u32,
}

/// The points of one engine.
#[derive(Debug)]
pub struct CrashPoints {
    any: AtomicBool,
    armed: Mutex<Vec<Armed>>,
}

impl Default for CrashPoints {
    fn default() -> CrashPoints {
        CrashPoints::new()
    }
}

impl CrashPoints {
    /// Nothing armed.
    pub const fn new() -> CrashPoints {
        CrashPoints {
            any: AtomicBool::new(false),
            armed: Mutex::new(Rank::Leaf, Vec::new()),
        }
    }

    /// Arms `name`: the first `hits_before` passes are free, the next one acts; once.
    pub fn arm(&self, name: &str, action: Action, hits_before: u32) {
        self.armed.lock().push(Armed {
            name: name.into(),
            action,
            left: hits_before,
        });
        self.any.store(true, Ordering::Release);
    }

    /// Arms what a setting says: `name:kill`, `name:panic:3`, several separated by commas.
    pub fn arm_all(&self, setting: &str) -> Result<()> {
        for item in setting
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let mut parts = item.split(':');
            let name = parts.next().unwrap_or_default();
            let action = match parts.next() {
                Some("kill") => Action::Kill,
                Some("panic") => Action::Panic,
                _ => {
                    return Err(Error::invalid(format!(
                        "crash point {item}: kill or panic?"
                    )));
                }
            };
            let hits = parts.next().unwrap_or("0").parse();
            let hits = hits.map_err(|_| Error::invalid(format!("crash point {item}: hits?")))?;
            self.arm(name, action, hits);
        }
        Ok(())
    }

    /// The thread passes the point `name`.
    #[inline]
    pub fn reached(&self, name: &str) {
        if self.any.load(Ordering::Relaxed) {
            self.act(name);
        }
    }

    #[cold]
    fn act(&self, name: &str) {
        debug_assert!(cfg!(test) || POINTS.contains(&name), "{name} is not listed");
        let mut armed = self.armed.lock();
        let Some(at) = armed.iter().position(|point| point.name == name) else {
            return;
        };
        if armed[at].left > 0 {
            armed[at].left -= 1;
            return;
        }
        let action = armed.remove(at).action;
        drop(armed);
        match action {
            Action::Kill => kill_self(),
            Action::Panic => panic!("planted panic at {name}"),
        }
    }
}

fn kill_self() -> ! {
    // SAFETY: sending a signal to the own process; SIGKILL runs no handler, so no code of ours sees
    // the state it leaves.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    loop {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "planted panic at b")]
    fn a_point_acts_after_its_free_passes() {
        let points = CrashPoints::new();
        points.arm_all("a:kill:5, b:panic:2").expect("well formed");
        for _ in 0..3 {
            points.reached("b");
        }
    }

    #[test]
    fn a_malformed_setting_is_refused() {
        assert!(CrashPoints::new().arm_all("a").is_err());
        assert!(CrashPoints::new().arm_all("a:kill:x").is_err());
        assert!(CrashPoints::new().arm_all("").is_ok());
    }
}

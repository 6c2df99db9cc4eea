//! Directories that vanish with the test, unless it failed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A directory of the test's own. Kept, with its path printed, when the test panics.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// `name` shows in the path; several scratches of one name do not meet.
    pub fn new(name: &str) -> Scratch {
        let root =
            std::env::var_os("XTRADB_TEST_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short: a socket's path must stay below 108 bytes.
        let path = root.join(format!("xt-{}-{number}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("the scratch directory can be made");
        Scratch { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory below this one.
    pub fn dir(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(&path).expect("the directory can be made");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept for a look: {}", self.path.display());
        } else {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Copies a directory with all that is in it.
pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the directory can be made");
    for entry in fs::read_dir(from).expect("the directory can be listed") {
        let entry = entry.expect("the entry can be read");
        let target = to.join(entry.file_name());
        let kind = entry.file_type().expect("the entry has a type");
        if kind.is_dir() {
            copy_dir(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).expect("the file can be copied");
        }
    }
}

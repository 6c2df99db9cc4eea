//! A memory limit for one child: a control group of version 1 or 2 below this process's own.

use crate::engine::Result;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

pub struct Limit {
    dir: PathBuf,
}

impl Limit {
    /// An error says why there is none: "no memory cgroup ...".
    pub fn new(bytes: u64) -> Result<Limit> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let name = format!("xtradb-bench-{}", std::process::id());
        let mut why = Vec::new();
        for (parent, file) in parents(&own) {
            let dir = parent.join(&name);
            match make(&parent, &dir, file, bytes) {
                Ok(()) => return Ok(Limit { dir }),
                Err(error) => {
                    let _ = fs::remove_dir(&dir);
                    why.push(format!("{}: {error}", parent.display()));
                }
            }
        }
        Err(format!("no memory cgroup ({})", why.join("; ")).into())
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}

/// Puts this process under the limit.
pub fn enter(dir: &Path) -> Result<()> {
    Ok(fs::write(
        dir.join("cgroup.procs"),
        std::process::id().to_string(),
    )?)
}

/// Where a group may be made, and the file that holds its limit; `own` is /proc/self/cgroup.
fn parents(own: &str) -> Vec<(PathBuf, &'static str)> {
    let mut found = Vec::new();
    for line in own.lines() {
        let Some((controllers, path)) = line
            .split_once(':')
            .and_then(|(_, rest)| rest.split_once(':'))
        else {
            continue;
        };
        let below = path.trim_start_matches('/');
        if controllers.split(',').any(|one| one == "memory") {
            found.push((
                Path::new(ROOT).join("memory").join(below),
                "memory.limit_in_bytes",
            ));
        } else if controllers.is_empty() {
            found.push((Path::new(ROOT).join(below), "memory.max"));
        }
    }
    found
}

fn make(parent: &Path, dir: &Path, file: &str, bytes: u64) -> Result<()> {
    if file == "memory.max" {
        // In version 2 the parent must hand the controller down; it does already, or refuses.
        let handed = fs::read_to_string(parent.join("cgroup.subtree_control"))?;
        if !handed.contains("memory") {
            fs::write(parent.join("cgroup.subtree_control"), "+memory")?;
        }
    }
    fs::create_dir(dir)?;
    fs::write(dir.join(file), bytes.to_string())?;
    // No swap: it would be more memory. Not there when the machine has none.
    let _ = fs::write(dir.join("memory.swappiness"), "0");
    let _ = fs::write(dir.join("memory.swap.max"), "0");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let own = "9:cpu,cpuacct:/\n4:memory:/a/b\n0::/c\n";
        let found: Vec<String> = parents(own)
            .iter()
            .map(|(dir, file)| format!("{}/{file}", dir.display()))
            .collect();
        assert_eq!(
            found,
            [
                "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
                "/sys/fs/cgroup/c/memory.max"
            ]
        );
    }
}

//! What the figures were measured on: for the document.

use crate::store::Part;
use std::fs;
use std::process::Command;

pub fn describe(part: &mut Part) {
    let facts = [
        ("date", said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
        ("processor", processor()),
        ("processors", said("nproc", &[])),
        ("memory", memory()),
        ("kernel", said("uname", &["-sr"])),
        ("compiler", said("rustc", &["--version"])),
        ("commit", said("git", &["log", "-1", "--format=%h %cs"])),
        (
            "rocksdb",
            said("dpkg-query", &["-W", "-f", "${Version}", "librocksdb-dev"]),
        ),
        ("sqlite", rusqlite::version().to_owned()),
    ];
    for (name, text) in facts {
        part.fact(name, text);
    }
    for (name, version) in locked(include_str!("../Cargo.lock"), &["heed", "redb", "fjall"]) {
        part.fact(&name, version);
    }
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|_| "unknown".into())
}

fn value_in(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or("unknown".into(), |(_, value)| value.trim().to_owned())
}

fn processor() -> String {
    value_in("/proc/cpuinfo", "model name")
}

fn memory() -> String {
    let text = value_in("/proc/meminfo", "MemTotal");
    let kib = text
        .split(' ')
        .next()
        .and_then(|kib| kib.parse::<f64>().ok());
    kib.map_or(text, |kib| format!("{:.0} GiB", kib / 1024.0 / 1024.0))
}

/// The versions of some packages in a Cargo.lock.
fn locked(lock: &str, names: &[&str]) -> Vec<(String, String)> {
    let quoted = |line: &str, key: &str| {
        let rest = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        rest.strip_suffix('"').map(str::to_owned)
    };
    let mut found = Vec::new();
    let mut lines = lock.lines();
    while let Some(line) = lines.next() {
        let Some(name) = quoted(line, "name").filter(|name| names.contains(&name.as_str())) else {
            continue;
        };
        if let Some(version) = lines.next().and_then(|line| quoted(line, "version")) {
            found.push((name, version));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock() {
        let lock = "[[package]]\nname = \"redb\"\nversion = \"4.1.0\"\n";
        assert_eq!(locked(lock, &["redb"]), [("redb".into(), "4.1.0".into())]);
    }
}

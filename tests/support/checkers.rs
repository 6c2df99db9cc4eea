//! Independent readers of the files: innochecksum and the scripts of tests/tools.

use super::scratch::Scratch;
use super::{run, run_ok};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

fn tool(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tools")
        .join(name)
}

/// The stock tool that verifies the checksum of every page of a file.
pub fn innochecksum(file: &Path) -> Result<(), String> {
    innochecksum_range(file, &[])
}

/// ibdata1 without the doublewrite blocks (extents 1 and 2): they hold copies of other files' pages,
/// of which the stock tool itself complains in directories of the stock server.
pub fn innochecksum_system(file: &Path) -> Result<(), String> {
    let extent = extent_pages(file)?;
    innochecksum_range(file, &["-e", &(extent - 1).to_string()])?;
    innochecksum_range(file, &["-s", &(3 * extent).to_string()])
}

fn innochecksum_range(file: &Path, range: &[&str]) -> Result<(), String> {
    let output = run(Command::new("innochecksum").args(range).arg(file));
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "innochecksum {}: {}",
        file.display(),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Pages of an extent: 1 MiB up to 16K pages, 64 pages above. From the space flags on page 0.
fn extent_pages(file: &Path) -> Result<u64, String> {
    let mut head = [0; 58];
    std::fs::File::open(file)
        .and_then(|mut f| f.read_exact(&mut head))
        .map_err(|e| e.to_string())?;
    let flags = u32::from_be_bytes([head[54], head[55], head[56], head[57]]);
    let full_crc32 = flags & 0x10 != 0;
    let shift = if full_crc32 {
        flags & 0xF
    } else {
        (flags >> 6) & 0xF
    };
    let page_size = if shift == 0 { 16384 } else { 512u64 << shift };
    Ok((1024 * 1024 / page_size).max(64))
}

/// `ibdump.py FILE check …`: checksums, envelopes, space lists and, with a schema, all B-trees.
pub fn ibdump_check(file: &Path, schema: &[&str]) -> Result<(), String> {
    let output = run(Command::new("python3")
        .arg(tool("ibdump.py"))
        .arg(file)
        .arg("check")
        .args(schema));
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "ibdump.py {} check: {}{}",
        file.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// Any other command of ibdump.py; panics when it fails.
pub fn ibdump(arguments: &[&str]) -> String {
    let bytes = run_ok(
        Command::new("python3")
            .arg(tool("ibdump.py"))
            .args(arguments),
    );
    String::from_utf8(bytes).expect("ibdump.py prints UTF-8")
}

/// A command of redodump.py; panics when it fails.
pub fn redodump(arguments: &[&str]) -> String {
    let bytes = run_ok(
        Command::new("python3")
            .arg(tool("redodump.py"))
            .args(arguments),
    );
    String::from_utf8(bytes).expect("redodump.py prints UTF-8")
}

/// Every data file of a directory whose server is down: innochecksum and ibdump.py on each, with the
/// schema that the directory's own dictionary gives. `system_files` counts from ibdata1 and undo files.
pub fn check_data_dir(datadir: &Path) -> Result<usize, String> {
    let mut checked = 0;
    let scratch = Scratch::new("system");
    let dictionary = system_file(datadir, &scratch)?;
    for entry in std::fs::read_dir(datadir).map_err(|e| e.to_string())? {
        let path = entry.map_err(|e| e.to_string())?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            checked += check_database(&path, &name, &dictionary)?;
        } else if name == "ibdata1" || name.starts_with("undo0") {
            if name == "ibdata1" {
                innochecksum_system(&dictionary)?;
                ibdump_check(&dictionary, &[])?;
            } else {
                innochecksum(&path)?;
                ibdump_check(&path, &[])?;
            }
            checked += 1;
        }
    }
    Ok(checked)
}

/// The system tablespace as one file: ibdata1, or a copy of ibdata1, ibdata2 … in a row.
fn system_file(datadir: &Path, scratch: &Scratch) -> Result<PathBuf, String> {
    let files = (1..).map(|n| datadir.join(format!("ibdata{n}")));
    let files: Vec<PathBuf> = files.take_while(|file| file.exists()).collect();
    if let [only] = &files[..] {
        return Ok(only.clone());
    }
    let whole = scratch.path().join("ibdata");
    let mut bytes = Vec::new();
    for file in &files {
        bytes.extend(std::fs::read(file).map_err(|e| e.to_string())?);
    }
    std::fs::write(&whole, bytes).map_err(|e| e.to_string())?;
    Ok(whole)
}

fn check_database(folder: &Path, database: &str, dictionary: &Path) -> Result<usize, String> {
    let mut checked = 0;
    for entry in std::fs::read_dir(folder).map_err(|e| e.to_string())? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.extension().is_none_or(|extension| extension != "ibd") {
            continue;
        }
        innochecksum(&path)?;
        let table = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{database}/{table}");
        let schema = ["--dict", &dictionary.to_string_lossy(), "--table", &name];
        match ibdump_check(&path, &schema) {
            // A full-text index has no tree in the table's file; the checker knows trees alone.
            Err(why) if why.contains("page 4294967295 is beyond the end") => {
                ibdump_check(&path, &[])?
            }
            result => result?,
        }
        checked += 1;
    }
    Ok(checked)
}

//! The stock server's files in tests/fixtures/samples.

use super::run_ok;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tables that lie in the folder as NAME.sql, NAME.ibd.xz, NAME.cfg, NAME.frm and NAME.tsv.
pub const TABLES: [&str; 14] = [
    "s_redundant",
    "s_compact",
    "s_dynamic",
    "s_compressed",
    "s_blob_redundant",
    "s_blob_compact",
    "s_blob_dynamic",
    "s_blob_compressed",
    "s_instant",
    "s_instant_redundant",
    "s_instant_alter",
    "s_noprimary",
    "s_types",
    "s_spatial",
];

/// The path of a file of the samples, as `s_dynamic.tsv` or `mini/dict.txt`.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/samples")
        .join(name)
}

/// The path of any fixture, as `dump/shop.sql.xz`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// What an .xz file holds.
pub fn unpack(file: &Path) -> Vec<u8> {
    run_ok(Command::new("xz").arg("-dc").arg(file))
}

/// The bytes of a sample; one that lies there as NAME.xz is unpacked.
pub fn bytes(name: &str) -> Vec<u8> {
    let plain = path(name);
    if plain.exists() {
        return fs::read(&plain).expect("the sample can be read");
    }
    let packed = path(&format!("{name}.xz"));
    assert!(packed.exists(), "no sample {name}");
    unpack(&packed)
}

pub fn text(name: &str) -> String {
    String::from_utf8(bytes(name)).expect("the sample is text")
}

/// Lays the complete small data directory out in `into`.
pub fn lay_out_mini(into: &Path) {
    for file in ["ibdata1", "undo001", "undo002", "ib_logfile0"] {
        fs::write(into.join(file), bytes(&format!("mini/{file}")))
            .expect("the file can be written");
    }
    let tar = into.join("smp.tar");
    fs::write(&tar, bytes("mini/smp.tar")).expect("the archive can be written");
    run_ok(
        Command::new("tar")
            .arg("-xf")
            .arg(&tar)
            .arg("-C")
            .arg(into)
            .arg("--no-same-owner"),
    );
    fs::remove_file(&tar).expect("the archive can be removed");
}

/// Lays out the data directory that was only bootstrapped.
pub fn lay_out_fresh(into: &Path) {
    for file in ["ibdata1", "undo001", "undo002", "ib_logfile0"] {
        fs::write(into.join(file), bytes(&format!("fresh/{file}")))
            .expect("the file can be written");
    }
}

//! What real and simulated files promise alike, and what only the simulation does.

use super::file::is_errno;
use super::sim::{Call, SimVfs};
use super::*;
use crate::sync::Arc;
use crate::words::Error;

fn temp_dir(name: &str) -> String {
    let dir = std::env::temp_dir().join(format!("xtradb-os-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir.to_str().unwrap().to_string()
}

fn both(name: &str, test: impl Fn(&dyn Vfs, &str)) {
    let dir = temp_dir(name);
    test(&RealVfs, &dir);
    std::fs::remove_dir_all(&dir).unwrap();
    let sim = SimVfs::new();
    sim.create_dir("./d").unwrap();
    test(&sim, "./d");
}

#[test]
fn files_are_made_written_read_renamed_and_removed() {
    both("life", |vfs, dir| {
        let (a, b) = (file::join(dir, "a"), file::join(dir, "b"));
        let made = vfs.create(&a, OpenMode::DIRECT).unwrap();
        assert!(is_errno(
            &vfs.create(&a, OpenMode::DIRECT).unwrap_err(),
            libc::EEXIST
        ));
        made.allocate(3 * 4096).unwrap();
        let mut block = AlignedBuf::new(4096);
        block.fill(7);
        made.write_at(&block, 4096).unwrap();
        made.sync_data().unwrap();
        vfs.rename(&a, &b).unwrap();
        vfs.sync_dir(dir).unwrap();
        assert!(!vfs.exists(&a).unwrap());
        assert_eq!(vfs.list_dir(dir).unwrap(), ["b"]);
        let bytes = vfs.read_small(&b).unwrap();
        assert_eq!(bytes.len(), 3 * 4096);
        assert!(bytes[..4096].iter().all(|&x| x == 0) && bytes[4096..8192].iter().all(|&x| x == 7));
        let mut beyond = AlignedBuf::new(4096);
        assert!(is_errno(
            &made.read_at(&mut beyond, 3 * 4096).unwrap_err(),
            0
        ));
        made.truncate(4096).unwrap();
        assert_eq!(made.size().unwrap(), 4096);
        vfs.remove(&b).unwrap();
        assert!(is_errno(
            &vfs.open(&b, OpenMode::READ).unwrap_err(),
            libc::ENOENT
        ));
    });
}

#[test]
fn a_locked_file_is_refused_to_a_second_engine_even_in_this_process() {
    both("lock", |vfs, dir| {
        let path = file::join(dir, "ibdata1");
        let first = vfs.create(&path, OpenMode::WRITE).unwrap();
        let lock = first.lock().unwrap();
        // Opening and closing the file elsewhere must not let the lock fall.
        drop(vfs.open(&path, OpenMode::WRITE).unwrap());
        let second = vfs.open(&path, OpenMode::WRITE).unwrap();
        assert!(matches!(second.lock(), Err(Error::Busy(_))));
        drop(lock);
        second.lock().unwrap();
    });
}

#[test]
fn the_lock_excludes_a_server_that_locks_like_innodb() {
    let dir = temp_dir("fcntl");
    let path = file::join(&dir, "ibdata1");
    let file = RealVfs.create(&path, OpenMode::WRITE).unwrap();
    let lock = file.lock().unwrap();
    // F_SETLK in another process, as os_file_lock takes it.
    let script = format!(
        "import fcntl\nf=open({path:?},'r+')\ntry:\n fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)\n \
         print('got')\nexcept OSError:\n print('refused')"
    );
    let run = || {
        let out = std::process::Command::new("python3")
            .args(["-c", &script])
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_string()
    };
    assert_eq!(run(), "refused");
    drop(lock);
    assert_eq!(run(), "got");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn transfers_that_are_not_aligned_still_work_on_a_direct_file() {
    let dir = temp_dir("unaligned");
    let path = file::join(&dir, "x");
    let file = RealVfs.create(&path, OpenMode::DIRECT).unwrap();
    file.allocate(8192).unwrap();
    let shifted = vec![3u8; 4097];
    file.write_at(&shifted[1..], 4096).unwrap();
    file.write_at(&[9; 1024], 1024).unwrap();
    let mut back = vec![0; 8192];
    file.read_at(&mut back, 0).unwrap();
    assert!(back[1024..2048].iter().all(|&x| x == 9) && back[4096..].iter().all(|&x| x == 3));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_power_cut_keeps_what_was_synced_and_any_sectors_of_the_rest() {
    let (mut lost, mut kept, mut torn) = (0, 0, 0);
    for seed in 0..400 {
        let sim = SimVfs::new();
        let file = sim.create("./d/x", OpenMode::WRITE).unwrap();
        file.write_at(&[1; 2048], 0).unwrap();
        file.sync_data().unwrap();
        sim.sync_dir("./d").unwrap();
        file.write_at(&[2; 1024], 1024).unwrap();
        let bytes = sim.after_power_cut(seed).content("./d/x").unwrap();
        assert!(bytes[..1024].iter().all(|&x| x == 1), "seed {seed}");
        match (bytes[1024], bytes[1536]) {
            (1, 1) => lost += 1,
            (2, 2) => kept += 1,
            _ => torn += 1,
        }
        assert_eq!(
            sim.after_kill().content("./d/x").unwrap()[1024..],
            [2; 1024]
        );
    }
    assert!(lost > 20 && kept > 20 && torn > 20, "{lost} {kept} {torn}");
}

#[test]
fn a_name_that_was_not_synced_may_be_gone_after_a_power_cut() {
    let sim = SimVfs::new();
    sim.put("./old", b"old");
    let file = sim.create("./new", OpenMode::WRITE).unwrap();
    file.write_at(b"new", 0).unwrap();
    file.sync_data().unwrap();
    sim.rename("./new", "./old").unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let cut = sim.after_power_cut(seed);
        seen.insert((cut.content("./old").unwrap(), cut.exists("./new").unwrap()));
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    sim.sync_dir(".").unwrap();
    assert_eq!(sim.after_power_cut(1).content("./old").unwrap(), b"new");
}

#[test]
fn planned_faults_hit_their_call_and_a_failed_sync_loses_silently() {
    let sim = SimVfs::new();
    let file: Arc<dyn File> = sim.create("./x", OpenMode::WRITE).unwrap();
    sim.sync_dir(".").unwrap();
    sim.fail(Call::Write, "x", 1, libc::EIO, true);
    file.write_at(b"a", 0).unwrap();
    assert!(is_errno(&file.write_at(b"b", 0).unwrap_err(), libc::EIO));
    file.write_at(b"c", 0).unwrap();
    sim.fail(Call::Sync, "x", 0, libc::EIO, true);
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert_eq!(sim.content("./x").unwrap(), b"c");
    assert_eq!(sim.after_power_cut(3).content("./x").unwrap(), b"");
    sim.limit_bytes(100);
    assert!(is_errno(&file.allocate(101).unwrap_err(), libc::ENOSPC));
    sim.heal();
    file.allocate(101).unwrap();
    sim.cut_power_after(1);
    file.write_at(b"d", 0).unwrap();
    assert!(!sim.is_off() && file.write_at(b"e", 0).is_err() && sim.is_off());
}

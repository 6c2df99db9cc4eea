//! What real and simulated files promise alike, and what only the simulation does.

use super::file::is_errno;
use super::sim::{Call, SimVfs};
use super::*;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::words::{Error, Result};

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
fn what_is_no_file_is_not_opened_and_nothing_waits_for_it() {
    let dir = temp_dir("no-file");
    let (fifo, folder) = (file::join(&dir, "fifo"), file::join(&dir, "folder"));
    let name = std::ffi::CString::new(fifo.clone()).unwrap();
    // SAFETY: a NUL-terminated path.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    std::fs::create_dir(&folder).unwrap();
    for mode in [OpenMode::READ, OpenMode::DIRECT] {
        let error = RealVfs.open(&fifo, mode).unwrap_err();
        assert!(is_errno(&error, libc::EINVAL) || is_errno(&error, libc::ENXIO));
        assert!(error.to_string().contains("fifo"));
        assert!(is_errno(
            &RealVfs.open(&folder, mode).unwrap_err(),
            libc::EISDIR
        ));
    }
    std::fs::remove_dir_all(&dir).unwrap();
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

/// The ways of writing a batch that this system has. The threads end when the test does.
fn ways(threads: &Threads) -> Vec<Aio> {
    let mut ways = vec![Aio::by_threads(threads, 3).expect("threads")];
    match Aio::native() {
        Ok(native) => ways.push(native),
        Err(error) => eprintln!("not run: {error}"),
    }
    ways
}

fn quiet_threads() -> Threads {
    Threads::new(Arc::new(|name, text| panic!("{name}: {text}")))
}

/// Blocks of `n` bytes each with its number in it.
fn numbered_blocks(count: usize, n: usize) -> AlignedBuf {
    let mut buf = AlignedBuf::new(count * n);
    for (number, block) in buf.chunks_mut(n).enumerate() {
        block.fill(number as u8);
    }
    buf
}

#[test]
fn a_batch_of_writes_reaches_every_place_whatever_the_way() {
    const N: usize = 4096;
    let threads = quiet_threads();
    for (number, aio) in ways(&threads).iter().enumerate() {
        both(&format!("aio-{number}"), |vfs, dir| {
            let direct = vfs.create(&file::join(dir, "a"), OpenMode::DIRECT).unwrap();
            let plain = vfs.create(&file::join(dir, "b"), OpenMode::WRITE).unwrap();
            direct.allocate(200 * N as u64).unwrap();
            // More than a ring holds, backwards, with one that direct I/O cannot do.
            let blocks = numbered_blocks(200, N);
            let place = |at: usize| WriteAt {
                file: if at % 3 == 0 {
                    plain.clone()
                } else {
                    direct.clone()
                },
                bytes: &blocks[at * N..][..if at == 99 { 100 } else { N }],
                offset: ((199 - at) * N) as u64,
            };
            let batch: Vec<WriteAt<'_>> = (0..200).map(place).collect();
            let results = aio.write_all(&batch);
            assert_eq!(results.len(), 200);
            results.into_iter().for_each(|result| result.unwrap());
            let mut found = AlignedBuf::new(N);
            for write in &batch {
                let len = write.bytes.len();
                write.file.read_at(&mut found[..len], write.offset).unwrap();
                assert_eq!(&found[..len], write.bytes, "at {}", write.offset);
            }
        });
        aio.stop();
    }
}

#[test]
fn a_write_that_fails_in_a_batch_fails_alone() {
    let threads = quiet_threads();
    let dir = temp_dir("aio-fails");
    for (number, aio) in ways(&threads).iter().enumerate() {
        let path = file::join(&dir, &number.to_string());
        let good = RealVfs.create(&path, OpenMode::WRITE).unwrap();
        let bad = RealVfs.open(&path, OpenMode::READ).unwrap();
        let blocks = numbered_blocks(10, 4096);
        let place = |at: usize| WriteAt {
            file: if at == 4 { bad.clone() } else { good.clone() },
            bytes: &blocks[at * 4096..][..4096],
            offset: at as u64 * 4096,
        };
        let batch: Vec<WriteAt<'_>> = (0..10).map(place).collect();
        for (at, result) in aio.write_all(&batch).into_iter().enumerate() {
            match result {
                Ok(()) => assert_ne!(at, 4),
                Err(error) => {
                    assert!(at == 4 && is_errno(&error, libc::EBADF), "{at}: {error}");
                    assert!(error.to_string().contains(&path), "{error}");
                }
            }
        }
        aio.stop();
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn many_threads_share_one_way_of_writing() {
    let writers = quiet_threads();
    let dir = temp_dir("aio-shared");
    for (number, aio) in ways(&writers).into_iter().enumerate() {
        let aio = Arc::new(aio);
        let panics = Arc::new(AtomicUsize::new(0));
        let seen = panics.clone();
        let callers = Threads::new(Arc::new(move |_, _| {
            seen.fetch_add(1, Ordering::SeqCst);
        }));
        for caller in 0..6 {
            let (aio, path) = (aio.clone(), file::join(&dir, &format!("{number}-{caller}")));
            let body = move || {
                let file = RealVfs.create(&path, OpenMode::WRITE).unwrap();
                let blocks = numbered_blocks(40, 512);
                for round in 0..20 {
                    let offset = |at| ((at * 7 + round) % 40) as u64 * 512;
                    let batch: Vec<WriteAt<'_>> = blocks
                        .chunks(512)
                        .enumerate()
                        .map(|(at, bytes)| WriteAt {
                            file: file.clone(),
                            bytes,
                            offset: offset(at),
                        })
                        .collect();
                    aio.write_all(&batch)
                        .into_iter()
                        .for_each(|result| result.unwrap());
                    let mut found = vec![0; 512];
                    file.read_at(&mut found, offset(11)).unwrap();
                    assert!(found.iter().all(|&byte| byte == 11), "round {round}");
                }
            };
            callers.start("caller", body).unwrap();
        }
        callers.join_all();
        assert_eq!(panics.load(Ordering::SeqCst), 0);
        aio.stop();
    }
    writers.join_all();
    std::fs::remove_dir_all(&dir).unwrap();
}

/// A file whose driver has a bug.
#[derive(Debug)]
struct Panics(Arc<dyn File>);

impl File for Panics {
    fn path(&self) -> &str {
        "the file that panics"
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<()> {
        panic!("on purpose")
    }

    fn sync_data(&self) -> Result<()> {
        self.0.sync_data()
    }

    fn size(&self) -> Result<u64> {
        self.0.size()
    }

    fn allocate(&self, to: u64) -> Result<()> {
        self.0.allocate(to)
    }

    fn truncate(&self, to: u64) -> Result<()> {
        self.0.truncate(to)
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.0.punch(offset, len)
    }

    fn alignment(&self) -> usize {
        self.0.alignment()
    }

    fn lock(&self) -> Result<Box<dyn FileLock>> {
        self.0.lock()
    }
}

/// A panic in one write took the thread along, and the batch never ended.
#[test]
fn a_write_that_panics_in_a_batch_of_threads_is_an_error_of_its_own() {
    let threads = quiet_threads();
    let aio = Aio::by_threads(&threads, 3).expect("threads");
    let dir = temp_dir("aio-panics");
    let good = RealVfs
        .create(&file::join(&dir, "a"), OpenMode::WRITE)
        .unwrap();
    let bad: Arc<dyn File> = Arc::new(Panics(good.clone()));
    let blocks = numbered_blocks(20, 512);
    for _ in 0..10 {
        let place = |at: usize| WriteAt {
            file: if at % 5 == 4 {
                bad.clone()
            } else {
                good.clone()
            },
            bytes: &blocks[at * 512..][..512],
            offset: at as u64 * 512,
        };
        let batch: Vec<WriteAt<'_>> = (0..20).map(place).collect();
        for (at, result) in aio.write_all(&batch).into_iter().enumerate() {
            match result {
                Ok(()) => assert_ne!(at % 5, 4),
                Err(error) => {
                    let text = error.to_string();
                    assert!(at % 5 == 4, "{at}: {text}");
                    assert!(
                        text.contains("file that panics panicked: on purpose"),
                        "{text}"
                    );
                }
            }
        }
    }
    aio.stop();
    threads.join_all();
    std::fs::remove_dir_all(&dir).unwrap();
}

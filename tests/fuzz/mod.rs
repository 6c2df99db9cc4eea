//! Replays the fuzz corpus and seeded changes of it through the functions that the fuzz targets call.

#[path = "../../fuzz/entries/mod.rs"]
mod entries;

use crate::support::samples;
use crate::support::scratch::Scratch;
use crate::support::seed::Rng;
use entries::{ENTRIES, PAGE, calls};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| {
        panic!("{}: {error}: run tests fuzz::make_corpus", folder.display())
    });
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), std::fs::read(path).expect("a file")))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no file for {name}");
    files
}

/// A few changes, most of them near the start, where headers are.
fn change(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..1 + rng.below(6) {
        let len = bytes.len().max(1) as u64;
        let reach = match rng.below(4) {
            0 => len,
            1 => len.min(4000),
            _ => len.min(200),
        };
        let at = match rng.below(5) {
            0 => len - 1 - rng.below(len.min(300)),
            _ => rng.below(reach),
        } as usize;
        if bytes.is_empty() {
            bytes.push(0);
        }
        match rng.below(8) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][rng.below(5) as usize],
            2 => bytes[at] = rng.next() as u8,
            3 => bytes[at] = bytes[at].wrapping_add(1),
            4 => bytes[at] = bytes[at].wrapping_sub(1),
            5 => {
                let from = rng.below(len) as usize;
                let n = (rng.below(64) as usize).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + n, at);
            }
            6 => {
                let end = (at + rng.below(40) as usize).min(bytes.len());
                bytes[at..end].fill(rng.next() as u8);
            }
            _ if rng.one_in(8) => bytes.truncate(at),
            _ => bytes[at] = bytes[rng.below(len) as usize],
        }
    }
}

/// Gives each file of the corpus, and `changed` changes of it, to `run`; no longer than a minute on a
/// machine that is busy with other things.
fn replay(name: &str, changed: usize, run: impl Fn(&[u8])) {
    let mut rng = Rng::announced(name);
    let (since, mut count) = (Instant::now(), 0);
    for (path, bytes) in corpus(name) {
        for round in 0..=changed {
            if since.elapsed() > Duration::from_secs(60) {
                break;
            }
            let mut input = bytes.clone();
            if round > 0 {
                change(&mut input, &mut rng);
            }
            count += 1;
            if catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
                let kept = std::env::temp_dir().join(format!("xtradb-fuzz-{name}"));
                std::fs::write(&kept, &input).expect("it is kept");
                panic!(
                    "{name}: a change of {} panicked; it is kept as {}",
                    path.display(),
                    kept.display()
                );
            }
        }
    }
    println!("{name}: {count} inputs in {:?}", since.elapsed());
}

#[test]
fn no_bytes_from_disk_panic_their_parser() {
    let changed = |name| match name {
        "index_page" | "redo_file" | "space_page" => 250,
        _ => 1500,
    };
    for (name, entry) in ENTRIES {
        replay(name, changed(name), entry);
    }
}

#[test]
fn calls_in_any_order_end_with_a_code() {
    let scratch = Scratch::new("fuzz-calls");
    let stage = calls::Stage::open(scratch.path());
    for (path, calls) in corpus("calls") {
        let (done, most) = (stage.run(&calls), calls.len() / 3 / 2);
        let random = path.ends_with("random");
        assert!(
            random || done > most,
            "{}: {done} calls did something",
            path.display()
        );
    }
    replay("calls", 60, |input| {
        stage.run(input);
    });
}

/// Lays the corpus out anew, from files of the stock server.
#[test]
#[ignore = "only when the corpus is to change"]
fn make_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let add = |target: &str, name: &str, parts: &[&[u8]]| {
        let folder = folder.join(target);
        std::fs::create_dir_all(&folder).expect("a directory");
        let mut bytes = parts.concat();
        // Zeros at the end come by themselves.
        let end = bytes
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(1, |at| at + 1);
        bytes.truncate(end);
        std::fs::write(folder.join(name), bytes).expect("a file");
    };
    let system = samples::bytes("mini/ibdata1");
    let kinds = |page: &[u8]| u16::from_be_bytes([page[24], page[25]]);
    let is_index = |page: &[u8]| [17855, 18].contains(&kinds(page));
    let page = |file: &[u8], number: usize| file[number * PAGE..][..PAGE].to_vec();
    for (at, name) in [
        "s_redundant",
        "s_compact",
        "s_dynamic",
        "s_types",
        "s_instant",
    ]
    .into_iter()
    .enumerate()
    {
        let file = samples::bytes(&format!("{name}.ibd"));
        for index in 0..2u8 {
            let number = 3 + usize::from(index);
            if (number + 1) * PAGE <= file.len() && is_index(&page(&file, number)) {
                let name = format!("{name}-{index}");
                add(
                    "index_page",
                    &name,
                    &[&[at as u8, index, 1, 3], &page(&file, number)],
                );
            }
        }
    }
    for (n, number) in [0usize, 2].into_iter().enumerate() {
        add(
            "space_page",
            &format!("system-{n}"),
            &[&[0, 50, 3], &page(&system, number)],
        );
    }
    let table = samples::bytes("s_dynamic.ibd");
    add("space_page", "table", &[&[0, 150, 1], &page(&table, 0)]);
    add("space_page", "inodes", &[&[0, 50, 1], &page(&table, 2)]);
    for (name, number) in [("trx_sys", 5), ("rseg", 6), ("dictionary", 7)] {
        add("system_page", name, &[&page(&system, number)]);
    }
    let undo = samples::bytes("mini/undo002");
    let undo_pages = undo
        .chunks_exact(PAGE)
        .filter(|page| kinds(page) == 2)
        .take(3);
    for (n, page) in undo_pages.enumerate() {
        add("undo_page", &format!("undo-{n}"), &[&[0, 86], page]);
    }
    let blobs = samples::bytes("s_blob_dynamic.ibd");
    let blob_pages = blobs
        .chunks_exact(PAGE)
        .filter(|page| kinds(page) == 10)
        .take(2);
    for (n, page) in blob_pages.enumerate() {
        add("blob_page", &format!("blob-{n}"), &[&[0, 200], page]);
    }
    add(
        "change_buffer",
        "entry",
        &[
            &[4, 1, 4, 16],
            &[0, 0, 0, 9, 0, 0, 0, 0, 4],
            &[0, 1, 1, 1],
            &[6, 0x83, 0, 4, 0x80, 0, 1, 0x0F, 0, 20, 0, 8],
        ],
    );
    add(
        "change_buffer",
        "bitmap",
        &[&[4, 1, 4, 10], &page(&table, 1)],
    );
    let log = samples::bytes("mini/ib_logfile0");
    add("redo_file", "mini", &[&log[..0x3000 + 60_000]]);
    let mut at = 0x3000;
    let mut sizes = std::collections::BTreeSet::new();
    while let xtradb::format::redo_frame::Framing::Mtr { records, total } =
        xtradb::format::redo_frame::frame(&log[at..], |_| 1)
    {
        // One of each size class: they are of different kinds.
        if sizes.insert(records.len() / 40) && sizes.len() <= 12 {
            add("redo_records", &format!("mtr-{at:x}"), &[&[0], records]);
        }
        at += total;
    }
    for name in ["s_dynamic", "s_instant", "s_types", "s_spatial"] {
        add(
            "export_file",
            name,
            &[&samples::bytes(&format!("{name}.cfg"))],
        );
    }
    make_calls(&add);
}

/// A session, a table, rows; what follows is any order of everything.
fn make_calls(add: &impl Fn(&str, &str, &[&[u8]])) {
    let start: [u8; 24] = [
        0, 0, 2, 3, 0, 0, 7, 0, 0, 17, 0, 0, 14, 0, 0, 10, 0, 18, 25, 7, 3, 25, 8, 6,
    ];
    let reading: [u8; 24] = [
        10, 0, 18, 30, 1, 0, 31, 0, 0, 31, 0, 0, 29, 0, 0, 32, 0, 0, 33, 1, 0, 35, 2, 0,
    ];
    let changing: [u8; 24] = [
        33, 0, 0, 35, 2, 0, 28, 9, 3, 20, 0, 1, 35, 0, 0, 28, 10, 6, 21, 0, 1, 15, 0, 0,
    ];
    let end: [u8; 9] = [13, 0, 0, 18, 0, 0, 39, 0, 0];
    add("calls", "read", &[&start, &reading, &end]);
    add("calls", "change", &[&start, &changing, &end]);
    let mut rng = Rng::new(7);
    let random: Vec<u8> = (0..600).map(|_| rng.next() as u8).collect();
    add("calls", "random", &[&start, &random]);
    add(
        "calls",
        "ddl",
        &[
            &start,
            &[5, 0, 0, 6, 0, 1, 3, 0, 0, 4, 0, 3, 4, 0, 0],
            &reading,
        ],
    );
}

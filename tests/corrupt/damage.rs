//! What is done to the bytes.

use crate::support::seed::Rng;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

pub const PAGE: usize = 16384;

/// Which files a round damages, and in which directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Files of tables after a clean shutdown.
    Tables,
    /// Files of tables after `kill -9`: the log changes them.
    TablesOfACrash,
    /// ibdata1 after a clean shutdown.
    System,
    /// ibdata1 after `kill -9`.
    SystemOfACrash,
    /// ib_logfile0 after `kill -9`.
    Log,
}

impl Place {
    pub fn is_of_tables(self) -> bool {
        matches!(self, Place::Tables | Place::TablesOfACrash)
    }

    pub fn is_of_a_crash(self) -> bool {
        !matches!(self, Place::Tables | Place::System)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    FlipBit,
    ZeroPage,
    RandomBytes,
    SwapPages,
    PageOfAnotherFile,
    RepeatPage,
    Truncate,
    CutInPage,
    Empty,
    Remove,
    AnotherFile,
    Append,
    /// With a right checksum: what the page says of its own place and kind.
    WrongSpaceId,
    WrongPageNumber,
    UnknownFlags,
    /// With a right checksum: anything in the page.
    Forged,
}

use Kind::*;

/// Most damages hit one page; the rest hit the file as a whole.
const PAGE_KINDS: [Kind; 10] = [
    FlipBit,
    FlipBit,
    FlipBit,
    ZeroPage,
    RandomBytes,
    SwapPages,
    PageOfAnotherFile,
    RepeatPage,
    WrongSpaceId,
    WrongPageNumber,
];
const FILE_KINDS: [Kind; 7] = [
    Truncate,
    CutInPage,
    Empty,
    Remove,
    AnotherFile,
    Append,
    UnknownFlags,
];

pub struct Damage {
    pub kind: Kind,
    /// Relative to the data directory.
    pub file: PathBuf,
    pub page: usize,
    /// What the page was, by its type.
    page_type: u16,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, page) = (self.file.display(), self.page);
        write!(
            f,
            "{:?} of {file} page {page} (type {})",
            self.kind, self.page_type
        )
    }
}

impl Damage {
    /// `db/table` of the one table whose file it hit.
    pub fn table(&self) -> Option<String> {
        let is_table = self.file.extension().is_some_and(|e| e == "ibd");
        is_table.then(|| {
            let name = self.file.with_extension("");
            name.to_string_lossy().replace("@002d", "-")
        })
    }
}

pub fn table_files(datadir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for database in ["grown", "little"] {
        for entry in fs::read_dir(datadir.join(database)).expect("the folder can be listed") {
            let name = entry.expect("the entry can be read").file_name();
            let name = PathBuf::from(database).join(name);
            if name.extension().is_some_and(|extension| extension == "ibd") {
                files.push(name);
            }
        }
    }
    files.sort();
    files
}

/// Damages `count` different files of the place.
pub fn inflict(
    datadir: &Path,
    place: Place,
    count: usize,
    forged: bool,
    rng: &mut Rng,
) -> Vec<Damage> {
    let mut left = match place {
        Place::Tables | Place::TablesOfACrash => table_files(datadir),
        Place::System | Place::SystemOfACrash => vec![PathBuf::from("ibdata1")],
        Place::Log => return vec![damage_log(datadir, rng)],
    };
    // The other files' pages stand as they were: bytes from a file that is damaged too would not
    // be more different.
    let tables = table_files(datadir);
    (0..count)
        .map(|_| {
            let file = left.swap_remove(rng.below(left.len() as u64) as usize);
            let kind = match (forged, rng.below(5)) {
                (true, _) => Forged,
                (false, 0) => *rng.pick(&FILE_KINDS),
                (false, _) => *rng.pick(&PAGE_KINDS),
            };
            one(datadir, file, kind, &tables, rng)
        })
        .collect()
}

fn pick_page(bytes: &[u8], rng: &mut Rng) -> usize {
    let pages = (bytes.len() / PAGE) as u64;
    let is_used = |page: usize| bytes[page * PAGE..][..PAGE].iter().any(|&byte| byte != 0);
    // Of ibdata1's pages most are free; those in use are of more interest, and of these the first.
    for _ in 0..50 {
        let bound = if rng.one_in(2) { pages.min(16) } else { pages };
        let page = rng.below(bound) as usize;
        if is_used(page) {
            return page;
        }
    }
    0
}

fn one(datadir: &Path, file: PathBuf, kind: Kind, tables: &[PathBuf], rng: &mut Rng) -> Damage {
    let path = datadir.join(&file);
    let mut bytes = fs::read(&path).expect("the file can be read");
    let pages = (bytes.len() / PAGE) as u64;
    let page = match kind {
        UnknownFlags => 0,
        _ => pick_page(&bytes, rng),
    };
    let at = page * PAGE;
    let page_type = u16::from_be_bytes([bytes[at + 24], bytes[at + 25]]);
    let other = |rng: &mut Rng| {
        let others: Vec<&PathBuf> = tables.iter().filter(|other| **other != file).collect();
        datadir.join(rng.pick(&others))
    };
    match kind {
        FlipBit => bytes[at + rng.below(PAGE as u64) as usize] ^= 1 << rng.below(8),
        ZeroPage => bytes[at..at + PAGE].fill(0),
        RandomBytes => {
            let from = at + rng.below(PAGE as u64 - 16) as usize;
            let length = (rng.between(1, 512) as usize).min(at + PAGE - from);
            bytes[from..from + length].fill_with(|| rng.next() as u8);
        }
        SwapPages => {
            let with = rng.below(pages) as usize * PAGE;
            let copy = bytes[at..at + PAGE].to_vec();
            bytes.copy_within(with..with + PAGE, at);
            bytes[with..with + PAGE].copy_from_slice(&copy);
        }
        PageOfAnotherFile => {
            let other = fs::read(other(rng)).unwrap_or_default();
            if other.len() >= PAGE {
                let from = rng.below((other.len() / PAGE) as u64) as usize * PAGE;
                bytes[at..at + PAGE].copy_from_slice(&other[from..from + PAGE]);
            }
        }
        RepeatPage => {
            let from = rng.below(pages) as usize * PAGE;
            bytes.copy_within(from..from + PAGE, at);
        }
        Truncate => bytes.truncate(at),
        CutInPage => bytes.truncate(at + rng.below(PAGE as u64) as usize),
        Empty => bytes.clear(),
        Append => bytes.extend((0..rng.between(1, 40_000)).map(|_| rng.next() as u8)),
        WrongSpaceId => {
            let wrong = rng.between(1, 40) as u32;
            bytes[at + 34..at + 38].copy_from_slice(&wrong.to_be_bytes());
            stamp(&mut bytes[at..at + PAGE]);
        }
        WrongPageNumber => {
            let wrong = rng.below(pages) as u32;
            bytes[at + 4..at + 8].copy_from_slice(&wrong.to_be_bytes());
            stamp(&mut bytes[at..at + PAGE]);
        }
        UnknownFlags => {
            let wrong = rng.next() as u32;
            bytes[54..58].copy_from_slice(&wrong.to_be_bytes());
            stamp(&mut bytes[..PAGE]);
        }
        Forged => forge(&mut bytes[at..at + PAGE], rng),
        Remove => fs::remove_file(&path).expect("the file can be removed"),
        AnotherFile => {
            bytes = fs::read(other(rng)).unwrap_or_default();
        }
    }
    if kind != Remove {
        fs::write(&path, &bytes).expect("the file can be written");
    }
    Damage {
        kind,
        file,
        page,
        page_type,
    }
}

/// Changes what a page says, in its headers, among its records or in its directory, and makes its
/// checksum right again.
fn forge(page: &mut [u8], rng: &mut Rng) {
    for _ in 0..rng.between(1, 4) {
        let (from, to) = *rng.pick(&[
            (8, 34),
            (38, 120),
            (94, 400),
            (38, PAGE - 8),
            (PAGE - 80, PAGE - 8),
        ]);
        let at = rng.between(from as u64, to as u64 - 3) as usize;
        match rng.below(3) {
            0 => page[at] ^= 1 << rng.below(8),
            1 => page[at..at + 2].fill_with(|| rng.next() as u8),
            _ => page[at..at + 2].fill(*rng.pick(&[0, 0xFF])),
        }
    }
    stamp(page);
}

/// The checksum of the files that this engine makes: CRC-32C of all but the last four bytes.
fn stamp(page: &mut [u8]) {
    let end = page.len() - 4;
    let sum = crc32c::crc32c(&page[..end]);
    page[end..].copy_from_slice(&sum.to_be_bytes());
}

/// Where the log's checkpoint blocks and its records stand.
const LOG_CHECKPOINTS: [usize; 2] = [4096, 8192];
const LOG_START: usize = 12288;

/// Offset of the checkpoint in the file, and of the last byte that is not zero: no test lets the log wrap.
fn log_extent(bytes: &[u8]) -> (usize, usize) {
    let number = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_be_bytes(eight)
    };
    let first = number(8);
    let checkpoint = LOG_CHECKPOINTS.iter().map(|&at| number(at)).max();
    let from = LOG_START + checkpoint.unwrap_or(first).saturating_sub(first) as usize;
    let last = bytes.iter().rposition(|&byte| byte != 0);
    let to = last.unwrap_or(LOG_START) + 1;
    (from.min(to - 1), to)
}

fn damage_log(datadir: &Path, rng: &mut Rng) -> Damage {
    let file = PathBuf::from("ib_logfile0");
    let path = datadir.join(&file);
    let mut bytes = fs::read(&path).expect("the log can be read");
    let (from, to) = log_extent(&bytes);
    let kinds = [
        FlipBit,
        FlipBit,
        FlipBit,
        FlipBit,
        ZeroPage,
        RandomBytes,
        RandomBytes,
        RepeatPage,
        CutInPage,
        Empty,
        AnotherFile,
        Remove,
        Append,
    ];
    let kind = *rng.pick(&kinds);
    // Half of them in the tail, a few in the header.
    let at = match rng.below(8) {
        0 => rng.below(LOG_START as u64) as usize,
        1..4 => rng.between(from as u64, to as u64 - 1) as usize,
        _ => rng.between(to.saturating_sub(2000).max(from) as u64, to as u64 - 1) as usize,
    };
    let end = (at + rng.between(1, 600) as usize).min(bytes.len());
    match kind {
        FlipBit => bytes[at] ^= 1 << rng.below(8),
        ZeroPage => {
            let end = if rng.one_in(2) { to } else { end };
            bytes[at.min(end)..end].fill(0);
        }
        RandomBytes => bytes[at..end].fill_with(|| rng.next() as u8),
        RepeatPage => {
            let end = end.min(bytes.len() - 600);
            let from = rng.between(from as u64, to as u64 - 1) as usize;
            bytes.copy_within(from.min(end)..(from + 600).min(end), at.min(end));
        }
        CutInPage => bytes.truncate(at),
        Empty => bytes.clear(),
        AnotherFile => {
            bytes = fs::read(datadir.join("ibdata1")).expect("the file can be read");
        }
        Append => bytes.extend((0..4096).map(|_| rng.next() as u8)),
        _ => {}
    }
    if kind == Remove {
        fs::remove_file(&path).expect("the log can be removed");
    } else {
        fs::write(&path, &bytes).expect("the log can be written");
    }
    Damage {
        kind,
        file,
        page: at / 512,
        page_type: 0,
    }
}

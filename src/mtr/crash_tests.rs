//! Log, doublewrite, pages and checkpoints together: redo rebuilds what was committed, after power
//! cuts at any write, failed syncs and full devices.

use std::collections::BTreeMap;

use super::testing::{SPACE, TestPages};
use super::*;
use crate::buffer::{Doublewrite, DoublewriteCopies};
use crate::format::checksum::{self, Content, Flavour};
use crate::format::fil::{self, PageType};
use crate::format::fsp::SpaceFlags;
use crate::format::redo_file::{Checkpoint, LogGeometry, LogHeader, OFF_RECORDS};
use crate::format::redo_frame::{Framing, frame};
use crate::format::redo_record::{PageOp, Record, Records};
use crate::os::sim::{Call, Random, SimVfs};
use crate::space::{DataFilePath, Kind};
use crate::sync::Rank;
use crate::words::{Error, Lsn, PageId, PageNo, SpaceId, be};

const P: usize = 4096;
/// Pages of the tablespace; the first is 3.
const PAGES: u32 = 40;
const PLACE: Doublewrite = Doublewrite {
    blocks: [PageNo(256), PageNo(512)],
    block_pages: 256,
};

/// The mini-transactions in a log file from its newest checkpoint on, and where they end.
struct LogCopy {
    checkpoint: Lsn,
    end: Lsn,
    mtrs: Vec<(Lsn, Lsn, Vec<u8>)>,
}

impl LogCopy {
    fn read(file: &[u8]) -> LogCopy {
        let header = LogHeader::parse(file).expect("a log header");
        let geometry = LogGeometry::new(header.first_lsn, file.len() as u64).expect("a log");
        let slot = |at: usize| Checkpoint::parse(&file[at..at + 64], header.first_lsn);
        let (chosen, _) = Checkpoint::choose(slot(0x1000), slot(0x2000)).expect("a checkpoint");
        // Twice, so that a mini-transaction at the wrap is in one piece.
        let records = [&file[OFF_RECORDS as usize..], &file[OFF_RECORDS as usize..]].concat();
        let mut at = chosen.lsn;
        let mut mtrs = Vec::new();
        loop {
            let from = (geometry.offset(at) - OFF_RECORDS) as usize;
            let bytes = &records[from..from + geometry.capacity() as usize];
            match frame(bytes, |n| geometry.seq_bit(Lsn(at.0 + n as u64))) {
                Framing::Mtr { records, total } => {
                    let next = Lsn(at.0 + total as u64);
                    mtrs.push((at, next, records.to_vec()));
                    at = next;
                }
                _ => {
                    return LogCopy {
                        checkpoint: chosen.lsn,
                        end: at,
                        mtrs,
                    };
                }
            }
        }
    }

    /// Brings `pages` up to date; a page that is not there yet must begin with INIT_PAGE.
    fn apply(&self, pages: &mut BTreeMap<PageId, Vec<u8>>) {
        for (start, end, records) in &self.mtrs {
            let mut changed = Vec::new();
            for parsed in Records::new(records) {
                let Record::Page(id, op) = parsed.expect("a record").record else {
                    continue;
                };
                if op == PageOp::Init {
                    pages.entry(id).or_default();
                } else if op == PageOp::Free {
                    pages.remove(&id);
                    continue;
                }
                let page = pages.get_mut(&id).expect("a page that was initialised");
                if page.is_empty() || fil::lsn(page) <= *start || changed.contains(&id) {
                    apply(page, id, &op);
                    changed.push(id);
                }
            }
            for id in changed {
                fil::set_lsn(pages.get_mut(&id).expect("changed"), *end);
            }
        }
    }
}

fn apply(page: &mut Vec<u8>, id: PageId, op: &PageOp<'_>) {
    match *op {
        PageOp::Init => {
            page.resize(P, 0);
            fil::init(page, id);
        }
        PageOp::Write { offset, data } => {
            page[offset as usize..offset as usize + data.len()].copy_from_slice(data);
        }
        PageOp::Memset { offset, len, fill } => {
            let target = &mut page[offset as usize..(offset + len) as usize];
            target
                .chunks_mut(fill.len())
                .for_each(|chunk| chunk.copy_from_slice(fill));
        }
        PageOp::Memmove {
            offset,
            len,
            source,
        } => {
            page.copy_within(source as usize..(source + len) as usize, offset as usize);
        }
        ref other => panic!("{other:?} is not used here"),
    }
}

/// A random change of a page, by every way there is.
fn change(mtr: &mut Mtr<'_>, page: PageRef, random: &mut Random) {
    let at = 64 + random.below(3000) as usize;
    let len = 1 + random.below(200) as usize;
    match random.below(6) {
        0 => mtr.memset(page, at, len, random.next_u64() as u8),
        1 => mtr.memmove(page, at, 64 + random.below(3000) as usize, len),
        2 => mtr.write_whole(page, at, &random.next_u64().to_be_bytes()),
        3 => mtr.memset_pattern(page, at, len / 2 * 2, &[1, random.next_u64() as u8]),
        _ => {
            let mut bytes = mtr.view(page)[at..at + len].to_vec();
            for _ in 0..1 + random.below(4) {
                let i = random.below(len as u64) as usize;
                bytes[i] = random.next_u64() as u8;
            }
            mtr.write(page, at, &bytes);
        }
    }
}

/// Pool, log, a system tablespace with doublewrite blocks and `SPACE`, simulated.
fn setup(sim: &SimVfs) -> TestPages {
    let pages = TestPages::simulated(sim, P, 64);
    let path = DataFilePath::parse("ibdata1:4M:autoextend").expect("a path");
    let flags = SpaceFlags::full_crc32(P);
    pages
        .ctx
        .spaces
        .create_system(Kind::System, &path, flags)
        .expect("ibdata1");
    pages.ctx.pool.set_doublewrite(PLACE);
    pages.add_space(SPACE, PAGES);
    pages
}

fn make_all(pages: &TestPages) {
    for page in 3..PAGES {
        let mut mtr = pages.mtr();
        let h = mtr.create(pages.id(page), Rank::IndexPage).expect("a page");
        mtr.write_u16(h, fil::OFF_TYPE, PageType::SYS.0);
        mtr.commit();
    }
}

#[test]
fn redo_applied_to_nothing_gives_the_pages_of_the_pool_and_of_the_file() {
    for seed in 0..8 {
        println!("seed {seed}");
        let sim = SimVfs::new();
        let pages = setup(&sim);
        let mut random = Random(seed);
        make_all(&pages);
        for _ in 0..300 {
            let mut mtr = pages.mtr();
            for _ in 0..1 + random.below(4) {
                let id = pages.id(3 + random.below(u64::from(PAGES) - 3) as u32);
                // Against the order at times; one thread alone cannot deadlock.
                let h = mtr.get_reading(id, Mode::X, Rank::None).expect("a page");
                for _ in 0..1 + random.below(3) {
                    change(&mut mtr, h, &mut random);
                }
            }
            mtr.commit();
        }
        pages.ctx.log.flush_all().expect("the log is written");
        let log = LogCopy::read(&sim.content("./ib_logfile0").expect("the log"));
        assert_eq!(log.end, pages.ctx.log.lsn());
        let mut rebuilt = BTreeMap::new();
        log.apply(&mut rebuilt);
        assert_eq!(rebuilt.len(), PAGES as usize - 3);
        let mut mtr = Mtr::reader(&pages.ctx);
        for (&id, page) in &rebuilt {
            let h = mtr.get_reading(id, Mode::S, Rank::None).expect("a page");
            assert!(mtr.view(h) == &page[..], "page {id} differs");
        }
        drop(mtr);
        pages.ctx.pool.flush_all().expect("flush");
        let file = sim.content("./t/t5.ibd").expect("the file");
        for (&id, page) in &rebuilt {
            let mut page = page.clone();
            checksum::stamp(&mut page, Flavour::FullCrc32);
            let at = id.page.0 as usize * P;
            assert!(
                file[at..at + P] == page[..],
                "page {id} differs in the file"
            );
        }
    }
}

/// What the pages were after each commit.
#[derive(Default)]
struct History(BTreeMap<PageId, Vec<(Lsn, Vec<u8>)>>);

impl History {
    fn note(&mut self, id: PageId, end: Lsn, bytes: &[u8]) {
        self.0.entry(id).or_default().push((end, bytes.to_vec()));
    }

    fn at(&self, id: PageId, end: Lsn) -> Option<&[u8]> {
        let versions = self.0.get(&id)?;
        let at = versions
            .partition_point(|(lsn, _)| *lsn <= end)
            .checked_sub(1)?;
        Some(&versions[at].1)
    }
}

/// Changes, flushes, syncs and checkpoints at random until the power goes.
fn work(pages: &TestPages, random: &mut Random, history: &mut History) -> Lsn {
    let mut durable = Lsn(0);
    for step in 0..600 {
        let done = match random.below(13) {
            12 => pages.ctx.pool.make_free_frames(64).map(drop),
            0 => pages.ctx.log.flush_all(),
            1 => pages
                .ctx
                .pool
                .flush_oldest(Lsn(u64::MAX), 1 + random.below(30) as usize)
                .map(drop),
            2 if step > 100 => {
                let oldest = || pages.ctx.pool.oldest_modification();
                pages
                    .ctx
                    .log
                    .checkpoint(&pages.ctx.spaces, oldest)
                    .map(drop)
            }
            _ => {
                let id = pages.id(3 + random.below(u64::from(PAGES) - 3) as u32);
                let mut mtr = match Mtr::start(&pages.ctx, Budget::statement(4096).with_frames(1)) {
                    Ok(mtr) => mtr,
                    Err(_) => return durable,
                };
                let fresh = !history.0.contains_key(&id) || random.below(20) == 0;
                let h = match fresh {
                    true => mtr.create(id, Rank::IndexPage),
                    false => mtr.get(id, Mode::X, Rank::IndexPage),
                };
                let Ok(h) = h else { return durable };
                change(&mut mtr, h, random);
                let mut bytes = mtr.view(h).to_vec();
                let end = mtr.commit();
                fil::set_lsn(&mut bytes, end);
                if end > Lsn(0) && end < Lsn(u64::MAX) {
                    history.note(id, end, &bytes);
                }
                Ok(())
            }
        };
        if done.is_err() {
            return durable;
        }
        durable = pages.ctx.log.flushed_lsn();
    }
    durable
}

/// Reads what a power cut left, repairs, applies redo, compares with the history.
fn recover_and_compare(sim: &SimVfs, history: &History, durable: Lsn) {
    let log = LogCopy::read(&sim.content("./ib_logfile0").expect("the log"));
    assert!(
        log.end >= durable,
        "acknowledged {durable}, found {}",
        log.end
    );
    let system = sim.content("./ibdata1").expect("ibdata1");
    let copies = DoublewriteCopies::load(PLACE, P, &(Lsn(0)..=Lsn(u64::MAX)), |page, buffer| {
        let at = page.0 as usize * P;
        buffer.copy_from_slice(&system[at..at + P]);
        Ok(())
    });
    let file = sim.content("./t/t5.ibd").expect("the file");
    let mut found = BTreeMap::new();
    for page in 3..PAGES {
        let id = PageId::new(SPACE, PageNo(page));
        let image = &file[page as usize * P..(page as usize + 1) * P];
        match checksum::verify(image, Flavour::FullCrc32, id) {
            Ok(Content::Written) => {
                found.insert(id, image.to_vec());
            }
            Ok(Content::NeverWritten) => {}
            Err(_) => {
                // Torn: a copy helps, unless INIT_PAGE in the log does.
                let copy = copies.find(id, P, Flavour::FullCrc32, log.checkpoint, log.end);
                found.insert(id, copy.map_or_else(|| torn(id), <[u8]>::to_vec));
            }
        }
        if let Some(page) = found.get(&id) {
            assert!(fil::lsn(page) <= log.end, "page {id} is ahead of the log");
        }
    }
    log.apply(&mut found);
    for &id in history.0.keys() {
        match (history.at(id, log.end), found.get(&id)) {
            (Some(wanted), Some(page)) => {
                let body = 8..P - 8;
                assert!(
                    page[body.clone()] == wanted[body],
                    "page {id} is not recovered"
                );
            }
            (None, None) => {}
            (wanted, page) => panic!("page {id}: {} {}", wanted.is_some(), page.is_some()),
        }
    }
}

/// A torn page without a copy: nothing of it may be used.
fn torn(id: PageId) -> Vec<u8> {
    let mut page = vec![0xEE; P];
    be::put_u32(&mut page, fil::OFF_PAGE_NO, id.page.0);
    fil::set_lsn(&mut page, Lsn(0));
    page
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_power_goes() {
    let seeds = std::env::var("XTRADB_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(60);
    for seed in 0..seeds {
        println!("seed {seed}");
        let sim = SimVfs::new();
        let pages = setup(&sim);
        let mut random = Random(seed);
        let mut history = History::default();
        sim.cut_power_after(20 + random.below(400));
        let durable = work(&pages, &mut random, &mut history);
        recover_and_compare(&sim.after_power_cut(seed), &history, durable);
    }
}

#[test]
fn a_failed_sync_of_a_data_file_holds_the_checkpoint_and_is_not_retried() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    make_all(&pages);
    pages.ctx.pool.flush_all().expect("flush");
    let mut mtr = pages.mtr();
    let h = mtr
        .get(pages.id(3), Mode::X, Rank::IndexPage)
        .expect("a page");
    mtr.write_u64(h, 200, 1);
    mtr.commit();
    let oldest = pages.ctx.pool.oldest_modification().expect("dirty");
    sim.fail(Call::Sync, "t5.ibd", 0, libc::EIO, true);
    assert!(pages.ctx.pool.flush_all().is_err());
    // The sync would succeed now; nobody may believe it.
    assert!(pages.ctx.pool.flush_all().is_err());
    assert_eq!(pages.ctx.pool.oldest_modification(), Some(oldest));
    pages
        .ctx
        .log
        .checkpoint(&pages.ctx.spaces, || Some(oldest))
        .expect("up to there");
    // Cached pages stay readable, misses are errors, other files go on.
    let mut reader = Mtr::reader(&pages.ctx);
    reader
        .get(pages.id(3), Mode::S, Rank::IndexPage)
        .expect("cached");
    drop(reader);
    assert!(!pages.ctx.pool.contains(pages.id(2)));
    let missing = Mtr::reader(&pages.ctx).get(pages.id(2), Mode::S, Rank::IndexPage);
    assert!(matches!(missing, Err(Error::FileFailed(_))), "{missing:?}");
    let other = PageId::new(SpaceId(6), PageNo(3));
    pages.add_space(SpaceId(6), 10);
    let mut mtr = pages.mtr();
    mtr.create(other, Rank::IndexPage).expect("a page");
    mtr.commit();
    let report = pages
        .ctx
        .pool
        .flush_oldest(Lsn(u64::MAX), 100)
        .expect("the other file");
    assert_eq!(report.written, 1);
    // DROP of the failed file lets the checkpoint go on.
    pages.ctx.pool.discard_space(SPACE);
    assert_eq!(pages.ctx.pool.oldest_modification(), None);
}

#[test]
fn a_full_device_keeps_pages_dirty_until_there_is_room() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    make_all(&pages);
    sim.fail(Call::Write, "t5.ibd", 5, libc::ENOSPC, false);
    let report = pages
        .ctx
        .pool
        .flush_oldest(Lsn(u64::MAX), 100)
        .expect("some");
    assert_eq!((report.written, report.failed), (5, PAGES as usize - 3 - 5));
    assert!(pages.ctx.pool.writes_stalled());
    assert!(pages.ctx.pool.oldest_modification().is_some());
    sim.heal();
    pages.ctx.pool.flush_all().expect("there is room");
    assert!(!pages.ctx.pool.writes_stalled());
    assert_eq!(pages.ctx.pool.dirty_count(), 0);
}

#[test]
fn a_failed_log_keeps_pages_from_their_files() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    make_all(&pages);
    let before = sim.content("./t/t5.ibd").expect("the file");
    sim.fail(Call::Sync, "ib_logfile0", 0, libc::EIO, false);
    assert!(pages.ctx.pool.flush_all().is_err());
    assert_eq!(pages.ctx.pool.counts().written, 0);
    assert!(sim.content("./t/t5.ibd").expect("the file") == before);
    assert!(matches!(
        Mtr::start(&pages.ctx, Budget::statement(10)),
        Err(Error::Stopped(_))
    ));
    let mut reader = Mtr::reader(&pages.ctx);
    reader
        .get(pages.id(3), Mode::S, Rank::IndexPage)
        .expect("reads go on");
}

#[test]
fn a_page_changed_while_in_flight_is_written_again() {
    let sim = SimVfs::new();
    let pages = setup(&sim);
    make_all(&pages);
    // The last change of a page must be written even if it came while a copy was on its way: so there
    // are many last changes.
    for round in 0..120u64 {
        let changing = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in round * 25..round * 25 + 25 {
                    let mut mtr = pages.mtr();
                    let h = mtr
                        .get(pages.id(3 + n as u32 % 5), Mode::X, Rank::IndexPage)
                        .expect("it");
                    mtr.write_u64(h, 200, n);
                    mtr.commit();
                }
                changing.store(false, std::sync::atomic::Ordering::Release);
            });
            while changing.load(std::sync::atomic::Ordering::Acquire) {
                pages
                    .ctx
                    .pool
                    .flush_oldest(Lsn(u64::MAX), 100)
                    .expect("flush");
                let oldest = || pages.ctx.pool.oldest_modification();
                pages
                    .ctx
                    .log
                    .checkpoint(&pages.ctx.spaces, oldest)
                    .expect("a checkpoint");
            }
        });
        pages.ctx.pool.flush_all().expect("flush");
        assert_eq!(pages.ctx.pool.oldest_modification(), None);
        let file = sim.content("./t/t5.ibd").expect("the file");
        for n in round * 25 + 20..round * 25 + 25 {
            let at = (3 + n as usize % 5) * P;
            assert_eq!(be::u64_at(&file, at + 200), n);
        }
    }
}

use super::read::{self, LogReader};
use super::resurrect::tables;
use super::testing::UndoBed;
use super::*;
use crate::format::tests::{Random, sample};
use crate::format::undo_page::{OFF_STATE, Xid};
use crate::format::undo_record::UndoRecord;
use crate::mtr::testing::TestPages;
use crate::mtr::{Budget, Mode, Mtr, retry};
use crate::space::DataFilePath;
use crate::sync::Rank;
use crate::words::{Error, PageNo, RollPtr, RsegId, TableId, TrxId, TrxNo, UndoNo};

const P: usize = 16384;

#[test]
fn a_new_instance_has_the_rollback_segments_that_the_stock_server_makes() {
    let bed = UndoBed::new(P, 512, 2);
    let opened = bed.open();
    assert_eq!(opened.next_trx_id, TrxId(1));
    assert!(opened.found.is_empty());
    let stock = sample("fresh/ibdata1");
    let mut count = 0;
    for slot in crate::format::trx_sys::slots(&stock[5 * P..6 * P]) {
        let (id, header) = slot.expect("a slot");
        let rseg = opened.rsegs.get(id).expect("ours");
        assert_eq!(rseg.header(), header, "{id}");
        count += 1;
    }
    assert_eq!((count, opened.rsegs.all().count()), (128, 128));
    bed.check();
    // Number 127 was never used there.
    let undo = sample("fresh/undo001");
    let stock = &undo[66 * P..67 * P];
    let ours = std::fs::read(bed.pages.ctx.spaces.undo_path(1)).expect("the file");
    let ours = &ours[66 * P..67 * P];
    assert_eq!(ours[24..26], stock[24..26]);
    assert_eq!(ours[38..62], stock[38..62]);
    assert_eq!(ours[72..P - 8], stock[72..P - 8]);
    assert_eq!(ours[62..72], stock[62..72], "the segment header");
}

/// A pool over the sample directory.
fn sample_directory() -> TestPages {
    let pages = TestPages::empty(P, 512);
    for name in ["ibdata1", "undo001", "undo002"] {
        let path = format!("{}/{name}", pages.dir);
        std::fs::write(path, sample(&format!("mini/{name}"))).expect("written");
    }
    let path = DataFilePath::parse("ibdata1:12M:autoextend").expect("a path");
    let spaces = &pages.ctx.spaces;
    spaces.open_system(&path, &|_| None).expect("ibdata1");
    for number in [1, 2] {
        let opened = spaces.open_undo(number, &|_| None).expect("undo");
        assert!(opened.is_some());
    }
    pages
}

#[test]
fn the_logs_of_the_sample_directory_are_found() {
    let pages = sample_directory();
    let opened = Rsegs::open(&pages.ctx).expect("sound");
    let dump = String::from_utf8(sample("mini/undo-dump.txt")).expect("text");
    let mut lens = 0;
    for line in dump.lines().filter(|line| line.starts_with("rseg ")) {
        let words: Vec<_> = line.split(' ').collect();
        let rseg = opened
            .rsegs
            .get(RsegId(words[1].parse().expect("a number")))
            .expect("there");
        let len: u64 = words.last().and_then(|w| w.parse().ok()).expect("a number");
        assert_eq!(rseg.history_len(), len, "{line}");
        assert_eq!(rseg.oldest().is_some(), len > 0);
        assert_eq!(
            rseg.page(PageNo(1)).space.0,
            words[3].parse().expect("a number")
        );
        lens += len;
    }
    assert_eq!(opened.rsegs.history_len(), lens);
    let cached: usize = opened.rsegs.all().map(|rseg| rseg.cached_count()).sum();
    assert_eq!(cached, dump.matches("state CACHED").count());
    // The largest number of all is 185; a crash image may know less, never more.
    assert_eq!(opened.next_trx_id, TrxId(186));
    let found: Vec<_> = opened
        .found
        .iter()
        .map(|found| {
            let xid = found.xid.as_ref().expect("prepared");
            (
                found.log.trx_id().0,
                found.prepared,
                xid.format_id(),
                String::from_utf8_lossy(xid.gtrid()).into_owned(),
                String::from_utf8_lossy(xid.bqual()).into_owned(),
                found.log.next_no().0,
                tables(&pages.ctx, &found.log).expect("readable"),
            )
        })
        .collect();
    let expected = [
        (
            182,
            true,
            7,
            "gtrid-one".into(),
            "bq".into(),
            3,
            vec![(TableId(47), false)],
        ),
        (
            183,
            true,
            1,
            "bulk".into(),
            String::new(),
            1,
            vec![(TableId(48), true)],
        ),
    ];
    assert_eq!(found, expected);
    walk_sample(&pages, &opened, &dump);
}

/// Every record of the dump is met by walking the history lists and the unfinished logs.
fn walk_sample(pages: &TestPages, opened: &rseg::Opened, dump: &str) {
    let mut mtr = Mtr::reader(&pages.ctx);
    let mut body = Vec::new();
    let mut met = 0;
    let mut logs: Vec<_> = opened
        .rsegs
        .all()
        .filter_map(|rseg| Some((rseg.clone(), rseg.oldest()?)))
        .map(|(rseg, oldest)| (rseg, oldest.first, oldest.header))
        .collect();
    for found in &opened.found {
        let log = &found.log;
        logs.push((log.rseg.clone(), log.first, log.header));
        let mut at = read::last(&mut mtr, log, &mut body).expect("readable");
        let mut backwards = 0;
        while let Some(position) = at {
            backwards += 1;
            at = read::before(&mut mtr, log, position, &mut body).expect("readable");
        }
        assert_eq!(backwards, log.next_no().0);
    }
    for (rseg, first, header) in logs {
        let mut reader = LogReader::new(&rseg, first, header);
        while let Some((position, found)) = reader.next(&mut mtr).expect("readable") {
            let roll_ptr = position.roll_ptr(rseg.id(), found).expect("a record");
            let record = UndoRecord::parse(found).expect("a record");
            let line = format!(
                "@{}..{} ",
                position.offset,
                position.offset as usize + found.len() + 4
            );
            let line = dump.lines().filter(|l| l.contains(&line)).find(|l| {
                l.contains(&format!(
                    " no {} table {} ",
                    record.undo_no, record.table_id
                ))
            });
            assert!(line.is_some(), "{record:?}");
            met += 1;
            let mut other = Mtr::reader(&pages.ctx);
            read::record(&mut other, &opened.rsegs, roll_ptr, &mut body).expect("there");
            assert_eq!(body, found);
        }
    }
    assert_eq!(met, dump.lines().filter(|l| l.starts_with("    @")).count());
}

fn commit(bed: &UndoBed, log: &UndoLog, no: u64) {
    let ctx = &bed.pages.ctx;
    let budget = Budget::system(history::COMMIT_LOG_BYTES);
    let mut mtr = Mtr::start(ctx, budget).expect("admitted");
    history::commit(&mut mtr, log, None, || TrxNo(no)).expect("committed");
    mtr.commit();
}

/// The records of a log, oldest first, and their numbers, read both ways.
fn numbers(bed: &UndoBed, log: &UndoLog) -> Vec<u64> {
    let mut mtr = Mtr::reader(&bed.pages.ctx);
    let mut reader = LogReader::new(&log.rseg, log.first, log.header);
    let mut forward = Vec::new();
    while let Some((_, body)) = reader.next(&mut mtr).expect("readable") {
        forward.push(UndoRecord::parse(body).expect("a record").undo_no.0);
    }
    let (mut body, mut backward) = (Vec::new(), Vec::new());
    let mut at = read::last(&mut mtr, log, &mut body).expect("readable");
    while let Some(position) = at {
        backward.push(UndoRecord::parse(&body).expect("a record").undo_no.0);
        at = read::before(&mut mtr, log, position, &mut body).expect("readable");
    }
    backward.reverse();
    assert_eq!(forward, backward);
    forward
}

#[test]
fn a_log_grows_over_pages_and_is_cut_and_grows_again() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = bed.open().rsegs;
    let before = bed.used_pages();
    let mut log = segment::begin(&bed.pages.ctx, &rsegs, TrxId(10), false).expect("begun");
    let pointers: Vec<_> = (0..50)
        .map(|n| bed.append(&mut log, 7 + n % 3, 2000).expect("appended"))
        .collect();
    assert_eq!(log.page_count(), 7);
    assert_eq!(numbers(&bed, &log), (0..50).collect::<Vec<_>>());
    let mut body = Vec::new();
    for (n, &roll_ptr) in pointers.iter().enumerate() {
        let mut mtr = Mtr::reader(&bed.pages.ctx);
        read::record(&mut mtr, &rsegs, roll_ptr, &mut body).expect("there");
        let record = UndoRecord::parse(&body).expect("a record");
        assert_eq!((record.undo_no.0, roll_ptr.is_insert()), (n as u64, true));
    }
    assert_eq!(
        tables(&bed.pages.ctx, &log).expect("readable"),
        [7, 8, 9].map(|id| (TableId(id), false))
    );
    truncate::cut(&bed.pages.ctx, &mut log, UndoNo(20)).expect("cut");
    assert_eq!(numbers(&bed, &log), (0..20).collect::<Vec<_>>());
    assert_eq!(log.page_count(), 3);
    bed.append(&mut log, 7, 30).expect("appended");
    assert_eq!(numbers(&bed, &log), (0..21).collect::<Vec<_>>());
    // A crash now finds it so.
    let found = bed.open().found;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].log.trx_id(), TrxId(10));
    assert_eq!(numbers(&bed, &found[0].log), (0..21).collect::<Vec<_>>());
    assert_eq!(
        (found[0].log.next_no(), found[0].prepared),
        (UndoNo(21), false)
    );
    bed.check();
    truncate::cut(&bed.pages.ctx, &mut log, UndoNo(0)).expect("cut");
    history::finish_rolled_back(&bed.pages.ctx, &log).expect("finished");
    assert_eq!(bed.used_pages(), before + 1, "a page is kept for reuse");
    let opened = bed.open();
    assert!(opened.found.is_empty() && opened.rsegs.history_len() == 0);
    assert_eq!(opened.next_trx_id, TrxId(11));
    bed.check();
}

#[test]
fn a_record_that_fits_in_no_page_is_refused_and_changes_nothing() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = bed.open().rsegs;
    let mut log = segment::begin(&bed.pages.ctx, &rsegs, TrxId(10), false).expect("begun");
    let largest = P - 8 - 56 - 4 - 20;
    assert_eq!(
        bed.append(&mut log, 7, largest + 20),
        Err(Error::UndoRecordTooLarge)
    );
    assert_eq!((log.next_no(), log.page_count()), (UndoNo(0), 1));
    bed.append(&mut log, 7, largest).expect("appended");
    bed.append(&mut log, 7, 10).expect("appended");
    assert_eq!(numbers(&bed, &log), [0, 1]);
    assert_eq!(log.page_count(), 2 + 1);
    bed.check();
}

#[test]
fn a_cached_segment_is_reused_and_its_logs_are_purged_one_by_one() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = Rsegs::open(&bed.pages.ctx).expect("sound").rsegs;
    let ctx = &bed.pages.ctx;
    let rseg = rsegs.get(RsegId(5)).expect("there").clone();
    let mut id = 10;
    let mut entries = 0;
    // Until the page is too full to be kept.
    loop {
        let mut log = loop {
            // Round robin comes by.
            let log = segment::begin(ctx, &rsegs, TrxId(id), false).expect("begun");
            id += 2;
            if log.rseg_id() == rseg.id() {
                break log;
            }
            history::finish_rolled_back(ctx, &log).expect("finished");
        };
        bed.append(&mut log, 3, 2000).expect("appended");
        commit(&bed, &log, id - 1);
        entries += 1;
        if rseg.cached_count() == 0 {
            break;
        }
    }
    assert_eq!((entries, rseg.history_len()), (6, 6));
    let dump = bed.dump();
    assert!(dump.contains("history len 6"), "{dump}");
    assert_eq!(dump.matches(" INSERT ").count(), 6, "{dump}");
    bed.check();
    let mut numbers = Vec::new();
    while let Some(oldest) = rseg.oldest() {
        numbers.push(oldest.no.0);
        let mut mtr = Mtr::reader(ctx);
        let mut reader = LogReader::new(&rseg, oldest.first, oldest.header);
        let mut records = 0;
        while reader.next(&mut mtr).expect("readable").is_some() {
            records += 1;
        }
        drop(mtr);
        assert_eq!(records, 1);
        let removed = history::remove(ctx, &rseg, oldest).expect("removed");
        let last = numbers.len() == 6;
        assert_eq!(removed == history::Removed::Freed(1), last, "{removed:?}");
    }
    assert!(numbers.is_sorted() && numbers.len() == 6);
    let opened = bed.open();
    assert_eq!(opened.rsegs.history_len(), 0);
    assert!(opened.next_trx_id.0 > *numbers.last().expect("six"));
    bed.check();
}

#[test]
fn a_long_log_is_purged_from_its_head_and_all_pages_come_back() {
    let bed = UndoBed::new(P, 512, 1);
    let rsegs = bed.open().rsegs;
    let before = bed.used_pages();
    let mut log = segment::begin(&bed.pages.ctx, &rsegs, TrxId(10), false).expect("begun");
    for _ in 0..600 {
        bed.append(&mut log, 7, 3000).expect("appended");
    }
    let pages = log.page_count();
    assert!(pages > 100);
    commit(&bed, &log, 11);
    let rseg = log.rseg().clone();
    let entry = rseg.oldest().expect("committed");
    let mut mtr = Mtr::reader(&bed.pages.ctx);
    let mut reader = LogReader::new(&rseg, entry.first, entry.header);
    for _ in 0..200 {
        reader.next(&mut mtr).expect("readable").expect("a record");
    }
    drop(mtr);
    history::cut_head(&bed.pages.ctx, &rseg, entry, reader.page()).expect("cut");
    let dump = bed.dump();
    assert!(dump.contains("history_size") && dump.contains("history len 1"));
    let mut mtr = Mtr::reader(&bed.pages.ctx);
    let mut again = LogReader::new(&rseg, entry.first, entry.header);
    let (position, body) = again.next(&mut mtr).expect("readable").expect("a record");
    assert_eq!(position.page, reader.page());
    let first = UndoRecord::parse(body).expect("a record").undo_no.0;
    assert!(first > 190 && first < 200, "{first}");
    let rest = 1 + std::iter::from_fn(|| again.next(&mut mtr).expect("readable").map(drop)).count();
    assert_eq!(rest as u64, 600 - first);
    drop(mtr);
    bed.check();
    let removed = history::remove(&bed.pages.ctx, &rseg, entry).expect("removed");
    // 40 pages were read, 5 records each; the first and the last one of them are still there.
    assert_eq!(removed, history::Removed::Freed(pages - 38));
    assert_eq!(bed.used_pages(), before);
    assert_eq!(bed.dump().matches("rseg").count(), 0);
    bed.check();
}

#[test]
fn a_prepared_log_is_found_with_its_xid() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = bed.open().rsegs;
    let mut log = segment::begin(&bed.pages.ctx, &rsegs, TrxId(40), true).expect("begun");
    bed.append(&mut log, 7, 10).expect("appended");
    let xid = Xid::new(3, b"global", b"branch").expect("an XID");
    let mut mtr = bed.pages.mtr();
    prepare::set(&mut mtr, &log, &xid).expect("prepared");
    mtr.commit();
    let found = bed.open().found.remove(0);
    assert_eq!(
        (found.prepared, found.xid, found.log.is_dict()),
        (true, Some(xid), true)
    );
    let mut mtr = bed.pages.mtr();
    prepare::clear(&mut mtr, &log).expect("active again");
    mtr.commit();
    let found = bed.open().found.remove(0);
    assert_eq!((found.prepared, found.xid), (false, None));
}

/// An undo log and what should be in it.
struct Open {
    log: UndoLog,
    count: u64,
}

#[test]
fn random_transactions_leave_what_a_model_says() {
    let seed = 20_240_901;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let bed = UndoBed::new(P, 300, 2);
    let ctx = &bed.pages.ctx;
    let mut rsegs = bed.open().rsegs;
    let (mut next, mut open): (u64, Vec<Open>) = (1, Vec::new());
    let mut history: Vec<(u64, u64)> = Vec::new();
    for round in 0..1500 {
        match random.below(12) {
            0 | 1 if open.len() < 20 => {
                let log = segment::begin(ctx, &rsegs, TrxId(next), false).expect("begun");
                next += 1;
                open.push(Open { log, count: 0 });
            }
            2 if !open.is_empty() => {
                let at = random.below(open.len());
                let trx = open.swap_remove(at);
                if trx.count > 0 {
                    commit(&bed, &trx.log, next);
                    history.push((next, trx.count));
                    next += 1;
                } else {
                    history::finish_rolled_back(ctx, &trx.log).expect("finished");
                }
            }
            3 if !open.is_empty() => {
                let at = random.below(open.len());
                let trx = &mut open[at];
                trx.count = random.below(trx.count as usize + 1) as u64;
                truncate::cut(ctx, &mut trx.log, UndoNo(trx.count)).expect("cut");
            }
            4 if !history.is_empty() => {
                let (no, count) = purge_oldest(&bed, &rsegs);
                assert_eq!((no, count), history[0], "the oldest comes first");
                history.remove(0);
            }
            _ if !open.is_empty() => {
                let at = random.below(open.len());
                let trx = &mut open[at];
                for _ in 0..random.below(20) {
                    bed.append(&mut trx.log, 5, random.below(2500))
                        .expect("appended");
                    trx.count += 1;
                }
            }
            _ => {}
        }
        if round % 500 == 499 {
            for trx in &open {
                assert_eq!(numbers(&bed, &trx.log), (0..trx.count).collect::<Vec<_>>());
            }
            reopen(&bed, &mut rsegs, &mut open, next);
            assert_eq!(rsegs.history_len(), history.len() as u64);
            bed.check();
            let dump = bed.dump();
            let records = history.iter().map(|&(_, n)| n).sum::<u64>();
            let open_records = open.iter().map(|trx| trx.count).sum::<u64>();
            let dumped = dump.matches(" INSERT ").count() as u64;
            assert!(dumped >= records + open_records, "{dumped}");
        }
    }
}

/// Reads and removes the oldest log of the history; its commit number and how many records it had.
fn purge_oldest(bed: &UndoBed, rsegs: &Rsegs) -> (u64, u64) {
    let (rseg, no) = rsegs.with_oldest().expect("a history");
    let entry = rseg.oldest().expect("there");
    let mut mtr = Mtr::reader(&bed.pages.ctx);
    let mut reader = LogReader::new(rseg, entry.first, entry.header);
    let records = std::iter::from_fn(|| reader.next(&mut mtr).expect("readable").map(drop));
    let count = records.count() as u64;
    drop(mtr);
    history::remove(&bed.pages.ctx, rseg, entry).expect("removed");
    (no.0, count)
}

/// What a crash and a start would find is what is there.
fn reopen(bed: &UndoBed, rsegs: &mut Rsegs, open: &mut [Open], next: u64) {
    let opened = bed.open();
    assert!(opened.next_trx_id.0 <= next);
    assert_eq!(opened.found.len(), open.len());
    for found in opened.found {
        let id = found.log.trx_id();
        let trx = open.iter_mut().find(|trx| trx.log.trx_id() == id);
        let trx = trx.expect("it is open");
        assert_eq!(found.log.next_no(), UndoNo(trx.count));
        assert_eq!(found.log.page_count(), trx.log.page_count());
        // Go on with what was found.
        trx.log = found.log;
    }
    *rsegs = opened.rsegs;
}

#[test]
fn all_slots_taken_is_an_error_of_the_statement() {
    // 256 slots in a page of 4 KiB.
    let bed = UndoBed::new(4096, 512, 0);
    let rsegs = bed.open().rsegs;
    assert_eq!(rsegs.all().count(), 128);
    let ctx = &bed.pages.ctx;
    let mut logs = Vec::new();
    let full = loop {
        match segment::begin(ctx, &rsegs, TrxId(logs.len() as u64 + 1), false) {
            Ok(log) => logs.push(log),
            Err(error) => break error,
        }
    };
    assert_eq!((full, logs.len()), (Error::TooManyTransactions, 128 * 256));
    history::finish_rolled_back(ctx, &logs[77]).expect("finished");
    segment::begin(ctx, &rsegs, TrxId(1 << 20), false).expect("a slot is free");
}

#[test]
fn damage_is_an_error_that_names_the_page() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = bed.open().rsegs;
    let mut log = segment::begin(&bed.pages.ctx, &rsegs, TrxId(10), false).expect("begun");
    let good = bed.append(&mut log, 7, 100).expect("appended");
    let mut body = Vec::new();
    for offset in [0, 38, 55, 273, 400, 16_383] {
        let bad = RollPtr::new(true, good.rseg(), good.page(), offset);
        let mut mtr = Mtr::reader(&bed.pages.ctx);
        let error = read::record(&mut mtr, &rsegs, bad, &mut body).expect_err("no record");
        assert!(
            error.to_string().contains(&format!("page {}", good.page())),
            "{error}"
        );
    }
    let elsewhere = RollPtr::new(true, good.rseg(), PageNo(0), 300);
    let mut mtr = Mtr::reader(&bed.pages.ctx);
    assert!(matches!(
        read::record(&mut mtr, &rsegs, elsewhere, &mut body),
        Err(Error::Corrupt(_))
    ));
    drop(mtr);
    // The first free byte points into a record.
    let mut mtr = bed.pages.mtr();
    let page = latch::undo_page(&mut mtr, log.rseg.page(log.first), crate::mtr::Mode::X);
    let page = page.expect("there");
    mtr.write_u16(page, crate::format::undo_page::OFF_FREE, 300);
    mtr.commit();
    assert!(matches!(bed.append(&mut log, 7, 9), Err(Error::Corrupt(_))));
    assert!(matches!(
        truncate::cut(&bed.pages.ctx, &mut log, UndoNo(0)),
        Err(Error::Corrupt(_))
    ));
    assert!(matches!(
        Rsegs::open(&bed.pages.ctx),
        Err(Error::Corrupt(_))
    ));
}

/// A damaged segment went back to the end of the list: when it was the only one, every transaction
/// that came by its rollback segment was refused.
#[test]
fn a_damaged_cached_segment_is_left_out_and_refuses_nobody() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = Rsegs::open(&bed.pages.ctx).expect("sound").rsegs;
    let ctx = &bed.pages.ctx;
    let count = rsegs.all().count() as u64;
    let begin = |id| segment::begin(ctx, &rsegs, TrxId(id), false);
    // Every rollback segment that is assigned keeps a segment for reuse, whose state is wrong.
    for id in 0..count {
        let log = begin(10 + id).expect("begun");
        history::finish_rolled_back(ctx, &log).expect("finished");
        let first = log.rseg.page(log.first);
        retry(ctx, Some(Budget::system(100)), |mtr| {
            let page = mtr.get(first, Mode::X, Rank::UndoPage)?;
            mtr.write_u16(page, OFF_STATE, 77);
            Ok(())
        })
        .expect("damaged");
    }
    let damaged: usize = rsegs.all().map(|rseg| rseg.cached_count()).sum();
    assert!(damaged > 0);
    for id in 0..count {
        begin(1000 + id).expect("a new segment");
    }
    let left: usize = rsegs.all().map(|rseg| rseg.cached_count()).sum();
    assert_eq!(left, 0);
}

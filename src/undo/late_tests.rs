//! Logs that begin with their first record.

use super::testing::UndoBed;
use super::*;
use crate::format::undo_page::OFF_STATE;
use crate::mtr::{Budget, Mode, retry};
use crate::sync::Rank;
use crate::words::{Lsn, TrxId, TrxNo, UndoNo};

const P: usize = 16384;

fn late(bed: &UndoBed, rsegs: &Rsegs, id: u64) -> UndoLog {
    segment::begin_late(&bed.pages.ctx, rsegs, 3, TrxId(id), false).expect("begun")
}

fn commit(bed: &UndoBed, log: &UndoLog, no: u64) {
    let budget = Budget::system(history::COMMIT_LOG_BYTES);
    retry(&bed.pages.ctx, Some(budget), |mtr| {
        history::commit(mtr, log, None, || TrxNo(no))
    })
    .expect("committed");
}

/// Two logs on one page, both committed.
fn used_page(bed: &UndoBed, rsegs: &Rsegs) -> UndoLog {
    let mut log = late(bed, rsegs, 10);
    assert!(!log.late, "nothing waits for reuse yet");
    bed.append(&mut log, 7, 100).expect("appended");
    commit(bed, &log, 11);
    let mut second = late(bed, rsegs, 12);
    assert!(second.late && second.first == log.first);
    bed.append(&mut second, 7, 100).expect("appended");
    assert!(!second.late && second.header > log.header);
    second
}

#[test]
fn a_late_log_is_on_disk_with_its_first_record_and_not_before() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = bed.open().rsegs;
    let ctx = &bed.pages.ctx;
    let second = used_page(&bed, &rsegs);
    let found = bed.open().found;
    assert_eq!(found.len(), 1);
    let log = &found[0].log;
    assert_eq!((log.trx_id(), log.next_no()), (TrxId(12), UndoNo(1)));
    assert_eq!((log.header, log.free), (second.header, second.free));
    commit(&bed, &second, 13);

    let before = ctx.log.lsn();
    let mut third = late(&bed, &rsegs, 14);
    segment::mark_dict(ctx, &mut third).expect("noted");
    assert!(bed.open().found.is_empty(), "nothing says that it runs");
    let lsn = history::finish_rolled_back(ctx, &third).expect("given back");
    assert_eq!((lsn, ctx.log.lsn()), (Lsn(0), before), "nothing was logged");
    let fourth = late(&bed, &rsegs, 15);
    assert!(
        fourth.late && fourth.first == second.first,
        "it waits again"
    );
    assert_eq!(bed.open().rsegs.history_len(), 2);
    bed.check();
}

#[test]
fn a_first_record_that_needs_more_than_the_page_has_begins_apart() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = bed.open().rsegs;
    let mut second = used_page(&bed, &rsegs);
    truncate::cut(&bed.pages.ctx, &mut second, UndoNo(0)).expect("cut");
    history::finish_rolled_back(&bed.pages.ctx, &second).expect("given back");
    for len in [1900, 4000, 15_000] {
        let mut log = late(&bed, &rsegs, 20 + len as u64);
        assert!(log.late);
        bed.append(&mut log, 7, len).expect("appended");
        bed.append(&mut log, 7, len).expect("appended");
        let found = bed.open().found;
        assert_eq!(found[0].log.next_no(), UndoNo(2));
        bed.check();
        truncate::cut(&bed.pages.ctx, &mut log, UndoNo(0)).expect("cut");
        history::finish_rolled_back(&bed.pages.ctx, &log).expect("given back");
    }
}

#[test]
fn a_late_log_whose_page_is_damaged_begins_on_another() {
    let bed = UndoBed::new(P, 512, 2);
    let rsegs = bed.open().rsegs;
    let ctx = &bed.pages.ctx;
    let second = used_page(&bed, &rsegs);
    commit(&bed, &second, 13);
    let first = second.rseg.page(second.first);
    retry(ctx, Some(Budget::system(100)), |mtr| {
        let page = mtr.get(first, Mode::X, Rank::UndoPage)?;
        mtr.write_u16(page, OFF_STATE, 77);
        Ok(())
    })
    .expect("damaged");
    let mut log = late(&bed, &rsegs, 14);
    assert!(log.late && log.first == second.first);
    bed.append(&mut log, 7, 10).expect("appended elsewhere");
    assert!(log.first != second.first && log.next_no() == UndoNo(1));
    assert_eq!(log.rseg.cached_count(), 0);
}

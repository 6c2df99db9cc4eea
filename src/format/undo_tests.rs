//! Golden tests of undo records: those on the sample undo pages and in the sample logs.

use super::fsp::Geometry;
use super::redo_frame::{Framing, frame};
use super::redo_record::{PageOp, Record, Records};
use super::tests::{Random, sample};
use super::undo_build::{UndoBuilder, put_index_list};
use super::undo_page::{self, LogHeader, State};
use super::undo_record::{
    IndexList, OldVersion, UndoExtern, UndoField, UndoKind, UndoRecord, UndoValue, bodies, previous,
};
use super::{fil, rseg, trx_sys};
use crate::words::{IndexId, Result, RollPtr, TableId, TrxId, UndoNo};

/// Takes a body apart, as far as the number of key fields allows, and builds it again.
fn build_again(body: &[u8], n_uniq: usize) -> Result<Vec<u8>> {
    let record = UndoRecord::parse(body)?;
    let mut out = Vec::new();
    let (kind, info) = (record.kind, record.update_info);
    let mut builder = UndoBuilder::begin(&mut out, kind, info, record.undo_no, record.table_id);
    if record.extern_updated {
        builder.set_extern_updated();
    }
    match record.kind {
        UndoKind::RenameTable => builder.name(record.old_name()?),
        UndoKind::InsertMetadata | UndoKind::Empty => {}
        UndoKind::Insert => {
            let insert = record.insert(n_uniq)?;
            for value in insert.key {
                builder.value(&value?);
            }
            if !insert.virtuals.is_empty() {
                builder.begin_list();
                for field in insert.virtuals {
                    builder.field(&field?);
                }
                builder.end_list();
            }
        }
        _ => {
            let update = record.update(n_uniq)?;
            builder.old_version(&update.old);
            for value in update.key {
                builder.value(&value?);
            }
            if record.kind != UndoKind::DeleteMark {
                builder.count(update.changes.clone().count() as u32);
                for field in update.changes {
                    builder.field(&field?);
                }
            }
            if record.kind == UndoKind::DeleteMark || record.update_info & 1 == 0 {
                builder.begin_list();
                for field in update.ordering {
                    builder.field(&field?);
                }
                builder.end_list();
            }
        }
    }
    assert_eq!(builder.body_bytes(), out.len());
    Ok(out)
}

/// Key fields of the clustered index: the dictionary's tables, then those of the samples.
fn n_uniq_of(table: TableId) -> &'static [usize] {
    match table.0 {
        1 | 11 | 14.. => &[1, 2, 3],
        2..=4 | 12 => &[2],
        13 => &[3],
        _ => &[1, 2, 3],
    }
}

#[test]
fn every_undo_record_of_the_sample_log_is_built_again_to_the_same_bytes() {
    let (mut count, mut kinds) = (0, std::collections::BTreeMap::new());
    for name in ["fresh/ib_logfile0", "mini/ib_logfile0"] {
        let log = sample(name);
        let mut at = 0x3000;
        while let Framing::Mtr { records, total } = frame(&log[at..], |_| 1) {
            for parsed in Records::new(records) {
                let Record::Page(_, PageOp::UndoAppend(body)) = parsed.unwrap().record else {
                    continue;
                };
                let record = UndoRecord::parse(body).unwrap();
                let mut tries = n_uniq_of(record.table_id).iter();
                let again = tries.find_map(|&n| build_again(body, n).ok()).unwrap();
                assert_eq!(again, body, "{name} at {at:#x}: {record:?}");
                *kinds.entry(format!("{:?}", record.kind)).or_insert(0) += 1;
                count += 1;
            }
            at += total;
        }
    }
    println!("{count} undo records: {kinds:?}");
    assert!(count > 2567 && kinds.len() >= 6);
}

fn kind_name(kind: UndoKind) -> &'static str {
    match kind {
        UndoKind::RenameTable => "RENAME",
        UndoKind::InsertMetadata => "INSERT_METADATA",
        UndoKind::Insert => "INSERT",
        UndoKind::UpdateExisting => "UPD_EXIST",
        UndoKind::UpdateDeleted => "UPD_DEL",
        UndoKind::DeleteMark => "DEL_MARK",
        UndoKind::Empty => "EMPTY",
    }
}

/// Positions of the fields inside `name[…]` of a line of the dump.
fn positions_in_dump(line: &str, name: &str) -> Vec<u32> {
    let Some((_, rest)) = line.split_once(&format!(" {name}[")) else {
        return Vec::new();
    };
    let (list, _) = rest.split_once(']').unwrap();
    list.split(", ")
        .filter_map(|item| item.split_once(':')?.0.parse().ok())
        .collect()
}

fn position(field: Result<UndoField<'_>>) -> u32 {
    match field.unwrap() {
        UndoField::Stored { field, .. } => field,
        UndoField::Virtual { column, .. } => 1023 + column,
    }
}

fn check_record(line: &str, at: usize, body: &[u8]) {
    let record = UndoRecord::parse(body).unwrap();
    let expected = format!(
        "@{at}..{} {} cmpl {}{} no {} table {} ",
        at + undo_page::record_bytes(body.len()),
        kind_name(record.kind),
        record.update_info,
        if record.extern_updated { " EXTERN" } else { "" },
        record.undo_no,
        record.table_id,
    );
    assert!(
        line.trim_start().starts_with(&expected),
        "{line}\n{expected}"
    );
    let n_uniq = if line.contains("_INDEX_") { 2 } else { 1 };
    assert_eq!(build_again(body, n_uniq).unwrap(), body);
    if record.kind.has_old_version() {
        let update = record.update(n_uniq).unwrap();
        let OldVersion {
            info_bits,
            trx_id,
            roll_ptr,
        } = update.old;
        let old = format!(
            "old_info {info_bits:#04x} old_trx {trx_id} old_roll(insert={} rseg={} page={} \
             offset={})",
            roll_ptr.is_insert() as u8,
            roll_ptr.rseg(),
            roll_ptr.page(),
            roll_ptr.offset()
        );
        assert!(line.contains(&old), "{line}\n{old}");
        let changes: Vec<_> = update.changes.map(position).collect();
        let ordering: Vec<_> = update.ordering.map(position).collect();
        assert_eq!(changes, positions_in_dump(line, "upd"), "{line}");
        assert_eq!(ordering, positions_in_dump(line, "ord"), "{line}");
    }
}

#[test]
fn undo_logs_of_the_sample_directory_agree_with_the_independent_dump() {
    let files = [
        sample("mini/ibdata1"),
        sample("mini/undo001"),
        sample("mini/undo002"),
    ];
    let page = |space: u32, number: u32| &files[space as usize][number as usize * 16384..][..16384];
    let dump = String::from_utf8(sample("mini/undo-dump.txt")).unwrap();
    let mut lines = dump.lines();
    let mut records = 0;
    for slot in trx_sys::slots(page(0, 5)) {
        let (rseg_id, id) = slot.unwrap();
        let header = page(id.space.0, id.page.0);
        let history = rseg::history(header).unwrap();
        if rseg::slots(header).next().is_none() && history.count() == 0 {
            continue;
        }
        let line = lines.next().unwrap();
        let expected = format!(
            "rseg {rseg_id} space {} page {} max_trx_id {} history_size {} history len {}",
            id.space,
            id.page,
            rseg::max_trx_id(header),
            rseg::history_size(header),
            history.count()
        );
        assert_eq!(line, expected);
        for (index, first) in rseg::slots(header) {
            let undo = page(id.space.0, first.0);
            assert_eq!(fil::page_type(undo), fil::PageType::UNDO_LOG);
            let line = lines.next().unwrap();
            let state = match undo_page::state(undo).unwrap() {
                State::Active => "ACTIVE",
                State::Cached => "CACHED",
                State::ToPurge => "TO_PURGE",
                State::Prepared => "PREPARED",
            };
            let last = undo_page::last_log(undo).unwrap();
            assert!(line.starts_with(&format!("  slot {index} -> page {first} state {state} ")));
            assert!(line.ends_with(&format!(" last_log {last}")));
            records += check_log(undo, last, &mut lines);
        }
        assert!(lines.next().unwrap().starts_with("  history"));
    }
    assert_eq!(lines.next(), None);
    assert_eq!(records, dump.matches("    @").count());
    assert!(records > 15);
}

fn check_log<'a>(undo: &[u8], at: usize, lines: &mut impl Iterator<Item = &'a str>) -> usize {
    let log = LogHeader::parse(undo, at).unwrap();
    let (start, end) = (log.log_start.get() as usize, log.end(undo).unwrap());
    let line = lines.next().unwrap();
    let expected = format!(
        "trx_id {} trx_no {} needs_purge {} start {start} xid_exists {} dict {} table 0 next {} \
         prev {}",
        log.trx_id,
        log.trx_no,
        log.needs_purge,
        log.xid_exists,
        log.dict_trans,
        log.next_log,
        log.prev_log
    );
    assert!(line.ends_with(&expected), "{line}\n{expected}");
    if let Some(xid) = log.xid() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (gtrid, bqual) = (text(xid.gtrid()), text(xid.bqual()));
        let line = lines.next().unwrap();
        let format = xid.format_id();
        assert_eq!(
            line.trim(),
            format!("xid format {format} gtrid b'{gtrid}' bqual b'{bqual}'")
        );
        assert_eq!(
            undo_page::Xid::new(format, gtrid.as_bytes(), bqual.as_bytes()),
            Ok(log.xid)
        );
    }
    let mut seen = Vec::new();
    for body in bodies(undo, start, end) {
        let (at, body) = body.unwrap();
        check_record(lines.next().unwrap(), at, body);
        seen.push(at);
    }
    let mut back = end;
    for at in seen.iter().rev() {
        assert_eq!(previous(undo, start, back), Ok(Some(*at)));
        back = *at;
    }
    assert_eq!(previous(undo, start, back), Ok(None));
    assert!(undo_page::fits(16384, end, 100));
    let _ = Geometry::of_page_size(undo.len());
    seen.len()
}

#[test]
fn a_new_log_header_is_what_the_stock_server_writes() {
    let file = sample("mini/undo002");
    let undo = &file[69 * 16384..][..16384];
    let stock = LogHeader::parse(undo, 86).unwrap();
    let mut new = LogHeader::new(TrxId(182), 86, 0);
    new.xid_exists = 1;
    new.xid = undo_page::Xid::new(7, b"gtrid-one", b"bq").unwrap();
    assert_eq!(new, stock);
    let mut page = undo.to_vec();
    undo_page::init(&mut page);
    assert_eq!(undo_page::free(&page), Ok(56));
    assert_eq!(page[60..70], undo[60..70]);
}

#[test]
fn virtual_columns_off_page_columns_and_large_numbers_round_trip() {
    let mut coded = Vec::new();
    put_index_list(&mut coded, &[(IndexId(0x53), 0), (IndexId(1 << 40), 300)]);
    let indexes = IndexList::parse(&coded).unwrap();
    assert_eq!(indexes.iter().last(), Some((IndexId(1 << 40), 300)));
    let local = [5u8; 100];
    let part = UndoExtern {
        original_bytes: Some(20),
        spatial: 2,
        bytes: &local,
    };
    assert_eq!((part.local().len(), part.mbr().unwrap().len()), (68, 32));
    let mut out = Vec::new();
    let undo_no = UndoNo(u64::MAX >> 8);
    let mut b = UndoBuilder::begin(
        &mut out,
        UndoKind::UpdateExisting,
        0,
        undo_no,
        TableId(1 << 33),
    );
    let old = OldVersion {
        info_bits: 0x20,
        trx_id: TrxId((1 << 48) - 1),
        roll_ptr: RollPtr((1 << 56) - 1),
    };
    b.old_version(&old);
    b.value(&UndoValue::Bytes(&[7; 300]));
    b.value(&UndoValue::Null);
    b.count(2);
    let value = UndoValue::Bytes(b"old");
    let new_value = Some(UndoValue::Null);
    b.field(&UndoField::Virtual {
        column: 0,
        indexes,
        value,
        new_value,
    });
    b.field(&UndoField::Virtual {
        column: 9,
        indexes,
        value,
        new_value,
    });
    b.begin_list();
    b.field(&UndoField::Stored {
        field: 200,
        value: UndoValue::Extern(part),
    });
    b.field(&UndoField::Virtual {
        column: 2,
        indexes,
        value,
        new_value: None,
    });
    b.end_list();
    let record = UndoRecord::parse(&out).unwrap();
    assert_eq!(
        (record.undo_no, record.table_id),
        (undo_no, TableId(1 << 33))
    );
    let update = record.update(2).unwrap();
    assert_eq!(update.old, old);
    assert_eq!(build_again(&out, 2).unwrap(), out);
    for cut in 0..out.len() {
        let short = UndoRecord::parse(&out[..cut]);
        assert!(short.is_err() || short.unwrap().update(2).is_err());
    }
}

#[test]
fn random_bytes_never_panic_the_undo_parser() {
    let seed = 0x756E_646F;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut bodies = Vec::new();
    let log = sample("mini/ib_logfile0");
    let mut at = 0x3000;
    while let Framing::Mtr { records, total } = frame(&log[at..], |_| 1) {
        for parsed in Records::new(records) {
            if let Record::Page(_, PageOp::UndoAppend(body)) = parsed.unwrap().record {
                bodies.push(body.to_vec());
            }
        }
        at += total;
    }
    for _ in 0..100_000 {
        let mut body = bodies[random.below(bodies.len())].clone();
        for _ in 0..=random.below(4) {
            let at = random.below(body.len().min(60));
            body[at] = random.next() as u8;
        }
        for n_uniq in 0..4 {
            let _ = build_again(&body, n_uniq);
        }
    }
}

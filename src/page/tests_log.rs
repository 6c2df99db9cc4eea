//! A stock server's log, applied from its first byte, gives the pages that the server wrote
//! (tests/fixtures/redo_workload).

use std::collections::BTreeMap;
use std::process::Command;

use crate::format::redo_frame::{Framing, frame};
use crate::format::redo_record::{PageOp, Record, Records};
use crate::words::{PageId, be};

use super::layout::page_type;
use super::{PageWrite, apply, layout};

const PAGE: usize = 16384;
const FIRST_RECORD: usize = 0x3000;

fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/redo_workload");
    let path = format!("{folder}/{name}.xz");
    let out = Command::new("xz")
        .args(["-dc", &path])
        .output()
        .expect("xz is installed");
    assert!(out.status.success(), "xz -dc {path}");
    out.stdout
}

#[derive(Default)]
struct Replay {
    /// Pages with the end LSN of their last change.
    pages: BTreeMap<PageId, (Vec<u8>, u64)>,
    /// Inserts and deletes applied.
    operations: usize,
}

impl Replay {
    fn apply(&mut self, id: PageId, op: &PageOp<'_>, end_lsn: u64) {
        let (page, lsn) = self.pages.entry(id).or_insert_with(|| (vec![0; PAGE], 0));
        *lsn = end_lsn;
        match *op {
            PageOp::Free => {
                self.pages.remove(&id);
            }
            PageOp::Init => {
                page.fill(0);
                be::put_u32(page, 4, id.page.0);
                page[8..16].fill(0xFF);
                be::put_u32(page, 34, id.space.0);
            }
            PageOp::Write { offset, data } => page[..].write(offset as usize, data),
            PageOp::Memset { offset, len, fill } => {
                let target = &mut page[offset as usize..(offset + len) as usize];
                target
                    .iter_mut()
                    .zip(fill.iter().cycle())
                    .for_each(|(to, byte)| *to = *byte);
            }
            PageOp::Memmove {
                offset,
                len,
                source,
            } => {
                let source = source as usize;
                page.copy_within(source..source + len as usize, offset as usize);
            }
            PageOp::InitIndex { .. }
            | PageOp::InsertDynamic(_)
            | PageOp::InsertRedundant(_)
            | PageOp::DeleteDynamic { .. }
            | PageOp::DeleteRedundant { .. } => {
                apply::apply(page, op).unwrap_or_else(|e| panic!("{id}, LSN {end_lsn}: {e}"));
                self.operations += 1;
            }
            // Undo pages are another layer's.
            _ => {}
        }
    }
}

fn replay() -> Replay {
    let log = fixture("ib_logfile0");
    let mut replay = Replay::default();
    let mut at = FIRST_RECORD;
    while let Framing::Mtr { records, total } = frame(&log[at..], |_| 1) {
        at += total;
        // The first LSN of the file is its first record's offset, 0x3000.
        for parsed in Records::new(records) {
            if let Record::Page(id, op) = parsed.expect("a sound record").record {
                replay.apply(id, &op, at as u64);
            }
        }
    }
    replay
}

#[test]
fn a_stock_log_gives_the_pages_that_the_server_wrote() {
    let replay = replay();
    assert!(replay.operations > 4500, "{} operations", replay.operations);
    let mut compared = 0;
    for name in [
        "ibdata1", "d.ibd", "c.ibd", "r.ibd", "v.ibd", "w.ibd", "i.ibd",
    ] {
        for page in fixture(name).chunks_exact(PAGE) {
            let id = layout::page_id(page);
            let is_index = matches!(page_type(page), 17855 | 18);
            let Some((ours, lsn)) = replay.pages.get(&id).filter(|_| is_index) else {
                continue;
            };
            assert_eq!(be::u64_at(page, 16), *lsn, "LSN of {name} page {}", id.page);
            let first = (24..PAGE - 8).find(|&i| ours[i] != page[i]);
            assert_eq!(first, None, "{name} page {} differs", id.page);
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared} pages");
}

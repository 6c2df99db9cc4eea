//! The redo log, and the definition that stands beside an exported table.

use super::{PAGE, head};
use std::hint::black_box;
use xtradb::format::cfg::Cfg;
use xtradb::format::redo_file::{Checkpoint, FIRST_LSN, LogGeometry, LogHeader, OFF_RECORDS};
use xtradb::format::redo_frame::frame;
use xtradb::format::redo_record::Records;
use xtradb::recovery::{LogBytes, RedoIndex, ScanOptions, readback, scan_into};
use xtradb::schema::cfg;
use xtradb::words::{Lsn, Result};

/// Bytes that an index of records may take.
const INDEX_BYTES: usize = 8 << 20;

/// One byte of filling, then the records of a mini-transaction: taken in, and applied to pages.
pub fn redo_records(data: &[u8]) {
    let ([fill], records) = head(data);
    black_box(frame(records, |_| fill & 1));
    black_box(Records::new(records).count());
    // The log that they would stand in.
    let mut file = vec![0; OFF_RECORDS as usize];
    file.extend_from_slice(records);
    file.push(fill & 1);
    file.extend_from_slice(&crc32c::crc32c(records).to_be_bytes());
    let (start, end) = (FIRST_LSN, Lsn(FIRST_LSN.0 + records.len() as u64 + 5));
    let geometry = LogGeometry::new(start, 1 << 30).expect("long enough");
    let log = Bytes {
        file: &file,
        geometry,
        checkpoint: None,
    };
    let mut index = RedoIndex::with_limit(INDEX_BYTES, None);
    if index.take_in(start, end, records, fill & 2 != 0).is_err() {
        return;
    }
    black_box(index.unnamed().count());
    for id in index.pages_sorted().into_iter().take(50) {
        let mut page = vec![0; if fill & 4 == 0 { PAGE } else { 4096 }];
        if !index.rebuilds(id) {
            page[38..].fill(fill);
        }
        black_box(readback::bring_up(&index, &log, id, &mut page)).ok();
    }
}

/// A log file as it lies on the disk.
struct Bytes<'a> {
    file: &'a [u8],
    geometry: LogGeometry,
    checkpoint: Option<Checkpoint>,
}

impl LogBytes for Bytes<'_> {
    fn geometry(&self) -> LogGeometry {
        self.geometry
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoint
    }

    fn read(&self, lsn: Lsn, buf: &mut [u8]) -> Result<()> {
        for (n, byte) in buf.iter_mut().enumerate() {
            let at = self.geometry.offset(Lsn(lsn.0.wrapping_add(n as u64)));
            *byte = self.file.get(at as usize).copied().unwrap_or(0);
        }
        Ok(())
    }
}

/// A whole log file: header, checkpoints, and the pass over the records.
pub fn redo_file(data: &[u8]) {
    let mut file = data.to_vec();
    file.resize(data.len().clamp(0x3000 + 4096, 1 << 20), 0);
    let Ok(header) = LogHeader::parse(&file[..512]) else {
        return;
    };
    black_box(header.creator_text());
    let Some(geometry) = LogGeometry::new(header.first_lsn, file.len() as u64) else {
        return;
    };
    let slot = |at: usize| Checkpoint::parse(&file[at..at + 64], header.first_lsn);
    let checkpoint = Checkpoint::choose(slot(0x1000), slot(0x2000)).map(|(found, _)| found);
    let log = Bytes {
        file: &file,
        geometry,
        checkpoint,
    };
    let index = RedoIndex::with_limit(INDEX_BYTES, None);
    if let Ok(scan) = scan_into(&log, index, ScanOptions::one_thread()) {
        black_box((scan.end, scan.clean, scan.index.page_count()));
        black_box(scan.check_names(|_| false)).ok();
    }
}

/// A .cfg file: read, made a table, written again.
pub fn export_file(data: &[u8]) {
    let Ok(found) = Cfg::parse(data) else { return };
    let again = Cfg::parse(&found.to_bytes()).expect("what is written can be read");
    assert_eq!(again.to_bytes(), found.to_bytes(), "written twice");
    black_box(cfg::from_cfg(&found)).ok();
}

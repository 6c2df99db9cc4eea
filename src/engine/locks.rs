//! Transactions and locks for people: INNODB_TRX, INNODB_LOCKS, INNODB_LOCK_WAITS.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use super::open::Engine;
use super::report::{LockReport, LockRow, LockWaitRow, TransactionRow};
use crate::dict::OpenTable;
use crate::format::column::Mtype;
use crate::lock::{Owner, RecordMode, TableMode, Target};
use crate::mtr::{Mode, Mtr};
use crate::page::{Offsets, RecordView, layout, record};
use crate::schema::FieldRef;
use crate::sync::{Arc, Rank};
use crate::trx::{Operation, TrxInfo};
use crate::words::{HeapNo, PageId, Result, TableId};

/// How long a snapshot stands for the present.
const FRESH: Duration = Duration::from_millis(100);
/// Bytes of a statement's text.
const QUERY_BYTES: usize = 1024;

/// The last snapshot, and when it was taken.
pub(super) type Cached = Option<(Instant, Arc<LockReport>)>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Record(PageId, HeapNo),
    Table(TableId),
}

/// Name of an index, and a record's key.
type Described = (Box<str>, Option<Box<str>>);

impl Engine {
    /// The snapshot; taken anew if the last one is older than 0.1 s.
    pub fn lock_report(&self) -> Arc<LockReport> {
        let mut cached = self.lock_cache().lock();
        match &*cached {
            Some((taken, report)) if taken.elapsed() < FRESH => report.clone(),
            _ => {
                let report = Arc::new(self.take_lock_report());
                *cached = Some((Instant::now(), report.clone()));
                report
            }
        }
    }

    fn take_lock_report(&self) -> LockReport {
        let mut report = LockReport::default();
        let mut locks = BTreeMap::new();
        for trx in self.trx().list() {
            let row = self.transaction_row(&trx);
            if let Some(wait) = trx.owner.as_ref().and_then(|owner| owner.waiting()) {
                let (place, mode) = match wait.target() {
                    Target::Record(page, heap, mode) => (Place::Record(page, heap), mode.name()),
                    Target::Table(table, mode) => (Place::Table(table), mode.name()),
                };
                let requested = lock_id(wait.owner.trx_id().0, place);
                let blockers = self.trx().locks.blockers_of(&wait);
                locks.insert(requested.clone(), (place, mode, wait.owner.trx_id().0));
                for blocker in blockers {
                    let id = blocker.trx_id().0;
                    let blocking = lock_id(id, place);
                    let mode = self.mode_held(&blocker, place);
                    locks.insert(blocking.clone(), (place, mode, id));
                    report.waits.push(LockWaitRow {
                        requesting_trx_id: wait.owner.trx_id().0,
                        requested_lock_id: requested.clone(),
                        blocking_trx_id: id,
                        blocking_lock_id: blocking,
                    });
                }
            }
            report.transactions.push(row);
        }
        let tables = self.dict().all_cached();
        for (id, (place, mode, trx_id)) in locks {
            report
                .locks
                .push(self.lock_row(&tables, id, place, mode, trx_id));
        }
        report
    }

    fn transaction_row(&self, trx: &TrxInfo) -> TransactionRow {
        let mut query = String::new();
        if trx.session.0 != 0 {
            let callbacks = &self.host().callbacks;
            callbacks.query_text(trx.ctx, QUERY_BYTES, &mut query);
        }
        let wait = trx.owner.as_ref().and_then(|owner| owner.waiting());
        let requested = wait.map(|wait| match wait.target() {
            Target::Record(page, heap, _) => {
                lock_id(wait.owner.trx_id().0, Place::Record(page, heap))
            }
            Target::Table(table, _) => lock_id(wait.owner.trx_id().0, Place::Table(table)),
        });
        let now = self.host().callbacks.wall_clock().as_secs();
        TransactionRow {
            id: trx.id.map_or(0, |id| id.0),
            state: trx.state_name(),
            started_s: trx.started_s,
            wait_started_s: requested.as_ref().map(|_| now),
            requested_lock_id: requested,
            connection_id: trx.session.0,
            query: (!query.is_empty()).then(|| query.into()),
            operation: match trx.operation {
                Operation::None => None,
                Operation::RollingBack => Some("rollback"),
                Operation::Committing => Some("committing"),
                Operation::Preparing => Some("preparing"),
            },
            tables_in_use: trx.tables_in_use.into(),
            tables_locked: trx.lock_places.min(trx.tables_in_use as usize) as u64,
            lock_structs: trx.lock_places as u64,
            lock_bytes: trx.owner.as_ref().map_or(0, |owner| owner.lock_bytes()),
            rows_locked: trx.rows_locked,
            rows_modified: trx.rows_modified,
            isolation: trx.isolation,
            unique_checks: trx.unique_checks,
            foreign_key_checks: trx.foreign_key_checks,
            read_only: trx.read_only,
            autocommit_non_locking: trx.autocommit_non_locking,
        }
    }

    /// What a transaction in the way has there; the weakest that could be, if it is gone by now.
    fn mode_held(&self, owner: &Arc<Owner>, place: Place) -> &'static str {
        match place {
            Place::Record(page, heap) => {
                let mut held: Option<RecordMode> = None;
                self.trx().locks.each_record_lock(&mut |lock| {
                    if lock.page == page && lock.heap == heap && lock.owner.id() == owner.id() {
                        held = held.or(Some(lock.mode));
                    }
                });
                // An implicit lock is none in the table yet: exclusive, on the record.
                held.unwrap_or(RecordMode::X_RECORD).name()
            }
            Place::Table(table) => {
                let locks = self.trx().locks.table_locks();
                let held = locks
                    .iter()
                    .find(|lock| lock.table == table && lock.owner.id() == owner.id());
                held.map_or(TableMode::IntentionShared, |lock| lock.mode)
                    .name()
            }
        }
    }

    fn lock_row(
        &self,
        tables: &[Arc<OpenTable>],
        id: Box<str>,
        place: Place,
        mode: &'static str,
        trx_id: u64,
    ) -> LockRow {
        let mut row = LockRow {
            id,
            trx_id,
            mode,
            table: "".into(),
            index: None,
            record: None,
            data: None,
        };
        match place {
            Place::Table(table) => {
                let found = tables.iter().find(|open| open.id() == table);
                row.table = quoted(found.map_or("", |open| open.name()));
            }
            Place::Record(page, heap) => {
                row.record = Some((page.space.0, page.page.0, heap.0.into()));
                let of_space = |open: &&Arc<OpenTable>| open.space_id() == page.space;
                for open in tables.iter().filter(of_space) {
                    // Without the page at hand, the place alone is told.
                    if let Ok(Some((index, data))) = self.describe_record(open, page, heap) {
                        row.table = quoted(open.name());
                        row.index = Some(index);
                        row.data = data;
                    }
                }
            }
        }
        row
    }

    /// Name of the index and key of the record, if the page is one of the table's and in memory.
    fn describe_record(
        &self,
        table: &OpenTable,
        id: PageId,
        heap: HeapNo,
    ) -> Result<Option<Described>> {
        if !self.ctx().pool.contains(id) {
            return Ok(None);
        }
        let mut mtr = Mtr::reader(self.ctx());
        let page = mtr.get(id, Mode::S, Rank::IndexPage)?;
        let view = mtr.view(page);
        let on_page = layout::index_id(view);
        let mut trees = table.trees().iter();
        let Some(tree) = trees.find(|tree| tree.index().id == on_page) else {
            return Ok(None);
        };
        layout::check(view, tree.index())?;
        let name = tree.index().name.clone();
        let text = match heap {
            HeapNo::INFIMUM => Some("infimum pseudo-record".into()),
            HeapNo::SUPREMUM => Some("supremum pseudo-record".into()),
            _ => {
                let mut text = None;
                for rec in layout::records(view) {
                    let rec = rec?;
                    if record::heap_no(view, rec) == heap {
                        let mut offsets = Offsets::new();
                        let record = RecordView::new(view, rec, tree.index(), &mut offsets)?;
                        text = Some(key_text(&record).into());
                    }
                }
                text
            }
        };
        Ok(Some((name, text)))
    }
}

fn lock_id(trx_id: u64, place: Place) -> Box<str> {
    match place {
        Place::Record(page, heap) => {
            format!("{trx_id}:{}:{}:{}", page.space, page.page, heap.0).into()
        }
        Place::Table(table) => format!("{trx_id}:{table}").into(),
    }
}

/// "`db`.`table`" of "db/table".
fn quoted(name: &str) -> Box<str> {
    match name.split_once('/') {
        Some((database, table)) => format!("`{database}`.`{table}`").into(),
        None => format!("`{name}`").into(),
    }
}

/// The fields that make the entry unique, as InnoDB's lock_data has them.
fn key_text(record: &RecordView<'_>) -> String {
    let index = record.index();
    let mut text = String::new();
    for i in 0..usize::from(index.n_uniq).min(record.len()) {
        if i > 0 {
            text.push_str(", ");
        }
        let bytes = match record.field(i) {
            FieldRef::Null => {
                text.push_str("NULL");
                continue;
            }
            FieldRef::Bytes(bytes) | FieldRef::External(bytes) => bytes,
        };
        let ty = index.fields[i].ty;
        if ty.mtype == Mtype::Int && bytes.len() <= 8 {
            text.push_str(&integer_text(bytes, ty.prtype.is_unsigned()));
        } else if let (Ok(word), true) = (std::str::from_utf8(bytes), ty.mtype != Mtype::Sys) {
            let _ = write!(text, "'{word}'");
        } else {
            text.push_str("0x");
            for byte in bytes {
                let _ = write!(text, "{byte:02X}");
            }
        }
    }
    text
}

/// A stored integer: big-endian, the sign bit turned over for signed ones.
fn integer_text(bytes: &[u8], unsigned: bool) -> String {
    let value = bytes
        .iter()
        .fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    match unsigned {
        true => value.to_string(),
        false => {
            let half = 1i128 << (8 * bytes.len() - 1);
            (i128::from(value) - half).to_string()
        }
    }
}

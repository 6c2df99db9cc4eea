//! What a read works with, and reading one row by its clustered key.

use super::codec::Template;
use super::entry;
use super::lock_row::{self, lock_clustered};
use super::op::{Op, Patience, Workspace};
use crate::host::image::BlobHeap;
use crate::lock::{Outcome, RecordKind};
use crate::mtr::Mtr;
use crate::page::{RecordView, SearchMode};
use crate::schema::Tuple;
use crate::sync::Arc;
use crate::tree::{Intent, Seek, Tree};
use crate::trx::{ReadView, TrxSystem};
use crate::words::{Error, Result};

/// How a key is looked up, as MySQL's `ha_rkey_function`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Find {
    /// First row equal to the key.
    Exact,
    /// First row at or after it.
    KeyOrNext,
    /// Last row at or before it.
    KeyOrPrev,
    /// First row after it.
    After,
    /// Last row before it.
    Before,
    /// First row that begins with it.
    Prefix,
    /// Last row that begins with it.
    PrefixLast,
    /// Last row that begins with it or is before it.
    PrefixLastOrPrev,
}

/// What reads lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locking {
    /// Nothing: the read view decides.
    None,
    /// Shared.
    Shared,
    /// Exclusive.
    Exclusive,
}

/// A handle's part in a read.
pub struct Reader<'h> {
    /// The table's trees, the clustered one first.
    pub trees: &'h [Tree],
    /// The host's layout.
    pub template: &'h Template,
    /// Host columns to fill, ascending.
    pub columns: &'h [u16],
    /// Locks to take.
    pub locking: Locking,
    /// Where BLOBs go; the caller clears it.
    pub heap: &'h mut BlobHeap,
    /// Reused memory.
    pub work: &'h mut Workspace,
}

/// Room for rows.
pub struct Rows<'b> {
    /// Row images, `stride` bytes apart.
    pub images: &'b mut [u8],
    /// At least the image's `row_length`.
    pub stride: usize,
    /// Positions, and the bytes from one to the next, if wanted.
    pub positions: Option<(&'b mut [u8], usize)>,
    /// How many rows fit.
    pub capacity: usize,
    /// How many are there.
    pub count: usize,
}

impl<'b> Rows<'b> {
    /// Room for one row.
    pub fn one(row: &'b mut [u8]) -> Rows<'b> {
        Rows {
            stride: row.len(),
            images: row,
            positions: None,
            capacity: 1,
            count: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= self.capacity
    }

    /// The image of the row that comes next.
    pub(super) fn image(&mut self) -> &mut [u8] {
        let start = self.count * self.stride;
        // The last one may be without the gap that a stride leaves.
        let end = (start + self.stride).min(self.images.len());
        &mut self.images[start..end]
    }

    /// Counts the row, with its position.
    pub(super) fn push(&mut self, reader: &Reader<'_>, key: &Tuple) {
        if let Some((memory, stride)) = &mut self.positions {
            let table = reader.trees[0].table();
            let len = reader.template.position_bytes(table);
            let start = self.count * *stride;
            let target = &mut memory[start..start + len];
            reader.template.store_position(table, key, target);
        }
        self.count += 1;
    }
}

/// What a read has to do with a secondary entry that leads to the row.
pub(super) enum Via<'t> {
    /// Nothing: by key.
    Key,
    /// The row must have the entry `work.entry` of this tree; `surely` if it has unless an older
    /// version is read.
    Entry { tree: &'t Tree, surely: bool },
}

/// What a consistent read sees by.
#[derive(Clone, Copy)]
pub(super) struct Sight<'e> {
    pub(super) sys: &'e TrxSystem,
    /// `None`: everything (locking reads, READ UNCOMMITTED).
    pub(super) view: Option<ReadView>,
}

impl<'e> Sight<'e> {
    pub(super) fn of(op: &mut Op<'e>, locking: Locking) -> Sight<'e> {
        let view = match locking {
            Locking::None => op.trx.view(),
            _ => None,
        };
        Sight { sys: op.sys, view }
    }
}

/// Reads the row with the clustered key `work.key` into `rows`; `false` if there is none to see, or
/// it is locked and to be left out.
///
/// Errors: those of `Op::wait`; damage.
pub(super) fn look_up(
    op: &mut Op<'_>,
    reader: &mut Reader<'_>,
    sight: &Sight<'_>,
    via: &Via<'_>,
    rows: &mut Rows<'_>,
) -> Result<bool> {
    loop {
        let mut mtr = Mtr::reader(op.ctx);
        let seen = loop {
            match look_up_once(op, reader, &mut mtr, sight, via, rows) {
                Err(Error::WouldBlock) => mtr.restart()?,
                other => break other?,
            }
        };
        drop(mtr);
        match seen {
            Seen::Row => return Ok(true),
            Seen::Nothing => return Ok(false),
            Seen::Wait(wait) => match (op.wait(&wait), op.patience) {
                (Ok(()), _) => {}
                (Err(Error::LockWaitTimeout), Patience::SkipLocked) => return Ok(false),
                (Err(error), _) => return Err(error),
            },
        }
    }
}

enum Seen {
    Row,
    Nothing,
    Wait(Arc<crate::lock::Wait>),
}

fn look_up_once(
    op: &mut Op<'_>,
    reader: &mut Reader<'_>,
    mtr: &mut Mtr<'_>,
    sight: &Sight<'_>,
    via: &Via<'_>,
    rows: &mut Rows<'_>,
) -> Result<Seen> {
    let clustered = &reader.trees[0];
    let index = clustered.index();
    let work = &mut *reader.work;
    let seek = Seek::Key(&work.key, SearchMode::LessOrEqual);
    let at = clustered.seek(mtr, seek, Intent::Read)?;
    if usize::from(at.low_match) != work.key.len() || work.key.len() != index.n_uniq as usize {
        return Ok(Seen::Nothing);
    }
    let record = RecordView::new(mtr.view(at.page), at.rec, index, &mut work.offsets)?;
    let trx_id = record.trx_id().unwrap_or_default();
    if reader.locking != Locking::None {
        let exclusive = reader.locking == Locking::Exclusive;
        let mode = lock_row::mode(exclusive, RecordKind::Record);
        work.new_lock = lock_row::is_new(op.trx, mtr, &at, mode);
        if let Outcome::Wait(wait) = lock_clustered(op.trx, mtr, &at, trx_id, mode) {
            return Ok(Seen::Wait(wait));
        }
    }
    let current = match &sight.view {
        Some(view) => view.sees(&sight.sys.registry, trx_id),
        None => true,
    };
    let record = RecordView::with_offsets(mtr.view(at.page), at.rec, index, &work.offsets);
    let plain = matches!(via, Via::Key | Via::Entry { surely: true, .. });
    if current && plain {
        if record.is_deleted() {
            return Ok(Seen::Nothing);
        }
        load_record(reader, mtr, &at, rows)?;
        return Ok(Seen::Row);
    }
    record.copy_to(&mut work.row);
    let table = clustered.table();
    let there = match &sight.view {
        Some(view) if !current => {
            work.versions
                .visible(mtr, sight.sys, table, view, &mut work.row)?
        }
        _ => !record_is_deleted(&work.row),
    };
    if !there || !has_entry(reader, mtr, via)? {
        return Ok(Seen::Nothing);
    }
    load_version(reader, mtr, rows)?;
    Ok(Seen::Row)
}

pub(super) fn record_is_deleted(row: &Tuple) -> bool {
    row.info_bits & crate::format::record::DELETED != 0
}

/// True if the version in `work.row` has the entry by which it was found.
fn has_entry(reader: &mut Reader<'_>, mtr: &mut Mtr<'_>, via: &Via<'_>) -> Result<bool> {
    let Via::Entry { tree, .. } = via else {
        return Ok(true);
    };
    let work = &mut *reader.work;
    work.fetched.fetch(mtr, reader.trees, &work.row)?;
    let clustered = reader.trees[0].index();
    entry::secondary(
        tree,
        clustered,
        &work.row,
        &work.fetched,
        &mut work.old_entry,
    )?;
    Ok(entry::is_equal(tree, &work.old_entry, &work.entry))
}

/// Hands out the clustered record at `at`, whose offsets are computed.
pub(super) fn load_record(
    reader: &mut Reader<'_>,
    mtr: &mut Mtr<'_>,
    at: &crate::tree::Position,
    rows: &mut Rows<'_>,
) -> Result<()> {
    let clustered = &reader.trees[0];
    let work = &mut *reader.work;
    let index = clustered.index();
    let record = RecordView::with_offsets(mtr.view(at.page), at.rec, index, &work.offsets);
    let row = rows.image();
    let template = reader.template;
    let columns = reader.columns;
    template.load_record(0, columns, &record, row, reader.heap, &mut work.blobs)?;
    template.load_blobs(mtr, clustered, row, reader.heap, &mut work.blobs)
}

/// Hands out the version in `work.row`.
pub(super) fn load_version(
    reader: &mut Reader<'_>,
    mtr: &mut Mtr<'_>,
    rows: &mut Rows<'_>,
) -> Result<()> {
    let work = &mut *reader.work;
    let row = rows.image();
    let template = reader.template;
    let version = &work.row;
    template.load(
        0,
        reader.columns,
        |i| version.field(i),
        row,
        reader.heap,
        &mut work.blobs,
    )?;
    template.load_blobs(mtr, &reader.trees[0], row, reader.heap, &mut work.blobs)
}

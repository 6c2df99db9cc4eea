//! The read that is asked for most: one row by its whole clustered key, as a view sees it.
//!
//! It needs no mini-transaction and remembers its place without looking at the record. Whatever is not as
//! usual goes the way of `Cursor::fetch`.

use super::lock_row;
use super::op::Op;
use super::read::{Find, Locking, Reader, Rows, Sight, Via, look_up};
use super::scan::{Cursor, Same, Start};
use crate::page::RecordView;
use crate::schema::Tuple;
use crate::words::{Error, Result};

impl Cursor {
    /// Reads the row with the clustered key `self.key`; `false`: nothing was done.
    ///
    /// Errors: damage, `Stopped`.
    pub(super) fn fetch_point(
        &mut self,
        op: &mut Op<'_>,
        reader: &mut Reader<'_>,
        start: Start,
        rows: &mut Rows<'_>,
    ) -> Result<bool> {
        let usual = start == Start::Key(Find::Exact)
            && self.index == 0
            && reader.locking == Locking::None
            && rows.capacity == 1
            && rows.positions.is_none();
        if !usual {
            return Ok(false);
        }
        let tree = &reader.trees[0];
        let sight = Sight::of(op, Locking::None);
        let Some(point) = tree.point(op.ctx, &self.key)? else {
            return Ok(false);
        };
        let work = &mut *reader.work;
        let (rec, index) = (point.rec(), tree.index());
        let record = RecordView::new(point.view(), rec, index, &mut work.offsets)?;
        let trx_id = record.trx_id().unwrap_or_default();
        let unseen = |view: &crate::trx::ReadView| !view.sees(&sight.sys.registry, trx_id);
        if record.is_deleted() || sight.view.as_ref().is_some_and(unseen) {
            return Ok(false);
        }
        let (template, columns) = (reader.template, reader.columns);
        let (image, blobs) = (rows.image(), &mut work.blobs);
        template.load_record(0, columns, &record, image, reader.heap, blobs)?;
        if !blobs.is_empty() {
            reader.heap.clear();
            return Ok(false);
        }
        self.same = Same::Equal;
        self.shown_unlocked = false;
        self.repeat = false;
        self.unnoted = None;
        self.stored.store_point(&mut self.key, &point);
        work.leaf = self.stored.leaf();
        self.has_current = true;
        self.current_is_stored = true;
        rows.count += 1;
        Ok(true)
    }
}

/// Reads the row with clustered key `key` (`Template::key_of_position`) into `row`.
///
/// Errors: `KeyNotFound`; those of `Op::wait`; damage.
pub fn read_key(
    op: &mut Op<'_>,
    reader: &mut Reader<'_>,
    key: &Tuple,
    row: &mut [u8],
) -> Result<()> {
    if reader.locking != Locking::None {
        let table = reader.trees[0].table().id;
        let exclusive = reader.locking == Locking::Exclusive;
        lock_row::intend(op, reader.work, table, exclusive)?;
    }
    let sight = Sight::of(op, reader.locking);
    reader.work.key.clone_from(key);
    match look_up(op, reader, &sight, &Via::Key, &mut Rows::one(row))? {
        true => Ok(()),
        false => Err(Error::KeyNotFound),
    }
}

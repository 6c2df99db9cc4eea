//! What a cursor does with one entry: match, lock, see, hand out.

use super::entry;
use super::lock_row::{self, lock_clustered, lock_plain, lock_secondary};
use super::op::{Op, Patience};
use super::read::{Locking, Reader, Rows, load_record, load_version};
use super::scan::{Call, Cursor, Same, Verdict};
use crate::lock::{Outcome, RecordKind};
use crate::mtr::Mtr;
use crate::page::{RecordView, layout};
use crate::schema::compare::compare_fields;
use crate::schema::{FieldRef, KeyKind};
use crate::tree::{Position, Tree};
use crate::words::Result;

impl Cursor {
    /// Looks at one entry: is it in the range, can it be seen, can it be locked? Hands it out if the
    /// leaf has all that is wanted.
    pub(super) fn examine(
        &mut self,
        op: &mut Op<'_>,
        reader: &mut Reader<'_>,
        mtr: &mut Mtr<'_>,
        call: &Call<'_>,
        at: &Position,
        rows: &mut Rows<'_>,
    ) -> Result<Verdict> {
        let trees = reader.trees;
        let tree = &trees[self.index];
        let work = &mut *reader.work;
        let view = mtr.view(at.page);
        let record = RecordView::new(view, at.rec, tree.index(), &mut work.offsets)?;
        if call.same != Same::Any && !self.matches(tree, &record, call.same) {
            let mode = lock_row::mode(reader.locking == Locking::Exclusive, RecordKind::Gap);
            if call.locks_gaps && call.forward {
                if let Outcome::Wait(wait) = lock_plain(op.trx, mtr, at, mode) {
                    return Ok(Verdict::Wait(wait));
                }
            }
            return Ok(Verdict::Beyond);
        }
        let deleted = record.is_deleted();
        if reader.locking != Locking::None {
            let gap = call.locks_gaps && (!call.unique || deleted);
            let kind = if gap {
                RecordKind::NextKey
            } else {
                RecordKind::Record
            };
            let mode = lock_row::mode(reader.locking == Locking::Exclusive, kind);
            self.locked = mode;
            self.new_locks = (lock_row::is_new(op.trx, mtr, at, mode), false);
            let outcome = match record.trx_id() {
                Some(trx_id) => lock_clustered(op.trx, mtr, at, trx_id, mode),
                None => lock_secondary(op.trx, mtr, trees, tree, at, mode)?,
            };
            if let Outcome::Wait(wait) = outcome {
                let shows = self.semi_consistent && !self.repeat && !call.unique;
                let by_row = self.index == 0 && !op.trx.isolation().locks_gaps();
                if shows && by_row && op.patience != Patience::SkipLocked {
                    call.sight.sys.locks.cancel(&wait);
                    return self.show_unlocked(reader, mtr, call, at, rows);
                }
                return Ok(Verdict::Wait(wait));
            }
            if deleted {
                return Ok(Verdict::Skip);
            }
        }
        match self.index {
            0 => self.examine_clustered(reader, mtr, call, at, rows),
            _ => self.examine_secondary(reader, mtr, call, at, rows),
        }
    }

    /// Hands out the last committed version of a row that another transaction holds locked.
    fn show_unlocked(
        &mut self,
        reader: &mut Reader<'_>,
        mtr: &mut Mtr<'_>,
        call: &Call<'_>,
        at: &Position,
        rows: &mut Rows<'_>,
    ) -> Result<Verdict> {
        let tree = &reader.trees[0];
        let work = &mut *reader.work;
        let index = tree.index();
        let view = mtr.view(at.page);
        RecordView::with_offsets(view, at.rec, index, &work.offsets).copy_to(&mut work.row);
        let (sys, table) = (call.sight.sys, tree.table());
        if !work
            .versions
            .last_committed(mtr, sys, table, &mut work.row)?
        {
            return Ok(Verdict::Skip);
        }
        self.shown_unlocked = true;
        self.hand_out_version(reader, mtr, rows)
    }

    /// Hands out the version in the reader's `work.row`.
    fn hand_out_version(
        &mut self,
        reader: &mut Reader<'_>,
        mtr: &mut Mtr<'_>,
        rows: &mut Rows<'_>,
    ) -> Result<Verdict> {
        let n_uniq = reader.trees[0].index().n_uniq as usize;
        self.current.copy_prefix_of(&reader.work.row, n_uniq);
        self.unnoted = None;
        load_version(reader, mtr, rows)?;
        Ok(Verdict::Row)
    }

    fn examine_clustered(
        &mut self,
        reader: &mut Reader<'_>,
        mtr: &mut Mtr<'_>,
        call: &Call<'_>,
        at: &Position,
        rows: &mut Rows<'_>,
    ) -> Result<Verdict> {
        let tree = &reader.trees[0];
        let work = &mut *reader.work;
        let index = tree.index();
        let record = RecordView::with_offsets(mtr.view(at.page), at.rec, index, &work.offsets);
        let trx_id = record.trx_id().unwrap_or_default();
        let sight = call.sight;
        let unseen = match &sight.view {
            Some(view) if !view.sees(&sight.sys.registry, trx_id) => Some(view),
            _ => None,
        };
        if let Some(view) = unseen {
            record.copy_to(&mut work.row);
            let table = tree.table();
            if !work
                .versions
                .visible(mtr, sight.sys, table, view, &mut work.row)?
            {
                return Ok(Verdict::Skip);
            }
            return self.hand_out_version(reader, mtr, rows);
        }
        if record.is_deleted() {
            return Ok(Verdict::Skip);
        }
        if rows.positions.is_some() {
            record.copy_key_to(&mut self.current, index.n_uniq as usize);
        }
        load_record(reader, mtr, at, rows)?;
        self.unnoted = Some(at.rec);
        Ok(Verdict::Row)
    }

    fn examine_secondary(
        &mut self,
        reader: &mut Reader<'_>,
        mtr: &mut Mtr<'_>,
        call: &Call<'_>,
        at: &Position,
        rows: &mut Rows<'_>,
    ) -> Result<Verdict> {
        let clustered = reader.trees[0].index();
        let tree = &reader.trees[self.index];
        let work = &mut *reader.work;
        let view = mtr.view(at.page);
        let record = RecordView::with_offsets(view, at.rec, tree.index(), &work.offsets);
        let max = layout::max_trx_id(view);
        let all_seen = match (&call.sight.view, reader.locking) {
            (Some(view), _) => view.sees_all_up_to(max),
            (None, Locking::None) => false,
            (None, _) => true,
        };
        if all_seen && record.is_deleted() {
            return Ok(Verdict::Skip);
        }
        let get = |i| record.field(i);
        let collations = tree.collations();
        entry::clustered_key(tree.index(), clustered, get, collations, &mut work.key)?;
        if all_seen && call.covers && reader.locking != Locking::Exclusive {
            self.current.clone_from(&work.key);
            self.unnoted = None;
            let image = rows.image();
            let (template, columns) = (reader.template, reader.columns);
            let blobs = &mut work.blobs;
            template.load_record(self.index, columns, &record, image, reader.heap, blobs)?;
            return Ok(Verdict::Row);
        }
        record.copy_to(&mut work.entry);
        // Whoever changed the page may be rolling back: unless all of them are past, the row's
        // version must be asked whether it has the entry.
        Ok(Verdict::LookUp { surely: all_seen })
    }

    /// True if the record begins with the search entry.
    fn matches(&self, tree: &Tree, record: &RecordView<'_>, same: Same) -> bool {
        let last = self.key.len().saturating_sub(1);
        (0..self.key.len()).all(|i| {
            let field = &tree.index().fields[i];
            let (mut value, key) = (record.field(i), self.key.field(i));
            if let (Same::Prefix, true, FieldRef::Bytes(text)) = (same, i == last, value) {
                let wanted = key.len();
                if is_text(field.kind) && text.len() > wanted {
                    value = FieldRef::Bytes(&text[..wanted]);
                }
            }
            compare_fields(field, value, key, tree.collations()).is_eq()
        })
    }
}

/// Kinds of which a key image may end inside a value.
fn is_text(kind: KeyKind) -> bool {
    matches!(
        kind,
        KeyKind::Text(_) | KeyKind::TextTrimmed(_) | KeyKind::Bytes | KeyKind::PaddedBytes
    )
}

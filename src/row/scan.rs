//! Walking an index: by key, to the neighbours, over the whole table.
//!
//! A cursor holds no latch between two calls: it remembers the key of the entry it stands on. Within
//! a call it keeps its leaf from row to row. A row that needs its clustered record is fetched with
//! the leaf let go: what a view sees cannot be purged meanwhile, and what is locked cannot change.

use super::lock_row::{self, lock_plain};
use super::op::{Op, Patience};
use super::read::{Find, Locking, Reader, Rows, Sight, Via, look_up};
use crate::lock::{Outcome, RecordKind, RecordMode, Wait};
use crate::mtr::Mtr;
use crate::page::layout::{self, RecOffset};
use crate::page::{RecordView, SearchMode, record};
use crate::schema::Tuple;
use crate::sync::Arc;
use crate::tree::{Intent, Position, Seek, StoredPosition, Tree};
use crate::words::{Error, Result};

/// Entries passed over before the caller's patience is asked.
const PASSED_MAX: u32 = 512;

/// Where a read starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At the first row.
    First,
    /// At the last row.
    Last,
    /// By the key in `Cursor::key`.
    Key(Find),
    /// After the current row.
    Next,
    /// Before the current row.
    Prev,
    /// After the current row, which the next one must equal in the key.
    NextSame,
}

impl Start {
    fn forward(self) -> bool {
        match self {
            Start::First | Start::Next | Start::NextSame => true,
            Start::Last | Start::Prev => false,
            Start::Key(find) => {
                matches!(
                    find,
                    Find::Exact | Find::KeyOrNext | Find::After | Find::Prefix
                )
            }
        }
    }
}

/// How far the rows must agree with the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Same {
    Any,
    Equal,
    /// The last part of the key may be the beginning of a text.
    Prefix,
}

/// A place in an index.
pub struct Cursor {
    pub(super) index: usize,
    pub(super) stored: StoredPosition,
    /// The key at which a run began.
    last: Tuple,
    /// The search entry.
    pub(super) key: Tuple,
    pub(super) same: Same,
    /// Clustered key of the current row.
    pub(super) current: Tuple,
    pub(super) has_current: bool,
    /// It is the key of `stored`, and not in `current`.
    pub(super) current_is_stored: bool,
    /// The row handed out last, on the leaf that is held: its key is not in `current` yet.
    pub(super) unnoted: Option<RecOffset>,
    /// Rows that are locked by others are shown as last committed (READ COMMITTED only).
    pub(super) semi_consistent: bool,
    /// The row read last is such a one: `Next` reads it again, and waits.
    pub(super) shown_unlocked: bool,
    /// It is being read again.
    pub(super) repeat: bool,
    /// New locks of the row read last: on the entry, on the clustered record of a secondary one.
    pub(super) new_locks: (bool, bool),
    pub(super) locked: RecordMode,
}

enum Reached {
    /// All rows that were asked for.
    Full,
    /// The end, or a row that does not match.
    End,
    /// A lock is held by another.
    Wait(Arc<Wait>),
    /// The row's clustered record is needed. `surely`: the entry belongs to the newest version of
    /// its row, and goes on doing so while the leaf is let go.
    LookUp { surely: bool },
    /// Many entries were passed over.
    Pause,
}

pub(super) enum Verdict {
    Row,
    Skip,
    Beyond,
    Wait(Arc<Wait>),
    LookUp { surely: bool },
}

/// What holds during one call.
pub(super) struct Call<'s> {
    pub(super) sight: &'s Sight<'s>,
    pub(super) same: Same,
    pub(super) forward: bool,
    pub(super) locks_gaps: bool,
    /// The clustered record is not needed.
    pub(super) covers: bool,
    /// A match of the whole unique key is locked without its gap.
    pub(super) unique: bool,
}

impl Cursor {
    /// A cursor on index `index` of the table, standing nowhere.
    pub fn new(index: usize) -> Cursor {
        Cursor {
            index,
            stored: StoredPosition::new(),
            last: Tuple::new(),
            key: Tuple::new(),
            same: Same::Any,
            current: Tuple::new(),
            has_current: false,
            current_is_stored: false,
            unnoted: None,
            semi_consistent: false,
            shown_unlocked: false,
            repeat: false,
            new_locks: (false, false),
            locked: RecordMode::S_RECORD,
        }
    }

    /// Stands nowhere in index `index`, as a new one does, but keeps its memory.
    pub fn begin_anew(&mut self, index: usize) {
        self.index = index;
        self.stored.clear();
        self.key.clear();
        self.same = Same::Any;
        self.has_current = false;
        self.current_is_stored = false;
        self.unnoted = None;
        self.semi_consistent = false;
        self.shown_unlocked = false;
        self.repeat = false;
        self.new_locks = (false, false);
        self.locked = RecordMode::S_RECORD;
    }

    /// Shows rows that others hold locked as they were last committed, at READ COMMITTED, in
    /// clustered order (UPDATE, DELETE: most rows do not match).
    pub fn set_semi_consistent(&mut self, on: bool) {
        self.semi_consistent = on;
    }

    /// True if the row read last is one that another transaction holds locked: read on to get it
    /// again, locked; `unlock_row` passes it over.
    pub fn was_semi_consistent(&self) -> bool {
        self.shown_unlocked
    }

    /// Gives up the locks of the row read last, which does not match, where the level allows.
    ///
    /// Errors: damage; what reading gives.
    pub fn unlock_row(&mut self, op: &mut Op<'_>, trees: &[Tree]) -> Result<()> {
        if std::mem::take(&mut self.shown_unlocked) {
            return Ok(());
        }
        let (entry, row) = std::mem::take(&mut self.new_locks);
        if let (true, Some(key)) = (entry, self.stored.key()) {
            lock_row::unlock(op, &trees[self.index], key, self.locked)?;
        }
        if let (true, Some(key)) = (row, self.current()) {
            lock_row::unlock(op, &trees[0], key, self.locked)?;
        }
        Ok(())
    }

    /// The index.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The search entry, to be filled (`Template::search_entry`) before `Start::Key` or `NextSame`.
    pub fn key(&mut self) -> &mut Tuple {
        &mut self.key
    }

    /// Clustered key of the row read last.
    pub fn current(&self) -> Option<&Tuple> {
        match self.current_is_stored {
            true => self.stored.key().filter(|_| self.has_current),
            false => self.has_current.then_some(&self.current),
        }
    }

    /// True once it stands somewhere.
    pub fn is_placed(&self) -> bool {
        self.stored.is_stored()
    }

    /// Reads rows from `start` on, in its direction, until `rows` is full. With an error or the end the
    /// rows before it are there.
    ///
    /// Errors: `KeyNotFound` (`Start::Key`), `EndOfFile`; those of `Op::wait`; damage.
    pub fn fetch(
        &mut self,
        op: &mut Op<'_>,
        reader: &mut Reader<'_>,
        start: Start,
        rows: &mut Rows<'_>,
    ) -> Result<()> {
        self.has_current = false;
        self.current_is_stored = false;
        if self.fetch_point(op, reader, start, rows)? {
            return Ok(());
        }
        let sight = Sight::of(op, reader.locking);
        self.choose_match(start);
        let call = self.call(op, reader, &sight, start);
        let again = match call.forward {
            true => Start::Next,
            false => Start::Prev,
        };
        if reader.locking != Locking::None {
            let table = reader.trees[0].table().id;
            let exclusive = reader.locking == Locking::Exclusive;
            lock_row::intend(op, reader.work, table, exclusive)?;
        }
        let goes_on = matches!(start, Start::Next | Start::Prev | Start::NextSame);
        self.repeat = std::mem::take(&mut self.shown_unlocked) && goes_on;
        let mut from = start;
        loop {
            let mut mtr = Mtr::reader(op.ctx);
            let reached = loop {
                match self.run(op, reader, &mut mtr, &call, &mut from, rows) {
                    Err(Error::WouldBlock) => mtr.restart()?,
                    other => break other?,
                }
            };
            drop(mtr);
            match reached {
                Reached::Full => return Ok(()),
                Reached::End => return Err(end_of(start, rows)),
                Reached::Pause => op.check_killed()?,
                Reached::Wait(wait) => op.wait(&wait)?,
                Reached::LookUp { surely } => {
                    from = again;
                    self.look_up(op, reader, &call, surely, rows)?;
                    if rows.is_full() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn choose_match(&mut self, start: Start) {
        match start {
            Start::Key(Find::Exact) => self.same = Same::Equal,
            Start::Key(Find::Prefix | Find::PrefixLast) => self.same = Same::Prefix,
            Start::NextSame if self.same == Same::Any => self.same = Same::Equal,
            Start::Key(_) | Start::First | Start::Last => self.same = Same::Any,
            Start::Next | Start::Prev | Start::NextSame => {}
        }
    }

    fn call<'s>(
        &self,
        op: &Op<'_>,
        reader: &Reader<'_>,
        sight: &'s Sight<'s>,
        start: Start,
    ) -> Call<'s> {
        let index = reader.trees[self.index].index();
        let bounded = matches!(
            start,
            Start::Key(Find::Exact | Find::Prefix | Find::PrefixLast) | Start::NextSame
        );
        let same = if bounded { self.same } else { Same::Any };
        let whole = index.is_unique() && self.key.len() == usize::from(index.n_user_fields);
        let no_null = || self.key.fields().all(|f| !f.is_null());
        Call {
            sight,
            same,
            forward: start.forward(),
            locks_gaps: reader.locking != Locking::None && op.trx.isolation().locks_gaps(),
            covers: self.index == 0 || reader.template.covers(self.index, reader.columns),
            unique: same == Same::Equal && whole && no_null(),
        }
    }

    fn look_up(
        &mut self,
        op: &mut Op<'_>,
        reader: &mut Reader<'_>,
        call: &Call<'_>,
        surely: bool,
        rows: &mut Rows<'_>,
    ) -> Result<()> {
        let trees = reader.trees;
        let tree = &trees[self.index];
        let via = Via::Entry { tree, surely };
        if look_up(op, reader, call.sight, &via, rows)? {
            self.current.clone_from(&reader.work.key);
            self.has_current = true;
            self.new_locks.1 = reader.locking != Locking::None && reader.work.new_lock;
            rows.push(reader, &self.current);
        }
        Ok(())
    }

    fn run(
        &mut self,
        op: &mut Op<'_>,
        reader: &mut Reader<'_>,
        mtr: &mut Mtr<'_>,
        call: &Call<'_>,
        from: &mut Start,
        rows: &mut Rows<'_>,
    ) -> Result<Reached> {
        let tree = &reader.trees[self.index];
        let goes_on = matches!(*from, Start::Next | Start::NextSame | Start::Prev);
        let last = self.stored.key().filter(|_| goes_on && !self.repeat);
        let has_last = last.is_some();
        if let Some(key) = last {
            self.last.copy_prefix_of(key, key.len());
        }
        let reached = self.pass(op, reader, mtr, call, from, rows)?;
        if has_last
            && matches!(
                reached,
                Reached::Full | Reached::Pause | Reached::LookUp { .. }
            )
        {
            // In a damaged tree a key may lead to a place before itself, again and again.
            self.stored.check_moved(tree, &self.last, call.forward)?;
        }
        Ok(reached)
    }

    /// Goes through entries until there is a reason to stop; notes then where it stands, also where a
    /// page is missing: the way goes on from there.
    fn pass(
        &mut self,
        op: &mut Op<'_>,
        reader: &mut Reader<'_>,
        mtr: &mut Mtr<'_>,
        call: &Call<'_>,
        from: &mut Start,
        rows: &mut Rows<'_>,
    ) -> Result<Reached> {
        let mut passed = None;
        let reached = self.walk(op, reader, mtr, call, from, rows, &mut passed);
        self.settle(reader, mtr, &mut passed)?;
        reached
    }

    /// Notes the entry that was passed last and the row that was handed out last, before their leaf
    /// is let go.
    fn settle(
        &mut self,
        reader: &mut Reader<'_>,
        mtr: &Mtr<'_>,
        passed: &mut Option<Position>,
    ) -> Result<()> {
        let Some(at) = passed.take() else {
            return Ok(());
        };
        let tree = &reader.trees[self.index];
        let offsets = &mut reader.work.offsets;
        self.stored.store(tree, mtr, &at, offsets)?;
        if self.index == 0 {
            reader.work.leaf = self.stored.leaf();
        }
        let n_uniq = tree.index().n_uniq as usize;
        match (self.unnoted.take(), self.stored.key()) {
            (Some(rec), Some(key)) if rec == at.rec => self.current.copy_prefix_of(key, n_uniq),
            (Some(rec), _) => {
                let view = mtr.view(at.page);
                let record = RecordView::new(view, rec, tree.index(), offsets)?;
                record.copy_key_to(&mut self.current, n_uniq);
            }
            (None, _) => {}
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "those of a call, and its place")]
    fn walk(
        &mut self,
        op: &mut Op<'_>,
        reader: &mut Reader<'_>,
        mtr: &mut Mtr<'_>,
        call: &Call<'_>,
        from: &mut Start,
        rows: &mut Rows<'_>,
        passed: &mut Option<Position>,
    ) -> Result<Reached> {
        let trees = reader.trees;
        let tree = &trees[self.index];
        let (mut at, mut ready) = self.place(mtr, tree, *from)?;
        if !call.forward && call.locks_gaps {
            if let Some(wait) = self.lock_gap_behind(op, mtr, &at, *from)? {
                return Ok(Reached::Wait(wait));
            }
        }
        for _ in 0..PASSED_MAX {
            if !ready && !on_page(mtr, tree, call.forward, &mut at)? {
                self.settle(reader, mtr, passed)?;
                match self.advance(op, reader, mtr, tree, call, &mut at)? {
                    Advanced::To => {}
                    Advanced::End => {
                        *passed = Some(at);
                        return Ok(Reached::End);
                    }
                    Advanced::Wait(wait) => return Ok(Reached::Wait(wait)),
                }
            }
            ready = false;
            match self.examine(op, reader, mtr, call, &at, rows)? {
                Verdict::Beyond => return Ok(Reached::End),
                Verdict::Wait(wait) if op.patience == Patience::SkipLocked => {
                    wait.check_refused()?;
                    op.trx.system().locks.cancel(&wait);
                }
                Verdict::Wait(wait) => return Ok(Reached::Wait(wait)),
                Verdict::Row => {
                    self.has_current = true;
                    rows.push(reader, &self.current);
                }
                Verdict::Skip => {}
                Verdict::LookUp { surely } => {
                    *passed = Some(at);
                    return Ok(Reached::LookUp { surely });
                }
            }
            *passed = Some(at);
            *from = match call.forward {
                true => Start::Next,
                false => Start::Prev,
            };
            self.repeat = false;
            if rows.is_full() || self.shown_unlocked {
                return Ok(Reached::Full);
            }
        }
        Ok(Reached::Pause)
    }

    /// Finds where to start; `true` if the record there is the first candidate, `false` if it is the
    /// one beside it.
    fn place(&self, mtr: &mut Mtr<'_>, tree: &Tree, from: Start) -> Result<(Position, bool)> {
        let by_key = |mtr: &mut Mtr<'_>, mode| {
            let at = tree.seek(mtr, Seek::Key(&self.key, mode), Intent::Read)?;
            let ready = is_row(mtr, &at);
            Ok((at, ready))
        };
        match from {
            Start::First => Ok((tree.seek(mtr, Seek::First, Intent::Read)?, false)),
            Start::Last => {
                let mut at = tree.seek(mtr, Seek::Last, Intent::Read)?;
                at.rec = layout::supremum(mtr.view(at.page));
                Ok((at, false))
            }
            Start::Key(find) => by_key(
                mtr,
                match find {
                    Find::Exact | Find::KeyOrNext | Find::Prefix => SearchMode::GreaterOrEqual,
                    Find::After => SearchMode::Greater,
                    Find::Before => SearchMode::Less,
                    Find::KeyOrPrev | Find::PrefixLast | Find::PrefixLastOrPrev => {
                        SearchMode::LessOrEqual
                    }
                },
            ),
            Start::Next | Start::NextSame => {
                let (at, found) = self.stored.restore(tree, mtr, Intent::Read)?;
                Ok((at, self.repeat && found && is_row(mtr, &at)))
            }
            Start::Prev => {
                let (at, found) = self.stored.restore(tree, mtr, Intent::Read)?;
                let ready = (!found || self.repeat) && is_row(mtr, &at);
                Ok((at, ready))
            }
        }
    }

    /// A backward read that begins at a key also locks the gap above its first row.
    fn lock_gap_behind(
        &self,
        op: &mut Op<'_>,
        mtr: &Mtr<'_>,
        at: &Position,
        from: Start,
    ) -> Result<Option<Arc<Wait>>> {
        let view = mtr.view(at.page);
        let mut next = *at;
        match from {
            Start::Key(_) => next.rec = layout::next(view, at.rec)?,
            Start::Last => {}
            _ => return Ok(None),
        }
        let mode = lock_row::mode(false, RecordKind::Gap);
        Ok(match lock_plain(op.trx, mtr, &next, mode) {
            Outcome::Granted => None,
            Outcome::Wait(wait) => Some(wait),
        })
    }

    /// Steps to the next candidate; a forward step over the end of a page locks the gap there.
    fn advance(
        &self,
        op: &mut Op<'_>,
        reader: &Reader<'_>,
        mtr: &mut Mtr<'_>,
        tree: &Tree,
        call: &Call<'_>,
        at: &mut Position,
    ) -> Result<Advanced> {
        let there = if call.forward {
            if call.locks_gaps {
                let view = mtr.view(at.page);
                let supremum = layout::supremum(view);
                if at.rec == supremum || layout::next(view, at.rec)? == supremum {
                    let end = Position {
                        rec: supremum,
                        ..*at
                    };
                    let exclusive = reader.locking == Locking::Exclusive;
                    let mode = lock_row::mode(exclusive, RecordKind::NextKey);
                    if let Outcome::Wait(wait) = lock_plain(op.trx, mtr, &end, mode) {
                        return Ok(Advanced::Wait(wait));
                    }
                }
            }
            tree.next(mtr, at)?
        } else {
            tree.prev(mtr, at)?
        };
        Ok(if there { Advanced::To } else { Advanced::End })
    }
}

enum Advanced {
    To,
    End,
    Wait(Arc<Wait>),
}

/// Steps to the neighbour if that stands on the same page.
fn on_page(mtr: &Mtr<'_>, tree: &Tree, forward: bool, at: &mut Position) -> Result<bool> {
    match forward {
        true => tree.next_on_page(mtr, at),
        false => tree.prev_on_page(mtr, at),
    }
}

fn is_row(mtr: &Mtr<'_>, at: &Position) -> bool {
    let view = mtr.view(at.page);
    !layout::is_system(view, at.rec) && !record::is_metadata(view, at.rec)
}

fn end_of(start: Start, rows: &Rows<'_>) -> Error {
    match start {
        Start::Key(_) if rows.count == 0 => Error::KeyNotFound,
        _ => Error::EndOfFile,
    }
}

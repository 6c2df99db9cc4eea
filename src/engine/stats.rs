//! Statistics of a table: pages by their segments, rows and different values from a sample of leaves.

use super::handle::TableHandle;
use super::session::Session;
use super::types::{Bound, Find, TableStats};
use crate::dict::{OpenTable, Statistics};
use crate::extent::segment_use;
use crate::format::fsp::Geometry;
use crate::format::index_page;
use crate::format::inode::SegmentHeader;
use crate::mtr::{Mode, Mtr, PageCtx, PageRef};
use crate::page::{Offsets, RecordView, SearchMode, layout};
use crate::schema::compare::compare_fields;
use crate::schema::{FieldRef, Tuple};
use crate::sync::Rank;
use crate::sync::atomic::Ordering;
use crate::tree::{Intent, Seek, Tree};
use crate::words::{Error, Result};

/// Leaves that are looked at; a tree with no more is counted exactly.
const SAMPLE_LEAVES: u32 = 20;
/// Leaves walked between two ends of a range before it is estimated.
const RANGE_LEAVES: u32 = 10;

/// What one tree's sample tells.
struct Sample {
    /// Pages of both segments.
    pages: u64,
    leaves: u64,
    sampled_leaves: u64,
    records: u64,
    /// For each number of leading fields, how often they changed from record to record.
    changes: Vec<u64>,
}

impl TableHandle {
    /// Estimates, from memory.
    pub fn stats(&self) -> Result<TableStats> {
        let table = self.table();
        let statistics = self.known_statistics()?;
        let page = self.engine().ctx().page_size() as u64;
        let size = u64::from(table.space().size_pages());
        let used = statistics.clustered_pages + statistics.secondary_pages;
        Ok(TableStats {
            rows: statistics.rows,
            data_length: statistics.clustered_pages * page,
            index_length: statistics.secondary_pages * page,
            free_length: size.saturating_sub(used) * page,
            auto_increment: match self.image().auto_increment() {
                Some(_) => *table.autoinc(),
                None => 0,
            },
            update_time: 0,
            clustered_pages: statistics.clustered_pages,
            rows_max: statistics.rows * 2 + 10,
        })
    }

    /// Rows per value of the first 1, 2, … parts of a key; each at least 1.
    pub fn rec_per_key(&self, key: u32, out: &mut [f64]) -> Result<()> {
        let statistics = self.known_statistics()?;
        let index = self.template().index_of_key(key as usize);
        let distinct = statistics.distinct.get(index);
        for (at, out) in out.iter_mut().enumerate() {
            let values = distinct.and_then(|d| d.get(at.min(d.len().saturating_sub(1))));
            let values = values.copied().unwrap_or(1).max(1);
            *out = (statistics.rows as f64 / values as f64).max(1.0);
        }
        Ok(())
    }

    /// The estimates; made anew when there are none, or a tenth of the rows has changed.
    fn known_statistics(&self) -> Result<Statistics> {
        let table = self.table();
        let known = table.statistics().clone();
        let changes = table.changes().load(Ordering::Relaxed);
        if known.known && changes <= 16 + known.rows / 10 {
            return Ok(known);
        }
        sample_table(self.engine().ctx(), table)
    }

    /// Recalculates statistics.
    pub fn analyze(&mut self, session: &mut Session) -> Result<()> {
        session.check_not_aborted()?;
        sample_table(self.engine().ctx(), self.table()).map(|_| ())
    }

    /// Estimated rows between two ends, at least 1. The handle is bound.
    pub fn records_in_range(
        &mut self,
        key: u32,
        lower: Option<Bound<'_>>,
        upper: Option<Bound<'_>>,
    ) -> Result<u64> {
        let index = self.template().index_of_key(key as usize);
        let tree = self.table().tree(index)?;
        let mut ends = [None, None];
        for (end, bound) in ends.iter_mut().zip([lower, upper]) {
            if let Some(bound) = bound.filter(|bound| !bound.key.is_empty()) {
                let mut tuple = Tuple::new();
                self.template()
                    .search_entry(key as usize, bound.key, &mut tuple)?;
                *end = Some((tuple, bound.find));
            }
        }
        let rows = self.known_statistics()?.rows;
        let [lower, upper] = &ends;
        let found = count_range(self.engine().ctx(), tree, lower, upper, rows)?;
        Ok(found.max(1))
    }
}

/// Samples all trees and keeps what was found.
fn sample_table(ctx: &PageCtx, table: &OpenTable) -> Result<Statistics> {
    let mut statistics = Statistics {
        known: true,
        ..Statistics::default()
    };
    // Changes meanwhile count for the next time.
    table.changes().store(0, Ordering::Relaxed);
    for position in 0..table.trees().len() {
        let Ok(tree) = table.tree(position) else {
            statistics.distinct.push(Vec::new());
            continue;
        };
        let sample = sample_tree(ctx, tree)?;
        let scale = sample.leaves as f64 / sample.sampled_leaves.max(1) as f64;
        let estimate = |count: u64| (count as f64 * scale).round() as u64;
        if position == 0 {
            statistics.rows = estimate(sample.records);
            statistics.clustered_pages = sample.pages;
        } else {
            statistics.secondary_pages += sample.pages;
        }
        let distinct = sample.changes.iter().map(|&changes| estimate(changes));
        statistics.distinct.push(distinct.collect());
    }
    *table.statistics() = statistics.clone();
    Ok(statistics)
}

fn sample_tree(ctx: &PageCtx, tree: &Tree) -> Result<Sample> {
    let mut mtr = Mtr::reader(ctx);
    loop {
        match sample_once(&mut mtr, tree) {
            Err(Error::WouldBlock) => mtr.restart()?,
            other => return other,
        }
    }
}

fn sample_once(mtr: &mut Mtr<'_>, tree: &Tree) -> Result<Sample> {
    let geometry = mtr.ctx().spaces.find(tree.space())?.geometry();
    let root = mtr.get(tree.root(), Mode::S, Rank::IndexPage)?;
    let leaf_segment = segment(mtr, root, index_page::SEGMENT_LEAF, geometry)?;
    let top_segment = segment(mtr, root, index_page::SEGMENT_TOP, geometry)?;
    let is_leaf = layout::is_leaf(mtr.view(root));
    mtr.release(root);
    let leaf_pages = u64::from(segment_use(mtr, leaf_segment)?.used);
    let top_pages = u64::from(segment_use(mtr, top_segment)?.used);
    mtr.restart()?;
    let n_fields = usize::from(tree.index().n_uniq).max(1);
    let mut sample = Sample {
        pages: leaf_pages + top_pages,
        leaves: if is_leaf { 1 } else { leaf_pages.max(1) },
        sampled_leaves: 0,
        records: 0,
        changes: vec![0; n_fields],
    };
    let mut at = tree.seek(mtr, Seek::First, Intent::Read)?;
    let mut before = Tuple::new();
    let mut offsets = Offsets::new();
    let mut page = None;
    while tree.next(mtr, &mut at)? {
        if page != Some(mtr.page_id(at.page)) {
            if sample.sampled_leaves >= u64::from(SAMPLE_LEAVES) {
                return Ok(sample);
            }
            page = Some(mtr.page_id(at.page));
            sample.sampled_leaves += 1;
        }
        let view = RecordView::new(mtr.view(at.page), at.rec, tree.index(), &mut offsets)?;
        if view.is_deleted() {
            continue;
        }
        let same = (sample.records > 0).then(|| equal_fields(tree, &before, &view, n_fields));
        for (at, changes) in sample.changes.iter_mut().enumerate() {
            *changes += u64::from(same.is_none_or(|same| same <= at));
        }
        sample.records += 1;
        view.copy_to(&mut before);
    }
    // The end was reached: all leaves were seen.
    sample.leaves = sample.sampled_leaves.max(1);
    Ok(sample)
}

fn segment(mtr: &Mtr<'_>, root: PageRef, at: usize, geometry: Geometry) -> Result<SegmentHeader> {
    SegmentHeader::parse(mtr.view(root), at, geometry)
}

/// Number of leading fields in which the record equals the one before.
fn equal_fields(tree: &Tree, before: &Tuple, view: &RecordView<'_>, n: usize) -> usize {
    let equal = |i: &usize| {
        let field = &tree.index().fields[*i];
        let (a, b) = (before.field(*i), view.field(*i));
        !matches!(a, FieldRef::External(_))
            && !matches!(b, FieldRef::External(_))
            && compare_fields(field, a, b, tree.collations()).is_eq()
    };
    (0..n.min(before.len())).take_while(equal).count()
}

type End = Option<(Tuple, Find)>;

fn count_range(ctx: &PageCtx, tree: &Tree, lower: &End, upper: &End, rows: u64) -> Result<u64> {
    let mut mtr = Mtr::reader(ctx);
    loop {
        match count_once(&mut mtr, tree, lower, upper, rows) {
            Err(Error::WouldBlock) => mtr.restart()?,
            other => return other,
        }
    }
}

/// Counts records from the lower end; after some leaves, what lies beyond is estimated from the share
/// of the root's records between the ends.
fn count_once(mtr: &mut Mtr<'_>, tree: &Tree, lower: &End, upper: &End, rows: u64) -> Result<u64> {
    let mut at = match lower {
        None => tree.seek(mtr, Seek::First, Intent::Read)?,
        Some((key, find)) => {
            // The position before the first record in the range.
            let mode = match find {
                Find::After => SearchMode::LessOrEqual,
                _ => SearchMode::Less,
            };
            tree.seek(mtr, Seek::Key(key, mode), Intent::Read)?
        }
    };
    let mut offsets = Offsets::new();
    let (mut count, mut leaves, mut page) = (0, 0, None);
    while tree.next(mtr, &mut at)? {
        if page != Some(mtr.page_id(at.page)) {
            page = Some(mtr.page_id(at.page));
            leaves += 1;
            if leaves > RANGE_LEAVES {
                mtr.restart()?;
                return Ok(estimate_range(mtr, tree, lower, upper, rows)?.max(count));
            }
        }
        let view = RecordView::new(mtr.view(at.page), at.rec, tree.index(), &mut offsets)?;
        if is_beyond(tree, &view, upper) {
            break;
        }
        count += u64::from(!view.is_deleted());
    }
    Ok(count)
}

/// True if the record stands behind the upper end. MySQL's convention: After includes the key itself,
/// Before does not.
fn is_beyond(tree: &Tree, view: &RecordView<'_>, upper: &End) -> bool {
    let Some((key, find)) = upper else {
        return false;
    };
    for (i, field) in key.fields().enumerate() {
        let order = compare_fields(
            &tree.index().fields[i],
            view.field(i),
            field,
            tree.collations(),
        );
        if order.is_ne() {
            return order.is_gt();
        }
    }
    *find == Find::Before
}

fn estimate_range(
    mtr: &mut Mtr<'_>,
    tree: &Tree,
    lower: &End,
    upper: &End,
    rows: u64,
) -> Result<u64> {
    let root = mtr.get(tree.root(), Mode::S, Rank::IndexPage)?;
    let view = mtr.view(root);
    let (mut inside, mut all) = (0u64, 0u64);
    let mut offsets = Offsets::new();
    for rec in layout::records(view) {
        let rec = rec?;
        let record = RecordView::new(view, rec, tree.index(), &mut offsets)?;
        all += 1;
        let below = lower.as_ref().is_some_and(|(key, _)| {
            let first = compare_fields(
                &tree.index().fields[0],
                record.field(0),
                key.field(0),
                tree.collations(),
            );
            first.is_lt()
        });
        inside += u64::from(!below && !is_beyond(tree, &record, upper));
    }
    // The ends lie somewhere within a child each.
    Ok((rows * (inside + 1) / (all + 1)).min(rows))
}

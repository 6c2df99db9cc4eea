//! Where a page is split for an insert (format-tablespace.md section 13).
//!
//! Ascending and descending inserts leave full pages behind; anything else halves the bytes. Any
//! choice is legal on disk; this one keeps pages as full as the stock server keeps them.

use crate::format::index_page;
use crate::schema::Index;
use crate::words::Result;

use super::layout::{self, RecOffset, corrupt};
use super::offsets::Offsets;

/// On which side of the page the new page stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The lower records move to a new left neighbour.
    Left,
    /// The upper records move to a new right neighbour.
    Right,
}

/// How to split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitPoint {
    /// Where the new page goes.
    pub side: Side,
    /// The first existing record of the upper half; the supremum if the new record stands there
    /// alone.
    pub first_upper: RecOffset,
    /// The new record belongs to the upper half. With `first_upper` directly behind it, it is the
    /// first one there.
    pub new_is_upper: bool,
}

/// True if an insert behind `prev` goes on with a run at the end (ascending) or at the beginning
/// (descending) of a page: a split would move nothing and leave the page as full as it is.
pub fn continues_run(page: &[u8], prev: RecOffset) -> Result<bool> {
    let next = layout::next(page, prev)?;
    let (first, last) = (
        prev == layout::infimum(page),
        next == layout::supremum(page),
    );
    Ok(last && !first && follows_last_insert(page, prev)
        || first && !last && precedes_last_insert(page, next))
}

fn follows_last_insert(page: &[u8], prev: RecOffset) -> bool {
    !layout::is_system(page, prev) && layout::last_insert(page) == prev.at()
}

fn precedes_last_insert(page: &[u8], next: RecOffset) -> bool {
    next != layout::supremum(page) && layout::last_insert(page) == next.at()
}

/// Chooses the split of a page with at least one record for a new record of `new_size` bytes that
/// goes behind `prev`.
pub fn split_point(
    page: &[u8],
    index: &Index,
    prev: RecOffset,
    new_size: usize,
    offsets: &mut Offsets,
) -> Result<SplitPoint> {
    let sequential = match ascending(page, prev)? {
        Some(point) => Some(point),
        None => descending(page, prev)?,
    };
    match sequential {
        Some(point) if fits(page, index, &point, new_size, offsets)? => Ok(point),
        _ => middle(page, index, prev, new_size, offsets),
    }
}

/// True if the half that gets the new record has room for it.
fn fits(
    page: &[u8],
    index: &Index,
    point: &SplitPoint,
    new_size: usize,
    offsets: &mut Offsets,
) -> Result<bool> {
    let (mut lower, mut n_lower) = (0, 0);
    for rec in layout::records(page) {
        let rec = rec?;
        if rec == point.first_upper {
            break;
        }
        offsets.compute(page, rec, index)?;
        lower += offsets.size();
        n_lower += 1;
    }
    let (used, n) = if point.new_is_upper {
        let upper = super::space::data_size(page).saturating_sub(lower);
        (upper, layout::n_recs(page).saturating_sub(n_lower))
    } else {
        (lower, n_lower)
    };
    let room = index_page::empty_free_space(page.len(), index.compact);
    Ok(used + new_size + index_page::directory_reserve(n + 1) <= room)
}

/// The insert follows the one before: split at the insert point, keeping one following record.
fn ascending(page: &[u8], prev: RecOffset) -> Result<Option<SplitPoint>> {
    if !follows_last_insert(page, prev) {
        return Ok(None);
    }
    let supremum = layout::supremum(page);
    let next = layout::next(page, prev)?;
    let after = if next == supremum {
        supremum
    } else {
        layout::next(page, next)?
    };
    Ok(Some(if after == supremum {
        // The new record begins the new page, the one that follows it goes along.
        SplitPoint {
            side: Side::Right,
            first_upper: next,
            new_is_upper: true,
        }
    } else {
        SplitPoint {
            side: Side::Right,
            first_upper: after,
            new_is_upper: false,
        }
    }))
}

/// The insert stands directly before the one before: the mirror image.
fn descending(page: &[u8], prev: RecOffset) -> Result<Option<SplitPoint>> {
    let next = layout::next(page, prev)?;
    if !precedes_last_insert(page, next) {
        return Ok(None);
    }
    let infimum = layout::infimum(page);
    if prev == infimum {
        // Nothing lower: the new record alone takes the new left page.
        return Ok(Some(SplitPoint {
            side: Side::Left,
            first_upper: next,
            new_is_upper: false,
        }));
    }
    let point = if layout::first(page)? == prev {
        SplitPoint {
            side: Side::Left,
            first_upper: next,
            new_is_upper: false,
        }
    } else {
        // The record before the insert goes up, so that the next insert finds room beside it.
        SplitPoint {
            side: Side::Left,
            first_upper: prev,
            new_is_upper: true,
        }
    };
    Ok(Some(point))
}

/// The split after which the larger half is smallest, the new record counted in.
fn middle(
    page: &[u8],
    index: &Index,
    prev: RecOffset,
    new_size: usize,
    offsets: &mut Offsets,
) -> Result<SplitPoint> {
    let total = super::space::data_size(page) + new_size;
    let mut best: Option<(usize, SplitPoint)> = None;
    let mut lower = 0;
    let mut consider = |lower: usize, first_upper, new_is_upper| {
        let larger = lower.max(total.saturating_sub(lower));
        if lower > 0 && lower < total && best.is_none_or(|(size, _)| larger < size) {
            let side = Side::Right;
            best = Some((
                larger,
                SplitPoint {
                    side,
                    first_upper,
                    new_is_upper,
                },
            ));
        }
    };
    let mut new_is_upper = prev != layout::infimum(page);
    if !new_is_upper {
        lower += new_size;
        consider(lower, layout::first(page)?, false);
    }
    for rec in layout::records(page) {
        let rec = rec?;
        offsets.compute(page, rec, index)?;
        lower += offsets.size();
        let next = layout::next(page, rec)?;
        consider(lower, next, new_is_upper);
        if rec == prev {
            new_is_upper = false;
            lower += new_size;
            consider(lower, next, false);
        }
    }
    match best {
        Some((_, point)) => Ok(point),
        None => Err(corrupt(page, "a page that can't be split")),
    }
}

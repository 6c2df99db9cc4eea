//! Predicate locks: the wish that no rectangle appears in an area of an R-tree that a reader has
//! searched. Here the predicates and when one must wait for another; queues by page are to stand in
//! `LockTable` beside those of records and tables when R-trees come.

/// How the rectangles of rows that a search returns lie to the rectangle it asks about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Relation {
    /// The row's rectangle contains the asked one.
    Contains,
    /// They have a point in common.
    Intersects,
    /// The row's rectangle lies within the asked one.
    Within,
    /// They have no point in common.
    Disjoint,
    /// They are the same.
    Equals,
}

/// A minimum bounding rectangle. Edges belong to it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rectangle {
    /// Smallest and largest x.
    pub x: (f64, f64),
    /// Smallest and largest y.
    pub y: (f64, f64),
}

impl Rectangle {
    fn contains(&self, other: &Rectangle) -> bool {
        let within =
            |outer: (f64, f64), inner: (f64, f64)| outer.0 <= inner.0 && inner.1 <= outer.1;
        within(self.x, other.x) && within(self.y, other.y)
    }

    fn intersects(&self, other: &Rectangle) -> bool {
        let meet = |a: (f64, f64), b: (f64, f64)| a.0 <= b.1 && b.0 <= a.1;
        meet(self.x, other.x) && meet(self.y, other.y)
    }
}

/// What a search has seen: the rows whose rectangle has `relation` to `area`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Predicate {
    /// The rectangle asked about.
    pub area: Rectangle,
    /// How rows lie to it.
    pub relation: Relation,
}

impl Predicate {
    /// True if a row with this rectangle is one that the search would return.
    pub fn admits(&self, row: &Rectangle) -> bool {
        match self.relation {
            Relation::Contains => row.contains(&self.area),
            Relation::Intersects => row.intersects(&self.area),
            Relation::Within => self.area.contains(row),
            Relation::Disjoint => !row.intersects(&self.area),
            Relation::Equals => *row == self.area,
        }
    }
}

/// A lock on a predicate, or the wish to insert a rectangle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PredicateLock {
    /// A search that is to see the same rows again.
    Search(Predicate),
    /// An insert.
    Insert(Rectangle),
}

impl PredicateLock {
    /// True if a request for this must wait for `other`, another owner's. Only inserts wait, and only
    /// for searches: two searches never hinder each other, as gap locks do not, and rows themselves
    /// have record locks.
    pub fn waits_for(&self, other: &PredicateLock) -> bool {
        match (self, other) {
            (PredicateLock::Insert(row), PredicateLock::Search(predicate)) => predicate.admits(row),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rectangle(x: (f64, f64), y: (f64, f64)) -> Rectangle {
        Rectangle { x, y }
    }

    #[test]
    fn an_insert_waits_for_the_searches_that_would_see_it() {
        let area = rectangle((0.0, 10.0), (0.0, 10.0));
        let inside = rectangle((2.0, 3.0), (2.0, 3.0));
        let around = rectangle((-1.0, 11.0), (-1.0, 11.0));
        let across = rectangle((10.0, 12.0), (5.0, 6.0));
        let away = rectangle((11.0, 12.0), (0.0, 10.0));
        // Which of inside, around, across, away, the area itself a search returns.
        let expected = [
            (Relation::Contains, [false, true, false, false, true]),
            (Relation::Intersects, [true, true, true, false, true]),
            (Relation::Within, [true, false, false, false, true]),
            (Relation::Disjoint, [false, false, false, true, false]),
            (Relation::Equals, [false, false, false, false, true]),
        ];
        for (relation, answers) in expected {
            let search = PredicateLock::Search(Predicate { area, relation });
            let rows = [inside, around, across, away, area];
            let waits = rows.map(|row| PredicateLock::Insert(row).waits_for(&search));
            assert_eq!(waits, answers, "{relation:?}");
        }
    }

    #[test]
    fn searches_wait_for_nobody_and_inserts_not_for_each_other() {
        let area = rectangle((0.0, 1.0), (0.0, 1.0));
        let relation = Relation::Intersects;
        let search = PredicateLock::Search(Predicate { area, relation });
        let insert = PredicateLock::Insert(area);
        assert!(!search.waits_for(&search));
        assert!(!search.waits_for(&insert));
        assert!(!insert.waits_for(&insert));
    }
}

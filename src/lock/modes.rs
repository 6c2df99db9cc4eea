//! Lock modes and their conflict matrices, InnoDB's.

/// Shared or exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Strength {
    /// Others may read.
    Shared,
    /// Nobody else may lock.
    Exclusive,
}

/// Which part of "the record and the gap before it" a lock covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RecordKind {
    /// The record and the gap before it. On the supremum it is a gap lock.
    NextKey,
    /// The gap before the record only.
    Gap,
    /// The record only.
    Record,
    /// The wish to insert into the gap before the record.
    InsertIntention,
}

/// A record lock's mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct RecordMode {
    /// Shared or exclusive.
    pub strength: Strength,
    /// What it covers.
    pub kind: RecordKind,
}

impl RecordMode {
    /// Exclusive, the record only.
    pub const X_RECORD: RecordMode = RecordMode::new(Strength::Exclusive, RecordKind::Record);
    /// Shared, the record only.
    pub const S_RECORD: RecordMode = RecordMode::new(Strength::Shared, RecordKind::Record);
    /// Exclusive, record and gap.
    pub const X_NEXT_KEY: RecordMode = RecordMode::new(Strength::Exclusive, RecordKind::NextKey);
    /// Shared, record and gap.
    pub const S_NEXT_KEY: RecordMode = RecordMode::new(Strength::Shared, RecordKind::NextKey);
    /// The wish to insert.
    pub const INSERT: RecordMode =
        RecordMode::new(Strength::Exclusive, RecordKind::InsertIntention);

    /// Puts both halves together.
    pub const fn new(strength: Strength, kind: RecordKind) -> RecordMode {
        RecordMode { strength, kind }
    }

    /// True if a request of this mode must wait for `other`, another owner's lock on the same
    /// record, granted or waiting. `supremum`: the record is the page's supremum, where
    /// next-key locks are gap locks.
    pub fn waits_for(self, other: RecordMode, supremum: bool) -> bool {
        use RecordKind::{Gap, InsertIntention, Record};
        if self.strength == Strength::Shared && other.strength == Strength::Shared {
            return false;
        }
        if self.kind != InsertIntention && (self.kind == Gap || supremum) {
            return false;
        }
        if self.kind != InsertIntention && other.kind == Gap {
            return false;
        }
        if matches!(self.kind, Gap | InsertIntention) && other.kind == Record {
            return false;
        }
        other.kind != InsertIntention
    }

    /// True if holding `self` makes a request for `wanted` by the same owner needless.
    pub fn covers(self, wanted: RecordMode, supremum: bool) -> bool {
        use RecordKind::{InsertIntention, NextKey};
        if self.kind == InsertIntention || wanted.kind == InsertIntention {
            return false;
        }
        let strong = self.strength == Strength::Exclusive || wanted.strength == Strength::Shared;
        strong && (self.kind == NextKey || self.kind == wanted.kind || supremum)
    }
}

/// A table lock's mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum TableMode {
    /// Intention to lock rows shared.
    IntentionShared,
    /// Intention to lock rows exclusively.
    IntentionExclusive,
    /// The whole table, shared.
    Shared,
    /// The whole table, exclusively.
    Exclusive,
    /// The AUTO_INCREMENT counter for the length of a statement.
    AutoInc,
}

impl TableMode {
    /// True for intentions to lock rows.
    pub fn is_intention(self) -> bool {
        matches!(
            self,
            TableMode::IntentionShared | TableMode::IntentionExclusive
        )
    }

    /// True if both may be held at once by two owners.
    pub fn compatible(self, other: TableMode) -> bool {
        use TableMode::{
            AutoInc, Exclusive, IntentionExclusive as Ix, IntentionShared as Is, Shared,
        };
        match (self, other) {
            (Exclusive, _) | (_, Exclusive) => false,
            (AutoInc, AutoInc | Shared) | (Shared, AutoInc) => false,
            (Shared, Ix) | (Ix, Shared) => false,
            (Is | Ix | AutoInc | Shared, Is | Ix | AutoInc | Shared) => true,
        }
    }

    /// True if holding `self` makes a request for `wanted` needless.
    pub fn covers(self, wanted: TableMode) -> bool {
        use TableMode::{
            AutoInc, Exclusive, IntentionExclusive as Ix, IntentionShared as Is, Shared,
        };
        match self {
            Exclusive => true,
            Shared => matches!(wanted, Shared | Is),
            Ix => matches!(wanted, Ix | Is),
            Is => wanted == Is,
            AutoInc => wanted == AutoInc,
        }
    }

    /// InnoDB's name, as INNODB_LOCKS shows it.
    pub fn name(self) -> &'static str {
        match self {
            TableMode::IntentionShared => "IS",
            TableMode::IntentionExclusive => "IX",
            TableMode::Shared => "S",
            TableMode::Exclusive => "X",
            TableMode::AutoInc => "AUTO_INC",
        }
    }
}

impl RecordMode {
    /// InnoDB's name, as INNODB_LOCKS shows it.
    pub fn name(self) -> &'static str {
        let gap = matches!(self.kind, RecordKind::Gap | RecordKind::InsertIntention);
        match (self.strength, gap) {
            (Strength::Shared, false) => "S",
            (Strength::Shared, true) => "S,GAP",
            (Strength::Exclusive, false) => "X",
            (Strength::Exclusive, true) => "X,GAP",
        }
    }
}

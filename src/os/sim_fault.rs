//! What can go wrong with a call of the simulation.

/// A call that a fault may hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `File::read_at`.
    Read,
    /// `File::write_at`, `truncate`, `punch`.
    Write,
    /// `File::sync_data`, `Vfs::sync_dir`.
    Sync,
    /// `File::allocate`.
    Allocate,
    /// Opening, creating, renaming, removing, listing.
    Name,
}

/// What hits the n-th call, or the first call after it that can fail so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blow {
    /// EIO, once.
    Eio,
    /// EIO from there on, for all calls.
    EioForGood,
    /// ENOSPC, once; whatever needs room.
    Enospc,
    /// ENOSPC from there on.
    EnospcForGood,
    /// The transfer stops half-way; the caller must go on.
    Short,
    /// EINTR, three times.
    Eintr,
    /// EIO of a sync, once.
    Fsync,
}

/// The call that was hit first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Struck {
    /// Its kind.
    pub call: Call,
    /// What the system would call it.
    pub name: &'static str,
    /// On which file or directory.
    pub path: String,
    /// Calls before it since the disk was made.
    pub number: u64,
}

impl std::fmt::Display for Struck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}, call {}", self.name, self.path, self.number)
    }
}

impl Blow {
    /// True if it hits all calls from the first one on.
    pub fn is_for_good(self) -> bool {
        matches!(self, Blow::EioForGood | Blow::EnospcForGood)
    }

    /// All of them.
    pub const ALL: [Blow; 7] = [
        Blow::Eio,
        Blow::EioForGood,
        Blow::Enospc,
        Blow::EnospcForGood,
        Blow::Short,
        Blow::Eintr,
        Blow::Fsync,
    ];

    /// True if it can hit such a call; `creates`: a call that makes a name.
    pub(super) fn can_hit(self, call: Call, creates: bool) -> bool {
        match self {
            Blow::Eio | Blow::EioForGood => true,
            Blow::Enospc | Blow::EnospcForGood => {
                matches!(call, Call::Write | Call::Allocate) || creates
            }
            Blow::Short | Blow::Eintr => matches!(call, Call::Read | Call::Write),
            Blow::Fsync => call == Call::Sync,
        }
    }
}

//! What the engine asks of the host beside collations: log, clock, kill check, warnings.

use std::time::{Duration, Instant, SystemTime};

/// What the host gave as context of a session; 0 if it gave none. Only passed back to the host.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SessionCtx(pub usize);

/// Importance of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Something failed.
    Error = 1,
    /// Something is not as it should be.
    Warning = 2,
    /// Worth knowing.
    Note = 3,
    /// For developers.
    Debug = 4,
}

/// Callbacks. `log` and the clocks are *leaf* callbacks: any thread, also under latches. All others
/// are *free*: never under a latch. Each has a sensible default for hosts that lack it.
pub trait Callbacks: Send + Sync {
    /// One line of the engine's log. Leaf.
    fn log(&self, level: Level, text: &str) {
        let _ = (level, text);
    }

    /// Time since the epoch. Leaf.
    fn wall_clock(&self) -> Duration {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
    }

    /// Time from any start, never going back. Leaf.
    fn monotonic(&self) -> Instant {
        Instant::now()
    }

    /// True if the session's statement should end. By the thread that drives the session.
    fn kill_check(&self, session: SessionCtx) -> bool {
        let _ = session;
        false
    }

    /// A warning for the session's user; `code` is MySQL's error number.
    fn warning(&self, session: SessionCtx, level: Level, code: u32, text: &str) {
        let _ = (session, level, code, text);
    }

    /// Appends the text of the session's running statement, at most `bytes_max` bytes. Any thread;
    /// the session must not be closed meanwhile.
    fn query_text(&self, session: SessionCtx, bytes_max: usize, text: &mut String) {
        let _ = (session, bytes_max, text);
    }

    /// The session is about to wait for another one (or for something that is no session).
    fn wait_report(&self, waiter: SessionCtx, blocker: Option<SessionCtx>) {
        let _ = (waiter, blocker);
    }

    /// An engine thread that will use free callbacks begins; what comes back goes to
    /// `thread_detach`.
    fn thread_attach(&self, name: &str) -> usize {
        let _ = name;
        0
    }

    /// That thread ends.
    fn thread_detach(&self, token: usize) {
        let _ = token;
    }
}

/// A host without callbacks, for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCallbacks;

impl Callbacks for NoCallbacks {}

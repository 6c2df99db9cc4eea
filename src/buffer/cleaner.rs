//! The pool's side of the page cleaner: `engine` runs the thread and decides how much, the pool knows
//! what.

use std::time::Duration;

use super::pool::Pool;

impl Pool {
    /// Sleeps until somebody needs the cleaner, at most `timeout`; true if somebody does.
    pub fn wait_for_cleaner_work(&self, timeout: Duration) -> bool {
        let wanted = self.cleaner_wanted.wait(timeout);
        self.advance_tick();
        wanted
    }

    /// Wakes the cleaner.
    pub fn wake_cleaner(&self) {
        self.cleaner_wanted.set();
    }
}

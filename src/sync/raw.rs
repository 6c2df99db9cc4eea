//! What everything here is made of: std's atomics, mutexes and waits.
//!
//! The models of tests/models compile the files beside this one with a simulated scheduler's instead.

pub use std::hint::spin_loop;
pub use std::sync::atomic;
pub use std::sync::{Condvar, Mutex, MutexGuard, TryLockError};
pub use std::thread_local;

//! The scheduler's primitives: each use is a point where another task may go on.

pub use shuttle::hint::spin_loop;
pub use shuttle::sync::atomic;
pub use shuttle::sync::{Condvar, Mutex, MutexGuard, TryLockError};
pub use shuttle::thread_local;

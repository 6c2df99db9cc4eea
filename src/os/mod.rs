//! Files, threads, aligned memory and crash points; real and simulated.
//!
//! Knows the operating system; knows nothing of pages or logs.
//!
//! Invariants
//!  1. `read_at` and `write_at` transfer all bytes or fail: short transfers and EINTR end here.
//!  2. What `sync_data` reported as done survives a power cut; a failed one is never retried by
//!     this layer, and its caller must not retry it either (protocol F5).
//!  3. `Vfs` is the only door to the file system: a simulated one replays every fault by seed.
//!  4. An engine thread is made by `Threads` and joined before the library may go.
//!
//! Latches: `Rank::Leaf` inside the simulation and the thread list; never held over a system call
//!          that waits for a device.
//! Crash:   the place where a power cut is simulated (sim.rs) and a kill is planted
//!          (crash_point.rs).
//! Read:    file.rs, real.rs, sim.rs, sim_fault.rs, sim_disk.rs, sim_record.rs, crash_point.rs,
//!          planted.rs, thread.rs, aligned.rs, aio.rs, aio_ring.rs, aio_threads.rs, huge.rs, limits.rs,
//!          slab.rs.

/// Many writes at once.
pub mod aio;

mod aio_ring;

mod aio_threads;

/// Memory at addresses that direct I/O accepts.
pub mod aligned;

/// Local time as text.
pub mod clock;

/// Named places where a test stops the process or panics.
pub mod crash_point;

/// The traits: a file, a file system.
pub mod file;

/// Memory of the machine, huge pages.
pub mod huge;

/// What the system allows the process.
pub mod limits;

/// Bugs that tests plant by name.
pub mod planted;

/// The operating system's files.
pub mod real;

/// Files in memory, with seeded faults and power cuts.
pub mod sim;

mod sim_disk;

mod sim_fault;

/// Recorded runs of the simulation, and the states they pass through.
pub mod sim_record;

/// Memory that is filled once.
pub mod slab;

/// Engine threads.
pub mod thread;

#[cfg(test)]
mod tests;

pub use aio::{Aio, WriteAt};
pub use aligned::AlignedBuf;
pub use crash_point::CrashPoints;
pub use file::{File, FileLock, OpenMode, Vfs};
pub use huge::memory_bytes;
pub use limits::open_files_max;
pub use planted::planted;
pub use real::RealVfs;
pub use thread::Threads;

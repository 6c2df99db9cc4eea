//! The engine assembled: open, close, sessions, table handles, background work.
//!
//! Knows every layer below; knows nothing of C, of SQL, or of a server. The C ABI (`abi`) and the
//! tests drive it through three types: [`Engine`], [`Session`], [`TableHandle`].
//!
//! Invariants
//!  1. All state hangs on one `Engine`; two engines in one process share nothing.
//!  2. A session is driven by one thread at a time; so are the handles that are bound to it.
//!     `Interrupter` is the one part of a session that any thread may touch.
//!  3. When a call returns Deadlock, LockTableFull or RecordChanged, the transaction has been
//!     rolled back and the session answers TransactionAborted until `rollback`.
//!  4. No host callback but a leaf one runs under a latch.
//!
//! Latches: the session list and the state are taken with nothing else held.
//! Crash:   `open` recovers; a frozen engine closes without writing.
//! Read:    types.rs, open.rs, places.rs, create.rs, storage.rs, transactions.rs, master.rs,
//!          cleaner.rs, pace.rs, maker.rs, session.rs, handle.rs, autoinc.rs, bulk.rs, stats.rs, check.rs, tables.rs,
//!          indexes.rs, locks.rs, report.rs, set.rs, memory.rs, pool_list.rs.

#![forbid(unsafe_code)]

mod autoinc;
mod bulk;
mod check;
mod cleaner;
mod columns;
mod create;
mod handle;
mod indexes;
mod locks;
mod maker;
mod master;
mod memory;
mod open;
mod pace;
#[cfg(test)]
mod pace_tests;
mod places;
mod pool_list;
mod report;
mod session;
mod set;
mod stats;
mod storage;
mod tables;
mod transactions;
mod types;

pub use crate::recovery::Report as RecoveryReport;
pub use handle::TableHandle;
pub use memory::MemoryRow;
pub use open::Engine;
pub use report::{LockReport, LockRow, LockWaitRow, TransactionRow};
pub use session::{Interrupter, Session};
pub use set::SetError;
pub use types::{
    Batch, Bound, CheckFinding, CreateOptions, Direction, EngineConfig, Extra, Find, HostServices,
    Isolation, Limits, LockMode, OpenFlags, RowFormat, SessionConfig, SessionState, Severity,
    StatementFlags, TableDescription, TableFlags, TableInfo, TableStats, TableUse, TrxFlags, Under,
    Wait, Xid,
};

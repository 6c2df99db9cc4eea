//! The C ABI: one exported symbol, a table of functions, handles, codes, and the panic boundary.
//!
//! Knows the C headers (bindgen reads them) and the engine's three types; knows nothing of pages,
//! locks or logs. Each file stands beside the header part of its name: `include/xtradb/table.h`,
//! `table.rs`, `tests/abi/table.c`.
//!
//! Invariants
//!  1. Every function body runs inside `edge`: errors become codes, panics become XT_INTERNAL.
//!  2. A handle is a number that names a cell of `handle::CELLS`; no pointer of the host is followed
//!     to find out what it is, so a closed or foreign handle is an error and nothing else.
//!  3. Session and table are entered through a busy flag: two threads in one session at a time are
//!     an error, never two `&mut`.
//!  4. Out-parameters are written only on success, but for what the headers name.
//!  5. Nothing here has a thread-local or a destructor at thread exit.
//!
//! Latches: `Rank::None` for lists of handles; nothing is held while the engine runs, except that
//!          `query_text` holds the list of session contexts.
//! Crash:   nothing here is on disk.
//! Read:    edge.rs, handle.rs, status.rs, api.rs, engine.rs, session.rs, table.rs, scan.rs.

/// The headers' types and constants, for hosts written in Rust and for tests.
#[allow(
    missing_docs,
    non_camel_case_types,
    reason = "generated from include/xtradb.h"
)]
pub mod c {
    include!(concat!(env!("OUT_DIR"), "/xtradb_h.rs"));
}

mod api;
mod arguments;
mod catalog;
mod ddl;
mod edge;
mod engine;
mod handle;
mod host;
mod index;
mod info;
mod scan;
mod session;
mod settings;
mod status;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod write;

pub use api::xtradb_api;

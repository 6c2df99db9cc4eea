//! Settings under InnoDB's names, typed and validated; counters under InnoDB's status names.
//!
//! Knows names, ranges and defaults; knows nothing of what they mean to the layers above.
//!
//! Invariants
//!  1. A stored value is always inside its definition's range.
//!  2. `SETTINGS` and the names of counters are sorted; a look-up is a binary search.
//!  3. Reading a number is one relaxed load: the setting is advice, no other memory hangs on it.
//!
//! Latches: `Leaf` only, for text values.
//! Crash:   nothing here is on disk.
//! Read:    value.rs, table.rs, store.rs, session.rs, counters.rs.

#![forbid(unsafe_code)]

mod counters;
pub mod ids;
mod session;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use counters::{Counter, Counters};
pub use session::SessionSettings;
pub use store::{SettingId, Settings};
pub use table::SETTINGS;
pub use value::{Definition, Flags, Kind, SettingError, Value, flags};

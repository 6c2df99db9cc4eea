//! Files of src/ compiled as they stand, but with the primitives of a simulated scheduler: `sync/raw.rs`
//! and `sync/futex.rs` are replaced, everything else is the engine's.

#![allow(dead_code, unexpected_cfgs, reason = "the models use a part of it")]

#[path = "../../src/words/mod.rs"]
pub mod words;

pub mod sync;

pub mod os {
    //! Nothing is planted in a model.
    pub fn planted(_: &str) -> bool {
        false
    }
}

pub mod page {
    //! What the lock table knows of records that move.
    pub mod list {
        use crate::words::HeapNo;

        /// A record's heap number before and after.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Moved {
            /// Before.
            pub from: HeapNo,
            /// After.
            pub to: HeapNo,
        }
    }
}

#[path = "../../src/lock/mod.rs"]
pub mod lock;

pub mod buffer;

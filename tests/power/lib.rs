//! The tests of this package; see mod.rs.

#![cfg(test)]

mod planted;
#[path = "mod.rs"]
mod power;
#[path = "../support"]
mod support {
    #![allow(
        dead_code,
        reason = "a toolbox: not every kind of test uses every tool"
    )]
    pub mod planted;
    pub mod scratch;
    pub mod seed;
}

//! All tests that need more than one module of the crate, in one binary: each links the whole engine.

mod abi;
mod bench;
mod corrupt;
mod crash;
mod datadir;
mod engine;
mod fuzz;
mod host;
mod redo;
mod stock;
#[allow(
    dead_code,
    reason = "a toolbox: not every kind of test uses every tool"
)]
mod support;
mod tpcc;

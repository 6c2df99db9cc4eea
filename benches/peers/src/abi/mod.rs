//! Everything that is not safe Rust: the two C interfaces, LMDB's open, a few system calls.
//!
//! Nothing else in this package says `unsafe`. Each file offers safe functions over one thing:
//! `xt` the C ABI of xtradb as any C host would use it, `rocks` RocksDB's C API, `lmdb` the one call
//! of heed that maps a file, `system` what the standard library lacks.

pub mod lmdb;
pub mod rocks;
pub mod system;
pub mod xt;

//! The engines, each behind `engine::Engine`; how each is set up stands in its file, and in one
//! sentence in `HOW`.

mod btree;
mod fjall;
mod lmdb;
mod ours;
mod redb;
mod rocksdb;
mod sqlite;

use crate::engine::{Config, Engine, Result};

/// Name, and how it is set up, in the order of the tables.
pub const HOW: [(&str, &str); 7] = [
    ("xtradb", ours::HOW),
    ("lmdb", lmdb::HOW),
    ("rocksdb", rocksdb::HOW),
    ("fjall", fjall::HOW),
    ("redb", redb::HOW),
    ("sqlite", sqlite::HOW),
    ("btreemap", btree::HOW),
];

pub fn open(name: &str, config: &Config) -> Result<Box<dyn Engine>> {
    std::fs::create_dir_all(&config.dir)?;
    Ok(match name {
        "xtradb" => Box::new(ours::open(config)?),
        "lmdb" => Box::new(lmdb::open(config)?),
        "rocksdb" => Box::new(rocksdb::open(config)?),
        "fjall" => Box::new(fjall::open(config)?),
        "redb" => Box::new(redb::open(config)?),
        "sqlite" => Box::new(sqlite::open(config)?),
        "btreemap" => Box::new(btree::open()),
        _ => return Err(format!("no engine is called {name}").into()),
    })
}

//! The standard library's BTreeMap: what a tree in memory costs that keeps no promise.

use crate::engine::{Engine, Result, Session};
use crate::rows::{self, VALUE_BYTES, Value};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub const HOW: &str = "std::collections::BTreeMap<u64, [u8; 200]> behind one RwLock, held through a \
    read transaction; nothing is written anywhere. A yardstick for point reads and scans only.";

#[derive(Default)]
pub struct Tree(RwLock<BTreeMap<u64, Value>>);

pub fn open() -> Tree {
    Tree::default()
}

impl Tree {
    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, Value>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Tree {
    fn with_session(&self, work: &mut dyn FnMut(&mut dyn Session) -> Result<()>) -> Result<()> {
        work(&mut Access {
            tree: self,
            view: None,
        })
    }
}

struct Access<'t> {
    tree: &'t Tree,
    view: Option<RwLockReadGuard<'t, BTreeMap<u64, Value>>>,
}

impl Session for Access<'_> {
    fn read_begin(&mut self) -> Result<()> {
        let view = self.tree.0.read();
        self.view = Some(view.unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn read_end(&mut self) -> Result<()> {
        self.view = None;
        Ok(())
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let view = self.view.as_ref().ok_or("no read transaction")?;
        Ok(view.get(&key).map(|value| rows::digest(value)))
    }

    fn scan(&mut self) -> Result<(u64, u64)> {
        let view = self.view.as_ref().ok_or("no read transaction")?;
        Ok(view.values().fold((0, 0), |(rows, sum), value| {
            (rows + 1, sum ^ rows::digest(value))
        }))
    }

    fn load(&mut self, keys: &[u64]) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        let mut tree = self.tree.write();
        for &key in keys {
            rows::fill(&mut value, key, 0);
            tree.insert(key, value);
        }
        Ok(())
    }

    fn insert(&mut self, key: u64) -> Result<()> {
        self.update(key, 0)
    }

    fn update(&mut self, key: u64, version: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        rows::fill(&mut value, key, version);
        self.tree.write().insert(key, value);
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        self.tree.write().remove(&key);
        Ok(())
    }
}

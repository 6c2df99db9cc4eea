//! The place for what changes a page's bytes between the pool and its file: page compression,
//! encryption. A tablespace has no transform unless one is set.

use std::fmt::Debug;

use super::tablespace::Space;
use crate::sync::Arc;
use crate::words::{PageNo, Result};

/// Turns the bytes of a frame into those of the file, and back.
///
/// The page header as far as the page LSN stays readable, as in InnoDB's own encrypted and compressed
/// pages: the log is made durable up to it, and recovery compares it.
pub trait PageTransform: Debug + Send + Sync {
    /// Changes the write buffer's copy of a page, before its checksum is stamped. The frame itself is
    /// never touched.
    fn encode(&self, page: PageNo, copy: &mut [u8]);

    /// Undoes `encode` on a page as read, after its checksum was verified.
    ///
    /// Errors: `Corrupt` if the bytes cannot be what `encode` made.
    fn decode(&self, page: PageNo, bytes: &mut [u8]) -> Result<()>;
}

impl Space {
    /// Every page goes through `transform` from here on. Set once, before the first read.
    pub fn set_transform(&self, transform: Arc<dyn PageTransform>) {
        if self.transform.set(transform).is_err() {
            panic!("the transform of {} is set twice", self.path());
        }
    }

    /// The write side, on a copy that the writer owns.
    pub fn encode(&self, page: PageNo, copy: &mut [u8]) {
        if let Some(transform) = self.transform.get() {
            transform.encode(page, copy);
        }
    }

    /// The read side.
    ///
    /// Errors: as `PageTransform::decode`.
    pub fn decode(&self, page: PageNo, bytes: &mut [u8]) -> Result<()> {
        match self.transform.get() {
            Some(transform) => transform.decode(page, bytes),
            None => Ok(()),
        }
    }
}

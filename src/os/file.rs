//! The traits: a file and a file system, real (`real.rs`) or simulated (`sim.rs`).

use std::io;

use crate::sync::Arc;
use crate::words::{Error, Result};

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenMode {
    /// Writing is allowed.
    pub write: bool,
    /// Bypass the system's cache (O_DIRECT) if the file system can.
    pub direct: bool,
}

impl OpenMode {
    /// Reading only, through the system's cache.
    pub const READ: OpenMode = OpenMode {
        write: false,
        direct: false,
    };
    /// Reading and writing, through the system's cache.
    pub const WRITE: OpenMode = OpenMode {
        write: true,
        direct: false,
    };
    /// Reading and writing, past the system's cache.
    pub const DIRECT: OpenMode = OpenMode {
        write: true,
        direct: true,
    };
}

/// An open file. All methods may be called by many threads at once.
pub trait File: Send + Sync + std::fmt::Debug {
    /// The path it was opened by.
    fn path(&self) -> &str;

    /// Fills `buf` from `offset`. Fewer bytes in the file: `Error::Io` with errno 0.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;

    /// Fills the parts, one behind the other, from `offset`: in one transfer where the system can.
    /// Errors as `read_at`.
    fn read_parts_at(&self, parts: &mut [&mut [u8]], mut offset: u64) -> Result<()> {
        for part in parts {
            self.read_at(part, offset)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Writes `buf` at `offset`, all of it.
    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()>;

    /// Makes all that was written survive a power cut, the size included. An error is final: what
    /// was written since the last success is lost or not, nobody knows (F5).
    fn sync_data(&self) -> Result<()>;

    /// Bytes in the file.
    fn size(&self) -> Result<u64>;

    /// Makes the file at least `to` bytes long with blocks allocated behind each byte; new bytes
    /// read as zeros. ENOSPC is `Error::Io` with that errno, and the size is as it was.
    fn allocate(&self, to: u64) -> Result<()>;

    /// Makes the file exactly `to` bytes long.
    fn truncate(&self, to: u64) -> Result<()>;

    /// Gives the blocks of a range back; the range reads as zeros.
    /// `Error::Unsupported` where the file system cannot.
    fn punch(&self, offset: u64, len: u64) -> Result<()>;

    /// Offsets, lengths and addresses that are multiples of this are transferred without a copy;
    /// 1 for a file in the system's cache. Other transfers work, too, but slower.
    fn alignment(&self) -> usize;

    /// The descriptor, if `bytes` can be written at `offset` through it as they are; `None` where
    /// only `write_at` knows how.
    fn descriptor(&self, bytes: &[u8], offset: u64) -> Option<i32> {
        let _ = (bytes, offset);
        None
    }

    /// Where, from `offset` on, the first byte stands whose block was allocated and never written; `None`
    /// if there is none, or nobody can tell. The first write of such a block costs the next sync more.
    fn unwritten_from(&self, offset: u64) -> Option<u64> {
        let _ = offset;
        None
    }

    /// True if the file lies on a disk that rotates: a seek costs more than a write. False where nobody
    /// can tell.
    fn rotates(&self) -> bool {
        false
    }

    /// Takes the write lock that InnoDB takes on its files, so that no other server opens them:
    /// fails with `Error::Busy` if anybody has it, this process included. Falls with the result.
    fn lock(&self) -> Result<Box<dyn FileLock>>;
}

/// Holds the lock of a file until it is dropped.
pub trait FileLock: Send + Sync + std::fmt::Debug {}

/// A file system. Paths are as the host gave them: absolute, or relative to the working directory.
pub trait Vfs: Send + Sync + std::fmt::Debug {
    /// Opens a file that is there.
    fn open(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>>;

    /// Makes a file that is not there (EEXIST otherwise) and opens it for writing.
    fn create(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>>;

    /// True if there is a file or directory of that name.
    fn exists(&self, path: &str) -> Result<bool>;

    /// Renames a file; replaces what was there. Durable after `sync_dir` of the directories.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &str) -> Result<()>;

    /// Names in a directory, "." and ".." left out, sorted.
    fn list_dir(&self, path: &str) -> Result<Vec<String>>;

    /// Makes a directory; fine if it is there.
    fn create_dir(&self, path: &str) -> Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &str) -> Result<()>;

    /// Makes creations, renames and removals in a directory survive a power cut.
    fn sync_dir(&self, path: &str) -> Result<()>;

    /// True if its files have descriptors: the kernel can write batches.
    fn has_descriptors(&self) -> bool {
        true
    }

    /// The whole content of a small file.
    fn read_small(&self, path: &str) -> Result<Vec<u8>> {
        const SMALL: u64 = 64 << 20;
        let file = self.open(path, OpenMode::READ)?;
        let size = file.size()?;
        if size > SMALL {
            return Err(Error::invalid(format!(
                "{path} has {size} bytes: too large to load"
            )));
        }
        let mut bytes = vec![0; size as usize];
        file.read_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// Fills `buf` by `call`, which reads some bytes at an offset as pread does: short transfers and EINTR
/// end here.
///
/// # Errors
/// What `call` gives; an error without errno if the file ends before.
pub fn read_all(
    buf: &mut [u8],
    offset: u64,
    mut call: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < buf.len() {
        match call(&mut buf[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `buf` by `call`, which writes some bytes at an offset as pwrite does. A direct
/// transfer that stops inside a block goes on at the block's begin: `alignment`.
///
/// # Errors
/// What `call` gives; `WriteZero` if it does not get on.
pub fn write_all(
    buf: &[u8],
    offset: u64,
    alignment: usize,
    mut call: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    const IDLE_MAX: u32 = 10;
    let (mut done, mut idle) = (0, 0);
    while done < buf.len() {
        match call(&buf[done..], offset + done as u64) {
            Ok(n) if done + n == buf.len() => return Ok(()),
            Ok(n) if n >= alignment => {
                done += n / alignment * alignment;
                idle = 0;
            }
            Ok(_) if idle < IDLE_MAX => idle += 1,
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// True if the error is the operating system's `errno`.
pub fn is_errno(error: &Error, errno: i32) -> bool {
    matches!(error, Error::Io(failure) if failure.errno == errno)
}

/// The directory part of a path: up to the last slash, "." if there is none.
pub fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) => "/",
        Some(at) => &path[..at],
        None => ".",
    }
}

/// Joins a directory and a name; an absolute name stands alone.
pub fn join(dir: &str, name: &str) -> String {
    if name.starts_with('/') || dir.is_empty() {
        return name.to_string();
    }
    let dir = if dir.len() > 1 {
        dir.trim_end_matches('/')
    } else {
        dir
    };
    if dir == "/" {
        format!("/{name}")
    } else {
        format!("{dir}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_interrupted_transfers_go_on_at_whole_blocks() {
        let mut at = Vec::new();
        let mut answers = vec![
            Err(io::Error::from_raw_os_error(libc::EINTR)),
            Ok(1000),
            Ok(5000),
            Ok(4096),
        ];
        answers.reverse();
        let call = |buf: &[u8], offset: u64| {
            at.push((offset, buf.len()));
            answers.pop().unwrap_or(Ok(buf.len()))
        };
        write_all(&[0; 16384], 4096, 4096, call).expect("written");
        let whole = (4096, 16384);
        assert_eq!(at, [whole, whole, whole, (8192, 12288), (12288, 8192)]);
        let stuck = write_all(&[0; 8192], 0, 4096, |_, _| Ok(0));
        assert_eq!(stuck.expect_err("stuck").kind(), io::ErrorKind::WriteZero);
    }

    #[test]
    fn a_read_goes_on_until_the_file_ends() {
        let mut buf = [0; 10];
        let call = |buf: &mut [u8], offset: u64| {
            let n = buf.len().min(3).min(8usize.saturating_sub(offset as usize));
            buf[..n].fill(offset as u8 + 1);
            Ok(n)
        };
        read_all(&mut buf[..8], 0, call).expect("read");
        assert_eq!(buf[..8], [1, 1, 1, 4, 4, 4, 7, 7]);
        let ended = read_all(&mut buf, 0, call).expect_err("too short");
        assert_eq!(ended.raw_os_error(), None);
    }

    #[test]
    fn paths_join_and_part() {
        assert_eq!(join("./", "ibdata1"), "./ibdata1");
        assert_eq!(join("/data", "/else/ibdata1"), "/else/ibdata1");
        assert_eq!(join("/", "x"), "/x");
        assert_eq!(parent("./t/w.ibd"), "./t");
        assert_eq!(parent("w.ibd"), ".");
        assert_eq!(parent("/w.ibd"), "/");
    }
}

//! The operating system's files.
//!
//! The lock on a file is an *open file description* lock: unlike the process-wide one that InnoDB
//! takes (F_SETLK) it does not fall when another descriptor of the file closes, it also excludes a
//! second engine in this process – a build of ours that was not yet unloaded, for one – and it
//! conflicts with F_SETLK locks of other processes in both directions. So no registry is needed.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};

use super::aligned::AlignedBuf;
use super::file::{File, FileLock, OpenMode, Vfs, read_all, write_all};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::words::{Error, Result};

/// Transfers of a direct file are multiples of this; fits every device with blocks up to 4 KiB.
const DIRECT_ALIGNMENT: usize = 4096;

/// Parts of one transfer: less than any system's limit (UIO_MAXIOV).
const PARTS_MAX: usize = 1024;

/// The operating system's file system.
#[derive(Debug, Default)]
pub struct RealVfs;

#[derive(Debug)]
struct RealFile {
    path: String,
    file: fs::File,
    /// `DIRECT_ALIGNMENT` while the descriptor is O_DIRECT, else 1.
    alignment: AtomicUsize,
}

#[derive(Debug)]
struct RealLock {
    /// The lock lives as long as any descriptor of the open file description: this is a duplicate.
    _descriptor: OwnedFd,
}

impl FileLock for RealLock {}

fn failed(operation: &'static str, path: &str, error: &std::io::Error) -> Error {
    Error::io(operation, path, error.raw_os_error().unwrap_or(0))
}

fn to_iovec(part: &mut [u8]) -> libc::iovec {
    libc::iovec {
        iov_base: part.as_mut_ptr().cast(),
        iov_len: part.len(),
    }
}

impl RealVfs {
    fn open_with(&self, path: &str, mode: OpenMode, create: bool) -> Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options
            .read(true)
            .write(mode.write || create)
            .create_new(create)
            .custom_flags(libc::O_NONBLOCK);
        let what = if create { "create" } else { "open" };
        if mode.direct {
            options.custom_flags(libc::O_NONBLOCK | libc::O_DIRECT);
            match options.open(path) {
                Ok(file) => return RealFile::wrap(path, file, DIRECT_ALIGNMENT),
                // A file system without direct I/O. With O_CREAT the file may exist by now.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    options.custom_flags(libc::O_NONBLOCK);
                    if create {
                        options.create_new(false).create(true);
                    }
                }
                Err(error) => return Err(failed(what, path, &error)),
            }
        }
        let file = options
            .open(path)
            .map_err(|error| failed(what, path, &error))?;
        RealFile::wrap(path, file, 1)
    }
}

impl Vfs for RealVfs {
    fn open(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        self.open_with(path, mode, false)
    }

    fn create(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        self.open_with(path, mode, true)
    }

    fn exists(&self, path: &str) -> Result<bool> {
        fs::exists(path).map_err(|error| failed("stat", path, &error))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        fs::rename(from, to).map_err(|error| failed("rename", from, &error))
    }

    fn remove(&self, path: &str) -> Result<()> {
        fs::remove_file(path).map_err(|error| failed("unlink", path, &error))
    }

    fn list_dir(&self, path: &str) -> Result<Vec<String>> {
        let entries = fs::read_dir(path).map_err(|error| failed("readdir", path, &error))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| failed("readdir", path, &error))?;
            // A name that is no UTF-8 is none of ours: file names are in filename encoding.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn create_dir(&self, path: &str) -> Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(failed("mkdir", path, &error))
            }
            _ => Ok(()),
        }
    }

    fn remove_dir(&self, path: &str) -> Result<()> {
        fs::remove_dir(path).map_err(|error| failed("rmdir", path, &error))
    }

    fn sync_dir(&self, path: &str) -> Result<()> {
        let dir = fs::File::open(path).map_err(|error| failed("open", path, &error))?;
        dir.sync_all()
            .map_err(|error| failed("fsync", path, &error))
    }
}

impl RealFile {
    /// Refuses what is no file. (Opening a FIFO would wait for a writer, but for O_NONBLOCK, which
    /// means nothing to files.)
    fn wrap(path: &str, file: fs::File, alignment: usize) -> Result<Arc<dyn File>> {
        let kind = file
            .metadata()
            .map_err(|error| failed("stat", path, &error))?
            .file_type();
        if kind.is_dir() {
            return Err(Error::io("open", path, libc::EISDIR));
        }
        if !kind.is_file() && !kind.is_block_device() {
            return Err(Error::io("open", path, libc::EINVAL));
        }
        Ok(Arc::new(RealFile {
            path: path.into(),
            file,
            alignment: AtomicUsize::new(alignment),
        }))
    }

    fn failed(&self, operation: &'static str, error: &std::io::Error) -> Error {
        failed(operation, &self.path, error)
    }

    fn last(&self, operation: &'static str) -> Error {
        self.failed(operation, &std::io::Error::last_os_error())
    }

    /// Leaves direct I/O when a transfer cannot be direct (pages smaller than the alignment).
    fn make_buffered(&self) -> Result<()> {
        let fd = self.file.as_raw_fd();
        // SAFETY: plain fcntl on a descriptor that `self.file` keeps open.
        let rc = unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_DIRECT)
        };
        if rc == -1 {
            return Err(self.last("fcntl"));
        }
        // Relaxed: a thread that still sees the old value copies a buffer in vain.
        self.alignment.store(1, Ordering::Relaxed);
        Ok(())
    }

    /// True if a transfer must go through an aligned copy.
    fn needs_copy(&self, buf: &[u8], offset: u64) -> Result<bool> {
        let alignment = self.alignment.load(Ordering::Relaxed);
        if alignment == 1 {
            return Ok(false);
        }
        if offset % alignment as u64 != 0 || buf.len() % alignment != 0 {
            self.make_buffered()?;
            return Ok(false);
        }
        Ok(!AlignedBuf::is_aligned(buf, alignment) && !buf.is_empty())
    }
}

impl File for RealFile {
    fn path(&self) -> &str {
        &self.path
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        let read = |buf: &mut [u8]| {
            let call = |buf: &mut [u8], offset| self.file.read_at(buf, offset);
            read_all(buf, offset, call).map_err(|error| self.failed("read", &error))
        };
        if self.needs_copy(buf, offset)? {
            let mut copy = AlignedBuf::new(buf.len());
            read(&mut copy)?;
            buf.copy_from_slice(&copy);
            return Ok(());
        }
        read(buf)
    }

    fn read_parts_at(&self, parts: &mut [&mut [u8]], offset: u64) -> Result<()> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let mut copied = false;
        for part in parts.iter() {
            copied |= self.needs_copy(part, offset)?;
        }
        if !copied && parts.len() <= PARTS_MAX {
            let vector: Vec<libc::iovec> = parts.iter_mut().map(|part| to_iovec(part)).collect();
            let (fd, count) = (self.file.as_raw_fd(), vector.len() as libc::c_int);
            // SAFETY: the vector names the parts, which are borrowed for the call and do not overlap.
            let read = unsafe { libc::preadv(fd, vector.as_ptr(), count, offset as libc::off_t) };
            if usize::try_from(read) == Ok(total) {
                return Ok(());
            }
        }
        // Short, interrupted or failed: the plain way goes on, or knows what to say.
        let mut at = offset;
        for part in parts {
            self.read_at(part, at)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> Result<()> {
        let write = |buf: &[u8]| {
            let alignment = self.alignment.load(Ordering::Relaxed);
            let call = |buf: &[u8], offset| self.file.write_at(buf, offset);
            write_all(buf, offset, alignment, call).map_err(|error| self.failed("write", &error))
        };
        if self.needs_copy(buf, offset)? {
            let mut copy = AlignedBuf::new(buf.len());
            copy.copy_from_slice(buf);
            return write(&copy);
        }
        write(buf)
    }

    fn sync_data(&self) -> Result<()> {
        self.file
            .sync_data()
            .map_err(|error| self.failed("fdatasync", &error))
    }

    fn size(&self) -> Result<u64> {
        Ok(self
            .file
            .metadata()
            .map_err(|error| self.failed("stat", &error))?
            .len())
    }

    fn allocate(&self, to: u64) -> Result<()> {
        let from = self.size()?;
        if to <= from {
            return Ok(());
        }
        // posix_fallocate falls back to writing zeros where the file system cannot allocate.
        // SAFETY: plain call on a descriptor that `self.file` keeps open.
        let rc = unsafe {
            libc::posix_fallocate(
                self.file.as_raw_fd(),
                from as libc::off_t,
                (to - from) as libc::off_t,
            )
        };
        if rc == libc::EINTR {
            return self.allocate(to);
        }
        if rc != 0 {
            // A failed allocation may have made the file longer. Best effort: longer is harmless.
            let _ = self.file.set_len(from);
            return Err(Error::io("fallocate", &self.path, rc));
        }
        Ok(())
    }

    fn truncate(&self, to: u64) -> Result<()> {
        self.file
            .set_len(to)
            .map_err(|error| self.failed("ftruncate", &error))
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        // SAFETY: plain call on a descriptor that `self.file` keeps open.
        let rc = unsafe {
            libc::fallocate(
                self.file.as_raw_fd(),
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                offset as libc::off_t,
                len as libc::off_t,
            )
        };
        if rc == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => {
                Err(Error::unsupported(format!("holes in {}", self.path)))
            }
            _ => Err(self.failed("punch", &error)),
        }
    }

    fn alignment(&self) -> usize {
        self.alignment.load(Ordering::Relaxed)
    }

    fn unwritten_from(&self, offset: u64) -> Option<u64> {
        // A block that is allocated and unwritten counts as a hole. The offset of the descriptor, which
        // this moves, is used by nobody.
        // SAFETY: plain call on a descriptor that `self.file` keeps open.
        let hole = unsafe {
            libc::lseek(
                self.file.as_raw_fd(),
                offset as libc::off_t,
                libc::SEEK_HOLE,
            )
        };
        let hole = u64::try_from(hole).ok()?;
        let size = self.size().ok()?;
        (hole < size).then_some(hole)
    }

    fn rotates(&self) -> bool {
        let Ok(metadata) = self.file.metadata() else {
            return false;
        };
        let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
        // A partition has no queue of its own; its disk is the directory above.
        ["queue", "../queue"].iter().any(|queue| {
            let path = format!("/sys/dev/block/{major}:{minor}/{queue}/rotational");
            fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
        })
    }

    fn descriptor(&self, bytes: &[u8], offset: u64) -> Option<i32> {
        let alignment = self.alignment.load(Ordering::Relaxed);
        let fits = offset % alignment as u64 == 0
            && bytes.len() % alignment == 0
            && AlignedBuf::is_aligned(bytes, alignment);
        fits.then(|| self.file.as_raw_fd())
    }

    fn lock(&self) -> Result<Box<dyn FileLock>> {
        // A descriptor of its own: a duplicate would share the description, and with it the lock.
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let name = CString::new(own).expect("no NUL in a number");
        // SAFETY: `name` is NUL-terminated; the descriptor, if any, is owned from here on.
        let descriptor = unsafe {
            let fd = libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            if fd == -1 {
                return Err(self.last("open"));
            }
            OwnedFd::from_raw_fd(fd)
        };
        // SAFETY: all-zero is a valid flock: the whole file, pid 0 as OFD locks require.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        range.l_type = libc::F_WRLCK as libc::c_short;
        range.l_whence = libc::SEEK_SET as libc::c_short;
        // SAFETY: `range` lives for the call; the descriptor is open.
        let rc = unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_OFD_SETLK, &range) };
        if rc == 0 {
            return Ok(Box::new(RealLock {
                _descriptor: descriptor,
            }));
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Err(Error::Busy(
                format!("{} is locked: another server or engine uses it", self.path).into(),
            )),
            _ => Err(self.failed("lock", &error)),
        }
    }
}

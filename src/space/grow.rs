//! Growth: how far (format-tablespace.md 4.5 rule 5), and the allocation.

use super::tablespace::{Kind, Space};
use crate::format::fsp::Geometry;
use crate::os::file::is_errno;
use crate::words::{Error, Result};

/// Default of innodb_autoextend_increment, in MiB.
pub const AUTOEXTEND_MIB: u32 = 64;

fn closed() -> Error {
    Error::internal("a file was closed while it was used")
}

/// The size in pages to which a table's file of `size` pages grows when `needed` pages must fit.
pub fn table_size_for(geometry: Geometry, size: u32, needed: u32) -> u32 {
    let extent = geometry.extent_pages();
    let mut size = size;
    while size < needed {
        size = if size < extent {
            if needed < extent { needed } else { extent }
        } else if size < (32 * extent).min(geometry.descriptor_interval()) {
            (size / extent + 1) * extent
        } else {
            (size / extent + 4) * extent
        };
    }
    size
}

impl Space {
    /// The size in pages to which this tablespace grows when `needed` pages must fit.
    pub fn size_for(&self, needed: u32, autoextend_mib: u32) -> u32 {
        let geometry = self.geometry();
        let size = self.size_pages();
        match self.kind() {
            Kind::Table => table_size_for(geometry, size, needed),
            Kind::Undo => {
                let extent = geometry.extent_pages();
                needed.max(size).div_ceil(extent) * extent
            }
            Kind::System | Kind::Temporary => {
                let per_mib = (1 << 20) / geometry.physical_bytes() as u32;
                let step = autoextend_mib.max(1) * per_mib;
                let missing = needed.saturating_sub(size).div_ceil(step) * step;
                // Whole megabytes only.
                (size + missing) / per_mib * per_mib
            }
        }
    }

    /// Makes the file at least `pages` pages long, blocks allocated, new pages zero. The caller then
    /// writes SIZE into page 0 and calls `set_size_pages`. A full device, or the end of the last
    /// file's `max`, is `Error::NoSpace`, and nothing has changed.
    pub fn allocate(&self, pages: u32) -> Result<()> {
        let _guard = self.begin_io()?;
        let (file, first_page, limit) = {
            let parts = self.parts.read();
            let last = parts.last().expect("a tablespace has a file");
            (
                last.file.clone().ok_or_else(closed)?,
                last.first_page,
                last.pages,
            )
        };
        let own = pages.saturating_sub(first_page);
        if self.kind() != Kind::Table && limit != 0 && own > limit {
            return Err(Error::NoSpace(self.id()));
        }
        let bytes = own as u64 * self.geometry().physical_bytes() as u64;
        match file.allocate(bytes) {
            Ok(()) => {
                self.note_unsynced();
                Ok(())
            }
            Err(e) if is_errno(&e, libc::ENOSPC) || is_errno(&e, libc::EDQUOT) => {
                Err(Error::NoSpace(self.id()))
            }
            Err(e) if is_errno(&e, libc::EFBIG) => Err(Error::NoSpace(self.id())),
            Err(e) => Err(e),
        }
    }

    /// Cuts the file to `pages` pages: undo truncation, recovery of TRIM_PAGES.
    pub fn truncate(&self, pages: u32) -> Result<()> {
        let _guard = self.begin_io()?;
        let (file, first_page) = {
            let parts = self.parts.read();
            let last = parts.last().expect("a tablespace has a file");
            (last.file.clone().ok_or_else(closed)?, last.first_page)
        };
        let own = pages.saturating_sub(first_page) as u64;
        file.truncate(own * self.geometry().physical_bytes() as u64)?;
        self.note_unsynced();
        self.set_size_pages(pages);
        Ok(())
    }

    /// Whole pages in the files.
    pub fn file_pages(&self) -> Result<u32> {
        let bytes = self.geometry().physical_bytes() as u64;
        let _open = self.pin_open()?;
        let parts = self.parts.read().clone();
        let last = parts.last().expect("a tablespace has a file");
        let own = last.file.as_ref().ok_or_else(closed)?.size()? / bytes;
        Ok(last
            .first_page
            .saturating_add(own.min(u32::MAX as u64) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_grows_as_stock_does() {
        let geometry = Geometry::of_page_size(16384);
        // Seen in a growing table of a stock server: 4, 15, 24, 33, 576, 640, 704.
        assert_eq!(table_size_for(geometry, 4, 15), 15);
        assert_eq!(table_size_for(geometry, 33, 65), 128);
        assert_eq!(table_size_for(geometry, 576, 577), 640);
        assert_eq!(table_size_for(geometry, 33, 570), 576);
        assert_eq!(table_size_for(geometry, 2048, 2049), 2048 + 256);
        let zip = crate::format::fsp::SpaceFlags::parse(0x29)
            .expect("8K zip")
            .geometry();
        assert_eq!(zip.extent_pages(), 64);
        assert_eq!(table_size_for(zip, 4, 5), 5);
    }
}

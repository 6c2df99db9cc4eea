//! Torn pages: what the doublewrite blocks hold of the last writes before the crash is put into its
//! place before anybody reads there (format-redo.md section 13, step 5).

use crate::buffer::{Doublewrite, DoublewriteCopies};
use crate::format::checksum::{self, Content, Flavour};
use crate::format::fsp::Geometry;
use crate::format::trx_sys;
use crate::os::file::join;
use crate::os::{AlignedBuf, File, OpenMode, Vfs};
use crate::space::{DataFilePath, Registry, Space};
use crate::sync::Arc;
use crate::words::{Error, Lsn, PageId, PageNo, Result};

/// The copies that may be of use.
#[derive(Debug, Default)]
pub struct Torn {
    copies: DoublewriteCopies,
    page_size: usize,
    from: Lsn,
    to: Lsn,
}

impl Torn {
    /// Reads the doublewrite blocks of the system tablespace, which is not open yet: its own page 0
    /// may be torn. Copies outside `from..=to` are of no use: from the checkpoint to the log's end.
    ///
    /// Errors: what opening and reading gives. Blocks that are not there are no error.
    pub fn load(
        spaces: &Registry,
        path: &DataFilePath,
        range: std::ops::RangeInclusive<Lsn>,
    ) -> Result<Torn> {
        let page_size = spaces.places().page_size;
        let files = RawFiles::open(spaces, path, page_size)?;
        let mut page = AlignedBuf::new(page_size);
        if files.read(trx_sys::PAGE, &mut page).is_err() {
            return Ok(Torn::default());
        }
        // The header repeats its numbers against tearing, so the page's checksum is not asked for.
        let geometry = Geometry::of_page_size(page_size);
        let place = Doublewrite::parse(&page, geometry).unwrap_or_else(|error| {
            log::warn!("the doublewrite blocks are not used: {error}");
            None
        });
        let copies = place.map(|place| {
            let read = |page, buf: &mut [u8]| files.read(page, buf);
            DoublewriteCopies::load(place, page_size, &range, read)
        });
        Ok(Torn {
            copies: copies.unwrap_or_default(),
            page_size,
            from: *range.start(),
            to: *range.end(),
        })
    }

    /// A whole sound copy of page 0 of a tablespace whose flags nobody knows.
    pub fn first_page(&self, id: PageId) -> Option<Vec<u8>> {
        let find = |bytes, flavour| self.copies.find(id, bytes, flavour, self.from, self.to);
        let whole = [Flavour::FullCrc32, Flavour::Crc32]
            .into_iter()
            .find_map(|flavour| find(self.page_size, flavour));
        let zip = || (10..15).find_map(|shift| find(1 << shift, Flavour::Zip));
        whole.or_else(zip).map(<[u8]>::to_vec)
    }

    /// Writes the copies of damaged pages to their places, durably. Returns how many.
    ///
    /// Errors: what writing and syncing gives.
    pub fn restore(&self, spaces: &Registry) -> Result<usize> {
        let mut restored = 0;
        let mut ids: Vec<_> = self.copies.pages().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(space) = spaces.get(id.space) else {
                continue;
            };
            if self.restore_page(&space, id)? {
                space.sync()?;
                restored += 1;
            }
        }
        Ok(restored)
    }

    fn restore_page(&self, space: &Space, id: PageId) -> Result<bool> {
        let flavour = space.flags().flavour();
        let mut page = AlignedBuf::new(space.geometry().physical_bytes());
        let bytes = page.len();
        let Some(copy) = self.copies.find(id, bytes, flavour, self.from, self.to) else {
            return Ok(false);
        };
        // A page that cannot be read is left to whoever reads it: the error is told there.
        if space.read_page(id.page, &mut page).is_err() {
            return Ok(false);
        }
        if matches!(checksum::verify(&page, flavour, id), Ok(Content::Written)) {
            return Ok(false);
        }
        log::warn!(
            "{}: page {} was torn and is restored from the doublewrite blocks",
            space.path(),
            id.page
        );
        page.copy_from_slice(copy);
        space.write_page(id.page, &page)?;
        Ok(true)
    }
}

/// The files of the system tablespace as bytes.
struct RawFiles {
    /// File, its first page, its number of pages.
    parts: Vec<(Arc<dyn File>, u32, u32)>,
    page_size: usize,
}

impl RawFiles {
    fn open(spaces: &Registry, path: &DataFilePath, page_size: usize) -> Result<RawFiles> {
        let vfs: &Arc<dyn Vfs> = spaces.vfs();
        let mut parts = Vec::new();
        let mut first = 0;
        for data_file in &path.files {
            let name = join(&spaces.places().system_dir, &data_file.name);
            let file = vfs.open(&name, OpenMode::READ)?;
            let pages = (file.size()? / page_size as u64) as u32;
            parts.push((file, first, pages));
            first += pages;
        }
        Ok(RawFiles { parts, page_size })
    }

    fn read(&self, page: PageNo, buf: &mut [u8]) -> Result<()> {
        let holds =
            |&&(_, first, pages): &&(_, u32, u32)| page.0 >= first && page.0 - first < pages;
        let Some((file, first, _)) = self.parts.iter().find(holds) else {
            return Err(Error::corrupt_bytes("the file ends before this page"));
        };
        file.read_at(buf, (page.0 - first) as u64 * self.page_size as u64)
    }
}

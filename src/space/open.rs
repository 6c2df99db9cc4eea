//! Checks at open (format-tablespace.md section 5), and the repair of a torn page 0.

use super::tablespace::{Kind, Part, Space};
use crate::format::checksum::{self, Content};
use crate::format::fil;
use crate::format::fsp::{self, SpaceFlags, SpaceHeader};
use crate::os::{AlignedBuf, File, Vfs};
use crate::sync::Arc;
use crate::words::limits::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use crate::words::{Error, Lsn, PageId, PageNo, Result, SpaceId, be};

/// Gives the doublewrite buffer's copy of a page, if it holds a valid one: a whole physical page.
pub type Repair<'a> = &'a dyn Fn(PageId) -> Option<Vec<u8>>;

/// What page 0 of a file says, after all checks that need no other file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstPage {
    /// The tablespace.
    pub space: SpaceId,
    /// Its flags.
    pub flags: SpaceFlags,
    /// SIZE in pages.
    pub size_pages: u32,
    /// The page's LSN.
    pub lsn: Lsn,
}

impl FirstPage {
    /// Reads and checks page 0 of `file`. `page_size` is innodb_page_size of the instance.
    ///
    /// Errors: `Error::Corrupt` naming the file: too short, all zero, unknown flags, other page
    /// size, wrong page number, impossible id, wrong checksum.
    pub fn read(file: &dyn File, page_size: usize) -> Result<FirstPage> {
        let mut page = read_start(file)?;
        FirstPage::parse(&mut page, page_size).map_err(|error| match error {
            Error::Unsupported(what) => {
                Error::unsupported(format!("{what} in file {}", file.path()))
            }
            error => error.in_file(file.path()),
        })
    }

    /// As `read`, from bytes: at least one physical page.
    pub fn parse(bytes: &mut [u8], page_size: usize) -> Result<FirstPage> {
        if bytes.len() < PAGE_SIZE_MIN {
            return Err(Error::corrupt_bytes("the file is shorter than a page"));
        }
        if fil::is_all_zero(&bytes[..PAGE_SIZE_MIN]) {
            return Err(Error::corrupt_bytes("page 0 was never written"));
        }
        let space = fil::space_id(bytes);
        let id = PageId::new(space, PageNo(0));
        let flags = SpaceFlags::parse(be::u32_at(bytes, fsp::OFF_FLAGS))
            .map_err(|error| error.at_page(id))?;
        if flags.page_size() != page_size {
            return Err(Error::corrupt(
                id,
                format!(
                    "pages of {} bytes, innodb_page_size is {page_size}",
                    flags.page_size()
                ),
            ));
        }
        let physical = flags.geometry().physical_bytes();
        if bytes.len() < physical {
            return Err(Error::corrupt(id, "the file is shorter than a page"));
        }
        let page = &bytes[..physical];
        if checksum::verify(page, flags.flavour(), id)? == Content::NeverWritten {
            return Err(Error::corrupt(id, "page 0 was never written"));
        }
        let header = SpaceHeader::parse(page).map_err(|error| error.at_page(id))?;
        if space >= SpaceId::UPPER_BOUND && space != SpaceId::TEMPORARY {
            return Err(Error::corrupt(id, "no tablespace has such an id"));
        }
        Ok(FirstPage {
            space,
            flags,
            size_pages: header.size.get(),
            lsn: fil::lsn(page),
        })
    }
}

/// The first bytes of the file: as much of the largest page as there is.
fn read_start(file: &dyn File) -> Result<AlignedBuf> {
    let size = file.size()?.min(PAGE_SIZE_MAX as u64) as usize;
    let whole = size / PAGE_SIZE_MIN * PAGE_SIZE_MIN;
    if whole == 0 {
        return Err(Error::corrupt_bytes("the file is shorter than a page").in_file(file.path()));
    }
    let mut bytes = AlignedBuf::new(whole);
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// What the opener knows already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) id: SpaceId,
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    pub(super) page_size: usize,
}

/// Checks page 0 of the first of `files`, repairs it if it is damaged and a copy is there, and makes
/// the tablespace. `sizes` are the pages of all files but the last, and its limit (0 = none).
pub(super) fn open(
    wanted: Wanted<'_>,
    files: Vec<Arc<dyn File>>,
    sizes: &[u32],
    repair: Repair<'_>,
) -> Result<Space> {
    let first = first_page_repaired(&*files[0], wanted, repair)?;
    if first.space != wanted.id {
        return Err(Error::corrupt(
            PageId::new(wanted.id, PageNo(0)),
            format!("the file belongs to tablespace {}", first.space),
        )
        .in_file(files[0].path()));
    }
    if first.flags.is_page_compressed() {
        return Err(Error::unsupported(format!(
            "page compression of {}",
            files[0].path()
        )));
    }
    let mut start = 0u32;
    let mut parts = Vec::new();
    for (file, pages) in files.into_iter().zip(sizes) {
        parts.push(Part::new(file, start, *pages));
        start = start.saturating_add(*pages);
    }
    Ok(Space::new(
        first.space,
        wanted.kind,
        first.flags,
        wanted.name,
        parts,
        first.size_pages,
    ))
}

fn first_page_repaired(
    file: &dyn File,
    wanted: Wanted<'_>,
    repair: Repair<'_>,
) -> Result<FirstPage> {
    let damaged = match FirstPage::read(file, wanted.page_size) {
        Ok(first) => return Ok(first),
        Err(error @ Error::Corrupt(_)) => error,
        Err(error) => return Err(error),
    };
    let Some(mut copy) = repair(PageId::new(wanted.id, PageNo(0))) else {
        return Err(damaged);
    };
    let first = FirstPage::parse(&mut copy, wanted.page_size)
        .map_err(|error| error.in_file("the doublewrite buffer"))?;
    if first.space != wanted.id {
        return Err(damaged);
    }
    log::warn!(
        "{}: page 0 restored from the doublewrite buffer ({damaged})",
        file.path()
    );
    let mut page = AlignedBuf::new(first.flags.geometry().physical_bytes());
    let bytes = page.len();
    page.copy_from_slice(&copy[..bytes]);
    file.write_at(&page, 0)?;
    file.sync_data()?;
    Ok(first)
}

/// Reads page 0 of the file at `path`, wherever it lies: for recovery, which must find out what a
/// file is.
pub fn probe(vfs: &dyn Vfs, path: &str, page_size: usize) -> Result<FirstPage> {
    let file = vfs.open(path, crate::os::OpenMode::READ)?;
    FirstPage::read(&*file, page_size)
}

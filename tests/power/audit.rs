//! What the files of a cleanly closed instance must fulfil, found from their bytes alone: space
//! headers, extents, segments, sibling links, BLOB chains, undo segments; and that nothing is lost:
//! every used page belongs to a tree, a chain, an undo log.

use super::bed::PAGE_BYTES;
use super::pages::Pages;
use std::collections::BTreeMap;
use std::sync::Arc;
use xtradb::format::blob::BlobPart;
use xtradb::format::checksum::{self, Content};
use xtradb::format::fil::{self, PageType};
use xtradb::format::fsp::{Geometry, SpaceHeader};
use xtradb::format::list::{FilAddr, ListBase, ListNode};
use xtradb::format::xdes::{self, State};
use xtradb::format::{index_page, inode, rseg, trx_sys, undo_page};
use xtradb::os::sim::SimVfs;
use xtradb::words::{PageId, PageNo, SpaceId, be};

type Found<T> = Result<T, String>;

/// All pages of a tablespace.
struct Space {
    path: String,
    /// `None`: never written.
    pages: Vec<Option<Arc<[u8; PAGE_BYTES]>>>,
    geometry: Geometry,
    header: SpaceHeader,
}

/// A segment as its inode says.
struct Segment {
    id: u64,
    /// Used pages.
    pages: Pages,
}

impl Space {
    fn open(disk: &SimVfs, path: &str) -> Found<Space> {
        let pages = disk.blocks(path).ok_or(format!("{path}: no file"))?;
        let first = pages.first().and_then(Option::as_deref);
        let first = first.ok_or(format!("{path}: no page 0"))?;
        let header = SpaceHeader::parse(first).map_err(|e| format!("{path}: {e}"))?;
        Ok(Space {
            path: path.into(),
            geometry: Geometry::of_page_size(PAGE_BYTES),
            header,
            pages,
        })
    }

    fn id(&self) -> SpaceId {
        self.header.space_id()
    }

    fn page(&self, page: u32) -> Found<&[u8]> {
        match self.pages.get(page as usize) {
            Some(Some(bytes)) => Ok(&bytes[..]),
            Some(None) => Ok(&[0; PAGE_BYTES]),
            None => Err(format!("{}: no page {page}", self.path)),
        }
    }

    fn at(&self, page: u32, why: impl std::fmt::Display) -> String {
        format!("{} page {page}: {why}", self.path)
    }

    /// A list of nodes, neighbours pointing back.
    fn list(&self, base: ListBase) -> Found<Vec<FilAddr>> {
        let (mut found, mut prev, mut next) = (Vec::new(), FilAddr::NONE, base.first);
        while let Some(addr) = next.some() {
            let page = self.page(addr.page().0)?;
            let node = ListNode::parse(page, addr.offset());
            let node = node.map_err(|e| self.at(addr.page().0, e))?;
            if node.prev != prev || found.len() >= base.count() as usize {
                return Err(self.at(addr.page().0, format!("list node at {}", addr.offset())));
            }
            found.push(addr);
            (prev, next) = (addr, node.next);
        }
        match found.len() == base.count() as usize && base.last == prev {
            true => Ok(found),
            false => Err(format!(
                "{}: list {base:?} has {} nodes",
                self.path,
                found.len()
            )),
        }
    }

    fn extents(&self, base: ListBase) -> Found<Pages> {
        let start = |addr: FilAddr| {
            let offset = addr.offset() - xdes::OFF_NODE;
            let extent = self.geometry.extent_at(addr.page(), offset);
            let extent = extent.ok_or(self.at(addr.page().0, "no descriptor in a list"))?;
            Ok(extent.0)
        };
        self.list(base)?.into_iter().map(start).collect()
    }

    fn descriptor(&self, page: u32) -> Found<&[u8]> {
        let holder = self.geometry.descriptor_page(PageNo(page));
        let at = self.geometry.xdes_offset(PageNo(page));
        Ok(&self.page(holder.0)?[at..at + self.geometry.xdes_bytes()])
    }

    fn used_of(&self, extent: u32) -> Found<Vec<u32>> {
        let xdes = self.descriptor(extent)?;
        let pages = 0..self.geometry.extent_pages();
        Ok(pages
            .filter(|&i| !xdes::is_free(xdes, i))
            .map(|i| extent + i)
            .collect())
    }

    /// Extents by state against the header's lists; yields the used pages of fragment extents.
    fn check_extents(&self) -> Found<Pages> {
        let free = self.extents(self.header.free)?;
        let free_frag = self.extents(self.header.free_frag)?;
        let full_frag = self.extents(self.header.full_frag)?;
        let (mut fragments, mut frag_n_used) = (Pages::default(), 0);
        for extent in (0..self.header.free_limit().0).step_by(self.geometry.extent_pages() as usize)
        {
            let state = xdes::validate(self.descriptor(extent)?);
            let state = state.map_err(|e| self.at(extent, e))?;
            let used = self.used_of(extent)?;
            let lists = (
                free.contains(extent),
                free_frag.contains(extent),
                full_frag.contains(extent),
            );
            let all = used.len() == self.geometry.extent_pages() as usize;
            let right = match state {
                State::Free => lists == (true, false, false) && used.is_empty(),
                State::FreeFrag => lists == (false, true, false) && !used.is_empty() && !all,
                State::FullFrag => lists == (false, false, true) && all,
                State::Segment => lists == (false, false, false),
                State::NotInitialised => false,
            };
            if !right {
                let why = format!("extent {state:?} with {} pages in {lists:?}", used.len());
                return Err(self.at(extent, why));
            }
            if matches!(state, State::FreeFrag | State::FullFrag) {
                frag_n_used += used.len() * usize::from(state == State::FreeFrag);
                fragments.extend(used);
            }
        }
        if frag_n_used != self.header.frag_n_used.get() as usize {
            return Err(self.at(0, format!("FRAG_N_USED, but {frag_n_used} are")));
        }
        Ok(fragments)
    }

    fn segments(&self) -> Found<(Vec<Segment>, Pages)> {
        let mut inode_pages = Pages::default();
        let mut segments = Vec::new();
        for (base, full) in [
            (self.header.inodes_full, true),
            (self.header.inodes_free, false),
        ] {
            for addr in self.list(base)? {
                let number = addr.page().0;
                inode_pages.insert(number);
                let page = self.page(number)?;
                let mut used = 0;
                for i in 0..self.geometry.inodes_per_page() {
                    let at = inode::slot_offset(self.geometry, i);
                    let slot = &page[at..at + self.geometry.inode_bytes()];
                    if inode::segment(slot).0 != 0 {
                        used += 1;
                        segments.push(self.segment(number, slot)?);
                    }
                }
                if (used == self.geometry.inodes_per_page()) != full || used == 0 {
                    return Err(self.at(number, format!("{used} inodes, full: {full}")));
                }
            }
        }
        let mut ids: Vec<u64> = segments.iter().map(|segment| segment.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() != segments.len() || ids.last() >= Some(&self.header.next_segment().0) {
            return Err(format!("{}: segments {ids:?}", self.path));
        }
        Ok((segments, inode_pages))
    }

    fn segment(&self, page: u32, slot: &[u8]) -> Found<Segment> {
        let error = |e: xtradb::words::Error| self.at(page, e);
        let id = inode::validate(slot).map_err(error)?.0;
        let mut pages: Pages = inode::fragments(slot).map(|page| page.0).collect();
        let whole = self.geometry.extent_pages() as usize;
        for (which, name) in [
            (inode::OFF_FREE, "free"),
            (inode::OFF_NOT_FULL, "not full"),
            (inode::OFF_FULL, "full"),
        ] {
            let extents = self.extents(inode::list(slot, which).map_err(error)?)?;
            let mut n_used = 0;
            for extent in extents.iter() {
                let xdes = self.descriptor(extent)?;
                let used = self.used_of(extent)?;
                let right = match name {
                    "free" => used.is_empty(),
                    "full" => used.len() == whole,
                    _ => !used.is_empty() && used.len() < whole,
                };
                let owned = State::parse(xdes).is_ok_and(|state| state == State::Segment)
                    && xdes::segment(xdes).0 == id;
                if !owned || !right {
                    let why = format!("in list {name} of segment {id}, {} used", used.len());
                    return Err(self.at(extent, why));
                }
                n_used += used.len() as u32;
                pages.extend(used);
            }
            if name == "not full" && n_used != inode::not_full_n_used(slot) {
                return Err(self.at(page, format!("segment {id}: {n_used} in extents")));
            }
        }
        Ok(Segment { id, pages })
    }

    fn check_page(&self, number: u32) -> Found<PageType> {
        let page = self.page(number)?;
        let flavour = self.header.flags().map_err(|e| self.at(0, e))?.flavour();
        let id = PageId::new(self.id(), PageNo(number));
        match checksum::verify(page, flavour, id) {
            Ok(Content::Written) => Ok(fil::page_type(page)),
            Ok(Content::NeverWritten) => Err(self.at(number, "in use and never written")),
            Err(error) => Err(self.at(number, error)),
        }
    }

    /// Trees by index id: on each level one chain, both directions, without a page left over.
    fn check_trees(&self, pages: &Pages) -> Found<()> {
        let mut levels: BTreeMap<(u64, u16), Pages> = BTreeMap::new();
        for number in pages.iter() {
            let page = self.page(number)?;
            let index = be::u64_at(page, index_page::INDEX_ID);
            let level = be::u16_at(page, index_page::LEVEL);
            levels.entry((index, level)).or_default().insert(number);
        }
        for ((index, level), pages) in &levels {
            let first: Vec<u32> = pages
                .iter()
                .filter(|&page| self.page(page).is_ok_and(|p| fil::prev(p) == PageNo::NONE))
                .collect();
            let [first] = first[..] else {
                return Err(format!(
                    "{}: index {index} level {level} begins at {first:?} of {pages:?}",
                    self.path
                ));
            };
            let (mut chain, mut at) = (Pages::from_iter([first]), first);
            while let Some(next) = fil::next(self.page(at)?).some() {
                if !chain.insert(next.0) || fil::prev(self.page(next.0)?) != PageNo(at) {
                    return Err(self.at(at, format!("its right sibling {next}")));
                }
                at = next.0;
            }
            let lost = pages.difference(&chain);
            if !lost.is_empty() {
                let why = format!("index {index} level {level}: {lost:?} are not in the chain");
                return Err(format!("{}: {why}", self.path));
            }
            if *level > 0 && !levels.contains_key(&(*index, level - 1)) {
                return Err(format!("{}: index {index} lacks a level", self.path));
            }
        }
        Ok(())
    }

    /// Number of BLOB chains.
    fn check_blobs(&self, pages: &Pages) -> Found<usize> {
        let mut followers = Pages::default();
        for number in pages.iter() {
            let part = BlobPart::parse(self.page(number)?).map_err(|e| self.at(number, e))?;
            if let Some(next) = part.next
                && (!pages.contains(next.0) || !followers.insert(next.0))
            {
                return Err(self.at(number, format!("BLOB part {next} follows")));
            }
        }
        Ok(pages.len() - followers.len())
    }

    /// Everything that holds for every tablespace; yields used pages by type.
    fn check(&self) -> Found<BTreeMap<u16, Pages>> {
        if self.pages.len() < self.header.size.get() as usize {
            return Err(format!("{}: shorter than its SIZE", self.path));
        }
        let mut free_fragments = self.check_extents()?;
        let (segments, inode_pages) = self.segments()?;
        let mut owned = Pages::default();
        for segment in &segments {
            for page in segment.pages.iter() {
                if !owned.insert(page) {
                    return Err(self.at(page, format!("of segment {} and another", segment.id)));
                }
                free_fragments.remove(page);
            }
        }
        // What is left of the fragment pages belongs to the space itself.
        let mut by_type: BTreeMap<u16, Pages> = BTreeMap::new();
        for page in free_fragments.iter() {
            let number = PageNo(page);
            let own = self.geometry.is_descriptor_page(number)
                || self.geometry.is_bitmap_page(number)
                || inode_pages.contains(page);
            if !own {
                return Err(self.at(page, "in use, but nobody's"));
            }
            self.check_page(page)?;
        }
        for page in owned.iter() {
            let kind = match self.is_doublewrite(page) {
                true => continue,
                false => self.check_page(page)?,
            };
            by_type.entry(kind.0).or_default().insert(page);
        }
        let none = Pages::default();
        let index = by_type.get(&PageType::INDEX.0).unwrap_or(&none);
        self.check_trees(index)?;
        Ok(by_type)
    }

    fn is_doublewrite(&self, page: u32) -> bool {
        if self.id() != SpaceId::SYSTEM {
            return false;
        }
        let found = self.page(trx_sys::PAGE.0).ok().and_then(|page| {
            let place = trx_sys::Doublewrite::parse(page, self.geometry).ok()?;
            place.map(|place| (place.blocks, place.segment))
        });
        let Some((blocks, _)) = found else {
            return false;
        };
        // The segment's first pages are single ones, in front of the blocks.
        let extent = self.geometry.extent_pages();
        let in_block = |block: PageNo| (block.0..block.0 + extent).contains(&page);
        blocks.into_iter().any(in_block) || fil::is_all_zero(self.page(page).unwrap_or_default())
    }
}

/// Rollback segments: their slots and history name exactly the undo pages that are in use.
fn check_undo(spaces: &BTreeMap<SpaceId, (Space, BTreeMap<u16, Pages>)>) -> Found<()> {
    let (system, _) = &spaces[&SpaceId::SYSTEM];
    let mut named: BTreeMap<SpaceId, Pages> = BTreeMap::new();
    for slot in trx_sys::slots(system.page(trx_sys::PAGE.0)?) {
        let (number, header) = slot.map_err(|e| e.to_string())?;
        let (space, _) = spaces
            .get(&header.space)
            .ok_or(format!("{number}: no space"))?;
        let page = space.page(header.page.0)?;
        let error = |e: xtradb::words::Error| space.at(header.page.0, e);
        rseg::check_format(page).map_err(error)?;
        let mut firsts: Vec<u32> = rseg::slots(page).map(|(_, first)| first.0).collect();
        let slots = firsts.len();
        let history = space.list(rseg::history(page).map_err(error)?)?;
        firsts.extend(history.iter().map(|addr| addr.page().0));
        firsts.sort_unstable();
        firsts.dedup();
        let pages = named.entry(header.space).or_default();
        let (mut out_of_slot, mut cached) = (0, 0);
        for first in firsts {
            let undo = space.page(first)?;
            let base = ListBase::parse(undo, undo_page::OFF_PAGE_LIST).map_err(error)?;
            let list = space.list(base)?;
            let state = undo_page::state(undo).map_err(|e| space.at(first, e))?;
            match state {
                undo_page::State::ToPurge => out_of_slot += list.len() as u32,
                undo_page::State::Cached => cached += 1,
                other => return Err(space.at(first, format!("undo segment {other:?}"))),
            }
            for addr in list {
                if !pages.insert(addr.page().0) {
                    return Err(space.at(addr.page().0, "in two undo segments"));
                }
            }
        }
        if cached != slots || out_of_slot != rseg::history_size(page) {
            let why = format!("{slots} slots, {cached} cached, {out_of_slot} pages of history");
            return Err(space.at(header.page.0, why));
        }
    }
    for (id, (space, by_type)) in spaces {
        let none = Pages::default();
        let used = by_type.get(&PageType::UNDO_LOG.0).unwrap_or(&none);
        let named = named.get(id).unwrap_or(&none);
        let lost = used.difference(named);
        if !lost.is_empty() {
            return Err(format!("{}: undo pages {lost:?} are nobody's", space.path));
        }
    }
    Ok(())
}

/// Checks the files of a closed instance. `tables`: file names in ./d with the number of BLOB chains
/// that the rows of each need.
pub fn audit(disk: &SimVfs, tables: &BTreeMap<String, usize>) -> Found<()> {
    let mut spaces = BTreeMap::new();
    for path in disk.paths() {
        let is_space = path.ends_with(".ibd") || path.contains("/undo") || path.contains("ibdata");
        if !is_space {
            continue;
        }
        let space = Space::open(disk, &path)?;
        let by_type = space.check()?;
        if let Some(table) = path.strip_prefix("./d/") {
            let wanted = tables
                .get(table)
                .ok_or(format!("{path} belongs to no table"))?;
            let none = Pages::default();
            let blobs = by_type.get(&PageType::BLOB.0).unwrap_or(&none);
            let found = space.check_blobs(blobs)?;
            if found != *wanted {
                return Err(format!("{path}: {found} BLOB chains, rows have {wanted}"));
            }
        }
        if let Some((other, _)) = spaces.insert(space.id(), (space, by_type)) {
            return Err(format!("{path} and {} have one id", other.path));
        }
    }
    let found = spaces
        .values()
        .filter(|(space, _)| space.path.starts_with("./d/"));
    if found.count() != tables.len() {
        return Err(format!("not all files of {:?} are there", tables.keys()));
    }
    check_undo(&spaces)
}

/// Number of BLOB chains in a file.
pub fn chains(disk: &SimVfs, path: &str) -> Found<usize> {
    let space = Space::open(disk, path)?;
    let by_type = space.check()?;
    let none = Pages::default();
    space.check_blobs(by_type.get(&PageType::BLOB.0).unwrap_or(&none))
}

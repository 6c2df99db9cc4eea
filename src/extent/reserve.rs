//! Room before it is needed: counting free extents, growing files (format-tablespace.md 4.5 rule 5).

use super::plan::Plan;
use crate::format::{fsp, xdes};
use crate::mtr::{Budget, Class, Mode, Mtr, PageCtx};
use crate::space::grow::AUTOEXTEND_MIB;
use crate::space::{Kind, Space};
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Rank};
use crate::words::{Error, PageId, PageNo, Result, SpaceId};

/// Pages and extents of a tablespace that are spoken for; given back on drop, after the commit of the
/// mini-transaction that took them.
#[derive(Debug)]
#[must_use = "a reservation that is dropped reserves nothing"]
pub struct Reservation {
    space: Arc<Space>,
    extents: u32,
    pages: u32,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let reserved = self.space.reserved();
        reserved.extents.fetch_sub(self.extents, Ordering::AcqRel);
        reserved.pages.fetch_sub(self.pages, Ordering::AcqRel);
    }
}

/// Log bytes of a growth step: SIZE.
const GROW_LOG_BYTES: usize = 64;

/// Reserves room for an operation that takes up to `pages` pages for at most `extents` segments, each
/// of which may open an extent; grows the file if there is not enough. `Class::Statement` leaves a
/// margin that only rollback and purge may use. Call it with no latch held: it may wait and write.
///
/// Errors: `NoSpace` when the device or the file's limit is reached; what reading page 0 gives.
pub fn reserve(
    ctx: &PageCtx,
    space: SpaceId,
    extents: u32,
    pages: u32,
    class: Class,
) -> Result<Reservation> {
    let space = ctx.spaces.find(space)?;
    for _ in 0..64 {
        let wanted = Wanted::new(&space, extents, pages, class);
        let room = Room::read(ctx, &space)?;
        if let Some(reservation) = wanted.claim(&space, room) {
            return Ok(reservation);
        }
        grow(ctx, &space, &wanted, class)?;
    }
    Err(Error::NoSpace(space.id()))
}

/// What a tablespace has left.
#[derive(Clone, Copy, Debug)]
struct Room {
    size: u32,
    /// Extents that can be taken whole.
    free_extents: u32,
    /// Used pages of the first extent; what counts in a file smaller than that.
    first_extent_used: u32,
}

impl Room {
    fn read(ctx: &PageCtx, space: &Space) -> Result<Room> {
        let mut mtr = Mtr::reader(ctx);
        let id = PageId::new(space.id(), PageNo(0));
        let held = mtr.get(id, Mode::S, Rank::FspPage)?;
        Room::parse(mtr.view(held), space).map_err(|error| error.at_page(id))
    }

    fn parse(page: &[u8], space: &Space) -> Result<Room> {
        let geometry = space.geometry();
        let header = fsp::SpaceHeader::parse(page)?;
        let (size, limit) = (header.size.get(), header.free_limit.get());
        let mut above = size.saturating_sub(limit) / geometry.extent_pages();
        if above > 0 {
            // Extents with descriptor pages go to FREE_FRAG.
            above -= 1;
            above -= above / geometry.extents_per_descriptor_page();
        }
        let at = geometry.xdes_offset(PageNo(0));
        Ok(Room {
            size,
            free_extents: header.free.count() + above,
            first_extent_used: xdes::used_pages(&page[at..at + geometry.xdes_bytes()]),
        })
    }
}

struct Wanted {
    extents: u32,
    pages: u32,
    class: Class,
    kind: Kind,
    extent_pages: u32,
}

impl Wanted {
    fn new(space: &Space, extents: u32, pages: u32, class: Class) -> Wanted {
        let extent_pages = space.geometry().extent_pages();
        Wanted {
            extents,
            pages,
            class,
            kind: space.kind(),
            extent_pages,
        }
    }

    /// A file below half an extent is counted in pages, as long as the operation needs few: no
    /// segment in it has all its fragment pages, so none needs an extent.
    fn counts_pages(&self, room: Room) -> bool {
        self.kind == Kind::Table
            && room.size < self.extent_pages / 2
            && self.pages < self.extent_pages / 2
    }

    /// Extents that stay for those who may not fail.
    fn margin(&self, room: Room) -> u32 {
        let extents = room.size / self.extent_pages;
        match (self.class, self.kind) {
            (Class::System | Class::Checkpoint, _) => 0,
            (_, Kind::Undo) => 1 + extents / 200,
            _ => 2 + extents * 2 / 200,
        }
    }

    fn claim(&self, space: &Arc<Space>, room: Room) -> Option<Reservation> {
        let reserved = space.reserved();
        if self.counts_pages(room) {
            let free = room.size.saturating_sub(room.first_extent_used);
            claim_up_to(&reserved.pages, self.pages, free)?;
            return Some(Reservation {
                space: space.clone(),
                extents: 0,
                pages: self.pages,
            });
        }
        // Page reservations of the time when the file was smaller may need an extent now.
        let pages = reserved
            .pages
            .load(Ordering::Acquire)
            .div_ceil(self.extent_pages);
        let free = room.free_extents.checked_sub(self.margin(room) + pages)?;
        claim_up_to(&reserved.extents, self.extents, free)?;
        Some(Reservation {
            space: space.clone(),
            extents: self.extents,
            pages: 0,
        })
    }

    /// The size that would do, given what is reserved.
    fn size_for(&self, space: &Space, room: Room) -> u32 {
        let reserved = space.reserved();
        let (extents, pages) = (
            reserved.extents.load(Ordering::Acquire),
            reserved.pages.load(Ordering::Acquire),
        );
        if self.counts_pages(room) {
            let needed = room.first_extent_used + pages + self.pages;
            return space.size_for(needed.max(room.size + 1), AUTOEXTEND_MIB);
        }
        let wanted = extents + self.extents + self.margin(room) + pages.div_ceil(self.extent_pages);
        // One extent more: the first above the free limit is not counted.
        let missing = (wanted + 1).saturating_sub(room.free_extents).max(1);
        let needed = u64::from(room.size) + u64::from(missing) * u64::from(self.extent_pages);
        // The first extent of a small file is completed first.
        let needed = match room.size < self.extent_pages {
            true => self.extent_pages,
            false => u32::try_from(needed).unwrap_or(u32::MAX - 1),
        };
        space.size_for(needed, AUTOEXTEND_MIB)
    }
}

fn claim_up_to(counter: &crate::sync::atomic::AtomicU32, wanted: u32, free: u32) -> Option<()> {
    counter
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |reserved| {
            reserved.checked_add(wanted).filter(|&sum| sum <= free)
        })
        .ok()
        .map(drop)
}

/// Grows the file: blocks first, then SIZE. Does nothing if somebody else was faster.
fn grow(ctx: &PageCtx, space: &Arc<Space>, wanted: &Wanted, class: Class) -> Result<()> {
    let budget = Budget {
        log_bytes: GROW_LOG_BYTES,
        frames: 1,
        class,
    };
    let mut mtr = match space.is_temporary() {
        true => Mtr::start_no_log(ctx, 1)?,
        false => Mtr::start(ctx, budget)?,
    };
    let _growing = space.reserved().growing.lock();
    let room = Room::read(ctx, space)?;
    let enough = wanted.claim(space, room).is_some();
    let size = wanted.size_for(space, room);
    if enough || size <= room.size {
        return match enough {
            true => Ok(()),
            false => Err(Error::NoSpace(space.id())),
        };
    }
    space.allocate(size)?;
    let mut plan = Plan::open(&mut mtr, space.id())?;
    plan.write(PageNo(0), fsp::OFF_SIZE, &size.to_be_bytes());
    plan.apply()?;
    mtr.commit();
    space.set_size_pages(size);
    Ok(())
}

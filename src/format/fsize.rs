//! How files grow (format-tablespace.md 4.5 rule 5): pure arithmetic.

use super::fsp::Geometry;

/// Pages of a new tablespace file of a table.
pub const NEW_FILE_PAGES: u32 = 4;
/// Bytes of a new undo tablespace.
pub const NEW_UNDO_BYTES: u64 = 10 << 20;

/// Size in pages that a user tablespace of `size` pages grows to in one step. Below one extent
/// just the pages `needed` (at least one) are added; then one extent at a time, and four when the
/// space is large. `None` if page numbers would run out.
pub fn grown_size(geometry: Geometry, size: u32, needed: u32) -> Option<u32> {
    let extent = geometry.extent_pages();
    if size < extent {
        let wanted = size.checked_add(needed.max(1))?;
        // A space that outgrows its first extent has it whole before the next is begun.
        return if wanted <= extent {
            Some(wanted)
        } else {
            Some(extent)
        };
    }
    let large = (32 * extent).min(geometry.descriptor_interval());
    let step = if size < large { extent } else { 4 * extent };
    // A size that is not whole extents (the file was made by hand) is completed first.
    let size = size
        .checked_next_multiple_of(extent)
        .filter(|&whole| whole != size)
        .or_else(|| size.checked_add(step))?;
    (size < u32::MAX).then_some(size)
}

/// Size in pages that the system tablespace grows to: `increment_mib` (64 by default) more.
pub fn grown_system_size(geometry: Geometry, size: u32, increment_mib: u32) -> Option<u32> {
    let pages = (u64::from(increment_mib) << 20) / geometry.physical_bytes() as u64;
    u32::try_from(u64::from(size) + pages)
        .ok()
        .filter(|&size| size < u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_grows_by_pages_then_by_extents_then_by_four() {
        let g = Geometry::of_page_size(16384);
        assert_eq!(grown_size(g, 4, 1), Some(5));
        assert_eq!(grown_size(g, 4, 11), Some(15));
        assert_eq!(grown_size(g, 60, 9), Some(64));
        assert_eq!(grown_size(g, 64, 1), Some(128));
        assert_eq!(grown_size(g, 32 * 64 - 64, 1), Some(32 * 64));
        assert_eq!(grown_size(g, 32 * 64, 1), Some(36 * 64));
        assert_eq!(grown_size(g, 70, 1), Some(128));
        assert_eq!(grown_size(g, u32::MAX - 63, 1), None);
        assert_eq!(grown_system_size(g, 768, 64), Some(768 + 4096));
        let g4 = Geometry::of_page_size(4096);
        assert_eq!(
            grown_size(g4, 4096, 1),
            Some(4096 + 1024),
            "one descriptor page full"
        );
    }
}

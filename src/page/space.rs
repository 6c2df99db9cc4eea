//! How much fits on a page.

use crate::format::index_page as at;

use super::layout;

/// Bytes of all records in the list, headers included.
pub fn data_size(page: &[u8]) -> usize {
    let heap = layout::frame(page).heap as usize;
    (layout::heap_top(page).saturating_sub(heap)).saturating_sub(layout::garbage(page))
}

/// Largest size of `n` records together that can be taken from the top of the heap now, the slots
/// that the directory may come to need set aside.
pub fn max_insert_size(page: &[u8], n: usize) -> usize {
    let heap = layout::frame(page).heap as usize;
    free(page, layout::heap_top(page).saturating_sub(heap), n)
}

/// Largest size of `n` records together that fit after `reorganise`.
pub fn max_insert_size_after_reorganise(page: &[u8], n: usize) -> usize {
    free(page, data_size(page), n)
}

fn free(page: &[u8], used: usize, n: usize) -> usize {
    let room = at::empty_free_space(page.len(), layout::is_compact(page));
    let reserve = at::directory_reserve(n + layout::n_recs(page));
    room.saturating_sub(used + reserve)
}

/// Room that sequential inserts leave on clustered leaves for later updates.
pub fn update_reserve(page_len: usize) -> usize {
    page_len / 16
}

/// Room that a reorganisation must give to be worth its cost. On a page with less left to gain, each
/// new record of a few bytes would have the whole page copied and logged once more: it is split.
pub fn reorganise_min(page_len: usize) -> usize {
    page_len / 32
}

//! Sets of a table's columns, as the host gives them: a bit for each.

use crate::host::image::TableImage;

/// Makes `columns` those of the map, ascending, in memory that is there; `None` = all. A short map means
/// 0 for the rest.
pub(super) fn fill_columns(columns: &mut Vec<u16>, image: &TableImage, map: Option<&[u8]>) {
    let is_set = |&at: &u16| {
        map.is_none_or(|map| {
            let byte = map.get(usize::from(at) / 8).copied().unwrap_or(0);
            byte >> (at % 8) & 1 == 1
        })
    };
    // As many as there are, ascending: they are all of them.
    if map.is_none() && columns.len() == image.columns.len() {
        return;
    }
    columns.clear();
    columns.extend((0..image.columns.len() as u16).filter(is_set));
}

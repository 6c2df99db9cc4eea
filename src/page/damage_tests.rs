//! Pages whose bytes are wrong: reading and changing them gives errors, no panic and no endless loop.

use super::tests::{Random, full_page, key_of, random_row, tuple_of};
use super::{Offsets, RecordView, Scratch, SearchMode, delete, insert, layout, list, search};
use super::{split_point, validate};
use crate::host::collation::BytesOnly;
use crate::schema::{FieldRef, Index, Tuple};

/// Everything that reads a page, on a page that may be anything.
pub(super) fn exercise(page: &[u8], index: &Index, key: &Tuple) {
    let _ = validate(page, index, &BytesOnly);
    if layout::check(page, index).is_err() {
        return;
    }
    let mut offsets = Offsets::new();
    for mode in [SearchMode::Less, SearchMode::Greater] {
        if let Ok(found) = search(page, index, key, mode, &BytesOnly) {
            let _ = layout::previous(page, found.up);
        }
    }
    for rec in layout::records(page).flatten() {
        if let Ok(view) = RecordView::new(page, rec, index, &mut offsets) {
            let _ = view.fields().map(FieldRef::len).sum::<usize>();
            let _ = (
                view.trx_id(),
                view.roll_ptr(),
                view.child(),
                view.metadata_blob(),
            );
        }
    }
    let _ = super::instant::metadata_record(page)
        .map(|rec| rec.map(|rec| super::instant::metadata_blob(page, rec, index)));
    let _ = split_point::split_point(page, index, layout::infimum(page), 100, &mut offsets);
}

#[test]
fn damaged_pages_are_errors_never_panics_or_loops() {
    let seed = 0xDEAD_BEEF;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    for round in 0..60 {
        let compact = round % 2 == 0;
        let model = full_page(compact, &mut random);
        let index = model.table.clustered();
        for _ in 0..100 {
            let mut page = model.page.page.clone();
            for _ in 0..1 + random.below(4) {
                damage(&mut page, &mut random);
            }
            exercise(&page, index, &key_of(random.below(100_000) as u32));
            change_damaged(page, index, &mut random);
        }
    }
}

fn damage(page: &mut [u8], random: &mut Random) {
    let n = page.len();
    let top = layout::heap_top(page).clamp(130, n - 200);
    let at = match random.below(4) {
        0 => 24 + random.below(70),
        1 => n - 9 - random.below(120),
        2 => 94 + random.below(31),
        _ => 120 + random.below(top - 120),
    };
    match random.below(3) {
        0 => page[at] ^= 1 << random.below(8),
        1 => page[at] = random.next() as u8,
        _ => {
            let len = random.below(40).min(n - at);
            page[at..at + len].fill(random.next() as u8);
        }
    }
}

/// Inserts, deletes and rebuilds on a damaged page: errors or not, no panic.
fn change_damaged(mut page: Vec<u8>, index: &Index, random: &mut Random) {
    let mut scratch = Scratch::new();
    let mut moved = Vec::new();
    if layout::check(&page, index).is_err() {
        return;
    }
    let row = random_row(random, random.0 as u32 % 100_000);
    let key = tuple_of(&row);
    for _ in 0..3 {
        let Ok(found) = search(&page, index, &key, SearchMode::LessOrEqual, &BytesOnly) else {
            break;
        };
        let _ = insert::insert(&mut page[..], index, found.rec, &key, &mut scratch);
        if !layout::is_system(&page, found.rec) {
            let _ = delete::delete(&mut page[..], index, found.rec, &mut scratch.offsets);
        }
    }
    let _ = list::reorganise(&mut page[..], index, &mut scratch, &mut moved);
}

//! What the clustered root and the hidden metadata record say of a table: the state of instant ALTER
//! (format-tablespace.md section 15) and the last AUTO_INCREMENT value.

use crate::format::blob::BlobRef;
use crate::host::collation::CollationSource;
use crate::lock::LockTable;
use crate::mtr::{Mode, Mtr, PageCtx, retry};
use crate::page::instant::{self, RootState};
use crate::page::layout;
use crate::schema::{InstantState, Table};
use crate::sync::{Arc, Rank};
use crate::tree::{Intent, Seek, Tree};
use crate::words::{Error, Result};

/// Completes the definition from the table's own pages; returns it with PAGE_ROOT_AUTO_INC.
///
/// The leftmost leaf can be reached, and its key read, with what the root says alone; only then is
/// the field order known by which other records are read.
pub(super) fn complete(
    ctx: &PageCtx,
    mut table: Table,
    locks: &Arc<LockTable>,
    collations: &Arc<dyn CollationSource>,
) -> Result<(Table, u64)> {
    let tree = |t: &Table| {
        let shared = Arc::new(t.clone());
        Tree::new(shared, 0, locks.clone(), collations.clone())
    };
    let plain = tree(&table);
    let ((state, last_autoinc), _) = retry(ctx, None, |mtr| read_root(mtr, &plain))?;
    let Some(state) = state else {
        return Ok((table, last_autoinc));
    };
    let derived = table.clustered().core_null_bytes() as u8;
    table.indexes[0].instant = Some(InstantState {
        n_core_fields: state.n_core_fields,
        core_null_bytes: state.core_null_bytes.unwrap_or(
            // Of the core fields alone, where the order is that of the columns.
            match (state.n_core_fields as usize) <= table.clustered().fields.len() {
                true => table
                    .clustered()
                    .null_bytes_of(state.n_core_fields as usize) as u8,
                false => derived,
            },
        ),
        is_alter: state.core_null_bytes.is_some(),
        defaults: Vec::new(),
    });
    let descent = tree(&table);
    let (found, _) = retry(ctx, None, |mtr| read_map(mtr, &descent))?;
    table.indexes[0].instant = None;
    let Some(blob) = found else {
        // TYPE says instant, but the ALTER was rolled back: nothing changed.
        return Ok((table, last_autoinc));
    };
    let map = blob.map(|b| instant::parse_field_map(&b)).transpose()?;
    table.set_instant(state.n_core_fields, state.core_null_bytes, map.as_deref())?;
    let ordered = tree(&table);
    let (defaults, _) = retry(ctx, None, |mtr| read_defaults(mtr, &ordered))?;
    table.set_instant_defaults(defaults);
    Ok((table, last_autoinc))
}

fn read_root(mtr: &mut Mtr<'_>, tree: &Tree) -> Result<(Option<RootState>, u64)> {
    let root = mtr.get(tree.root(), Mode::S, Rank::IndexPage)?;
    let view = mtr.view(root);
    layout::check(view, tree.index())?;
    let state = instant::root_state(view);
    let base = tree.index().trx_id_field.map_or(0, |i| i + 2);
    if state.is_some_and(|s| s.n_core_fields < base) {
        return Err(layout::corrupt(view, "too few core fields"));
    }
    let found = (state, layout::root_auto_inc(view));
    mtr.release(root);
    Ok(found)
}

/// `None`: there is no metadata record. Else the content of its BLOB, if it has one.
fn read_map(mtr: &mut Mtr<'_>, tree: &Tree) -> Result<Option<Option<Vec<u8>>>> {
    let at = tree.seek(mtr, Seek::First, Intent::Read)?;
    let view = mtr.view(at.page);
    let Some(rec) = instant::metadata_record(view)? else {
        mtr.release(at.page);
        return Ok(None);
    };
    let reference = instant::metadata_blob(view, rec, tree.index())?;
    let map = match reference {
        None => None,
        Some(bytes) => {
            let mut out = Vec::new();
            tree.read_blob(mtr, BlobRef::of_local_part(&bytes)?, &mut out)?;
            Some(out)
        }
    };
    mtr.release(at.page);
    Ok(Some(map))
}

fn read_defaults(mtr: &mut Mtr<'_>, tree: &Tree) -> Result<Vec<Option<Box<[u8]>>>> {
    let at = tree.seek(mtr, Seek::First, Intent::Read)?;
    let page = mtr.view(at.page).to_vec();
    let Some(rec) = instant::metadata_record(&page)? else {
        return Err(Error::corrupt(
            mtr.page_id(at.page),
            "the metadata record is gone",
        ));
    };
    let defaults = instant::defaults(&page, rec, tree.index(), |local| {
        let (prefix, reference) = local
            .external_parts()
            .ok_or_else(|| layout::corrupt(&page, "a default without a BLOB reference"))?;
        let mut value = prefix.to_vec();
        tree.read_blob(mtr, BlobRef::of_local_part(reference)?, &mut value)?;
        Ok(value.into())
    });
    mtr.release(at.page);
    defaults
}

//! Secondary entries and search keys from clustered entries.

use crate::format::blob::BlobRef;
use crate::host::collation::CollationSource;
use crate::mtr::Mtr;
use crate::schema::compare::compare_fields;
use crate::schema::{Field, FieldColumn, FieldRef, Index, Tuple};
use crate::tree::Tree;
use crate::words::limits::{BLOB_REF_BYTES, KEY_PART_BYTES_MAX};
use crate::words::{Error, Result};

/// The part of a value that a prefix field keeps: whole characters.
pub(super) fn prefix_of<'v>(
    field: &Field,
    bytes: &'v [u8],
    collations: &dyn CollationSource,
) -> &'v [u8] {
    let limit = usize::from(field.prefix_len);
    if limit == 0 || bytes.is_empty() {
        return bytes;
    }
    let width = field.ty.char_width();
    if width.min == width.max {
        return &bytes[..bytes.len().min(limit)];
    }
    let chars = limit / usize::from(width.max);
    let len = collations.prefix_len(field.ty.prtype.collation(), bytes, chars);
    &bytes[..len.min(bytes.len())]
}

/// Cuts the last field of an entry to its field's prefix.
pub(super) fn cut_last(tuple: &mut Tuple, field: &Field, collations: &dyn CollationSource) {
    let last = tuple.len() - 1;
    let Some(bytes) = tuple.field(last).bytes() else {
        return;
    };
    let cut = prefix_of(field, bytes, collations).len();
    if cut < bytes.len() {
        let kept = bytes[..cut].to_vec();
        tuple.set(last, FieldRef::Bytes(&kept));
    }
}

/// Off-page values of an entry, as far as secondary entries need them: by clustered field.
#[derive(Debug, Default)]
pub(super) struct Fetched(Vec<(u16, Vec<u8>)>);

impl Fetched {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn add(&mut self, field: usize, value: Vec<u8>) {
        self.0.push((field as u16, value));
    }

    /// Bytes of all values, each as far as an undo record keeps it.
    pub(super) fn bytes(&self) -> usize {
        let len = |value: &Vec<u8>| value.len().min(KEY_PART_BYTES_MAX);
        self.0.iter().map(|(_, value)| len(value)).sum()
    }

    pub(super) fn get(&self, field: usize) -> Option<&[u8]> {
        let found = self.0.iter().find(|(f, _)| usize::from(*f) == field);
        found.map(|(_, value)| &value[..])
    }

    /// Reads those off-page values of `row` that stand in some secondary index. An unwritten or
    /// freed one counts as empty beyond its local part.
    pub(super) fn fetch(&mut self, mtr: &mut Mtr<'_>, trees: &[Tree], row: &Tuple) -> Result<()> {
        self.fetch_for(mtr, &trees[0], &trees[1..], row)
    }

    /// The same for the indexes of `trees` only.
    pub(super) fn fetch_for(
        &mut self,
        mtr: &mut Mtr<'_>,
        clustered: &Tree,
        trees: &[Tree],
        row: &Tuple,
    ) -> Result<()> {
        self.clear();
        for field in 0..row.len() {
            let FieldRef::External(local) = row.field(field) else {
                continue;
            };
            let column = clustered.index().fields[field].column;
            let mut wanted = trees.iter().flat_map(|tree| &tree.index().fields);
            if !wanted.any(|f| f.column == column) {
                continue;
            }
            let prefix = local.len() - BLOB_REF_BYTES;
            let mut value = local[..prefix].to_vec();
            clustered.read_blob(mtr, BlobRef::of_local_part(local)?, &mut value)?;
            self.add(field, value);
        }
        Ok(())
    }
}

/// Builds the entry of a secondary tree for a row. `fetched` has the off-page values that the index
/// needs.
pub(super) fn secondary(
    tree: &Tree,
    clustered: &Index,
    row: &Tuple,
    fetched: &Fetched,
    out: &mut Tuple,
) -> Result<()> {
    out.clear();
    let index = tree.index();
    for field in &index.fields {
        let from = clustered_field(field, clustered, index)?;
        match row.field(from) {
            FieldRef::Null => out.push_null(),
            FieldRef::Bytes(bytes) => out.push_bytes(prefix_of(field, bytes, tree.collations())),
            FieldRef::External(local) => {
                let bytes = fetched
                    .get(from)
                    .unwrap_or(&local[..local.len() - BLOB_REF_BYTES]);
                out.push_bytes(prefix_of(field, bytes, tree.collations()));
            }
        }
    }
    Ok(())
}

/// The clustered field that has a secondary field's value.
#[inline]
pub(super) fn clustered_field(field: &Field, clustered: &Index, index: &Index) -> Result<usize> {
    let found = match field.column {
        FieldColumn::Stored(ordinal) => clustered.field_of_column(ordinal).or_else(|| {
            let same = |f: &Field| f.column == field.column && f.prefix_len == field.prefix_len;
            clustered.fields.iter().position(same)
        }),
        FieldColumn::Virtual(_) | FieldColumn::Dropped => {
            return Err(Error::unsupported("indexes on virtual columns"));
        }
    };
    found.ok_or_else(|| Error::internal(format!("no clustered field for index {}", index.name)))
}

/// Copies the clustered key that a secondary entry carries. `get` gives its fields.
pub(super) fn clustered_key<'r>(
    index: &Index,
    clustered: &Index,
    get: impl Fn(usize) -> FieldRef<'r>,
    collations: &dyn CollationSource,
    out: &mut Tuple,
) -> Result<()> {
    out.clear();
    for key in &clustered.fields[..clustered.n_uniq as usize] {
        let same = |f: &Field| f.column == key.column && f.prefix_len == key.prefix_len;
        let whole = |f: &Field| f.column == key.column && f.prefix_len == 0;
        let found = index
            .fields
            .iter()
            .position(same)
            .or_else(|| index.fields.iter().position(whole));
        let Some(at) = found else {
            return Err(Error::internal(format!(
                "index {} lacks a part of the clustered key",
                index.name
            )));
        };
        match get(at).bytes() {
            Some(bytes) => out.push_bytes(prefix_of(key, bytes, collations)),
            None => out.push_null(),
        }
    }
    Ok(())
}

/// True if two entries are equal in every byte.
pub(super) fn is_identical(a: &Tuple, b: &Tuple) -> bool {
    a.len() == b.len() && a.fields().zip(b.fields()).all(|(x, y)| x == y)
}

/// True if two whole entries of a tree are equal in its order, whatever their bytes.
pub(super) fn is_equal(tree: &Tree, a: &Tuple, b: &Tuple) -> bool {
    a.len() == b.len()
        && tree.index().fields.iter().enumerate().all(|(i, field)| {
            compare_fields(field, a.field(i), b.field(i), tree.collations()).is_eq()
        })
}

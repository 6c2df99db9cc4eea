//! Key images and positions: search entries from them, and back.

use super::codec::Template;
use super::convert::Convert;
use crate::host::image::{ImageKeyPart, little_endian};
use crate::schema::{FieldRef, Table, Tuple};
use crate::words::{Error, Result};

/// Bytes of a position in a table without a key of its own.
pub(super) const ROW_ID_BYTES: usize = 6;

impl Template {
    /// Makes a search entry of a key image, which may end after any part or inside a string part.
    ///
    /// Errors: `Invalid` if it ends elsewhere or is too long.
    pub fn search_entry(&self, key: usize, mut image: &[u8], out: &mut Tuple) -> Result<()> {
        out.clear();
        for part in &self.image().keys[key].parts {
            if image.is_empty() {
                return Ok(());
            }
            image = self.store_part(part, image, out)?;
        }
        match image.is_empty() {
            true => Ok(()),
            false => Err(Error::invalid("a key image that is longer than its key")),
        }
    }

    fn store_part<'k>(
        &self,
        part: &ImageKeyPart,
        mut image: &'k [u8],
        out: &mut Tuple,
    ) -> Result<&'k [u8]> {
        let column = &self.image().columns[part.column as usize];
        let convert = self.columns[part.column as usize].convert;
        let room = part.length as usize;
        let short = || Error::invalid("a key image that ends inside a part");
        let mut null = false;
        if column.null_mask != 0 {
            let (first, rest) = image.split_first().ok_or_else(short)?;
            (null, image) = (*first != 0, rest);
        }
        let mut length = room;
        if column.kind.has_key_length() {
            let (head, rest) = image.split_at_checked(2).ok_or_else(short)?;
            length = (little_endian(head) as usize).min(room);
            image = rest;
        }
        let (bytes, rest) = image.split_at(room.min(image.len()));
        match convert {
            _ if null => out.push_null(),
            Convert::Int { len, .. } if bytes.len() < usize::from(len) => return Err(short()),
            // A part of a string column's key: shorter than the column, so never padded.
            Convert::VarChar | Convert::Blob => out.push_bytes(&bytes[..length.min(bytes.len())]),
            Convert::Int { .. } => convert.store_fixed(bytes, out),
            Convert::Char { .. } | Convert::Fixed { .. } => out.push_bytes(bytes),
        }
        Ok(rest)
    }

    /// Bytes of a position.
    pub fn position_bytes(&self, table: &Table) -> usize {
        match (table.has_generated_key(), self.key_of_index(0)) {
            (false, Some(key)) => self.image().key_image_bytes(key) as usize,
            _ => ROW_ID_BYTES,
        }
    }

    /// Writes the position of the row with a clustered key into `out`, `position_bytes` long.
    pub fn store_position(&self, table: &Table, clustered_key: &Tuple, out: &mut [u8]) {
        let Some(key) = self.key_of_index(0).filter(|_| !table.has_generated_key()) else {
            out.copy_from_slice(clustered_key.field(0).bytes().unwrap_or(&[0; ROW_ID_BYTES]));
            return;
        };
        let mut at = 0;
        for (i, part) in self.image().keys[key].parts.iter().enumerate() {
            let column = &self.image().columns[part.column as usize];
            let value = clustered_key.field(i);
            let end = at + column.key_part_bytes(part.length) as usize;
            let mut target = &mut out[at..end];
            target.fill(0);
            at = end;
            if column.null_mask != 0 {
                target[0] = u8::from(value.is_null());
                target = &mut target[1..];
            }
            let FieldRef::Bytes(bytes) = value else {
                continue;
            };
            if column.kind.has_key_length() {
                target[..2].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
                target = &mut target[2..];
            }
            self.columns[part.column as usize]
                .convert
                .load_fixed(bytes, target);
        }
    }

    /// Makes the clustered key of a position.
    ///
    /// Errors: `Invalid` if it is none of this table.
    pub fn key_of_position(&self, table: &Table, position: &[u8], out: &mut Tuple) -> Result<()> {
        if position.len() < self.position_bytes(table) {
            return Err(Error::invalid("a position that is too short"));
        }
        match self.key_of_index(0).filter(|_| !table.has_generated_key()) {
            Some(key) => {
                let image = &position[..self.image().key_image_bytes(key) as usize];
                self.search_entry(key, image, out)
            }
            None => {
                out.clear();
                out.push_bytes(&position[..ROW_ID_BYTES]);
                Ok(())
            }
        }
    }
}

//! Logical index entries: what search and insert take.

use crate::words::PageNo;
use crate::words::limits::BLOB_REF_BYTES;

/// One field of an entry or of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldRef<'a> {
    /// NULL.
    Null,
    /// The whole value as stored.
    Bytes(&'a [u8]),
    /// The local part of a value that continues off the page; its last 20 bytes are the reference.
    External(&'a [u8]),
}

impl<'a> FieldRef<'a> {
    /// True for NULL.
    pub fn is_null(self) -> bool {
        matches!(self, FieldRef::Null)
    }

    /// The local bytes, reference included; `None` for NULL.
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            FieldRef::Null => None,
            FieldRef::Bytes(b) | FieldRef::External(b) => Some(b),
        }
    }

    /// Number of local bytes, 0 for NULL.
    pub fn len(self) -> usize {
        self.bytes().map_or(0, <[u8]>::len)
    }

    /// True for NULL and for the empty value.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Splits the local part of an external value into prefix and 20-byte reference.
    pub fn external_parts(self) -> Option<(&'a [u8], &'a [u8])> {
        match self {
            FieldRef::External(b) if b.len() >= BLOB_REF_BYTES => {
                Some(b.split_at(b.len() - BLOB_REF_BYTES))
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotKind {
    Null,
    Bytes,
    External,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot {
    start: u32,
    len: u32,
    kind: SlotKind,
}

/// What sort of record an entry stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TupleKind {
    /// A leaf record.
    #[default]
    Leaf,
    /// A node pointer to a child page.
    NodePointer(PageNo),
    /// The hidden first record of an instant table; with a BLOB reference if columns were dropped
    /// or reordered.
    Metadata(Option<[u8; BLOB_REF_BYTES]>),
}

/// An index entry that owns its bytes, made to be cleared and filled again without allocating.
///
/// As a search key it may have fewer fields than the index: only those are compared.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Tuple {
    slots: Vec<Slot>,
    data: Vec<u8>,
    /// Info bits of the record to be inserted (`format::record::DELETED`, `MIN_REC`).
    pub info_bits: u8,
    /// Leaf record, node pointer or metadata record.
    pub kind: TupleKind,
}

impl Clone for Tuple {
    fn clone(&self) -> Tuple {
        Tuple {
            slots: self.slots.clone(),
            data: self.data.clone(),
            info_bits: self.info_bits,
            kind: self.kind,
        }
    }

    /// Into the memory that is there, which a derived one would give back.
    fn clone_from(&mut self, other: &Tuple) {
        self.slots.clone_from(&other.slots);
        self.data.clone_from(&other.data);
        self.info_bits = other.info_bits;
        self.kind = other.kind;
    }
}

impl Tuple {
    /// An empty entry.
    pub fn new() -> Tuple {
        Tuple::default()
    }

    /// Forgets the fields, info bits and kind; keeps the memory.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.data.clear();
        self.info_bits = 0;
        self.kind = TupleKind::Leaf;
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Appends a field, copying its bytes.
    pub fn push(&mut self, field: FieldRef<'_>) {
        let (kind, bytes) = match field {
            FieldRef::Null => (SlotKind::Null, &[][..]),
            FieldRef::Bytes(b) => (SlotKind::Bytes, b),
            FieldRef::External(b) => (SlotKind::External, b),
        };
        let start = self.data.len() as u32;
        self.data.extend_from_slice(bytes);
        self.slots.push(Slot {
            start,
            len: bytes.len() as u32,
            kind,
        });
    }

    /// Appends NULL.
    pub fn push_null(&mut self) {
        self.push(FieldRef::Null);
    }

    /// Appends a value.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.push(FieldRef::Bytes(bytes));
    }

    /// Appends a value that `write` appends to the buffer it is given.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.data.len();
        write(&mut self.data);
        assert!(self.data.len() >= start, "push_with may only append");
        let len = (self.data.len() - start) as u32;
        self.slots.push(Slot {
            start: start as u32,
            len,
            kind: SlotKind::Bytes,
        });
    }

    /// Field `i`; panics if there is none (a bug of the caller).
    pub fn field(&self, i: usize) -> FieldRef<'_> {
        let slot = self.slots[i];
        let bytes = &self.data[slot.start as usize..(slot.start + slot.len) as usize];
        match slot.kind {
            SlotKind::Null => FieldRef::Null,
            SlotKind::Bytes => FieldRef::Bytes(bytes),
            SlotKind::External => FieldRef::External(bytes),
        }
    }

    /// All fields in order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = FieldRef<'_>> + '_ {
        (0..self.slots.len()).map(|i| self.field(i))
    }

    /// Replaces field `i`. The old bytes stay in the buffer unless the length is the same.
    pub fn set(&mut self, i: usize, field: FieldRef<'_>) {
        let bytes = field.bytes().unwrap_or(&[]);
        let slot = &mut self.slots[i];
        if bytes.len() != slot.len as usize {
            slot.start = self.data.len() as u32;
            slot.len = bytes.len() as u32;
            self.data.extend_from_slice(bytes);
        } else {
            let start = slot.start as usize;
            self.data[start..start + bytes.len()].copy_from_slice(bytes);
        }
        slot.kind = match field {
            FieldRef::Null => SlotKind::Null,
            FieldRef::Bytes(_) => SlotKind::Bytes,
            FieldRef::External(_) => SlotKind::External,
        };
    }

    /// Puts `reference` in the place of the one that ends the local part of field `i`. Panics if it is not
    /// stored off-page (a bug of the caller).
    pub fn set_reference(&mut self, i: usize, reference: &[u8; BLOB_REF_BYTES]) {
        let slot = &self.slots[i];
        assert!(slot.kind == SlotKind::External, "field {i} is on the page");
        let end = (slot.start + slot.len) as usize;
        self.data[end - BLOB_REF_BYTES..end].copy_from_slice(reference);
    }

    /// The bytes of the leading fields that have just these lengths and follow one another in memory,
    /// and how many fields they are.
    #[inline]
    pub fn leading_run(&self, lens: impl Iterator<Item = usize>) -> (usize, &[u8]) {
        let (mut fields, mut bytes) = (0, 0);
        for (slot, len) in self.slots.iter().zip(lens) {
            let follows = slot.start as usize == bytes && slot.kind == SlotKind::Bytes;
            if !follows || slot.len as usize != len {
                break;
            }
            fields += 1;
            bytes += len;
        }
        (fields, &self.data[..bytes])
    }

    /// Cuts the entry to its first `n` fields, e.g. to a search prefix.
    pub fn truncate(&mut self, n: usize) {
        self.slots.truncate(n);
    }

    /// Copies the first `n` fields of another entry, replacing this one.
    pub fn copy_prefix_of(&mut self, other: &Tuple, n: usize) {
        self.clear();
        for i in 0..n {
            self.push(other.field(i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_pushed() {
        let mut t = Tuple::new();
        t.push_bytes(b"abc");
        t.push_null();
        t.push(FieldRef::External(&[7; 25]));
        t.push_with(|out| out.extend_from_slice(b"xy"));
        assert_eq!(t.field(0), FieldRef::Bytes(b"abc"));
        assert!(t.field(1).is_null());
        assert_eq!(
            t.field(2).external_parts(),
            Some((&[7; 5][..], &[7; 20][..]))
        );
        assert_eq!(t.field(3), FieldRef::Bytes(b"xy"));
        t.set(0, FieldRef::Bytes(b"longer"));
        t.set(1, FieldRef::Bytes(b"1"));
        t.set(3, FieldRef::Bytes(b"zz"));
        assert_eq!(t.field(0), FieldRef::Bytes(b"longer"));
        assert_eq!(t.field(1), FieldRef::Bytes(b"1"));
        assert_eq!(t.field(3), FieldRef::Bytes(b"zz"));
        assert_eq!(t.leading_run([6, 1].into_iter()), (0, &b""[..]));
        t.clear();
        assert!(t.is_empty());
        t.push_bytes(b"abc");
        t.push_bytes(b"de");
        t.push_null();
        assert_eq!(t.leading_run([3, 2, 0].into_iter()), (2, &b"abcde"[..]));
        assert_eq!(t.leading_run([3, 4].into_iter()), (1, &b"abc"[..]));
        t.set(0, FieldRef::Bytes(b"moved away"));
        assert_eq!(t.leading_run([10, 2].into_iter()).0, 0);
    }
}

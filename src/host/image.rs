//! Rows and keys as the host sees them: MariaDB's `record[0]` and key images.
//!
//! `include/xtradb/table.h` has the layout as a table. The engine never interprets a row but through
//! a [`TableImage`], which the host gives when it opens or creates a table.

use crate::words::{Error, Result};

/// A column's type: MySQL's `real_type()` numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are MySQL's")]
pub enum ColumnKind {
    Tiny = 1,
    Short = 2,
    Long = 3,
    Float = 4,
    Double = 5,
    Timestamp = 7,
    LongLong = 8,
    Int24 = 9,
    Date = 10,
    Time = 11,
    DateTime = 12,
    Year = 13,
    NewDate = 14,
    VarChar = 15,
    Bit = 16,
    Timestamp2 = 17,
    DateTime2 = 18,
    Time2 = 19,
    NewDecimal = 246,
    Enum = 247,
    Set = 248,
    TinyBlob = 249,
    MediumBlob = 250,
    LongBlob = 251,
    Blob = 252,
    String = 254,
    Geometry = 255,
}

impl ColumnKind {
    const ALL: [ColumnKind; 27] = {
        use ColumnKind::*;
        [
            Tiny, Short, Long, Float, Double, Timestamp, LongLong, Int24, Date, Time, DateTime,
            Year, NewDate, VarChar, Bit, Timestamp2, DateTime2, Time2, NewDecimal, Enum, Set,
            TinyBlob, MediumBlob, LongBlob, Blob, String, Geometry,
        ]
    };

    /// The kind with MySQL's number, if there is one.
    pub fn from_number(number: u8) -> Option<ColumnKind> {
        ColumnKind::ALL
            .into_iter()
            .find(|&kind| kind as u8 == number)
    }

    /// Stored in the row as length and pointer.
    pub fn is_blob(self) -> bool {
        use ColumnKind::*;
        matches!(self, TinyBlob | MediumBlob | LongBlob | Blob | Geometry)
    }

    /// Its key part has two length bytes.
    pub fn has_key_length(self) -> bool {
        self == ColumnKind::VarChar || self.is_blob()
    }

    /// Integers that the row holds little-endian: TINY to LONGLONG, YEAR, ENUM, SET.
    pub fn is_integer(self) -> bool {
        use ColumnKind::*;
        matches!(
            self,
            Tiny | Short | Int24 | Long | LongLong | Year | Enum | Set
        )
    }
}

/// One column and its place in the row image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageColumn {
    /// As the user spelled it.
    pub name: Box<str>,
    /// MySQL's type.
    pub kind: ColumnKind,
    /// Byte offset of the value in the row.
    pub offset: u32,
    /// Bytes of the value in the row, length bytes and pointer included.
    pub length: u32,
    /// Greatest number of data bytes of strings and BIT; others as `length`; 0 for BLOBs.
    pub octets: u32,
    /// Collation number; 63 for all that is not text.
    pub collation: u16,
    /// Byte of the row that has the null bit.
    pub null_offset: u32,
    /// The null bit; 0 = the column cannot be NULL in the row image.
    pub null_mask: u8,
    /// VARCHAR 1 or 2, BLOBs 1 to 4, others 0.
    pub length_bytes: u8,
    /// Scale of DECIMAL, digits of a fraction of a second.
    pub decimals: u8,
    /// Digits of DECIMAL, bits of BIT.
    pub precision: u32,
    /// Declared UNSIGNED.
    pub unsigned: bool,
    /// Declared NOT NULL.
    pub not_null: bool,
    /// Has AUTO_INCREMENT.
    pub auto_increment: bool,
    /// Generated and not stored.
    pub is_virtual: bool,
    /// Generated and stored.
    pub is_generated_stored: bool,
    /// System versioning: the row's start.
    pub is_row_start: bool,
    /// System versioning: the row's end.
    pub is_row_end: bool,
    /// Among the row's BLOB columns, this one's number from 0; meaningless for others.
    pub blob_no: u32,
}

impl ImageColumn {
    /// A column that has nothing special: NOT NULL, of bytes or a signed number, `length` bytes of data.
    pub fn plain(name: &str, kind: ColumnKind, offset: u32, length: u32) -> ImageColumn {
        ImageColumn {
            name: name.into(),
            kind,
            offset,
            length,
            octets: length,
            collation: 63,
            null_offset: 0,
            null_mask: 0,
            length_bytes: 0,
            decimals: 0,
            precision: 0,
            unsigned: false,
            not_null: true,
            auto_increment: false,
            is_virtual: false,
            is_generated_stored: false,
            is_row_start: false,
            is_row_end: false,
            blob_no: 0,
        }
    }

    /// True if the row has NULL here.
    #[inline]
    pub fn is_null(&self, row: &[u8]) -> bool {
        self.null_mask != 0 && row[self.null_offset as usize] & self.null_mask != 0
    }

    /// Sets or clears the null bit; a column without one is left alone.
    #[inline]
    pub fn set_null(&self, row: &mut [u8], null: bool) {
        if self.null_mask == 0 {
            return;
        }
        let byte = &mut row[self.null_offset as usize];
        if null {
            *byte |= self.null_mask
        } else {
            *byte &= !self.null_mask
        }
    }

    /// The column's bytes in the row.
    #[inline]
    pub fn bytes<'r>(&self, row: &'r [u8]) -> &'r [u8] {
        &row[self.offset as usize..(self.offset + self.length) as usize]
    }

    /// The column's bytes in the row, to be filled.
    #[inline]
    pub fn bytes_mut<'r>(&self, row: &'r mut [u8]) -> &'r mut [u8] {
        &mut row[self.offset as usize..(self.offset + self.length) as usize]
    }

    /// The data of a VARCHAR in the row; its length is cut to the column's octets.
    #[inline]
    pub fn varchar<'r>(&self, row: &'r [u8]) -> &'r [u8] {
        let field = self.bytes(row);
        let head = self.length_bytes as usize;
        let length = little_endian(&field[..head]).min((field.len() - head) as u64) as usize;
        &field[head..head + length]
    }

    /// The length of a BLOB in the row.
    #[inline]
    pub fn blob_length(&self, row: &[u8]) -> usize {
        little_endian(&self.bytes(row)[..self.length_bytes as usize]) as usize
    }

    /// Writes length and pointer of a BLOB. `data` must outlive the host's use of the row:
    /// it lies in the handle's [`BlobHeap`].
    #[inline]
    pub fn set_blob(&self, row: &mut [u8], data: BlobRef) {
        let head = self.length_bytes as usize;
        let field = self.bytes_mut(row);
        field[..head].copy_from_slice(&data.length.to_le_bytes()[..head]);
        field[head..head + 8].copy_from_slice(&data.address.to_ne_bytes());
    }

    /// Bytes that the column's part of `part_length` bytes takes in a key image.
    pub fn key_part_bytes(&self, part_length: u32) -> u32 {
        (self.null_mask != 0) as u32 + 2 * self.kind.has_key_length() as u32 + part_length
    }
}

/// A little-endian number of at most eight bytes.
#[inline]
pub fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | byte as u64)
}

/// One part of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageKeyPart {
    /// Position in `TableImage::columns`.
    pub column: u32,
    /// Bytes of the column that are in the key.
    pub length: u32,
    /// Sorted in descending order.
    pub descending: bool,
}

/// What a key is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyKind {
    /// PRIMARY KEY.
    Primary,
    /// UNIQUE.
    Unique,
    /// Neither.
    Plain,
    /// FULLTEXT.
    FullText,
    /// SPATIAL.
    Spatial,
}

/// One key; its position in `TableImage::keys` is its number for the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageKey {
    /// "PRIMARY" or the user's name.
    pub name: Box<str>,
    /// What it is.
    pub kind: KeyKind,
    /// Its parts in order; at least one.
    pub parts: Box<[ImageKeyPart]>,
}

impl ImageKey {
    /// A key of one column, of which `length` bytes count, ascending.
    pub fn of_column(name: &str, kind: KeyKind, column: u32, length: u32) -> ImageKey {
        ImageKey {
            name: name.into(),
            kind,
            parts: Box::new([ImageKeyPart {
                column,
                length,
                descending: false,
            }]),
        }
    }
}

/// Columns, keys and row layout of a table, as the host uses it. Checked: every offset lies in the
/// row, every column number exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableImage {
    /// In the table's order.
    pub columns: Box<[ImageColumn]>,
    /// In the host's order.
    pub keys: Box<[ImageKey]>,
    /// Bytes of a row image.
    pub row_length: u32,
    /// Bytes at its begin that hold null bits.
    pub null_bytes: u32,
    /// Number of BLOB columns.
    pub blob_count: u32,
}

impl TableImage {
    /// Checks offsets, lengths and numbers, and counts the BLOB columns.
    ///
    /// # Errors
    /// `Invalid` names the column or key and what is wrong with it.
    pub fn new(
        mut columns: Vec<ImageColumn>,
        keys: Vec<ImageKey>,
        row_length: u32,
        null_bytes: u32,
    ) -> Result<TableImage> {
        let mut blob_count = 0;
        for column in &mut columns {
            check_column(column, row_length, null_bytes)?;
            column.blob_no = blob_count;
            blob_count += column.kind.is_blob() as u32;
        }
        for key in &keys {
            check_key(key, &columns)?;
        }
        Ok(TableImage {
            columns: columns.into(),
            keys: keys.into(),
            row_length,
            null_bytes,
            blob_count,
        })
    }

    /// Bytes of the whole key image of key number `key`.
    pub fn key_image_bytes(&self, key: usize) -> u32 {
        self.keys[key]
            .parts
            .iter()
            .map(|part| self.key_part_bytes(part))
            .sum()
    }

    /// Bytes of one part in a key image.
    pub fn key_part_bytes(&self, part: &ImageKeyPart) -> u32 {
        self.columns[part.column as usize].key_part_bytes(part.length)
    }

    /// The AUTO_INCREMENT column.
    pub fn auto_increment(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.auto_increment)
    }
}

fn check_column(column: &ImageColumn, row_length: u32, null_bytes: u32) -> Result<()> {
    let bad = |why: &str| Err(Error::invalid(format!("column {}: {why}", column.name)));
    match column.offset.checked_add(column.length) {
        Some(end) if end <= row_length => {}
        _ => return bad("does not lie inside the row"),
    }
    if column.null_mask != 0
        && (column.null_offset >= null_bytes || !column.null_mask.is_power_of_two())
    {
        return bad("the null bit is not one bit of the null bytes");
    }
    if column.null_mask == 0 && !column.not_null {
        return bad("may be NULL but has no null bit");
    }
    let head = column.length_bytes as u32;
    use ColumnKind::*;
    let fits = match column.kind {
        VarChar => matches!(head, 1 | 2) && column.length == head + column.octets,
        kind if kind.is_blob() => matches!(head, 1..=4) && column.length == head + 8,
        Tiny | Year => column.length == 1,
        Short => column.length == 2,
        Int24 | Date | NewDate | Time => matches!(column.length, 3 | 4),
        Long | Float | Timestamp => column.length == 4,
        LongLong | Double | DateTime => column.length == 8,
        Timestamp2 | DateTime2 | Time2 => {
            let base = match column.kind {
                Timestamp2 => 4,
                DateTime2 => 5,
                _ => 3,
            };
            column.decimals <= 6 && column.length == base + u32::from(column.decimals).div_ceil(2)
        }
        Enum => matches!(column.length, 1 | 2),
        Set => matches!(column.length, 1 | 2 | 3 | 4 | 8),
        Bit => (1..=8).contains(&column.length),
        _ => column.length <= 0xFFFF,
    };
    if fits {
        Ok(())
    } else {
        bad("length and type do not agree")
    }
}

fn check_key(key: &ImageKey, columns: &[ImageColumn]) -> Result<()> {
    let bad = |why: &str| Err(Error::invalid(format!("key {}: {why}", key.name)));
    if key.parts.is_empty() {
        return bad("has no parts");
    }
    for part in &key.parts {
        let Some(column) = columns.get(part.column as usize) else {
            return bad("names a column that is not there");
        };
        let length_max = if column.kind.is_blob() {
            u16::MAX as u32
        } else {
            column.octets
        };
        if part.length == 0 || part.length > length_max {
            return bad("a part is empty or longer than its column");
        }
    }
    Ok(())
}

/// A row given by the host. `blobs[column.blob_no]` is the data of a BLOB column that is not NULL.
#[derive(Clone, Copy)]
pub struct RowIn<'a> {
    /// The row image.
    pub image: &'a [u8],
    /// Data of the BLOB columns, by `blob_no`; empty slices for NULLs.
    pub blobs: &'a [&'a [u8]],
}

/// Where a BLOB lies in a [`BlobHeap`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlobRef {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub length: u32,
}

/// Memory for BLOBs of rows that were handed to the host: stays where it is until `clear`.
#[derive(Default)]
pub struct BlobHeap {
    full: Vec<Vec<u8>>,
    /// Never grown beyond its capacity, so that addresses hold.
    open: Vec<u8>,
}

impl BlobHeap {
    const CHUNK_BYTES: usize = 64 << 10;
    /// A chunk above this size is given back by `clear`.
    const KEPT_BYTES_MAX: usize = 1 << 20;

    /// Forgets all BLOBs. Keeps one chunk for the next row.
    pub fn clear(&mut self) {
        self.full.clear();
        self.open.clear();
        if self.open.capacity() > BlobHeap::KEPT_BYTES_MAX {
            self.open = Vec::new();
        }
    }

    /// Room for a BLOB of `length` bytes; the caller appends exactly that many to what `append`
    /// gives.
    pub fn reserve(&mut self, length: usize) {
        if self.open.capacity() - self.open.len() < length {
            let chunk = Vec::with_capacity(length.max(BlobHeap::CHUNK_BYTES));
            let full = std::mem::replace(&mut self.open, chunk);
            if !full.is_empty() {
                self.full.push(full);
            }
        }
    }

    /// Copies `parts` one after the other as one BLOB.
    pub fn store(&mut self, parts: &[&[u8]]) -> BlobRef {
        let length = parts.iter().map(|part| part.len()).sum();
        self.reserve(length);
        let start = self.open.len();
        for part in parts {
            self.open.extend_from_slice(part);
        }
        self.reference(start)
    }

    /// Starts a BLOB of at most `length_max` bytes; `BlobWriter::push` adds pieces as they are read.
    pub fn begin(&mut self, length_max: usize) -> BlobWriter<'_> {
        self.reserve(length_max);
        let start = self.open.len();
        BlobWriter {
            heap: self,
            start,
            length_max,
        }
    }

    /// The bytes of a BLOB that lies here.
    pub fn bytes(&self, blob: BlobRef) -> Option<&[u8]> {
        let chunks = self.full.iter().chain(std::iter::once(&self.open));
        chunks.filter(|chunk| !chunk.is_empty()).find_map(|chunk| {
            let start = blob.address.checked_sub(chunk.as_ptr() as u64)? as usize;
            chunk.get(start..start.checked_add(blob.length as usize)?)
        })
    }

    fn reference(&self, start: usize) -> BlobRef {
        BlobRef {
            address: self.open[start..].as_ptr() as u64,
            length: (self.open.len() - start) as u32,
        }
    }
}

/// A BLOB being assembled.
pub struct BlobWriter<'h> {
    heap: &'h mut BlobHeap,
    start: usize,
    length_max: usize,
}

impl BlobWriter<'_> {
    /// Adds a piece; false if it would pass the announced length (nothing is added then).
    pub fn push(&mut self, piece: &[u8]) -> bool {
        let fits = self.heap.open.len() - self.start + piece.len() <= self.length_max;
        if fits {
            self.heap.open.extend_from_slice(piece);
        }
        fits
    }

    /// The finished BLOB.
    pub fn finish(self) -> BlobRef {
        self.heap.reference(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: ColumnKind, offset: u32, length: u32) -> ImageColumn {
        ImageColumn {
            null_mask: 2,
            not_null: false,
            ..ImageColumn::plain("c", kind, offset, length)
        }
    }

    #[test]
    fn a_column_outside_the_row_is_refused() {
        let fits = TableImage::new(vec![column(ColumnKind::Long, 1, 4)], vec![], 5, 1);
        assert!(fits.is_ok());
        for (offset, row_length) in [(2, 5), (u32::MAX, 5), (1, 4)] {
            let columns = vec![column(ColumnKind::Long, offset, 4)];
            assert!(TableImage::new(columns, vec![], row_length, 1).is_err());
        }
        let mut odd = column(ColumnKind::Long, 1, 4);
        odd.null_mask = 3;
        assert!(TableImage::new(vec![odd], vec![], 5, 1).is_err());
        assert!(TableImage::new(vec![column(ColumnKind::LongLong, 1, 4)], vec![], 5, 1).is_err());
    }

    #[test]
    fn a_key_of_a_missing_column_is_refused() {
        let key = |column, length| ImageKey::of_column("k", KeyKind::Plain, column, length);
        let image = |key| TableImage::new(vec![column(ColumnKind::Long, 1, 4)], vec![key], 5, 1);
        assert_eq!(image(key(0, 4)).expect("a sound key").key_image_bytes(0), 5);
        assert!(image(key(1, 4)).is_err());
        assert!(image(key(0, 5)).is_err());
        assert!(image(key(0, 0)).is_err());
    }

    #[test]
    fn varchar_data_stays_inside_the_column_whatever_its_length_bytes_say() {
        let mut c = column(ColumnKind::VarChar, 1, 12);
        c.length_bytes = 2;
        c.octets = 10;
        let mut row = vec![0; 13];
        row[1..6].copy_from_slice(&[3, 0, b'a', b'b', b'c']);
        assert_eq!(c.varchar(&row), b"abc");
        row[2] = 0xFF;
        assert_eq!(c.varchar(&row).len(), 10);
    }

    #[test]
    fn blobs_keep_their_address_while_others_are_added() {
        let mut heap = BlobHeap::default();
        let first = heap.store(&[b"ab", b"cd"]);
        for _ in 0..100 {
            let mut writer = heap.begin(10_000);
            assert!(writer.push(&[7; 10_000]));
            assert!(!writer.push(&[7]));
            assert_eq!(writer.finish().length, 10_000);
        }
        let still: Vec<u64> = heap
            .full
            .iter()
            .map(|chunk| chunk.as_ptr() as u64)
            .collect();
        assert_eq!((first.address, first.length), (still[0], 4));
        assert_eq!(&heap.full[0][..4], b"abcd");
    }
}

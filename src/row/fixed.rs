//! Handing out records whose fields stand in the same places in all of them: a list of copies, made
//! when the handle is opened.

use super::codec::ColumnCodec;
use super::convert::Convert;
use crate::host::image::TableImage;
use crate::schema::Index;

/// The copies for one index.
pub(super) struct FixedPlan {
    /// By host column; none for those that the index does not hold.
    by_column: Box<[Option<Copy>]>,
    /// For all columns, neighbours taken together.
    whole: Box<[Copy]>,
}

/// Bytes from a record's data to the host's row.
#[derive(Clone, Copy, Debug)]
struct Copy {
    from: u32,
    to: u32,
    len: u32,
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// As they are.
    Not,
    /// Big-endian to little-endian; `flip`: the top bit inverted.
    Int { flip: bool },
}

impl FixedPlan {
    /// `fields` = the index's field of each host column. `None` if the records are not all alike, or
    /// a column needs more than a copy.
    pub(super) fn new(
        image: &TableImage,
        columns: &[ColumnCodec],
        fields: &[Option<u16>],
        index: &Index,
    ) -> Option<FixedPlan> {
        let ends = index.fixed_ends.as_deref()?;
        let copy = |number: usize, field: u16| {
            let column = &image.columns[number];
            let end = ends[usize::from(field)];
            let len = u32::from(index.fields[usize::from(field)].fixed_len);
            let turn = match columns[number].convert {
                Convert::Int { flip, .. } => Turn::Int { flip },
                Convert::Fixed { .. } => Turn::Not,
                Convert::Char { .. } | Convert::VarChar | Convert::Blob => return None,
            };
            let alike = column.length == len && column.null_mask == 0;
            alike.then_some(Copy {
                from: end - len,
                to: column.offset,
                len,
                turn,
            })
        };
        let by_column: Option<Box<[_]>> = fields
            .iter()
            .enumerate()
            .map(|(number, field)| match field {
                None => Some(None),
                Some(field) => copy(number, *field).map(Some),
            })
            .collect();
        let by_column = by_column?;
        let whole = joined(by_column.iter().flatten().copied());
        Some(FixedPlan { by_column, whole })
    }

    /// Writes the columns that are asked for into the host's row.
    #[inline]
    pub(super) fn load(&self, columns: &[u16], data: &[u8], row: &mut [u8]) {
        if columns.len() == self.by_column.len() {
            self.whole.iter().for_each(|copy| copy.run(data, row));
            return;
        }
        for &number in columns {
            if let Some(copy) = &self.by_column[usize::from(number)] {
                copy.run(data, row);
            }
        }
    }
}

fn joined(copies: impl Iterator<Item = Copy>) -> Box<[Copy]> {
    let mut whole: Vec<Copy> = Vec::new();
    for copy in copies {
        match whole.last_mut() {
            Some(last)
                if (last.turn, copy.turn) == (Turn::Not, Turn::Not)
                    && last.from + last.len == copy.from
                    && last.to + last.len == copy.to =>
            {
                last.len += copy.len;
            }
            _ => whole.push(copy),
        }
    }
    whole.into()
}

impl Copy {
    #[inline]
    fn run(&self, data: &[u8], row: &mut [u8]) {
        let (from, to, len) = (self.from as usize, self.to as usize, self.len as usize);
        let from = &data[from..from + len];
        let to = &mut row[to..to + len];
        let Turn::Int { flip } = self.turn else {
            to.copy_from_slice(from);
            return;
        };
        if let (Ok(from), Ok(to)) = (
            <&[u8; 4]>::try_from(from),
            <&mut [u8; 4]>::try_from(&mut *to),
        ) {
            *to = (u32::from_be_bytes(*from) ^ u32::from(flip) << 31).to_le_bytes();
        } else if let (Ok(from), Ok(to)) = (
            <&[u8; 8]>::try_from(from),
            <&mut [u8; 8]>::try_from(&mut *to),
        ) {
            *to = (u64::from_be_bytes(*from) ^ u64::from(flip) << 63).to_le_bytes();
        } else {
            Convert::Int {
                len: len as u8,
                flip,
            }
            .load_fixed(from, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::column::ColumnType;
    use crate::host::image::{ColumnKind, ImageKey, KeyKind};
    use crate::row::Template;
    use crate::row::codec::BlobQueue;
    use crate::row::testing::column;
    use crate::schema::build::MERGE_THRESHOLD;
    use crate::schema::{
        Column, FieldColumn, FieldRef, IndexDef, IndexType, KeyPart, TableDef, TableFlags,
    };
    use crate::words::{IndexId, PageNo, SpaceId, TableId};

    /// Host kind, main type, precise type, bytes; in the row one after another, but for a gap.
    const COLUMNS: [(ColumnKind, u32, u32, u32); 7] = [
        (ColumnKind::LongLong, 6, 0x708, 8),
        (ColumnKind::Long, 6, 0x503, 4),
        (ColumnKind::Int24, 6, 0x509, 3),
        (ColumnKind::Tiny, 6, 0x701, 1),
        (ColumnKind::String, 3, 0x3F_05FE, 20),
        (ColumnKind::String, 3, 0x3F_05FE, 7),
        (ColumnKind::LongLong, 6, 0x508, 8),
    ];
    const ROW_BYTES: usize = 60;

    fn template(nullable: bool) -> (Template, Index) {
        let mut at = 1;
        let mut host = Vec::new();
        let mut stored = Vec::new();
        for (i, (kind, main, precise, len)) in COLUMNS.into_iter().enumerate() {
            let null = nullable && i == 3;
            let precise = if null { precise & !0x100 } else { precise };
            let name = format!("c{i}");
            host.push(column(&name, kind, at, len, u8::from(null)));
            let ty = ColumnType::parse(main, precise, len).expect("a known type");
            stored.push(Column::new(&name, ty, i as u16));
            at += len + u32::from(i == 2);
        }
        let key = ImageKey::of_column("PRIMARY", KeyKind::Primary, 1, 4);
        let image = TableImage::new(host, vec![key], ROW_BYTES as u32, 1).expect("sound");
        let part = KeyPart {
            column: FieldColumn::Stored(1),
            prefix_len: 0,
            desc: false,
        };
        let primary = IndexDef {
            id: IndexId(1),
            name: "PRIMARY".into(),
            ty: IndexType(3),
            root: PageNo(3),
            parts: vec![part],
            merge_threshold: MERGE_THRESHOLD,
        };
        let table = TableDef {
            id: TableId(1),
            name: "d/t".into(),
            space: SpaceId(1),
            flags: TableFlags(33),
            compact: true,
            mix_len: 80,
            path: None,
            columns: stored,
            virtual_columns: Vec::new(),
            indexes: vec![primary],
        };
        let table = table.build().expect("a table");
        let template = Template::new(image.into(), &table).expect("they fit");
        (template, table.clustered().clone())
    }

    #[test]
    fn a_plan_writes_what_the_columns_write_one_by_one() {
        let (template, index) = template(false);
        let plan = template.fixed_plan(0).expect("all records are alike");
        // c4 and c5 are neighbours on both sides; the others are turned.
        assert_eq!(plan.whole.len(), COLUMNS.len() - 1);
        let ends = index.fixed_ends.as_deref().expect("fixed");
        let mut heap = crate::host::image::BlobHeap::default();
        let mut seed = 7u64;
        for round in 0..200 {
            let data: Vec<u8> = (0..ends[ends.len() - 1])
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 56) as u8
                })
                .collect();
            let get = |i: usize| {
                let start = if i == 0 { 0 } else { ends[i - 1] as usize };
                FieldRef::Bytes(&data[start..ends[i] as usize])
            };
            let all: Vec<u16> = (0..COLUMNS.len() as u16).collect();
            let some: Vec<u16> = all
                .iter()
                .copied()
                .filter(|c| round >> c & 1 == 1)
                .collect();
            for columns in [&all, &some] {
                let (mut fast, mut slow) = ([0xF8; ROW_BYTES], [0xF8; ROW_BYTES]);
                plan.load(columns, &data, &mut fast);
                let queue = &mut BlobQueue::default();
                let done = template.load(0, columns, get, &mut slow, &mut heap, queue);
                done.expect("loaded");
                assert_eq!(fast, slow, "columns {columns:?}");
            }
        }
    }

    #[test]
    fn a_table_with_a_nullable_column_has_no_plan() {
        let (template, index) = template(true);
        assert!(index.fixed_ends.is_none() && template.fixed_plan(0).is_none());
    }
}

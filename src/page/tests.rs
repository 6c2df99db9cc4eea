//! Model and replay tests of page operations.

use std::collections::BTreeMap;

use crate::format::column::ColumnType;
use crate::format::redo_encode::Encoder;
use crate::format::redo_record::{PageOp, Record, Records};
use crate::host::collation::BytesOnly;
use crate::schema::build::MERGE_THRESHOLD;
use crate::schema::{
    Column, FieldColumn, FieldRef, IndexDef, IndexType, KeyPart, Table, TableDef, TableFlags, Tuple,
};
use crate::words::{IndexId, PageId, PageNo, Result, SpaceId, TableId, be};

use super::list::{self, Moved};
use super::update;
use super::validate::validate;
use super::{
    Offsets, PageWrite, RecOffset, RecordView, Scratch, SearchMode, apply, delete, insert, layout,
    record, search, space, split_point,
};

/// xorshift64*; a seed gives the same run again.
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
}

/// id INT, a VARCHAR(40) NULL, b VARCHAR(300) NULL, c INT NULL; clustered on id, secondary on (a, c).
pub(super) fn table(compact: bool) -> Table {
    let ty = |m, p, l| ColumnType::parse(m, p, l).expect("known type");
    let part = |i| KeyPart {
        column: FieldColumn::Stored(i),
        prefix_len: 0,
        desc: false,
    };
    let index = |name: &str, id, ty, parts| IndexDef {
        id: IndexId(id),
        name: name.into(),
        ty: IndexType(ty),
        root: PageNo(3),
        parts,
        merge_threshold: MERGE_THRESHOLD,
    };
    TableDef {
        id: TableId(20),
        name: "d/t".into(),
        space: SpaceId(9),
        flags: TableFlags(if compact { 33 } else { 1 }),
        compact,
        mix_len: 80,
        path: None,
        columns: vec![
            Column::new("id", ty(6, 0x703, 4), 0),
            Column::new("a", ty(4, 0x3F040F, 40), 1),
            Column::new("b", ty(4, 0x3F140F, 300), 2),
            Column::new("c", ty(6, 0x403, 4), 3),
        ],
        virtual_columns: Vec::new(),
        indexes: vec![
            index("PRIMARY", 50, 3, vec![part(0)]),
            index("k", 51, 0, vec![part(1), part(3)]),
        ],
    }
    .build()
    .expect("a valid table")
}

/// An empty page of index `id`, as an allocation and `create` leave it.
fn new_page(len: usize, id: u64, compact: bool, level: u16) -> Vec<u8> {
    let mut page = vec![0u8; len];
    be::put_u32(&mut page, 4, 3);
    page[8..16].fill(0xFF);
    be::put_u32(&mut page, 34, 9);
    list::create(&mut page[..], IndexId(id), level, compact).expect("a whole page");
    page
}

/// A page that also writes the log of its changes.
pub(super) struct Logged {
    pub(super) page: Vec<u8>,
    log: Vec<u8>,
    encoder: Encoder,
}

impl Logged {
    fn new(page: Vec<u8>) -> Logged {
        Logged {
            page,
            log: Vec::new(),
            encoder: Encoder::new(),
        }
    }

    fn note(&mut self, op: &PageOp<'_>) {
        self.encoder
            .page_op(&mut self.log, PageId::new(SpaceId(9), PageNo(3)), op);
    }

    /// Applies what was logged since the last call to `replica`, as recovery does.
    fn replay(&mut self, replica: &mut [u8]) {
        for parsed in Records::new(&self.log) {
            let Record::Page(_, op) = parsed.expect("a record we wrote").record else {
                panic!("not a page record");
            };
            match op {
                PageOp::Write { offset, data } => replica.write(offset as usize, data),
                PageOp::Memset { offset, len, fill } => {
                    PageWrite::fill(replica, offset as usize, len as usize, fill[0]);
                }
                op => apply::apply(replica, &op).expect("an operation that was applied before"),
            }
        }
        self.log.clear();
        self.encoder.reset();
    }
}

impl PageWrite for Logged {
    fn page(&self) -> &[u8] {
        &self.page
    }

    fn write(&mut self, offset: usize, data: &[u8]) {
        self.page[offset..offset + data.len()].copy_from_slice(data);
        self.note(&PageOp::Write {
            offset: offset as u32,
            data,
        });
    }

    fn fill(&mut self, offset: usize, len: usize, byte: u8) {
        self.page[offset..offset + len].fill(byte);
        self.note(&PageOp::Memset {
            offset: offset as u32,
            len: len as u32,
            fill: &[byte],
        });
    }

    fn apply(&mut self, op: &PageOp<'_>) -> Result<()> {
        apply::apply(&mut self.page, op)?;
        self.note(op);
        Ok(())
    }
}

type Row = Vec<Option<Vec<u8>>>;

pub(super) fn tuple_of(row: &Row) -> Tuple {
    let mut tuple = Tuple::new();
    for value in row {
        tuple.push(value.as_deref().map_or(FieldRef::Null, FieldRef::Bytes));
    }
    tuple
}

pub(super) fn key_of(id: u32) -> Tuple {
    let mut key = Tuple::new();
    key.push_bytes(&id.to_be_bytes());
    key
}

pub(super) fn random_row(random: &mut Random, id: u32) -> Row {
    let mut text = |most: usize| {
        let len = random.below(most + 1);
        let byte = random.next() as u8;
        (random.below(5) > 0).then(|| vec![byte; len])
    };
    let (a, b) = (text(40), text(300));
    let c = (random.below(3) > 0).then(|| (random.next() as u32).to_be_bytes().to_vec());
    vec![
        Some(id.to_be_bytes().to_vec()),
        Some(random.next().to_be_bytes()[..6].to_vec()),
        Some(random.next().to_be_bytes()[..7].to_vec()),
        a,
        b,
        c,
    ]
}

pub(super) fn rows(page: &[u8], index: &crate::schema::Index) -> Vec<Row> {
    let mut offsets = Offsets::new();
    layout::records(page)
        .map(|rec| {
            let rec = rec.expect("a sound list");
            let view = RecordView::new(page, rec, index, &mut offsets).expect("a sound record");
            view.fields()
                .map(|f| f.bytes().map(<[u8]>::to_vec))
                .collect()
        })
        .collect()
}

pub(super) struct Model {
    pub(super) table: Table,
    pub(super) page: Logged,
    replica: Vec<u8>,
    rows: BTreeMap<u32, Row>,
    scratch: Scratch,
    moved: Vec<Moved>,
}

impl Model {
    fn new(compact: bool, len: usize) -> Model {
        let page = new_page(len, 50, compact, 0);
        Model {
            table: table(compact),
            replica: page.clone(),
            page: Logged::new(page),
            rows: BTreeMap::new(),
            scratch: Scratch::new(),
            moved: Vec::new(),
        }
    }

    fn find(&self, id: u32) -> (RecOffset, bool) {
        let index = self.table.clustered();
        let mode = SearchMode::LessOrEqual;
        let found =
            search(&self.page.page, index, &key_of(id), mode, &BytesOnly).expect("a sound page");
        (
            found.low,
            found.low_match == 1 && !layout::is_system(&self.page.page, found.low),
        )
    }

    /// False if the page is too full.
    fn insert(&mut self, row: Row) -> bool {
        let id = u32::from_be_bytes(row[0].as_deref().unwrap().try_into().unwrap());
        let (prev, found) = self.find(id);
        assert_eq!(found, self.rows.contains_key(&id));
        if found {
            return true;
        }
        let index = self.table.clustered();
        let tuple = tuple_of(&row);
        self.scratch
            .image
            .build(index, &tuple)
            .expect("a valid row");
        let room = space::max_insert_size_after_reorganise(&self.page.page, 1);
        let size = self.scratch.image.size();
        let mut rec =
            insert::insert(&mut self.page, index, prev, &tuple, &mut self.scratch).expect("insert");
        if rec.is_none() && size <= room {
            self.reorganise();
            let (prev, _) = self.find(id);
            let index = self.table.clustered();
            rec = insert::insert(&mut self.page, index, prev, &tuple, &mut self.scratch)
                .expect("insert");
            assert!(rec.is_some(), "it must fit after reorganising");
        }
        if rec.is_some() {
            self.rows.insert(id, row);
        }
        rec.is_some()
    }

    fn delete(&mut self, id: u32) {
        let (rec, found) = self.find(id);
        assert_eq!(found, self.rows.remove(&id).is_some());
        if found {
            let index = self.table.clustered();
            delete::delete(&mut self.page, index, rec, &mut self.scratch.offsets).expect("delete");
        }
    }

    fn update(&mut self, random: &mut Random, id: u32) {
        let (rec, found) = self.find(id);
        if !found {
            return;
        }
        let index = self.table.clustered();
        let mut row = self.rows[&id].clone();
        for value in row.iter_mut().skip(1).flatten() {
            let byte = random.next() as u8;
            value.fill(byte);
        }
        let mut offsets = Offsets::new();
        offsets
            .compute(&self.page.page, rec, index)
            .expect("a sound record");
        let changes = row
            .iter()
            .enumerate()
            .map(|(i, v)| (i, v.as_deref().map_or(FieldRef::Null, FieldRef::Bytes)));
        assert!(update::update_in_place(
            &mut self.page,
            index,
            rec,
            &offsets,
            changes
        ));
        update::set_delete_mark(&mut self.page, rec, random.below(2) == 0);
        self.rows.insert(id, row);
    }

    fn reorganise(&mut self) {
        let index = self.table.clustered();
        list::reorganise(&mut self.page, index, &mut self.scratch, &mut self.moved)
            .expect("a sound page");
        assert_eq!(self.moved.len(), self.rows.len());
        assert_eq!(layout::garbage(&self.page.page), 0);
        assert_eq!(layout::free_head(&self.page.page), 0);
    }

    fn check(&mut self) {
        validate(&self.page.page, self.table.clustered(), &BytesOnly).expect("a valid page");
        let expected: Vec<Row> = self.rows.values().cloned().collect();
        assert_eq!(rows(&self.page.page, self.table.clustered()), expected);
        self.page.replay(&mut self.replica);
        assert!(
            self.page.page == self.replica,
            "the log does not repeat the change"
        );
    }
}

#[test]
fn a_page_behaves_like_a_sorted_map_and_its_log_repeats_it() {
    for (compact, len) in [(true, 16384), (false, 16384), (true, 4096), (false, 65536)] {
        let seed = 0x9E37_79B9_7F4A_7C15 ^ len as u64 ^ u64::from(compact);
        println!("seed {seed:#x}, compact {compact}, page of {len}");
        let mut random = Random(seed);
        let mut model = Model::new(compact, len);
        for _ in 0..2000 {
            let id = random.below(len / 40) as u32;
            match random.below(20) {
                0..=10 => {
                    let row = random_row(&mut random, id);
                    if !model.insert(row) && random.below(3) == 0 {
                        let ids: Vec<u32> = model.rows.keys().copied().collect();
                        for id in ids.into_iter().filter(|id| id % 3 == 0) {
                            model.delete(id);
                        }
                    }
                }
                11..=15 => model.delete(id),
                16..=18 => model.update(&mut random, id),
                _ => model.reorganise(),
            }
            model.check();
        }
    }
}

#[test]
fn ascending_and_descending_inserts_set_the_direction() {
    let mut model = Model::new(true, 16384);
    let mut random = Random(7);
    for id in 100..120 {
        assert!(model.insert(random_row(&mut random, id)));
    }
    assert_eq!(layout::direction(&model.page.page), 2);
    assert_eq!(layout::n_direction(&model.page.page), 19);
    for id in (50..60).rev() {
        assert!(model.insert(random_row(&mut random, id)));
    }
    assert_eq!(layout::direction(&model.page.page), 1);
    assert_eq!(layout::n_direction(&model.page.page), 9);
    model.check();
}

/// Fills a page with rows of random sizes, in random order.
pub(super) fn full_page(compact: bool, random: &mut Random) -> Model {
    let mut model = Model::new(compact, 16384);
    for _ in 0..2000 {
        let id = random.below(100_000) as u32;
        let row = random_row(random, id);
        if !model.insert(row) {
            break;
        }
    }
    model
}

#[test]
fn both_halves_of_a_split_are_valid_and_hold_all_rows() {
    for seed in 1..60u64 {
        let compact = seed % 2 == 0;
        println!("seed {seed}");
        let mut random = Random(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
        let mut model = full_page(compact, &mut random);
        let index = model.table.clustered().clone();
        let (prev, _) = model.find(random.below(100_000) as u32);
        let size = 20 + random.below(8000);
        let point =
            split_point::split_point(&model.page.page, &index, prev, size, &mut Offsets::new())
                .expect("a page that can be split");
        let before = rows(&model.page.page, &index);
        let mut upper = new_page(16384, 50, compact, 0);
        let page = model.page.page.clone();
        let (from, until) = (point.first_upper, layout::supremum(&page));
        let after = layout::infimum(&upper);
        let (scratch, moved) = (&mut model.scratch, &mut model.moved);
        list::copy_range(
            &mut upper[..],
            after,
            &page,
            from,
            until,
            &index,
            scratch,
            moved,
        )
        .expect("a sound page")
        .expect("half a page fits on an empty one");
        list::delete_range(&mut model.page, from, until, &index, scratch).expect("a sound page");
        validate(&upper, &index, &BytesOnly).expect("a valid upper half");
        validate(&model.page.page, &index, &BytesOnly).expect("a valid lower half");
        let mut both = rows(&model.page.page, &index);
        both.extend(rows(&upper, &index));
        assert_eq!(both, before);
        let half = if point.new_is_upper {
            &upper
        } else {
            &model.page.page
        };
        assert!(space::max_insert_size_after_reorganise(half, 1) >= size);
        model.page.replay(&mut model.replica);
        assert!(model.page.page == model.replica);

        // And the merge brings them together again.
        let last = layout::last(&model.page.page).expect("a sound page");
        let (from, until) = (layout::first(&upper).unwrap(), layout::supremum(&upper));
        list::reorganise(&mut model.page, &index, scratch, moved).expect("a sound page");
        let last = if layout::is_system(&page, last) {
            last
        } else {
            layout::last(&model.page.page).expect("a sound page")
        };
        list::copy_range(
            &mut model.page,
            last,
            &upper,
            from,
            until,
            &index,
            scratch,
            moved,
        )
        .expect("a sound page")
        .expect("what came from one page fits on it again");
        validate(&model.page.page, &index, &BytesOnly).expect("a valid merged page");
        assert_eq!(rows(&model.page.page, &index), before);
    }
}

#[test]
fn heap_numbers_of_moved_records_are_reported() {
    let mut random = Random(99);
    let mut model = full_page(true, &mut random);
    let before: Vec<_> = layout::records(&model.page.page)
        .map(|rec| record::heap_no(&model.page.page, rec.unwrap()))
        .collect();
    model.reorganise();
    let after: Vec<_> = layout::records(&model.page.page)
        .map(|rec| record::heap_no(&model.page.page, rec.unwrap()))
        .collect();
    for (i, moved) in model.moved.iter().enumerate() {
        assert_eq!((moved.from, moved.to), (before[i], after[i]));
    }
}

#[test]
fn searches_stand_between_the_right_records() {
    let mut random = Random(5);
    for compact in [true, false] {
        let model = full_page(compact, &mut random);
        let (page, index) = (&model.page.page, model.table.clustered());
        for _ in 0..2000 {
            let id = random.below(100_001) as u32;
            let find = |mode| search(page, index, &key_of(id), mode, &BytesOnly).unwrap();
            let id_at = |rec: RecOffset| {
                (!layout::is_system(page, rec)).then(|| be::u32_at(page, rec.at()))
            };
            let rows = &model.rows;
            let below = rows.range(..id).next_back().map(|(&k, _)| k);
            let upto = rows.range(..=id).next_back().map(|(&k, _)| k);
            let from = rows.range(id..).next().map(|(&k, _)| k);
            let above = rows.range(id + 1..).next().map(|(&k, _)| k);
            assert_eq!(id_at(find(SearchMode::Less).rec), below);
            assert_eq!(id_at(find(SearchMode::LessOrEqual).rec), upto);
            assert_eq!(id_at(find(SearchMode::GreaterOrEqual).rec), from);
            assert_eq!(id_at(find(SearchMode::Greater).rec), above);
            let found = find(SearchMode::LessOrEqual);
            assert_eq!(found.low_match == 1, rows.contains_key(&id));
        }
    }
}

/// Keys of one to all fields that differ from a row in no byte, or in one.
#[test]
fn the_short_comparison_of_plain_fields_agrees_with_the_long_one() {
    let mut random = Random(11);
    let mut decided = 0;
    for compact in [true, false] {
        let model = full_page(compact, &mut random);
        let (page, index) = (&model.page.page, model.table.clustered());
        for (rec, row) in layout::records(page).zip(rows(page, index)) {
            let rec = rec.expect("a sound list");
            for _ in 0..20 {
                let mut row = row[..1 + random.below(row.len())].to_vec();
                let field = random.below(row.len());
                if let Some(bytes) = row[field].as_mut().filter(|bytes| !bytes.is_empty()) {
                    let at = random.below(bytes.len());
                    bytes[at] ^= random.below(3) as u8;
                }
                let key = tuple_of(&row);
                let long = search::compare_record(page, rec, index, &key, &BytesOnly).unwrap();
                if let Some(short) = search::Plain::of(page, index, &key).compare(page, rec) {
                    assert_eq!(short, long, "{row:?}");
                    decided += 1;
                }
            }
        }
    }
    assert!(decided > 1000, "{decided}");
}

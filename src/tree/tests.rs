//! Model tests: a tree against a `BTreeMap`, on real files through a small pool.

use std::collections::BTreeMap;

use super::*;
use crate::extent::create_space;
use crate::format::blob::BlobRef;
use crate::format::column::ColumnType;
use crate::host::collation::BytesOnly;
use crate::lock::{Outcome, RecordMode};
use crate::mtr::testing::{SPACE, TestPages};
use crate::mtr::{Class, Mtr, PageRef, retry};
use crate::page::record::{self, RecordView};
use crate::page::{SearchMode, layout};
use crate::schema::build::MERGE_THRESHOLD;
use crate::schema::{
    Column, FieldColumn, FieldRef, IndexDef, IndexType, KeyPart, TableDef, TableFlags, Tuple,
};
use crate::words::{IndexId, Result, TableId, be};

/// xorshift64*: a seed gives the same run again.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

pub(super) struct Bed {
    pub(super) pages: TestPages,
    pub(super) tree: Tree,
    pub(super) scratch: Scratch,
}

/// A table (id BIGINT UNSIGNED PRIMARY KEY, v VARBINARY(2000), b LONGBLOB), its clustered tree.
pub(super) fn bed(pool_pages: usize, compact: bool) -> Bed {
    let pages = TestPages::new(4096, pool_pages, 4);
    let id = IndexId(77);
    let root = {
        let mut mtr = pages.mtr();
        create_space(&mut mtr, SPACE, 4).expect("space");
        let root = create(&mut mtr, SPACE, id, compact).expect("root");
        mtr.commit();
        root
    };
    let ty = |m, p, l| ColumnType::parse(m, p, l).expect("known type");
    let part = |i| KeyPart {
        column: FieldColumn::Stored(i),
        prefix_len: 0,
        desc: false,
    };
    let table = TableDef {
        id: TableId(20),
        name: "d/t".into(),
        space: SPACE,
        flags: TableFlags(if compact { 33 } else { 1 }),
        compact,
        mix_len: 80,
        path: None,
        columns: vec![
            Column::new("id", ty(6, 0x708, 8), 0),
            Column::new("v", ty(4, 0x3F140F, 2000), 1),
            Column::new("b", ty(5, 0x3F04FC, 12), 2),
        ],
        virtual_columns: Vec::new(),
        indexes: vec![IndexDef {
            id,
            name: "PRIMARY".into(),
            ty: IndexType(3),
            root,
            parts: vec![part(0)],
            merge_threshold: MERGE_THRESHOLD,
        }],
    };
    let table = Arc::new(table.build().expect("a valid table"));
    let tree = Tree::new(table, 0, Arc::new(LockTable::new()), Arc::new(BytesOnly));
    Bed {
        pages,
        tree,
        scratch: Scratch::default(),
    }
}

pub(super) fn row(id: u64, v: &[u8]) -> Tuple {
    let mut t = Tuple::new();
    t.push_bytes(&id.to_be_bytes());
    t.push_bytes(&[0, 0, 0, 0, 0, 9]);
    t.push_bytes(&[0x80, 0, 0, 0, 0, 0, 0]);
    t.push_bytes(v);
    t.push_null();
    t
}

pub(super) fn key(id: u64) -> Tuple {
    let mut t = Tuple::new();
    t.push_bytes(&id.to_be_bytes());
    t
}

impl Bed {
    fn local(&self) -> Local<'_> {
        Local {
            ctx: &self.pages.ctx,
            tree: &self.tree,
            scratch: Scratch::default(),
        }
    }

    pub(super) fn insert(&self, id: u64, v: &[u8]) {
        self.local().insert(id, v);
    }

    pub(super) fn delete(&self, id: u64) {
        self.local().delete(id);
    }

    pub(super) fn update(&mut self, id: u64, v: &[u8]) -> Result<()> {
        let (tree, tuple, k) = (&self.tree, row(id, v), key(id));
        let scratch = &mut self.scratch;
        let budget = crate::mtr::Budget::statement(64 << 10);
        let (done, _) = retry(&self.pages.ctx, Some(budget), |mtr| {
            let seek = Seek::Key(&k, SearchMode::LessOrEqual);
            let mut at = tree.seek(mtr, seek, Intent::Modify)?;
            assert_eq!(at.low_match, 1, "row {id} is there");
            let change = [(3, FieldRef::Bytes(v))];
            if tree.update_in_place(mtr, &at, change.into_iter(), scratch)? {
                return Ok(true);
            }
            if !tree.replacement_fits(mtr, &at, &tuple, scratch)? {
                return Ok(false);
            }
            tree.replace(mtr, &mut at, &tuple, scratch)?;
            Ok(true)
        })?;
        if done {
            return Ok(());
        }
        let _space = tree.reserve_for_change(&self.pages.ctx, Class::Statement)?;
        let budget = tree.change_budget(&self.pages.ctx, Class::Statement);
        retry(&self.pages.ctx, Some(budget), |mtr| {
            let (at, mut path) = tree.seek_to_restructure(mtr, &k, Change::Both)?;
            tree.replace_restructuring(mtr, &mut path, &at, &tuple, scratch)
        })?;
        Ok(())
    }

    /// All rows by a scan that remembers its place after every row, as a host's calls do.
    fn scan(&mut self, forwards: bool) -> Vec<(u64, Vec<u8>)> {
        let mut rows = Vec::new();
        let mut stored = StoredPosition::new();
        let mut started = false;
        loop {
            let ctx = &self.pages.ctx;
            let mut mtr = Mtr::reader(ctx);
            let step = loop {
                let result = self.step(&mut mtr, &stored, started, forwards);
                match result {
                    Err(Error::WouldBlock) => mtr.restart().expect("restart"),
                    other => break other.expect("step"),
                }
            };
            let Some(at) = step else { return rows };
            // Borrowck: the row is read with the mtr alive.
            let view = mtr.view(at.page);
            let mut offsets = crate::page::Offsets::new();
            let r = RecordView::new(view, at.rec, self.tree.index(), &mut offsets).expect("record");
            let id = be::u64_at(r.field(0).bytes().expect("a key"), 0);
            rows.push((id, r.field(3).bytes().expect("a value").to_vec()));
            stored
                .store(&self.tree, &mtr, &at, &mut offsets)
                .expect("stored");
            started = true;
        }
    }

    fn step(
        &self,
        mtr: &mut Mtr<'_>,
        stored: &StoredPosition,
        started: bool,
        forwards: bool,
    ) -> Result<Option<Position>> {
        let tree = &self.tree;
        let found = if forwards {
            let (mut at, _) = stored.restore(tree, mtr, Intent::Read)?;
            tree.next(mtr, &mut at)?.then_some(at)
        } else if started {
            let (mut at, _) = stored.restore(tree, mtr, Intent::Read)?;
            match tree.prev(mtr, &mut at) {
                Err(Error::WouldBlock) => return Err(Error::WouldBlock),
                other => other?.then_some(at),
            }
        } else {
            let at = tree.seek(mtr, Seek::Last, Intent::Read)?;
            (at.rec != layout::infimum(mtr.view(at.page))).then_some(at)
        };
        Ok(found)
    }

    pub(super) fn validate(&self) -> TreeCounts {
        self.tree
            .validate(&self.pages.ctx, &|| Ok(()))
            .expect("a valid tree")
    }
}

/// A reorganisation logs the page: one for each row that grows by a few bytes would be 4 KiB a row.
#[test]
fn rows_that_grow_one_by_one_do_not_have_their_page_rewritten_each_time() {
    const ROWS: u64 = 2000;
    let mut bed = bed(512, true);
    for id in 0..ROWS {
        bed.insert(id, &[7; 30]);
    }
    let before = bed.pages.ctx.log.lsn().0;
    for id in 0..ROWS {
        bed.update(id, &[8; 35]).expect("update");
    }
    let each = (bed.pages.ctx.log.lsn().0 - before) / ROWS;
    assert!(each < 620, "{each} bytes of log a row");
    let rows = bed.scan(true);
    assert_eq!(rows.len() as u64, ROWS);
    assert!(rows.iter().all(|(_, v)| v[..] == [8; 35]));
    bed.validate();
}

pub(super) fn value(rnd: &mut Random) -> Vec<u8> {
    let len = match rnd.below(20) {
        0 => 1200 + rnd.below(600),
        n if n < 4 => rnd.below(400),
        _ => rnd.below(60),
    };
    vec![rnd.below(256) as u8; len]
}

fn model_run(seed: u64, compact: bool, steps: usize) {
    println!("seed {seed:#x} compact {compact}");
    let mut rnd = Random(seed);
    let mut bed = bed(64, compact);
    let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for step in 0..steps {
        // Growing, then shrinking, then growing again: splits and merges on every level.
        let growing = step % 1500 < 1000;
        let id = match rnd.below(4) {
            0 => model.len() as u64 * 3 + 1_000_000,
            _ => rnd.below(4000) as u64,
        };
        let old = model.range(id..).next().map(|(k, _)| *k);
        match (rnd.below(10), old) {
            (0..=1, Some(id)) => {
                let v = value(&mut rnd);
                bed.update(id, &v).expect("update");
                model.insert(id, v);
            }
            (n, Some(id)) if n >= if growing { 8 } else { 3 } => {
                bed.delete(id);
                model.remove(&id);
            }
            _ if !model.contains_key(&id) => {
                let v = value(&mut rnd);
                bed.insert(id, &v);
                model.insert(id, v);
            }
            _ => {}
        }
        if step % 500 == 499 {
            assert_eq!(bed.validate().records, model.len() as u64, "step {step}");
        }
    }
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(bed.scan(true), expected);
    let backwards: Vec<_> = expected.iter().rev().cloned().collect();
    assert_eq!(bed.scan(false), backwards);
    for id in model.keys().copied().collect::<Vec<_>>() {
        bed.delete(id);
    }
    let counts = bed.validate();
    assert_eq!((counts.records, counts.pages, counts.height), (0, 1, 0));
}

#[test]
fn a_compact_tree_holds_what_the_model_holds() {
    model_run(0x1234_5678_9ABC_DEF1, true, 4000);
}

#[test]
fn a_redundant_tree_holds_what_the_model_holds() {
    model_run(0xFEDC_BA98_7654_3211, false, 3000);
}

/// Leaves after inserts in this order; a record takes 133 bytes.
fn leaves_after(ids: impl Iterator<Item = u64>) -> u64 {
    let mut bed = bed(512, true);
    let mut expected = Vec::new();
    for id in ids {
        bed.insert(id, &[7; 100]);
        expected.push((id, vec![7; 100]));
    }
    expected.sort();
    assert_eq!(bed.scan(true), expected);
    bed.validate().leaves
}

#[test]
fn inserts_in_order_leave_full_pages_and_others_two_thirds() {
    // 15/16 of a page hold 28 records.
    let ascending = leaves_after(0..3000);
    assert!(ascending < 3000 / 27, "{ascending} leaves");
    let descending = leaves_after((0..3000).rev());
    assert!(descending < 3000 / 27, "{descending} leaves");
    let random = leaves_after((0..3000u64).map(|i| i * 1_237 % 3_001));
    assert!(random < 3000 / 18, "{random} leaves");
    // A run downwards in the middle of a filled tree.
    let within = leaves_after((0..1000).chain(5000..6000).chain((2000..3000).rev()));
    assert!(within < 3000 / 25, "{within} leaves");
}

#[test]
fn a_lock_stays_on_its_row_through_splits_and_merges() {
    let mut bed = bed(1024, true);
    for id in (0..400u64).map(|i| i * 10) {
        bed.insert(id, &[1; 150]);
    }
    let owner = bed.tree.locks().owner();
    let locked: Vec<u64> = (0..400u64).filter(|i| i % 7 == 0).map(|i| i * 10).collect();
    for &id in &locked {
        let mut mtr = Mtr::reader(&bed.pages.ctx);
        let k = key(id);
        let at = loop {
            let seek = Seek::Key(&k, SearchMode::LessOrEqual);
            match bed.tree.seek(&mut mtr, seek, Intent::Read) {
                Err(Error::WouldBlock) => mtr.restart().expect("restart"),
                at => break at.expect("seek"),
            }
        };
        let heap = record::heap_no(mtr.view(at.page), at.rec);
        let page = mtr.page_id(at.page);
        let outcome = bed
            .tree
            .locks()
            .lock_record(&owner, page, heap, RecordMode::X_RECORD);
        assert!(matches!(outcome, Outcome::Granted));
    }
    let mut rnd = Random(99);
    for round in 0..3 {
        for id in 0..600u64 {
            if id % 10 != 0 && rnd.below(2) == 0 {
                bed.insert(id * 4 + 10_000 * round + 1, &value(&mut rnd));
            }
        }
        for &id in &locked {
            bed.update(id, &value(&mut rnd)).expect("update");
        }
        for id in (0..400u64)
            .map(|i| i * 10)
            .filter(|id| !locked.contains(id))
        {
            if rnd.below(2) == 0 && round == 1 {
                let _ = bed.update(id, &[9; 10]);
            }
        }
    }
    bed.validate();
    check_locks(&mut bed, &owner, &locked);
}

fn check_locks(bed: &mut Bed, owner: &Arc<crate::lock::Owner>, locked: &[u64]) {
    let mut mtr = Mtr::reader(&bed.pages.ctx);
    let mut at = loop {
        match bed.tree.seek(&mut mtr, Seek::First, Intent::Read) {
            Err(Error::WouldBlock) => mtr.restart().expect("restart"),
            at => break at.expect("seek"),
        }
    };
    let mut seen = 0;
    while bed
        .tree
        .next(&mut mtr, &mut at)
        .expect("the pool holds the tree")
    {
        let heap = record::heap_no(mtr.view(at.page), at.rec);
        let holds = bed
            .tree
            .locks()
            .holds(owner, mtr.page_id(at.page), heap, RecordMode::X_RECORD);
        let (id, _) = {
            let view = mtr.view(at.page);
            let mut offsets = crate::page::Offsets::new();
            let r = RecordView::new(view, at.rec, bed.tree.index(), &mut offsets).expect("record");
            (be::u64_at(r.field(0).bytes().expect("a key"), 0), ())
        };
        assert_eq!(holds, locked.contains(&id), "row {id}");
        seen += usize::from(holds);
    }
    assert_eq!(seen, locked.len());
}

#[test]
fn a_blob_chain_comes_back_and_goes() {
    let mut bed = bed(64, true);
    bed.insert(5, &[1; 10]);
    let mut tuple = row(6, &[2; 10]);
    tuple.set(4, FieldRef::External(&[0; 20]));
    let (tree, k) = (&bed.tree, key(6));
    let scratch = &mut bed.scratch;
    let budget = crate::mtr::Budget::statement(64 << 10);
    retry(&bed.pages.ctx, Some(budget), |mtr| {
        let mut at = tree.seek(mtr, Seek::Key(&k, SearchMode::LessOrEqual), Intent::Modify)?;
        tree.insert(mtr, &mut at, &tuple, scratch)
    })
    .expect("done");
    let data: Vec<u8> = (0..50_000u32).map(|i| (i * 7 / 3) as u8).collect();
    let mut link = |mtr: &mut Mtr<'_>| {
        let at = tree.seek(mtr, Seek::Key(&k, SearchMode::LessOrEqual), Intent::Modify)?;
        let mut offsets = crate::page::Offsets::new();
        offsets.compute(mtr.view(at.page), at.rec, tree.index())?;
        let (_, end) = offsets.range(4);
        Ok((at.page, at.rec.at() + end - 20))
    };
    tree.write_blob(&bed.pages.ctx, &data, &mut link)
        .expect("written");
    let reference = |link: &mut dyn FnMut(&mut Mtr<'_>) -> Result<(PageRef, usize)>| {
        let mut mtr = Mtr::reader(&bed.pages.ctx);
        let (page, at) = link(&mut mtr).expect("found");
        BlobRef::of_local_part(&mtr.view(page)[at..at + 20]).expect("a reference")
    };
    let whole = reference(&mut link);
    let mut out = Vec::new();
    tree.read_blob(&mut Mtr::reader(&bed.pages.ctx), whole, &mut out)
        .expect("read");
    assert!(out == data);
    tree.free_blob(&bed.pages.ctx, whole, &mut link)
        .expect("freed");
    let gone = reference(&mut link);
    assert_eq!(gone.len_bytes(), 0);
    let mut mtr = Mtr::reader(&bed.pages.ctx);
    assert!(crate::extent::is_page_free(&mut mtr, whole.page()).expect("read"));
}

#[test]
fn readers_and_writers_share_a_tree() {
    let bed = bed(256, true);
    let Bed { pages, tree, .. } = &bed;
    std::thread::scope(|s| {
        for t in 0..3u64 {
            s.spawn(move || {
                let mut local = Local {
                    ctx: &pages.ctx,
                    tree,
                    scratch: Scratch::default(),
                };
                for i in 0..1500u64 {
                    local.insert((i * 3 + t) * 2, &[t as u8; 90]);
                    if i % 5 == 4 {
                        local.delete(((i - 2) * 3 + t) * 2);
                    }
                }
            });
        }
        for _ in 0..2 {
            s.spawn(move || {
                for _ in 0..40 {
                    let mut last = None;
                    let mut stored = StoredPosition::new();
                    let mut mtr = Mtr::reader(&pages.ctx);
                    loop {
                        let step =
                            stored
                                .restore(tree, &mut mtr, Intent::Read)
                                .and_then(|(mut at, _)| {
                                    Ok(tree.next(&mut mtr, &mut at)?.then_some(at))
                                });
                        let at = match step {
                            Err(Error::WouldBlock) => {
                                mtr.restart().expect("restart");
                                continue;
                            }
                            step => step.expect("step"),
                        };
                        let Some(at) = at else { break };
                        let mut offsets = crate::page::Offsets::new();
                        stored.store(tree, &mtr, &at, &mut offsets).expect("stored");
                        let id = be::u64_at(
                            stored.key().expect("key").field(0).bytes().expect("bytes"),
                            0,
                        );
                        assert!(last < Some(id), "{last:?} then {id}");
                        last = Some(id);
                        mtr.release(at.page);
                    }
                }
            });
        }
    });
    let counts = bed.validate();
    assert_eq!(counts.records, 3 * (1500 - 300));
}

/// What a thread needs of a shared bed.
struct Local<'t> {
    ctx: &'t crate::mtr::PageCtx,
    tree: &'t Tree,
    scratch: Scratch,
}

impl Local<'_> {
    fn insert(&mut self, id: u64, v: &[u8]) {
        let (tree, tuple, k) = (self.tree, row(id, v), key(id));
        let scratch = &mut self.scratch;
        let budget = crate::mtr::Budget::statement(64 << 10);
        let (done, _) = retry(self.ctx, Some(budget), |mtr| {
            let mut at = tree.seek(mtr, Seek::Key(&k, SearchMode::LessOrEqual), Intent::Modify)?;
            if !tree.fits(mtr, &at, &tuple, scratch)? {
                return Ok(false);
            }
            tree.insert(mtr, &mut at, &tuple, scratch)?;
            Ok(true)
        })
        .expect("insert");
        if done {
            return;
        }
        let _space = tree
            .reserve_for_change(self.ctx, Class::Statement)
            .expect("space");
        let budget = tree.change_budget(self.ctx, Class::Statement);
        retry(self.ctx, Some(budget), |mtr| {
            let (_, mut path) = tree.seek_to_restructure(mtr, &tuple, Change::Insert)?;
            tree.insert_restructuring(mtr, &mut path, &tuple, scratch)
        })
        .expect("split");
    }

    fn delete(&mut self, id: u64) {
        let (tree, k) = (self.tree, key(id));
        let scratch = &mut self.scratch;
        let budget = crate::mtr::Budget::statement(64 << 10);
        let (done, _) = retry(self.ctx, Some(budget), |mtr| {
            let mut at = tree.seek(mtr, Seek::Key(&k, SearchMode::LessOrEqual), Intent::Modify)?;
            assert_eq!(at.low_match, 1, "row {id} is there");
            if !tree.deletes_in_place(mtr, &at, scratch)? {
                return Ok(false);
            }
            tree.delete(mtr, &mut at, scratch)?;
            Ok(true)
        })
        .expect("delete");
        if done {
            return;
        }
        let _space = tree
            .reserve_for_change(self.ctx, Class::System)
            .expect("space");
        let budget = tree.change_budget(self.ctx, Class::System);
        retry(self.ctx, Some(budget), |mtr| {
            let (at, mut path) = tree.seek_to_restructure(mtr, &k, Change::Delete)?;
            tree.delete_restructuring(mtr, &mut path, at.rec, scratch)
        })
        .expect("delete");
    }
}

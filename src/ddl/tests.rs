//! Statements on a new instance, looked at through the dictionary, an independent checker and the file
//! system.

use std::ops::ControlFlow;

use super::{Ddl, Limits, NewTable, define};
use crate::dict::describe::describe;
use crate::dict::system_tables::scan;
use crate::dict::testing::SampleDir;
use crate::host::callbacks::SessionCtx;
use crate::host::image::{ColumnKind, ImageColumn, ImageKey, ImageKeyPart, KeyKind, TableImage};
use crate::mtr::PageCtx;
use crate::page::layout;
use crate::schema::{FieldColumn, IndexType, RowFormat, Tuple};
use crate::sync::Arc;
use crate::trx::{Isolation, Trx, TrxSystem};
use crate::undo::Rsegs;
use crate::words::{Error, Result, SessionId};

const LIMITS: Limits = Limits {
    page_size: 16384,
    key_bytes_max: 3072,
    strict: true,
};

pub(super) struct Bed {
    pub(super) dir: SampleDir,
    sys: Arc<TrxSystem>,
}

impl Bed {
    pub(super) fn new() -> Bed {
        Bed::with_pages(16384)
    }

    fn with_pages(page_size: usize) -> Bed {
        let dir = SampleDir::create(page_size);
        let opened = Rsegs::open(&dir.ctx).expect("rollback segments");
        assert!(
            opened.next_trx_id.0 >= 2,
            "the bootstrap's id is not used again"
        );
        let locks = dir.dict.locks().clone();
        let sys = TrxSystem::new(opened.next_trx_id, Arc::new(opened.rsegs), locks);
        Bed {
            dir,
            sys: Arc::new(sys),
        }
    }

    fn trx(&self) -> Trx {
        let mut trx = self.sys.add(SessionId(1), SessionCtx(0));
        trx.start(Isolation::RepeatableRead, false, 0);
        trx
    }

    /// Runs a statement.
    pub(super) fn run<T>(&self, work: impl FnOnce(&Ddl<'_>, &mut Trx) -> Result<T>) -> Result<T> {
        let ctx = &self.dir.ctx;
        let tables = crate::row::DictTables {
            ctx,
            dict: &self.dir.dict,
        };
        let roll_back = |trx: &mut Trx| crate::row::rollback(ctx, trx, &tables);
        let ddl = Ddl {
            ctx,
            dict: &self.dir.dict,
            roll_back: &roll_back,
            full_crc32: true,
        };
        let mut trx = self.trx();
        let done = work(&ddl, &mut trx);
        if trx.is_open() {
            trx.finish_rollback(ctx)
                .expect("an unused transaction ends");
        }
        done
    }

    pub(super) fn create(&self, name: &str, image: &TableImage, format: RowFormat) -> Result<()> {
        let new = NewTable {
            name,
            image,
            format,
        };
        let def = define(&new, LIMITS)?;
        self.run(|ddl, trx| ddl.create(trx, def, 0)).map(|_| ())
    }

    fn files(&self, database: &str) -> Vec<String> {
        let Ok(listed) = std::fs::read_dir(self.dir.dir.join(database)) else {
            return Vec::new();
        };
        let mut files: Vec<String> = listed
            .map(|f| {
                f.expect("a file")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        files.sort();
        files
    }

    fn check(&self, file: &str) {
        self.dir.ctx.pool.flush_all().expect("flushed");
        let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/ibdump.py");
        let out = std::process::Command::new("python3")
            .args([tool, file, "check"])
            .current_dir(&self.dir.dir)
            .output()
            .expect("python3 runs");
        let text = String::from_utf8_lossy(&out.stdout);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{file}: {text}{errors}");
    }

    /// Live and delete-marked records of SYS_TABLES.
    fn table_rows(&self) -> (usize, usize) {
        let tables = &self.dir.dict.system().tables;
        let mut counts = (0, 0);
        scan(&self.dir.ctx, tables.clustered(), &Tuple::new(), &mut |v| {
            match v.is_deleted() {
                true => counts.1 += 1,
                false => counts.0 += 1,
            }
            Ok(ControlFlow::Continue(()))
        })
        .expect("sound");
        counts
    }
}

/// The layout of a sample table that the engine makes up itself.
pub(super) fn layout_of(mini: &SampleDir, name: &str) -> TableImage {
    let def = mini.dict.definition(&mini.ctx, name).expect(name);
    describe(&def).expect(name)
}

#[test]
fn types_and_keys_of_the_stock_servers_tables_come_out_as_they_went_in() {
    let mini = SampleDir::open("mini");
    let mut same = 0;
    for row in mini.dict.table_rows(&mini.ctx).expect("rows") {
        let stock = mini.dict.definition(&mini.ctx, &row.name).expect("sound");
        let beyond = IndexType::FULLTEXT | IndexType::SPATIAL | IndexType::HAS_VIRTUAL;
        let refused = stock.indexes.iter().any(|i| i.ty.has(beyond))
            || stock.format == RowFormat::Compressed
            || !stock.virtual_columns.is_empty()
            || !row.name.contains('/')
            || row.name.contains("FTS_")
            || row.mix_len != 80;
        if refused {
            continue;
        }
        let image = describe(&stock).expect("a layout");
        let new = NewTable {
            name: &row.name,
            image: &image,
            format: stock.format,
        };
        let ours = define(&new, LIMITS)
            .expect(&row.name)
            .build()
            .expect("sound");
        assert_eq!(ours.n_cols_field(), row.n_cols, "{}", row.name);
        assert_eq!(ours.flags.0, row.flags, "{}", row.name);
        for (a, b) in ours.columns.iter().zip(&stock.columns) {
            // DECIMAL, ENUM and SET are described as what they are stored like.
            let code = b.ty.prtype.0 & 0xFF;
            let told = code != 246 && !(code == 254 && b.ty.prtype.0 & 0x600 == 0x200);
            assert_eq!(a.name, b.name);
            if told {
                assert_eq!(a.ty, b.ty, "{}.{}", row.name, a.name);
            }
        }
        for (a, b) in ours.indexes.iter().zip(&stock.indexes) {
            assert_eq!((&a.name, a.ty.0), (&b.name, b.ty.0), "{}", row.name);
            let parts = |i: &crate::schema::Index| -> Vec<_> {
                let fields = i.fields.iter();
                fields.map(|f| (f.column, f.prefix_len, f.desc)).collect()
            };
            // An instant ALTER changes the order of the stored fields, not the keys.
            let n = a.n_uniq as usize;
            assert_eq!(parts(a)[..n], parts(b)[..n], "{} {}", row.name, a.name);
        }
        same += 1;
    }
    assert!(same > 12, "{same} tables compared");
}

#[test]
fn every_kind_of_table_is_created_renamed_truncated_and_dropped() {
    let mini = SampleDir::open("mini");
    let bed = Bed::new();
    let ctx = &bed.dir.ctx;
    let names = [
        "s_compact",
        "s_redundant",
        "s_noprimary",
        "s_types",
        "s_blob_dynamic",
    ];
    for short in names {
        let image = layout_of(&mini, &format!("smp/{short}"));
        let format = mini.dict.definition(&mini.ctx, &format!("smp/{short}"));
        let format = format.expect("sound").format;
        bed.create(&format!("d/{short}"), &image, format)
            .expect(short);
        let table = bed
            .dir
            .dict
            .open_table(ctx, &format!("d/{short}"))
            .expect(short);
        assert_eq!(describe(table.def()).expect("a layout"), image);
        bed.check(&format!("d/{short}.ibd"));
        let again = bed.create(&format!("d/{short}"), &image, format);
        assert!(matches!(again, Err(Error::TableExists(_))));
    }
    bed.check("ibdata1");
    assert_eq!(bed.files("d").len(), names.len());
    assert_eq!(bed.table_rows(), (3 + names.len(), 0));
    let old = bed.dir.dict.open_table(ctx, "d/s_types").expect("a table");
    bed.run(|ddl, trx| ddl.rename(trx, "d/s_types", "e/types"))
        .expect("renamed");
    assert!(old.is_retired());
    assert_eq!(bed.files("e"), ["types.ibd"]);
    let new = bed.dir.dict.open_table(ctx, "e/types").expect("a table");
    assert_eq!((new.id(), new.space_id()), (old.id(), old.space_id()));
    assert!(matches!(
        bed.dir.dict.open_table(ctx, "d/s_types"),
        Err(Error::NoSuchTable(_))
    ));
    // There and back: the delete-marked rows are used again.
    bed.run(|ddl, trx| ddl.rename(trx, "e/types", "d/s_types"))
        .expect("renamed");
    bed.run(|ddl, trx| ddl.truncate(trx, "d/s_types"))
        .expect("truncated");
    let emptied = bed.dir.dict.open_table(ctx, "d/s_types").expect("a table");
    assert!(emptied.id() > new.id() && emptied.space_id() > new.space_id());
    bed.check("d/s_types.ibd");
    for short in names {
        bed.run(|ddl, trx| ddl.drop_table(trx, &format!("d/{short}")))
            .expect(short);
    }
    assert!(bed.files("d").is_empty());
    assert_eq!(bed.dir.dict.table_rows(ctx).expect("rows").len(), 3);
    bed.check("ibdata1");
    // A name is free at once.
    let image = layout_of(&mini, "smp/s_compact");
    bed.create("d/s_compact", &image, RowFormat::Compact)
        .expect("created again");
    bed.dir
        .dict
        .open_table(ctx, "d/s_compact")
        .expect("a table");
    bed.check("ibdata1");
}

#[test]
fn a_table_in_use_is_neither_dropped_nor_renamed() {
    let mini = SampleDir::open("mini");
    let bed = Bed::new();
    let image = layout_of(&mini, "smp/s_dynamic");
    bed.create("d/t", &image, RowFormat::Dynamic)
        .expect("created");
    let table = bed
        .dir
        .dict
        .open_table(&bed.dir.ctx, "d/t")
        .expect("a table");
    let used = table.enter().expect("usable");
    let dropped = bed.run(|ddl, trx| ddl.drop_table(trx, "d/t"));
    assert!(matches!(dropped, Err(Error::Busy(_))));
    let renamed = bed.run(|ddl, trx| ddl.rename(trx, "d/t", "d/u"));
    assert!(matches!(renamed, Err(Error::Busy(_))));
    drop(used);
    table.enter().expect("usable again");
    bed.run(|ddl, trx| ddl.drop_table(trx, "d/t"))
        .expect("dropped");
    assert!(matches!(table.enter(), Err(Error::NoSuchTable(_))));
    let missing = bed.run(|ddl, trx| ddl.drop_table(trx, "d/t"));
    assert!(matches!(missing, Err(Error::NoSuchTable(_))));
}

#[test]
fn many_tables_make_the_dictionary_grow() {
    let mini = SampleDir::open("mini");
    let bed = Bed::new();
    let image = layout_of(&mini, "smp/s_types");
    for i in 0..24 {
        bed.create(&format!("d/t{i}"), &image, RowFormat::Dynamic)
            .expect("created");
    }
    for i in (0..24).step_by(2) {
        bed.run(|ddl, trx| ddl.drop_table(trx, &format!("d/t{i}")))
            .expect("dropped");
    }
    bed.check("ibdata1");
    let names = bed
        .dir
        .dict
        .table_names(&bed.dir.ctx, Some("d"))
        .expect("names");
    assert_eq!(names.len(), 12);
    assert_eq!(bed.files("d").len(), 12);
}

#[test]
fn the_first_auto_increment_value_is_in_the_root() {
    let mini = SampleDir::open("mini");
    let bed = Bed::new();
    let image = layout_of(&mini, "smp/s_compact");
    let new = NewTable {
        name: "d/t",
        image: &image,
        format: RowFormat::Dynamic,
    };
    let def = define(&new, LIMITS).expect("sound");
    bed.run(|ddl, trx| ddl.create(trx, def, 100))
        .expect("created");
    let table = bed
        .dir
        .dict
        .open_table(&bed.dir.ctx, "d/t")
        .expect("a table");
    assert_eq!(*table.autoinc(), 100);
    let (last, _) = crate::mtr::retry(&bed.dir.ctx, None, |mtr| {
        let rank = crate::sync::Rank::IndexPage;
        let root = mtr.get(table.clustered().root(), crate::mtr::Mode::S, rank)?;
        Ok(layout::root_auto_inc(mtr.view(root)))
    })
    .expect("a root");
    assert_eq!(last, 99);
}

/// Whether the table of a sample could be made under another name, in another format, changed.
fn try_with(name: &str, format: RowFormat, change: &dyn Fn(&mut TableImage)) -> Result<()> {
    let mut image = layout_of(&SampleDir::open("mini"), "smp/s_compact");
    change(&mut image);
    let new = NewTable {
        name,
        image: &image,
        format,
    };
    define(&new, LIMITS).map(|_| ())
}

#[test]
fn what_cannot_be_a_table_is_refused() {
    let same = |_: &mut TableImage| {};
    assert_eq!(try_with("d/t", RowFormat::Dynamic, &same), Ok(()));
    for name in ["t", "/t", "d/", "d/t/u", "d/\0"] {
        assert!(
            matches!(
                try_with(name, RowFormat::Dynamic, &same),
                Err(Error::Invalid(_))
            ),
            "{name}"
        );
    }
    let compressed = try_with("d/t", RowFormat::Compressed, &same);
    assert!(matches!(compressed, Err(Error::Unsupported(_))));
    let wide = try_with("d/t", RowFormat::Dynamic, &|i| {
        let mut columns = i.columns.to_vec();
        for n in 0..12 {
            let mut c = columns[0].clone();
            c.name = format!("wide{n}").into();
            c.kind = crate::host::image::ColumnKind::String;
            (c.collation, c.octets) = (63, 700);
            columns.push(c);
        }
        i.columns = columns.into();
    });
    assert!(matches!(wide, Err(Error::RowTooLarge { .. })), "{wide:?}");
}

#[test]
fn columns_and_keys_that_cannot_be_are_refused() {
    let good = layout_of(&SampleDir::open("mini"), "smp/s_compact");
    let renamed = |to: &str| {
        let to = to.to_string();
        try_with("d/t", RowFormat::Dynamic, &move |i| {
            i.columns[1].name = to.as_str().into()
        })
    };
    let first = good.columns[0].name.to_uppercase();
    for name in [first.as_str(), "db_row_id", ""] {
        assert!(matches!(renamed(name), Err(Error::Invalid(_))), "{name}");
    }
    let key = |kind, length| ImageKey::of_column("extra", kind, 1, length);
    let with_key = |key: ImageKey| {
        try_with("d/t", RowFormat::Dynamic, &move |i| {
            let mut keys = i.keys.to_vec();
            keys.push(key.clone());
            i.keys = keys.into();
        })
    };
    assert_eq!(with_key(key(KeyKind::Plain, 4)), Ok(()));
    let long = with_key(key(KeyKind::Plain, 3073));
    assert_eq!(long, Err(Error::KeyTooLong { size_max: 3072 }));
    for kind in [KeyKind::FullText, KeyKind::Spatial] {
        assert!(matches!(with_key(key(kind, 4)), Err(Error::Unsupported(_))));
    }
    let taken = ImageKey {
        name: good.keys[0].name.clone(),
        ..key(KeyKind::Plain, 4)
    };
    assert!(matches!(with_key(taken), Err(Error::Invalid(_))));
}

/// Virtual columns are the host's alone.
#[test]
fn a_key_is_on_the_stored_column_that_the_host_means() {
    let good = layout_of(&SampleDir::open("mini"), "smp/s_compact");
    let mut hidden = ImageColumn::plain("virtual", ColumnKind::Long, 0, 4);
    hidden.is_virtual = true;
    let mut image = good.clone();
    let (first, rest) = good.columns.split_at(1);
    image.columns = [first, &[hidden], rest].concat().into();
    let column = |number| {
        let key = ImageKey::of_column("extra", KeyKind::Plain, number, 4);
        let index = define::index(&image, &key, RowFormat::Compact, LIMITS)?;
        Ok(index.parts[0].column)
    };
    assert_eq!(column(0), Ok(FieldColumn::Stored(0)));
    assert_eq!(column(2), Ok(FieldColumn::Stored(1)));
    let on_virtual: Result<_> = column(1);
    assert!(
        matches!(on_virtual, Err(Error::Unsupported(_))),
        "{on_virtual:?}"
    );
}

#[test]
fn a_statement_that_fails_half_way_leaves_nothing() {
    let mini = SampleDir::open("mini");
    let bed = Bed::new();
    let (ctx, dict) = (&bed.dir.ctx, &bed.dir.dict);
    let image = layout_of(&mini, "smp/s_dynamic");
    bed.create("d/t", &image, RowFormat::Dynamic)
        .expect("created");
    // The place of the database is taken by a file: the rows are written when that is met.
    std::fs::write(bed.dir.dir.join("e"), b"").expect("room");
    let created = bed.create("e/t", &image, RowFormat::Dynamic);
    assert!(matches!(created, Err(Error::Io(_))), "{created:?}");
    let renamed = bed.run(|ddl, trx| ddl.rename(trx, "d/t", "e/t"));
    assert!(matches!(renamed, Err(Error::Io(_))), "{renamed:?}");
    // So does a file that is in the way of a truncation.
    let table = dict.open_table(ctx, "d/t").expect("still there");
    let aside = format!("d/#sql-ib{}.ibd", table.id());
    std::fs::write(bed.dir.dir.join(&aside), b"").expect("room");
    let truncated = bed.run(|ddl, trx| ddl.truncate(trx, "d/t"));
    assert!(
        matches!(truncated, Err(Error::TablespaceExists(_))),
        "{truncated:?}"
    );
    table.enter().expect("usable");
    let names = dict.table_names(ctx, None).expect("names");
    assert_eq!(names.len(), 1);
    let again = dict.open_table(ctx, "d/t").expect("there");
    assert_eq!(again.id(), table.id());
    let rows = |table: &crate::dict::OpenTable| {
        let mut n = 0;
        scan(ctx, table.clustered(), &Tuple::new(), &mut |view| {
            n += usize::from(!view.is_deleted());
            Ok(ControlFlow::Continue(()))
        })
        .expect("sound");
        n
    };
    let sys = dict.system();
    let fields: usize = table
        .def()
        .indexes
        .iter()
        .map(|i| i.n_user_fields as usize)
        .sum();
    assert_eq!(rows(&sys.columns), 11 + table.def().n_stored());
    assert_eq!(rows(&sys.indexes), 5 + table.def().indexes.len());
    assert_eq!(rows(&sys.fields), 8 + fields);
    bed.check("ibdata1");
    bed.check("d/t.ibd");
    std::fs::remove_file(bed.dir.dir.join(&aside)).expect("there");
    bed.run(|ddl, trx| ddl.truncate(trx, "d/t"))
        .expect("truncated");
    assert_eq!(bed.files("d"), ["t.ibd"]);
}

#[test]
fn a_table_with_all_its_keys_fits_on_every_page_size() {
    for page_size in [4096, 16384, 65536] {
        let bed = Bed::with_pages(page_size);
        let mini = SampleDir::open("mini");
        let mut image = layout_of(&mini, "smp/s_types");
        let key = |n: usize| ImageKey {
            name: format!("k{n}").into(),
            kind: KeyKind::Plain,
            parts: [1, 3]
                .map(|column| ImageKeyPart {
                    column,
                    length: image.columns[column as usize].octets,
                    descending: n % 2 == 0,
                })
                .into(),
        };
        let keys: Vec<ImageKey> = image.keys.iter().cloned().chain((0..63).map(key)).collect();
        image.keys = keys.into();
        let new = NewTable {
            name: "d/t",
            image: &image,
            format: RowFormat::Dynamic,
        };
        let limits = Limits {
            page_size,
            ..LIMITS
        };
        let def = define(&new, limits).expect("sound");
        bed.run(|ddl, trx| ddl.create(trx, def, 0))
            .expect("created");
        let table = bed.dir.dict.open_table(&bed.dir.ctx, "d/t").expect("there");
        assert_eq!(table.trees().len(), 64);
        bed.check("d/t.ibd");
        bed.run(|ddl, trx| ddl.truncate(trx, "d/t"))
            .expect("truncated");
        bed.check("ibdata1");
    }
}

/// The statements are run in the middle of the build, by the thread that builds: with the dictionary locked
/// it would wait for itself.
#[test]
fn others_change_the_dictionary_while_an_index_is_built() {
    let mini = SampleDir::open("mini");
    let bed = Bed::new();
    let (ctx, dict) = (&bed.dir.ctx, &bed.dir.dict);
    let mut image = layout_of(&mini, "smp/s_dynamic");
    // Those on text want the host's collations.
    let primary = |key: &&ImageKey| key.kind == KeyKind::Primary;
    image.keys = image.keys.iter().filter(primary).cloned().collect();
    for name in ["d/t", "d/other"] {
        bed.create(name, &image, RowFormat::Dynamic)
            .expect("created");
    }
    let mut key = image.keys[0].clone();
    (key.name, key.kind) = ("added".into(), KeyKind::Plain);
    let mut wider = image.clone();
    wider.keys = image.keys.iter().cloned().chain([key]).collect();
    let means = super::BuildMeans {
        ctx: Arc::new(PageCtx::new(
            ctx.pool.clone(),
            ctx.log.clone(),
            ctx.spaces.clone(),
        )),
        place: crate::row::SortPlace::new(ctx.spaces.vfs(), "/tmp", 65536, &ctx.sort_bytes),
        threads: 1,
        fill_factor: 100,
        on_panic: Arc::new(|_, _| {}),
    };
    let add = |build: &dyn Fn(super::BuildJob) -> Result<Option<super::Refused>>| {
        let new = super::NewIndexes {
            table: "d/t",
            image: &wider,
            limits: LIMITS,
            build,
        };
        bed.run(|ddl, trx| ddl.add_indexes(trx, new).map_err(|failed| failed.error))
    };
    let others = |job: super::BuildJob| {
        bed.create("d/new", &image, RowFormat::Dynamic)?;
        bed.run(|ddl, trx| ddl.drop_table(trx, "d/other"))?;
        dict.open_table(ctx, "d/new")?;
        for refused in [
            bed.run(|ddl, trx| ddl.drop_table(trx, "d/t")),
            bed.run(|ddl, trx| ddl.truncate(trx, "d/t")),
            bed.run(|ddl, trx| ddl.rename(trx, "d/t", "d/u")),
            bed.run(|ddl, trx| ddl.drop_index(trx, "d/t", "added")),
        ] {
            assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
        }
        job.run(means.clone(), &|| false)
    };
    add(&others).expect("added");
    let indexes = dict.open_table(ctx, "d/t").expect("a table").trees().len();
    assert_eq!(indexes, image.keys.len() + 1);
    assert_eq!(bed.files("d"), ["new.ibd", "t.ibd"]);
    bed.run(|ddl, trx| ddl.drop_index(trx, "d/t", "added"))
        .expect("dropped");
    let failing = |_| {
        bed.run(|ddl, trx| ddl.drop_table(trx, "d/new"))?;
        Err(Error::Interrupted)
    };
    assert!(matches!(add(&failing), Err(Error::Interrupted)));
    let table = dict.open_table(ctx, "d/t").expect("a table");
    assert_eq!(table.trees().len(), image.keys.len());
    table.enter().expect("usable");
    bed.check("d/t.ibd");
    bed.check("ibdata1");
}

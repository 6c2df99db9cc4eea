//! The engine on a simulated disk: how it is opened, and the tables of the workload.

use std::collections::BTreeMap;
use std::sync::Arc;
use xtradb::engine::{
    CreateOptions, Engine, EngineConfig, Find, HostServices, Isolation, LockMode, OpenFlags,
    RowFormat, Session, SessionConfig, StatementFlags, TableHandle, TableUse, Under, Wait,
};
use xtradb::host::callbacks::{NoCallbacks, SessionCtx};
use xtradb::host::collation::BytesOnly;
use xtradb::host::image::{
    BlobRef, ColumnKind, ImageColumn, ImageKey, ImageKeyPart, KeyKind, RowIn, TableImage,
};
use xtradb::os::CrashPoints;
use xtradb::os::sim::SimVfs;
use xtradb::settings::{Counters, Settings, ids};
use xtradb::words::{Error, Result};

pub const PAGE_BYTES: usize = 4096;
/// Small pages, a small pool, the smallest log: evictions, doublewrite and checkpoints all the time.
const OPTIONS: [&str; 12] = [
    "page_size=4096",
    "data_file_path=ibdata1:4M:autoextend",
    "buffer_pool_size=2M",
    "log_file_size=4M",
    "log_buffer_size=2M",
    "undo_tablespaces=2",
    "flush_log_at_trx_commit=1",
    "lock_wait_timeout=1",
    "io_capacity=2000",
    // Threads that a state hardly needs.
    "read_io_threads=1",
    "purge_threads=1",
    "fast_shutdown=0",
];

/// Opens what is on `disk`, or makes an instance.
pub fn open(disk: &SimVfs) -> Result<Arc<Engine>> {
    let settings = Settings::default();
    for option in OPTIONS {
        settings.apply_option(option).expect("a valid option");
    }
    let under = Under {
        vfs: Arc::new(disk.clone()),
        points: Arc::new(CrashPoints::new()),
    };
    let config = EngineConfig {
        datadir: "./".into(),
        may_create: true,
    };
    let host = HostServices {
        collations: Arc::new(BytesOnly),
        callbacks: Arc::new(NoCallbacks),
    };
    let counters = Arc::new(Counters::default());
    let engine = Engine::open_on(under, config, Arc::new(settings), counters, host)?;
    engine.recovery_done();
    Ok(engine)
}

/// Writes all pages and makes a checkpoint.
pub fn checkpoint(engine: &Engine) {
    let set = engine.set_global(ids::LOG_CHECKPOINT_NOW, "ON");
    set.expect("a healthy disk");
}

/// `(id INT PRIMARY KEY, n INT, v VARBINARY(200), b LONGBLOB, KEY n (n), KEY vn (v, n))`
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Row {
    pub id: i32,
    pub n: Option<i32>,
    pub v: Vec<u8>,
    pub b: Option<Vec<u8>>,
}

pub type Rows = BTreeMap<i32, Arc<Row>>;

const V: usize = 9;
const V_MAX: usize = 200;
const B: usize = V + 1 + V_MAX;
const ROW_BYTES: usize = B + 12;
/// A longer BLOB is certainly stored off-page, a shorter one than `INLINE_MAX` certainly not.
pub const OFF_PAGE_MIN: usize = 2500;
pub const INLINE_MAX: usize = 500;

impl Row {
    fn pack(&self) -> [u8; ROW_BYTES] {
        let mut row = [0; ROW_BYTES];
        row[0] = u8::from(self.n.is_none()) | u8::from(self.b.is_none()) << 1;
        row[1..5].copy_from_slice(&self.id.to_le_bytes());
        row[5..9].copy_from_slice(&self.n.unwrap_or(0).to_le_bytes());
        row[V] = self.v.len() as u8;
        row[V + 1..V + 1 + self.v.len()].copy_from_slice(&self.v);
        if let Some(b) = &self.b {
            row[B..B + 4].copy_from_slice(&(b.len() as u32).to_le_bytes());
        }
        row
    }

    fn unpack(row: &[u8], table: &mut TableHandle) -> Row {
        let int = |at: usize| i32::from_le_bytes(row[at..at + 4].try_into().expect("4 bytes"));
        let b = (row[0] & 2 == 0).then(|| {
            let length = int(B) as u32;
            let address = row[B + 4..B + 12].try_into().expect("8 bytes");
            let blob = BlobRef {
                address: u64::from_ne_bytes(address),
                length,
            };
            match length {
                0 => Vec::new(),
                _ => table.blobs().bytes(blob).expect("in the heap").to_vec(),
            }
        });
        Row {
            id: int(1),
            n: (row[0] & 1 == 0).then(|| int(5)),
            v: row[V + 1..V + 1 + row[V] as usize].to_vec(),
            b,
        }
    }

    fn with<T>(&self, give: impl FnOnce(RowIn<'_>) -> T) -> T {
        let packed = self.pack();
        give(RowIn {
            image: &packed,
            blobs: &[self.b.as_deref().unwrap_or_default()],
        })
    }
}

/// The keys that every table has, and `added`, which comes and goes.
fn image_with(added: bool) -> TableImage {
    let id = ImageColumn::plain("id", ColumnKind::Long, 1, 4);
    let n = ImageColumn {
        null_mask: 1,
        not_null: false,
        ..ImageColumn::plain("n", ColumnKind::Long, 5, 4)
    };
    let v = ImageColumn {
        length_bytes: 1,
        octets: V_MAX as u32,
        ..ImageColumn::plain("v", ColumnKind::VarChar, V as u32, 1 + V_MAX as u32)
    };
    let b = ImageColumn {
        null_mask: 2,
        not_null: false,
        length_bytes: 4,
        octets: 0,
        ..ImageColumn::plain("b", ColumnKind::LongBlob, B as u32, 12)
    };
    let mut vn = ImageKey::of_column("vn", KeyKind::Plain, 2, V_MAX as u32);
    let n_part = ImageKeyPart {
        column: 1,
        length: 4,
        descending: false,
    };
    vn.parts = vn.parts.iter().cloned().chain([n_part]).collect();
    let mut keys = vec![
        ImageKey::of_column("PRIMARY", KeyKind::Primary, 0, 4),
        ImageKey::of_column("n", KeyKind::Plain, 1, 4),
        vn,
    ];
    if added {
        keys.push(ImageKey::of_column(ADDED, KeyKind::Plain, 2, 90));
    }
    TableImage::new(vec![id, n, v, b], keys, ROW_BYTES as u32, 1).expect("a sound image")
}

fn image() -> TableImage {
    image_with(false)
}

pub const KEYS: u32 = 3;
/// An index that statements add and drop.
const ADDED: &str = "added";

pub fn session(engine: &Arc<Engine>, isolation: Isolation) -> Session {
    let config = SessionConfig {
        isolation,
        connection_id: 7,
        ctx: SessionCtx(0),
    };
    Session::open(engine, config).expect("a session")
}

pub fn create(engine: &Engine, session: &mut Session, name: &str, format: RowFormat) -> Result<()> {
    let options = CreateOptions {
        row_format: Some(format),
        ..CreateOptions::default()
    };
    engine.create_table(session, name, &image(), &options)
}

pub fn table(engine: &Arc<Engine>, name: &str) -> Result<TableHandle> {
    TableHandle::open(engine, name, image(), OpenFlags::default())
}

/// True if the table has the index that comes and goes.
pub fn has_added(engine: &Engine, name: &str) -> Result<bool> {
    let described = engine.describe_table(name)?;
    Ok(described.image.keys.iter().any(|key| &*key.name == ADDED))
}

/// Adds the index, which is built at once, or drops it.
pub fn add_or_drop(engine: &Engine, session: &mut Session, name: &str, add: bool) -> Result<()> {
    match add {
        true => engine.add_indexes(session, name, &image_with(true), None),
        false => engine.drop_index(session, name, ADDED),
    }
}

/// One statement on a table; after an error it is rolled back.
fn statement<T>(
    session: &mut Session,
    table: &mut TableHandle,
    lock: LockMode,
    body: impl FnOnce(&mut Session, &mut TableHandle) -> Result<T>,
) -> Result<T> {
    statement_with(session, table, lock, StatementFlags::default(), body)
}

fn statement_with<T>(
    session: &mut Session,
    table: &mut TableHandle,
    lock: LockMode,
    flags: StatementFlags,
    body: impl FnOnce(&mut Session, &mut TableHandle) -> Result<T>,
) -> Result<T> {
    let how = TableUse {
        lock,
        wait: Wait::NoWait,
        write: lock == LockMode::Exclusive,
        lock_table: false,
    };
    session.statement_begin(flags)?;
    let begun = table.begin_use(session, &how);
    let done = begun.and_then(|()| body(session, table));
    table.end_use();
    match done {
        Ok(value) => session.statement_end().map(|()| value),
        Err(error) => {
            // The first error is the one to tell; a second one says that the engine stopped.
            let _ = session.statement_rollback();
            Err(error)
        }
    }
}

pub fn insert(session: &mut Session, table: &mut TableHandle, row: &Row) -> Result<()> {
    statement(session, table, LockMode::Exclusive, |session, table| {
        row.with(|row| table.insert(session, row))
    })
}

/// Rows in one statement that asks for no checks: an empty table is built at once.
pub fn load(session: &mut Session, table: &mut TableHandle, rows: &[Row]) -> Result<()> {
    let flags = StatementFlags {
        no_foreign_keys: true,
        relaxed_unique: true,
        ..StatementFlags::default()
    };
    statement_with(
        session,
        table,
        LockMode::Exclusive,
        flags,
        |session, table| {
            table.bulk_begin(session, rows.len() as u64)?;
            for row in rows {
                row.with(|row| table.insert(session, row))?;
            }
            table.bulk_end(session)
        },
    )
}

/// Changes the row with that id, or deletes it: `None`.
pub fn change(
    session: &mut Session,
    table: &mut TableHandle,
    id: i32,
    new: Option<&Row>,
) -> Result<()> {
    statement(session, table, LockMode::Exclusive, |session, table| {
        let mut found = [0; ROW_BYTES];
        table.index_begin(session, 0)?;
        table.index_read(session, &mut found, &id.to_le_bytes(), Find::Exact)?;
        match new {
            None => table.delete(session),
            Some(row) => match row.with(|row| table.update(session, row)) {
                Err(Error::RecordIsTheSame) => Ok(()),
                other => other,
            },
        }
    })
}

/// All rows in the order of a key.
pub fn all(session: &mut Session, table: &mut TableHandle, key: u32) -> Result<Vec<Row>> {
    statement(session, table, LockMode::None, |session, table| {
        table.index_begin(session, key)?;
        let mut rows = Vec::new();
        let mut row = [0; ROW_BYTES];
        loop {
            match table.next(session, &mut row) {
                Ok(()) => rows.push(Row::unpack(&row, table)),
                Err(Error::EndOfFile) => return Ok(rows),
                Err(error) => return Err(error),
            }
        }
    })
}

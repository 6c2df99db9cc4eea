//! What must hold of a disk after a power cut: it opens, every table is as one of the allowed states
//! says, all indexes agree, and it can be worked with and closed.

use super::audit::audit;
use super::bed::{self, OFF_PAGE_MIN, Row};
use super::work::{Db, Model, Work, mark_of, tables};
use crate::support::seed::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use xtradb::engine::{Engine, Isolation, Session, TableHandle};
use xtradb::os::sim::SimVfs;
use xtradb::words::Error;

type Found<T> = Result<T, String>;

/// By what tables are read beside the clustered index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// This key.
    Key(u32),
    /// CHECK TABLE EXTENDED.
    Check,
}

/// Every way.
pub const ALL_WAYS: [By; bed::KEYS as usize] = [By::Key(1), By::Key(2), By::Check];

/// Reads everything by the clustered index and by some other ways: a key must have the same rows in its
/// order.
pub fn read(engine: &Arc<Engine>, ways: &[By]) -> Found<BTreeMap<String, Vec<Row>>> {
    let failed = |what: &str, error: Error| format!("{what}: {error}");
    let mut session = bed::session(engine, Isolation::ReadCommitted);
    let names = engine
        .table_names(Some("d"))
        .map_err(|e| failed("names of tables", e))?;
    let mut tables = BTreeMap::new();
    for name in names {
        if bed::has_added(engine, &name).map_err(|e| failed(&name, e))? {
            tables.insert(mark_of(&name), Vec::new());
        }
        let mut table = bed::table(engine, &name).map_err(|e| failed(&name, e))?;
        let rows = bed::all(&mut session, &mut table, 0).map_err(|e| failed(&name, e))?;
        for way in ways {
            let &By::Key(key) = way else {
                check(&mut session, &mut table, &name)?;
                continue;
            };
            let mut by_key = bed::all(&mut session, &mut table, key)
                .map_err(|e| failed(&format!("key {key} of {name}"), e))?;
            let in_order = |a: &Row, b: &Row| match key {
                1 => (a.n, a.id) <= (b.n, b.id),
                _ => (&a.v, a.n, a.id) <= (&b.v, b.n, b.id),
            };
            if !by_key.windows(2).all(|two| in_order(&two[0], &two[1])) {
                return Err(format!("key {key} of {name} is out of order"));
            }
            by_key.sort_by_key(|row| row.id);
            if by_key != rows {
                let (a, b) = (rows.len(), by_key.len());
                return Err(format!("key {key} of {name} has other rows: {b}, not {a}"));
            }
        }
        tables.insert(name.to_string(), rows);
    }
    session.close();
    Ok(tables)
}

fn check(session: &mut Session, table: &mut TableHandle, name: &str) -> Found<()> {
    let mut findings = Vec::new();
    let sound = table.check(session, true, &mut |finding| {
        findings.push(finding.text);
        true
    });
    match sound {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("{name}: {findings:?}")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

pub fn is_state(found: &BTreeMap<String, Vec<Row>>, state: &Db) -> bool {
    found.keys().eq(state.keys())
        && found.values().zip(state.values()).all(|(found, rows)| {
            found.len() == rows.len() && found.iter().zip(rows.values()).all(|(a, b)| *a == **b)
        })
}

/// Where what was found differs from a state.
pub fn difference(found: &BTreeMap<String, Vec<Row>>, state: &Db) -> String {
    if !found.keys().eq(state.keys()) {
        return format!("tables {:?}, not {:?}", found.keys(), state.keys());
    }
    let mut text = String::new();
    for (name, rows) in state {
        let found: BTreeMap<i32, &Row> = found[name].iter().map(|row| (row.id, row)).collect();
        for (id, row) in rows.iter() {
            match found.get(id) {
                None => text += &format!("{name} lacks {id}; "),
                Some(other) if **other != **row => text += &format!("{name} {id} differs; "),
                Some(_) => {}
            }
        }
        for id in found.keys().filter(|id| !rows.contains_key(id)) {
            text += &format!("{name} has {id}; ");
        }
    }
    text
}

/// How much is done with a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Opened and read.
    Read,
    /// Also closed, and all files checked.
    Audit,
    /// Also worked with before.
    Work,
}

/// Opens and checks `disk`. Yields which of the `allowed` states of the model it is in.
pub fn verify(
    disk: &SimVfs,
    model: &Model,
    allowed: std::ops::RangeInclusive<usize>,
    depth: Depth,
    rng: &mut Rng,
) -> Found<usize> {
    let engine = bed::open(disk).map_err(|error| format!("does not open: {error}"))?;
    let ways = [*rng.pick(&ALL_WAYS)];
    let found = read(&engine, &ways)?;
    let state = allowed
        .clone()
        .find(|&state| is_state(&found, &model.states[state]));
    let Some(state) = state else {
        let differences = allowed.map(|state| {
            format!(
                "state {state}: {}",
                difference(&found, &model.states[state])
            )
        });
        return Err(differences.collect::<Vec<_>>().join("\n"));
    };
    if depth == Depth::Read {
        return stopped(&engine).map(|()| state);
    }
    let mut db = model.states[state].clone();
    if depth == Depth::Work {
        let model = Model { states: vec![db] };
        let mut work = Work::new(disk, &engine, model, Rng::new(rng.next()), 300);
        for step in 0..25 {
            let done = work.step();
            done.map_err(|e| format!("step {step} afterwards: {e}; {:?}", work.log))?;
        }
        let (after, log) = work.end().map_err(|e| format!("end afterwards: {e}"))?;
        db = after.last().clone();
        let found = read(&engine, &ALL_WAYS)?;
        if !is_state(&found, &db) {
            return Err(format!("after {log:?}: {}", difference(&found, &db)));
        }
    }
    stopped(&engine)?;
    // A slow shutdown: all is rolled back and purged.
    engine.close().map_err(|error| format!("close: {error}"))?;
    drop(engine);
    let off_page = |rows: &super::bed::Rows| {
        let is = |row: &&Arc<Row>| row.b.as_ref().is_some_and(|b| b.len() >= OFF_PAGE_MIN);
        rows.values().filter(is).count()
    };
    let files = tables(&db).map(|(name, rows)| {
        let file = name.strip_prefix("d/").expect("a table of d");
        (format!("{file}.ibd"), off_page(rows))
    });
    audit(disk, &files.collect())?;
    Ok(state)
}

/// Rows, those with a long BLOB and chains in the file, of each table, after a start and a clean end.
pub fn rows_and_chains(disk: &SimVfs) -> Found<BTreeMap<String, (usize, usize, usize)>> {
    let engine = bed::open(disk).map_err(|error| format!("does not open: {error}"))?;
    let found = read(&engine, &ALL_WAYS)?;
    engine.close().map_err(|error| format!("close: {error}"))?;
    let mut counts = BTreeMap::new();
    let tables = found.into_iter().filter(|(name, _)| !name.contains('#'));
    for (name, rows) in tables {
        let is = |row: &&Row| row.b.as_ref().is_some_and(|b| b.len() >= OFF_PAGE_MIN);
        let chains = super::audit::chains(disk, &format!("./{name}.ibd"))?;
        counts.insert(name, (rows.len(), rows.iter().filter(is).count(), chains));
    }
    Ok(counts)
}

fn stopped(engine: &Engine) -> Found<()> {
    match engine.stopped() {
        None => Ok(()),
        Some(why) => Err(format!("the engine stopped: {why}")),
    }
}

//! The workload and its model: three clients of one thread that change five tables, in turn, with
//! savepoints and rollbacks, while tables come, go, are emptied and get other names.
//!
//! The model is a list of states, one for each acknowledged step: a commit that changed something, or a
//! statement of DDL. Marks in the recording tell when a step began (2i) and was acknowledged (2i + 1).

use super::bed::{self, INLINE_MAX, OFF_PAGE_MIN, Row, Rows};
use crate::support::seed::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use xtradb::engine::{Engine, Isolation, RowFormat, Session, TrxFlags};
use xtradb::os::sim::SimVfs;
use xtradb::settings::ids;
use xtradb::words::{Error, Result};

/// Tables and their rows; a state shares with its neighbours what did not change. A table with the index
/// that comes and goes has another entry, without rows: `mark_of`.
pub type Db = BTreeMap<String, Arc<Rows>>;

/// The entry that says that the table has the added index.
pub fn mark_of(table: &str) -> String {
    format!("{table}#added")
}

/// The tables of a state.
pub fn tables(db: &Db) -> impl Iterator<Item = (&String, &Arc<Rows>)> {
    db.iter().filter(|(name, _)| !name.contains('#'))
}

/// Where a database can be after a power cut: in one of these states.
#[derive(Clone, Debug)]
pub struct Model {
    pub states: Vec<Db>,
}

impl Model {
    pub fn last(&self) -> &Db {
        self.states.last().expect("there is a first state")
    }
}

/// What a client changed since its transaction began: the rows as they are for it.
type Changes = BTreeMap<(String, i32), Option<Arc<Row>>>;

struct Client {
    session: Session,
    open: bool,
    changes: Changes,
    at_savepoint: Option<Changes>,
}

pub struct Work {
    disk: SimVfs,
    engine: Arc<Engine>,
    clients: Vec<Client>,
    ddl: Session,
    pub model: Model,
    rng: Rng,
    /// Rows of a client: ids that leave this remainder.
    ids: u64,
    /// A transaction could not be rolled back: it waits for the next start.
    pub given_up: Option<String>,
    /// What happened, for the report of a failure: step by step.
    pub log: Vec<String>,
}

const CLIENTS: usize = 3;
const FORMATS: [RowFormat; 3] = [RowFormat::Dynamic, RowFormat::Compact, RowFormat::Redundant];

/// How a statement may end that is no failure of the engine.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::DuplicateKey { .. } | Error::KeyNotFound | Error::LockWaitTimeout | Error::Busy(_)
    )
}

impl Work {
    /// `ids`: ids go from 1 to so many.
    pub fn new(disk: &SimVfs, engine: &Arc<Engine>, model: Model, rng: Rng, ids: u64) -> Work {
        let client = |_| Client {
            session: bed::session(engine, Isolation::RepeatableRead),
            open: false,
            changes: Changes::new(),
            at_savepoint: None,
        };
        Work {
            disk: disk.clone(),
            clients: (0..CLIENTS).map(client).collect(),
            ddl: bed::session(engine, Isolation::RepeatableRead),
            engine: engine.clone(),
            model,
            rng,
            ids,
            given_up: None,
            log: Vec::new(),
        }
    }

    /// One statement of one client, or of DDL. An error is none of those that statements may give:
    /// the engine or its disk failed, and whether a step that it was in counts is open.
    pub fn step(&mut self) -> Result<()> {
        match self.rng.below(40) {
            0 => self.change_tables(),
            1 => {
                // That it fails is logged, and no error of the statement.
                let set = self.engine.set_global(ids::LOG_CHECKPOINT_NOW, "ON");
                set.expect("a setting");
                Ok(())
            }
            _ => {
                let who = self.rng.below(CLIENTS as u64) as usize;
                self.client_step(who)
            }
        }
    }

    fn client_step(&mut self, who: usize) -> Result<()> {
        let client = &mut self.clients[who];
        if !client.open {
            client.session.begin(TrxFlags::default())?;
            client.open = true;
        }
        match self.rng.below(20) {
            0..=2 => self.commit(who),
            3 => self.roll_back(who),
            4 => match self.clients[who].at_savepoint.take() {
                None => {
                    let client = &mut self.clients[who];
                    client.session.savepoint_set(b"here")?;
                    client.at_savepoint = Some(client.changes.clone());
                    Ok(())
                }
                Some(changes) => {
                    let client = &mut self.clients[who];
                    client.changes = changes;
                    client.session.savepoint_rollback(b"here")
                }
            },
            _ => self.change_row(who),
        }
    }

    /// The states before and after, with the marks that say when.
    fn acknowledge(
        &mut self,
        next: Db,
        what: String,
        run: impl FnOnce(&mut Work) -> Result<()>,
    ) -> Result<bool> {
        let number = self.model.states.len() as u64 - 1;
        self.log.push(what);
        self.disk.mark(number * 2);
        // Before the outcome is known the next state is a possible one.
        self.model.states.push(next);
        match run(self) {
            Ok(()) => {
                self.disk.mark(number * 2 + 1);
                Ok(true)
            }
            Err(error) if is_refusal(&error) => {
                // As if it had been a step that changes nothing.
                let before = self.model.states[number as usize].clone();
                *self.model.states.last_mut().expect("pushed") = before;
                self.disk.mark(number * 2 + 1);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn commit(&mut self, who: usize) -> Result<()> {
        let client = &mut self.clients[who];
        (client.open, client.at_savepoint) = (false, None);
        let changes = std::mem::take(&mut client.changes);
        let mut next = self.model.last().clone();
        for ((table, id), row) in changes.iter() {
            let rows = Arc::make_mut(next.get_mut(table).expect("no DDL meanwhile"));
            match row {
                Some(row) => rows.insert(*id, row.clone()),
                None => rows.remove(id),
            };
        }
        let what = format!("commit of {who}: {:?}", changes.keys());
        let done = self.acknowledge(next, what, |work| work.clients[who].session.commit())?;
        assert!(done, "a commit is not refused");
        Ok(())
    }

    fn roll_back(&mut self, who: usize) -> Result<()> {
        let client = &mut self.clients[who];
        (client.open, client.at_savepoint) = (false, None);
        client.changes.clear();
        client.session.rollback()
    }

    /// What client `who` sees of a row of its own.
    fn see(&self, who: usize, table: &str, id: i32) -> bool {
        match self.clients[who].changes.get(&(table.to_string(), id)) {
            Some(row) => row.is_some(),
            None => self.model.last()[table].contains_key(&id),
        }
    }

    fn random_row(&mut self, id: i32) -> Row {
        let rng = &mut self.rng;
        let len = rng.below(200) as usize;
        let b = match rng.below(12) {
            0..=5 => None,
            6..=9 => Some(rng.below(INLINE_MAX as u64) as usize),
            10 => Some(OFF_PAGE_MIN + rng.below(3000) as usize),
            _ => Some(OFF_PAGE_MIN + rng.below(20_000) as usize),
        };
        let fill = rng.next().to_le_bytes();
        Row {
            id,
            n: (!rng.one_in(5)).then(|| rng.below(50) as i32),
            v: rng.text(len).into_bytes(),
            b: b.map(|len| (0..len).map(|i| fill[i % 8] ^ (i / 256) as u8).collect()),
        }
    }

    fn table_names(&self) -> Vec<String> {
        tables(self.model.last())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Many rows in one statement for a table that is empty, as far as anybody has committed.
    fn load(&mut self, who: usize, name: &str) -> Result<()> {
        let slots = (self.ids / CLIENTS as u64).min(120);
        let ids = 0..1 + self.rng.below(slots);
        let rows: Vec<Row> = ids
            .map(|slot| (slot * CLIENTS as u64) as i32 + who as i32)
            .filter(|&id| !self.see(who, name, id))
            .collect::<Vec<i32>>()
            .into_iter()
            .map(|id| self.random_row(id))
            .collect();
        let mut table = bed::table(&self.engine, name)?;
        let session = &mut self.clients[who].session;
        match bed::load(session, &mut table, &rows) {
            Ok(()) => {
                let changes = &mut self.clients[who].changes;
                let made = rows.into_iter();
                changes.extend(made.map(|row| ((name.to_string(), row.id), Some(Arc::new(row)))));
                Ok(())
            }
            Err(error) if is_refusal(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn change_row(&mut self, who: usize) -> Result<()> {
        let names = self.table_names();
        if names.is_empty() {
            return Ok(());
        }
        let name = self.rng.pick(&names).clone();
        if self.model.last()[&name].is_empty() && self.rng.one_in(2) {
            return self.load(who, &name);
        }
        // Each client has rows of its own: the model needs no locks.
        let slot = self.rng.below(self.ids / CLIENTS as u64);
        let id = (slot * CLIENTS as u64) as i32 + who as i32;
        let there = self.see(who, &name, id);
        let new = self.random_row(id);
        let mut table = bed::table(&self.engine, &name)?;
        let session = &mut self.clients[who].session;
        let (done, row) = match (there, self.rng.below(8)) {
            (false, _) => (bed::insert(session, &mut table, &new), Some(new)),
            (true, 0) => {
                let done = bed::insert(session, &mut table, &new);
                assert!(done.is_err(), "row {id} of {name} is there twice");
                (done, None)
            }
            (true, 1 | 2) => (bed::change(session, &mut table, id, None), None),
            (true, _) => {
                let done = bed::change(session, &mut table, id, Some(&new));
                (done, Some(new))
            }
        };
        match done {
            Ok(()) => {
                let changes = &mut self.clients[who].changes;
                changes.insert((name, id), row.map(Arc::new));
                Ok(())
            }
            Err(error) if is_refusal(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// One statement of DDL.
    pub fn change_tables(&mut self) -> Result<()> {
        let names = self.table_names();
        let which = match names.len() {
            0..=2 => 0,
            3..=5 => self.rng.below(6),
            _ => 1 + self.rng.below(5),
        };
        // Names are used again, so that files meet those that have not gone yet.
        let new = format!("d/t{}", self.rng.below(8));
        let fresh = !names.contains(&new);
        let mut next = self.model.last().clone();
        if which == 0 {
            if !fresh {
                return Ok(());
            }
            let format = *self.rng.pick(&FORMATS);
            next.insert(new.clone(), Arc::default());
            let what = format!("create {new} {format:?}");
            return self.run_ddl(next, what, |work| {
                bed::create(&work.engine, &mut work.ddl, &new, format)
            });
        }
        let name = self.rng.pick(&names).clone();
        self.end_users_of(&name)?;
        let mut next = self.model.last().clone();
        match which {
            1 => {
                next.remove(&name);
                next.remove(&mark_of(&name));
                self.run_ddl(next, format!("drop {name}"), |work| {
                    work.engine.drop_table(&mut work.ddl, &name)
                })
            }
            2 => {
                next.insert(name.clone(), Arc::default());
                self.run_ddl(next, format!("truncate {name}"), |work| {
                    work.engine.truncate_table(&mut work.ddl, &name)
                })
            }
            3 if fresh => {
                let rows = next.remove(&name).expect("picked from it");
                next.insert(new.clone(), rows);
                if let Some(none) = next.remove(&mark_of(&name)) {
                    next.insert(mark_of(&new), none);
                }
                self.run_ddl(next, format!("rename {name} to {new}"), |work| {
                    work.engine.rename_table(&mut work.ddl, &name, &new)
                })
            }
            3 => Ok(()),
            _ => {
                let add = next.remove(&mark_of(&name)).is_none();
                if add {
                    next.insert(mark_of(&name), Arc::default());
                }
                let what = format!("index of {name}: {}", if add { "added" } else { "dropped" });
                self.run_ddl(next, what, |work| {
                    bed::add_or_drop(&work.engine, &mut work.ddl, &name, add)
                })
            }
        }
    }

    fn run_ddl(
        &mut self,
        next: Db,
        what: String,
        run: impl FnOnce(&mut Work) -> Result<()>,
    ) -> Result<()> {
        self.acknowledge(next, what, run).map(|_| ())
    }

    /// DDL waits for nobody here: transactions that changed the table end first.
    fn end_users_of(&mut self, name: &str) -> Result<()> {
        for who in 0..CLIENTS {
            let uses = |changes: &Changes| changes.keys().any(|(table, _)| table == name);
            let client = &self.clients[who];
            if uses(&client.changes) || client.at_savepoint.as_ref().is_some_and(uses) {
                match self.rng.one_in(2) {
                    true => self.commit(who)?,
                    false => self.roll_back(who)?,
                }
            }
        }
        Ok(())
    }

    /// A step failed, with `known` states before it, and the engine goes on: transactions of all
    /// clients end, and `settle` finds out whether the step counts.
    pub fn recover(
        &mut self,
        known: usize,
        settle: impl FnOnce(&mut Model, usize) -> std::result::Result<(), String>,
    ) -> std::result::Result<(), String> {
        for client in &mut self.clients {
            (client.open, client.at_savepoint) = (false, None);
            client.changes.clear();
            if let Err(error) = client.session.rollback() {
                self.given_up = Some(format!("rollback: {error}"));
                return Ok(());
            }
        }
        settle(&mut self.model, known)
    }

    /// All sessions end in good order: what is open is rolled back.
    pub fn end(mut self) -> Result<(Model, Vec<String>)> {
        for who in 0..CLIENTS {
            self.roll_back(who)?;
        }
        Ok((self.model, self.log))
    }

    /// The sessions end as after a crash: what is open stays undecided.
    pub fn abandon(self) -> (Model, Vec<String>) {
        (self.model, self.log)
    }
}

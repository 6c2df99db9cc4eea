//! What the hook for full text hears of rows, commits and rollbacks.

use super::testing::{Bed, Row, Session};
use super::*;
use crate::sync::{Arc, Mutex, Rank};
use crate::trx::{Isolation, TrxObserver};
use crate::words::{Error, TrxId, TrxNo, UndoNo};

#[derive(Debug)]
struct Ear(Mutex<Vec<String>>);

impl Ear {
    fn note(&self, text: String) {
        self.0.lock().push(text);
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl TrxObserver for Ear {
    fn committed(&self, trx: TrxId, _: TrxNo) {
        assert_ne!(trx, TrxId(0));
        self.note("committed".into());
    }

    fn undone(&self, _: TrxId, keep_below: UndoNo) {
        self.note(format!("undone from {}", keep_below.0));
    }
}

impl IndexObserver for Ear {
    fn inserted(&self, change: &Observed<'_>) {
        self.note(format!("{} inserted {}", change.undo_no.0, name_of(change)));
    }

    fn deleted(&self, change: &Observed<'_>) {
        self.note(format!("{} deleted {}", change.undo_no.0, name_of(change)));
    }
}

fn name_of(change: &Observed<'_>) -> String {
    let at = change.table.clustered().field_of_column(2).expect("v");
    let value = change.row.field(at).bytes().expect("not NULL");
    String::from_utf8_lossy(value).into_owned()
}

fn row(id: i32, name: &str) -> Row {
    Row {
        id,
        a: Some(1),
        v: Some(name.into()),
        b: None,
    }
}

fn listening(bed: &Bed) -> (Session<'_>, Arc<Ear>) {
    let ear = Arc::new(Ear(Mutex::new(Rank::Leaf, Vec::new())));
    let mut session = bed.session();
    session.observer = Some(ear.clone());
    session.begin(Isolation::RepeatableRead);
    (session, ear)
}

#[test]
fn an_observer_hears_of_every_row_and_of_the_commit() {
    let bed = Bed::with_full_text();
    let (mut session, ear) = listening(&bed);
    session.insert(&row(1, "one")).expect("inserted");
    session.update(1, &row(1, "uno")).expect("updated");
    session.update(1, &row(7, "seven")).expect("its key too");
    session.delete(7).expect("deleted");
    session.commit();
    let expected = [
        "0 inserted one",
        "1 deleted one",
        "1 inserted uno",
        "2 deleted uno",
        "3 inserted seven",
        "4 deleted seven",
        "committed",
    ];
    assert_eq!(ear.heard(), expected);
    session.begin(Isolation::RepeatableRead);
    session.observer = None;
    session.insert(&row(2, "two")).expect("inserted");
    session.commit();
    assert!(ear.heard().is_empty(), "it heard of another transaction");
}

#[test]
fn an_observer_hears_what_is_undone() {
    let bed = Bed::with_full_text();
    let (mut session, ear) = listening(&bed);
    session.insert(&row(1, "one")).expect("inserted");
    let twice = session.insert(&row(2, "one")).expect_err("v is unique");
    assert!(matches!(twice, Error::DuplicateKey { .. }), "{twice}");
    session.rollback();
    let expected = ["0 inserted one", "undone from 1", "undone from 0"];
    let mut heard = ear.heard();
    heard.dedup();
    assert_eq!(heard, expected);
}

#[test]
fn tables_without_full_text_tell_nothing() {
    let bed = Bed::new(64, true);
    let (mut session, ear) = listening(&bed);
    session.insert(&row(1, "one")).expect("inserted");
    session.commit();
    assert!(ear.heard().is_empty());
}

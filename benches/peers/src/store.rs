//! Figures of one part of the benchmark, kept as lines of text below target/bench.
//!
//! `fact NAME<tab>TEXT` says what was run and on what; `figure ENGINE CELL VALUE OTHERS COST` is
//! one measurement; `failed ENGINE<tab>TEXT` an engine that did not get through.

use crate::engine::Result;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[derive(Default)]
pub struct Part {
    pub facts: BTreeMap<String, String>,
    pub figures: Vec<Figure>,
    pub failed: BTreeMap<String, String>,
}

pub struct Figure {
    pub engine: String,
    pub cell: String,
    pub value: f64,
    /// Processors that other processes kept busy meanwhile.
    pub others: f64,
    /// Microseconds of processor time per operation; 0 where it was not looked at.
    pub cost: f64,
}

/// The middle of several figures, with the smallest and the largest.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        Some(Spread {
            median: match values.len() % 2 {
                0 => (values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0,
                _ => *values.get(middle)?,
            },
            min: *values.first()?,
            max: *values.last()?,
        })
    }
}

impl Part {
    pub fn fact(&mut self, name: &str, text: impl ToString) {
        let text = text.to_string().replace(['\n', '\t'], " ");
        self.facts.insert(name.to_owned(), text);
    }

    pub fn add(&mut self, engine: &str, cell: &str, value: f64) {
        self.add_measured(engine, cell, [value, 0.0, 0.0]);
    }

    /// Value, others, cost.
    pub fn add_measured(&mut self, engine: &str, cell: &str, [value, others, cost]: [f64; 3]) {
        self.figures.push(Figure {
            engine: engine.to_owned(),
            cell: cell.to_owned(),
            value,
            others,
            cost,
        });
    }

    pub fn fail(&mut self, engine: &str, why: impl ToString) {
        let why = why.to_string().replace(['\n', '\t'], " ");
        self.failed.insert(engine.to_owned(), why);
    }

    pub fn spread(&self, engine: &str, cell: &str) -> Option<Spread> {
        let of_cell = |one: &&Figure| one.engine == engine && one.cell == cell;
        Spread::of(self.figures.iter().filter(of_cell).map(|one| one.value))
    }

    pub fn cost(&self, engine: &str, cell: &str) -> Option<f64> {
        let of_cell = |one: &&Figure| one.engine == engine && one.cell == cell && one.cost > 0.0;
        Spread::of(self.figures.iter().filter(of_cell).map(|one| one.cost)).map(|s| s.median)
    }

    pub fn median(&self, engine: &str, cell: &str) -> Option<f64> {
        self.spread(engine, cell).map(|spread| spread.median)
    }

    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = String::new();
        for (name, fact) in &self.facts {
            writeln!(text, "fact {name}\t{fact}")?;
        }
        for one in &self.figures {
            let Figure { engine, cell, .. } = one;
            writeln!(
                text,
                "figure {engine} {cell} {} {} {}",
                one.value, one.others, one.cost
            )?;
        }
        for (engine, why) in &self.failed {
            writeln!(text, "failed {engine}\t{why}")?;
        }
        Ok(fs::write(path, text)?)
    }

    /// None if the part was never run.
    pub fn load(path: &Path) -> Option<Part> {
        let mut part = Part::default();
        for line in fs::read_to_string(path).ok()?.lines() {
            let (kind, rest) = line.split_once(' ')?;
            if kind == "figure" {
                let words: Vec<&str> = rest.split(' ').collect();
                let [engine, cell, ref numbers @ ..] = words[..] else {
                    return None;
                };
                let numbers: Option<Vec<f64>> = numbers.iter().map(|n| n.parse().ok()).collect();
                part.add_measured(engine, cell, numbers?.try_into().ok()?);
                continue;
            }
            let (name, text) = rest.split_once('\t')?;
            match kind {
                "fact" => part.fact(name, text),
                _ => part.fail(name, text),
            }
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).expect("there are figures");
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 4.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn a_part_is_read_as_it_was_saved() {
        let path = std::env::temp_dir().join(format!("xtradb-peers-{}", std::process::id()));
        let mut part = Part::default();
        part.fact("rows", 1000);
        part.add_measured("lmdb", "get", [1.25e6, 0.1, 0.8]);
        part.fail("redb", "no\nroom");
        part.save(&path).expect("it is written");
        let read = Part::load(&path).expect("it is there");
        let _ = std::fs::remove_file(&path);
        assert_eq!(read.median("lmdb", "get"), Some(1.25e6));
        assert_eq!(read.cost("lmdb", "get"), Some(0.8));
        assert_eq!(read.facts["rows"], "1000");
        assert_eq!(read.failed["redb"], "no room");
    }
}

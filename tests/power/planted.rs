//! Each planted bug is caught by some test. Those that a unit test catches are in src/os/planted.rs.

use crate::support::planted::each_is_caught;
use xtradb::os::planted::{BUGS, Program, VARIABLE};

/// A bug's run is short: nearly every state shows it.
const SETTINGS: [(&str, &str); 2] = [
    ("XTRADB_POWER_STEPS", "120"),
    ("XTRADB_POWER_STATES", "200"),
];

#[test]
fn every_planted_bug_makes_its_test_fail() {
    let of_power = BUGS.iter().filter(|bug| bug.program == Program::Power);
    let bugs: Vec<_> = of_power.map(|bug| (bug.name, bug.caught_by)).collect();
    each_is_caught(&bugs, VARIABLE, &SETTINGS);
}

#[test]
fn the_list_of_planted_bugs_is_in_the_documents() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/testing.md");
    let text = std::fs::read_to_string(path).expect("docs/testing.md");
    for bug in BUGS {
        let rows = text.lines().filter(|line| line.starts_with('|'));
        let row = rows
            .into_iter()
            .find(|row| row.contains(&format!("`{}`", bug.name)));
        let row = row.unwrap_or_else(|| panic!("{} is not in docs/testing.md", bug.name));
        assert!(
            row.contains(bug.caught_by),
            "{row}: it is caught by {}",
            bug.caught_by
        );
    }
}

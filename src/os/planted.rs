//! Bugs that a test plants by name, to show that another test finds them (docs/testing.md).
//!
//! A process has at most one, which the environment names when it starts. Builds without debug
//! assertions have none, and `planted` is nothing there.

use crate::sync::Once;

/// Names the bug of this process.
pub const VARIABLE: &str = "XTRADB_PLANTED_BUG";

/// Which test program holds a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// The unit tests: `cargo test --lib`.
    Lib,
    /// Power cuts: `cargo test --manifest-path tests/power/Cargo.toml`.
    Power,
}

/// A bug that can be planted.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// What `planted` asks for.
    pub name: &'static str,
    /// Where the test is that fails with it.
    pub program: Program,
    /// Its full name.
    pub caught_by: &'static str,
}

const fn lib(name: &'static str, caught_by: &'static str) -> Bug {
    Bug {
        name,
        program: Program::Lib,
        caught_by,
    }
}

const fn power(name: &'static str, caught_by: &'static str) -> Bug {
    Bug {
        name,
        program: Program::Power,
        caught_by,
    }
}

const CUT: &str = "mtr::crash_tests::nothing_acknowledged_is_lost_whenever_the_power_goes";
const CUTS: &str = "power::acknowledged_transactions_survive_power_cuts_at_every_write_and_sync";

/// Every bug, with the test that finds it.
pub const BUGS: [Bug; 27] = [
    lib(
        "log.sync_skipped",
        "redo::tests::whatever_was_acknowledged_is_found_after_a_power_cut",
    ),
    lib("log.write_skipped", CUT),
    lib("page.before_log", CUT),
    lib("page.sync_skipped", CUT),
    lib("page.lsn_not_stamped", CUT),
    lib("page.not_listed", CUT),
    lib(
        "page.redirtied_forgotten",
        "mtr::crash_tests::a_page_changed_while_in_flight_is_written_again",
    ),
    lib("doublewrite.skipped", CUT),
    lib("doublewrite.sync_skipped", CUT),
    lib(
        "doublewrite.no_repair",
        "mtr::pool_tests::the_hook_rebuilds_repairs_and_hears_of_new_and_freed_pages",
    ),
    lib("checkpoint.oldest_ignored", CUT),
    lib(
        "checkpoint.names_skipped",
        "redo::failure_tests::a_tablespace_is_named_before_its_first_change_and_at_each_checkpoint_until_it_rests",
    ),
    lib(
        "page.checksum_not_verified",
        "mtr::tests::a_damaged_page_is_an_error_that_names_file_and_page",
    ),
    lib(
        "lock.not_taken",
        "row::tests::a_locking_read_keeps_the_gap_closed_and_a_record_lock_does_not",
    ),
    lib(
        "lock.implicit_forgotten",
        "row::tests::rows_written_by_a_running_transaction_are_locked_implicitly",
    ),
    lib(
        "lock.not_moved",
        "tree::tests::a_lock_stays_on_its_row_through_splits_and_merges",
    ),
    lib(
        "lock.gap_not_inherited",
        "lock::tests::a_removed_record_leaves_its_gap_locked_and_wakes_its_waiters",
    ),
    lib(
        "view.sees_undecided",
        "trx::tests::a_view_never_passes_a_number_that_is_not_published",
    ),
    lib(
        "purge.view_ignored",
        "purge::tests::what_a_view_may_need_is_kept_until_it_closes",
    ),
    lib(
        "rollback.record_skipped",
        "row::tests::a_dynamic_table_holds_what_the_model_holds",
    ),
    lib(
        "secondary.mark_skipped",
        "row::tests::a_dynamic_table_holds_what_the_model_holds",
    ),
    lib(
        "tree.link_forgotten",
        "tree::tests::a_compact_tree_holds_what_the_model_holds",
    ),
    lib(
        "blob.page_not_freed",
        "tree::tests::a_blob_chain_comes_back_and_goes",
    ),
    lib(
        "recovery.record_dropped",
        "recovery::tests::a_stock_log_read_from_any_of_its_checkpoints_yields_the_records_by_page",
    ),
    power("recovery.page_lsn_ignored", CUTS),
    power("log.file_not_named", CUTS),
    power("directory.sync_skipped", CUTS),
];

/// True if this process has the bug `name`.
#[inline(always)]
pub fn planted(name: &str) -> bool {
    cfg!(debug_assertions) && is_planted(name)
}

fn is_planted(name: &str) -> bool {
    static PLANTED: Once<Option<String>> = Once::new();
    let read = || {
        let bug = std::env::var(VARIABLE).ok()?;
        let known = BUGS.iter().any(|known| known.name == bug);
        assert!(known, "{VARIABLE}={bug}: there is no such bug");
        Some(bug)
    };
    PLANTED.get_or_init(read).as_deref() == Some(name)
}

#[cfg(test)]
#[path = "../../tests/support/planted.rs"]
mod catchers;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_planted_bug_makes_its_test_fail() {
        let of_lib = BUGS.iter().filter(|bug| bug.program == Program::Lib);
        let bugs: Vec<_> = of_lib.map(|bug| (bug.name, bug.caught_by)).collect();
        catchers::each_is_caught(&bugs, VARIABLE, &[]);
    }
}

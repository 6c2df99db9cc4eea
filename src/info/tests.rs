use super::*;

#[test]
fn tables_are_found_in_any_case() {
    assert_eq!(
        find("innodb_trx").map(|table| table.name),
        Some("INNODB_TRX")
    );
    assert_eq!(find("INNODB_NO_SUCH"), None);
}

#[test]
fn the_live_tables_have_the_columns_of_a_10_11_server_and_ours_follow() {
    let counts: Vec<usize> = TABLES.iter().map(|table| table.columns.len()).collect();
    assert_eq!(counts[..7], [22, 10, 4, 6, 6, 6, 6]);
}

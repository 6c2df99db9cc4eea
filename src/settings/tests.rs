use super::*;

#[test]
fn the_table_is_sorted_and_its_defaults_are_valid() {
    for pair in SETTINGS.windows(2) {
        assert!(
            pair[0].name < pair[1].name,
            "{} before {}",
            pair[0].name,
            pair[1].name
        );
    }
    for setting in &SETTINGS {
        let text = setting.format(&setting.default_value());
        assert_eq!(
            setting.parse(&text),
            Ok(setting.default_value()),
            "{}",
            setting.name
        );
        assert!(setting.doc.ends_with('.'), "{}", setting.name);
    }
}

#[test]
fn sizes_take_suffixes_and_are_refused_outside_their_range() {
    let settings = Settings::default();
    settings
        .apply_option("innodb-buffer-pool-size=64M")
        .expect("a size");
    assert_eq!(settings.uint(ids::BUFFER_POOL_SIZE), 64 << 20);
    settings
        .apply_option("buffer_pool_size = 100000000")
        .expect("a size");
    assert_eq!(
        settings.uint(ids::BUFFER_POOL_SIZE),
        95 << 20,
        "rounded down to its block"
    );
    for bad in ["1K", "-1", "1.5M", "", "12Q", "99999999999999999999", "20E"] {
        let option = format!("innodb_buffer_pool_size={bad}");
        assert!(
            matches!(settings.apply_option(&option), Err(SettingError::Range(_))),
            "{bad}"
        );
    }
    assert_eq!(
        settings.uint(ids::BUFFER_POOL_SIZE),
        95 << 20,
        "a bad value changes nothing"
    );
    assert!(settings.apply_option("innodb_page_size=12288").is_err());
}

#[test]
fn options_are_written_as_a_server_writes_them() {
    let settings = Settings::default();
    settings
        .apply_option("skip-innodb-doublewrite")
        .expect("skip");
    assert!(!settings.is_on(ids::DOUBLEWRITE));
    settings
        .apply_option("innodb_doublewrite")
        .expect("no value");
    assert!(settings.is_on(ids::DOUBLEWRITE));
    settings
        .apply_option("innodb_flush_method=fsync")
        .expect("a name");
    assert_eq!(settings.choice(ids::FLUSH_METHOD), "fsync");
    settings
        .apply_option("innodb_encrypt_tables=1")
        .expect("a number");
    settings
        .apply_option("innodb_max_dirty_pages_pct=33.5")
        .expect("a fraction");
    assert_eq!(settings.get_text(ids::MAX_DIRTY_PAGES_PCT), "33.500000");
    let unknown = settings.apply_option("innodb_no_such=1");
    assert_eq!(unknown, Err(SettingError::Unknown("innodb_no_such".into())));
    assert!(settings.apply_option("innodb_log_file_size").is_err());
}

#[test]
fn only_dynamic_settings_change_while_running() {
    let settings = Settings::default();
    assert_eq!(settings.set(ids::IO_CAPACITY, "500"), Ok(()));
    let fixed = settings.set(ids::PAGE_SIZE, "4096");
    assert_eq!(fixed, Err(SettingError::ReadOnly("innodb_page_size")));
}

#[test]
fn a_session_starts_from_the_global_values_and_keeps_its_own() {
    let settings = Settings::default();
    settings.set(ids::LOCK_WAIT_TIMEOUT, "7").expect("dynamic");
    let mut session = settings.for_session();
    settings.set(ids::LOCK_WAIT_TIMEOUT, "9").expect("dynamic");
    assert_eq!(session.uint(ids::LOCK_WAIT_TIMEOUT), 7);
    session
        .set(ids::LOCK_WAIT_TIMEOUT, "1")
        .expect("a session value");
    assert_eq!(session.get_text(ids::LOCK_WAIT_TIMEOUT, &settings), "1");
    assert_eq!(session.get_text(ids::IO_CAPACITY, &settings), "200");
    assert!(session.set(ids::IO_CAPACITY, "300").is_err());
}

#[test]
fn counters_add_up_over_threads() {
    let counters = Counters::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    counters.add(Counter::BufferPoolReadRequests, 1);
                }
            });
        }
    });
    assert_eq!(counters.get(Counter::BufferPoolReadRequests), 4000);
    counters.set(Counter::PageSize, 16384);
    assert_eq!(counters.get(Counter::PageSize), 16384);
    let names: Vec<_> = Counter::ALL.iter().map(|counter| counter.name()).collect();
    assert!(names.is_sorted(), "{names:?}");
}

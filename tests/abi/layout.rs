//! Sizes and offsets: what `cc` makes of the headers against what the library was built with.

use crate::support::run_ok;
use crate::support::scratch::Scratch;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;
use xtradb::abi::c;

/// "xt_host" -> its size, "xt_host.ctx" -> its offset.
type Layout = BTreeMap<String, usize>;

macro_rules! layout {
    ($($name:ident { $($member:ident),* $(,)? })*) => {
        fn layout_in_rust() -> Layout {
            let mut layout = Layout::new();
            $(
                layout.insert(stringify!($name).into(), size_of::<c::$name>());
                $(
                    // `type` is a word of Rust: bindgen calls the member `type_`.
                    let member = stringify!($member).trim_end_matches('_');
                    let name = format!("{}.{member}", stringify!($name));
                    layout.insert(name, offset_of!(c::$name, $member));
                )*
            )*
            layout
        }
    };
}

layout! {
    xt_api {
        struct_size, abi_version, plugins, engine_create, engine_init, engine_recovery_done,
        engine_pre_shutdown, engine_deinit, engine_destroy, engine_state, engine_error,
        engine_limits, engine_flush_log, settings, setting_get, setting_set, setting_check,
        session_open, session_close, session_error, session_error_key, session_interrupt,
        session_set_isolation, session_state, statement_begin, statement_end, statement_rollback,
        trx_begin, trx_commit, trx_commit_ordered, trx_rollback, savepoint_set, savepoint_rollback,
        savepoint_release, trx_prepare, prepared_commit, prepared_rollback, prepared_list,
        table_open, table_close, table_info, table_use, table_release, table_columns, table_extra,
        scan_begin, scan_next, scan_end, table_position, read_position, compare_positions, read_n,
        unlock_row, was_semi_consistent, insert_row, update_row, delete_row, bulk_begin, bulk_end,
        autoinc_reserve, autoinc_set, table_stats, table_rec_per_key, index_begin, index_end,
        index_read, index_next, index_prev, index_first, index_last, index_next_same,
        records_in_range, table_create, table_drop, table_rename, table_truncate, database_drop,
        table_find, tables_list, table_describe, description_free, table_check, table_analyze,
        table_optimize, info_fill, status_read, monitor_text, bulk_refused, index_add, index_drop,
    }
    xt_create_options {
        struct_size, flags, row_format, key_block_size, auto_increment, data_directory,
        stats_persistent, stats_auto_recalc, stats_sample_pages, page_compressed,
        page_compression_level, encrypted, encryption_key_id, reserved,
    }
    xt_description { struct_size, row_format, def, table_id }
    xt_plugin {
        struct_size, kind, name, description, author, version, version_number, maturity, licence,
        interface_version, reserved, info_table,
    }
    xt_engine_config { struct_size, flags, datadir, settings, settings_count, reserved }
    xt_limits {
        struct_size, page_size, columns_max, keys_max, key_parts_max, key_length_max,
        key_part_length_max, reserved,
    }
    xt_setting {
        struct_size, type_, name, doc, default_value, flags, values_count, values, min, max, block,
        min_double, max_double,
    }
    xt_collation {
        struct_size, id, name, data, mbminlen, mbmaxlen, flags, pad_char, compare, sort_key, prefix,
    }
    xt_host {
        struct_size, abi_version, ctx, log, collation, kill_check, warning, query_text, wait_report,
        clock, thread_attach, thread_detach,
    }
    xt_bound { key, length, find }
    xt_value { kind, is_null, v, length, reserved }
    xt_info_column { name, kind, length, flags, values_count, values }
    xt_info_table { struct_size, flags, name, columns, columns_count, reserved }
    xt_session_config { struct_size, isolation, connection_id, session_ctx }
    xt_session_info { struct_size, flags, trx_id }
    xt_xid { format_id, gtrid_length, bqual_length, data }
    xt_column {
        name, offset, length, octets, collation, flags, null_offset, null_mask, type_, length_bytes,
        decimals, precision,
    }
    xt_key_part { column, length, flags }
    xt_key { name, parts, parts_count, flags }
    xt_table_def {
        struct_size, reserved, columns, keys, columns_count, keys_count, row_length, null_bytes,
    }
    xt_table_info {
        struct_size, row_format, table_id, space_id, ref_length, clustered_key, flags, version,
    }
    xt_table_use { struct_size, lock, wait, wait_seconds, flags, reserved }
    xt_batch { struct_size, direction, rows, refs, row_stride, ref_stride, capacity, count }
    xt_table_stats {
        struct_size, reserved, rows, data_length, index_length, free_length, auto_increment,
        update_time, clustered_pages, rows_max,
    }
}

/// Every struct of the headers with its members, as the text has them.
fn structs(text: &str) -> Vec<(String, Vec<String>)> {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*") {
        code.push_str(&rest[..at]);
        let end = rest[at..].find("*/").expect("a comment ends") + at + 2;
        rest = &rest[end..];
    }
    code.push_str(rest);
    let mut found = Vec::new();
    for piece in code.split("struct xt_").skip(1) {
        let Some((name, body)) = piece.split_once(" {") else {
            continue;
        };
        if name.contains(|c: char| !c.is_alphanumeric() && c != '_') {
            continue;
        }
        found.push((format!("xt_{name}"), members(body)));
    }
    found
}

/// Names of the members up to the struct's closing brace.
fn members(body: &str) -> Vec<String> {
    let mut depth = 0;
    let mut declaration = String::new();
    let mut names = Vec::new();
    for character in body.chars() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                let declared = declaration.split('[').next().unwrap_or_default();
                let is_part = |c: char| c.is_alphanumeric() || c == '_';
                let name = declared
                    .rsplit(|c: char| !is_part(c))
                    .next()
                    .unwrap_or_default();
                names.push(name.to_string());
                declaration.clear();
                continue;
            }
            _ => {}
        }
        declaration.push(character);
    }
    names
}

/// A C program that prints the layout of every struct of the headers.
fn layout_program(headers: &str) -> String {
    let mut program = String::from("#include <stdio.h>\n#include <xtradb.h>\nint main(void) {\n");
    for (name, members) in structs(headers) {
        let _ = writeln!(program, "printf(\"{name} %zu\\n\", sizeof({name}));");
        for member in members {
            let _ = writeln!(
                program,
                "printf(\"{name}.{member} %zu\\n\", offsetof({name}, {member}));"
            );
        }
    }
    program.push_str("return 0;\n}\n");
    program
}

fn layout_in_c(compiler: &str, language: &[&str]) -> Layout {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut headers = String::new();
    for entry in std::fs::read_dir(root.join("include/xtradb")).expect("the headers are there") {
        let path = entry.expect("the folder can be read").path();
        headers += &std::fs::read_to_string(path).expect("a header can be read");
    }
    let scratch = Scratch::new("layout");
    let source = scratch.path().join("layout.c");
    let program = scratch.path().join("layout");
    std::fs::write(&source, layout_program(&headers)).expect("the program can be written");
    run_ok(
        Command::new(compiler)
            .args(language)
            .arg("-I")
            .arg(root.join("include"))
            .arg(&source)
            .arg("-o")
            .arg(&program),
    );
    String::from_utf8_lossy(&run_ok(&mut Command::new(&program)))
        .lines()
        .map(|line| {
            let (name, number) = line.split_once(' ').expect("name and number");
            (name.to_string(), number.parse().expect("a number"))
        })
        .collect()
}

#[test]
fn the_c_compiler_lays_the_structs_out_as_rust_does() {
    let rust = layout_in_rust();
    assert!(rust.len() > 200, "{} entries", rust.len());
    assert_eq!(layout_in_c("cc", &["-std=c99"]), rust);
    assert_eq!(layout_in_c("c++", &["-x", "c++", "-std=c++11"]), rust);
}

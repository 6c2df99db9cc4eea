use std::ffi::CString;
use std::ptr;

use super::arguments::{copy_text, read_struct, table_name, write_struct};
use super::c;
use super::edge::{Fault, edge};
use super::handle::{self, Handled};
use super::index::check_key;
use super::template::{self, Described};
use crate::engine::{Find, RowFormat, TableDescription};
use crate::sync::Arc;
use crate::words::{Error, TableId};

const OK: c::xt_status = c::XT_OK as c::xt_status;

struct Thing(u32);

impl Handled for Thing {
    type Opaque = u8;
    const KIND: u64 = 14;
    const NAME: &'static str = "thing";
}

struct Other;

impl Handled for Other {
    type Opaque = u8;
    const KIND: u64 = 15;
    const NAME: &'static str = "other";
}

fn code<T>(result: Result<T, Fault>) -> c::xt_status {
    result.err().map_or(OK, |fault| fault.code())
}

#[test]
fn a_closed_or_foreign_handle_is_an_error_and_nothing_else() {
    let thing = handle::publish(Arc::new(Thing(7))).expect("there is room");
    assert_eq!(handle::look_up::<Thing>(thing).expect("it is open").0, 7);
    let bad = c::XT_BAD_HANDLE as c::xt_status;
    assert_eq!(code(handle::look_up::<Other>(thing)), bad, "another kind");
    let shared = handle::close::<Thing>(thing).expect("it was open");
    assert_eq!(
        Arc::strong_count(&shared),
        1,
        "the cell gave its share back"
    );
    assert_eq!(code(handle::look_up::<Thing>(thing)), bad, "closed");
    assert_eq!(code(handle::close::<Thing>(thing)), bad, "closed twice");
    // The cell is used again, the handle is not.
    let next = handle::publish(Arc::new(Thing(8))).expect("there is room");
    assert_ne!(thing, next);
    assert_eq!(code(handle::look_up::<Thing>(thing)), bad);
    handle::close::<Thing>(next).expect("it was open");
    for garbage in [1usize, 0xFFFF, usize::MAX, 0xE000_0000_0000_0000] {
        let garbage = ptr::without_provenance(garbage);
        assert_eq!(code(handle::look_up::<Thing>(garbage)), bad);
    }
    let null = handle::look_up::<Thing>(ptr::null());
    assert_eq!(code(null), c::XT_NULL_ARGUMENT as c::xt_status);
}

#[test]
fn handles_are_made_and_closed_by_many_threads() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for round in 0..500 {
                    let number = thread * 1000 + round;
                    let thing = handle::publish(Arc::new(Thing(number))).expect("room");
                    assert_eq!(handle::look_up::<Thing>(thing).expect("open").0, number);
                    assert_eq!(handle::close::<Thing>(thing).expect("open").0, number);
                }
            });
        }
    });
}

#[test]
fn a_panic_inside_a_call_is_a_code() {
    assert_eq!(
        edge(|| panic!("planted by a test")),
        c::XT_INTERNAL as c::xt_status
    );
    assert_eq!(
        edge(|| Err(Error::Deadlock.into())),
        c::XT_DEADLOCK as c::xt_status
    );
    assert_eq!(edge(|| Ok(())), OK);
}

#[test]
fn a_short_struct_is_refused_and_an_older_one_is_filled_as_far_as_it_goes() {
    let mut limits = c::xt_limits {
        struct_size: 31,
        page_size: 1,
        columns_max: 2,
        keys_max: 3,
        key_parts_max: 4,
        key_length_max: 5,
        key_part_length_max: 6,
        reserved: 7,
    };
    let short = c::XT_SHORT_STRUCT as c::xt_status;
    // SAFETY: a valid struct whose size is at least what it says.
    unsafe {
        assert_eq!(code(read_struct(&limits)), short);
        let other = c::xt_limits {
            page_size: 9,
            ..limits
        };
        assert_eq!(code(write_struct(&mut limits, &other)), short);
        assert_eq!(limits.page_size, 1);
        limits.struct_size = 32;
        assert_eq!(code(write_struct(&mut limits, &other)), OK);
        assert_eq!((limits.struct_size, limits.page_size), (32, 9));
        // A host of a later version has a longer struct: the rest is left out.
        limits.struct_size = 4096;
        assert_eq!(code(read_struct(&limits)), OK);
        let null = c::XT_NULL_ARGUMENT as c::xt_status;
        assert_eq!(code(read_struct::<c::xt_limits>(ptr::null())), null);
    }
}

#[test]
fn text_is_cut_between_characters() {
    let mut buffer = [7i8; 8];
    // SAFETY: the buffer has the size that is told.
    let length = unsafe { copy_text("abcdé", buffer.as_mut_ptr().cast(), 6) };
    assert_eq!(length, 6);
    assert_eq!(buffer, [97, 98, 99, 100, 0, 7, 7, 7]);
    // SAFETY: NULL is allowed.
    assert_eq!(unsafe { copy_text("abc", ptr::null_mut(), 0) }, 3);
}

#[test]
fn a_table_name_is_the_last_two_components() {
    for (given, name) in [
        ("shop/orders", "shop/orders"),
        ("./shop/orders", "shop/orders"),
        ("/data/mysql/shop/#sql-1", "shop/#sql-1"),
    ] {
        assert_eq!(table_name(given).ok(), Some(name));
    }
    for bad in ["orders", "/orders", "./orders", "shop/", "", "../orders"] {
        assert!(table_name(bad).is_err(), "{bad}");
    }
}

/// Two columns – `id` BIGINT, `name` VARCHAR(10) NULL – with the keys PRIMARY(id) and name(name(4)).
fn sample() -> (Vec<CString>, Vec<c::xt_column>, Vec<[c::xt_key_part; 1]>) {
    let names = ["id", "name", "PRIMARY"].map(|name| CString::new(name).expect("no NUL"));
    let column = c::xt_column {
        name: names[0].as_ptr(),
        offset: 1,
        length: 8,
        octets: 8,
        collation: 63,
        flags: c::XT_COLUMN_NOT_NULL | c::XT_COLUMN_AUTO_INCREMENT,
        null_offset: 0,
        null_mask: 0,
        type_: c::XT_TYPE_LONGLONG as u8,
        length_bytes: 0,
        decimals: 0,
        precision: 0,
    };
    let name = c::xt_column {
        name: names[1].as_ptr(),
        offset: 9,
        length: 11,
        octets: 10,
        collation: 8,
        flags: 0,
        null_mask: 2,
        type_: c::XT_TYPE_VARCHAR as u8,
        length_bytes: 1,
        ..column
    };
    let part = |column, length| {
        [c::xt_key_part {
            column,
            length,
            flags: 0,
        }]
    };
    (
        names.into(),
        vec![column, name],
        vec![part(0, 8), part(1, 4)],
    )
}

fn keys(names: &[CString], parts: &[[c::xt_key_part; 1]]) -> [c::xt_key; 2] {
    let key = |name: &CString, parts: &[c::xt_key_part; 1], flags| c::xt_key {
        name: name.as_ptr(),
        parts: parts.as_ptr(),
        parts_count: 1,
        flags,
    };
    [
        key(&names[2], &parts[0], c::XT_KEY_PRIMARY),
        key(&names[1], &parts[1], 0),
    ]
}

fn def(columns: &[c::xt_column], keys: &[c::xt_key]) -> c::xt_table_def {
    c::xt_table_def {
        struct_size: size_of::<c::xt_table_def>() as u32,
        reserved: 0,
        columns: columns.as_ptr(),
        keys: keys.as_ptr(),
        columns_count: columns.len() as u32,
        keys_count: keys.len() as u32,
        row_length: 20,
        null_bytes: 1,
    }
}

#[test]
fn a_template_goes_in_and_comes_out_the_same() {
    let (names, columns, parts) = sample();
    let keys = keys(&names, &parts);
    // SAFETY: everything that the definition points to is alive.
    let image = unsafe { template::read(&def(&columns, &keys)) }.expect("a sound template");
    let table = TableDescription {
        image: image.clone(),
        row_format: RowFormat::Dynamic,
        table_id: TableId(42),
    };
    let described = Described::new(&table);
    let public = (&raw const *described).cast::<c::xt_description>();
    // SAFETY: `Described` begins with the public part and is alive.
    let again = unsafe { template::read(&raw const (*public).def) }.expect("sound too");
    assert_eq!(again, image);
}

#[test]
fn a_bad_template_is_refused_with_the_columns_name() {
    let (names, mut columns, parts) = sample();
    let good_keys = keys(&names, &parts);
    columns[1].type_ = 99;
    // SAFETY: everything that the definition points to is alive.
    let fault = unsafe { template::read(&def(&columns, &good_keys)) }.expect_err("no such type");
    assert!(fault.text().contains("column name"), "{}", fault.text());
    let mut no_columns = def(&columns, &good_keys);
    no_columns.columns = ptr::null();
    // SAFETY: the same.
    let fault = unsafe { template::read(&no_columns) }.expect_err("NULL");
    assert_eq!(fault.code(), c::XT_NULL_ARGUMENT as c::xt_status);
    no_columns.columns_count = u32::MAX;
    // SAFETY: the same.
    let fault = unsafe { template::read(&no_columns) }.expect_err("too many");
    assert_eq!(fault.code(), c::XT_INVALID as c::xt_status);
}

#[test]
fn a_key_image_ends_after_a_part_or_inside_a_string_that_is_a_prefix() {
    let (names, columns, parts) = sample();
    let keys = keys(&names, &parts);
    // SAFETY: everything that the definition points to is alive.
    let image = unsafe { template::read(&def(&columns, &keys)) }.expect("a sound template");
    let check = |key_no, key: &[u8], find| code(check_key(&image, key_no, key, find));
    let invalid = c::XT_INVALID as c::xt_status;
    assert_eq!(check(0, &[0; 8], Find::Exact), OK);
    assert_eq!(check(0, &[], Find::KeyOrNext), OK);
    assert_eq!(
        check(0, &[0; 7], Find::Prefix),
        invalid,
        "a number is not cut"
    );
    assert_eq!(check(0, &[0; 9], Find::Exact), invalid);
    let name = [0, 4, 0, b'a', b'b', b'c', b'd'];
    assert_eq!(check(1, &name, Find::Exact), OK);
    assert_eq!(check(1, &name[..5], Find::Prefix), OK);
    assert_eq!(check(1, &name[..5], Find::Exact), invalid);
    assert_eq!(
        check(1, &name[..3], Find::Prefix),
        invalid,
        "nothing of the string is there"
    );
    assert_eq!(
        check(1, &[0, 5, 0, 1, 2, 3, 4], Find::Exact),
        invalid,
        "longer than its part"
    );
}

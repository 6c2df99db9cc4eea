//! What the library tells about itself without an engine: plugins, settings, table columns, as C
//! structs. Built once, at the first question; freed when the library is unloaded.

use std::ffi::{CString, c_char};
use std::ptr;

use super::arguments::out;
use super::c;
use super::edge::edge;
use crate::info::{ColumnType, TABLES, Table};
use crate::settings::{Kind, SETTINGS};
use crate::sync::Once;
use crate::sync::atomic::{AtomicPtr, Ordering};

const AUTHOR: &str = "The xtradb developers";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The views with everything that they point to.
struct Catalog {
    plugins: Box<[c::xt_plugin]>,
    settings: Box<[c::xt_setting]>,
    // What the structs above point to; nothing moves once it is in its box.
    _tables: Box<[c::xt_info_table]>,
    _columns: Vec<Box<[c::xt_info_column]>>,
    _memory: Memory,
}

/// Strings and lists of strings whose addresses are handed out.
#[derive(Default)]
struct Memory {
    texts: Vec<CString>,
    lists: Vec<Box<[*const c_char]>>,
}

impl Memory {
    fn text(&mut self, text: &str) -> *const c_char {
        let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
        let address = text.as_ptr();
        self.texts.push(text);
        address
    }

    fn list(&mut self, texts: &[&str]) -> *const *const c_char {
        let list: Box<[*const c_char]> = texts.iter().map(|text| self.text(text)).collect();
        let address = if list.is_empty() {
            ptr::null()
        } else {
            list.as_ptr()
        };
        self.lists.push(list);
        address
    }
}

// SAFETY: the catalog is never changed once it is built; its pointers lead into itself.
unsafe impl Send for Catalog {}
// SAFETY: the same.
unsafe impl Sync for Catalog {}

/// `Box::into_raw` of the catalog, or NULL.
static CATALOG: AtomicPtr<Catalog> = AtomicPtr::new(ptr::null_mut());
static BUILT: Once<()> = Once::new();

fn catalog() -> &'static Catalog {
    BUILT.get_or_init(|| {
        CATALOG.store(Box::into_raw(Box::new(Catalog::build())), Ordering::Release);
    });
    // SAFETY: `get_or_init` stored a pointer from `Box::into_raw`; it is freed only by `unload`, after
    // which no code of the library runs.
    unsafe { &*CATALOG.load(Ordering::Acquire) }
}

/// Frees what the library's statics own when it is unloaded, so that a host that swaps it again and
/// again does not grow.
extern "C" fn unload() {
    super::handle::free_memory();
    super::host::free_memory();
    super::ddl::free_memory();
    super::engine::free_memory();
    let catalog = CATALOG.swap(ptr::null_mut(), Ordering::AcqRel);
    if !catalog.is_null() {
        // SAFETY: the pointer came from `Box::into_raw` and is taken out here, once.
        drop(unsafe { Box::from_raw(catalog) });
    }
}

// SAFETY: the section holds pointers to functions without arguments, which the loader calls at unload.
#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;

impl Catalog {
    fn build() -> Catalog {
        let mut memory = Memory::default();
        let settings = SETTINGS
            .iter()
            .map(|setting| setting_view(setting, &mut memory))
            .collect();
        let columns: Vec<Box<[c::xt_info_column]>> = TABLES
            .iter()
            .map(|table| column_views(table, &mut memory))
            .collect();
        let tables: Box<[c::xt_info_table]> = TABLES
            .iter()
            .zip(&columns)
            .map(|(table, columns)| c::xt_info_table {
                struct_size: size_of::<c::xt_info_table>() as u32,
                flags: c::XT_INFO_NEEDS_PROCESS,
                name: memory.text(table.name),
                columns: columns.as_ptr(),
                columns_count: columns.len() as u32,
                reserved: 0,
            })
            .collect();
        let description = "Transactions, row locks, savepoints; InnoDB's files";
        let mut plugins = vec![plugin_view("InnoDB", description, ptr::null(), &mut memory)];
        for (table, view) in TABLES.iter().zip(&tables) {
            plugins.push(plugin_view(
                table.name,
                table.description,
                view,
                &mut memory,
            ));
        }
        Catalog {
            plugins: plugins.into(),
            settings,
            _tables: tables,
            _columns: columns,
            _memory: memory,
        }
    }
}

/// "1.2.3" as 0x010203.
fn version_number() -> u32 {
    let parts = VERSION.split(['.', '-']).take(3);
    parts.fold(0, |number, part| {
        number << 8 | part.parse::<u32>().unwrap_or(0)
    })
}

fn plugin_view(
    name: &str,
    description: &str,
    table: *const c::xt_info_table,
    memory: &mut Memory,
) -> c::xt_plugin {
    c::xt_plugin {
        struct_size: size_of::<c::xt_plugin>() as u32,
        kind: match table.is_null() {
            true => c::XT_PLUGIN_STORAGE_ENGINE,
            false => c::XT_PLUGIN_INFORMATION_SCHEMA,
        },
        name: memory.text(name),
        description: memory.text(description),
        author: memory.text(AUTHOR),
        version: memory.text(VERSION),
        version_number: version_number(),
        maturity: c::XT_MATURITY_GAMMA,
        licence: memory.text("GPL"),
        interface_version: c::XT_ABI_VERSION,
        reserved: 0,
        info_table: table,
    }
}

fn column_views(table: &Table, memory: &mut Memory) -> Box<[c::xt_info_column]> {
    let view = |column: &crate::info::Column| {
        let (kind, length, values, unsigned): (u32, u32, &[&str], u32) = match column.kind {
            ColumnType::Int(width) => (c::XT_VALUE_INT, width, &[], 0),
            ColumnType::Uint(width) => (c::XT_VALUE_UINT, width, &[], c::XT_INFO_UNSIGNED),
            ColumnType::Text(characters) => (c::XT_VALUE_STRING, characters, &[], 0),
            ColumnType::Enum(names) => (c::XT_VALUE_ENUM, 0, names, 0),
            ColumnType::DateTime => (c::XT_VALUE_DATETIME, 0, &[], 0),
        };
        c::xt_info_column {
            name: memory.text(column.name),
            kind,
            length,
            flags: unsigned
                | if column.nullable {
                    c::XT_INFO_NULLABLE
                } else {
                    0
                },
            values_count: values.len() as u32,
            values: memory.list(values),
        }
    };
    table.columns.iter().map(view).collect()
}

fn setting_view(setting: &crate::settings::Definition, memory: &mut Memory) -> c::xt_setting {
    let mut view = c::xt_setting {
        struct_size: size_of::<c::xt_setting>() as u32,
        type_: c::XT_SETTING_STRING,
        name: memory.text(setting.name),
        doc: memory.text(setting.doc),
        default_value: memory.text(&setting.format(&setting.default_value())),
        flags: setting.flags,
        values_count: 0,
        values: ptr::null(),
        min: 0,
        max: 0,
        block: 0,
        min_double: 0.0,
        max_double: 0.0,
    };
    match setting.kind {
        Kind::Bool(_) => view.type_ = c::XT_SETTING_BOOL,
        Kind::Uint(_, min, max, block) => {
            view.type_ = c::XT_SETTING_UINT;
            (view.min, view.max, view.block) = (min, max, block);
        }
        Kind::Double(_, min, max) => {
            view.type_ = c::XT_SETTING_DOUBLE;
            (view.min_double, view.max_double) = (min, max);
        }
        Kind::Enum(_, names) => {
            view.type_ = c::XT_SETTING_ENUM;
            view.values = memory.list(names);
            view.values_count = names.len() as u32;
        }
        Kind::Text(_) => {}
    }
    view
}

/// # Safety
/// engine.h: both are NULL or writable.
pub(super) unsafe extern "C" fn plugins(
    plugins: *mut *const c::xt_plugin,
    count: *mut u32,
) -> c::xt_status {
    edge(|| {
        // SAFETY: the caller's promises.
        let (plugins, count) = unsafe { (out(plugins, "plugins")?, out(count, "count")?) };
        *plugins = catalog().plugins.as_ptr();
        *count = catalog().plugins.len() as u32;
        Ok(())
    })
}

/// # Safety
/// engine.h: both are NULL or writable.
pub(super) unsafe extern "C" fn settings(
    settings: *mut *const c::xt_setting,
    count: *mut u32,
) -> c::xt_status {
    edge(|| {
        // SAFETY: the caller's promises.
        let (settings, count) = unsafe { (out(settings, "settings")?, out(count, "count")?) };
        *settings = catalog().settings.as_ptr();
        *count = catalog().settings.len() as u32;
        Ok(())
    })
}

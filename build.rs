//! What is made before the crate: the Rust view of the C headers.
//!
//! The headers in include/ are written by hand and are the source of truth; bindgen translates them
//! and asserts that every size and offset is what the C compiler sees.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=include");
    let bindings = bindgen::Builder::default()
        .header("include/xtradb.h")
        .clang_arg("-std=c99")
        .allowlist_type("xt_.*")
        .allowlist_var("XT_.*")
        // The one function is defined in src/abi/api.rs.
        .blocklist_function("xtradb_api")
        .use_core()
        .generate_comments(false)
        .layout_tests(true)
        .derive_debug(false)
        .formatter(bindgen::Formatter::None)
        .generate()
        .expect("bindgen reads include/xtradb.h (it needs libclang: see tools/setup.sh)");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindings
        .write_to_file(out.join("xtradb_h.rs"))
        .expect("OUT_DIR can be written");
}

//! The Rust view of two C interfaces: include/xtradb.h, and RocksDB's c.h where Debian's
//! librocksdb-dev puts it.

use std::env;
use std::path::PathBuf;

const XTRADB: &str = "../../include/xtradb.h";
const ROCKSDB: &str = "/usr/include/rocksdb/c.h";

/// What `src/abi/rocks.rs` calls.
const ROCKSDB_USED: &str = "rocksdb_(open|close|put|delete|write|get_pinned\
    |pinnableslice_(value|destroy)|writebatch_(create|put|clear|destroy)\
    |create_iterator|iter_(seek_to_first|valid|next|key|value|get_error|destroy)\
    |create_snapshot|release_snapshot\
    |options_(create|destroy|set_create_if_missing|set_compression|set_write_buffer_size\
    |set_max_background_jobs|set_max_open_files|set_block_based_table_factory)\
    |block_based_options_(create|destroy|set_block_cache|set_filter_policy)\
    |cache_(create_lru|destroy)|filterpolicy_create_bloom_full\
    |writeoptions_(create|destroy|set_sync)\
    |readoptions_(create|destroy|set_snapshot)\
    |free)";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../include");
    println!("cargo::rustc-link-lib=rocksdb");
    let headers = [
        (XTRADB, "xtradb.rs", "xt_.*", "xtradb_api"),
        (ROCKSDB, "rocksdb.rs", ROCKSDB_USED, "^$"),
    ];
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for (header, into, wanted, blocked) in headers {
        bindgen::Builder::default()
            .header(header)
            .clang_arg("-std=c99")
            .allowlist_function(wanted)
            .allowlist_type("xt_.*")
            .allowlist_var("XT_.*")
            .blocklist_function(blocked)
            .generate_comments(false)
            .derive_debug(false)
            .formatter(bindgen::Formatter::None)
            .generate()
            .unwrap_or_else(|error| panic!("{header}: {error} (see `make bench`)"))
            .write_to_file(out.join(into))
            .expect("OUT_DIR can be written");
    }
}

//! What is made beside the crate: the Rust view of the C headers, and the C programs.
//!
//! The headers in include/ are written by hand and are the source of truth; bindgen translates them
//! and asserts that every size and offset is what the C compiler sees.
//!
//! Each folder of c_shim/ that has a main.c is one program: c_shim/host becomes `xtradb-host`, put
//! beside libxtradb.so. What stands in c_shim/common belongs to each of them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    for input in ["build.rs", "include", "c_shim"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    translate_headers(&out.join("xtradb_h.rs"));
    for folder in files_of(Path::new("c_shim")) {
        if folder.join("main.c").exists() {
            build_program(&folder, &out);
        }
    }
}

fn translate_headers(into: &Path) {
    bindgen::Builder::default()
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
        .expect("bindgen reads include/xtradb.h (it needs libclang: see tools/setup.sh)")
        .write_to_file(into)
        .expect("OUT_DIR can be written");
}

const COMMON: &str = "c_shim/common";

/// Compiles and links one program. Its objects stay in OUT_DIR/c/<folder>, for tests of its parts.
fn build_program(folder: &Path, out: &Path) {
    let name = folder.file_name().expect("a folder of c_shim has a name");
    let objects = out.join("c").join(name);
    // Nothing of a file that is gone may stay.
    let _ = fs::remove_dir_all(&objects);
    let line_editing = pkg_config("libedit");
    let version = env::var("CARGO_PKG_VERSION").expect("cargo sets CARGO_PKG_VERSION");

    let sources = files_of(Path::new(COMMON))
        .into_iter()
        .chain(files_of(folder));
    let mut build = cc::Build::new();
    build
        .files(sources.filter(|file| is_c(file)))
        .out_dir(&objects)
        .includes([Path::new("include"), Path::new(COMMON), folder])
        .std("gnu11")
        .define("_GNU_SOURCE", None)
        .define("XTRADB_VERSION", format!("\"{version}\"").as_str())
        .flag("-pthread")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .debug(true);
    if let Some(edit) = &line_editing {
        build.define("HAVE_LIBEDIT", None).flags(&edit.compile);
    }
    let compiled = build.compile_intermediates();

    let program = format!("xtradb-{}", name.to_string_lossy());
    let linked = out.join(&program);
    let mut link = build.get_compiler().to_command();
    link.arg("-rdynamic")
        .args(compiled)
        .arg("-o")
        .arg(&linked)
        .args(["-Wl,--as-needed", "-ldl", "-lpthread", "-lm"]);
    if let Some(edit) = &line_editing {
        link.args(&edit.link);
    }
    assert!(
        link.status().expect("the C compiler runs").success(),
        "{program} does not link"
    );
    put_beside_library(&linked, &program, out);
}

/// OUT_DIR is target/<profile>/build/<package>/out; the library comes into target/<profile>.
fn put_beside_library(linked: &Path, program: &str, out: &Path) {
    let profile = out.ancestors().nth(3).expect("cargo's OUT_DIR lies deep");
    // A rename, since the program of the build before may be running.
    let new = profile.join(format!("{program}.new"));
    fs::copy(linked, &new).expect("the profile's folder can be written");
    fs::rename(&new, profile.join(program)).expect("the profile's folder can be written");
}

struct Flags {
    compile: Vec<String>,
    link: Vec<String>,
}

/// What pkg-config says of a library, if it is there.
fn pkg_config(library: &str) -> Option<Flags> {
    let ask = |what: &str| {
        let answer = Command::new("pkg-config").args([what, library]).output();
        let answer = answer.ok().filter(|answer| answer.status.success())?;
        let words = String::from_utf8_lossy(&answer.stdout).into_owned();
        Some(words.split_whitespace().map(str::to_owned).collect())
    };
    Some(Flags {
        compile: ask("--cflags")?,
        link: ask("--libs")?,
    })
}

/// The entries of a folder, in a fixed order.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    files.sort();
    files
}

fn is_c(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "c")
}

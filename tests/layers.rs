//! The shape of the source, checked: layers, sizes, headers, and what may stand where.
//!
//! Each rule is a function from one scanned file to complaints, and has a test below that shows it a
//! bad file. `the_source_keeps_its_shape` runs all of them over src/.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a file without its tests.
const FILE_LINES_MAX: usize = 600;
/// Lines of a function, from `fn` to its closing brace; more needs `// long: why` above it.
const FUNCTION_LINES_MAX: usize = 70;
/// The modules that may hold `unsafe`.
const UNSAFE_ALLOWED: [&str; 4] = ["sync", "os", "buffer", "abi"];
/// What opens a folder's mod.rs, beside its first sentence and what it knows.
const HEADER_POINTS: [&str; 4] = ["Invariants", "Latches:", "Crash:", "Read:"];

struct Complaint {
    path: String,
    line: usize,
    what: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// One source file: its text, and the same text with comments, strings and tests blanked out, so that
/// offsets and line numbers agree.
struct Source {
    /// Relative to the repository, with `/`.
    path: String,
    text: String,
    /// Without comments and literals.
    code: String,
    /// `code` without what stands under `#[cfg(test)]`.
    shipped: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Source {
        let code = blank_comments_and_literals(text);
        let shipped = if is_test_file(path) {
            blank(&code)
        } else {
            blank_tests(&code)
        };
        Source {
            path: path.to_string(),
            text: text.to_string(),
            code,
            shipped,
        }
    }

    fn line_of(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }

    fn complaint(&self, offset: usize, what: impl Into<String>) -> Complaint {
        Complaint {
            path: self.path.clone(),
            line: self.line_of(offset),
            what: what.into(),
        }
    }

    /// The module below src/ that the file belongs to; `None` for lib.rs.
    fn module(&self) -> Option<&str> {
        let below = self.path.strip_prefix("src/")?;
        match below.split_once('/') {
            Some((folder, _)) => Some(folder),
            None if below == "lib.rs" => None,
            None => below.strip_suffix(".rs"),
        }
    }
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

fn blank(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\n' { '\n' } else { ' ' })
        .collect()
}

/// Replaces comments, strings and character literals by blanks, byte for byte.
fn blank_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        match end {
            Some(end) => {
                for byte in &mut out[at..end] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the comment or literal that begins at `at` ends, if one does.
fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return Some(at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(block_comment_end(bytes, at));
    }
    let after_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    if !after_word && matches!(rest[0], b'r' | b'b' | b'c') {
        let letters = rest
            .iter()
            .take_while(|b| matches!(b, b'r' | b'b' | b'c'))
            .count();
        let hashes = rest[letters..].iter().take_while(|&&b| b == b'#').count();
        let raw = rest[..letters].contains(&b'r');
        if letters <= 2 && rest.get(letters + hashes) == Some(&b'"') && (raw || hashes == 0) {
            let body = at + letters + hashes + 1;
            return Some(if raw {
                raw_end(bytes, body, hashes)
            } else {
                quoted_end(bytes, body, b'"')
            });
        }
        if rest.starts_with(b"b'") {
            return Some(quoted_end(bytes, at + 2, b'\''));
        }
    }
    match rest[0] {
        b'"' => Some(quoted_end(bytes, at + 1, b'"')),
        // A character, not a lifetime: 'x' or '\…'.
        b'\'' if rest.get(1) == Some(&b'\\') => Some(quoted_end(bytes, at + 1, b'\'')),
        b'\'' => {
            let text = std::str::from_utf8(&rest[1..rest.len().min(6)])
                .or_else(|e| std::str::from_utf8(&rest[1..1 + e.valid_up_to()]))
                .ok()?;
            let width = text.chars().next()?.len_utf8();
            (rest.get(1 + width) == Some(&b'\'')).then_some(at + 2 + width)
        }
        _ => None,
    }
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn quoted_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_end(bytes: &[u8], mut at: usize, hashes: usize) -> usize {
    while at < bytes.len() {
        if bytes[at] == b'"' && bytes[at + 1..].iter().take_while(|&&b| b == b'#').count() >= hashes
        {
            return at + 1 + hashes;
        }
        at += 1;
    }
    bytes.len()
}

/// Blanks every item under `#[cfg(test)]` (also `#[cfg(all(test, …))]`).
fn blank_tests(code: &str) -> String {
    let mut out = code.to_string();
    let mut from = 0;
    while let Some(found) = find_test_attribute(&out[from..]) {
        let start = from + found;
        let end = item_end(&out, start);
        let blanked = blank(&out[start..end]);
        out.replace_range(start..end, &blanked);
        from = end;
    }
    out
}

fn find_test_attribute(code: &str) -> Option<usize> {
    let plain = code.find("#[cfg(test)]");
    let all = code.find("#[cfg(all(test");
    match (plain, all) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The end of the item whose attributes begin at `start`: its `;`, or its matching `}`.
fn item_end(code: &str, start: usize) -> usize {
    let mut braces = 0;
    let mut others = 0;
    for (at, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others -= 1,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 {
                    return start + at + 1;
                }
            }
            ';' if braces == 0 && others == 0 => return start + at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Offsets at which `word` stands as a whole word.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            !code[..at].ends_with(is_part) && !code[at + word.len()..].starts_with(is_part)
        })
}

fn identifier(code: &str) -> &str {
    let end = code
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(code.len());
    &code[..end]
}

/// The modules that lib.rs declares, lowest first.
fn layers(lib: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for at in words(&lib.shipped, "mod") {
        let rest = lib.shipped[at + 3..].trim_start();
        let name = identifier(rest);
        if rest[name.len()..].trim_start().starts_with(';') {
            found.push(name.to_string());
        }
    }
    found
}

/// What follows `crate::`, braces opened: `crate::{a::b, c}` names a and c.
fn names_after_crate(code: &str, at: usize) -> Vec<(usize, String)> {
    let rest = &code[at..];
    let lead = rest.len() - rest.trim_start().len();
    if !rest.trim_start().starts_with('{') {
        return vec![(at + lead, identifier(rest.trim_start()).to_string())];
    }
    let mut names = Vec::new();
    let mut depth = 0;
    let mut expects_name = false;
    for (offset, c) in rest.char_indices() {
        match c {
            '{' => {
                depth += 1;
                expects_name = depth == 1;
            }
            '}' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            ',' => expects_name = depth == 1,
            c if expects_name && (c.is_alphabetic() || c == '_') => {
                names.push((at + offset, identifier(&rest[offset..]).to_string()));
                expects_name = false;
            }
            _ => {}
        }
    }
    names
}

/// A file may use only modules declared above its own. Tests inside src/ obey this too: a test that
/// needs a higher layer belongs into tests/.
fn check_layers(source: &Source, layers: &[String]) -> Vec<Complaint> {
    let Some(own) = source.module() else {
        return Vec::new();
    };
    let Some(own_place) = layers.iter().position(|layer| layer == own) else {
        return vec![
            source.complaint(0, format!("src/lib.rs does not declare the module `{own}`")),
        ];
    };
    let mut complaints = Vec::new();
    for at in words(&source.code, "crate") {
        let after = &source.code[at + 5..];
        if !after.trim_start().starts_with("::") || source.code[..at].ends_with('$') {
            continue;
        }
        let path_at = at + 5 + after.find("::").expect("it starts with ::") + 2;
        for (name_at, name) in names_after_crate(&source.code, path_at) {
            match layers.iter().position(|layer| *layer == name) {
                Some(place) if place <= own_place => {}
                Some(_) => complaints.push(source.complaint(
                    name_at,
                    format!("`{own}` uses `crate::{name}`, which src/lib.rs declares below it"),
                )),
                None => complaints.push(source.complaint(
                    name_at,
                    format!("`crate::{name}` is no module that src/lib.rs declares"),
                )),
            }
        }
    }
    complaints.extend(check_super(source));
    complaints
}

/// `super::` must not climb to the crate's root, where the layer check could not see what follows.
fn check_super(source: &Source) -> Vec<Complaint> {
    let depth = source.path.trim_end_matches("/mod.rs").matches('/').count();
    let mut complaints = Vec::new();
    for at in words(&source.shipped, "super") {
        if source.shipped[..at].ends_with("super::") {
            continue;
        }
        let mut climbs = 0;
        let mut rest = &source.shipped[at..];
        while let Some(further) = rest.strip_prefix("super::") {
            climbs += 1;
            rest = further;
        }
        let nested =
            source.shipped[..at].matches('{').count() > source.shipped[..at].matches('}').count();
        if climbs >= depth && !nested {
            complaints
                .push(source.complaint(at, "reaches the crate's root by `super`; write `crate::`"));
        }
    }
    complaints
}

fn check_depth(source: &Source) -> Vec<Complaint> {
    let too_deep = source.path.matches('/').count() > 2;
    too_deep
        .then(|| source.complaint(0, "no deeper than src/a/b.rs"))
        .into_iter()
        .collect()
}

fn check_length(source: &Source) -> Vec<Complaint> {
    if is_test_file(&source.path) {
        return Vec::new();
    }
    let in_tests = source
        .code
        .lines()
        .zip(source.shipped.lines())
        .filter(|(all, shipped)| !all.trim().is_empty() && shipped.trim().is_empty());
    let lines = source.text.lines().count() - in_tests.count();
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![source.complaint(
        0,
        format!("{lines} lines without tests; split at {FILE_LINES_MAX}"),
    )]
}

fn check_functions(source: &Source) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for at in words(&source.shipped, "fn") {
        let name = identifier(source.shipped[at + 2..].trim_start());
        if name.is_empty() {
            continue; // A function type: `fn(u32) -> u32`.
        }
        let lines = source.shipped[at..item_end(&source.shipped, at)]
            .matches('\n')
            .count()
            + 1;
        if lines > FUNCTION_LINES_MAX && !says_why_it_is_long(source, at) {
            complaints.push(source.complaint(
                at,
                format!("`{name}` has {lines} lines; split it at {FUNCTION_LINES_MAX} or say `// long: why`"),
            ));
        }
    }
    complaints
}

/// Looks through the comments and attributes that stand directly above the function.
fn says_why_it_is_long(source: &Source, at: usize) -> bool {
    let above = source
        .text
        .lines()
        .take(source.line_of(at) - 1)
        .collect::<Vec<_>>();
    above
        .iter()
        .rev()
        .map(|line| line.trim())
        .take_while(|line| line.starts_with("//") || line.starts_with("#["))
        .any(|line| {
            line.strip_prefix("// long: ")
                .is_some_and(|why| why.len() > 5)
        })
}

fn check_unsafe(source: &Source) -> Vec<Complaint> {
    let module = source.module().unwrap_or_default();
    if UNSAFE_ALLOWED.contains(&module) {
        return Vec::new();
    }
    let mut complaints: Vec<Complaint> = words(&source.code, "unsafe")
        .map(|at| {
            source.complaint(
                at,
                format!("`unsafe` in `{module}`; only {UNSAFE_ALLOWED:?} may"),
            )
        })
        .collect();
    if source.path.ends_with("/mod.rs") && !source.code.contains("#![forbid(unsafe_code)]") {
        complaints.push(source.complaint(0, "lacks `#![forbid(unsafe_code)]`"));
    }
    complaints
}

/// Every folder's mod.rs opens with what it is, what it knows, and four named points.
fn check_header(source: &Source) -> Vec<Complaint> {
    if !source.path.ends_with("/mod.rs") {
        return Vec::new();
    }
    let header: Vec<&str> = source
        .text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .collect();
    let mut complaints = Vec::new();
    let mut complain = |what: String| complaints.push(source.complaint(0, what));
    if header.first().is_none_or(|line| line.len() < 10) {
        complain("opens without a sentence (`//! …`) that says what the folder is".into());
    }
    if !header.iter().any(|line| line.contains("nows ")) {
        complain("the header does not say what the folder knows, and what not".into());
    }
    for point in HEADER_POINTS {
        if !header.iter().any(|line| line.starts_with(point)) {
            complain(format!("the header lacks the point `{point}`"));
        }
    }
    complaints
}

/// What shipped code must not say, and where it may.
fn check_words(source: &Source) -> Vec<Complaint> {
    let module = source.module().unwrap_or_default();
    let outside = |allowed: &[&str]| !allowed.contains(&module);
    let mut complaints = Vec::new();
    let mut forbid = |what: &str, why: &str| {
        for (at, _) in source.shipped.match_indices(what) {
            complaints.push(source.complaint(at, format!("`{what}`: {why}")));
        }
    };
    forbid(
        ".unwrap()",
        "say why it cannot fail with `expect(\"…\")`, or return the error",
    );
    forbid("todo!(", "no stubs");
    forbid("unimplemented!(", "no stubs");
    forbid("dbg!(", "left over from debugging");
    if outside(&["sync"]) {
        for name in ["Mutex", "RwLock", "Condvar", "Barrier", "atomic", "mpsc"] {
            forbid(
                &format!("std::sync::{name}"),
                "only `sync` names std's latches and atomics",
            );
        }
    }
    if outside(&["sync", "os"]) {
        for name in ["spawn", "scope", "park", "current", "Builder"] {
            forbid(
                &format!("thread::{name}("),
                "threads come from `os` and `sync`",
            );
        }
    }
    for (at, _) in source.shipped.match_indices("thread_local!") {
        let body = &source.shipped[at..item_end(&source.shipped, at)];
        if !body.contains("= const {") {
            complaints.push(source.complaint(
                at,
                "a thread-local must be const-initialised and without destructor: others pin the library",
            ));
        }
    }
    for (at, line) in source.text.lines().enumerate() {
        if line.contains("TODO") || line.contains("FIXME") || line.contains("XXX") {
            complaints.push(Complaint {
                path: source.path.clone(),
                line: at + 1,
                what: "finish it, or file it; no TODO in the source".into(),
            });
        }
    }
    complaints
}

fn check(source: &Source, layers: &[String]) -> Vec<Complaint> {
    let mut complaints = check_layers(source, layers);
    complaints.extend(check_depth(source));
    complaints.extend(check_length(source));
    complaints.extend(check_functions(source));
    complaints.extend(check_unsafe(source));
    complaints.extend(check_header(source));
    complaints.extend(check_words(source));
    complaints
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_source_keeps_its_shape() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    rust_files(&root.join("src"), &mut files);
    files.sort();
    let sources: Vec<Source> = files
        .iter()
        .map(|file| {
            let path = file
                .strip_prefix(root)
                .expect("below the root")
                .to_string_lossy()
                .into_owned();
            Source::new(
                &path,
                &fs::read_to_string(file).expect("the source can be read"),
            )
        })
        .collect();
    let lib = sources
        .iter()
        .find(|source| source.path == "src/lib.rs")
        .expect("src/lib.rs is there");
    let layers = layers(lib);
    assert!(!layers.is_empty(), "src/lib.rs declares no module");
    let complaints: Vec<String> = sources
        .iter()
        .flat_map(|source| check(source, &layers))
        .map(|c| c.to_string())
        .collect();
    assert!(
        complaints.is_empty(),
        "{} complaints\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

/// The complaints about one made-up file, under three layers: words, page, tree.
#[cfg(test)]
fn complaints_about(path: &str, text: &str) -> Vec<String> {
    let lib = Source::new(
        "src/lib.rs",
        "/// A.\npub mod words;\n\npub mod page;\n\nmod tree;\n",
    );
    check(&Source::new(path, text), &layers(&lib))
        .iter()
        .map(|c| c.to_string())
        .collect()
}

#[cfg(test)]
fn assert_one_complaint(path: &str, text: &str, about: &str) {
    let complaints = complaints_about(path, text);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].contains(about), "{complaints:?}");
}

#[test]
fn a_good_file_has_no_complaints() {
    let text = "use crate::words::{PageId, be};\nuse crate::{words, page::search};\n\
                /// Not `crate::tree`. TODOs are words too? No: \"crate::tree\"\n"
        .replace("TODOs", "Notes");
    let body = "fn f<'a>(c: char) -> &'a str { if c == '\"' || c == '\\'' { \"crate::tree .unwrap()\" } else { r#\"\"crate::tree\"# } }\n\
                #[cfg(test)]\nmod tests {\n    fn g() { Some(1).unwrap(); }\n}\n";
    assert_eq!(
        complaints_about("src/page/search.rs", &format!("{text}{body}")),
        Vec::<String>::new()
    );
}

#[test]
fn an_upward_use_is_found() {
    assert_one_complaint(
        "src/page/search.rs",
        "use crate::tree::Cursor;\n",
        "src/page/search.rs:1: `page` uses `crate::tree`",
    );
    assert_one_complaint(
        "src/words/be.rs",
        "\nuse crate::{words::ids, page};\n",
        "be.rs:2: `words` uses `crate::page`",
    );
    assert_one_complaint(
        "src/page/mod_part.rs",
        "fn f() { crate :: tree::go(); }\n",
        "`crate::tree`",
    );
    assert_one_complaint(
        "src/page/search.rs",
        "use crate::gone::X;\n",
        "no module that src/lib.rs declares",
    );
    assert_one_complaint(
        "src/page/search.rs",
        "use super::super::tree::X;\n",
        "root by `super`",
    );
    assert_one_complaint("src/extra/a.rs", "", "does not declare the module `extra`");
}

#[test]
fn a_deep_or_long_file_is_found() {
    assert_one_complaint("src/page/a/b.rs", "", "no deeper than");
    assert_one_complaint("src/page/a.rs", &"// line\n".repeat(601), "601 lines");
    let with_tests = format!(
        "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
        "// line\n".repeat(590),
        "    const A: u8 = 1;\n".repeat(300)
    );
    assert_eq!(
        complaints_about("src/page/a.rs", &with_tests),
        Vec::<String>::new()
    );
}

#[test]
fn a_long_function_is_found_unless_it_says_why() {
    let long = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(69));
    assert_one_complaint("src/page/a.rs", &long, "`long` has 71 lines");
    let explained = format!("// long: one arm per operation code\n#[inline]\n{long}");
    assert_eq!(
        complaints_about("src/page/a.rs", &explained),
        Vec::<String>::new()
    );
    let short = long.replacen("    step();\n", "", 1);
    assert_eq!(
        complaints_about("src/page/a.rs", &short),
        Vec::<String>::new()
    );
}

#[test]
fn unsafe_outside_its_modules_is_found() {
    assert_one_complaint(
        "src/page/a.rs",
        "fn f() { unsafe { g() } }\n",
        "`unsafe` in `page`",
    );
    let lib = Source::new("src/lib.rs", "pub mod buffer;");
    let inside = Source::new("src/buffer/a.rs", "fn f() { unsafe { g() } }\n");
    assert!(check(&inside, &layers(&lib)).is_empty());
}

#[test]
fn a_folder_without_its_header_is_found() {
    let header = "//! Pages, seen from inside.\n//!\n//! Knows bytes.\n//!\n//! Invariants\n//!  1. One.\n//!\n\
                  //! Latches: none.\n//! Crash:   nothing.\n//! Read:    a.rs.\n\n#![forbid(unsafe_code)]\n";
    assert_eq!(
        complaints_about("src/page/mod.rs", header),
        Vec::<String>::new()
    );
    assert_one_complaint(
        "src/page/mod.rs",
        &header.replace("Crash:", "Crush:"),
        "lacks the point `Crash:`",
    );
    assert_one_complaint(
        "src/page/mod.rs",
        &header.replace("Knows", "Has"),
        "what the folder knows",
    );
    assert_one_complaint(
        "src/page/mod.rs",
        &header.replace("#![forbid(unsafe_code)]", ""),
        "forbid(unsafe_code)",
    );
}

#[test]
fn forbidden_words_are_found() {
    assert_one_complaint("src/page/a.rs", "fn f() { g().unwrap(); }\n", ".unwrap()");
    assert_one_complaint("src/page/a.rs", "fn f() { todo!() }\n", "no stubs");
    assert_one_complaint(
        "src/page/a.rs",
        "use std::sync::Mutex;\n",
        "only `sync` names",
    );
    assert_one_complaint(
        "src/page/a.rs",
        "fn f() { std::thread::spawn(g); }\n",
        "threads come from",
    );
    assert_one_complaint(
        "src/page/a.rs",
        "thread_local! { static A: RefCell<Vec<u8>> = RefCell::default(); }\n",
        "const-initialised",
    );
    assert_one_complaint("src/page/a.rs", "// TODO later\n", "no TODO");
}

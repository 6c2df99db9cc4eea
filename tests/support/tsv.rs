//! Rows as text: what `--batch` prints, and the conventions of the samples' TSV files.
//!
//! In a sample's TSV NULL is `NULL`; character or BLOB values longer than 64 bytes are
//! `#LENGTH:MD5`; binary values are `0xHEX`, BIT as its storage bytes.

/// How a column's values print in a TSV file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// As SQL prints them.
    Plain,
    /// Character data: by length and MD5 when long.
    Text,
    /// Bytes: hexadecimal, by length and MD5 when long.
    Binary,
}

/// Splits one line that a client printed with `--batch` into its values, escapes undone. A value that is
/// the bare word NULL is taken for NULL, as a person would read it.
pub fn values(line: &[u8]) -> Vec<Option<Vec<u8>>> {
    line.split(|&byte| byte == b'\t')
        .map(|field| {
            if field == b"NULL" {
                None
            } else {
                Some(unescape(field))
            }
        })
        .collect()
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(field.len());
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'\\' {
            value.push(byte);
            continue;
        }
        value.push(match bytes.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'0') => 0,
            Some(&other) => other,
            None => b'\\',
        });
    }
    value
}

/// One value in the conventions of the samples.
pub fn sample_value(kind: Kind, value: Option<&[u8]>) -> String {
    let Some(value) = value else {
        return "NULL".into();
    };
    if kind != Kind::Plain && value.len() > 64 {
        return format!("#{}:{:x}", value.len(), md5::compute(value));
    }
    if kind == Kind::Binary {
        return value.iter().fold(String::from("0x"), |text, byte| {
            text + &format!("{byte:02X}")
        });
    }
    String::from_utf8_lossy(value)
        .replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
}

/// Turns what `--batch` printed (a header line, then rows) into a sample's TSV. `kinds` as the columns.
pub fn sample_tsv(batch: &[u8], kinds: &[Kind]) -> String {
    let mut out = String::new();
    for (number, line) in batch.split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() && number > 0 {
            // A table of one column may hold an empty value; the last line is always empty.
            continue;
        }
        if number == 0 {
            out.push_str(&String::from_utf8_lossy(line));
        } else {
            let values = values(line);
            assert_eq!(
                values.len(),
                kinds.len(),
                "row {number}: {}",
                String::from_utf8_lossy(line)
            );
            let fields: Vec<String> = values
                .iter()
                .zip(kinds)
                .map(|(value, &kind)| sample_value(kind, value.as_deref()))
                .collect();
            out.push_str(&fields.join("\t"));
        }
        out.push('\n');
    }
    out
}

/// The kinds of a table's columns, from its CREATE TABLE as it lies beside a sample.
pub fn kinds_of(create_table: &str) -> Vec<Kind> {
    let open = create_table.find('(').expect("CREATE TABLE has a list");
    let mut kinds = Vec::new();
    let mut depth = 0;
    let mut item = String::new();
    for c in create_table[open..].chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || depth == 0 {
            kinds.extend(kind_of(item.trim_start_matches(['(', ' ', '\n'])));
            item.clear();
            if depth == 0 {
                break;
            }
        } else {
            item.push(c);
        }
    }
    kinds
}

fn kind_of(item: &str) -> Option<Kind> {
    let mut words = item.split_whitespace();
    let name = words.next()?.to_ascii_uppercase();
    if [
        "PRIMARY",
        "KEY",
        "UNIQUE",
        "SPATIAL",
        "INDEX",
        "CONSTRAINT",
        "FOREIGN",
        "FULLTEXT",
    ]
    .contains(&name.as_str())
    {
        return None;
    }
    let kind = words.next()?.to_ascii_uppercase();
    let kind = kind.split('(').next()?;
    Some(match kind {
        "CHAR" | "VARCHAR" | "TEXT" | "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" | "JSON" => Kind::Text,
        "BINARY" | "VARBINARY" | "BIT" | "BLOB" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB"
        | "POINT" | "GEOMETRY" => Kind::Binary,
        _ => Kind::Plain,
    })
}

#[test]
fn a_batch_line_is_read_back() {
    let row = values(b"1\tNULL\ta\\tb\\\\c\\n\\0\t");
    assert_eq!(
        row,
        vec![
            Some(b"1".to_vec()),
            None,
            Some(b"a\tb\\c\n\0".to_vec()),
            Some(Vec::new())
        ]
    );
    let kinds = kinds_of(
        "CREATE TABLE t (\n  id INT NOT NULL, d DECIMAL(10,2), b BLOB, c VARCHAR(10),\n  PRIMARY KEY (id), KEY k (b(20)))",
    );
    assert_eq!(kinds, [Kind::Plain, Kind::Plain, Kind::Binary, Kind::Text]);
    assert_eq!(sample_value(Kind::Binary, Some(&[1, 0xAB])), "0x01AB");
    assert_eq!(
        sample_value(Kind::Text, Some(&[b'a'; 65])),
        "#65:c743a45e0d2e6a95cb859adae0248435"
    );
}

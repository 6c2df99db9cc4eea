//! innodb_data_file_path: `ibdata1:12M;ibdata2:50M:autoextend:max:500M`.

use crate::words::{Error, Result};

/// One file of the system tablespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFile {
    /// Name, relative to innodb_data_home_dir, or absolute.
    pub name: String,
    /// Size in bytes: whole megabytes.
    pub bytes: u64,
}

/// The files of the system tablespace, or of the temporary one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFilePath {
    /// In order; the pages of one follow those of the one before.
    pub files: Vec<DataFile>,
    /// True if the last one grows.
    pub autoextend: bool,
    /// Largest size of the last one in bytes; 0 = any.
    pub bytes_max: u64,
}

impl DataFilePath {
    /// Parses the setting.
    pub fn parse(setting: &str) -> Result<DataFilePath> {
        let bad = |why: &str| Error::invalid(format!("innodb_data_file_path={setting}: {why}"));
        let mut path = DataFilePath {
            files: Vec::new(),
            autoextend: false,
            bytes_max: 0,
        };
        for item in setting.split(';').filter(|item| !item.is_empty()) {
            if path.autoextend {
                return Err(bad("only the last file may be autoextend"));
            }
            let mut parts = item.split(':');
            let name = parts
                .next()
                .filter(|name| !name.is_empty())
                .ok_or_else(|| bad("no name"))?;
            let size = parts.next().ok_or_else(|| bad("no size"))?;
            let bytes =
                parse_size(size).ok_or_else(|| bad("the size is not a number with M or G"))?;
            path.files.push(DataFile {
                name: name.to_string(),
                bytes,
            });
            match (parts.next(), parts.next(), parts.next(), parts.next()) {
                (None, ..) => {}
                (Some("autoextend"), None, ..) => path.autoextend = true,
                (Some("autoextend"), Some("max"), Some(max), None) => {
                    path.autoextend = true;
                    path.bytes_max = parse_size(max).ok_or_else(|| bad("the maximum"))?;
                }
                (Some(word), ..) if word.contains("raw") => {
                    return Err(Error::unsupported("raw devices in innodb_data_file_path"));
                }
                _ => return Err(bad("expected name:size[:autoextend[:max:size]]")),
            }
        }
        if path.files.is_empty() {
            return Err(bad("names no file"));
        }
        Ok(path)
    }
}

/// Bytes, rounded down to whole megabytes; at least one.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let unit: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    let bytes = number.checked_mul(unit)? >> 20 << 20;
    (bytes > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_the_manual_are_understood() {
        let one = DataFilePath::parse("ibdata1:12M:autoextend").expect("default");
        assert_eq!(
            (one.files[0].bytes, one.autoextend, one.bytes_max),
            (12 << 20, true, 0)
        );
        let two = DataFilePath::parse("a:1G;/x/b:50M:autoextend:max:500M").expect("two files");
        assert_eq!(two.files[1].name, "/x/b");
        assert_eq!(two.bytes_max, 500 << 20);
        for bad in [
            "",
            "a",
            "a:x",
            "a:1K",
            "a:1M:autoextend;b:1M",
            "a:1M:grow",
            ":1M",
        ] {
            assert!(DataFilePath::parse(bad).is_err(), "{bad}");
        }
    }
}

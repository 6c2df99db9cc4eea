//! One setting: its definition, and its value from and to text.

use std::fmt;

/// A set of the bits in [`flags`].
pub type Flags = u32;

/// Properties of a setting; the numbers are those of `xt_setting.flags`.
pub mod flags {
    use super::Flags;

    /// Fixed while the engine runs.
    pub const STATIC: Flags = 0;
    /// Each session has its own value.
    pub const SESSION: Flags = 1;
    /// Can be changed while the engine runs.
    pub const DYNAMIC: Flags = 2;
    /// As an option it needs no value.
    pub const NO_VALUE: Flags = 4;
    /// As an option its value may be left out.
    pub const OPTIONAL_VALUE: Flags = 8;
    /// Accepted, without effect.
    pub const IGNORED: Flags = 16;
    /// Setting it starts something.
    pub const ACTION: Flags = 32;
}

/// Type, default and range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// ON or OFF; default.
    Bool(bool),
    /// Default, smallest, largest, multiple of (0: any).
    Uint(u64, u64, u64, u64),
    /// Default, smallest, largest.
    Double(f64, f64, f64),
    /// Number of the default, names.
    Enum(u32, &'static [&'static str]),
    /// Default.
    Text(&'static str),
}

/// One setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Definition {
    /// Full name.
    pub name: &'static str,
    /// Bits of [`flags`].
    pub flags: Flags,
    /// Type, default, range.
    pub kind: Kind,
    /// One sentence.
    pub doc: &'static str,
}

/// A value of a setting.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Bool 0 or 1, Uint, number of an Enum, bits of a Double.
    Number(u64),
    /// Text.
    Text(Box<str>),
}

/// Why a value or a name is not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingError {
    /// No such setting.
    Unknown(Box<str>),
    /// Fixed while the engine runs.
    ReadOnly(&'static str),
    /// Not in range, or not of the type; says what would be.
    Range(Box<str>),
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingError::Unknown(name) => write!(f, "unknown setting '{name}'"),
            SettingError::ReadOnly(name) => {
                write!(f, "{name} is read-only while the engine runs")
            }
            SettingError::Range(why) => f.write_str(why),
        }
    }
}

impl Definition {
    /// The default.
    pub fn default_value(&self) -> Value {
        match self.kind {
            Kind::Bool(on) => Value::Number(on as u64),
            Kind::Uint(default, ..) => Value::Number(default),
            Kind::Double(default, ..) => Value::Number(default.to_bits()),
            Kind::Enum(default, _) => Value::Number(default as u64),
            Kind::Text(default) => Value::Text(default.into()),
        }
    }

    /// True if every bit of `bits` is set.
    pub fn has(&self, bits: Flags) -> bool {
        self.flags & bits == bits
    }

    /// Reads a value from text.
    ///
    /// Numbers take K, M, G, T, P and E; a number that is no multiple of the block is rounded down
    /// to one, as MySQL does; one outside the range is refused.
    pub fn parse(&self, text: &str) -> Result<Value, SettingError> {
        let trimmed = text.trim();
        match self.kind {
            Kind::Bool(_) => parse_bool(trimmed)
                .map(|on| Value::Number(on as u64))
                .ok_or_else(|| self.bad(text, "expected ON or OFF")),
            Kind::Uint(_, min, max, block) => {
                let number =
                    parse_size(trimmed).ok_or_else(|| self.bad(text, "expected a whole number"))?;
                self.in_range(text, number, min, max, block)
            }
            Kind::Double(_, min, max) => match trimmed.parse::<f64>() {
                Ok(number) if number >= min && number <= max => Ok(Value::Number(number.to_bits())),
                _ => Err(self.bad(text, format!("expected a number from {min} to {max}"))),
            },
            Kind::Enum(_, names) => parse_enum(trimmed, names)
                .map(Value::Number)
                .ok_or_else(|| self.bad(text, format!("expected one of {}", names.join(", ")))),
            Kind::Text(_) if text.contains('\0') => Err(self.bad(text, "contains a NUL byte")),
            Kind::Text(_) => Ok(Value::Text(text.into())),
        }
    }

    fn in_range(
        &self,
        text: &str,
        number: u64,
        min: u64,
        max: u64,
        block: u64,
    ) -> Result<Value, SettingError> {
        if number < min || number > max {
            return Err(self.bad(text, format!("expected {min} to {max}")));
        }
        if self.name == "innodb_page_size" && !number.is_power_of_two() {
            return Err(self.bad(text, "expected 4096, 8192, 16384, 32768 or 65536"));
        }
        let rounded = number - number.checked_rem(block).unwrap_or(0);
        Ok(Value::Number(rounded.max(min)))
    }

    /// The value as text; `parse` reads it back.
    pub fn format(&self, value: &Value) -> String {
        match (self.kind, value) {
            (_, Value::Text(text)) => text.to_string(),
            (Kind::Bool(_), Value::Number(number)) => {
                if *number != 0 { "ON" } else { "OFF" }.to_string()
            }
            (Kind::Double(..), Value::Number(bits)) => format!("{:.6}", f64::from_bits(*bits)),
            (Kind::Enum(_, names), Value::Number(number)) => names
                .get(*number as usize)
                .copied()
                .unwrap_or("")
                .to_string(),
            (_, Value::Number(number)) => number.to_string(),
        }
    }

    fn bad(&self, text: &str, why: impl fmt::Display) -> SettingError {
        SettingError::Range(format!("'{text}' is not a value of {}: {why}", self.name).into())
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" | "yes" => Some(true),
        "off" | "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        "T" | "t" => 40,
        "P" | "p" => 50,
        "E" | "e" => 60,
        _ => return None,
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn parse_enum(text: &str, names: &[&str]) -> Option<u64> {
    let by_name = names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(text));
    let by_number = || {
        text.parse::<usize>()
            .ok()
            .filter(|&number| number < names.len())
    };
    // MySQL reads boolean words for enumerations that have ON and OFF.
    let by_word = || {
        let word = if parse_bool(text)? { "ON" } else { "OFF" };
        names
            .iter()
            .position(|name| name.eq_ignore_ascii_case(word))
    };
    by_name
        .or_else(by_number)
        .or_else(by_word)
        .map(|number| number as u64)
}

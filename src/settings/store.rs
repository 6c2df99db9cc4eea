//! The values of an instance.

use super::session::SessionSettings;
use super::table::SETTINGS;
use super::value::{Definition, Kind, SettingError, Value, flags};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Rank, RwLock};

/// Position of a setting in `SETTINGS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SettingId(usize);

impl SettingId {
    /// The setting of that full name; at compile time a wrong name does not compile.
    pub const fn of(name: &str) -> SettingId {
        let mut at = 0;
        while at < SETTINGS_COUNT {
            if same(SETTINGS[at].name.as_bytes(), name.as_bytes()) {
                return SettingId(at);
            }
            at += 1;
        }
        panic!("no such setting")
    }

    /// The setting that a user means: with or without `innodb_`, any case, `-` for `_`.
    pub fn find(name: &str) -> Result<SettingId, SettingError> {
        let mut full = name.trim().to_ascii_lowercase().replace('-', "_");
        if !full.starts_with("innodb_") {
            full.insert_str(0, "innodb_");
        }
        SETTINGS
            .binary_search_by(|setting| setting.name.cmp(full.as_str()))
            .map(SettingId)
            .map_err(|_| SettingError::Unknown(name.into()))
    }

    /// Its definition.
    pub fn definition(self) -> &'static Definition {
        &SETTINGS[self.0]
    }

    /// Its position in `SETTINGS`.
    pub fn position(self) -> usize {
        self.0
    }
}

const SETTINGS_COUNT: usize = SETTINGS.len();

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// All settings of one engine. Reads may come from any thread.
#[derive(Debug)]
pub struct Settings {
    numbers: Box<[AtomicU64]>,
    texts: RwLock<Box<[Box<str>]>>,
}

impl Default for Settings {
    fn default() -> Settings {
        let mut numbers = Vec::with_capacity(SETTINGS_COUNT);
        let mut texts = Vec::with_capacity(SETTINGS_COUNT);
        for setting in &SETTINGS {
            let (number, text) = match setting.default_value() {
                Value::Number(number) => (number, Box::default()),
                Value::Text(text) => (0, text),
            };
            numbers.push(AtomicU64::new(number));
            texts.push(text);
        }
        Settings {
            numbers: numbers.into(),
            texts: RwLock::new(Rank::Leaf, texts.into()),
        }
    }
}

impl Settings {
    /// A number.
    #[inline]
    pub fn uint(&self, id: SettingId) -> u64 {
        // Relaxed: invariant 3 of the module.
        self.numbers[id.0].load(Ordering::Relaxed)
    }

    /// ON or OFF.
    #[inline]
    pub fn is_on(&self, id: SettingId) -> bool {
        self.uint(id) != 0
    }

    /// A number with a fraction.
    pub fn double(&self, id: SettingId) -> f64 {
        f64::from_bits(self.uint(id))
    }

    /// The name of an enumeration's value.
    pub fn choice(&self, id: SettingId) -> &'static str {
        match id.definition().kind {
            Kind::Enum(_, names) => names[self.uint(id) as usize],
            _ => "",
        }
    }

    /// A text.
    pub fn text(&self, id: SettingId) -> Box<str> {
        self.texts.read()[id.0].clone()
    }

    /// Any value.
    pub fn get(&self, id: SettingId) -> Value {
        match id.definition().kind {
            Kind::Text(_) => Value::Text(self.text(id)),
            _ => Value::Number(self.uint(id)),
        }
    }

    /// Any value as text.
    pub fn get_text(&self, id: SettingId) -> String {
        id.definition().format(&self.get(id))
    }

    /// Stores a value that `Definition::parse` made, whatever the flags say: for the start, and for the
    /// engine's own adjustments.
    pub fn put(&self, id: SettingId, value: Value) {
        match value {
            Value::Number(number) => self.numbers[id.0].store(number, Ordering::Relaxed),
            Value::Text(text) => self.texts.write()[id.0] = text,
        }
    }

    /// Changes a setting of a running engine.
    ///
    /// # Errors
    /// `ReadOnly` if it is not dynamic, `Range`.
    pub fn set(&self, id: SettingId, text: &str) -> Result<(), SettingError> {
        let definition = id.definition();
        if !definition.has(flags::DYNAMIC) {
            return Err(SettingError::ReadOnly(definition.name));
        }
        self.put(id, definition.parse(text)?);
        Ok(())
    }

    /// Applies one start option: "name=value", "name" (ON), "skip_name" (OFF).
    ///
    /// # Errors
    /// `Unknown`, `Range`.
    pub fn apply_option(&self, option: &str) -> Result<(), SettingError> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        let skipped = name.trim().to_ascii_lowercase().replace('-', "_");
        let (id, value) = match (SettingId::find(name), skipped.strip_prefix("skip_"), value) {
            (Ok(id), _, value) => (id, value.map_or_else(|| implied(id), Ok)?),
            (Err(_), Some(rest), None) => (SettingId::find(rest)?, "OFF"),
            (Err(error), ..) => return Err(error),
        };
        self.put(id, id.definition().parse(value)?);
        Ok(())
    }

    /// Start values for a new session.
    pub fn for_session(&self) -> SessionSettings {
        SessionSettings::new(self)
    }
}

/// The value of an option that was given without one.
fn implied(id: SettingId) -> Result<&'static str, SettingError> {
    match id.definition().kind {
        Kind::Bool(_) => Ok("ON"),
        Kind::Text(_) => Ok(""),
        _ => Err(SettingError::Range(
            format!("{} needs a value", id.definition().name).into(),
        )),
    }
}

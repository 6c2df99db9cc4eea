//! The values of one session, for the few settings that have one per session.

use super::store::{SettingId, Settings};
use super::table::SETTINGS;
use super::value::{Definition, SettingError, Value, flags};

/// Values of one session; they start as the global ones.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    values: Box<[(SettingId, Value)]>,
}

impl SessionSettings {
    pub(super) fn new(global: &Settings) -> SessionSettings {
        let values = SETTINGS
            .iter()
            .filter(|setting| setting.has(flags::SESSION))
            .map(|setting| SettingId::of(setting.name))
            .map(|id| (id, global.get(id)))
            .collect();
        SessionSettings { values }
    }

    fn value(&self, id: SettingId) -> Option<&Value> {
        self.values
            .iter()
            .find(|(own, _)| *own == id)
            .map(|(_, value)| value)
    }

    /// A number or a switch; 0 for settings that sessions do not have.
    pub fn uint(&self, id: SettingId) -> u64 {
        match self.value(id) {
            Some(Value::Number(number)) => *number,
            _ => 0,
        }
    }

    /// ON or OFF.
    pub fn is_on(&self, id: SettingId) -> bool {
        self.uint(id) != 0
    }

    /// The session's value as text, the global one where it has none of its own.
    pub fn get_text(&self, id: SettingId, global: &Settings) -> String {
        match self.value(id) {
            Some(value) => id.definition().format(value),
            None => global.get_text(id),
        }
    }

    /// Changes the session's value.
    ///
    /// # Errors
    /// `Range`; `ReadOnly` if sessions have no value of their own.
    pub fn set(&mut self, id: SettingId, text: &str) -> Result<(), SettingError> {
        let definition: &Definition = id.definition();
        let own = self.values.iter_mut().find(|(own, _)| *own == id);
        let Some((_, value)) = own else {
            return Err(SettingError::ReadOnly(definition.name));
        };
        *value = definition.parse(text)?;
        Ok(())
    }
}

//! SHOW STATUS.

use super::{Sink, Value};
use crate::engine::Engine;
use crate::settings::Counter;
use crate::sync::Arc;
use crate::words::Result;

/// Status variables that are text, or ON and OFF.
const TEXTS: [(&str, &str); 9] = [
    ("Innodb_buffer_pool_dump_status", ""),
    ("Innodb_buffer_pool_load_incomplete", "OFF"),
    ("Innodb_buffer_pool_load_status", ""),
    ("Innodb_buffer_pool_resize_status", ""),
    ("Innodb_have_bzip2", "OFF"),
    ("Innodb_have_lz4", "OFF"),
    ("Innodb_have_lzma", "OFF"),
    ("Innodb_have_lzo", "OFF"),
    ("Innodb_have_snappy", "OFF"),
];

/// Emits (name, value) for every status variable, sorted by name.
///
/// # Errors
/// What the sink returns.
pub fn status(engine: &Arc<Engine>, sink: &mut Sink<'_>) -> Result<()> {
    engine.refresh_counters();
    let counters = engine.counters();
    let mut texts = TEXTS.iter().peekable();
    for counter in Counter::ALL {
        let name = counter.name();
        while let Some((text_name, value)) = texts.next_if(|(text_name, _)| *text_name < name) {
            sink(&[Value::Text(text_name), Value::Text(value)])?;
        }
        if texts.next_if(|(text_name, _)| *text_name == name).is_some() {
            // A switch that a counter keeps.
            let word = if counters.get(*counter) != 0 {
                "ON"
            } else {
                "OFF"
            };
            sink(&[Value::Text(name), Value::Text(word)])?;
            continue;
        }
        sink(&[Value::Text(name), Value::Uint(counters.get(*counter))])?;
    }
    for (name, value) in texts {
        sink(&[Value::Text(name), Value::Text(value)])?;
    }
    Ok(())
}

//! SHOW STATUS.

use super::{Sink, Value};
use crate::engine::Engine;
use crate::settings::Counter;
use crate::sync::Arc;
use crate::words::Result;

/// Status variables that are text, or ON and OFF; OFF is what those without a text are.
const TEXTS: [&str; 9] = [
    "Innodb_buffer_pool_dump_status",
    "Innodb_buffer_pool_load_incomplete",
    "Innodb_buffer_pool_load_status",
    "Innodb_buffer_pool_resize_status",
    "Innodb_have_bzip2",
    "Innodb_have_lz4",
    "Innodb_have_lzma",
    "Innodb_have_lzo",
    "Innodb_have_snappy",
];

fn text_of(engine: &Engine, name: &str) -> Box<str> {
    match name {
        "Innodb_buffer_pool_dump_status" => engine.dump_status(),
        "Innodb_buffer_pool_load_status" => engine.load_status(),
        "Innodb_buffer_pool_resize_status" => engine.resize_status(),
        _ => "OFF".into(),
    }
}

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
        while let Some(text) = texts.next_if(|text| **text < name) {
            sink(&[Value::Text(text), Value::Text(&text_of(engine, text))])?;
        }
        if texts.next_if(|text| **text == name).is_some() {
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
    for text in texts {
        sink(&[Value::Text(text), Value::Text(&text_of(engine, text))])?;
    }
    Ok(())
}

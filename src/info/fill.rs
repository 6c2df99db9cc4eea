//! The rows of the INFORMATION_SCHEMA tables.

use super::tables::{LOCK_MODES, LOCK_TYPES, Table};
use super::{Sink, Value};
use crate::engine::{Engine, LockRow, TransactionRow};
use crate::sync::Arc;
use crate::words::{Error, Result};

/// Emits all rows of a table.
///
/// # Errors
/// What the sink returns; `Internal` if the table has no rows here.
pub fn fill(engine: &Arc<Engine>, table: &Table, sink: &mut Sink<'_>) -> Result<()> {
    match table.name {
        "INNODB_TRX" => transactions(engine, sink),
        "INNODB_LOCKS" => locks(engine, sink),
        "INNODB_LOCK_WAITS" => lock_waits(engine, sink),
        "INNODB_CMP" | "INNODB_CMP_RESET" => cmp(sink),
        "INNODB_CMPMEM" | "INNODB_CMPMEM_RESET" => cmpmem(sink),
        "XTRADB_MEMORY" => memory(engine, sink),
        "XTRADB_RECOVERY" => recovery(engine, sink),
        name => Err(Error::internal(format!("{name} has no provider"))),
    }
}

fn optional_text(text: &Option<Box<str>>) -> Value<'_> {
    text.as_deref().map_or(Value::Null, Value::Text)
}

fn transactions(engine: &Arc<Engine>, sink: &mut Sink<'_>) -> Result<()> {
    for row in engine.lock_report().transactions.iter() {
        sink(&transaction(row))?;
    }
    Ok(())
}

fn transaction(row: &TransactionRow) -> [Value<'_>; 22] {
    [
        Value::Uint(row.id),
        Value::Text(row.state),
        Value::DateTime(row.started_s),
        optional_text(&row.requested_lock_id),
        row.wait_started_s.map_or(Value::Null, Value::DateTime),
        Value::Uint(row.rows_modified + row.lock_structs),
        Value::Uint(row.connection_id),
        optional_text(&row.query),
        row.operation.map_or(Value::Null, Value::Text),
        Value::Uint(row.tables_in_use),
        Value::Uint(row.tables_locked),
        Value::Uint(row.lock_structs),
        Value::Uint(row.lock_bytes),
        Value::Uint(row.rows_locked),
        Value::Uint(row.rows_modified),
        Value::Uint(0),
        Value::Enum(row.isolation as u32),
        Value::Int(row.unique_checks as i64),
        Value::Int(row.foreign_key_checks as i64),
        Value::Null,
        Value::Int(row.read_only as i64),
        Value::Int(row.autocommit_non_locking as i64),
    ]
}

fn locks(engine: &Arc<Engine>, sink: &mut Sink<'_>) -> Result<()> {
    for row in engine.lock_report().locks.iter() {
        sink(&lock(row))?;
    }
    Ok(())
}

fn lock(row: &LockRow) -> [Value<'_>; 10] {
    let place = |names: &[&str], name: &str| {
        Value::Enum(names.iter().position(|known| *known == name).unwrap_or(0) as u32)
    };
    let number = |part: fn(&(u32, u32, u32)) -> u32| {
        row.record
            .as_ref()
            .map_or(Value::Null, |record| Value::Uint(part(record) as u64))
    };
    [
        Value::Text(&row.id),
        Value::Uint(row.trx_id),
        place(LOCK_MODES, row.mode),
        place(
            LOCK_TYPES,
            if row.record.is_some() {
                "RECORD"
            } else {
                "TABLE"
            },
        ),
        Value::Text(&row.table),
        optional_text(&row.index),
        number(|record| record.0),
        number(|record| record.1),
        number(|record| record.2),
        optional_text(&row.data),
    ]
}

fn lock_waits(engine: &Arc<Engine>, sink: &mut Sink<'_>) -> Result<()> {
    for row in engine.lock_report().waits.iter() {
        sink(&[
            Value::Uint(row.requesting_trx_id),
            Value::Text(&row.requested_lock_id),
            Value::Uint(row.blocking_trx_id),
            Value::Text(&row.blocking_lock_id),
        ])?;
    }
    Ok(())
}

fn memory(engine: &Arc<Engine>, sink: &mut Sink<'_>) -> Result<()> {
    for row in engine.memory() {
        sink(&[
            Value::Text(row.name),
            Value::Uint(row.in_use),
            Value::Uint(row.limit),
        ])?;
    }
    Ok(())
}

fn recovery(engine: &Arc<Engine>, sink: &mut Sink<'_>) -> Result<()> {
    let report = engine.recovery_report();
    let seconds = |time: std::time::Duration| Value::Uint(time.as_secs_f64().ceil() as u64);
    sink(&[
        Value::Text(report.phase.name()),
        Value::Uint(report.checkpoint.0),
        Value::Uint(report.end.0),
        Value::Uint(report.end.0 - report.checkpoint.0),
        Value::Uint(report.scan.as_millis() as u64),
        Value::Uint(report.pages),
        Value::Uint(report.pages_pending),
        Value::Uint(report.pages_missing),
        Value::Uint(report.bytes),
        Value::Uint(report.bytes_pending),
        Value::Uint(report.percent()),
        seconds(report.elapsed),
        report.left.map_or(Value::Null, seconds),
    ])
}

/// Sizes of compressed pages.
const COMPRESSED_SIZES: [i64; 5] = [1024, 2048, 4096, 8192, 16384];

/// No compressed page is written or read by this version: the counts are truly 0.
fn cmp(sink: &mut Sink<'_>) -> Result<()> {
    for size in COMPRESSED_SIZES {
        let zero = Value::Int(0);
        sink(&[Value::Int(size), zero, zero, zero, zero, zero])?;
    }
    Ok(())
}

/// No memory is given to compressed pages.
fn cmpmem(sink: &mut Sink<'_>) -> Result<()> {
    for size in COMPRESSED_SIZES {
        let zero = Value::Int(0);
        sink(&[Value::Int(size), zero, zero, zero, zero, zero])?;
    }
    Ok(())
}

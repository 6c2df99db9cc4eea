//! SHOW ENGINE INNODB STATUS: the monitor's text, in InnoDB's order of sections.

use std::fmt::Write;

use crate::engine::{Engine, TransactionRow};
use crate::settings::{Counter, Counters};
use crate::sync::Arc;

/// The whole text.
pub fn monitor_text(engine: &Arc<Engine>) -> String {
    engine.refresh_counters();
    let counters = engine.counters();
    let mut out = String::with_capacity(4096);
    line(&mut out, "");
    line(&mut out, "=====================================");
    line(&mut out, "INNODB MONITOR OUTPUT");
    line(&mut out, "=====================================");
    if let Some(why) = engine.stopped() {
        section(&mut out, "ENGINE STOPPED");
        line(&mut out, &why);
    }
    section(&mut out, "BACKGROUND THREAD");
    let loops = |counter| counters.get(counter);
    line(
        &mut out,
        &format!(
            "srv_master_thread loops: {} srv_active, 0 srv_shutdown, {} srv_idle",
            loops(Counter::MasterThreadActiveLoops),
            loops(Counter::MasterThreadIdleLoops)
        ),
    );
    transactions(&mut out, engine, counters);
    io(&mut out, counters);
    log(&mut out, counters);
    pool(&mut out, counters);
    line(&mut out, "----------------------------");
    line(&mut out, "END OF INNODB MONITOR OUTPUT");
    line(&mut out, "============================");
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn section(out: &mut String, title: &str) {
    let rule = "-".repeat(title.len());
    let _ = writeln!(out, "{rule}\n{title}\n{rule}");
}

fn transactions(out: &mut String, engine: &Arc<Engine>, counters: &Counters) {
    section(out, "TRANSACTIONS");
    let _ = writeln!(out, "Trx id counter {}", counters.get(Counter::MaxTrxId));
    let _ = writeln!(
        out,
        "History list length {}",
        counters.get(Counter::HistoryListLength)
    );
    line(out, "LIST OF TRANSACTIONS FOR EACH SESSION:");
    for row in &engine.lock_report().transactions {
        transaction(out, row);
    }
}

fn transaction(out: &mut String, row: &TransactionRow) {
    let _ = writeln!(out, "---TRANSACTION {}, {}", row.id, row.state);
    if row.tables_in_use > 0 || row.tables_locked > 0 {
        let _ = writeln!(
            out,
            "mysql tables in use {}, locked {}",
            row.tables_in_use, row.tables_locked
        );
    }
    let _ = writeln!(
        out,
        "{} lock struct(s), heap size {}, {} row lock(s), undo log entries {}",
        row.lock_structs, row.lock_bytes, row.rows_locked, row.rows_modified
    );
    let _ = writeln!(out, "MariaDB thread id {}", row.connection_id);
    if let Some(query) = &row.query {
        line(out, query);
    }
}

fn io(out: &mut String, counters: &Counters) {
    section(out, "FILE I/O");
    let _ = writeln!(
        out,
        "{} OS file reads, {} OS file writes, {} OS fsyncs",
        counters.get(Counter::DataReads),
        counters.get(Counter::DataWrites),
        counters.get(Counter::DataFsyncs)
    );
}

fn log(out: &mut String, counters: &Counters) {
    section(out, "LOG");
    let _ = writeln!(
        out,
        "Log sequence number {}",
        counters.get(Counter::LsnCurrent)
    );
    let _ = writeln!(
        out,
        "Log flushed up to   {}",
        counters.get(Counter::LsnFlushed)
    );
    let _ = writeln!(
        out,
        "Last checkpoint at  {}",
        counters.get(Counter::LsnLastCheckpoint)
    );
    let _ = writeln!(
        out,
        "Checkpoint age {}, at most {}",
        counters.get(Counter::CheckpointAge),
        counters.get(Counter::CheckpointMaxAge)
    );
}

fn pool(out: &mut String, counters: &Counters) {
    section(out, "BUFFER POOL AND MEMORY");
    let lines = [
        ("Dictionary memory allocated", Counter::MemDictionary),
        ("Buffer pool size  ", Counter::BufferPoolPagesTotal),
        ("Free buffers      ", Counter::BufferPoolPagesFree),
        ("Database pages    ", Counter::BufferPoolPagesData),
        ("Old database pages", Counter::BufferPoolPagesOld),
        ("Modified db pages ", Counter::BufferPoolPagesDirty),
    ];
    for (text, counter) in lines {
        let _ = writeln!(out, "{text} {}", counters.get(counter));
    }
    let _ = writeln!(
        out,
        "Pages read {}, created {}, written {}",
        counters.get(Counter::PagesRead),
        counters.get(Counter::PagesCreated),
        counters.get(Counter::PagesWritten)
    );
}

//! Writes docs/benchmarks.md from the parts that were measured.

use crate::cells::CELLS;
use crate::engine::Result;
use crate::goals::{self, Goal, OURS, PEERS, Verdict};
use crate::options::Options;
use crate::rounds::shown;
use crate::store::{Part, Spread};
use crate::{chart, engines};
use std::fmt::Write as _;
use std::fs;

const RECOVERY_CELLS: [(&str, &str); 4] = [
    (
        "select-large",
        "first SELECT, pool larger than the dirty pages",
    ),
    ("applied-large", "all applied, the same pool"),
    (
        "select-small",
        "first SELECT, pool a sixth of the dirty pages",
    ),
    ("applied-small", "all applied, the same pool"),
];

pub fn write(options: &Options) -> Result<()> {
    let part = |name: &str| Part::load(&options.work.join(format!("{name}.txt")));
    let (points, device) = (part("points"), part("device"));
    let mut text = String::from(
        "# Benchmarks\n\nWritten by `make bench`, which measures everything here side by side in one \
         run. Compare figures of one run with each other only.\n\n",
    );
    let described = points.as_ref().or(device.as_ref());
    text += &machine(described.ok_or("nothing was measured yet")?)?;
    text += &points_table(points.as_ref(), device.as_ref())?;
    text += &device_section(device.as_ref())?;
    text += &memory_table(part("memory").as_ref())?;
    text += &tpcc_table(part("tpcc").as_ref())?;
    text += &recovery_table(part("recovery").as_ref())?;
    text += &setup(options)?;
    fs::write(&options.document, text)?;
    if let Some(points) = &points {
        fs::write(&options.picture, chart::draw(points))?;
    }
    println!(
        "written: {} and {}",
        options.document.display(),
        options.picture.display()
    );
    Ok(())
}

fn fact<'p>(part: &'p Part, name: &str) -> &'p str {
    part.facts.get(name).map_or("unknown", String::as_str)
}

fn machine(part: &Part) -> Result<String> {
    let mut text = String::new();
    for (what, name) in [
        ("Date", "date"),
        ("Processor", "processor"),
        ("Processors", "processors"),
        ("Memory", "memory"),
        ("Kernel", "kernel"),
        ("Compiler", "compiler"),
        ("xtradb", "commit"),
    ] {
        writeln!(text, "- {what}: {}", fact(part, name))?;
    }
    writeln!(
        text,
        "- Peers: heed {}, RocksDB {}, fjall {}, redb {}, SQLite {}",
        fact(part, "heed"),
        fact(part, "rocksdb"),
        fact(part, "fjall"),
        fact(part, "redb"),
        fact(part, "sqlite"),
    )?;
    Ok(text)
}

/// Median, and the range where there is one.
fn cell_text(cell: &str, spread: Option<Spread>) -> String {
    let Some(Spread { median, min, max }) = spread else {
        return "–".into();
    };
    // The highest rate is the shortest time.
    let (low, high) = match shown(cell, min).ends_with(" us") {
        true => (max, min),
        false => (min, max),
    };
    match min == max {
        true => shown(cell, median),
        false => format!(
            "{} ({}–{})",
            shown(cell, median),
            bare(cell, low),
            bare(cell, high)
        ),
    }
}

/// Without the unit.
fn bare(cell: &str, rate: f64) -> String {
    let text = shown(cell, rate);
    match text.strip_suffix("/s").or(text.strip_suffix(" us")) {
        Some(number) => number.trim_end().to_owned(),
        None => text,
    }
}

fn goal_text(goal: &Goal) -> String {
    match goal.verdict {
        Verdict::Hit => format!("{}: **hit** ({})", goal.text, goal.reached),
        Verdict::Missed => format!("{}: missed ({})", goal.text, goal.reached),
        Verdict::Open if goal.reached.is_empty() => goal.text.clone(),
        Verdict::Open => format!("{}: not measured", goal.text),
    }
}

fn points_table(points: Option<&Part>, device: Option<&Part>) -> Result<String> {
    let mut text = String::from("\n## One table, room for all rows\n\n");
    let Some(points) = points else {
        text.push_str("Not run.\n");
        return Ok(text);
    };
    writeln!(
        text,
        "{} rows of an 8-byte key in random order and 200 bytes; cache {} MiB for every engine; {} s \
         per figure. Each engine runs in a process of its own, once per round; the order changes from \
         round to round. Given is the median of the rounds (smallest–largest). The ratio is ours to \
         the best peer's speed: above 1 we are faster.\n\n{}\n\n![](benchmarks.svg)\n",
        fact(points, "rows"),
        fact(points, "cache"),
        fact(points, "seconds"),
        others(points),
    )?;
    writeln!(
        text,
        "| | xtradb | {} | BTreeMap | ratio to best | goal |",
        PEERS.join(" | ")
    )?;
    writeln!(text, "|---|{}", "---|".repeat(PEERS.len() + 4))?;
    for cell in &CELLS {
        write!(text, "| {} ", cell.what)?;
        for engine in [OURS].iter().chain(&PEERS).chain(&["btreemap"]) {
            write!(
                text,
                "| {} ",
                cell_text(cell.name, points.spread(engine, cell.name))
            )?;
        }
        let ours = points.median(OURS, cell.name);
        let ratio = match ours.zip(goals::best_peer(points, cell.name)) {
            Some((ours, (name, best))) => format!("{:.2} ({name})", ours / best),
            None => "–".into(),
        };
        let goal = goal_text(&goals::of(cell.name, points, device));
        writeln!(text, "| {ratio} | {goal} |")?;
    }
    text += &cost_table(points)?;
    let group = goal_text(&goals::group_commit(points));
    writeln!(text, "\nGroup commit, 16 threads at flush=1: {group}.")?;
    text += &failures(points)?;
    Ok(text)
}

/// What an operation costs in processor time: less at the mercy of what else runs.
fn cost_table(points: &Part) -> Result<String> {
    let mut text = String::from(
        "\nProcessor time per operation, microseconds, of all threads of the process (waiting does not \
         count, background work does):\n\n",
    );
    writeln!(text, "| | xtradb | {} | BTreeMap |", PEERS.join(" | "))?;
    writeln!(text, "|---|{}", "---|".repeat(PEERS.len() + 2))?;
    for cell in &CELLS {
        write!(text, "| {} |", cell.what)?;
        for engine in [OURS].iter().chain(&PEERS).chain(&["btreemap"]) {
            match points.cost(engine, cell.name) {
                Some(cost) => write!(text, " {cost:.2} |")?,
                None => write!(text, " – |")?,
            }
        }
        text.push('\n');
    }
    Ok(text)
}

/// How disturbed the run was.
fn others(part: &Part) -> String {
    let mut others: Vec<f64> = part.figures.iter().map(|one| one.others).collect();
    others.sort_by(f64::total_cmp);
    let at = |share: usize| {
        others
            .get(others.len() * share / 100)
            .copied()
            .unwrap_or(0.0)
    };
    let disturbed = if at(50) > 0.1 {
        " **The machine was not quiet: these figures only show scale.**"
    } else {
        ""
    };
    format!(
        "Processors kept busy by anything else (the kernel's threads too) while a figure was taken: \
         median {:.2}, 90 % of the figures at most {:.2}.{disturbed}",
        at(50),
        at(90)
    )
}

fn failures(part: &Part) -> Result<String> {
    let mut text = String::new();
    for (engine, why) in &part.failed {
        writeln!(text, "\n{engine} failed: {why}.")?;
    }
    Ok(text)
}

fn device_section(device: Option<&Part>) -> Result<String> {
    let mut text = String::from("\n## The device\n\n");
    let Some(device) = device else {
        text.push_str("Not run.\n");
        return Ok(text);
    };
    let rate =
        |threads: u64| cell_text("sync", device.spread("device", &format!("sync-{threads}")));
    writeln!(
        text,
        "fdatasync after overwriting 4 KiB of a file that has its blocks: {} with one thread, {} with \
         two, each on its own file.",
        rate(1),
        rate(2)
    )?;
    Ok(text)
}

fn memory_table(memory: Option<&Part>) -> Result<String> {
    let mut text = String::from("\n## Memory for a tenth of the rows\n\n");
    let Some(memory) = memory else {
        text.push_str("Not run.\n");
        return Ok(text);
    };
    if let Some(why) = memory.facts.get("not comparable") {
        writeln!(text, "Not comparable: {why}.")?;
        return Ok(text);
    }
    writeln!(
        text,
        "{} rows; each engine, with its process and the page cache that it uses, in a control group \
         of {} MiB; {} MiB of it are given to the engine's own cache. The rows were loaded before, \
         without the limit, and the page cache emptied. The load goes on into the full table.\n",
        fact(memory, "rows"),
        fact(memory, "limit"),
        fact(memory, "cache"),
    )?;
    writeln!(text, "| | xtradb | {} | ratio to best |", PEERS.join(" | "))?;
    writeln!(text, "|---|{}", "---|".repeat(PEERS.len() + 2))?;
    for name in ["get", "get-2", "update", "load"] {
        let what = CELLS
            .iter()
            .find(|cell| cell.name == name)
            .map_or(name, |cell| cell.what);
        write!(text, "| {what} ")?;
        for engine in [OURS].iter().chain(&PEERS) {
            write!(text, "| {} ", cell_text(name, memory.spread(engine, name)))?;
        }
        match memory
            .median(OURS, name)
            .zip(goals::best_peer(memory, name))
        {
            Some((ours, (peer, best))) => writeln!(text, "| {:.2} ({peer}) |", ours / best)?,
            None => writeln!(text, "| – |")?,
        }
    }
    text += &failures(memory)?;
    Ok(text)
}

fn tpcc_table(tpcc: Option<&Part>) -> Result<String> {
    let mut text = String::from("\n## TPC-C\n\n");
    let Some(tpcc) = tpcc else {
        text.push_str("Not run.\n");
        return Ok(text);
    };
    writeln!(
        text,
        "{} warehouses ({} MiB), flush=2, {} s each after 3 s of warm-up; \"a tenth\" is a pool of {} \
         MiB. Consistent afterwards: {}.\n",
        fact(tpcc, "warehouses"),
        fact(tpcc, "data"),
        fact(tpcc, "seconds"),
        fact(tpcc, "small pool"),
        fact(tpcc, "consistent"),
    )?;
    writeln!(
        text,
        "| threads | tx/s in memory | NOTPM | worst second of the mean | tx/s with a tenth | worst second of the mean |\n\
         |---|---|---|---|---|---|"
    )?;
    for threads in threads_of(tpcc) {
        let get = |name: &str, what: &str, digits: usize| {
            let value = tpcc.median(name, &format!("{what}-{threads}"));
            value.map_or("–".into(), |value| format!("{value:.digits$}"))
        };
        writeln!(
            text,
            "| {threads} | {} | {} | {} | {} | {} |",
            get("memory", "rate", 0),
            get("memory", "notpm", 0),
            get("memory", "worst", 2),
            get("tenth", "rate", 0),
            get("tenth", "worst", 2),
        )?;
    }
    text += &tpcc_goals(tpcc)?;
    text += &failures(tpcc)?;
    Ok(text)
}

fn threads_of(tpcc: &Part) -> Vec<u64> {
    let cells = tpcc.figures.iter().map(|one| one.cell.as_str());
    let mut threads: Vec<u64> = cells
        .filter_map(|cell| cell.strip_prefix("rate-")?.parse().ok())
        .collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

fn tpcc_goals(tpcc: &Part) -> Result<String> {
    let threads = threads_of(tpcc);
    let rate = |threads: &u64| tpcc.median("memory", &format!("rate-{threads}"));
    let best = threads.iter().filter_map(rate).max_by(f64::total_cmp);
    let mut text = String::new();
    let says = |held: bool| if held { "**hit**" } else { "missed" };
    if let Some((most, best)) = rate(&64).zip(best) {
        let share = most / best;
        writeln!(
            text,
            "\n64 threads ≥ 0.95 × the best: {} ({share:.2}).",
            says(share >= 0.95)
        )?;
    }
    let worst = threads
        .iter()
        .filter_map(|threads| tpcc.median("tenth", &format!("worst-{threads}")))
        .min_by(f64::total_cmp);
    if let Some(worst) = worst {
        writeln!(
            text,
            "\nWorst second ≥ 0.6 × the mean with a tenth: {} ({worst:.2}).",
            says(worst >= 0.6)
        )?;
    }
    Ok(text)
}

fn recovery_table(recovery: Option<&Part>) -> Result<String> {
    let mut text = String::from("\n## Recovery\n\n");
    let Some(recovery) = recovery else {
        text.push_str("Not run.\n");
        return Ok(text);
    };
    writeln!(
        text,
        "{} MiB of redo over {} pages ({}); each server on a copy of the same crashed directory; pools \
         of {} and {} MiB. Seconds since the start.\n",
        fact(recovery, "redo"),
        fact(recovery, "pages"),
        fact(recovery, "made"),
        fact(recovery, "large"),
        fact(recovery, "small"),
    )?;
    writeln!(
        text,
        "| | xtradb | {} | times sooner | goal |\n|---|---|---|---|---|",
        fact(recovery, "stock")
    )?;
    for (cell, what) in RECOVERY_CELLS {
        let (ours, stock) = (recovery.median(OURS, cell), recovery.median("stock", cell));
        let seconds =
            |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.2}"));
        let wanted = if cell.starts_with("select") { 8.0 } else { 3.0 };
        let ratio = ours.zip(stock).map(|(ours, stock)| stock / ours);
        let (ratio, verdict) = match ratio {
            Some(ratio) if ratio >= wanted => (format!("{ratio:.1}"), "**hit**"),
            Some(ratio) => (format!("{ratio:.1}"), "missed"),
            None => ("–".into(), "not measured"),
        };
        writeln!(
            text,
            "| {what} | {} | {} | {ratio} | ≥ {wanted}: {verdict} |",
            seconds(ours),
            seconds(stock)
        )?;
    }
    text += &failures(recovery)?;
    Ok(text)
}

fn setup(options: &Options) -> Result<String> {
    let mut text = String::from(
        "\n## How each engine is set up\n\nEvery value is read whole (all its bytes are summed up), \
         wherever it lies. flush=2: a commit is handed to the operating system; flush=1: it is on the \
         device. No engine compresses.\n\n",
    );
    for (name, how) in engines::HOW {
        writeln!(text, "- **{name}**: {how}")?;
    }
    if !options.settings.is_empty() {
        writeln!(
            text,
            "\nSettings of xtradb beside that: {}.",
            options.settings.join(", ")
        )?;
    }
    writeln!(
        text,
        "\nAgain: `make bench`; smaller: `make bench ROWS=200000 ROUNDS=1 ONLY=points,device`. The \
         program is benches/peers, what it measured lies in target/bench."
    )?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_begins_with_the_smaller_figure() {
        let spread = Spread::of([1e6, 2e6, 4e6]);
        assert_eq!(cell_text("get", spread), "0.50 us (0.25–1.00)");
        assert_eq!(cell_text("scan", spread), "2.00 M/s (1.00 M–4.00 M)");
        assert_eq!(cell_text("scan", None), "–");
    }
}

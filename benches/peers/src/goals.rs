//! What the figures are held against: ratios within one run, per cell.

use crate::store::Part;

/// Everyone but xtradb and the yardstick.
pub const PEERS: [&str; 5] = ["lmdb", "rocksdb", "fjall", "redb", "sqlite"];
pub const OURS: &str = "xtradb";

pub enum Verdict {
    Hit,
    Missed,
    /// No goal, or a figure that it needs is not there.
    Open,
}

/// A goal in words, what we reached of it, and whether that is enough.
pub struct Goal {
    pub text: String,
    pub reached: String,
    pub verdict: Verdict,
}

impl Goal {
    fn none() -> Goal {
        Goal {
            text: "–".into(),
            reached: String::new(),
            verdict: Verdict::Open,
        }
    }

    /// At least `wanted` times a rate.
    fn at_least(wanted: f64, of: &str, ours: Option<f64>, theirs: Option<f64>) -> Goal {
        let ratio = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
        Goal {
            text: format!("≥ {wanted} × {of}"),
            reached: ratio.map_or("–".into(), |ratio| format!("{ratio:.2} ×")),
            verdict: verdict(ratio.map(|ratio| ratio >= wanted)),
        }
    }

    /// At most `wanted` times a time; the figures are rates.
    fn at_most(wanted: f64, of: &str, ours: Option<f64>, theirs: Option<f64>) -> Goal {
        let ratio = ours.zip(theirs).map(|(ours, theirs)| theirs / ours);
        Goal {
            text: format!("≤ {wanted} × {of}"),
            reached: ratio.map_or("–".into(), |ratio| format!("{ratio:.2} ×")),
            verdict: verdict(ratio.map(|ratio| ratio <= wanted)),
        }
    }

    fn and_faster_than_all_but(mut self, points: &Part, cell: &str, but: &str) -> Goal {
        let ours = points.median(OURS, cell);
        let others = PEERS.iter().filter(|name| **name != but);
        let best = others
            .filter_map(|name| points.median(name, cell))
            .max_by(f64::total_cmp);
        self.text.push_str(", faster than all others");
        if let Some((ours, best)) = ours.zip(best) {
            self.reached
                .push_str(&format!(", {:.2} × the best other", ours / best));
            if ours < best {
                self.verdict = Verdict::Missed;
            }
        }
        self
    }
}

fn verdict(held: Option<bool>) -> Verdict {
    match held {
        Some(true) => Verdict::Hit,
        Some(false) => Verdict::Missed,
        None => Verdict::Open,
    }
}

/// The goal of one cell of the part `points`.
pub fn of(cell: &str, points: &Part, device: Option<&Part>) -> Goal {
    let ours = points.median(OURS, cell);
    let of = |engine: &str, cell: &str| points.median(engine, cell);
    match cell {
        "get" => Goal::at_most(1.3, "LMDB's time", ours, of("lmdb", cell))
            .and_faster_than_all_but(points, cell, "lmdb"),
        "get-alone" => Goal::at_most(1.7, "LMDB's time", ours, of("lmdb", cell)),
        "get-2" => Goal::at_least(1.9, "one thread", ours, of(OURS, "get")),
        "scan" => Goal::at_least(0.6, "LMDB", ours, of("lmdb", cell))
            .and_faster_than_all_but(points, cell, "lmdb"),
        "load" => Goal::at_least(1.15, "RocksDB", ours, of("rocksdb", cell)),
        "insert-1" => Goal::at_least(1.0, "RocksDB", ours, of("rocksdb", cell)),
        "insert-sync-1" => {
            let syncs = device.and_then(|part| part.median("device", "sync-1"));
            Goal::at_least(0.85, "the device's syncs", ours, syncs)
        }
        "insert-sync-16" => Goal::at_least(2.0, "RocksDB", ours, of("rocksdb", cell)),
        _ => Goal::none(),
    }
}

/// 16 threads against one, with synced commits.
pub fn group_commit(points: &Part) -> Goal {
    let rate = |cell| points.median(OURS, cell);
    Goal::at_least(
        6.0,
        "one thread",
        rate("insert-sync-16"),
        rate("insert-sync-1"),
    )
}

/// The best peer of a cell.
pub fn best_peer(points: &Part, cell: &str) -> Option<(&'static str, f64)> {
    PEERS
        .into_iter()
        .filter_map(|name| Some((name, points.median(name, cell)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rates: &[(&str, &str, f64)]) -> Part {
        let mut part = Part::default();
        for (engine, cell, rate) in rates {
            part.add(engine, cell, *rate);
        }
        part
    }

    #[test]
    fn a_time_is_held_against_lmdb_and_the_rest() {
        let near = figures(&[
            ("xtradb", "get", 0.8),
            ("lmdb", "get", 1.0),
            ("redb", "get", 0.5),
        ]);
        assert!(matches!(of("get", &near, None).verdict, Verdict::Hit));
        let slow = figures(&[
            ("xtradb", "get", 0.8),
            ("lmdb", "get", 1.0),
            ("redb", "get", 0.9),
        ]);
        assert!(matches!(of("get", &slow, None).verdict, Verdict::Missed));
        let alone = figures(&[("xtradb", "get", 0.8)]);
        assert!(matches!(of("get", &alone, None).verdict, Verdict::Open));
    }

    #[test]
    fn the_best_peer_is_neither_ours_nor_the_yardstick() {
        let rates = figures(&[
            ("xtradb", "get", 3.0),
            ("btreemap", "get", 9.0),
            ("lmdb", "get", 2.0),
            ("redb", "get", 1.0),
        ]);
        assert_eq!(best_peer(&rates, "get"), Some(("lmdb", 2.0)));
    }
}

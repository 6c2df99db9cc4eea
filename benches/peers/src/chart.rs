//! The picture: a panel for each figure, a bar for each engine, the fastest as long as the panel.

use crate::cells::CELLS;
use crate::goals::{OURS, PEERS};
use crate::rounds::shown;
use crate::store::Part;
use std::fmt::Write as _;

const COLUMNS: usize = 3;
const PANEL: (usize, usize) = (330, 158);
const BAR_HEIGHT: usize = 14;
const BAR_STEP: usize = 20;
const LABEL_WIDTH: usize = 62;
const BAR_WIDTH: f64 = 165.0;
const TOP: usize = 34;

const STYLE: &str = "text{font:12px sans-serif;fill:#222}.t{font-weight:bold}.o{fill:#c0392b}\
    .p{fill:#7f9bb3}.b{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#1b1b1b}}";

pub fn draw(points: &Part) -> String {
    let rows = CELLS.len().div_ceil(COLUMNS);
    let (width, height) = (COLUMNS * PANEL.0, TOP + rows * PANEL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>xtradb beside other engines</title>\n\
         <style>{STYLE}</style>\n<rect class=\"b\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"t\" x=\"10\" y=\"22\">Speed of each engine; the longer bar is the faster \
         one</text>\n"
    );
    for (number, cell) in CELLS.iter().enumerate() {
        let (x, y) = (
            number % COLUMNS * PANEL.0 + 10,
            number / COLUMNS * PANEL.1 + TOP,
        );
        let _ = writeln!(
            svg,
            "<text class=\"t\" x=\"{x}\" y=\"{}\">{}</text>",
            y + 14,
            cell.what
        );
        panel(&mut svg, points, cell.name, x, y + 22);
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, points: &Part, cell: &str, x: usize, y: usize) {
    let engines = [OURS].into_iter().chain(PEERS);
    let rates: Vec<(&str, Option<f64>)> = engines
        .map(|engine| (engine, points.median(engine, cell)))
        .collect();
    let best = rates
        .iter()
        .filter_map(|(_, rate)| *rate)
        .fold(0.0, f64::max);
    for (number, (engine, rate)) in rates.into_iter().enumerate() {
        let middle = y + number * BAR_STEP + 11;
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{middle}\">{engine}</text>");
        let Some(rate) = rate else { continue };
        let length = (rate / best * BAR_WIDTH).max(1.0);
        let class = if engine == OURS { "o" } else { "p" };
        let (left, top) = (x + LABEL_WIDTH, y + number * BAR_STEP);
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{length:.1}\" \
             height=\"{BAR_HEIGHT}\"/><text x=\"{:.1}\" y=\"{middle}\">{}</text>",
            left as f64 + length + 5.0,
            shown(cell, rate)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_has_a_bar_for_each_figure() {
        let mut points = Part::default();
        points.add("xtradb", "get", 1e6);
        points.add("lmdb", "get", 2e6);
        let svg = draw(&points);
        // The background is a rectangle too.
        assert_eq!(svg.matches("<rect").count(), 3);
        assert!(
            svg.contains("0.50 us") && svg.contains("width=\"82.5\""),
            "{svg}"
        );
    }
}

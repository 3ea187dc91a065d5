//! A picture of a dashboard as SVG: each panel at its place, with its lines, and the legend at their right.
//!
//! Left out: fonts and their widths. Those who look at the picture have other fonts, so names are cut by their length.

use std::collections::BTreeSet;

use super::axis::Axis;
use super::{Dashboard, Line, Panel, Place, Time};

const WIDTH: f64 = 1200.0;
/// The dashboard's title.
const HEAD: f64 = 48.0;
const GAP: f64 = 10.0;
/// Grafana's grid.
const COLUMN: f64 = (WIDTH - GAP) / 24.0;
const ROW: f64 = 27.0;
/// Between the edges of a panel and of its lines.
const LEFT: f64 = 62.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 28.0;
const LEGEND: f64 = 258.0;
/// What fits into a legend.
const NAMES: usize = 8;
/// Of a name that is cut: so many letters at each end.
const HALF: usize = 11;

/// Grafana's first colours.
const COLOURS: [&str; 10] =
    ["#5aa454", "#d9a514", "#3f8fc8", "#e5702a", "#d93f3f", "#7b61c4", "#b5479c", "#3a9c95", "#8a6d3b", "#6b7785"];

const STYLE: &str = "\
text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#3c4048}\
.h{font-size:20px;font-weight:600}.t{font-size:14px;font-weight:600}.a{fill:#777c85;font-size:11px}\
.e{text-anchor:end}.m{text-anchor:middle}.g{stroke:#e6e8eb;fill:none}\
.l{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}";

/// The dashboard with the lines of each panel in this time.
pub fn picture(dashboard: &Dashboard, lines: &[Vec<Line>], time: &Time) -> String {
    let rows = dashboard.panels.iter().map(|panel| panel.grid_pos.y + panel.grid_pos.h).max().unwrap_or_default();
    let height = HEAD + f64::from(rows) * ROW + GAP;
    let panels: String = dashboard.panels.iter().zip(lines).map(|(panel, lines)| drawn(panel, lines, time)).collect();
    let title = escaped(&dashboard.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#f2f3f5\"/>\n\
         <text class=\"h\" x=\"{GAP}\" y=\"31\">{title}</text>\n{panels}</svg>\n"
    )
}

fn drawn(panel: &Panel, lines: &[Line], time: &Time) -> String {
    let Panel { title, grid_pos: Place { x, y, w, h }, field_config, .. } = panel;
    let (x, y) = (GAP + f64::from(*x) * COLUMN, HEAD + f64::from(*y) * ROW);
    let (width, height) = (f64::from(*w) * COLUMN - GAP, f64::from(*h) * ROW - GAP);
    let mut lines: Vec<&Line> = lines.iter().collect();
    lines.sort_by(|one, other| other.max().total_cmp(&one.max()).then_with(|| one.name.cmp(&other.name)));
    let max = lines.first().map_or(0.0, |line| line.max());
    let axis = Axis::new(&field_config.defaults.unit, max);
    let chart = Chart { width: width - LEFT - LEGEND, height: height - TOP - BOTTOM, top: axis.at(axis.ticks), time };
    let content = if lines.is_empty() {
        text("a m", f64::midpoint(chart.width, LEGEND), chart.height / 2.0, "No data")
    } else {
        chart.lines(&lines) + &legend(&lines, &axis, chart.width + 18.0)
    };
    format!(
        "<g transform=\"translate({} {})\">\n\
         <rect width=\"{}\" height=\"{}\" rx=\"3\" fill=\"#fff\" stroke=\"#dcdfe3\"/>\n{}\
         <g transform=\"translate({LEFT} {TOP})\">\n{}{content}</g>\n</g>\n",
        short(x),
        short(y),
        short(width),
        short(height),
        text("t", 12.0, 23.0, title),
        chart.grid(&axis),
    )
}

/// Where the lines are: to the right of and below this group's origin.
struct Chart<'a> {
    width: f64,
    height: f64,
    /// The value at the upper edge.
    top: f64,
    time: &'a Time,
}

impl Chart<'_> {
    fn x(&self, time: f64) -> f64 {
        (time - self.time.start) / (self.time.end - self.time.start) * self.width
    }

    fn y(&self, value: f64) -> f64 {
        self.height - value / self.top * self.height
    }

    /// The ticks of both axes: values, and minutes since the beginning.
    fn grid(&self, axis: &Axis) -> String {
        let values = (0..=axis.ticks).map(|tick| {
            let (value, right) = (axis.at(tick), short(self.width));
            let y = short(self.y(value));
            format!(
                "<path class=\"g\" d=\"M0 {y}h{right}\"/>{}",
                text("a e", -8.0, self.y(value) + 4.0, &axis.text(value))
            )
        });
        let minutes = (0..).map(|minute| (minute, self.time.start + f64::from(minute) * 60.0));
        let times = minutes.take_while(|(_, time)| *time <= self.time.end).map(|(minute, time)| {
            let name = if minute == 0 { "0".to_owned() } else { format!("{minute} min") };
            text("a m", self.x(time), self.height + 18.0, &name)
        });
        values.chain(times).chain(["\n".to_owned()]).collect()
    }

    /// The highest line is drawn last. Of lines at the same places only the last is there to be seen.
    fn lines(&self, lines: &[&Line]) -> String {
        let mut seen = BTreeSet::new();
        let paths = lines.iter().enumerate().map(|(at, line)| (colour(at), self.line(line)));
        let paths = paths.filter(|(_, path)| seen.insert(path.clone()));
        let mut paths: Vec<String> =
            paths.map(|(colour, path)| format!("<path stroke=\"{colour}\" d=\"{path}\"/>\n")).collect();
        paths.reverse();
        format!("<g class=\"l\">\n{}</g>\n", paths.concat())
    }

    /// Nothing is drawn over a time that has no points.
    fn line(&self, line: &Line) -> String {
        let parts = line.points.chunk_by(|one, next| next.0 - one.0 < 1.5 * self.time.step);
        parts.map(|points| self.part(points)).collect()
    }

    /// A path of relative steps, which takes half the bytes, with the ends of its level parts alone.
    fn part(&self, points: &[(f64, f64)]) -> String {
        let places: Vec<(f64, f64)> =
            points.iter().map(|(time, value)| (self.x(*time).round(), self.y(*value).round())).collect();
        let is_level = |places: &[(f64, f64)]| places.windows(2).all(|two| (two[0].1 - two[1].1).abs() < 0.5);
        let is_between = |at: usize| at > 0 && places.get(at - 1..at + 2).is_some_and(is_level);
        let bends: Vec<_> = (0..places.len()).filter(|at| !is_between(*at)).filter_map(|at| places.get(at)).collect();
        let steps =
            bends.windows(2).map(|two| format!(" {} {}", short(two[1].0 - two[0].0), short(two[1].1 - two[0].1)));
        // One point alone is a dot.
        let steps: String = if bends.len() < 2 { " 0 0".to_owned() } else { steps.collect() };
        bends.first().map_or_else(String::new, |(x, y)| format!("M{} {}l{}", short(*x), short(*y), steps.trim_start()))
    }
}

/// The names of the highest lines with their maxima.
fn legend(lines: &[&Line], axis: &Axis, x: f64) -> String {
    let end = x + LEGEND - 30.0;
    let y = |row: usize| f64::from(u32::try_from(row).unwrap_or(u32::MAX)) * 17.0;
    let names = lines.iter().take(NAMES).enumerate().map(|(at, line)| {
        let (y, colour) = (y(at + 1), colour(at));
        let key = format!(
            "<path class=\"l\" stroke=\"{colour}\" stroke-width=\"3\" d=\"M{} {}h10\"/>",
            short(x),
            short(y - 4.0)
        );
        format!("{key}{}{}\n", text("", x + 16.0, y, &cut(&line.name)), text("e", end, y, &axis.text(line.max())))
    });
    let more = lines.len().saturating_sub(NAMES);
    let more = (more > 0).then(|| text("a", x + 16.0, y(NAMES + 1), &format!("and {more} more")));
    std::iter::once(text("a e", end, 0.0, "max")).chain(names).chain(more).collect()
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

/// The name without what all names of operators have in common, and without its middle if it is long.
fn cut(name: &str) -> String {
    let letters: Vec<char> = name.replace("-operator", "").chars().collect();
    match (letters.first_chunk::<HALF>(), letters.last_chunk::<HALF>()) {
        (Some(first), Some(last)) if letters.len() > 2 * HALF + 1 => first.iter().chain(&['…']).chain(last).collect(),
        _ => letters.into_iter().collect(),
    }
}

fn text(class: &str, x: f64, y: f64, text: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<text{class} x=\"{}\" y=\"{}\">{}</text>", short(x), short(y), escaped(text))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TIME: Time = Time { start: 0.0, end: 120.0, step: 10.0 };

    fn line(name: &str, points: &[(f64, f64)]) -> Line {
        Line { name: name.to_owned(), points: points.to_vec() }
    }

    #[test]
    fn a_path_bends_where_the_value_changes_and_ends_where_there_are_no_points() {
        let chart = Chart { width: 120.0, height: 10.0, top: 10.0, time: &TIME };
        let points = [(0.0, 0.0), (10.0, 0.0), (20.0, 0.0), (30.0, 10.0), (60.0, 5.0), (90.0, 1.0), (100.0, 1.0)];
        assert_eq!(chart.line(&line("a", &points)), "M0 10l20 0 10 -10M60 5l0 0M90 9l10 0");
        let (hidden, high) = (line("b", &[(0.0, 5.0)]), line("c", &[(0.0, 9.0)]));
        let drawn = chart.lines(&[&high, &hidden, &hidden]);
        let paths: Vec<&str> = drawn.split("d=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(paths, ["M0 5l0 0", "M0 1l0 0"], "{drawn}");
    }

    #[test]
    fn each_panel_has_its_lines_by_their_height_and_says_if_there_are_none() {
        let panel = |title: &str, x: u32| {
            json!({"title": title, "gridPos": {"x": x, "y": 0, "w": 12, "h": 8}, "targets": [],
                "fieldConfig": {"defaults": {"unit": "s"}}})
        };
        let dashboard = json!({"title": "All & more", "panels": [panel("Lag", 0), panel("Errors", 12)]});
        let dashboard: Dashboard = serde_json::from_value(dashboard).unwrap();
        let mut lines: Vec<Line> = (0..9).map(|at| line(&format!("<{at}>"), &[(0.0, f64::from(at))])).collect();
        lines.push(line("a-name-operator of-more-letters-than-there-is-room-for", &[(0.0, 60.0)]));
        let picture = picture(&dashboard, &[lines, Vec::new()], &TIME);
        let find = |text: &str| picture.find(text).unwrap_or_else(|| panic!("no {text} in {picture}"));
        let found = [
            "All &amp; more",
            ">Lag<",
            ">a-name of-m…is-room-for<",
            ">&lt;8><",
            ">&lt;7><",
            "and 2 more",
            ">Errors<",
            ">No data<",
        ];
        let found = found.map(find);
        assert!(found.is_sorted(), "{picture}");
    }
}

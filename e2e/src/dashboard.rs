//! The dashboards of `manifests/components/dashboards`: their queries, and pictures of them without Grafana.
//!
//! Left out: what no dashboard has, which is everything but lines over time with a legend at their right.

mod axis;
mod picture;

use serde::Deserialize;
use serde_json::Value;

pub use picture::picture;

/// The operators that every dashboard shows at first.
const EVERY_JOB: &str = ".+-operator";

/// What is read of Grafana's JSON.
#[derive(Debug, Deserialize)]
pub struct Dashboard {
    title: String,
    pub panels: Vec<Panel>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Panel {
    pub title: String,
    grid_pos: Place,
    field_config: FieldConfig,
    pub targets: Vec<Target>,
}

/// In a grid of 24 columns.
#[derive(Debug, Deserialize)]
struct Place {
    x: u32,
    y: u32,
    w: u32,
    h: u32,
}

#[derive(Debug, Deserialize)]
struct FieldConfig {
    defaults: Defaults,
}

#[derive(Debug, Deserialize)]
struct Defaults {
    unit: String,
}

/// A query, and the names of its lines.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    expr: String,
    legend_format: String,
}

/// A series over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    name: String,
    /// Seconds since the epoch, and the value then.
    points: Vec<(f64, f64)>,
}

/// When a picture begins and ends, in seconds since the epoch, and how far its points are apart.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    pub start: f64,
    pub end: f64,
    pub step: f64,
}

impl Target {
    /// The query for all operators, with rates over this time.
    pub fn query(&self, rates: &str) -> String {
        self.expr.replace("$job", EVERY_JOB).replace("$__rate_interval", rates)
    }

    /// The lines of the series that Prometheus gives for the query. A quotient of zeros is no point.
    pub fn lines(&self, series: &[Value]) -> Vec<Line> {
        let point = |pair: &Value| {
            let value: f64 = pair[1].as_str()?.parse().ok()?;
            Some((pair[0].as_f64()?, value)).filter(|_| value.is_finite())
        };
        let line = |one: &Value| Line {
            name: self.name_of(&one["metric"]),
            points: one["values"].as_array().into_iter().flatten().filter_map(point).collect(),
        };
        series.iter().map(line).filter(|line| !line.points.is_empty()).collect()
    }

    /// `{{job}} {{name}}` with the values of these labels.
    fn name_of(&self, labels: &Value) -> String {
        let mut parts = self.legend_format.split("{{");
        let mut name = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (label, rest) = part.split_once("}}").unwrap_or((part, ""));
            name.push_str(labels[label].as_str().unwrap_or_default());
            name.push_str(rest);
        }
        name
    }
}

impl Line {
    fn max(&self) -> f64 {
        self.points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(expr: &str, legend_format: &str) -> Target {
        Target { expr: expr.to_owned(), legend_format: legend_format.to_owned() }
    }

    #[test]
    fn a_query_is_of_all_operators() {
        let target = target("rate(a{job=~\"$job\"}[$__rate_interval])", "");
        assert_eq!(target.query("30s"), "rate(a{job=~\".+-operator\"}[30s])");
    }

    #[test]
    fn a_line_has_the_name_that_the_legend_gives_it_and_no_point_for_an_undefined_value() {
        let series = [
            json!({"metric": {"job": "a", "code": "200"}, "values": [[1.0, "0.5"], [2.0, "NaN"], [3.0, "2"]]}),
            json!({"metric": {}, "values": [[1.0, "NaN"]]}),
        ];
        let expected = Line { name: "a: 200 (code)".to_owned(), points: vec![(1.0, 0.5), (3.0, 2.0)] };
        assert_eq!(target("", "{{job}}: {{code}} (code)").lines(&series), [expected]);
    }
}

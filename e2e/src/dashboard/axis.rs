//! The axis of values: a unit in which they are short, and round numbers at its ticks.
//!
//! Left out: negative values, which no panel has.

/// Grafana's unit, and the sizes in which its values are written.
const UNITS: [(&str, &[(f64, &str)]); 6] = [
    ("bytes", &[(1.0, " B"), (1024.0, " KiB"), (1_048_576.0, " MiB"), (1_073_741_824.0, " GiB")]),
    ("s", &[(1e-6, " µs"), (1e-3, " ms"), (1.0, " s"), (60.0, " min")]),
    ("ops", &[(1.0, "/s")]),
    ("reqps", &[(1.0, "/s")]),
    ("percent", &[(1.0, " %")]),
    ("percentunit", &[(0.01, " %")]),
];
const PLAIN: &[(f64, &str)] = &[(1.0, ""), (1000.0, " K")];

/// At most this many ticks above 0.
const TICKS: u32 = 4;

#[derive(Debug, PartialEq)]
pub(super) struct Axis {
    size: f64,
    suffix: &'static str,
    /// The distance of two ticks, in the size.
    step: f64,
    /// How many ticks are above 0.
    pub(super) ticks: u32,
}

impl Axis {
    /// An axis that reaches this value.
    pub(super) fn new(unit: &str, max: f64) -> Self {
        let sizes = UNITS.iter().find(|(name, _)| *name == unit).map_or(PLAIN, |(_, sizes)| sizes);
        let fitting = sizes.iter().rfind(|(size, _)| *size <= max).or_else(|| sizes.first());
        let (size, suffix) = fitting.copied().unwrap_or((1.0, ""));
        let max = if max > 0.0 { max / size } else { 1.0 };
        let least = max / f64::from(TICKS);
        let ten = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|digit| digit * ten).into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(10.0 * ten);
        let ticks = (1..TICKS).find(|tick| f64::from(*tick) * step >= max).unwrap_or(TICKS);
        Self { size, suffix, step, ticks }
    }

    /// The value at a tick.
    pub(super) fn at(&self, tick: u32) -> f64 {
        f64::from(tick) * self.step * self.size
    }

    /// The value in the axis' unit, in as many digits as a person reads.
    pub(super) fn text(&self, value: f64) -> String {
        let value = value / self.size;
        let digits = [100.0, 10.0, 1.0, 0.01].iter().filter(|size| value < **size).count();
        let text = format!("{value:.digits$}");
        let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &*text };
        format!("{short}{}", self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(unit: &str, max: f64, expected: &[&str]) {
        let axis = Axis::new(unit, max);
        let texts: Vec<String> = (0..=axis.ticks).map(|tick| axis.text(axis.at(tick))).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn ticks_are_round_and_reach_the_highest_value() {
        check("short", 0.0, &["0", "0.5", "1"]);
        check("short", 1.0, &["0", "0.5", "1"]);
        check("short", 7.0, &["0", "2", "4", "6", "8"]);
        check("short", 1500.0, &["0 K", "0.5 K", "1 K", "1.5 K"]);
        check("s", 0.0123, &["0 ms", "5 ms", "10 ms", "15 ms"]);
        check("s", 90.0, &["0 min", "0.5 min", "1 min", "1.5 min"]);
        check("bytes", 300.0 * 1_048_576.0, &["0 MiB", "100 MiB", "200 MiB", "300 MiB"]);
        check("ops", 0.03, &["0/s", "0.01/s", "0.02/s", "0.03/s"]);
        check("percentunit", 1.0, &["0 %", "50 %", "100 %"]);
    }

    #[test]
    fn values_are_written_in_three_digits() {
        let axis = Axis::new("s", 1e-3);
        assert_eq!([0.123_456, 0.012_345, 0.001_234].map(|value| axis.text(value)), ["123 ms", "12.3 ms", "1.23 ms"]);
    }
}

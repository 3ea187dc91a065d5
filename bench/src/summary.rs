//! The figures of all rounds in one: each step's medians, and how they are written.

use std::cmp::Ordering;
use std::time::Duration;

use e2e::usage::Usage;

use crate::contestant::Contestant;
use crate::figures::{Figures, Measured};

/// The steps, each once.
pub(crate) fn in_order(measured: &[Measured]) -> Vec<&'static str> {
    let mut steps = Vec::new();
    for Measured { step, .. } in measured {
        if !steps.contains(step) {
            steps.push(*step);
        }
    }
    steps
}

pub(crate) fn medians(step: &str, measured: &[Measured]) -> Vec<(Contestant, Figures)> {
    let of = |contestant| {
        let all = measured.iter().filter(|one| one.step == step && one.contestant == contestant);
        median(&all.map(|one| &one.figures).collect::<Vec<_>>()).map(|figures| (contestant, figures))
    };
    Contestant::ALL.into_iter().filter_map(of).collect()
}

/// Each figure's own median; the requests and reactions of the middle round.
fn median(all: &[&Figures]) -> Option<Figures> {
    let took: Duration = middle(all.iter().map(|one| one.took))?;
    let shown = all.iter().find(|one| one.took == took)?;
    Some(Figures {
        took,
        cpu: middle(all.iter().map(|one| one.cpu))?,
        apiserver_cpu: middle(all.iter().map(|one| one.apiserver_cpu))?,
        others_cpu: middle(all.iter().map(|one| one.others_cpu))?,
        peak_bytes: middle(all.iter().map(|one| one.peak_bytes))?,
        resident_bytes: middle(all.iter().map(|one| one.resident_bytes))?,
        anonymous_bytes: middle(all.iter().map(|one| one.anonymous_bytes))?,
        watches: middle(all.iter().map(|one| one.watches))?,
        sent_bytes: middle(all.iter().map(|one| one.sent_bytes))?,
        allocated_bytes: middle(all.iter().map(|one| one.allocated_bytes))?,
        each: shown.each.keys().filter_map(|name| Some((name.clone(), median_of(name, all)?))).collect(),
        requests: shown.requests.clone(),
        reactions: shown.reactions.clone(),
        pods: shown.pods,
    })
}

/// The usage of one process, each figure's own median.
fn median_of(name: &str, all: &[&Figures]) -> Option<Usage> {
    let used: Vec<Usage> = all.iter().filter_map(|one| one.each.get(name).copied()).collect();
    Some(Usage {
        pss: middle(used.iter().map(|one| one.pss))?,
        rss: middle(used.iter().map(|one| one.rss))?,
        anonymous: middle(used.iter().map(|one| one.anonymous))?,
        peak_rss: middle(used.iter().map(|one| one.peak_rss))?,
        cpu: middle(used.iter().map(|one| one.cpu))?,
    })
}

fn middle<T: PartialOrd + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    values.get(values.len() / 2).copied()
}

pub(crate) fn ratio(a: f64, b: f64) -> String {
    if b > 0.0 { format!("{:.2}", a / b) } else { "–".to_owned() }
}

pub(crate) fn mib(bytes: f64) -> String {
    format!("{:.1}", bytes / f64::from(1_u32 << 20))
}

//! The report: medians, ratios, and what was to be reached.
//! Left out: prose about causes, which a person adds below the tables; a new run leaves it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use anyhow::{Context, Result};

use super::contestant::Contestant;
use super::steps::{Figures, Step};
use super::{BenchOptions, Set};

/// One step of one contestant in one round.
pub(super) struct Measured {
    pub(super) contestant: Contestant,
    pub(super) step: Step,
    pub(super) figures: Figures,
}

/// What stands below this line is written by people.
const NOTES: &str = "## Notes";

/// Writes the report, keeping the notes of the one before.
pub(super) fn write(options: &BenchOptions, measured: &[Measured]) -> Result<()> {
    let path = options.output.as_deref().unwrap_or(options.set.output());
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let notes = before.find(NOTES).map_or_else(|| format!("{NOTES}\n"), |at| before[at..].to_owned());
    let report = format!("{}\n{notes}", text(options, measured));
    std::fs::write(path, report).with_context(|| format!("write {}", path.display()))
}

fn text(options: &BenchOptions, measured: &[Measured]) -> String {
    let Words { controllers, reaction, steps, command } = words(options);
    let mut text = format!(
        "# Benchmarks\n\n\
         The same steps under kube-controller-manager v1.36.3 (only {controllers}) and under\n\
         {} together, on a fresh local cluster each, in turn.\n\
         Medians of {} rounds ({} of the throttled one). Compare within this page only.\n\n\
         Machine: {}. Date: {}. Command: `{command}`.\n\n\
         CPU, memory and requests are the controllers' own. Peak is the most that was ever resident since their start;\n\
         anonymous is what belonged to no file when the step ended. Reaction is {reaction}.\n\n\
         Steps: {steps}.\n",
        options.set.operators().join(" and "),
        options.rounds,
        options.throttled_rounds,
        machine(),
        today(),
    );
    for &step in options.set.steps() {
        table(&mut text, step, measured);
        if let Some(pods) = step.pods(options) {
            per_pod(&mut text, step, measured, pods);
        }
    }
    text
}

/// What the page says of a set.
struct Words {
    /// Whose work it is upstream.
    controllers: &'static str,
    /// What a reaction is.
    reaction: &'static str,
    steps: String,
    /// How to run it.
    command: &'static str,
}

fn words(options: &BenchOptions) -> Words {
    let BenchOptions { pods, deployments, present, completions, parallelism, jobs, cron_jobs, .. } = options;
    match options.set {
        Set::Workloads => Words {
            controllers: "the deployment and replicaset controllers",
            reaction: "the time from the end of a Deployment's\n\
                       creation to the request for its ReplicaSet, as the apiserver's audit log dates both",
            steps: format!(
                "one Deployment of {pods} pods; its roll at 25 %/25 %; its scaling to 0; {deployments} Deployments of 2 \
                 pods; a restart with\n{present} pods present until a Deployment changed meanwhile has its new pod"
            ),
            command: "make bench",
        },
        Set::Batch => Words {
            controllers: "the job and cronjob controllers",
            reaction: "the time from the second a\n\
                       CronJob is due to the request for its Job, as the apiserver's audit log dates it",
            steps: format!(
                "one Job of {completions} pods, {parallelism} at a time; {jobs} Jobs of 1 pod; {cron_jobs} CronJobs due \
                 at the same minute, from then\nuntil the last of their Jobs is complete. Pods succeed as soon as they run"
            ),
            command: "make bench BENCH=--set=batch",
        },
    }
}

/// How many requests each contestant made for one pod.
fn per_pod(text: &mut String, step: Step, measured: &[Measured], pods: u32) {
    text.push_str("\nFor each pod:");
    for (contestant, Figures { requests, .. }) in medians(step, measured) {
        let (writes, events, _) = totals(&requests);
        let each = |count: u64| whole(count) / f64::from(pods);
        let _ = write!(text, " *{contestant}*: {:.2} writes, {:.2} events.", each(writes), each(events));
    }
    text.push('\n');
}

fn medians(step: Step, measured: &[Measured]) -> Vec<(Contestant, Figures)> {
    let of = |contestant| {
        let all = measured.iter().filter(|one| one.step == step && one.contestant == contestant);
        median(&all.map(|one| &one.figures).collect::<Vec<_>>()).map(|figures| (contestant, figures))
    };
    Contestant::ALL.into_iter().filter_map(of).collect()
}

fn table(text: &mut String, step: Step, measured: &[Measured]) {
    let rows = medians(step, measured);
    let heading = step.to_string();
    let (first, rest) = heading.split_at(1);
    let _ = writeln!(text, "\n## {}{rest}\n", first.to_uppercase());
    text.push_str("| | seconds | CPU s | peak MiB | anonymous MiB | reaction p50/p99 ms | writes | events | reads |\n");
    text.push_str("|---|---|---|---|---|---|---|---|---|\n");
    for (contestant, figures) in &rows {
        let _ = writeln!(text, "| {contestant} | {} |", cells(figures).join(" | "));
    }
    let us = rows.iter().find(|(contestant, _)| *contestant == Contestant::Operators);
    for (contestant, other) in rows.iter().filter(|(contestant, _)| *contestant != Contestant::Operators) {
        if let Some((_, us)) = us {
            let _ = writeln!(text, "| ratio to {contestant} | {} |", ratios(us, other).join(" | "));
        }
    }
    text.push_str("\nRequests by verb:");
    for (contestant, Figures { requests, .. }) in &rows {
        let verbs: Vec<String> = requests.iter().map(|(verb, count)| format!("{count} {verb}")).collect();
        let _ = write!(text, " *{contestant}*: {}.", verbs.join(", "));
    }
    text.push('\n');
}

fn cells(figures: &Figures) -> Vec<String> {
    let percentile = |percent: usize| {
        let at = figures.reactions.len().saturating_sub(1) * percent / 100;
        figures.reactions.get(at).map_or("–".to_owned(), |reaction| format!("{:.1}", reaction.as_secs_f64() * 1e3))
    };
    let (writes, events, reads) = totals(&figures.requests);
    vec![
        format!("{:.2}", figures.took.as_secs_f64()),
        format!("{:.2}", figures.cpu.as_secs_f64()),
        mib(figures.peak_bytes),
        mib(figures.anonymous_bytes),
        format!("{}/{}", percentile(50), percentile(99)),
        writes.to_string(),
        events.to_string(),
        reads.to_string(),
    ]
}

fn ratios(us: &Figures, other: &Figures) -> Vec<String> {
    let ratio = |a: f64, b: f64| if b > 0.0 { format!("{:.2}", a / b) } else { "–".to_owned() };
    let bytes = |a: u64, b: u64| ratio(whole(a), whole(b));
    let ((our_writes, our_events, our_reads), (writes, events, reads)) =
        (totals(&us.requests), totals(&other.requests));
    vec![
        ratio(us.took.as_secs_f64(), other.took.as_secs_f64()),
        ratio(us.cpu.as_secs_f64(), other.cpu.as_secs_f64()),
        bytes(us.peak_bytes, other.peak_bytes),
        bytes(us.anonymous_bytes, other.anonymous_bytes),
        String::new(),
        bytes(our_writes, writes),
        bytes(our_events, events),
        bytes(our_reads, reads),
    ]
}

/// Writes, events and reads.
fn totals(requests: &BTreeMap<String, u64>) -> (u64, u64, u64) {
    let reads: BTreeSet<&str> = BTreeSet::from(["get", "list", "watch"]);
    let sum = |wanted: &dyn Fn(&str) -> bool| requests.iter().filter(|(verb, _)| wanted(verb)).map(|(_, n)| n).sum();
    let is_event = |verb: &str| verb.ends_with(" event");
    (sum(&|verb| !is_event(verb) && !reads.contains(verb)), sum(&is_event), sum(&|verb| reads.contains(verb)))
}

/// Each figure's own median; the requests and reactions of the middle round.
fn median(all: &[&Figures]) -> Option<Figures> {
    fn middle<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
        values.sort_unstable();
        values.get(values.len() / 2).copied()
    }
    let took: Duration = middle(all.iter().map(|one| one.took).collect())?;
    let shown = all.iter().find(|one| one.took == took)?;
    Some(Figures {
        took,
        cpu: middle(all.iter().map(|one| one.cpu).collect())?,
        peak_bytes: middle(all.iter().map(|one| one.peak_bytes).collect())?,
        anonymous_bytes: middle(all.iter().map(|one| one.anonymous_bytes).collect())?,
        requests: shown.requests.clone(),
        reactions: shown.reactions.clone(),
    })
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", whole(bytes) / f64::from(1_u32 << 20))
}

/// Exact up to 2^53, which is more than any figure here.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "there is no other way from u64 to f64")]
fn whole(value: u64) -> f64 {
    value as f64
}

fn machine() -> String {
    let read = |path: &str, field: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(field)).and_then(|line| line.split_once(':'));
        line.map_or("unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{} cores, {}, memory {}", cores, read("/proc/cpuinfo", "model name"), read("/proc/meminfo", "MemTotal"))
}

#[expect(clippy::disallowed_methods, reason = "a report is dated when it is written")]
fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(took: u64, verbs: &[(&str, u64)]) -> Figures {
        let requests = verbs.iter().map(|(verb, count)| ((*verb).to_owned(), *count)).collect();
        let took = Duration::from_secs(took);
        Figures { took, cpu: took, peak_bytes: 3 << 20, anonymous_bytes: 1 << 20, requests, reactions: vec![took] }
    }

    #[test]
    fn a_table_has_medians_and_ratios() {
        let one = |contestant, took| Measured {
            contestant,
            step: Step::Roll,
            figures: figures(took, &[("create", 4), ("patch", 1), ("create event", 7), ("list", 2)]),
        };
        let measured = [
            one(Contestant::Operators, 2),
            one(Contestant::Operators, 1),
            one(Contestant::Operators, 9),
            one(Contestant::Unthrottled, 4),
        ];
        let mut text = String::new();
        table(&mut text, Step::Roll, &measured);
        assert!(text.contains("| operators | 2.00 | 2.00 | 3.0 | 1.0 | 2000.0/2000.0 | 5 | 7 | 2 |"), "{text}");
        assert!(text.contains("| ratio to kube-controller-manager at 2000 qps | 0.50 | 0.50 | 1.00 |"), "{text}");
    }
}

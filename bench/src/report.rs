//! The report: medians, ratios, and what was to be reached.
//! Left out: prose about causes, which a person adds below the tables; a new run leaves it alone.

mod overview;

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::about::About;
use crate::contestant::Contestant;
use crate::figures::{Figures, Measured, totals, whole};
use crate::options::BenchOptions;
use crate::summary::{in_order, medians, mib, ratio};

/// The text below this line is written by people.
const NOTES: &str = "## Notes";

/// How many operators a sentence can name.
const MOST_NAMED: usize = 4;

/// Writes the report, keeping the notes of the one before.
pub(crate) fn write(options: &BenchOptions, about: &About, measured: &[Measured]) -> Result<()> {
    let path = options.output.as_deref().unwrap_or(Path::new(about.page));
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let notes = before.find(NOTES).map_or_else(|| format!("{NOTES}\n"), |at| before[at..].to_owned());
    let report = format!("{}\n{notes}", text(options, about, measured));
    std::fs::write(path, report).with_context(|| format!("write {}", path.display()))
}

fn text(options: &BenchOptions, about: &About, measured: &[Measured]) -> String {
    let About { operators, upstream, controllers, reaction, steps, targets, .. } = about;
    let mut text = format!(
        "# Benchmarks\n\n\
         The same steps under {upstream} v1.36.3 (only {controllers}) and under\n\
         {}, on a fresh local cluster each{}.\n\
         Medians of {} rounds ({} of the throttled one). Compare within this page only.\n\n\
         Machine: {}. Date: {}. Command: `{}`.\n\n\
         CPU, memory and requests are the controllers' own. They have acted once before the first step; a restart begins with\n\
         the start of their processes. The apiserver's CPU is also etcd's, whoever it was for. That of kube-scheduler and\n\
         kwok, who do the same beside each, tells how fast the machine was. Peak is the most that was ever\n\
         resident since their start, summed over the processes. Resident and anonymous are of the end of the step: resident\n\
         is {upstream}'s memory, and the operators' with what several share in proportion (PSS); anonymous is\n\
         what of it belonged to no file. Watches are those open at the end. Sent is what the apiserver sent to whoever\n\
         read, as events of watches, as lists of the whole cluster and as single objects; allocated is what it allocated,\n\
         which follows its work as its CPU does, but not the machine's speed. Reads include those that\n\
         {upstream} makes for all its controllers together; a watch counts there when it ends.\n\
         Reaction is {}. {}\n\n\
         Steps: {steps}.\n",
        together(operators),
        if about.takes_turns() { ", each step in turn" } else { ", one after the other" },
        options.rounds,
        options.throttled_rounds,
        machine(),
        today(),
        command(std::env::args()),
        reaction.as_ref().map_or("not measured here", |reaction| reaction.is),
        how(options),
    );
    if let Some(targets) = targets {
        overview::reached(&mut text, targets, upstream, measured);
    }
    for step in in_order(measured) {
        table(&mut text, step, upstream, measured);
        per_pod(&mut text, step, upstream, measured);
    }
    if let Some(targets) = targets {
        overview::each(&mut text, targets, measured);
    }
    text
}

/// How to measure it again: with the flags that this run was given, but for those that the Makefile adds.
fn command(mut arguments: impl Iterator<Item = String>) -> String {
    let mut flags = Vec::new();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // All before it is the program's.
            "compare" => flags.clear(),
            "--bin" => drop(arguments.next()),
            flag if flag.contains(' ') => flags.push(format!("\"{flag}\"")),
            flag => flags.push(flag.to_owned()),
        }
    }
    match flags.join(" ") {
        flags if flags.is_empty() => "make bench".to_owned(),
        flags => format!("make bench BENCH='{flags}'"),
    }
}

fn together(operators: &[String]) -> String {
    match operators {
        [] => String::new(),
        [one] => one.clone(),
        several if several.len() > MOST_NAMED => format!("the {} operators of the last table together", several.len()),
        [first @ .., last] => format!("{} and {last} together", first.join(", ")),
    }
}

/// How the contestants run, where that is a choice.
fn how(options: &BenchOptions) -> String {
    let leases = if options.is_leader_elected() { "All elect leaders" } else { "Nobody elects leaders" };
    let program = match options {
        BenchOptions { one_process: true, .. } => "; the operators are one process",
        BenchOptions { one_program: true, .. } => "; every operator runs from the program of all",
        BenchOptions { .. } => "",
    };
    format!("{leases}{program}.")
}

/// How many requests each contestant made for one pod, where the step is about pods.
fn per_pod(text: &mut String, step: &str, upstream: &str, measured: &[Measured]) {
    let mut line = String::new();
    for (contestant, Figures { requests, pods, .. }) in medians(step, measured) {
        let Some(pods) = pods else { return };
        let (writes, events, _) = totals(&requests);
        let each = |count: u64| whole(count) / f64::from(pods);
        let _ =
            write!(line, " *{}*: {:.2} writes, {:.2} events.", contestant.name(upstream), each(writes), each(events));
    }
    let _ = writeln!(text, "\nFor each pod:{line}");
}

fn table(text: &mut String, step: &str, upstream: &str, measured: &[Measured]) {
    let rows = medians(step, measured);
    let (first, rest) = step.split_at(1);
    let _ = writeln!(text, "\n## {}{rest}\n", first.to_uppercase());
    text.push_str("| | seconds | CPU s | apiserver CPU s | scheduler, kwok CPU s | peak MiB | resident MiB | anonymous MiB | watches | sent MiB | allocated MiB | reaction p50/p99 ms | writes | events | reads |\n");
    text.push_str("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (contestant, figures) in &rows {
        let _ = writeln!(text, "| {} | {} |", contestant.name(upstream), cells(figures).join(" | "));
    }
    let us = rows.iter().find(|(contestant, _)| *contestant == Contestant::Operators);
    for (contestant, other) in rows.iter().filter(|(contestant, _)| *contestant != Contestant::Operators) {
        if let Some((_, us)) = us {
            let _ = writeln!(text, "| ratio to {} | {} |", contestant.name(upstream), ratios(us, other).join(" | "));
        }
    }
    text.push_str("\nRequests by verb:");
    for (contestant, Figures { requests, .. }) in &rows {
        let verbs: Vec<String> = requests.iter().map(|(verb, count)| format!("{count} {verb}")).collect();
        let _ = write!(text, " *{}*: {}.", contestant.name(upstream), verbs.join(", "));
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
        format!("{:.2}", figures.apiserver_cpu.as_secs_f64()),
        format!("{:.2}", figures.others_cpu.as_secs_f64()),
        mib(whole(figures.peak_bytes)),
        mib(whole(figures.resident_bytes)),
        mib(whole(figures.anonymous_bytes)),
        figures.watches.to_string(),
        mib(figures.sent_bytes),
        mib(figures.allocated_bytes),
        format!("{}/{}", percentile(50), percentile(99)),
        writes.to_string(),
        events.to_string(),
        reads.to_string(),
    ]
}

fn ratios(us: &Figures, other: &Figures) -> Vec<String> {
    let bytes = |a: u64, b: u64| ratio(whole(a), whole(b));
    let ((our_writes, our_events, our_reads), (writes, events, reads)) =
        (totals(&us.requests), totals(&other.requests));
    vec![
        ratio(us.took.as_secs_f64(), other.took.as_secs_f64()),
        ratio(us.cpu.as_secs_f64(), other.cpu.as_secs_f64()),
        ratio(us.apiserver_cpu.as_secs_f64(), other.apiserver_cpu.as_secs_f64()),
        ratio(us.others_cpu.as_secs_f64(), other.others_cpu.as_secs_f64()),
        bytes(us.peak_bytes, other.peak_bytes),
        bytes(us.resident_bytes, other.resident_bytes),
        bytes(us.anonymous_bytes, other.anonymous_bytes),
        ratio(us.watches, other.watches),
        ratio(us.sent_bytes, other.sent_bytes),
        ratio(us.allocated_bytes, other.allocated_bytes),
        String::new(),
        bytes(our_writes, writes),
        bytes(our_events, events),
        bytes(our_reads, reads),
    ]
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
    use std::collections::BTreeMap;
    use std::time::Duration;

    use e2e::usage::Usage;

    use super::*;

    fn figures(took: u64, verbs: &[(&str, u64)]) -> Figures {
        let requests = verbs.iter().map(|(verb, count)| ((*verb).to_owned(), *count)).collect();
        let took = Duration::from_secs(took);
        Figures {
            took,
            cpu: took,
            apiserver_cpu: took * 3,
            others_cpu: took * 4,
            peak_bytes: 3 << 20,
            resident_bytes: 2 << 20,
            anonymous_bytes: 1 << 20,
            watches: 12.0,
            sent_bytes: 524_288.0,
            allocated_bytes: 1_572_864.0,
            each: BTreeMap::from([("job-operator".to_owned(), Usage { cpu: took, pss: 2 << 20, ..Usage::default() })]),
            requests,
            reactions: vec![took],
            pods: Some(2),
        }
    }

    #[test]
    fn a_run_can_be_repeated_by_its_flags() {
        let command = |arguments: &[&str]| command(arguments.iter().map(|argument| (*argument).to_owned()));
        assert_eq!(command(&["target/debug/bench", "compare", "--bin", "dist/bin"]), "make bench");
        assert_eq!(
            command(&["target/debug/bench", "compare", "--bin", "dist/bin", "--set=nodes", "--steps=lose a zone"]),
            "make bench BENCH='--set=nodes \"--steps=lose a zone\"'"
        );
    }

    #[test]
    fn a_table_has_medians_and_ratios() {
        let one = |contestant, took| Measured {
            contestant,
            step: "roll it",
            figures: figures(took, &[("create", 4), ("patch", 1), ("create event", 7), ("list", 2)]),
        };
        let measured = [
            one(Contestant::Operators, 2),
            one(Contestant::Operators, 1),
            one(Contestant::Operators, 9),
            one(Contestant::Unthrottled, 4),
        ];
        let mut text = String::new();
        table(&mut text, "roll it", "kube-controller-manager", &measured);
        per_pod(&mut text, "roll it", "kube-controller-manager", &measured);
        assert!(
            text.contains(
                "| operators | 2.00 | 2.00 | 6.00 | 8.00 | 3.0 | 2.0 | 1.0 | 12 | 0.5 | 1.5 | 2000.0/2000.0 | 5 | 7 | 2 |"
            ),
            "{text}"
        );
        assert!(
            text.contains("| ratio to kube-controller-manager at 2000 qps | 0.50 | 0.50 | 0.50 | 0.50 | 1.00 |"),
            "{text}"
        );
        assert!(text.contains("For each pod: *operators*: 2.50 writes, 3.50 events."), "{text}");
    }
}

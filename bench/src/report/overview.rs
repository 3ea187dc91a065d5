//! The whole set at a glance: each step's ratios below what is to be reached, and what each operator costs in each step.
//! Left out: whether that is reached, which is for people to say.

use std::fmt::Write;

use e2e::usage::Usage;

use crate::about::{Target, Targets};
use crate::contestant::Contestant;
use crate::figures::{Figures, Measured, whole};
use crate::summary::{in_order, medians, mib, ratio};

/// The operators' ratios to upstream's program, of each step and of all.
pub(super) fn reached(text: &mut String, targets: &Targets, upstream: &str, measured: &[Measured]) {
    let _ = writeln!(text, "\n## To be reached\n\nThe ratios to {}.\n", Contestant::Unthrottled.name(upstream));
    let column = |of: fn(&Target) -> &'static str| targets.ratios.iter().map(of).collect::<Vec<_>>().join(" | ");
    let _ = writeln!(text, "| | {} |", column(|target| target.what));
    let _ = writeln!(text, "|---|{}", "---|".repeat(targets.ratios.len()));
    let _ = writeln!(text, "| to be reached | {} |", column(|target| target.wanted));
    let mut row = |name: &str, ratio_of: &dyn Fn(&Target) -> String| {
        let ratios: Vec<String> = targets.ratios.iter().map(ratio_of).collect();
        let _ = writeln!(text, "| {name} | {} |", ratios.join(" | "));
    };
    let both = |step| {
        let rows = medians(step, measured);
        let of = |wanted| rows.iter().find(|(contestant, _)| *contestant == wanted).map(|(_, figures)| figures.clone());
        Some((step, of(Contestant::Operators)?, of(Contestant::Unthrottled)?))
    };
    let steps: Vec<(&str, Figures, Figures)> = in_order(measured).into_iter().filter_map(both).collect();
    for (step, us, other) in &steps {
        row(step, &|target| ratio((target.figure)(us), (target.figure)(other)));
    }
    row("**all steps**: their sum, or the most memory", &|target| {
        let us = target.of_all.of(steps.iter().map(|(_, us, _)| (target.figure)(us)));
        ratio(us, target.of_all.of(steps.iter().map(|(_, _, other)| (target.figure)(other))))
    });
}

/// Writes the usage of each operator in each step.
pub(super) fn each(text: &mut String, targets: &Targets, measured: &[Measured]) {
    let of_step = |step| {
        let ours = medians(step, measured).into_iter().find(|(contestant, _)| *contestant == Contestant::Operators);
        ours.map(|(_, figures)| (step, figures))
    };
    let steps: Vec<(&str, Figures)> = in_order(measured).into_iter().filter_map(of_step).collect();
    let _ = writeln!(text, "\n## What each operator costs");
    if let Some(wanted) = targets.each {
        let _ = writeln!(text, "\nTo be reached: {wanted}.");
    }
    let _ = writeln!(text, "\nCPU in milliseconds, which the kernel counts in steps of ten:\n");
    rows(text, &steps, |used| used.cpu.as_millis().to_string());
    let _ = writeln!(text, "\nResident in proportion (PSS) and anonymous when the step ended, in MiB:\n");
    rows(text, &steps, |used| format!("{}/{}", mib(whole(used.pss)), mib(whole(used.anonymous))));
}

/// A row for each operator, and a column for each step.
fn rows(text: &mut String, steps: &[(&str, Figures)], cell: impl Fn(&Usage) -> String) {
    let names: Vec<&str> = steps.iter().map(|(step, _)| *step).collect();
    let _ = writeln!(text, "| | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()));
    for name in steps.first().iter().flat_map(|(_, figures)| figures.each.keys()) {
        let cells = steps.iter().map(|(_, figures)| figures.each.get(name).map_or("–".to_owned(), &cell));
        let _ = writeln!(text, "| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    fn measured(contestant: Contestant, step: &'static str, milliseconds: u64) -> Measured {
        let cpu = Duration::from_millis(milliseconds);
        let used = Usage { cpu, pss: 3 << 20, anonymous: 1 << 20, ..Usage::default() };
        let each = BTreeMap::from([("job-operator".to_owned(), used)]);
        Measured { contestant, step, figures: Figures { cpu, each, ..Figures::default() } }
    }

    #[test]
    fn each_step_stands_below_what_is_to_be_reached() {
        let targets = Targets { ratios: &[Target::CPU], each: Some("little") };
        let measured = [
            measured(Contestant::Operators, "rest", 10),
            measured(Contestant::Unthrottled, "rest", 40),
            measured(Contestant::Operators, "pause", 20),
            measured(Contestant::Unthrottled, "pause", 20),
            measured(Contestant::Operators, "roll", 250),
        ];
        let mut text = String::new();
        reached(&mut text, &targets, "kube-controller-manager", &measured);
        each(&mut text, &targets, &measured);
        let ratios = "| | CPU |\n|---|---|\n| to be reached | at most 0.5 |\n| rest | 0.25 |\n| pause | 1.00 |\n\
                      | **all steps**: their sum, or the most memory | 0.50 |\n\n";
        assert!(text.contains(ratios), "{text}");
        assert!(
            text.contains("| | rest | pause | roll |\n|---|---|---|---|\n| job-operator | 10 | 20 | 250 |\n"),
            "{text}"
        );
        assert!(text.contains("| job-operator | 3.0/1.0 | 3.0/1.0 | 3.0/1.0 |\n"), "{text}");
    }
}

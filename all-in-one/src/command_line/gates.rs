//! `--feature-gates`: kube-controller-manager's gates. Each goes to the operators that know it.
//!
//! Left out: dependencies between gates. Upstream does not start if a gate is on and one that it depends on is off.
//!
//! Upstream: `ComponentGlobalsRegistry`, staging/src/k8s.io/component-base/compatibility/registry.go; `unsafeSetFromMap`,
//! staging/src/k8s.io/component-base/featuregate/feature_gate.go.

mod known;

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::Command;
use shared::process::flags::parse_bool;

use super::{FEATURE_GATES, controllers, flags_of};
use crate::{Operator, names};
use known::{KNOWN, Known, Stage};

/// The default component.
const COMPONENT: &str = "kube";
const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";

/// The feature gates that are set.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gates {
    /// By name.
    named: BTreeMap<&'static str, bool>,
    /// By `AllAlpha` or `AllBeta`.
    by_stage: BTreeMap<&'static str, bool>,
}

impl Gates {
    /// Parses the flag's values, such as `Name=true,kube:Other=false`. The last value of a gate wins.
    ///
    /// # Errors
    /// A line for each invalid pair.
    pub(super) fn read(texts: &[String]) -> Result<Self, Vec<String>> {
        let pairs = texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|pair| !pair.is_empty());
        let (mut gates, mut wrong) = (Self::default(), Vec::new());
        for pair in pairs {
            if let Err(error) = gates.set(pair) {
                wrong.push(format!("--{FEATURE_GATES}: {error}"));
            }
        }
        if wrong.is_empty() { Ok(gates) } else { Err(wrong) }
    }

    fn set(&mut self, pair: &str) -> Result<(), String> {
        let (component, pair) = pair.split_once(':').unwrap_or((COMPONENT, pair));
        if component.trim() != COMPONENT {
            return Err(format!("component not registered: {component}"));
        }
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("missing bool value for {pair}"))?;
        let (name, value) = (name.trim(), value.trim());
        let is_on = parse_bool(value).map_err(|_| format!("invalid value of {name}={value}"))?;
        let of_stage = |stage: Stage| KNOWN.iter().filter(move |gate| gate.stage == stage);
        match name {
            ALL_ALPHA => self.by_stage.extend(of_stage(Stage::Alpha).map(|gate| (gate.name, is_on))),
            ALL_BETA => self.by_stage.extend(of_stage(Stage::Beta).map(|gate| (gate.name, is_on))),
            _ => {
                let gate = known(name).ok_or_else(|| unknown(name))?;
                if gate.is_locked && gate.is_on != is_on {
                    let is = gate.is_on;
                    return Err(format!("cannot set feature gate {name} to {is_on}, feature is locked to {is}"));
                }
                self.named.insert(gate.name, is_on);
            }
        }
        Ok(())
    }

    /// Whether the gate is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        let set = self.named.get(name).or_else(|| self.by_stage.get(name)).copied();
        set.unwrap_or_else(|| known(name).is_some_and(|gate| gate.is_on))
    }

    /// The operator's own `--feature-gates`, if it knows one of the gates that are set.
    pub(super) fn of(&self, operator: &Operator) -> Option<String> {
        let by_stage = self.by_stage.iter().filter(|(name, _)| !self.named.contains_key(*name));
        let pairs = by_stage.chain(&self.named).filter(|(name, _)| knows(operator, name));
        let pairs: Vec<String> = pairs.map(|(name, is_on)| format!("{name}={is_on}")).collect();
        (!pairs.is_empty()).then(|| format!("--{FEATURE_GATES}={}", pairs.join(",")))
    }

    /// A line about the named gates without effect.
    pub(super) fn notes(&self, operators: &[Operator]) -> Option<String> {
        let has_effect =
            |name: &str| controllers::is_gate(name) || operators.iter().any(|operator| knows(operator, name));
        let idle: Vec<&str> = self.named.keys().copied().filter(|name| !has_effect(name)).collect();
        (!idle.is_empty()).then(|| format!("--{FEATURE_GATES}: no effect of {}", idle.join(", ")))
    }
}

/// The gates for `--help`, as kube-controller-manager lists them: without those that are stable.
pub(super) fn help() -> String {
    let known = KNOWN.iter().filter_map(|gate| match gate.stage {
        Stage::Alpha => Some((gate.name, "ALPHA", gate.is_on)),
        Stage::Beta => Some((gate.name, "BETA", gate.is_on)),
        Stage::Stable => None,
    });
    let all = [(ALL_ALPHA, "ALPHA", false), (ALL_BETA, "BETA", false)].into_iter().chain(known);
    let lines = all.map(|(name, stage, is_on)| format!("\n{COMPONENT}:{name}=true|false ({stage} - default={is_on})"));
    lines.collect::<Vec<_>>().concat()
}

fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|gate| gate.name == name)
}

fn unknown(name: &str) -> String {
    let hint = names::hint(name, KNOWN.iter().map(|gate| gate.name));
    format!("unrecognized feature gate: {name}{hint}")
}

/// Whether the operator's parser accepts this gate.
fn knows(operator: &Operator, gate: &str) -> bool {
    let has_gates = flags_of(operator).iter().any(|flag| flag.get_long() == Some(FEATURE_GATES));
    let args = [OsString::from(operator.name), format!("--{FEATURE_GATES}={gate}=true").into()];
    has_gates && (operator.flags)(Command::new(operator.name)).try_get_matches_from(args).is_ok()
}

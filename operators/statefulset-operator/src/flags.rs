//! The flags: those every operator has, upstream's of this controller, and one of ours.

pub mod gates;

use clap::ArgAction;
use shared::process::flags::{at_least_one, parse_bool};

use gates::FeatureGates;

/// Keeps the pods of each StatefulSet.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of statefulset objects that are allowed to sync concurrently. Larger number = more responsive
    /// statefulsets, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_statefulset_syncs: usize,
    /// Whether pods that their nodes reject one after the other are replaced with back-off, of 1s at first and at most
    /// 30s, and not at once.
    #[arg(long, action = ArgAction::Set, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub rejected_pod_backoff: bool,
    /// A set of key=value pairs that describe feature gates for alpha/experimental features. Options are:
    /// MaxUnavailableStatefulSet=true|false (BETA - default=false).
    #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY=BOOL")]
    pub feature_gates: FeatureGates,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Flags, String> {
        let args = std::iter::once("statefulset-operator").chain(args.iter().copied()).map(Into::into);
        let flags = shared::process::flags::parse::<Flags>("statefulset-operator", args);
        flags.map(|flags| flags.own).map_err(|exit| exit.text)
    }

    #[test]
    fn at_least_one_sync_is_wanted() {
        assert_eq!(read(&[]).unwrap().concurrent_statefulset_syncs, 5);
        assert_eq!(read(&["--concurrent-statefulset-syncs=1"]).unwrap().concurrent_statefulset_syncs, 1);
        assert!(read(&["--concurrent-statefulset-syncs=0"]).unwrap_err().contains("must be greater than 0"));
    }

    #[test]
    fn feature_gates_are_read() {
        let gates = |args: &[&str]| read(args).map(|flags| flags.feature_gates.max_unavailable);
        assert_eq!(gates(&[]), Ok(false));
        assert_eq!(gates(&["--feature-gates=MaxUnavailableStatefulSet=true"]), Ok(true));
        assert!(gates(&["--feature-gates=Odd=true"]).unwrap_err().contains("unrecognized feature gate: Odd"));
    }
}

//! The flags: those of every operator, upstream's of this controller, and two of ours.

pub mod gates;

use clap::ArgAction;
use shared::process::flags::{GoDuration, at_least_one, parse_bool};

use crate::plan::Config;
use gates::FeatureGates;

/// Scales workloads by their metrics.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of horizontal pod autoscaler objects that are allowed to sync concurrently. Larger number = more
    /// responsive horizontal pod autoscaler objects processing, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_horizontal_pod_autoscaler_syncs: usize,
    /// The period for syncing the number of pods in horizontal pod autoscaler.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = GoDuration::positive)]
    pub horizontal_pod_autoscaler_sync_period: GoDuration,
    /// The period for which autoscaler will look backwards and not scale down below any recommendation it made during
    /// that period.
    #[arg(long, default_value = "5m0s", value_name = "DURATION")]
    pub horizontal_pod_autoscaler_downscale_stabilization: GoDuration,
    /// The minimum change (from 1.0) in the desired-to-actual metrics ratio for the horizontal pod autoscaler to
    /// consider scaling.
    #[arg(long, default_value_t = 0.1, value_name = "NUMBER")]
    pub horizontal_pod_autoscaler_tolerance: f64,
    /// The period after pod start when CPU samples might be skipped.
    #[arg(long, default_value = "5m0s", value_name = "DURATION")]
    pub horizontal_pod_autoscaler_cpu_initialization_period: GoDuration,
    /// The period after pod start during which readiness changes will be treated as initial readiness.
    #[arg(long, default_value = "30s", value_name = "DURATION")]
    pub horizontal_pod_autoscaler_initial_readiness_delay: GoDuration,
    /// The age at which a metric's value counts as missing, unless its window is longer; 0 for no limit.
    #[arg(long, default_value = "0s", value_name = "DURATION")]
    pub horizontal_pod_autoscaler_metrics_max_age: GoDuration,
    /// Ignore pods beyond the number that the target asks for, such as those of a rollout with maxSurge.
    #[arg(long, action = ArgAction::Set, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub horizontal_pod_autoscaler_ignore_surge: bool,
    /// A set of key=value pairs that describe feature gates for alpha/experimental features. Options are:
    /// HPAConfigurableTolerance=true|false (BETA - default=true), HPAScaleToZero=true|false (ALPHA - default=false).
    #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY=BOOL")]
    pub feature_gates: FeatureGates,
}

impl From<&Flags> for Config {
    fn from(flags: &Flags) -> Self {
        let FeatureGates { configurable_tolerance, scale_to_zero } = flags.feature_gates;
        Self {
            tolerance: flags.horizontal_pod_autoscaler_tolerance,
            downscale_stabilization: flags.horizontal_pod_autoscaler_downscale_stabilization.0,
            cpu_initialization_period: flags.horizontal_pod_autoscaler_cpu_initialization_period.0,
            initial_readiness_delay: flags.horizontal_pod_autoscaler_initial_readiness_delay.0,
            metrics_max_age: flags.horizontal_pod_autoscaler_metrics_max_age.0,
            ignores_surge: flags.horizontal_pod_autoscaler_ignore_surge,
            has_scale_to_zero: scale_to_zero,
            has_configurable_tolerance: configurable_tolerance,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(args: &[&str]) -> Result<Flags, String> {
        let name = "horizontal-pod-autoscaler-operator";
        let args = std::iter::once(name).chain(args.iter().copied()).map(Into::into);
        shared::process::flags::parse::<Flags>(name, args).map(|flags| flags.own).map_err(|exit| exit.text)
    }

    #[test]
    fn names_and_defaults_are_upstreams() {
        let flags = read(&[]).unwrap();
        assert_eq!(flags.concurrent_horizontal_pod_autoscaler_syncs, 5);
        assert_eq!(flags.horizontal_pod_autoscaler_sync_period.to_string(), "15s");
        let config = Config::from(&flags);
        assert_eq!(
            config,
            Config {
                tolerance: 0.1,
                downscale_stabilization: Duration::from_secs(300),
                cpu_initialization_period: Duration::from_secs(300),
                initial_readiness_delay: Duration::from_secs(30),
                metrics_max_age: Duration::ZERO,
                ignores_surge: false,
                has_scale_to_zero: false,
                has_configurable_tolerance: true,
            }
        );
    }

    #[test]
    fn a_period_is_some_time() {
        assert!(read(&["--horizontal-pod-autoscaler-sync-period=0"]).unwrap_err().contains("must be greater than 0"));
        assert!(read(&["--concurrent-horizontal-pod-autoscaler-syncs=0"]).is_err());
        assert!(read(&["--horizontal-pod-autoscaler-ignore-surge"]).unwrap().horizontal_pod_autoscaler_ignore_surge);
    }
}

//! The flags: those every operator has, upstream's of this controller, and one of its own.

pub mod gates;

use shared::controllers::brake::share;
use shared::process::flags::at_least_one;

use gates::FeatureGates;

/// Deletes pods whose devices have taints that their claims do not tolerate.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of operations (evicting pods, updating DeviceTaintRule status) allowed to run concurrently. Greater
    /// number = more responsive, but more CPU (and network) load.
    #[arg(long, default_value_t = 8, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_device_taint_eviction_syncs: usize,
    /// Slows down evictions for which taints of a driver are the only cause. The pods of this share of the driver's
    /// allocated claims, and of at least 10 claims, may be deleted at once; beyond it those of 3 % of the claims are
    /// deleted each minute. 0 is no limit.
    #[arg(long, default_value_t = 0.55, value_parser = share, value_name = "SHARE")]
    pub mass_deletion_share: f64,
    /// A set of key=value pairs that describe feature gates for alpha/experimental features. Options are:
    /// DRADeviceTaintRules=true|false (BETA - default=false), DRAWorkloadResourceClaims=true|false (ALPHA -
    /// default=false).
    #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY=BOOL")]
    pub feature_gates: FeatureGates,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Flags, String> {
        let name = "device-taint-eviction-operator";
        let args = std::iter::once(name).chain(args.iter().copied()).map(Into::into);
        shared::process::flags::parse::<Flags>(name, args).map(|flags| flags.own).map_err(|exit| exit.text)
    }

    #[test]
    fn defaults_are_upstreams() {
        let flags = read(&[]).unwrap();
        assert_eq!(flags.concurrent_device_taint_eviction_syncs, 8);
        assert_eq!(flags.feature_gates, FeatureGates::default());
        assert!(read(&["--concurrent-device-taint-eviction-syncs=0"]).unwrap_err().contains("must be greater than 0"));
    }
}

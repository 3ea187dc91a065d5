//! The flags: those every operator has, and upstream's of this controller.

pub mod gates;

use shared::process::flags::at_least_one;

use gates::FeatureGates;

/// Makes the ResourceClaims of pods, and frees claims that no pod uses.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of operations (creating or deleting ResourceClaims) allowed to run concurrently. Larger number = more
    /// responsive, but more CPU (and network) load.
    #[arg(long, default_value_t = 50, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_resourceclaim_syncs: usize,
    /// A set of key=value pairs that describe feature gates for alpha/experimental features. Options are:
    /// DRAPrioritizedList=true|false (default=true), DRAWorkloadResourceClaims=true|false (ALPHA - default=false).
    #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY=BOOL")]
    pub feature_gates: FeatureGates,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<(usize, FeatureGates), String> {
        const NAME: &str = "resourceclaim-operator";
        let args = std::iter::once(NAME).chain(args.iter().copied()).map(Into::into);
        let flags = shared::process::flags::parse::<Flags>(NAME, args).map_err(|exit| exit.text)?.own;
        Ok((flags.concurrent_resourceclaim_syncs, flags.feature_gates))
    }

    #[test]
    fn names_and_defaults_are_upstreams() {
        assert_eq!(read(&[]), Ok((50, FeatureGates::default())));
        assert_eq!(read(&["--concurrent-resourceclaim-syncs=1"]), Ok((1, FeatureGates::default())));
        let error = read(&["--concurrent-resourceclaim-syncs=0"]).unwrap_err();
        assert!(error.contains("must be greater than 0, but got 0"), "{error}");
        let (_, gates) = read(&["--feature-gates=DRAWorkloadResourceClaims=true"]).unwrap();
        assert!(gates.workload_resource_claims && gates.prioritized_list);
    }
}

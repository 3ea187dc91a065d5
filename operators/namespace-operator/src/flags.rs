//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: a resync. The timer of each namespace has the same purpose: a check before the grace period of its pods ends.

use shared::process::flags::{GoDuration, at_least_one};

/// Empties namespaces that are being deleted.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of namespace objects that are allowed to sync concurrently. Larger number = more responsive namespace
    /// termination, but more CPU (and network) load.
    #[arg(long, default_value_t = 10, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_namespace_syncs: usize,
    /// The period for syncing namespace life-cycle updates: the longest time until a namespace that is not empty yet is
    /// synced again. 0 means no limit: the grace periods of its pods decide.
    #[arg(long, default_value = "5m0s", value_name = "DURATION")]
    pub namespace_sync_period: GoDuration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<(usize, String), String> {
        let args = std::iter::once("namespace-operator").chain(args.iter().copied()).map(Into::into);
        let flags = shared::process::flags::parse::<Flags>("namespace-operator", args).map_err(|exit| exit.text)?.own;
        Ok((flags.concurrent_namespace_syncs, flags.namespace_sync_period.to_string()))
    }

    #[test]
    fn names_and_defaults_are_upstreams() {
        assert_eq!(read(&[]), Ok((10, "5m0s".to_owned())));
        let given = ["--concurrent-namespace-syncs=3", "--namespace-sync-period=0"];
        assert_eq!(read(&given), Ok((3, "0s".to_owned())));
        assert!(read(&["--namespace-sync-periods=1s"]).is_err());
    }
}

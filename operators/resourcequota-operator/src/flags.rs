//! The flags: those every operator has, and upstream's of this controller.

use shared::process::flags::{GoDuration, at_least_one};

/// Counts the usage of each ResourceQuota.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of resource quotas that are allowed to sync concurrently. Larger number = more responsive quota
    /// management, but more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_resource_quota_syncs: usize,
    /// The period for syncing quota usage status in the system: the longest time until a quota is counted again; 0
    /// means only after changes.
    #[arg(long, default_value = "5m0s", value_name = "DURATION")]
    pub resource_quota_sync_period: GoDuration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<(usize, String), String> {
        let args = std::iter::once("resourcequota-operator").chain(args.iter().copied()).map(Into::into);
        let flags =
            shared::process::flags::parse::<Flags>("resourcequota-operator", args).map_err(|exit| exit.text)?.own;
        Ok((flags.concurrent_resource_quota_syncs, flags.resource_quota_sync_period.to_string()))
    }

    #[test]
    fn names_and_defaults_are_upstreams() {
        assert_eq!(read(&[]), Ok((5, "5m0s".to_owned())));
        let given = ["--concurrent-resource-quota-syncs=3", "--resource-quota-sync-period=0"];
        assert_eq!(read(&given), Ok((3, "0s".to_owned())));
        assert!(read(&["--concurrent-resource-quota-syncs=0"]).is_err());
    }
}

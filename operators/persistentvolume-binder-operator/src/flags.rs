//! The flags: those every operator has, and upstream's of this controller.

use shared::process::flags::{GoDuration, parse_bool};

/// Binds claims to volumes, and has volumes provisioned and reclaimed.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The period for syncing persistent volumes and persistent volume claims. Only those are synced again that lack
    /// something.
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = GoDuration::positive)]
    pub pvclaimbinder_sync_period: GoDuration,
    /// Enable dynamic provisioning for environments that support it.
    #[arg(long, action = clap::ArgAction::Set, default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub enable_dynamic_provisioning: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<(u64, bool), String> {
        const NAME: &str = "persistentvolume-binder-operator";
        let args = std::iter::once(NAME).chain(args.iter().copied()).map(Into::into);
        let Flags { pvclaimbinder_sync_period, enable_dynamic_provisioning } =
            shared::process::flags::parse::<Flags>(NAME, args).map_err(|exit| exit.text)?.own;
        Ok((pvclaimbinder_sync_period.0.as_secs(), enable_dynamic_provisioning))
    }

    #[test]
    fn flags_are_upstreams() {
        assert_eq!(read(&[]), Ok((15, true)));
        assert_eq!(read(&["--pvclaimbinder-sync-period=1m", "--enable-dynamic-provisioning=false"]), Ok((60, false)));
        let error = read(&["--pvclaimbinder-sync-period=0s"]).unwrap_err();
        assert!(error.contains("must be greater than 0"), "{error}");
    }
}

//! The flags: those every operator has, and upstream's of this controller.

use std::time::Duration;

use shared::process::flags::{GoDuration, parse_bool};

use crate::plan::Config;

/// Attaches the volumes of pods to their nodes, and detaches those that no pod needs.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The reconciler sync wait time between volume attach detach. This duration must be larger than one second. A lost
    /// attachment is noticed at once, whatever the time is.
    #[arg(long, default_value = "1m0s", value_name = "DURATION", value_parser = at_least_a_second)]
    pub attach_detach_reconcile_sync_period: GoDuration,
    /// Disable volume attach detach reconciler sync. Disabling this may cause volumes to be mismatched with pods. Use
    /// wisely.
    #[arg(long, action = clap::ArgAction::Set, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub disable_attach_detach_reconcile_sync: bool,
    /// Prevent force detaching volumes based on maximum unmount time and node status. If this flag is set to true, the
    /// non-graceful node shutdown feature must be used to recover from node failure. See
    /// <https://k8s.io/docs/storage-disable-force-detach-on-timeout/>.
    #[arg(long, action = clap::ArgAction::Set, default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = parse_bool, value_name = "BOOL")]
    pub disable_force_detach_on_timeout: bool,
}

/// Upstream: `Validate`, `cmd/kube-controller-manager/app/options/attachdetachcontroller.go`.
fn at_least_a_second(text: &str) -> Result<GoDuration, String> {
    let duration: GoDuration = text.parse().map_err(|error| format!("{error}"))?;
    Some(duration).filter(|duration| duration.0 >= Duration::from_secs(1)).ok_or_else(|| {
        "duration time must be greater than one second as set via command line option reconcile-sync-loop-period"
            .to_owned()
    })
}

impl From<&Flags> for Config {
    fn from(flags: &Flags) -> Self {
        let Flags {
            attach_detach_reconcile_sync_period: _,
            disable_attach_detach_reconcile_sync,
            disable_force_detach_on_timeout,
        } = flags;
        Self { forces_on_timeout: !disable_force_detach_on_timeout, verifies: !disable_attach_detach_reconcile_sync }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_of(args: &[&str]) -> Result<(bool, bool), String> {
        const NAME: &str = "persistentvolume-attach-detach-operator";
        let args = std::iter::once(NAME).chain(args.iter().copied()).map(Into::into);
        let flags = shared::process::flags::parse::<Flags>(NAME, args).map_err(|exit| exit.text)?.own;
        let Config { forces_on_timeout, verifies } = Config::from(&flags);
        Ok((forces_on_timeout, verifies))
    }

    #[test]
    fn flags_are_upstreams() {
        assert_eq!(config_of(&[]), Ok((true, true)));
        assert_eq!(config_of(&["--disable-force-detach-on-timeout"]), Ok((false, true)));
        assert_eq!(config_of(&["--disable-attach-detach-reconcile-sync=true"]), Ok((true, false)));
        assert_eq!(config_of(&["--attach-detach-reconcile-sync-period=1s"]), Ok((true, true)));
        let error = config_of(&["--attach-detach-reconcile-sync-period=999ms"]).unwrap_err();
        assert!(error.contains("must be greater than one second"), "{error}");
    }
}

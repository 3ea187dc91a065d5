//! The flags of this operator: those every operator has, and upstream's own.
//!
//! Left out: `--controllers` and the like, for there is one controller here.

use shared::flags::{OperatorFlags, SharedFlags};

/// The flags of the cronjob-operator.
#[derive(Clone, Debug, clap::Parser)]
#[command(about = "Starts a CronJob's Jobs when they are due, as cronjob-controller does.")]
pub struct Flags {
    /// The flags every operator has.
    #[command(flatten)]
    pub shared: SharedFlags,
    /// The number of cron job objects that are allowed to sync concurrently. Larger number = more responsive jobs, but
    /// more CPU (and network) load.
    #[arg(long, default_value_t = 5, allow_negative_numbers = true, value_parser = syncs, value_name = "NUMBER")]
    pub concurrent_cron_job_syncs: usize,
}

fn syncs(text: &str) -> Result<usize, String> {
    let syncs: i32 = text.parse().map_err(|error| format!("{error}"))?;
    let too_few = || format!("concurrent-cron-job-syncs must be greater than 0, but got {syncs}");
    usize::try_from(syncs).ok().filter(|syncs| *syncs > 0).ok_or_else(too_few)
}

impl OperatorFlags for Flags {
    fn shared(&self) -> &SharedFlags {
        &self.shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syncs_of(args: &[&str]) -> Result<usize, String> {
        let args = std::iter::once("cronjob-operator").chain(args.iter().copied()).map(Into::into);
        let flags = shared::flags::parse::<Flags>("cronjob-operator", args).map_err(|exit| exit.text)?;
        Ok(flags.concurrent_cron_job_syncs)
    }

    #[test]
    fn at_least_one_sync_is_wanted() {
        assert_eq!(syncs_of(&[]), Ok(5));
        assert_eq!(syncs_of(&["--concurrent-cron-job-syncs=1"]), Ok(1));
        for wrong in ["0", "-1"] {
            let error = syncs_of(&["--concurrent-cron-job-syncs", wrong]).unwrap_err();
            let expected = format!("concurrent-cron-job-syncs must be greater than 0, but got {wrong}");
            assert!(error.contains(&expected), "{error}");
        }
    }
}

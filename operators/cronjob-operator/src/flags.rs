//! The flags: those of every operator, and upstream's of this controller.

use shared::process::flags::at_least_one;

/// Starts the Jobs of CronJobs when they are due.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of cron job objects that are allowed to sync concurrently. Larger number = more responsive jobs, but
    /// more CPU (and network) load.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_cron_job_syncs: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syncs_of(args: &[&str]) -> Result<usize, String> {
        let args = std::iter::once("cronjob-operator").chain(args.iter().copied()).map(Into::into);
        let flags = shared::process::flags::parse::<Flags>("cronjob-operator", args).map_err(|exit| exit.text)?.own;
        Ok(flags.concurrent_cron_job_syncs)
    }

    #[test]
    fn at_least_one_sync_is_wanted() {
        assert_eq!(syncs_of(&[]), Ok(5));
        assert_eq!(syncs_of(&["--concurrent-cron-job-syncs=1"]), Ok(1));
        for wrong in ["0", "-1"] {
            let error = syncs_of(&["--concurrent-cron-job-syncs", wrong]).unwrap_err();
            let expected = format!("--concurrent-cron-job-syncs <NUMBER>\': must be greater than 0, but got {wrong}");
            assert!(error.contains(&expected), "{error}");
        }
    }
}

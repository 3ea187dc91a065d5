//! The flags: those of every operator, and upstream's of this controller.

use shared::process::flags::at_least_one;

/// Reports type errors in the expressions of ValidatingAdmissionPolicies in their statuses.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The number of ValidatingAdmissionPolicyStatusController workers that are allowed to sync concurrently.
    #[arg(long, default_value_t = 5, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_validating_admission_policy_status_syncs: usize,
}

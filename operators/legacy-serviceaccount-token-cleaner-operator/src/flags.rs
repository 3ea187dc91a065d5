//! The flags: those every operator has, and upstream's of this controller.

use shared::process::flags::GoDuration;

/// Deletes ServiceAccount tokens that have long been unused.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// The period of time since the last usage of an legacy service account token before it can be deleted.
    #[arg(long, default_value = "8760h0m0s", value_parser = GoDuration::positive, value_name = "DURATION")]
    pub legacy_service_account_token_clean_up_period: GoDuration,
}

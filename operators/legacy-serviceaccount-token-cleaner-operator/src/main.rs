//! The legacy-serviceaccount-token-cleaner-operator's process.

use std::process::ExitCode;

use legacy_serviceaccount_token_cleaner_operator::controller::LegacyServiceAccountTokenCleanerOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<LegacyServiceAccountTokenCleanerOperator>()
}

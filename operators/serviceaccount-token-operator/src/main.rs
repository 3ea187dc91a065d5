//! The serviceaccount-token-operator's process.

use std::process::ExitCode;

use serviceaccount_token_operator::controller::ServiceAccountTokenOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ServiceAccountTokenOperator>()
}

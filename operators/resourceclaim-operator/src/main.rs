//! The resourceclaim-operator's process.

use std::process::ExitCode;

use resourceclaim_operator::controller::ResourceClaimOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ResourceClaimOperator>()
}

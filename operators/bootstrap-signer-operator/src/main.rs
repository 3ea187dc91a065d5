//! The bootstrap-signer-operator's process.

use std::process::ExitCode;

use bootstrap_signer_operator::controller::BootstrapSignerOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<BootstrapSignerOperator>()
}

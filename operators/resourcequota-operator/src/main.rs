//! The resourcequota-operator's process.

use std::process::ExitCode;

use resourcequota_operator::controller::ResourceQuotaOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ResourceQuotaOperator>()
}

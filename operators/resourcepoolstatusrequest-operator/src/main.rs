//! The resourcepoolstatusrequest-operator's process.

use std::process::ExitCode;

use resourcepoolstatusrequest_operator::controller::ResourcePoolStatusRequestOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ResourcePoolStatusRequestOperator>()
}

//! The deployment-operator's process.

use std::process::ExitCode;

use deployment_operator::controller::DeploymentOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<DeploymentOperator>()
}

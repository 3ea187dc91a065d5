//! The cloud-node-lifecycle-operator's process.

use std::process::ExitCode;

use cloud_node_lifecycle_operator::controller::CloudNodeLifecycleOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<CloudNodeLifecycleOperator>()
}

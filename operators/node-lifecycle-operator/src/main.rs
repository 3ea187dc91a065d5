//! The node-lifecycle-operator's process.

use std::process::ExitCode;

use node_lifecycle_operator::controller::NodeLifecycleOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<NodeLifecycleOperator>()
}

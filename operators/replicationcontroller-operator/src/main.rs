//! The replicationcontroller-operator's process.

use std::process::ExitCode;

use replicationcontroller_operator::controller::ReplicationControllerOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ReplicationControllerOperator>()
}

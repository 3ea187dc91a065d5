//! The replicaset-operator's process.

use std::process::ExitCode;

use replicaset_operator::controller::ReplicaSetOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ReplicaSetOperator>()
}

//! The cloud-node-operator's process.

use std::process::ExitCode;

use cloud_node_operator::controller::CloudNodeOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<CloudNodeOperator>()
}

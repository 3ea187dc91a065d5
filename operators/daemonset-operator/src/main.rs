//! The daemonset-operator's process.

use std::process::ExitCode;

use daemonset_operator::controller::DaemonSetOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<DaemonSetOperator>()
}

//! The disruption-operator as a process.

use std::process::ExitCode;

use disruption_operator::controller::DisruptionOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<DisruptionOperator>()
}

//! The endpoints-operator's process.

use std::process::ExitCode;

use endpoints_operator::EndpointsOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<EndpointsOperator>()
}

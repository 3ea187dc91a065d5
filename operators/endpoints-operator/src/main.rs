//! The endpoints-operator as a process.

use std::process::ExitCode;

use endpoints_operator::EndpointsOperator;

pub(crate) fn main() -> ExitCode {
    shared::runtime::run::main::<EndpointsOperator>()
}

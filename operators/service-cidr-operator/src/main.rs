//! The service-cidr-operator's process.

use std::process::ExitCode;

use service_cidr_operator::controller::ServiceCidrOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ServiceCidrOperator>()
}
